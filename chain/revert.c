#include <string.h>

#include "chain/chain.h"

static const struct {
    const char *text;
    enum revert revert;
} spellings[] = {
    { "FiatTokenV2: authorization is used or canceled", REVERT_USED },
    { "FiatTokenV2: authorization is expired", REVERT_EXPIRED },
    { "FiatTokenV2: authorization is not yet valid", REVERT_NOT_YET_VALID },
    { "FiatTokenV2: invalid signature", REVERT_SIGNATURE },
    { "ECRecover: invalid signature", REVERT_SIGNATURE },
    { "ECRecover: invalid signature length", REVERT_SIGNATURE },
    { "ECRecover: invalid signature 's' value", REVERT_SIGNATURE },
    { "ECRecover: invalid signature 'v' value", REVERT_SIGNATURE },
    { "ERC20: transfer amount exceeds balance", REVERT_BALANCE },
    { "Blacklistable: account is blacklisted", REVERT_BLACKLISTED },
    { "Pausable: paused", REVERT_PAUSED },
};

/* selector, offset 32, length, characters. What pads the last word is not looked at: solc 0.6 leaves old memory there.
 */
static bool error_string(struct slice data, struct slice *ret)
{
    static const uint8_t selector[4] = { 0x08, 0xc3, 0x79, 0xa0 };
    uint64_t offset, length;
    if (data.n < 68 || memcmp(data.p, selector, sizeof selector) != 0)
        return false;
    const uint8_t *words = (const uint8_t *)data.p + 4;
    if (!amount_u64(amount_from_be(words), &offset) || !amount_u64(amount_from_be(words + 32), &length))
        return false;
    if (offset != 32 || length > data.n - 68)
        return false;
    *ret = (struct slice){ data.p + 68, (size_t)length };
    return true;
}

enum revert revert_read(struct slice data)
{
    struct slice text;
    if (!error_string(data, &text))
        return REVERT_OTHER;
    for (size_t i = 0; i < COUNT(spellings); i++)
        if (slice_is(text, spellings[i].text))
            return spellings[i].revert;
    return REVERT_OTHER;
}

const char *revert_name(enum revert r)
{
    switch (r) {
    case REVERT_NONE:
        return "none";
    case REVERT_USED:
        return "used";
    case REVERT_EXPIRED:
        return "expired";
    case REVERT_NOT_YET_VALID:
        return "not_yet_valid";
    case REVERT_SIGNATURE:
        return "signature";
    case REVERT_BALANCE:
        return "balance";
    case REVERT_BLACKLISTED:
        return "blacklisted";
    case REVERT_PAUSED:
        return "paused";
    case REVERT_OTHER:
        return "other";
    }
    abort();
}
