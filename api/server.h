/* The HTTP server: libmicrohttpd driven from our own loop, and nothing else calls it.
 *
 * It refuses what the library lets through and what could be read in two ways: Content-Length with
 * Transfer-Encoding, two Content-Lengths, no or two Hosts, white space before a colon, NUL or control bytes in
 * the target, folded lines, bare line feeds, a body over the limit (by Content-Length at once, chunked after a bounded
 * read). OPTIONS is answered here and reaches no phase. */
#ifndef API_SERVER_H
#define API_SERVER_H

#include "api/request.h"
#include "base/loop.h"

struct server;

struct server_app {
    /* Called with the header section complete and before the body: the most bytes of body to read. */
    size_t (*body_limit)(const struct request *rq);
    phase *first;                    /* called with the whole body there */
    void *data;                      /* request_app */
};
struct server_options {
    const char *listen;              /* host:port, [v6]:port */
    unsigned max_connections;
    int64_t idle_ms;                 /* a connection on which nothing moves is closed after this */
    int64_t read_ms;                 /* a request must be in within idle_ms and this from the last answer; 0: 20,000 */
    size_t pool_bytes;               /* per connection that was served; five eighths bound a request's header section,
                                        the rest is for the answer's: 24,576 */
    const char *const *trusted_proxies; /* addresses or prefixes: 10.0.0.0/8 */
    size_t trusted_proxy_count;
};

/* NULL: why says. The server hooks into the loop for good: after server_free the loop must not turn any more. */
struct server *server_new(struct loop *l, const struct server_options *o, const struct server_app *app, char *why,
                          size_t why_size) MUST_CHECK;
unsigned server_port(const struct server *s);            /* the one that was bound: for host:0 */
void server_wake(struct server *s, struct topic t);      /* every request parked on t runs its next phase */
void server_wake_all(struct server *s);                  /* after a LISTEN connection was remade */
/* Stops accepting, wakes the parked and turns the loop until all are answered or the deadline came. What arrives
 * meanwhile on open connections gets 503 shutting_down. */
void server_drain(struct server *s, int64_t deadline_ms);
/* Closes every connection. A request that still waits is freed too: what it waits for must not call it any more. */
void server_free(struct server *s);
bool server_draining(const struct server *s);
struct server_stats { uint64_t requests; unsigned connections, parked, waiting; };
struct server_stats server_stats(const struct server *s);

#endif
