#include "api/doctor.h"

static bool has_policy(const struct config *c, const struct token *t)
{
    for (size_t i = 0; i < c->refund_count; i++)
        if (c->refunds[i].token == t)
            return true;
    return false;
}

static void check_price(struct doctor *d, const struct tool *t, const struct price *p)
{
    if (has_policy(d->c, p->token))
        doctor_say(d, FINDING_OK, "refunds", "%s: is paid before the work; refunds of %s on %s are set", t->name, p->token->symbol, p->net->id);
    else
        doctor_say(d, FINDING_WARN, "refunds",
                   "%s: is paid before the work, and refunds names no policy for %s on %s: what failed calls leave is paid back by nobody",
                   t->name, p->token->symbol, p->net->id);
}

/* Where the money comes first a failed call always leaves a debt: somebody should pay it back. */
void doctor_pay_first(struct doctor *d)
{
    for (size_t i = 0; i < d->c->tool_count; i++) {
        const struct tool *t = &d->c->tools[i];
        for (size_t k = 0; k < t->price_count; k++)
            if (t->settle == SETTLE_BEFORE_WORK || t->prices[k].net->tempo)
                check_price(d, t, &t->prices[k]);
    }
}
