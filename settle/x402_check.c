/* The verdicts on a payment that was read: what our terms say, and what the chain says. */
#include "settle/x402.h"

/* A deadline later than this could not be proven dead in reasonable time. */
enum { BEYOND_S = 600 };

enum reason x402_check(const struct payment *p, const struct terms *t, int64_t now, int need_s)
{
    const struct authorization *a = &p->auth;
    uint64_t before = amount_u64_cap(a->valid_before), after = amount_u64_cap(a->valid_after), wall = (uint64_t)now;
    if (!address_eq(&a->to, &p->price.pay_to))
        return REASON_RECIPIENT;
    if (before < wall + (uint64_t)need_s || before > wall + t->max_timeout_s + BEYOND_S)
        return REASON_VALID_BEFORE;
    if (after > wall)
        return REASON_VALID_AFTER;
    if (amount_cmp(a->value, p->price.amount) != 0)
        return REASON_VALUE;
    return REASON_NONE;
}

enum reason x402_judge(const struct payment *p, const struct auth_facts *facts)
{
    if (!p->signer_proven && !facts->has_code)
        return REASON_SIGNATURE;
    if (facts->nonce_used)
        return REASON_NONCE_USED;
    if (facts->transfer_ok)
        return REASON_NONE;
    if (facts->balance_known && amount_cmp(facts->balance, p->auth.value) < 0)
        return REASON_BALANCE;
    switch (facts->why) {
    case REVERT_USED:
        return REASON_NONCE_USED;
    case REVERT_EXPIRED:
        return REASON_VALID_BEFORE;
    case REVERT_NOT_YET_VALID:
        return REASON_VALID_AFTER;
    case REVERT_SIGNATURE:
        return REASON_SIGNATURE;
    case REVERT_BALANCE:
        return REASON_BALANCE;
    case REVERT_NONE:
    case REVERT_BLACKLISTED:
    case REVERT_PAUSED:
    case REVERT_FORBIDDEN:
    case REVERT_RECIPIENT:
    case REVERT_OTHER:
        return REASON_SIMULATION;
    }
    return REASON_SIMULATION;
}
