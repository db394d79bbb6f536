#include "settle/orders.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

static struct id_text id_text(const char *prefix, const struct order_id *id)
{
    struct id_text t;
    memcpy(t.s, prefix, 4);
    hex_write_bare(t.s + 4, id->b, sizeof id->b);
    return t;
}

static bool id_read(const char *prefix, struct slice s, struct order_id *ret)
{
    char text[40] = "0x";
    if (s.n != 36 || memcmp(s.p, prefix, 4) != 0)
        return false;
    for (size_t i = 4; i < s.n; i++)             /* one spelling: lower case */
        if (s.p[i] >= 'A' && s.p[i] <= 'F')
            return false;
    memcpy(text + 2, s.p + 4, 32);
    return hex_read(text, 34, ret->b, sizeof ret->b);
}

struct id_text order_id_text(const struct order_id *id)
{
    return id_text("ord_", id);
}

struct id_text receipt_id_text(const struct order_id *id)
{
    return id_text("rcp_", id);
}

bool order_id_read(struct slice s, struct order_id *ret)
{
    return id_read("ord_", s, ret);
}

bool receipt_id_read(struct slice s, struct order_id *ret)
{
    return id_read("rcp_", s, ret);
}

static const struct { const char *name; enum verdict verdict; } verdicts[] = {
    { "new", VERDICT_NEW },
    { "accepted", VERDICT_ACCEPTED },
    { "to_settle", VERDICT_TO_SETTLE },
    { "begin", VERDICT_BEGIN },
    { "resent", VERDICT_RESENT },
    { "again", VERDICT_AGAIN },
    { "takeover", VERDICT_TAKEOVER },
    { "resend", VERDICT_RESEND },
    { "replay", VERDICT_REPLAY },
    { "repeat", VERDICT_REPEAT },
    { "repeat_wait", VERDICT_REPEAT_WAIT },
    { "repeat_limit", VERDICT_REPEAT_LIMIT },
    { "not_proven", VERDICT_NOT_PROVEN },
    { "gone", VERDICT_GONE },
    { "in_flight", VERDICT_IN_FLIGHT },
    { "in_review", VERDICT_IN_REVIEW },
    { "work_failed_paid", VERDICT_WORK_FAILED_PAID },
    { "pay_again", VERDICT_PAY_AGAIN },
    { "similar", VERDICT_SIMILAR },
    { "conflict_payer", VERDICT_CONFLICT_PAYER },
    { "conflict_request", VERDICT_CONFLICT_REQUEST },
};

/* A verdict that we do not know is a schema newer than this program: nothing may be concluded from it. */
static bool verdict_read(const struct db_rows *rows, enum verdict *ret)
{
    for (size_t i = 0; i < COUNT(verdicts); i++)
        if (row_is(rows, 0, "verdict", verdicts[i].name)) {
            *ret = verdicts[i].verdict;
            return true;
        }
    return false;
}

/* One call under way: what to tell whom. */
struct call {
    order_found_fn *found;
    order_accepted_fn *accepted;
    order_finished_fn *finished;
    void *arg;
};

static struct call *call_new(void *arg)
{
    struct call *c = mem_new(sizeof *c);
    c->arg = arg;
    return c;
}

static void add_identity(struct db_args *a, const struct payment *p)
{
    arg_text(a, p->payment_id[0] ? p->payment_id : NULL);
    arg_bytes(a, p->has_quote ? p->quote.b : NULL, sizeof p->quote.b);
}

static void found(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    OWNED struct call *c = arg;
    struct order_found f = { .verdict = VERDICT_NEW };
    if (rc == DB_OK && !verdict_read(rows, &f.verdict))
        rc = DB_REFUSED;
    if (rc == DB_OK) {
        f.known = row_is(rows, 0, "known", "all") ? KNOWN_ALL : row_is(rows, 0, "known", "nonce") ? KNOWN_NONCE : KNOWN_NONE;
        (void)row_copy(rows, 0, "order_id", f.order.b, sizeof f.order.b);
    }
    c->found(c->arg, rc, &f);
}

static void add_manner(struct db_args *a, const struct hash32 *manner)
{
    arg_bytes(a, manner ? manner->b : NULL, 32);
}

void orders_find(struct db *db, const struct payment *p, const struct hash32 *request, const struct hash32 *manner, int need_s, int64_t now_ms,
                 int64_t deadline_ms, order_found_fn *fn, void *arg)
{
    struct call *c = call_new(arg);
    DB_ARGS a = { 0 };
    c->found = fn;
    add_identity(&a, p);
    arg_bytes(&a, p->auth.from.b, 20);
    arg_text(&a, p->price.net->id);
    arg_bytes(&a, p->price.token->address.b, 20);
    arg_bytes(&a, p->auth.nonce.b, 32);
    arg_bytes(&a, request->b, 32);
    arg_bytes(&a, p->auth.to.b, 20);
    arg_amount(&a, p->auth.value);
    arg_amount(&a, p->auth.valid_after);
    arg_amount(&a, p->auth.valid_before);
    arg_bytes(&a, p->auth.signature, p->auth.signature_n);
    arg_bool(&a, p->signer_proven);
    arg_int(&a, need_s);
    arg_int(&a, now_ms);
    add_manner(&a, manner);
    db_call_grouped(db, "order_find", &a, 0, deadline_ms, found, c);
}

static void read_repeat(const struct db_rows *rows, struct order_accepted *r)
{
    r->miss = row_text(rows, 0, "miss").p;
    r->retry_after_s = row_int(rows, 0, "retry_after");
    r->network = row_text(rows, 0, "answer_network");
    (void)row_copy(rows, 0, "answer_tx", r->tx.b, sizeof r->tx.b);
    r->block_time = row_int(rows, 0, "answer_time");
    r->status = (int)row_int(rows, 0, "answer_status");
    r->headers = row_text(rows, 0, "answer_headers");
    r->body = row_bytes(rows, 0, "answer_body");
}

static void accepted(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    OWNED struct call *c = arg;
    struct order_accepted r = { .verdict = VERDICT_NEW };
    if (rc == DB_OK && !verdict_read(rows, &r.verdict))
        rc = DB_REFUSED;
    if (rc == DB_OK) {
        (void)row_copy(rows, 0, "order_id", r.order.b, sizeof r.order.b);
        (void)row_copy(rows, 0, "receipt", r.receipt.b, sizeof r.receipt.b);
        r.epoch = (int)row_int(rows, 0, "epoch");
        r.is_similar = row_copy(rows, 0, "similar_order", r.similar.b, sizeof r.similar.b);
        read_repeat(rows, &r);
    }
    c->accepted(c->arg, rc, &r);
}

static void add_repeat(struct db_args *a, const struct order_call *call)
{
    if (call->repeat.asked) {
        arg_bytes(a, call->repeat.key.b, sizeof call->repeat.key.b);
        arg_int(a, call->repeat.window_s);
        arg_int(a, call->repeat.max);
    } else {
        for (int i = 0; i < 3; i++)
            arg_null(a);
    }
    arg_int(a, call->now_ms);
}

/* The first bytes of what it locks. */
static uint64_t rank_of(const void *p)
{
    uint64_t rank;
    memcpy(&rank, p, sizeof rank);
    return rank;
}

static void add_charge(struct db_args *a, const struct order_charge *c)
{
    if (!c) {
        arg_null(a);
        return;
    }
    JSON *o = json_object();
    json_set_bare(o, "challenge", c->challenge.b, 32);
    json_set_bare(o, "tx", c->tx.b, 32);
    json_set_bare(o, "memo", c->memo.b, 32);
    if (c->raw.n > 0)
        json_set_bare(o, "raw", c->raw.p, c->raw.n);
    OWNED char *text = json_write(o);
    arg_text(a, text);
}

void orders_accept(struct db *db, const struct order_id *instance, int lease_s, const struct payment *p, bool has_code, bool verified,
                   const struct order_call *call, int need_s, const char *by, int64_t deadline_ms, order_accepted_fn *fn, void *arg)
{
    struct order_id attempt, order, receipt;
    struct call *c = call_new(arg);
    DB_ARGS a = { 0 };
    c->accepted = fn;
    bytes_random(&attempt, sizeof attempt);
    bytes_random(&order, sizeof order);
    bytes_random(&receipt, sizeof receipt);
    arg_bytes(&a, attempt.b, 16);
    arg_bytes(&a, instance->b, 16);
    arg_int(&a, lease_s);
    arg_bytes(&a, order.b, 16);
    arg_bytes(&a, receipt.b, 16);
    arg_text(&a, call->rail);
    arg_int(&a, p->version);
    arg_text(&a, call->tool);
    arg_text(&a, call->side_effect);
    arg_bool(&a, call->cacheable);
    arg_bool(&a, call->idempotent);
    arg_text(&a, call->method);
    arg_slice(&a, call->target);
    arg_bytes(&a, call->request.b, 32);
    add_identity(&a, p);
    arg_text(&a, p->price.net->id);
    arg_bytes(&a, p->price.token->address.b, 20);
    arg_bytes(&a, p->auth.from.b, 20);
    arg_bytes(&a, p->auth.nonce.b, 32);
    arg_bytes(&a, p->auth.to.b, 20);
    arg_amount(&a, p->auth.value);
    arg_amount(&a, p->auth.valid_after);
    arg_amount(&a, p->auth.valid_before);
    arg_bytes(&a, p->auth.signature, p->auth.signature_n);
    arg_bool(&a, has_code);
    arg_int(&a, need_s);
    arg_bool(&a, verified);
    arg_text(&a, by);
    add_repeat(&a, call);
    arg_bool(&a, call->pay_first);
    add_charge(&a, call->charge);
    add_manner(&a, call->manner);
    if (call->is_new)
        db_call_grouped(db, "order_accept", &a, rank_of(call->repeat.asked ? call->repeat.key.b : p->auth.nonce.b),
                        deadline_ms, accepted, c);
    else                                         /* it locks an order that others work on, too */
        db_call(db, "order_accept", &a, deadline_ms, accepted, c);
}

static void begun(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    OWNED struct call *c = arg;
    struct order_accepted r = { .verdict = VERDICT_IN_FLIGHT };
    if (rc == DB_OK && !verdict_read(rows, &r.verdict))
        rc = DB_REFUSED;
    if (rc == DB_OK) {
        (void)row_copy(rows, 0, "receipt", r.receipt.b, sizeof r.receipt.b);
        r.epoch = (int)row_int(rows, 0, "epoch");
    }
    c->accepted(c->arg, rc, &r);
}

void orders_begin(struct db *db, const struct order_id *order, const struct order_id *instance, int lease_s, int64_t now_ms, const char *by,
                  int64_t deadline_ms, order_accepted_fn *fn, void *arg)
{
    struct order_id attempt;
    struct call *c = call_new(arg);
    DB_ARGS a = { 0 };
    c->accepted = fn;
    bytes_random(&attempt, sizeof attempt);
    arg_bytes(&a, order->b, 16);
    arg_bytes(&a, attempt.b, 16);
    arg_bytes(&a, instance->b, 16);
    arg_int(&a, lease_s);
    arg_int(&a, now_ms);
    arg_text(&a, by);
    db_call(db, "order_begin", &a, deadline_ms, begun, c);
}

static void finished(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    OWNED struct call *c = arg;
    c->finished(c->arg, rc, rc == DB_OK && !row_is(rows, 0, "verdict", "ok"), rc == DB_OK && row_bool(rows, 0, "landed"));
}

void orders_finish(struct db *db, const struct order_id *order, int epoch, enum work_axis end, const char *note,
                   const char *theirs, const struct order_answer *answer, const char *by, int64_t deadline_ms, order_finished_fn *fn, void *arg)
{
    static const char *const names[] = { [WORK_AXIS_DONE] = "done", [WORK_AXIS_FAILED] = "failed", [WORK_AXIS_LOST] = "lost" };
    struct call *c = call_new(arg);
    DB_ARGS a = { 0 };
    c->finished = fn;
    arg_bytes(&a, order->b, 16);
    arg_int(&a, epoch);
    arg_text(&a, names[end]);
    arg_text(&a, note);
    if (answer) {
        arg_int(&a, answer->status);
        arg_text(&a, answer->headers);
        arg_bytes(&a, answer->body.p ? answer->body.p : "", answer->body.n);
        arg_bytes(&a, answer->digest.b, 32);
    } else {
        for (int i = 0; i < 4; i++)
            arg_null(&a);
    }
    arg_text(&a, by);
    arg_bool(&a, answer && answer->repeatable);
    arg_int(&a, answer ? (int64_t)answer->size : 0);
    arg_text(&a, theirs);
    db_call_grouped(db, "order_finish", &a, rank_of(order->b), deadline_ms, finished, c);
}
