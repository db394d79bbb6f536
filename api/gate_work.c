/* The work, its durable end, and the wait for the money's proof. */
#include <string.h>

#include "api/answers.h"
#include "api/gate.h"
#include "api/lost.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"

/* FINISH_MS: the answer is held and offered to the database so long, since the work is done and cannot be undone.
 * LOOK_MS: a parked request looks again so often even unasked, should a notification have come before it was parked. */
enum { FINISH_MS = 60000, LOOK_MS = 3000 };

static phase look_again;

/* ---- the end of the work ---- */

/* The upstream's own answer, or ours where it gave none that can be passed on. Nothing was charged. */
static struct step not_charged(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct reply *r = NULL;
    if (c->landed && c->work.end != WORK_LOST)
        return gate_owed(rq);
    if (c->pay_first && c->work.end != WORK_LOST) /* its money left the chain meanwhile: the order itself tells */
        return gate_find(rq);
    switch (c->work.end) {
    case WORK_REFUSED:
    case WORK_FAILED:
        if (c->work.status == 402) {             /* a 402 of ours means "pay us", and that would be wrong here */
            r = reply_problem(rq, ERR_UPSTREAM_PAYWALL, NULL, NULL);
            break;
        }
        r = gate_answer(rq, c->work.status, c->work.headers, false, false);
        reply_body_take(r, NULL, &c->work.body);
        return gate_send(rq, r, COUNT_NOT_CHARGED);
    case WORK_UNREACHED:
        r = reply_problem(rq, ERR_UPSTREAM_UNREACHABLE, NULL, json_pack("{s:i}", "retry_after", 2));
        break;
    case WORK_TIMEOUT:
        r = reply_problem(rq, ERR_UPSTREAM_TIMEOUT, NULL, json_pack("{s:i}", "retry_after", 2));
        break;
    case WORK_TOO_LARGE:
        r = reply_problem(rq, ERR_UPSTREAM_TOO_LARGE, NULL, NULL);
        break;
    case WORK_DONE:
    case WORK_LOST:
        c->verdict = VERDICT_IN_REVIEW;
        return gate_say(rq);
    }
    reply_header(r, "Payonce-Charged", "false");
    gate_not_final(rq, r);
    return gate_send(rq, r, COUNT_NOT_CHARGED);
}

static void have_finished(void *arg, enum db_rc rc, bool late, bool landed)
{
    struct call *c = gate_call(arg);
    FAILPOINT("gateway-after-finish");
    c->landed = landed;
    metrics_span(c->g->metrics, SPAN_FINISH, c->asked_ms);
    if (rc != DB_OK)
        request_go(arg, gate_store_down);
    else if (late)                               /* somebody took the work over: their outcome is the order's */
        request_go(arg, gate_find);
    else
        request_go(arg, c->work.end != WORK_DONE ? not_charged : c->pay_first ? look_again /* paid already */ : gate_wait);
}

static enum work_axis axis_of(enum work_end end)
{
    return end == WORK_DONE ? WORK_AXIS_DONE : end == WORK_LOST ? WORK_AXIS_LOST : WORK_AXIS_FAILED;
}

static struct step finish(struct request *rq)
{
    struct call *c = gate_call(rq);
    OWNED char *by = gate_by(rq);
    KEPT kept = { 0 };
    if (c->work.end == WORK_DONE)
        answer_seal(c->g, c->tool, &c->order, &c->work, &kept);
    FAILPOINT("gateway-before-finish");
    c->asked_ms = clock_mono_ms();
    if (c->work.end != WORK_DONE)
        log_info("gateway.work", "order=%s tool=%s end=%d status=%d why=%s", order_id_text(&c->order).s, c->tool->name, (int)c->work.end,
                 c->work.status, c->work.why ? c->work.why : "");
    const bool lost = c->work.end == WORK_LOST;
    OWNED char *fact = lost ? lost_fact(&c->work) : NULL, *theirs = lost ? lost_theirs(&c->work) : NULL;
    orders_finish(c->g->db, &c->order, c->epoch, axis_of(c->work.end), lost ? fact : c->work.why, theirs,
                  c->work.end == WORK_DONE ? &kept.answer : NULL, by,
                  clock_mono_ms() + FINISH_MS, have_finished, rq);
    return request_wait(rq);
}

static void have_work(void *arg, struct work *w)
{
    struct call *c = gate_call(arg);
    FAILPOINT("gateway-after-work");
    metrics_span(c->g->metrics, SPAN_UPSTREAM, c->asked_ms);
    if (c->has_work)                             /* of an epoch that came too late */
        work_done(&c->work);
    c->work = *w;
    c->has_work = true;
    memset(w, 0, sizeof *w);
    request_go(arg, finish);
}

/* Milliseconds that the upstream has: its own deadline, or until the authorization could no longer be settled after it. */
static int64_t time_to_work(const struct call *c)
{
    int64_t left_ms = ((int64_t)amount_u64_cap(c->payment.auth.valid_before) - clock_wall_s() - terms_settle_s(c->seat->net)) * 1000;
    return c->pay_first || c->tool->timeout_ms < left_ms ? c->tool->timeout_ms : left_ms;
}

struct step gate_work(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct id_text order = order_id_text(&c->order);
    struct address_text payer = address_checksum(&c->payment.auth.from);
    struct upstream_call call = { c->tool, rq, order.s, payer.s, clock_mono_ms() + time_to_work(c) };
    FAILPOINT("gateway-before-work");
    c->asked_ms = clock_mono_ms();
    upstream_start(c->g->fetcher, &call, have_work, rq);
    return request_wait(rq);
}

/* ---- the wait for the proof ---- */

static struct step look(struct request *rq)
{
    struct call *c = gate_call(rq);
    const struct outcome *o = &c->outcome;
    if (o->known && strcmp(o->status, "paid") == 0) {
        FAILPOINT("gateway-before-answer");
        c->receipt = o->receipt;
        if (!c->has_work)
            return gate_replay(rq);
        struct reply *r = gate_answer(rq, c->work.status, c->work.headers, true, false);
        reply_body_take(r, NULL, &c->work.body);
        c->told = true;
        return gate_send(rq, r, COUNT_PAID);
    }
    if (o->known && strcmp(o->status, "unpaid") == 0)
        return gate_challenge(rq, REASON_EXPIRED);
    if (o->known && c->pay_first && !c->has_work && !server_draining(c->g->server)) {
        if (o->has_tx)
            return gate_begin_work(rq);
        if (strcmp(o->status, "processing") != 0) /* dead, most likely */
            return gate_find(rq);
    }
    if (clock_mono_ms() >= c->give_up_ms || server_draining(c->g->server))
        return gate_in_flight(rq);
    return gate_wait(rq);
}

static struct step look_again(struct request *rq)
{
    struct call *c = gate_call(rq);
    return outcome_read(rq, &c->order, &c->outcome, look);
}

struct step gate_wait(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct topic t;
    int64_t until = clock_mono_ms() + LOOK_MS;
    memcpy(t.b, c->order.b, sizeof t.b);
    return request_park(rq, t, until < c->give_up_ms ? until : c->give_up_ms, look_again);
}

/* ---- a route without a price ---- */

static struct step pass_on(struct request *rq)
{
    struct call *c = gate_call(rq);
    if (c->work.end == WORK_DONE || c->work.end == WORK_REFUSED || c->work.status > 0) {
        struct reply *r = reply_new(c->work.status);
        size_t i;
        json_t *h;
        json_array_foreach(c->work.headers, i, h)
            reply_header(r, json_string_value(json_array_get(h, 0)), json_string_value(json_array_get(h, 1)));
        reply_body_take(r, NULL, &c->work.body);
        return request_reply(rq, r);
    }
    return request_reply(rq, reply_problem(rq, c->work.end == WORK_UNREACHED ? ERR_UPSTREAM_UNREACHABLE : ERR_UPSTREAM_TIMEOUT,
                                           "This route has no price; the seller's API gave no answer.", NULL));
}

static void have_free_work(void *arg, struct work *w)
{
    struct call *c = gate_call(arg);
    c->work = *w;
    c->has_work = true;
    memset(w, 0, sizeof *w);
    request_go(arg, pass_on);
}

static void free_ended(struct request *rq, bool delivered)
{
    struct call *c = gate_call(rq);
    (void)delivered;
    if (c->has_work)
        work_done(&c->work);
}

struct step gate_free(struct request *rq, struct gateway *g, const struct tool *tool)
{
    struct call *c = gate_call(rq);
    struct upstream_call call = { .tool = tool, .rq = rq, .deadline_ms = clock_mono_ms() + tool->timeout_ms };
    c->g = g;
    request_on_end(rq, free_ended);
    upstream_start(g->fetcher, &call, have_free_work, rq);
    return request_wait(rq);
}
