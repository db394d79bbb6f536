/* POST /settle. The nonce decides: what is known is told or waited for, whatever has become of deadlines, limits and balances
 * since; only what is new is judged, stored and due. */
#include <string.h>

#include "api/facilitator.h"
#include "api/gate.h"
#include "base/clock.h"
#include "base/failpoint.h"

/* LOOK_MS: a parked request looks again so often even unasked. */
enum { FIND_MS = 5000, LOOK_MS = 2000 };

static struct settlement settlement_of(struct asked *a)
{
    return (struct settlement){ a->seller->name, &a->ask.payment, &a->ask.terms, &a->ask.pay_to, a->need_s };
}

static void have_found(void *arg, enum db_rc rc, const struct settlement_found *found)
{
    struct asked *a = asked_of(arg);
    if (rc == DB_OK)
        a->found = *found;
    request_go(arg, rc == DB_OK ? a->then : a->down);
}

static struct step find(struct request *rq, phase *then, phase *down)
{
    struct asked *a = asked_of(rq);
    struct settlement s = settlement_of(a);
    a->then = then;
    a->down = down;
    settlement_find(a->g->db, &s, clock_mono_ms() + FIND_MS, have_found, rq);
    return request_wait(rq);
}

/* Nothing stands in its way, as far as we know. */
static bool may_be_taken(const struct asked *a)
{
    return a->found.is == SETTLING_NEW || a->found.is == SETTLING_AGAIN;
}

/* ---- the wait for the proof ---- */

static struct step wait_more(struct request *rq);
static phase tell, over;

static struct step look(struct request *rq)
{
    struct asked *a = asked_of(rq);
    const struct outcome *o = &a->outcome;
    if (o->known && o->has_tx)
        return facilitator_settled(rq, &o->tx);
    if (o->known && strcmp(o->status, "unpaid") == 0)
        return find(rq, over, facilitator_pending);
    if (clock_mono_ms() >= a->give_up_ms || server_draining(a->g->server))
        return facilitator_pending(rq);
    return wait_more(rq);
}

static struct step look_again(struct request *rq)
{
    struct asked *a = asked_of(rq);
    return outcome_read(rq, &a->found.order, &a->outcome, look);
}

static struct step wait_more(struct request *rq)
{
    struct asked *a = asked_of(rq);
    struct topic t;
    int64_t until = clock_mono_ms() + LOOK_MS;
    memcpy(t.b, a->found.order.b, sizeof t.b);
    return request_park(rq, t, until < a->give_up_ms ? until : a->give_up_ms, look_again);
}

/* ---- what is known of it ---- */

/* Other terms over a nonce that we watch can be submitted by whoever saw them: kept, so that its end is judged by the latest. */
static bool must_be_kept(const struct asked *a)
{
    enum reason r = x402_check(&a->ask.payment, &a->terms, clock_wall_s(), a->need_s);
    return a->found.is == SETTLING_UNDECIDED && a->found.known == KNOWN_NONCE && a->ask.payment.signer_proven &&
           r != REASON_VALID_BEFORE && r != REASON_VALID_AFTER;
}

/* By now it is known; what is new here has its own ways. */
static struct step tell(struct request *rq)
{
    struct asked *a = asked_of(rq);
    switch (a->found.is) {
    case SETTLING_SETTLED:
        return facilitator_settled(rq, &a->found.tx);
    case SETTLING_EXPIRED:
        return facilitator_refuse(rq, REASON_VALID_BEFORE);
    case SETTLING_VOID:
        return facilitator_refuse(rq, REASON_NONCE_USED);
    case SETTLING_OTHER:
        return facilitator_refuse(rq, REASON_OTHER_OWNER);
    case SETTLING_OTHER_PAYEE:
        return facilitator_refuse(rq, REASON_OTHER_PAYEE);
    case SETTLING_OTHER_AMOUNT:
        return facilitator_refuse(rq, REASON_OTHER_AMOUNT);
    case SETTLING_LIMIT:
        return facilitator_refuse(rq, REASON_SELLER_LIMIT);
    case SETTLING_NEW:
    case SETTLING_AGAIN:
        return facilitator_refuse(rq, a->reason);
    case SETTLING_ACCEPTED:
    case SETTLING_UNDECIDED:
        break;
    }
    if (must_be_kept(a)) {
        a->found.known = KNOWN_ALL;
        return facilitator_take(rq);
    }
    return wait_more(rq);
}

/* Proven dead, while it was waited for or was only to be kept. These terms may have time left. */
static struct step over(struct request *rq)
{
    return may_be_taken(asked_of(rq)) ? facilitator_check(rq) : tell(rq);
}

/* Asked again, it may wait longer: who asks has been told already that it is not final. */
static struct step decide(struct request *rq)
{
    struct asked *a = asked_of(rq);
    metrics_span(a->g->metrics, SPAN_FIND, a->began_ms);
    if (may_be_taken(a))
        return facilitator_check(rq);
    a->give_up_ms = a->began_ms + a->seller->repeat_wait_ms;
    return tell(rq);
}

struct step facilitator_settle(struct request *rq)
{
    return find(rq, decide, facilitator_unknown);
}

/* ---- durable before act ---- */

static struct step taken(struct request *rq)
{
    struct asked *a = asked_of(rq);
    FAILPOINT("facilitator-after-accept");
    a->mine = a->found.is == SETTLING_ACCEPTED;
    if (may_be_taken(a))
        return over(rq);
    if (!a->mine)
        a->give_up_ms = a->began_ms + a->seller->repeat_wait_ms;
    return tell(rq);
}

static void have_taken(void *arg, enum db_rc rc, const struct settlement_found *found)
{
    struct asked *a = asked_of(arg);
    seller_took(a->g->facilitator, a->seller, rc != DB_OK || found->is == SETTLING_ACCEPTED);
    a->found = *found;
    a->found.known = KNOWN_ALL;
    request_go(arg, rc == DB_OK ? taken : facilitator_unknown);
}

/* Whether this commit came about is asked for as long as anybody waits for the answer. */
struct step facilitator_take(struct request *rq)
{
    struct asked *a = asked_of(rq);
    struct settlement s = settlement_of(a);
    OWNED char *by = gate_by(rq);
    struct settlement_take take = {
        .verified = may_be_taken(a),
        .has_code = a->has_code,
        .tell = a->seller->webhook != NULL,
        .most = seller_most(a->g->facilitator, a->seller),
        .by = by,
    };
    FAILPOINT("facilitator-before-accept");
    seller_takes(a->g->facilitator, a->seller);
    settlement_accept(a->g->db, &s, &take, a->give_up_ms, have_taken, rq);
    return request_wait(rq);
}

/* ---- the chain, or our terms, said no ---- */

static struct step spent_known(struct request *rq)
{
    return facilitator_spent(rq);
}

static void have_spent(void *arg, const struct spent *s)
{
    asked_of(arg)->spent = *s;
    request_go(arg, spent_known);
}

/* Still unknown here: then its use was not ours, and what is known of it is told. */
static struct step refuse(struct request *rq)
{
    struct asked *a = asked_of(rq);
    if (a->found.is != SETTLING_NEW || a->reason != REASON_NONCE_USED)
        return tell(rq);
    spent_start(a->seat->rpc, a->ask.payment.price.token, &a->ask.payment.auth, a->block, have_spent, rq);
    return request_wait(rq);
}

/* What was new when the chain was asked may be another copy's settlement now. */
struct step facilitator_refuse_settle(struct request *rq)
{
    return find(rq, refuse, facilitator_unknown);
}
