/* An answer on its way into the database and back: sealed there, and whether it may be given again. */
#ifndef API_ANSWERS_H
#define API_ANSWERS_H

#include "api/gateway.h"

struct kept { struct buf headers, body; struct order_answer answer; }; /* answer points into the two buffers */
void kept_done(struct kept *k);
#define KEPT SCOPE(kept_done) struct kept
void answer_seal(const struct gateway *g, const struct tool *tool, const struct order_id *order, const struct work *w, struct kept *ret);
/* False: it cannot be read, since it was altered or sealed under another key file; said in the log. */
bool answer_open(const struct gateway *g, const struct order_id *order, int status, struct slice headers, struct slice body,
                 struct work *ret) MUST_CHECK;
/* May it be given to the same wallet again? Not a failure, nor what is said to one request only or varies by more than the key. */
bool answer_repeatable(const struct tool *tool, const struct work *w) MUST_CHECK;

#endif
