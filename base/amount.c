#include "base/amount.h"

#include <assert.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

#define TEN_19 10000000000000000000u /* the largest power of ten in a limb */

struct amount amount_of(uint64_t v)
{
    return (struct amount){ { v, 0, 0, 0 } };
}

/* a * by + plus; returns what does not fit. */
static uint64_t multiply_add(struct amount *a, uint64_t by, uint64_t plus)
{
    uint64_t carry = plus;
    for (size_t i = 0; i < COUNT(a->limb); i++) {
        const u128 x = (u128)a->limb[i] * by + carry;
        a->limb[i] = (uint64_t)x;
        carry = (uint64_t)(x >> 64);
    }
    return carry;
}

/* a / by in place; returns the remainder. */
static uint64_t divide(struct amount *a, uint64_t by)
{
    uint64_t rest = 0;
    for (size_t i = COUNT(a->limb); i-- > 0;) {
        const u128 x = (u128)rest << 64 | a->limb[i];
        a->limb[i] = (uint64_t)(x / by);
        rest = (uint64_t)(x % by);
    }
    return rest;
}

bool amount_read(const char *s, size_t n, struct amount *ret)
{
    struct amount a = AMOUNT_ZERO;
    if (n == 0 || n > 78 || (s[0] == '0' && n > 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || multiply_add(&a, 10, (uint64_t)(s[i] - '0')) != 0)
            return false;
    }
    *ret = a;
    return true;
}

struct amount_text amount_text(struct amount a)
{
    char digits[80]; /* from the back */
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do {
        uint64_t part = divide(&a, TEN_19);
        for (int i = 0; i < 19 && (part > 0 || !amount_is_zero(a)); i++, part /= 10)
            digits[--at] = (char)('0' + part % 10);
    } while (!amount_is_zero(a));
    if (digits[at] == '\0')
        digits[--at] = '0';
    struct amount_text t;
    memcpy(t.s, digits + at, sizeof digits - at);
    return t;
}

struct amount_text amount_human(struct amount a, unsigned decimals)
{
    assert(decimals <= AMOUNT_MAX_DECIMALS);
    const struct amount_text digits = amount_text(a);
    const size_t n = strlen(digits.s);
    const size_t whole = n > decimals ? n - decimals : 0, zeros = n < decimals ? decimals - n : 0;
    struct amount_text t;
    char *p = t.s;
    if (whole == 0)
        *p++ = '0';
    memcpy(p, digits.s, whole);
    p += whole;
    *p++ = '.';
    memset(p, '0', zeros);
    p += zeros;
    memcpy(p, digits.s + whole, n - whole);
    p += n - whole;
    while (p[-1] == '0')
        p--;
    if (p[-1] == '.')
        p--;
    *p = '\0';
    return t;
}

int amount_cmp(struct amount a, struct amount b)
{
    for (size_t i = COUNT(a.limb); i-- > 0;) {
        if (a.limb[i] != b.limb[i])
            return a.limb[i] < b.limb[i] ? -1 : 1;
    }
    return 0;
}

bool amount_is_zero(struct amount a)
{
    return (a.limb[0] | a.limb[1] | a.limb[2] | a.limb[3]) == 0;
}

bool amount_add(struct amount a, struct amount b, struct amount *ret)
{
    struct amount sum;
    bool carry = false;
    for (size_t i = 0; i < COUNT(a.limb); i++) {
        const u128 x = (u128)a.limb[i] + b.limb[i] + carry;
        sum.limb[i] = (uint64_t)x;
        carry = x >> 64 != 0;
    }
    if (carry)
        return false;
    *ret = sum;
    return true;
}

bool amount_sub(struct amount a, struct amount b, struct amount *ret)
{
    struct amount rest;
    bool borrow = false;
    for (size_t i = 0; i < COUNT(a.limb); i++) {
        const u128 x = (u128)a.limb[i] - b.limb[i] - borrow;
        rest.limb[i] = (uint64_t)x;
        borrow = x >> 64 != 0;
    }
    if (borrow)
        return false;
    *ret = rest;
    return true;
}

bool amount_u64(struct amount a, uint64_t *ret)
{
    if (a.limb[1] | a.limb[2] | a.limb[3])
        return false;
    *ret = a.limb[0];
    return true;
}

uint64_t amount_u64_cap(struct amount a)
{
    uint64_t v = UINT64_MAX;
    return amount_u64(a, &v) ? v : UINT64_MAX;
}

void amount_to_be(struct amount a, uint8_t ret[32])
{
    for (size_t i = 0; i < 32; i++)
        ret[31 - i] = (uint8_t)(a.limb[i / 8] >> 8 * (i % 8));
}

struct amount amount_from_be(const uint8_t be[32])
{
    struct amount a = AMOUNT_ZERO;
    for (size_t i = 0; i < 32; i++)
        a.limb[i / 8] |= (uint64_t)be[31 - i] << 8 * (i % 8);
    return a;
}
