/* On Tempo a payment is a transaction of the payer's own: here it is sent, where it is for us to send, and proven by its receipt. The
 * bytes and the hash are in the database before the first of them is sent; sending them again changes nothing. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "chain/tempo_tx.h"
#include "settle/desk.h"

enum { LOOKS = 100, SEND_EVERY = 8, ORPHANS_MS = 2000, GRACE_S = 900 };

/* ---- sending ---- */

static void send(struct desk *d, const struct db_rows *rows, int i)
{
    const struct slice raw = row_bytes(rows, i, "raw");
    if (!raw.p || (row_int(rows, i, "looks") - 1) % SEND_EVERY != 0 || (int64_t)d->head.time >= row_int(rows, i, "dead_after"))
        return;
    FAILPOINT("settler-before-charge");
    struct rpc_item item = { "eth_sendRawTransaction", json_pack("[o]", rpc_hex(raw.p, raw.n)) };
    struct rpc_answers r = rpc_wait_everywhere(d->rpc, item);
    FAILPOINT("settler-after-charge");
    for (size_t k = 0; k < r.n; k++)
        if (r.a[k].rc == RPC_ERROR)
            log_info("settler.charge_refused", "network=%s authorization=%" PRId64 " why=%.200s", d->net->id, row_int(rows, i, "id"),
                     r.a[k].message);
    rpc_answers_done(&r);
}

/* ---- what its receipt says ---- */

struct wanted {
    struct address asset, payer, payee;
    struct amount amount;
    struct hash32 memo;
    bool found;
    struct tempo_moved moved;
};

/* The first that is it; one transaction may pay twice under one memo, and the second is somebody's to give back. */
static void is_it(void *arg, const struct tempo_moved *m)
{
    struct wanted *w = arg;
    if (w->found || !m->has_memo || !hash_eq(&m->memo, &w->memo) || !address_eq(&m->token, &w->asset) || !address_eq(&m->from, &w->payer) ||
        amount_cmp(m->amount, w->amount) != 0)
        return;
    w->found = true;
    w->moved = *m;
}

static bool find_transfer(const struct receipt *r, const struct db_rows *rows, int i, struct wanted *ret)
{
    struct wanted w = { .amount = row_amount(rows, i, "amount") };
    (void)row_copy(rows, i, "asset", w.asset.b, 20);
    (void)row_copy(rows, i, "payer", w.payer.b, 20);
    (void)row_copy(rows, i, "payee", w.payee.b, 20);
    (void)row_copy(rows, i, "memo", w.memo.b, 32);
    *ret = w;
    return tempo_each_transfer(r, &w.payee, is_it, ret) && ret->found;
}

static void end(struct desk *d, const struct db_rows *rows, int i, const char *state, const char *note)
{
    DB_ARGS a = { 0 };
    arg_int(&a, row_int(rows, i, "id"));
    arg_text(&a, state);
    arg_text(&a, note);
    arg_text(&a, d->by);
    arg_int(&a, row_int(rows, i, "dead_after"));
    FAILPOINT("settler-before-end");
    (void)!db_wait(d->db, "authorization_end", &a, clock_mono_ms() + DESK_DB_MS, NULL);
    log_info("settler.ended", "network=%s authorization=%" PRId64 " state=%s note=%s", d->net->id, row_int(rows, i, "id"), state, note);
}

static void mined(struct desk *d, const struct db_rows *rows, int i, const struct receipt *r)
{
    struct wanted w;
    SCOPE(receipt_done) struct receipt again = { .found = false };
    uint64_t time;
    const struct log_place place = { r->tx, r->block_hash, r->block };
    if (!desk_deep(d, r->block) || !desk_landed(d, &place, &again, &time))
        return;
    if (again.success && find_transfer(&again, rows, i, &w)) {
        json_t *proofs = json_array();
        const struct auth_event e = { .kind = AUTH_EVENT_TRANSFER, .tx = again.tx, .block_hash = again.block_hash, .block = again.block,
                                      .log_index = w.moved.log_index, .from = w.moved.from, .to = w.moved.to, .value = w.moved.amount };
        desk_add_proof(proofs, row_int(rows, i, "id"), &e, time);
        (void)desk_record(d, proofs, NULL, NULL);
    } else if (again.block <= d->final.number && !again.success) {
        end(d, rows, i, "void", "its transaction was mined and failed");
    } else if (again.block <= d->final.number) {
        desk_puzzle(d, row_int(rows, i, "id"), "its transaction is mined without the transfer that it stands for");
    }
}

/* ---- is it gone for good? ---- */

/* Whether a final log carries its memo: what a node that denies receipts still tells. */
static bool has_log(struct desk *d, const struct db_rows *rows, int i, bool *ret)
{
    struct slice memo = row_bytes(rows, i, "memo"), asset = row_bytes(rows, i, "asset");
    struct address token;
    memcpy(token.b, asset.p, 20);
    struct rpc_item item = { "eth_getLogs",
                             json_pack("[{s:o, s:o, s:s, s:[s, n, n, o]}]", "fromBlock", rpc_u64((uint64_t)row_int(rows, i, "from_block")),
                                       "toBlock", rpc_u64(d->final.number), "address", address_lower(&token).s, "topics",
                                       hash_text(&topic_transfer_with_memo).s, rpc_hex(memo.p, memo.n)) };
    struct rpc_answers r = quorum_wait(d, &item, 1);
    const bool ok = r.a[0].rc == RPC_OK && json_is_array(r.a[0].result);
    *ret = ok && json_array_size(r.a[0].result) > 0;
    rpc_answers_done(&r);
    return ok;
}

/* A transaction is not mined at or after its valid_before: none at a final block past that means never. One that its payer sent has
 * no such time; it was seen on the chain, and if it is gone a person decides. */
static void absent(struct desk *d, const struct db_rows *rows, int i)
{
    bool landed;
    if ((int64_t)d->final.time < row_int(rows, i, "dead_after")) {
        send(d, rows, i);
        return;
    }
    if (!row_bool(rows, i, "ours"))
        desk_puzzle(d, row_int(rows, i, "id"), "its transaction was seen on the chain, and is not there any more");
    else if (has_log(d, rows, i, &landed) && !landed)
        end(d, rows, i, "expired", "not mined at a final block past its deadline");
}

bool desk_charges(struct desk *d)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_int(&a, LOOKS);
    if (db_wait(d->db, "charges_look", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    const size_t n = (size_t)db_count(rows);
    d->open = n > 0;
    if (n == 0)
        return true;
    OWNED struct rpc_item *items = mem_new(n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        const struct slice tx = row_bytes(rows, (int)i, "tx");
        items[i] = (struct rpc_item){ "eth_getTransactionReceipt", json_pack("[o]", rpc_hex(tx.p, tx.n)) };
    }
    struct rpc_answers r = quorum_wait(d, items, n);
    for (size_t i = 0; i < n; i++) {
        SCOPE(receipt_done) struct receipt receipt = { .found = false };
        if (r.a[i].rc != RPC_OK || !receipt_read(r.a[i].result, &receipt))
            continue;
        if (receipt.found)
            mined(d, rows, (int)i, &receipt);
        else
            absent(d, rows, (int)i);
    }
    rpc_answers_done(&r);
    return true;
}

/* What was paid for challenges of ours and never brought, or brought for something else. */
bool desk_orphans(struct desk *d)
{
    const int64_t now = clock_mono_ms();
    if (!d->owner || now < d->orphans_at_ms)
        return true;
    d->orphans_at_ms = now + ORPHANS_MS;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_int(&a, GRACE_S);
    arg_text(&a, d->by);
    if (db_wait(d->db, "orphans_book", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    if (row_int(rows, 0, "booked") > 0)
        log_info("settler.orphans", "network=%s debts=%d", d->net->id, (int)row_int(rows, 0, "booked"));
    return true;
}
