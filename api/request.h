/* A request, and the only ways it can go on.
 *
 * A request is a small phase machine on one event loop. A phase is a function that ends in exactly one of
 * three calls, whose result it must return: reply, wait, park. So replying and going on is not possible.
 *
 *   request_reply   the answer; the request is over
 *   request_wait    something asynchronous is under way and will call request_go once, with the next phase
 *   request_park    sleep until the topic is woken or the deadline has come; both run `next`, which looks again
 *
 * While a request waits or is parked its connection is suspended: it costs no thread, and the client's leaving is
 * not seen until the reply. Everything a phase keeps lives in request_memory and goes with the request. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include <jansson.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/fetch.h"

struct request;
struct step { int kind; };                               /* made only by the three calls below */
typedef struct step phase(struct request *rq);

/* What came in. Slices live as long as the request. */
const char *request_method(const struct request *rq);
struct slice request_target(const struct request *rq);   /* raw, as on the request line: path[?query] */
struct slice request_path(const struct request *rq);     /* raw, undecoded */
struct slice request_query(const struct request *rq);    /* raw, behind the ?; empty if none */
struct slice request_body(const struct request *rq);
size_t request_header(const struct request *rq, const char *name, struct slice *ret_first); /* how often it was sent */
typedef void header_fn(void *arg, struct slice name, struct slice value);
void request_each_header(const struct request *rq, header_fn *fn, void *arg);
const char *request_client(const struct request *rq);    /* address text, behind trusted proxies the forwarded one */
const char *request_id(const struct request *rq);        /* 16 hex digits, for logs and problem documents */
int64_t request_began_ms(const struct request *rq);      /* monotonic */
void *request_app(const struct request *rq);             /* what server_new was given */
void *request_memory(struct request *rq, size_t size);   /* zeroed; the first call makes it, later ones return it */
void request_on_end(struct request *rq, void (*fn)(struct request *rq, bool delivered)); /* before the memory goes;
                                                            delivered: the last byte went to the socket without error */

/* The answer. Building calls copy what they are given. CORS headers, Date and the like are the server's. */
struct reply;
struct reply *reply_new(int status) MUST_CHECK;
void reply_header(struct reply *r, const char *name, const char *value);         /* no CR or LF passes */
void reply_header_slice(struct reply *r, struct slice name, struct slice value);
void reply_body(struct reply *r, const char *type, struct slice body);           /* copied */
void reply_body_take(struct reply *r, const char *type, struct buf *body);       /* taken; body becomes empty */
void reply_json(struct reply *r, const char *type, const json_t *body);          /* type NULL: application/json */
/* RFC 9457: type, title, status, detail, code, retry, money, instance; `more` (stolen, may be NULL) is merged in.
 * detail NULL: the registry's. Sets Cache-Control: no-store, and Retry-After where more has retry_after. */
struct reply *reply_problem(const struct request *rq, enum err e, const char *detail, json_t *more) MUST_CHECK;

bool reply_is_success(const struct reply *r);            /* 2xx */
struct step request_reply(struct request *rq, struct reply *r) MUST_CHECK;       /* takes r */
struct step request_wait(struct request *rq) MUST_CHECK;
void request_go(struct request *rq, phase *next);        /* once for each request_wait; may come before it returns */
struct topic { uint8_t b[16]; };
struct step request_park(struct request *rq, struct topic t, int64_t deadline_ms, phase *next) MUST_CHECK;

#endif
