/* Transactions that do not come into a block. The account's next nonce holds up every later one, so it is that one whose fee is
 * raised: the same nonce, the same call, and every hash kept, since any of them may be the one that is mined. A nonce that the
 * final chain has used with none of our hashes is given up, and what it carried goes again. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "settle/desk.h"

/* Nodes take a replacement from 10 % on. What the head's base fee has priced out is raised soon; what could be mined has another
 * trouble (a node that forgot it, no gas money), which a fee does not mend, and is raised only after a long while. */
enum { PRICED_OUT_S = 12, PRICED_OUT_BLOCKS = 5, LONG_S = 60, TAKEN_S = 30, RAISE_PERCENT = 25 };

static struct amount raised(struct amount fee)
{
    struct amount more;
    return amount_add(fee, amount_of(amount_u64_cap(fee) / 100 * RAISE_PERCENT + 1), &more) ? more : fee;
}

static struct amount larger(struct amount a, struct amount b)
{
    return amount_cmp(a, b) >= 0 ? a : b;
}

static bool store(struct desk *d, int64_t id, const struct hash32 *hash, const struct buf *raw, const struct transaction *tx,
                  struct db_rows **ret)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_bytes(&a, d->instance.b, 16);
    arg_int(&a, d->epoch);
    arg_bytes(&a, hash->b, 32);
    arg_bytes(&a, raw->p, raw->n);
    arg_amount(&a, tx->max_fee);
    arg_amount(&a, tx->max_tip);
    arg_text(&a, d->by);
    FAILPOINT("settler-before-replace");
    return db_wait(d->db, "relay_replace", &a, clock_mono_ms() + DESK_DB_MS, ret) == DB_OK && row_is(*ret, 0, "verdict", "stored");
}

static bool is_stuck(const struct desk *d, const struct db_rows *open, int i)
{
    struct amount needed;
    int64_t soon_s = PRICED_OUT_BLOCKS * d->net->block_time_ms / 1000;
    bool priced_out = !amount_add(d->head.base_fee, d->net->tip_min, &needed) ||
                      amount_cmp(row_amount(open, i, "max_fee"), needed) < 0;
    soon_s = soon_s < PRICED_OUT_S ? PRICED_OUT_S : soon_s;
    return row_int(open, i, "stuck_s") >= (priced_out ? soon_s : LONG_S);
}

/* Committed before it is sent, like the first; what was broadcast is then sent by desk_prove's next round. */
static void raise_fee(struct desk *d, const struct db_rows *open, int i)
{
    struct transaction tx = {
        .chain_id = d->net->chain_id,
        .nonce = (uint64_t)row_int(open, i, "account_nonce"),
        .gas = (uint64_t)row_int(open, i, "gas"),
        .max_fee = larger(raised(row_amount(open, i, "max_fee")), desk_fee(d)),
        .max_tip = larger(raised(row_amount(open, i, "max_tip")), d->tip),
        .data = row_bytes(open, i, "call_data"),
    };
    BUF raw = { 0 };
    struct hash32 hash;
    DB_ROWS *rows = NULL;
    if (amount_cmp(tx.max_fee, d->net->fee_max) > 0 || !row_copy(open, i, "call_to", tx.to.b, 20) ||
        !transaction_sign(&tx, d->relayer, &raw, &hash))
        return;
    if (!store(d, row_int(open, i, "id"), &hash, &raw, &tx, &rows)) {
        d->owner = false;
        return;
    }
    log_info("settler.fee_raised", "network=%s tx=%s nonce=%" PRIu64 " max_fee=%s", d->net->id, hash_text(&hash).s, tx.nonce,
             amount_text(tx.max_fee).s);
    d->open_at_ms = 0;
}

/* How many transactions of ours the final chain has. */
static bool final_nonce(struct desk *d, uint64_t *ret)
{
    struct rpc_item item = { "eth_getTransactionCount", json_pack("[s, o]", address_lower(&d->relayer->address).s,
                                                                  rpc_u64(d->final.number)) };
    struct rpc_answers r = quorum_wait(d, &item, 1);
    bool ok = r.a[0].rc == RPC_OK && rpc_read_u64(r.a[0].result, ret);
    rpc_answers_done(&r);
    return ok;
}

static void give_up(struct desk *d, int64_t nonce)
{
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_bytes(&a, d->relayer->address.b, 20);
    arg_int(&a, nonce);
    arg_text(&a, d->by);
    log_error("settler.nonce_taken", "network=%s nonce=%" PRId64 " hint=somebody else uses the relayer's key", d->net->id, nonce);
    (void)!db_wait(d->db, "relay_drop", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

/* Is one of the hashes of row i's nonce in the chain? */
static bool any_mined(const struct db_rows *open, const struct mined *m, int64_t nonce)
{
    for (int i = 0; i < db_count(open); i++)
        if (row_int(open, i, "account_nonce") == nonce && m[i].receipt.found)
            return true;
    return false;
}

void desk_unstick(struct desk *d, const struct db_rows *open, const struct mined *m)
{
    int64_t next = (int64_t)d->chain_nonce, given_up = -1;
    uint64_t final = 0;
    bool asked = false;
    for (int i = 0; i < db_count(open); i++) {
        int64_t nonce = row_int(open, i, "account_nonce");
        if (any_mined(open, m, nonce) || nonce == given_up)
            continue;
        if (nonce == next && row_bool(open, i, "newest") && is_stuck(d, open, i) && d->new_head)
            raise_fee(d, open, i);
        if (nonce >= next)
            continue;
        if (!asked && !final_nonce(d, &final))
            return;
        asked = true;
        if ((uint64_t)nonce < final && row_int(open, i, "stuck_s") >= TAKEN_S) { /* a receipt may only be late */
            give_up(d, nonce);
            given_up = nonce;
        }
    }
}
