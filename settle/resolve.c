/* Did it land? Asked of the chain, one nonce at a time, until it is proven: the flag and the time from one block.
 *
 *   used    find the log that says so: our Transfer is the proof, a cancellation or a Transfer to somebody else is void, and
 *           anything else, or no log found, is still unknown
 *   unused  nothing yet, until a final block's time has passed the last deadline: expired
 *   no answer: unknown */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "settle/desk.h"

enum { LOOKS = 100, EVERY_MS = 1000 };

static void row_key(const struct db_rows *rows, int i, struct address *ret_asset, struct address *ret_payer, struct hash32 *ret_nonce)
{
    (void)row_copy(rows, i, "asset", ret_asset->b, 20);
    (void)row_copy(rows, i, "payer", ret_payer->b, 20);
    (void)row_copy(rows, i, "nonce", ret_nonce->b, 32);
}

static bool deadline_passed(const struct desk *d, const struct db_rows *rows, int i)
{
    return (int64_t)d->final.time >= row_int(rows, i, "dead_after");
}

/* authorizationState(payer, nonce), at the final block once its time decides, at the head before. */
static struct rpc_item ask_flag(const struct desk *d, const struct db_rows *rows, int i)
{
    struct address asset, payer;
    struct hash32 nonce;
    uint8_t call[4 + 64] = { 0xe9, 0x4a, 0x01, 0x02 };
    row_key(rows, i, &asset, &payer, &nonce);
    memcpy(call + 16, payer.b, 20);
    memcpy(call + 36, nonce.b, 32);
    uint64_t at = deadline_passed(d, rows, i) ? d->final.number : d->head.number;
    return (struct rpc_item){ "eth_call", json_pack("[{s:s, s:o}, o]", "to", address_lower(&asset).s, "data",
                                                    rpc_hex(call, sizeof call), rpc_u64(at)) };
}

static bool end(struct desk *d, int64_t id, const char *state, const char *note, int64_t dead_after)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, state);
    arg_text(&a, note);
    arg_text(&a, d->by);
    arg_int(&a, dead_after);
    FAILPOINT("settler-before-end");
    bool ok = db_wait(d->db, "authorization_end", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK;
    log_info("settler.ended", "network=%s authorization=%" PRId64 " state=%s note=%s", d->net->id, id, state, note);
    return ok;
}

/* The transaction that used or cancelled the nonce, from the token's own indexed logs. False and ret_none: the node has no such log. */
static bool find_event(struct desk *d, const struct db_rows *rows, int i, struct auth_event *ret, uint64_t *ret_time, bool *ret_none)
{
    struct address asset, payer;
    struct hash32 nonce, tx;
    row_key(rows, i, &asset, &payer, &nonce);
    struct rpc_item logs = { "eth_getLogs", logs_of_nonce(&asset, &payer, &nonce, (uint64_t)row_int(rows, i, "from_block"),
                                                         d->head.number) };
    struct rpc_answers found = quorum_wait(d, &logs, 1);
    const json_t *log = found.a[0].rc == RPC_OK ? json_array_get(found.a[0].result, 0) : NULL;
    bool ok = rpc_read_hash(json_object_get(log, "transactionHash"), &tx);
    *ret_none = found.a[0].rc == RPC_OK && json_is_array(found.a[0].result) && json_array_size(found.a[0].result) == 0;
    rpc_answers_done(&found);
    if (!ok)
        return false;

    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&tx).s) };
    struct rpc_answers r = quorum_wait(d, &item, 1);
    struct receipt receipt = { 0 };
    struct block block;
    ok = r.a[0].rc == RPC_OK && receipt_read(r.a[0].result, &receipt) && receipt.found &&
         receipt_find(&receipt, &asset, &payer, &nonce, ret);
    rpc_answers_done(&r);
    receipt_done(&receipt);
    if (!ok)
        return false;

    struct rpc_item in = { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(ret->block), 0) };
    struct rpc_answers b = quorum_wait(d, &in, 1);
    ok = b.a[0].rc == RPC_OK && block_read(b.a[0].result, &block) && hash_eq(&block.hash, &ret->block_hash);
    if (ok)
        *ret_time = block.time;
    rpc_answers_done(&b);
    return ok;
}

/* Used, and the token's logs neither show our Transfer nor say where it went. */
static void puzzle(struct desk *d, int64_t id, const char *fact)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, fact);
    arg_text(&a, d->by);
    log_warn("settler.puzzle", "network=%s authorization=%" PRId64 " why=%s", d->net->id, id, fact);
    (void)!db_wait(d->db, "authorization_puzzles", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

static void used(struct desk *d, const struct db_rows *rows, int i)
{
    struct auth_event e;
    uint64_t time;
    bool none = false;
    int64_t id = row_int(rows, i, "id");
    if (!find_event(d, rows, i, &e, &time, &none)) {
        if (none && deadline_passed(d, rows, i))
            puzzle(d, id, "its nonce is used, and the node has no log of it");
        return;
    }
    if (desk_proves(&e, rows, i)) {
        if (!desk_deep(d, e.block))
            return;
        json_t *proofs = json_array();
        desk_add_proof(proofs, id, &e, time);
        (void)desk_record(d, proofs, NULL, NULL);
        return;
    }
    if (e.block > d->final.number)
        return;
    struct address payee;
    OWNED char *note = NULL;
    if (e.kind == AUTH_EVENT_CANCELED)
        note = str_format("cancelled by the payer in %s", hash_text(&e.tx).s);
    else if (e.kind == AUTH_EVENT_TRANSFER && row_copy(rows, i, "payee", payee.b, 20) && !address_eq(&e.to, &payee))
        note = str_format("spent elsewhere in %s", hash_text(&e.tx).s);
    if (note) {
        (void)end(d, id, "void", note, row_int(rows, i, "dead_after"));
        return;
    }
    OWNED char *fact = str_format("its nonce is used in %s without the Transfer that it stands for", hash_text(&e.tx).s);
    puzzle(d, id, fact);
}

static void judge(struct desk *d, const struct db_rows *rows, int i, const struct rpc_answer *a)
{
    size_t n = 0;
    OWNED uint8_t *flag = a->rc == RPC_OK ? rpc_read_data(a->result, &n) : NULL;
    if (!flag || n != 32)
        return;
    if (flag[31])
        used(d, rows, i);
    else if (deadline_passed(d, rows, i))
        (void)end(d, row_int(rows, i, "id"), "expired", "unused at a final block past its deadline", row_int(rows, i, "dead_after"));
}

bool desk_resolve(struct desk *d)
{
    if (!d->new_head && clock_mono_ms() < d->resolve_at_ms)
        return true;
    d->resolve_at_ms = clock_mono_ms() + EVERY_MS;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_int(&a, LOOKS);
    if (db_wait(d->db, "authorizations_look", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    size_t n = (size_t)db_count(rows);
    if (n == 0)
        return true;
    OWNED struct rpc_item *items = mem_new(n * sizeof *items);
    for (size_t i = 0; i < n; i++)
        items[i] = ask_flag(d, rows, (int)i);
    struct rpc_answers r = quorum_wait(d, items, n);
    for (size_t i = 0; i < n; i++)
        judge(d, rows, (int)i, &r.a[i]);
    rpc_answers_done(&r);
    return true;
}
