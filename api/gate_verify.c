/* A payment that may be taken: our terms, then one block of the chain, then the commit that takes it. */
#include <string.h>

#include "api/gate.h"
#include "api/spent.h"
#include "base/clock.h"
#include "base/failpoint.h"

enum { ACCEPT_MS = 10000 };

static struct step chain_down(struct request *rq)
{
    return gate_problem(rq, ERR_CHAIN_UNAVAILABLE, NULL);
}

/* ---- a used nonce that is not booked: what did it do? ---- */

/* Cancelled or paid to somebody else: nothing of it is ours, a new payment is right. Paid to us: never 402, since money moved.
 * Whose it is the database says, which is asked again: another copy may have stored it, and the settler sent it, meanwhile. No
 * log: nobody knows. */
static void have_spent(void *arg, const struct spent *s)
{
    struct call *c = gate_call(arg);
    c->paid_us = s->known && s->event.kind == AUTH_EVENT_TRANSFER && address_eq(&s->event.to, &c->payment.price.pay_to);
    request_go(arg, s->known ? gate_refuse : chain_down);
}

/* ---- terms, chain ---- */

static void have_facts(void *arg, const struct auth_facts *f)
{
    struct call *c = gate_call(arg);
    if (!f->known) {
        request_go(arg, chain_down);
        return;
    }
    c->verified = true;
    c->has_code = f->has_code;
    c->reason = x402_judge(&c->payment, f);
    if (c->reason == REASON_NONE)                /* a chain whose clock runs ahead of ours decides by its own */
        c->reason = x402_check(&c->payment, c->terms, clock_wall_s() > (int64_t)f->block_time ? clock_wall_s()
                                                                                              : (int64_t)f->block_time, c->need_s);
    if (c->reason == REASON_NONCE_USED)
        spent_start(c->seat->rpc, c->payment.price.token, &c->payment.auth, f->block, have_spent, arg);
    else
        request_go(arg, c->reason == REASON_NONE ? gate_accept : gate_refuse);
}

struct step gate_verify(struct request *rq)
{
    struct call *c = gate_call(rq);
    c->reason = x402_check(&c->payment, c->terms, clock_wall_s(), c->need_s);
    if (c->reason != REASON_NONE)
        return gate_refuse(rq);
    if (!c->seat->pinned)
        return chain_down(rq);
    checker_start(c->seat->checker, c->payment.price.token, &c->payment.auth, have_facts, rq);
    return request_wait(rq);
}

/* ---- durable before act ---- */

static struct step accepted(struct request *rq)
{
    struct call *c = gate_call(rq);
    FAILPOINT("gateway-after-accept");
    switch (c->verdict) {
    case VERDICT_ACCEPTED:
        return gate_work(rq);
    case VERDICT_TO_SETTLE:
    case VERDICT_RESENT:
        return gate_wait(rq);
    case VERDICT_NEW:
    case VERDICT_AGAIN:
    case VERDICT_TAKEOVER:
    case VERDICT_RESEND:
        if (!c->verified && c->reason == REASON_NONE) /* the order that needed none has moved on */
            return gate_verify(rq);
        break;
    case VERDICT_BEGIN:
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
    return gate_say(rq);
}

static void have_accepted(void *arg, enum db_rc rc, const struct order_accepted *a)
{
    struct call *c = gate_call(arg);
    metrics_span(c->g->metrics, SPAN_ACCEPT, c->asked_ms);
    gate_keep_accepted(c, a);
    request_go(arg, rc == DB_OK ? accepted : gate_store_down);
}

struct order_call gate_order_call(struct request *rq)
{
    struct call *c = gate_call(rq);
    return (struct order_call){
        .tool = c->tool->name,
        .side_effect = side_effect_name(c->tool->side_effect),
        .method = request_method(rq),
        .target = request_target(rq),
        .request = c->request,
        .manner = gate_manner_of(c),
        .cacheable = c->tool->cacheable,
        .idempotent = c->tool->upstream_idempotent,
        .is_new = c->verdict == VERDICT_NEW,
        .pay_first = c->pay_first,
        .rail = c->rail->name,
        .charge = c->rail == &rail_mpp ? &c->mpp.charge : NULL,
        .repeat = c->repeat,
        .now_ms = gate_chain_ms(c),
    };
}

int gate_lease_s(const struct call *c)
{
    return (int)(c->tool->timeout_ms / 1000) + 90;
}

struct step gate_accept(struct request *rq)
{
    struct call *c = gate_call(rq);
    const struct order_call call = gate_order_call(rq);
    OWNED char *by = gate_by(rq);
    FAILPOINT("gateway-before-accept");
    c->asked_ms = clock_mono_ms();
    orders_accept(c->g->db, &c->g->instance, gate_lease_s(c), &c->payment, c->has_code, c->verified, &call, c->need_s, by, clock_mono_ms() + ACCEPT_MS,
                  have_accepted, rq);
    return request_wait(rq);
}
