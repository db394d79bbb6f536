/* The seller's API: one call, with everything that must or must not travel.
 *
 * Goes out: the client's method, the raw target that was matched, its end-to-end headers less payment headers and
 * those we set: Host of the upstream, Idempotency-Key: <order id>, X-Payer, traceparent (the client's, or a new one),
 * X-Forwarded-For, X-Request-Id. Comes back: status, end-to-end headers less payment and receipt headers, body. A call
 * that must not be repeated goes over a fresh connection. */
#ifndef API_UPSTREAM_H
#define API_UPSTREAM_H

#include "api/config.h"
#include "api/request.h"

enum work_end {
    WORK_DONE,          /* an answer below 400 */
    WORK_REFUSED,       /* the upstream's 4xx: its answer is passed on, nothing is charged */
    WORK_FAILED,        /* a read's 5xx: likewise */
    WORK_UNREACHED,     /* nothing was sent */
    WORK_TIMEOUT,       /* a read that gave no answer in time, or was cut */
    WORK_TOO_LARGE,     /* a read's answer over the limit */
    WORK_LOST,          /* a write's 5xx, cut, oversized or late answer: it may have been carried out */
};
struct work {
    enum work_end end;
    int status;                      /* of the upstream's answer, 0 if none */
    json_t *headers;                 /* [[name, value], ...] to pass on; owned */
    struct buf body;
    char *why;                       /* there is no answer; owned */
};
void work_done(struct work *w);

struct upstream_call {
    const struct tool *tool;
    const struct request *rq;
    const char *order_id;            /* NULL on a free route */
    const char *payer;               /* 0x..., NULL on a free route */
    int64_t deadline_ms;
};
/* fn gets the work once, not from inside; it owns w's contents. */
typedef void work_fn(void *arg, struct work *w);
void upstream_start(struct fetcher *f, const struct upstream_call *c, work_fn *fn, void *arg);

#endif
