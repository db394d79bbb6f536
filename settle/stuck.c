/* Transactions that do not come into a block. The account's next nonce holds up every later one, so it is that one whose fee is
 * raised: the same nonce, the same call, and every hash kept, since any of them may be the one that is mined. A nonce that the
 * final chain has used with none of our hashes, nor for anything that they carry, is given up, and what it carried goes again. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "settle/desk.h"

/* Nodes take a replacement from 10 % on. What the head's base fee has priced out is raised soon; what could be mined has another
 * trouble (a node that forgot it, no gas money), which a fee does not mend, and is raised only after a long while. */
enum { PRICED_OUT_S = 12, PRICED_OUT_BLOCKS = 5, LONG_S = 60, TAKEN_S = 30, RAISE_PERCENT = 25, LEAST_PERCENT = 10 };

static struct amount raised(struct amount fee, unsigned percent)
{
    struct amount more;
    return amount_add(fee, amount_of(amount_u64_cap(fee) / 100 * percent + percent), &more) ? more : fee;
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

/* Said once a nonce: it waits for the chain to become cheaper, or for a larger fee_max. */
static void say_capped(struct desk *d, const struct db_rows *open, int i)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_int(&a, row_int(open, i, "id"));
    if (db_wait(d->db, "relay_capped", &a, clock_mono_ms() + DESK_DB_MS, &rows) == DB_OK && row_bool(rows, 0, "first"))
        log_error("settler.fee_capped", "network=%s nonce=%" PRId64 " max_fee=%s fee_max=%s hint=it waits; raise fee_max_wei", d->net->id,
                  row_int(open, i, "account_nonce"), amount_text(row_amount(open, i, "max_fee")).s,
                  amount_text(d->net->fee_max).s);
}

/* The fees of a replacement, as far as fee_max goes. False: that leaves less than nodes take. */
static bool replacement_fees(const struct desk *d, const struct db_rows *open, int i, struct transaction *tx)
{
    struct amount fee = row_amount(open, i, "max_fee"), tip = row_amount(open, i, "max_tip"), cap = d->net->fee_max;
    tx->max_fee = larger(raised(fee, RAISE_PERCENT), desk_fee(d));
    tx->max_tip = larger(raised(tip, RAISE_PERCENT), d->tip);
    if (amount_cmp(tx->max_fee, cap) > 0)
        tx->max_fee = cap;
    return amount_cmp(tx->max_fee, raised(fee, LEAST_PERCENT)) >= 0 && amount_cmp(tx->max_tip, tx->max_fee) <= 0;
}

/* Committed before it is sent, like the first; what was broadcast is then sent by desk_prove's next round. */
static void raise_fee(struct desk *d, const struct db_rows *open, int i)
{
    struct transaction tx = {
        .chain_id = d->net->chain_id,
        .nonce = (uint64_t)row_int(open, i, "account_nonce"),
        .gas = (uint64_t)row_int(open, i, "gas"),
        .data = row_bytes(open, i, "call_data"),
    };
    BUF raw = { 0 };
    struct hash32 hash;
    DB_ROWS *rows = NULL;
    if (!replacement_fees(d, open, i, &tx)) {
        say_capped(d, open, i);
        return;
    }
    if (!row_copy(open, i, "call_to", tx.to.b, 20) || !transaction_sign(&tx, d->relayer, &raw, &hash))
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

/* ---- nonces that are used, by what? ---- */

static bool wallet_rows(struct desk *d, const char *function, int64_t nonce, const char *by, struct db_rows **ret)
{
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_bytes(&a, d->relayer->address.b, 20);
    arg_int(&a, nonce);
    if (by)
        arg_text(&a, by);
    return db_wait(d->db, function, &a, clock_mono_ms() + DESK_DB_MS, ret) == DB_OK;
}

static bool is_ours(const struct db_rows *open, const struct hash32 *tx)
{
    struct hash32 hash;
    for (int i = 0; i < db_count(open); i++)
        if (row_copy(open, i, "hash", hash.b, 32) && hash_eq(&hash, tx))
            return true;
    return false;
}

/* One that is used tells by its log which transaction did it. True: surely none of ours. */
static bool used_by_another(struct desk *d, const struct db_rows *open, const struct db_rows *carried, int i)
{
    SCOPE(receipt_done) struct receipt receipt = { .found = false };
    struct log_place place;
    uint64_t time;
    if (desk_seek(d, carried, i, &place) != SEEK_FOUND)
        return false;
    if (!is_ours(open, &place.tx))
        return true;
    if (desk_landed(d, &place, &receipt, &time))
        (void)!desk_mined(d, &receipt, time);
    return false;
}

/* Used by the final chain, and not by us: no authorization that our transactions of this nonce carry is used at the final block, or
 * its log names another transaction. What cannot be read says nothing. */
static bool is_taken(struct desk *d, const struct db_rows *open, int64_t nonce)
{
    DB_ROWS *carried = NULL;
    if (!wallet_rows(d, "relay_carried", nonce, NULL, &carried))
        return false;
    size_t n = (size_t)db_count(carried);
    if (n == 0)
        return true;
    OWNED uint64_t *at = mem_new(n * sizeof *at);
    OWNED enum flag *flag = mem_new(n * sizeof *flag);
    for (size_t i = 0; i < n; i++)
        at[i] = d->final.number;
    desk_flags(d, carried, at, flag);
    bool taken = true;
    for (size_t i = 0; taken && i < n; i++)
        taken = flag[i] == FLAG_UNUSED || (flag[i] == FLAG_USED && used_by_another(d, open, carried, (int)i));
    return taken;
}

static void give_up(struct desk *d, int64_t nonce)
{
    log_error("settler.nonce_taken", "network=%s nonce=%" PRId64 " hint=somebody else uses the relayer's key, or it was of no effect",
              d->net->id, nonce);
    (void)wallet_rows(d, "relay_drop", nonce, d->by, NULL);
}

/* Is none of the hashes of row i's nonce in the chain, as far as the nodes tell? One that cannot be asked for may be. */
static bool all_absent(const struct db_rows *open, const struct mined *m, int64_t nonce)
{
    for (int i = 0; i < db_count(open); i++)
        if (row_int(open, i, "account_nonce") == nonce && !m[i].absent)
            return false;
    return true;
}

void desk_unstick(struct desk *d, const struct db_rows *open, const struct mined *m)
{
    int64_t next = (int64_t)d->chain_nonce, looked_at = -1;
    uint64_t final = 0;
    bool asked = false;
    for (int i = 0; i < db_count(open); i++) {
        int64_t nonce = row_int(open, i, "account_nonce");
        if (nonce == looked_at || !all_absent(open, m, nonce))
            continue;
        if (nonce == next && row_bool(open, i, "newest") && is_stuck(d, open, i) && d->new_head)
            raise_fee(d, open, i);
        if (nonce >= next || row_int(open, i, "stuck_s") < TAKEN_S) /* a receipt may only be late */
            continue;
        if (!asked && !final_nonce(d, &final))
            return;
        asked = true;
        looked_at = nonce;
        if ((uint64_t)nonce < final && is_taken(d, open, nonce))
            give_up(d, nonce);
    }
}
