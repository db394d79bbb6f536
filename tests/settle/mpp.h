/* What the tests of MPP share: the vectors' gateway, its one price, and parts of their cases. */
#ifndef TESTS_SETTLE_MPP_H
#define TESTS_SETTLE_MPP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "settle/mpp_credential.h"
#include "settle/mpp_proof.h"

extern json_t *vectors;
extern struct price mpp_price;
extern struct slice mpp_secret;
extern const char *mpp_realm;

int mpp_start(void **state); /* cmocka group setup */
int mpp_stop(void **state);

const json_t *mpp_case(const char *name);
struct key mpp_key(const char *who); /* merchant, payer, sponsor */
/* A case's credential as JSON text. Owned. */
char *mpp_credential_text(const char *name) MUST_CHECK;
/* Read as if it had been sent. ret is the caller's. */
enum mpp_fault mpp_read_text(const char *json, struct mpp_credential *ret, const char **ret_detail) MUST_CHECK;
/* text with its one occurrence of find replaced; fails the test if it is not there exactly once. Owned. */
char *mpp_replaced(const char *text, const char *find, const char *put) MUST_CHECK;

/* Random numbers of a fixed seed, and a few random changes to a text. */
size_t mpp_below(size_t n);
void mpp_mutate(struct buf *b);

#endif
