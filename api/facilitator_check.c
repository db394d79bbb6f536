/* May this payment be taken? Our limits, the terms, then one block of the chain, which many ask for in one call. */
#include "api/facilitator.h"
#include "base/clock.h"

static enum reason by_terms(const struct asked *a, int64_t now)
{
    enum reason why = x402_check(&a->ask.payment, &a->terms, now, a->need_s);
    return why == REASON_NONE && seller_over_limit(a->g->facilitator, a) ? REASON_SELLER_LIMIT : why;
}

static struct step checked(struct request *rq)
{
    struct asked *a = asked_of(rq);
    if (a->call == ASKED_SETTLE)
        return a->reason == REASON_NONE ? facilitator_take(rq) : facilitator_refuse_settle(rq);
    return a->reason == REASON_NONE ? facilitator_valid(rq) : facilitator_refuse(rq, a->reason);
}

static void have_facts(void *arg, const struct auth_facts *f)
{
    struct asked *a = asked_of(arg);
    if (!f->known) {
        request_go(arg, facilitator_unknown);
        return;
    }
    int64_t wall = clock_wall_s(), chain = (int64_t)f->block_time;
    a->block = f->block;
    a->has_code = f->has_code;
    a->reason = x402_judge(&a->ask.payment, f);
    if (a->reason == REASON_NONE)                /* a chain whose clock runs ahead of ours decides by its own */
        a->reason = by_terms(a, wall > chain ? wall : chain);
    request_go(arg, checked);
}

/* What the signature alone decides comes first, as the official facilitator has it. Only a payer with code can be right without it,
 * and that the chain knows. */
struct step facilitator_check(struct request *rq)
{
    struct asked *a = asked_of(rq);
    a->reason = by_terms(a, clock_wall_s());
    if (a->reason != REASON_NONE && a->ask.payment.signer_proven)
        return checked(rq);
    if (!a->seat->pinned)
        return facilitator_unknown(rq);
    checker_start(a->seat->checker, a->ask.payment.price.token, &a->ask.payment.auth, have_facts, rq);
    return request_wait(rq);
}
