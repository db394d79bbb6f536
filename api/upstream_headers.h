/* Which headers travel to the seller's API and back. Payment headers, what belongs to one connection only, and what
 * we say ourselves do not: a client can neither claim to be a payer nor an upstream to have issued a receipt. */
#ifndef API_UPSTREAM_HEADERS_H
#define API_UPSTREAM_HEADERS_H

#include "api/upstream.h"

bool traceparent_ok(struct slice s);

/* Headers to send, whose text lives in the request or in `text`. */
struct outgoing {
    struct header *list;
    size_t count;
    char trace[56];
};
void outgoing_make(struct outgoing *o, const struct upstream_call *c); /* o must not move while it is used */
void outgoing_done(struct outgoing *o);

/* [[name, value], ...]; Content-Length only of a HEAD's answer, where it says what a GET would get. */
json_t *incoming_headers(const struct fetch_answer *a, bool head) MUST_CHECK;

#endif
