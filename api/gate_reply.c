/* What a paid call is told when the answer is not simply the answer. A 402 leaves from one place, gate_challenge. */
#include <string.h>

#include "api/answers.h"
#include "api/gate.h"
#include "base/clock.h"
#include "receipts/receipts.h"
#include "base/log.h"

enum { READ_MS = 5000, NOTED_MS = 500 };

/* What was paid for is nobody else's: a cache on the way must neither keep it nor mix it up. */
struct step gate_send(struct request *rq, struct reply *r, enum outcome_kind kind)
{
    gate_call(rq)->g->counts[kind]++;
    reply_header(r, "Vary", "PAYMENT-SIGNATURE, X-PAYMENT, Authorization, Accept-Payment, Idempotency-Key");
    return request_reply(rq, r);
}

/* The registry's texts need no escaping (a test holds them to it), and this is the one body that must be made fast. */
static void add_member(struct buf *b, const char *before, const char *text)
{
    buf_puts(b, before);
    buf_puts(b, text);
    buf_puts(b, "\"");
}

/* The problem's members and x402 v1's in one body. */
static void challenge_body(struct request *rq, enum reason why, const struct buf *v1, struct buf *ret)
{
    const struct call *c = gate_call(rq);
    const struct err_info *e = err_info(why == REASON_REQUIRED && c->fault == MPP_FAULT_NONE ? ERR_PAYMENT_REQUIRED : ERR_PAYMENT_REFUSED);
    buf_reserve(ret, 640 + v1->n);
    add_member(ret, "{\"type\":\"urn:payonce:problem:", e->code);
    add_member(ret, ",\"title\":\"", e->title);
    add_member(ret, ",\"status\":402,\"detail\":\"", c->fault != MPP_FAULT_NONE ? mpp_fault_text(c->fault) : reason_text(why));
    add_member(ret, ",\"code\":\"", e->code);
    add_member(ret, ",\"retry\":\"", e->retry);
    add_member(ret, ",\"money\":\"", e->money);
    add_member(ret, ",\"instance\":\"urn:payonce:request:", request_id(rq));
    if (c->fault != MPP_FAULT_NONE)
        add_member(ret, ",\"reason\":\"", mpp_fault_problem(c->fault));
    else if (why != REASON_REQUIRED)
        add_member(ret, ",\"reason\":\"", reason_code(why, 2));
    if (v1->n) {
        buf_puts(ret, ",");
        buf_add(ret, v1->p, v1->n);
    }
    buf_puts(ret, "}");
}

/* One quote, offered on every rail: x402 v2 reads the header, v1 the body, MPP its own header. */
struct step gate_challenge(struct request *rq, enum reason why)
{
    struct call *c = gate_call(rq);
    if (c->moved)
        return gate_owed_back(rq);
    struct challenge_for f = { &c->g->quote_key, quote_fresh(), &c->request, request_target(rq),
                               clock_wall_s() + c->g->config->quote_ttl_s, why };
    struct reply *r = reply_new(402);
    BUF header = { 0 }, body = { 0 }, v1 = { 0 };
    if (c->challenge) {
        challenge_write(c->challenge, &f, &header, &v1);
        reply_header(r, "PAYMENT-REQUIRED", header.p);
    }
    if (c->mpp_terms->price_count > 0)
        gate_mpp_offers(rq, r, &f.quote);
    challenge_body(rq, why, &v1, &body);
    reply_header(r, "Cache-Control", "no-store");
    reply_body_take(r, "application/problem+json", &body);
    return gate_send(rq, r, why == REASON_REQUIRED && c->fault == MPP_FAULT_NONE ? COUNT_CHALLENGED : COUNT_REFUSED);
}

struct step gate_problem(struct request *rq, enum err e, const char *detail)
{
    json_t *more = err_info(e)->http == 503 ? json_pack("{s:i}", "retry_after", 2) : NULL;
    return gate_send(rq, reply_problem(rq, e, detail, more), outcome_of(e));
}

struct step gate_store_down(struct request *rq)
{
    return gate_problem(rq, ERR_STORE_UNAVAILABLE, NULL);
}

/* ---- an order that is known ---- */

json_t *gate_order_members(const struct call *c)
{
    return json_pack("{s:s, s:o}", "order_id", order_id_text(&c->order).s, "poll",
                     json_sprintf("%s/orders/%s", c->g->config->public_url, order_id_text(&c->order).s));
}

struct step gate_in_flight(struct request *rq)
{
    struct call *c = gate_call(rq);
    int64_t dead = c->outcome.known ? c->outcome.dead_after : (int64_t)amount_u64_cap(c->payment.auth.valid_before);
    json_t *more = gate_order_members(c);
    json_object_set_new(more, "retry_after", json_integer(5));
    json_object_set_new(more, "final", json_false());
    seat_set_known_by(c->seat, dead, more);
    outcome_note(c->g, &c->order, "told_in_flight", gate_by(rq));
    struct reply *r = reply_problem(rq, c->rail->in_flight, NULL, more);
    c->rail->pending(c, r);
    return gate_send(rq, r, COUNT_IN_FLIGHT);
}

static struct step conflict(struct request *rq, const char *reason)
{
    const struct call *c = gate_call(rq);
    log_warn("gateway.conflict", "reason=%s tool=%s payer=%s request=%s", reason, c->tool->name,
             address_lower(&c->payment.auth.from).s, request_id(rq));
    struct reply *r = reply_problem(rq, ERR_PAYMENT_CONFLICT, NULL, json_pack("{s:s}", "reason", reason));
    return gate_send(rq, r, COUNT_CONFLICT);
}

static struct step told_of(struct request *rq, enum err e)
{
    struct call *c = gate_call(rq);
    json_t *more = gate_order_members(c);
    if (e == ERR_IN_REVIEW)
        json_object_set_new(more, "retry_after", json_integer(60));
    struct reply *r = reply_problem(rq, e, NULL, more);
    reply_header(r, "Payonce-Charged", strcmp(err_info(e)->money, "moved") == 0 ? "true" : "false");
    return gate_send(rq, r, outcome_of(e));
}

/* Done, and no answer here: it was paid for and the answer's time is over, or a person found it done and nothing is charged. */
static struct step gone(struct request *rq)
{
    const struct outcome *o = &gate_call(rq)->outcome;
    if (!o->known)
        return gate_problem(rq, ERR_STORE_UNAVAILABLE, NULL);
    return told_of(rq, strcmp(o->status, "not_charged") == 0 ? ERR_DONE_UNCHARGED : gate_call(rq)->rail->gone);
}

/* Undecided: parked until something happens to the order, then asked anew. */
struct step gate_wait_in_flight(struct request *rq)
{
    struct call *c = gate_call(rq);
    if (clock_mono_ms() >= c->give_up_ms || server_draining(c->g->server))
        return outcome_read(rq, &c->order, &c->outcome, gate_in_flight);
    struct topic t;
    int64_t until = clock_mono_ms() + 1000;
    memcpy(t.b, c->order.b, sizeof t.b);
    c->waited = true;
    return request_park(rq, t, until < c->give_up_ms ? until : c->give_up_ms, gate_find);
}

/* That it was delivered is noted a moment later: of two equal calls, one right after the other, no reply was lost. */
static struct step similar(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct topic t;
    if (c->waited || server_draining(c->g->server))
        return told_of(rq, ERR_SIMILAR_ORDER);
    memcpy(t.b, c->order.b, sizeof t.b);
    c->waited = true;
    return request_park(rq, t, clock_mono_ms() + NOTED_MS, gate_find);
}

struct step gate_say(struct request *rq)
{
    switch (gate_call(rq)->verdict) {
    case VERDICT_REPLAY:
        return gate_replay(rq);
    case VERDICT_REPEAT:
        return gate_repeat_answer(rq);
    case VERDICT_REPEAT_WAIT:
        return gate_repeat_wait(rq);
    case VERDICT_REPEAT_LIMIT:
        return gate_repeat_limit(rq);
    case VERDICT_PAY_AGAIN:
        return gate_challenge(rq, REASON_EXPIRED);
    case VERDICT_CONFLICT_PAYER:
        return conflict(rq, "payer");
    case VERDICT_CONFLICT_REQUEST:
        return conflict(rq, "request");
    case VERDICT_SIMILAR:
        return similar(rq);
    case VERDICT_NOT_PROVEN:
        return told_of(rq, ERR_ANSWER_NOT_PROVEN);
    case VERDICT_GONE:
        return outcome_read(rq, &gate_call(rq)->order, &gate_call(rq)->outcome, gone);
    case VERDICT_IN_REVIEW:
        return told_of(rq, ERR_IN_REVIEW);
    case VERDICT_WORK_FAILED_PAID:
        return gate_owed(rq);
    case VERDICT_BEGIN:
        return gate_begin_work(rq);
    case VERDICT_IN_FLIGHT:
    case VERDICT_NEW:                            /* these moved on under us: undecided is the honest word */
    case VERDICT_ACCEPTED:
    case VERDICT_TO_SETTLE:
    case VERDICT_RESENT:
    case VERDICT_AGAIN:
    case VERDICT_TAKEOVER:
    case VERDICT_RESEND:
        return gate_wait_in_flight(rq);
    }
    return gate_problem(rq, ERR_INTERNAL, NULL);
}

/* Not charged, and the authorization will not be sent; but whoever saw it can submit it until it is proven dead. */
void gate_not_final(struct request *rq, struct reply *r)
{
    struct call *c = gate_call(rq);
    reply_header(r, "Payonce-Final", "false");
    struct known_by k = seat_known_by(c->seat, (int64_t)amount_u64_cap(c->payment.auth.valid_before));
    reply_header(r, "Payonce-Known-By", time_iso(k.at).s);
}

/* ---- the answer ---- */

struct reply *gate_answer(struct request *rq, int status, const json_t *headers, bool charged, bool replayed)
{
    struct call *c = gate_call(rq);
    struct reply *r = reply_new(status);
    size_t i;
    json_t *h;
    json_array_foreach(headers, i, h)
        if (strcasecmp(json_string_value(json_array_get(h, 0)), "cache-control") != 0 &&
            (!c->is_repeat || strcasecmp(json_string_value(json_array_get(h, 0)), "age") != 0))
            reply_header(r, json_string_value(json_array_get(h, 0)), json_string_value(json_array_get(h, 1)));
    reply_header(r, "Cache-Control", "private, no-store");
    reply_header(r, "Payonce-Order", order_id_text(&c->order).s);
    if (c->is_similar)
        reply_header(r, "Payonce-Similar-Order", order_id_text(&c->similar).s);
    reply_header(r, "Payonce-Charged", charged ? "true" : "false");
    if (!charged && !replayed) {
        gate_not_final(rq, r);
        return r;
    }
    OWNED char *receipt = str_format("%s/receipts/%s", c->g->config->public_url, receipt_id_text(&c->receipt).s);
    json_t *extra = json_pack("{s:s, s:b}", "receipt", receipt, "replayed", replayed);
    c->rail->settled(rq, r, extra);
    reply_header(r, "Payonce-Receipt", receipt);
    if (replayed)
        reply_header(r, "Payonce-Replayed", "true");
    if (replayed && c->is_repeat)
        gate_repeat_headers(rq, r);
    return r;
}

static struct step replay(struct request *rq)
{
    struct call *c = gate_call(rq);
    bool charged = c->verdict == VERDICT_RESENT; /* kept from before, and paid for only now */
    struct reply *r = gate_answer(rq, c->work.status, c->work.headers, charged, !charged);
    enum outcome_kind kind = charged ? COUNT_PAID : c->is_repeat ? COUNT_FREE_REPEAT : COUNT_REPLAYED;
    if (kind == COUNT_FREE_REPEAT)
        repeat_counts_served(&c->g->repeats, &c->payment.price);
    else if (kind == COUNT_REPLAYED)
        outcome_note(c->g, &c->order, "replayed", gate_by(rq));
    reply_body_take(r, NULL, &c->work.body);
    c->told = true;
    return gate_send(rq, r, kind);
}

static void have_answer(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct call *c = gate_call(arg);
    if (rc != DB_OK || db_count(rows) == 0) {
        request_go(arg, rc != DB_OK ? gate_store_down : gone);
        return;
    }
    if (c->has_work)                             /* of an epoch that came too late */
        work_done(&c->work);
    c->has_work = answer_open(c->g, &c->order, (int)row_int(rows, 0, "status"), row_text(rows, 0, "headers"), row_bytes(rows, 0, "body"),
                              &c->work);
    request_go(arg, c->has_work ? replay : gate_store_down);
}

static struct step fetch_answer(struct request *rq)
{
    struct call *c = gate_call(rq);
    DB_ARGS a = { 0 };
    if (!c->outcome.known)
        return gate_store_down(rq);
    c->receipt = c->outcome.receipt;
    arg_bytes(&a, c->order.b, 16);
    db_call(c->g->db, "answer_by_order", &a, clock_mono_ms() + READ_MS, have_answer, rq);
    return request_wait(rq);
}

struct step gate_replay(struct request *rq)
{
    struct call *c = gate_call(rq);
    return outcome_read(rq, &c->order, &c->outcome, fetch_answer);
}
