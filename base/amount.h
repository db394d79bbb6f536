/* Amounts: unsigned 256-bit integers in a token's atomic units. A struct, so that + does not compile and no
 * amount meets a float or a JSON number. Every operation that can leave the range says so. */
#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"

struct amount { uint64_t limb[4]; }; /* limb[0] is the least significant; only amount.c looks inside */
struct amount_text { char s[80]; };  /* at most 78 digits */
#define AMOUNT_MAX_DECIMALS 77           /* of a token that amount_human can print; real ones have 18 or less */

#define AMOUNT_ZERO ((struct amount){ { 0, 0, 0, 0 } })
struct amount amount_of(uint64_t v);
/* "0" or digits without a leading zero, at most 2^256-1. No sign, space, exponent or hex. */
bool amount_read(const char *s, size_t n, struct amount *ret) MUST_CHECK;
struct amount_text amount_text(struct amount a);
/* Decimal with the token's decimals, no trailing zeros: (1500, 6) -> "0.0015". For people only. */
struct amount_text amount_human(struct amount a, unsigned decimals);
int amount_cmp(struct amount a, struct amount b);        /* -1, 0, 1 */
bool amount_is_zero(struct amount a);
bool amount_add(struct amount a, struct amount b, struct amount *ret) MUST_CHECK; /* false: overflow, ret untouched */
bool amount_sub(struct amount a, struct amount b, struct amount *ret) MUST_CHECK; /* false: below zero */
bool amount_u64(struct amount a, uint64_t *ret) MUST_CHECK;                       /* false: does not fit */
uint64_t amount_u64_cap(struct amount a);                /* UINT64_MAX where it does not fit */
void amount_to_be(struct amount a, uint8_t ret[32]);     /* big-endian, as the EVM has it */
struct amount amount_from_be(const uint8_t be[32]);

#endif
