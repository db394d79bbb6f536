#include "api/gate.h"

#include <string.h>

#include "api/route.h"
#include "api/upstream_headers.h"
#include "base/clock.h"
#include "base/json.h"

enum { FIND_MS = 5000, FACILITATOR_BODY = 65536 };

struct call *gate_call(struct request *rq)
{
    return request_memory(rq, sizeof(struct call));
}

char *gate_by(struct request *rq)
{
    struct slice source, trace;
    JSON *o = json_object();
    const struct gateway *g = request_app(rq);
    char hex[9];
    hex_write_bare(hex, g->instance.b, 4);
    json_object_set_new(o, "actor", json_sprintf("gateway:%s", hex));
    json_object_set_new(o, "request", json_string(request_id(rq)));
    if (request_header(rq, "traceparent", &trace) == 1 && traceparent_ok(trace)) /* what is none might be anything */
        json_object_set_new(o, "traceparent", json_of_slice(trace));
    if (request_header(rq, "Payonce-Retry-Source", &source) == 1 &&
        (slice_is(source, "llm") || slice_is(source, "framework") || slice_is(source, "http")))
        json_object_set_new(o, "retry", json_of_slice(source));
    return json_write(o);
}

/* ---- identity: what is known of this payment ---- */

/* New, or free to run again: the terms and the chain are asked. Otherwise the order itself answers. */
struct step gate_decide(struct request *rq)
{
    struct call *c = gate_call(rq);
    switch (c->verdict) {
    case VERDICT_NEW:
        if (c->reason != REASON_NONE)
            return gate_challenge(rq, c->reason);
        return c->rail->verify(rq);
    case VERDICT_AGAIN:
    case VERDICT_RESEND:
        if (c->reason != REASON_NONE && c->reason != REASON_QUOTE_EXPIRED)
            return gate_challenge(rq, c->reason);
        if (c->waited && !c->is_repeat && c->verdict == VERDICT_AGAIN) /* the copy that ran was told so too; running it again is for a repeat */
            return gate_problem(rq, ERR_WORK_FAILED, NULL);
        return c->rail->verify(rq);
    case VERDICT_TAKEOVER:                       /* until somebody took it over, it may still end as it was begun */
        if (c->reason != REASON_NONE && c->reason != REASON_QUOTE_EXPIRED)
            return gate_say(rq);
        return c->rail->verify(rq);
    case VERDICT_ACCEPTED:
    case VERDICT_TO_SETTLE:
    case VERDICT_BEGIN:
    case VERDICT_RESENT:
    case VERDICT_REPLAY:
    case VERDICT_REPEAT:
    case VERDICT_REPEAT_WAIT:
    case VERDICT_REPEAT_LIMIT:
    case VERDICT_NOT_PROVEN:
    case VERDICT_GONE:
    case VERDICT_IN_FLIGHT:
    case VERDICT_IN_REVIEW:
    case VERDICT_WORK_FAILED_PAID:
    case VERDICT_PAY_AGAIN:
    case VERDICT_SIMILAR:
    case VERDICT_CONFLICT_PAYER:
    case VERDICT_CONFLICT_REQUEST:
        break;
    }
    if (c->rail->worth_keeping(c))
        return gate_accept(rq);
    return gate_say(rq);
}

static void have_found(void *arg, enum db_rc rc, const struct order_found *found)
{
    struct call *c = gate_call(arg);
    c->verdict = found->verdict;
    c->order = found->order;
    c->known = found->known;
    metrics_span(c->g->metrics, SPAN_FIND, c->asked_ms);
    if (rc == DB_OK && !c->waited && !c->has_work)
        metrics_found(c->g->metrics, found->verdict != VERDICT_NEW);
    request_go(arg, rc == DB_OK ? gate_decide : gate_store_down);
}

struct step gate_find(struct request *rq)
{
    struct call *c = gate_call(rq);
    c->asked_ms = clock_mono_ms();
    orders_find(c->g->db, &c->payment, &c->request, gate_manner_of(c), c->need_s, gate_chain_ms(c), clock_mono_ms() + FIND_MS, have_found, rq);
    return request_wait(rq);
}

/* A 402 after a wait for the chain: what was new then may be another copy's order now, and its money on the way. One that paid us
 * gets none: stored here, its settler will say so in a moment; else it was used outside of this service, or before a restore. */
static struct step refuse_or_say(struct request *rq)
{
    struct call *c = gate_call(rq);
    bool free_to = c->verdict == VERDICT_NEW || c->verdict == VERDICT_AGAIN || c->verdict == VERDICT_RESEND;
    if (free_to && c->paid_us)
        return c->known == KNOWN_NONE ? gate_problem(rq, ERR_AUTHORIZATION_SPENT, NULL)
                                      : outcome_read(rq, &c->order, &c->outcome, gate_in_flight);
    return free_to ? gate_challenge(rq, c->reason) : gate_say(rq);
}

static void have_found_again(void *arg, enum db_rc rc, const struct order_found *found)
{
    struct call *c = gate_call(arg);
    c->verdict = found->verdict;
    c->order = found->order;
    c->known = found->known;
    request_go(arg, rc == DB_OK ? refuse_or_say : gate_store_down);
}

struct step gate_refuse(struct request *rq)
{
    struct call *c = gate_call(rq);
    orders_find(c->g->db, &c->payment, &c->request, gate_manner_of(c), c->need_s, gate_chain_ms(c), clock_mono_ms() + FIND_MS, have_found_again,
                rq);
    return request_wait(rq);
}

/* ---- the payment ---- */

/* Idempotency-Key is the payment id of clients whose payments cannot carry one; both at once must agree. */
enum err gate_payment_id(struct request *rq, struct payment *p)
{
    struct slice key;
    size_t n = request_header(rq, "Idempotency-Key", &key);
    if (n == 0)
        return ERR_NONE;
    if (n > 1 || !payment_id_ok(key))
        return ERR_PAYMENT_ID_FORM;
    if (p->payment_id[0] && !slice_is(key, p->payment_id))
        return ERR_PAYMENT_ID_DIFFERS;
    memcpy(p->payment_id, key.p, key.n);
    p->payment_id[key.n] = 0;
    return ERR_NONE;
}

struct step gate_presented(struct request *rq)
{
    struct call *c = gate_call(rq);
    gate_manner(rq);
    gate_repeat_key(rq);
    return c->repeat.asked && c->reason == REASON_NONE && c->rail->may_repeat(c) ? gate_repeat(rq) : gate_find(rq);
}

/* What the payment is for: method, raw target and body. */
static struct hash32 request_digest(const struct request *rq)
{
    struct slice target = request_target(rq), body = request_body(rq);
    struct hash32 body_digest = sha256(body.p, body.n);
    BUF b = { 0 };
    buf_printf(&b, "%s\n", request_method(rq));
    buf_add(&b, target.p, target.n);
    buf_add(&b, "\n", 1);
    buf_add(&b, body_digest.b, sizeof body_digest.b);
    return sha256(b.p, b.n);
}

static void ended(struct request *rq, bool delivered)
{
    struct call *c = gate_call(rq);
    if (delivered && c->told)
        outcome_delivered(c->g, &c->order);
    if (c->has_work)
        work_done(&c->work);
    json_decref(c->more);
    gate_mpp_done(c);
}

/* The one payment that the request brings, in one header; ret_version is 0 for MPP's. ERR_NONE and an empty slice: none. */
static enum err find_payment(struct request *rq, struct slice *ret, int *ret_version, enum mpp_fault *ret_fault)
{
    struct slice v2, v1, authorization, credential = { NULL, 0 };
    size_t n2 = request_header(rq, "PAYMENT-SIGNATURE", &v2), n1 = request_header(rq, "X-PAYMENT", &v1);
    size_t n = request_header(rq, "Authorization", &authorization);
    *ret = (struct slice){ NULL, 0 };
    *ret_fault = n > 0 ? mpp_credential_find(authorization, &credential) : MPP_FAULT_NONE;
    if (n1 + n2 + (credential.n > 0 || *ret_fault != MPP_FAULT_NONE) > 1)
        return ERR_PAYMENT_HEADERS;
    *ret = n2 ? v2 : n1 ? v1 : credential;
    *ret_version = n2 ? 2 : n1 ? 1 : 0;
    return ERR_NONE;
}

static void prepare(struct request *rq, struct gateway *g, const struct tool *tool)
{
    struct call *c = gate_call(rq);
    size_t i = (size_t)(tool - g->config->tools);
    c->g = g;
    c->rail = &rail_x402;
    c->tool = tool;
    c->terms = &g->terms[i];
    c->mpp_terms = &g->mpp_terms[i];
    c->challenge = g->challenges[i];
    c->pay_first = c->terms->pay_first;
    c->give_up_ms = clock_mono_ms() + g->config->wait_ms;
    c->request = request_digest(rq);
    request_on_end(rq, ended);
}

static struct step priced(struct request *rq, struct gateway *g, const struct tool *tool)
{
    struct call *c = gate_call(rq);
    struct slice payment, key;
    int version;
    prepare(rq, g, tool);
    enum err e = find_payment(rq, &payment, &version, &c->fault);
    if (e != ERR_NONE)
        return gate_problem(rq, e, NULL);
    if (c->fault != MPP_FAULT_NONE)
        return gate_mpp_fault(rq, c->fault, NULL);
    if (payment.n > 0 || version > 0) {
        metrics_presented(g->metrics, rq);
        return version > 0 ? gate_x402(rq, payment, version) : gate_mpp(rq, payment);
    }
    size_t keys = request_header(rq, "Idempotency-Key", &key);
    if (keys > 1 || (keys == 1 && !payment_id_ok(key)))
        return gate_problem(rq, ERR_PAYMENT_ID_FORM, NULL);
    return keys == 1 ? gate_key(rq, key) : gate_challenge(rq, REASON_REQUIRED);
}

/* ---- routes ---- */

size_t gate_body_limit(const struct request *rq)
{
    const struct gateway *g = request_app(rq);
    BUF allow = { 0 };
    if (g->facilitator && facilitator_is_ours(request_path(rq)))
        return FACILITATOR_BODY;
    const struct tool *tool = route_find(g->config, request_method(rq), request_path(rq), &allow);
    return tool ? tool->max_body : 4096;
}

struct step gate_begin(struct request *rq)
{
    struct gateway *g = request_app(rq);
    BUF allow = { 0 };
    if (lookup_is_ours(request_path(rq)))
        return lookup_begin(rq, request_path(rq));
    if (g->facilitator && facilitator_is_ours(request_path(rq)))
        return facilitator_begin(rq, request_path(rq));
    const struct tool *tool = route_find(g->config, request_method(rq), request_path(rq), &allow);
    if (tool && tool->price_count == 0)
        return gate_free(rq, g, tool);
    if (tool)
        return priced(rq, g, tool);
    struct reply *r = reply_problem(rq, allow.n ? ERR_METHOD_NOT_ALLOWED : ERR_NOT_FOUND, NULL, NULL);
    if (allow.n)
        reply_header(r, "Allow", allow.p);
    return request_reply(rq, r);
}
