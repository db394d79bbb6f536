/* HTTP requests out, on the loop (libcurl multi).
 *
 * Never obeys a proxy from the environment, never follows a redirect, never rewrites a path, never re-sends
 * by itself a request marked `once` (it goes over a fresh connection, which is not used again). Every
 * request has a deadline on the monotonic clock and a cap on its answer. */
#ifndef BASE_FETCH_H
#define BASE_FETCH_H

#include "base/bytes.h"
#include "base/loop.h"

struct fetcher;
struct fetch;

struct header { struct slice name, value; };

enum fetch_end {
    FETCH_ANSWERED,  /* a complete answer, whatever its status */
    FETCH_NOT_SENT,  /* no connection was made: nothing reached the other side */
    FETCH_LOST,      /* the request may have been read: reply cut, timed out, or not HTTP */
    FETCH_TOO_LARGE, /* the answer passed max_answer and was dropped */
};

struct fetch_request {
    const char *method, *url;
    const struct header *headers;
    size_t header_count;
    struct slice body;               /* p NULL: none */
    int64_t deadline_ms;             /* monotonic, whole exchange */
    int64_t connect_ms;              /* longest time to connect; 0: 5,000 */
    size_t max_answer;               /* bytes of body */
    bool once;
};

struct fetch_answer {
    enum fetch_end end;
    int status;
    const struct header *headers;    /* of the final answer only, never of a 1xx */
    size_t header_count;
    struct slice body;
    const char *why;                 /* for logs, when not answered */
};

/* The answer lives only during the call. It is called exactly once unless fetch_cancel was called. Never from
 * inside fetch_start. */
typedef void fetch_done_fn(void *arg, const struct fetch_answer *answer);

struct fetcher *fetcher_new(struct loop *l) MUST_CHECK;
void fetcher_free(struct fetcher *f);                    /* cancels what is under way; not from a callback */
/* Copies rq. A header with CR, LF or NUL in it ends as FETCH_NOT_SENT. The handle is good until the callback begins. */
struct fetch *fetch_start(struct fetcher *f, const struct fetch_request *rq, fetch_done_fn *fn, void *arg);
void fetch_cancel(struct fetch *x);                      /* no callback any more */

const char *fetch_header(const struct fetch_answer *a, const char *name, size_t *ret_n); /* NULL: none; case-blind */

#endif
