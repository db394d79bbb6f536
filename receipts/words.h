/* Inside receipts/: amounts and states in words. */
#ifndef RECEIPTS_WORDS_H
#define RECEIPTS_WORDS_H

#include "base/json.h"
#include "receipts/receipts.h"

/* "0.01 USDC"; minor units where the token is not configured any more. Owned. */
char *words_amount(const char *minor, const struct receipt_links *l) MUST_CHECK;
/* The answer in one line: was I charged, once, and is it final? Owned. */
char *words_headline(const json_t *receipt, const struct receipt_links *l) MUST_CHECK;
/* How deep, how final. Owned. */
char *words_finality(const json_t *payment) MUST_CHECK;
const char *words_event(const char *event); /* of the timeline, in words */
const char *words_money(const char *state); /* of an authorization; NULL stays NULL */
const char *words_cause(const char *cause); /* why money is owed back */
const char *words_debt(const char *state);

#endif
