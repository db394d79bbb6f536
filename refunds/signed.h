/* Sums of signed decimals, as postings are: checked, of any size that the chain can hold. */
#ifndef REFUNDS_SIGNED_H
#define REFUNDS_SIGNED_H

#include "base/amount.h"
#include "base/bytes.h"

struct sum {
    struct amount plus, minus;
};
struct sum_text {
    char s[82];
};
bool sum_add(struct sum *s, struct slice text) MUST_CHECK; /* "-12" or "12"; false: no number, or too large */
bool sum_take(struct sum *s, struct slice text) MUST_CHECK;
struct sum_text sum_text(const struct sum *s);
bool sum_is_zero(const struct sum *s);
int sum_sign(const struct sum *s);
/* Decimal with the token's decimals, for people and for hledger. */
struct sum_text sum_human(const struct sum *s, unsigned decimals);

#endif
