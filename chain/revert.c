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

/* A token of TIP-20 says it in an error of its own. */
static const struct {
    uint8_t selector[4];
    enum revert revert;
} errors[] = {
    { { 0x83, 0x2f, 0x98, 0xb5 }, REVERT_BALANCE },   /* InsufficientBalance(uint256,uint256,address) */
    { { 0xab, 0x35, 0x69, 0x6f }, REVERT_PAUSED },    /* ContractPaused() */
    { { 0x54, 0xcf, 0xe6, 0x59 }, REVERT_FORBIDDEN }, /* PolicyForbids() */
    { { 0x9c, 0x8d, 0x2c, 0xd2 }, REVERT_RECIPIENT }, /* InvalidRecipient() */
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
    for (size_t i = 0; i < COUNT(errors); i++)
        if (data.n >= 4 && memcmp(data.p, errors[i].selector, 4) == 0)
            return errors[i].revert;
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
    case REVERT_FORBIDDEN:
        return "policy_forbids";
    case REVERT_RECIPIENT:
        return "recipient";
    case REVERT_OTHER:
        return "other";
    }
    abort();
}
