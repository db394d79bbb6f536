/* What the tests of settle/ sell: one tool, priced as the official vectors (payments.json) have it, on three networks.
 */
#ifndef TESTS_SETTLE_SALE_H
#define TESTS_SETTLE_SALE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "settle/x402.h"

enum { NET_SEPOLIA, NET_LOCAL /* has no v1 name */, NET_BASE };
enum { PRICE_SEPOLIA, PRICE_LOCAL, PRICE_BASE, PRICE_UTF8 /* a token called USD₮0 */, PRICE_COUNT };

extern struct net nets[3];
extern struct price prices[PRICE_COUNT];
extern struct terms terms;
extern const struct quote_key quote_key;
extern const struct hash32 request;
extern const struct x402_in in;
extern json_t *vectors;
extern int64_t now; /* the vectors' clock */

int sale_start(void **state); /* cmocka group setup */
int sale_stop(void **state);

struct quote_text quote_for(const struct price *price, int64_t expires);
/* A vector's payment as JSON text; v2: with a good quote in accepted.extra. Owned. */
char *payment_text(const char *vector) MUST_CHECK;
const char *vector_signature(const char *vector);
/* text with its one occurrence of find replaced; fails the test if it is not there exactly once. Owned. */
char *replaced(const char *text, const char *find, const char *put) MUST_CHECK;

#define V2 "v2-exact-eip3009-84532"
#define V1 "v1-exact-84532"

/* The payment that was read last, and what was said of it. */
extern struct payment payment;
extern enum reason reason;
extern const char *detail;
enum err read_raw(struct slice header, int version);
enum err read_bytes(const char *json, size_t n, int version); /* as base64 */
enum err read_text(const char *json, int version);

#endif
