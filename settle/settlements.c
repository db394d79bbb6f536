#include "settle/settlements.h"

static const struct { const char *name; enum settling is; } verdicts[] = {
    { "new", SETTLING_NEW },
    { "accepted", SETTLING_ACCEPTED },
    { "settling", SETTLING_UNDECIDED },
    { "settled", SETTLING_SETTLED },
    { "expired", SETTLING_EXPIRED },
    { "void", SETTLING_VOID },
    { "again", SETTLING_AGAIN },
    { "other", SETTLING_OTHER },
    { "other_payee", SETTLING_OTHER_PAYEE },
    { "other_amount", SETTLING_OTHER_AMOUNT },
    { "limit", SETTLING_LIMIT },
};

/* A verdict that we do not know is a schema newer than this program: nothing may be concluded from it. */
static bool verdict_read(const struct db_rows *rows, enum settling *ret)
{
    for (size_t i = 0; i < COUNT(verdicts); i++)
        if (row_is(rows, 0, "verdict", verdicts[i].name)) {
            *ret = verdicts[i].is;
            return true;
        }
    return false;
}

struct call {
    settlement_fn *fn;
    void *arg;
    bool has_known;                  /* the function tells how much is stored */
};

static struct call *call_new(settlement_fn *fn, void *arg, bool has_known)
{
    struct call *c = mem_new(sizeof *c);
    *c = (struct call){ fn, arg, has_known };
    return c;
}

static void answered(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    OWNED struct call *c = arg;
    struct settlement_found f = { .is = SETTLING_NEW };
    if (rc == DB_OK && !verdict_read(rows, &f.is))
        rc = DB_REFUSED;
    if (rc == DB_OK) {
        (void)row_copy(rows, 0, "order_id", f.order.b, sizeof f.order.b);
        f.has_tx = row_copy(rows, 0, "tx", f.tx.b, sizeof f.tx.b);
        if (c->has_known)
            f.known = row_is(rows, 0, "known", "all") ? KNOWN_ALL : row_is(rows, 0, "known", "nonce") ? KNOWN_NONCE : KNOWN_NONE;
    }
    c->fn(c->arg, rc, &f);
}

static void add_asked(struct db_args *a, const struct settlement *s)
{
    const struct payment *p = s->payment;
    arg_text(a, s->seller);
    arg_bytes(a, s->terms->b, 32);
    arg_bytes(a, s->pay_to->b, 20);
    arg_text(a, p->price.net->id);
    arg_bytes(a, p->price.token->address.b, 20);
    arg_bytes(a, p->auth.from.b, 20);
    arg_bytes(a, p->auth.nonce.b, 32);
    arg_bytes(a, p->auth.to.b, 20);
    arg_amount(a, p->auth.value);
    arg_amount(a, p->auth.valid_after);
    arg_amount(a, p->auth.valid_before);
    arg_bytes(a, p->auth.signature, p->auth.signature_n);
}

void settlement_find(struct db *db, const struct settlement *s, int64_t deadline_ms, settlement_fn *fn, void *arg)
{
    DB_ARGS a = { 0 };
    add_asked(&a, s);
    arg_bool(&a, s->payment->signer_proven);
    arg_int(&a, s->need_s);
    db_call(db, "settlement_find", &a, deadline_ms, answered, call_new(fn, arg, true));
}

void settlement_accept(struct db *db, const struct settlement *s, const struct settlement_take *t, int64_t deadline_ms,
                       settlement_fn *fn, void *arg)
{
    struct order_id attempt, order, receipt;
    DB_ARGS a = { 0 };
    bytes_random(&attempt, sizeof attempt);
    bytes_random(&order, sizeof order);
    bytes_random(&receipt, sizeof receipt);
    arg_bytes(&a, attempt.b, 16);
    arg_bytes(&a, order.b, 16);
    arg_bytes(&a, receipt.b, 16);
    arg_text(&a, "x402");
    arg_int(&a, s->payment->version);
    arg_bool(&a, t->tell);
    add_asked(&a, s);
    arg_bool(&a, t->has_code);
    arg_int(&a, s->need_s);
    arg_bool(&a, t->verified);
    if (t->most > 0)
        arg_int(&a, t->most);
    else
        arg_null(&a);
    arg_text(&a, t->by);
    db_call(db, "settlement_accept", &a, deadline_ms, answered, call_new(fn, arg, false));
}
