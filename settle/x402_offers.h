/* Inside settle/: the offer-receipt extension's signed offers of one tool, for a 402. */
#ifndef SETTLE_X402_OFFERS_H
#define SETTLE_X402_OFFERS_H

#include "settle/terms.h"

struct offers;
struct offers *offers_new(const struct terms *t, const char *public_url, const struct key *signer) MUST_CHECK;
void offers_free(struct offers *o);
/* A JSON array, one an accept, good for at least the tool's maxTimeoutSeconds. Until the next call. */
const char *offers_for(struct offers *o, struct slice target) MUST_CHECK;

#endif
