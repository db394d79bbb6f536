/* A call of the relayer's that settles no authorization of ours: the same lease, account nonces and commit before the
 * first byte; what becomes of it afterwards is the relay's ordinary business. */
#include <inttypes.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "settle/desk.h"

struct rpc_answers settler_ask(struct desk *d, struct rpc_item *items, size_t n)
{
    return quorum_wait(d, items, n);
}

static struct db_rows *store(struct desk *d, const struct settler_call *call, const struct transaction *tx,
                             const struct hash32 *hash, const struct buf *raw)
{
    DB_ARGS a = { 0 };
    struct db_rows *rows = NULL;
    arg_text(&a, d->net->id);
    arg_bytes(&a, d->relayer->address.b, 20);
    arg_bytes(&a, d->instance.b, 16);
    arg_int(&a, d->epoch);
    arg_int(&a, (int64_t)tx->nonce);
    arg_bytes(&a, hash->b, 32);
    arg_bytes(&a, raw->p, raw->n);
    arg_int(&a, (int64_t)tx->gas);
    arg_amount(&a, tx->max_fee);
    arg_amount(&a, tx->max_tip);
    arg_bytes(&a, tx->to.b, 20);
    arg_bytes(&a, tx->data.p, tx->data.n);
    arg_text(&a, call->what);
    arg_text(&a, d->by);
    return db_wait(d->db, call->function, &a, clock_mono_ms() + DESK_DB_MS, &rows) == DB_OK ? rows : NULL;
}

bool settler_carry(struct desk *d, const struct settler_call *call)
{
    struct transaction tx = { .chain_id = d->net->chain_id,
                              .nonce = d->next_nonce,
                              .gas = call->gas,
                              .max_fee = desk_fee(d),
                              .max_tip = d->tip,
                              .to = call->to,
                              .data = call->data };
    BUF raw = { 0 };
    struct hash32 hash;
    if (!d->owner || d->poor || d->dear || !transaction_sign(&tx, d->relayer, &raw, &hash))
        return false;
    FAILPOINT("carry-before-store");
    DB_ROWS *rows = store(d, call, &tx, &hash, &raw);
    if (!rows || !row_is(rows, 0, "verdict", "stored")) {
        log_warn("settler.not_stored", "network=%s nonce=%" PRIu64 " verdict=%s", d->net->id, tx.nonce,
                 rows ? row_text(rows, 0, "verdict").p : "unavailable");
        d->owner = false;
        return false;
    }
    FAILPOINT("carry-after-store");
    d->next_nonce = (uint64_t)row_int(rows, 0, "next_nonce");
    d->open = true;
    log_info("settler.carried", "network=%s tx=%s nonce=%" PRIu64 " for=%s", d->net->id, hash_text(&hash).s, tx.nonce,
             call->function);
    desk_broadcast(d, rows, 0);
    return true;
}
