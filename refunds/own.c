/* Paying debts back where the refund wallet sends the transactions itself: ask the token, sign, commit, send; then
 * look until the final chain says what became of each. The bytes are stored before the first of them is sent, and of a
 * debt's key and count the chain mines one transaction, so each step may be done again. What was paid is proven by its
 * log (movements.c). */
#include <inttypes.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "refunds/internal.h"
#include "settle/keyed.h"

enum { VALID_S = 600, AT_ONCE = 25, LOOKS = 50, SEND_EVERY = 8, SOON_MS = 250, IDLE_MS = 1000 };

/* ---- what became of those that are signed ---- */

static void end(const struct settler_turn *t, const struct db_rows *rows, int i, const char *state, const char *why)
{
    const int64_t id = row_int(rows, i, "id");
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, state);
    arg_text(&a, why);
    arg_int(&a, (int64_t)t->final.number);
    arg_bool(&a, (int64_t)t->final.time >= row_int(rows, i, "valid_before"));
    arg_text(&a, t->by);
    DB_ROWS *ended = NULL;
    FAILPOINT("refund-before-end");
    if (db_wait(t->db, "refund_end", &a, clock_mono_ms() + BOOKS_DB_MS, &ended) == DB_OK && row_bool(ended, 0, "ended"))
        log_info("refunds.ended", "network=%s refund=%" PRId64 " state=%s", t->net->id, id, state);
    FAILPOINT("refund-after-end");
}

static void judge(const struct settler_turn *t, const struct db_rows *rows, int i, const struct keyed_sent *s)
{
    OWNED char *astray = NULL;
    switch (s->fate) {
    case KEYED_UNKNOWN:
        return;
    case KEYED_WAITING:
        if ((row_int(rows, i, "looks") - 1) % SEND_EVERY == 0)
            keyed_send(t->desk, &s->hash, row_bytes(rows, i, "raw"));
        return;
    case KEYED_DEAD:
        end(t, rows, i, "expired", "its transaction was not mined before its deadline; it is signed again");
        return;
    case KEYED_TAKEN:
        end(t, rows, i, "lost", "the count of its nonce key was used at a final block, by no refund known here");
        return;
    case KEYED_PAID:
        end(t, rows, i, "paid", NULL);
        return;
    case KEYED_REVERTED:
        end(t, rows, i, "reverted", "its transaction was mined and reverted");
        return;
    case KEYED_ASTRAY:
        astray = str_format("its transaction succeeded, and the money went to %s instead of its payer",
                            address_checksum(&s->went_to).s);
        log_error("refunds.astray", "network=%s tx=%s went_to=%s", t->net->id, hash_text(&s->hash).s,
                  address_lower(&s->went_to).s);
        end(t, rows, i, "astray", astray);
        return;
    }
}

static void row_sent(const struct db_rows *rows, int i, struct keyed_sent *ret)
{
    struct keyed_refund *r = &ret->refund;
    *ret = (struct keyed_sent){ .refund = { .amount = row_amount(rows, i, "amount"),
                                            .count = (uint64_t)row_int(rows, i, "key_count"),
                                            .valid_before = row_int(rows, i, "valid_before") } };
    (void)!(row_copy(rows, i, "wallet", r->wallet.b, 20) && row_copy(rows, i, "payer", r->payer.b, 20) &&
            row_copy(rows, i, "asset", r->token.b, 20) && row_copy(rows, i, "nonce", r->name.b, 32) &&
            row_copy(rows, i, "hash", ret->hash.b, 32));
}

void own_turn(struct refunds *r, const struct settler_turn *t)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    if (!keyed_network(r->net) || clock_mono_ms() < r->own_at_ms)
        return;
    r->own_at_ms = clock_mono_ms() + IDLE_MS;
    arg_text(&a, r->net->id);
    arg_int(&a, LOOKS);
    if (db_wait(t->db, "refunds_look", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK || db_count(rows) == 0)
        return;
    const size_t n = (size_t)db_count(rows);
    OWNED struct keyed_sent *sent = mem_new(n * sizeof *sent);
    for (size_t i = 0; i < n; i++)
        row_sent(rows, (int)i, &sent[i]);
    keyed_look(t->desk, sent, n);
    for (size_t i = 0; i < n; i++)
        judge(t, rows, (int)i, &sent[i]);
    r->own_at_ms = clock_mono_ms() + SOON_MS;
}

/* ---- one more ---- */

static bool store(const struct refunds *r, const struct settler_turn *t, const struct keyed_refund *k,
                  struct slice debt, const struct hash32 *hash, const struct buf *raw)
{
    const struct hash32 key = keyed_key(&k->name);
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, r->net->id);
    arg_bytes(&a, k->wallet.b, 20);
    arg_bytes(&a, debt.p, debt.n);
    arg_bytes(&a, k->name.b, 32);
    arg_bytes(&a, key.b, 32);
    arg_int(&a, (int64_t)k->count);
    arg_bytes(&a, hash->b, 32);
    arg_bytes(&a, raw->p, raw->n);
    arg_int(&a, k->valid_before);
    arg_bytes(&a, k->fee_token.b, 20);
    arg_text(&a, t->by);
    FAILPOINT("refund-before-sign");
    const bool ok = db_wait(t->db, "refund_store", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) == DB_OK &&
                    row_bool(rows, 0, "stored");
    FAILPOINT("refund-after-sign");
    return ok;
}

static void pay_one(struct refunds *r, const struct settler_turn *t, const struct keyed_refund *k, struct slice debt)
{
    struct hash32 hash;
    BUF raw = { 0 };
    if (!keyed_sign(t->desk, k, r->wallet, &raw, &hash) || !store(r, t, k, debt, &hash, &raw))
        return;
    log_info("refunds.sent", "network=%s tx=%s count=%" PRIu64, r->net->id, hash_text(&hash).s, k->count);
    keyed_send(t->desk, &hash, (struct slice){ raw.p, raw.n });
    r->own_at_ms = 0;
    FAILPOINT("refund-after-send");
}

static void row_refund(const struct refunds *r, const struct settler_turn *t, const struct refund_policy *p,
                       const struct db_rows *due, int i, struct keyed_refund *ret)
{
    const int64_t now = clock_wall_s(), from = now > (int64_t)t->head.time ? now : (int64_t)t->head.time;
    *ret = (struct keyed_refund){ .wallet = r->wallet->address,
                                  .token = p->token->address,
                                  .fee_token = p->fee_token->address,
                                  .amount = row_amount(due, i, "amount"),
                                  .count = (uint64_t)row_int(due, i, "key_count"),
                                  .valid_before = from + VALID_S };
    (void)!(row_copy(due, i, "payer", ret->payer.b, 20) && row_copy(due, i, "nonce", ret->name.b, 32));
}

void own_pay(struct refunds *r, const struct settler_turn *t, const struct refund_policy *p, const struct db_rows *due)
{
    struct keyed_refund refund[AT_ONCE];
    struct keyed_answer answer[AT_ONCE];
    const int n = db_count(due) < AT_ONCE ? db_count(due) : AT_ONCE;
    for (int i = 0; i < n; i++)
        row_refund(r, t, p, due, i, &refund[i]);
    keyed_ask(t->desk, refund, (size_t)n, answer);
    for (int i = 0; i < n; i++) {
        const struct slice debt = row_bytes(due, i, "id");
        switch (answer[i].now) {
        case KEYED_PAYABLE:
            pay_one(r, t, &refund[i], debt);
            break;
        case KEYED_REFUSED:
            debt_put_off(r, t, debt, revert_name(answer[i].why));
            break;
        case KEYED_UNANSWERED:
            break;
        }
    }
}

/* What sending one costs of the very token that goes back. */
struct amount own_cost(const struct refunds *r, const struct settler_turn *t, const struct refund_policy *p)
{
    return keyed_network(r->net) && p->fee_token == p->token ? keyed_cost(t->desk) : AMOUNT_ZERO;
}

/* Fees in another token need some of that; where it lacks, the node would take the transaction and never mine it. */
bool own_fees_there(const struct refunds *r, const struct settler_turn *t, const struct refund_policy *p)
{
    if (!keyed_network(r->net) || p->fee_token == p->token)
        return true;
    struct rpc_item item = balance_item(&p->fee_token->address, &r->wallet->address, t->head.number);
    struct rpc_answers answer = rpc_wait(t->rpc, &item, 1);
    struct amount have;
    const bool known = balance_read(&answer.a[0], &have);
    rpc_answers_done(&answer);
    if (known && amount_cmp(have, keyed_cost(t->desk)) < 0)
        log_error("refunds.no_fees", "network=%s wallet=%s token=%s has=%s hint=debts wait; send it some", r->net->id,
                  address_lower(&r->wallet->address).s, p->fee_token->symbol, amount_text(have).s);
    return known && amount_cmp(have, keyed_cost(t->desk)) >= 0;
}
