/* Where an authorization was used, and what the transaction there did: from the token's indexed log, then from the transaction's
 * receipt. Nodes have been seen to deny a receipt for hours; all logs of the block prove the same. */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "settle/desk.h"

/* Rows that name an authorization have "asset", "payer" and "nonce". */
void desk_key(const struct db_rows *rows, int i, struct auth_key *ret)
{
    (void)row_copy(rows, i, "asset", ret->asset.b, 20);
    (void)row_copy(rows, i, "payer", ret->payer.b, 20);
    (void)row_copy(rows, i, "nonce", ret->nonce.b, 32);
}

enum seek desk_seek(struct desk *d, const struct db_rows *rows, int i, struct log_place *ret)
{
    struct auth_key key = { 0 };
    desk_key(rows, i, &key);
    struct rpc_item item = { "eth_getLogs", logs_of_nonce(&key.asset, &key.payer, &key.nonce,
                                                         (uint64_t)row_int(rows, i, "from_block"), d->head.number) };
    struct rpc_answers r = quorum_wait(d, &item, 1);
    const json_t *logs = r.a[0].rc == RPC_OK ? r.a[0].result : NULL;
    enum seek s = log_place_read(json_array_get(logs, 0), ret)               ? SEEK_FOUND
                  : json_is_array(logs) && json_array_size(logs) == 0 ? SEEK_NONE
                                                                      : SEEK_FAILED;
    rpc_answers_done(&r);
    return s;
}

static bool from_receipt(struct desk *d, const struct log_place *p, struct receipt *ret)
{
    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&p->tx).s) };
    struct rpc_answers r = quorum_wait(d, &item, 1);
    bool ok = r.a[0].rc == RPC_OK && receipt_read(r.a[0].result, ret) && ret->found;
    rpc_answers_done(&r);
    return ok;
}

static bool from_logs(struct desk *d, const struct log_place *p, struct receipt *ret)
{
    struct rpc_item item = { "eth_getLogs", json_pack("[{s:s}]", "blockHash", hash_text(&p->block_hash).s) };
    struct rpc_answers r = quorum_wait(d, &item, 1);
    bool ok = r.a[0].rc == RPC_OK && receipt_of_logs(r.a[0].result, &p->tx, &p->block_hash, p->block, ret);
    rpc_answers_done(&r);
    if (ok)
        log_warn("settler.no_receipt", "network=%s tx=%s hint=read from the logs of its block", d->net->id, hash_text(&p->tx).s);
    return ok;
}

/* The block must be the one that the chain has at that height; its time dates the payment. */
static bool read_time(struct desk *d, const struct receipt *r, uint64_t *ret)
{
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(r->block), 0) };
    struct rpc_answers a = quorum_wait(d, &item, 1);
    struct block b;
    bool ok = a.a[0].rc == RPC_OK && block_read(a.a[0].result, &b) && hash_eq(&b.hash, &r->block_hash);
    if (ok)
        *ret = b.time;
    rpc_answers_done(&a);
    return ok;
}

bool desk_landed(struct desk *d, const struct log_place *p, struct receipt *ret, uint64_t *ret_time)
{
    SCOPE(receipt_done) struct receipt r = { .found = false };
    if (!from_receipt(d, p, &r) && !from_logs(d, p, &r))
        return false;
    if (!read_time(d, &r, ret_time))
        return false;
    *ret = r;
    r = (struct receipt){ .found = false };
    return true;
}

void desk_puzzle(struct desk *d, int64_t id, const char *fact)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, fact);
    arg_text(&a, d->by);
    log_warn("settler.puzzle", "network=%s authorization=%" PRId64 " why=%s", d->net->id, id, fact);
    (void)!db_wait(d->db, "authorization_puzzles", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}
