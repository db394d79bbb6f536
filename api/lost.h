/* A write whose answer leaves open what it did: what a person who looks into it must know of that answer. */
#ifndef API_LOST_H
#define API_LOST_H

#include "api/upstream.h"

/* Why its outcome is unknown. */
char *lost_fact(const struct work *w) MUST_CHECK;
/* What the answer's headers call the thing that may have been done: "Location: /orders/7, X-Request-Id: 42"; NULL: nothing. */
char *lost_theirs(const struct work *w) MUST_CHECK;

#endif
