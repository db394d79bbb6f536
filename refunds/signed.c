#include "refunds/signed.h"

#include <stdio.h>
#include <string.h>

static bool add(struct sum *s, struct slice text, bool negate)
{
    const bool minus = text.n > 0 && text.p[0] == '-';
    struct amount a;
    if (!text.p || !amount_read(text.p + minus, text.n - minus, &a))
        return false;
    struct amount *side = minus != negate ? &s->minus : &s->plus;
    return amount_add(*side, a, side);
}

bool sum_add(struct sum *s, struct slice text)
{
    return add(s, text, false);
}

bool sum_take(struct sum *s, struct slice text)
{
    return add(s, text, true);
}

int sum_sign(const struct sum *s)
{
    return amount_cmp(s->plus, s->minus);
}

bool sum_is_zero(const struct sum *s)
{
    return sum_sign(s) == 0;
}

static struct amount size_of(const struct sum *s)
{
    struct amount ret = AMOUNT_ZERO;
    if (!amount_sub(s->plus, s->minus, &ret))
        (void)!amount_sub(s->minus, s->plus, &ret);
    return ret;
}

struct sum_text sum_text(const struct sum *s)
{
    struct sum_text t;
    (void)snprintf(t.s, sizeof t.s, "%s%s", sum_sign(s) < 0 ? "-" : "", amount_text(size_of(s)).s);
    return t;
}

struct sum_text sum_human(const struct sum *s, unsigned decimals)
{
    struct sum_text t;
    (void)snprintf(t.s, sizeof t.s, "%s%s", sum_sign(s) < 0 ? "-" : "", amount_human(size_of(s), decimals).s);
    return t;
}
