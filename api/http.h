/* The inside of the HTTP half: what its files share and nobody else includes.
 *
 *   server.c      the daemon, the loop hook, drain        connection.c  libmicrohttpd's callbacks
 *   request.c     phases and what they may ask            topics.c      the parked
 *   strict.c      what is refused before the body         peer.c        who the client is
 *   reply.c       the one way out                         cors.c        browsers
 *   linger.c      closing without losing the refusal
 *
 * A request's life: its line is read (STAGE_HEAD), the head is judged and the body comes (STAGE_BODY), phases run
 * until one waits or parks, something makes it STAGE_READY again, and at the end it is STAGE_REPLIED. libmicrohttpd
 * tells us when it is over, and only then is it freed. */
#ifndef API_HTTP_H
#define API_HTTP_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <stddef.h>

#include "api/server.h"

/* ---- intrusive rings ---- */

struct link { struct link *prev, *next; };

static inline void link_init(struct link *l)
{
    l->prev = l->next = l;
}
static inline bool link_alone(const struct link *l)
{
    return l->next == l;
}
static inline void link_del(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    link_init(l);
}
static inline void link_append(struct link *ring, struct link *l)
{
    l->prev = ring->prev;
    l->next = ring;
    ring->prev->next = l;
    ring->prev = l;
}
#define OWNER_OF(type, member, link_) ((type *)(void *)((char *)(link_)-offsetof(type, member)))

/* ---- peers ---- */

struct peer {
    char text[INET6_ADDRSTRLEN];
    bool trusted;                                        /* its X-Forwarded-For is believed */
};
struct network_prefix { struct in6_addr address; unsigned bits; }; /* IPv4 as ::ffff:a.b.c.d */
struct trust { struct network_prefix *list; size_t count; };

bool trust_read(struct trust *t, const char *const *texts, size_t count, const char **ret_bad) MUST_CHECK;
void trust_done(struct trust *t);
void peer_read(const struct trust *t, const struct sockaddr *sa, struct peer *ret);

/* ---- the server ---- */

struct topics;
struct topics *topics_new(void) MUST_CHECK;
void topics_free(struct topics *t);

struct server {
    struct loop *loop;
    struct server_app app;
    struct MHD_Daemon *daemon;
    struct watch *watch;                                 /* the daemon's epoll descriptor */
    int listen_fd;                                       /* ours again after the daemon was told to accept no more */
    bool run_due;                                        /* the daemon has something to do */
    bool draining;
    size_t pool_bytes;
    int64_t idle_ms, read_ms;
    struct trust trust;
    struct topics *topics;
    struct link ready;                                   /* requests whose next phase is due */
    struct timer kick;                                   /* no sleep while there are any */
    struct link live;                                    /* all requests */
    struct link reading;                                 /* connections that owe us a whole request, oldest first */
    struct timer patience;
    struct link lingering;
    unsigned lingering_count;
    uint64_t id_key, id_count;
    struct server_stats stats;
};

/* ---- a connection ---- */

struct connection {
    struct link reading;
    int64_t since_ms;                                    /* connected, or answered last */
    int fd;
    struct peer peer;
};

/* ---- a request ---- */

enum stage { STAGE_HEAD, STAGE_BODY, STAGE_RUNNING, STAGE_WAITING, STAGE_PARKED, STAGE_READY, STAGE_REPLIED };

struct request {
    struct link live;
    struct link place;                                   /* in `ready`, or among the parked */
    struct server *server;
    struct MHD_Connection *connection;
    const char *method;
    const char *raw;                                     /* where the target lay in the library's buffer */
    int64_t began_ms;
    enum stage stage;
    bool suspended;
    bool body_read;                                      /* nothing of it is left on the wire */
    bool body_too_large;
    struct header *headers;
    size_t header_count;
    size_t head_bytes;                                   /* of the library's pool, taken by the request's head */
    size_t body_limit, body_dropped;
    struct buf body;
    phase *next;
    struct reply *reply;
    struct topic topic;
    struct timer deadline;
    void *memory;
    void (*on_end)(struct request *rq, bool delivered);
    const char *client;
    char forwarded[INET6_ADDRSTRLEN];
    char id[17];
    size_t path_n, target_n;
    char target[];
};

void request_run(struct request *rq, phase *p);          /* until it replies, waits or parks */
void request_ready(struct request *rq);                  /* its `next` runs before the loop sleeps */
void request_free(struct request *rq);

void topics_park(struct request *rq);
void topics_wake(struct topics *ts, const struct topic *t); /* NULL: all */

/* ---- judging a head ---- */

struct refusal { enum err err; const char *detail; };    /* err NONE: acceptable */
/* Also fills rq->headers. raw_method and raw_version lie in the library's buffer. *ret_length: Content-Length, or 0. */
struct refusal strict_judge(struct request *rq, const char *raw_version, uint64_t *ret_length) MUST_CHECK;
bool is_token(struct slice s);                           /* RFC 9110: not empty, tchar only */
bool name_is(struct slice name, const char *s);          /* header names: case-blind */
const char *client_of(struct request *rq, const struct peer *peer);

/* ---- answering ---- */

enum MHD_Result reply_send(struct request *rq);          /* rq->reply goes to the library; frees it */
void reply_free(struct reply *r);
struct reply *cors_preflight(const struct request *rq) MUST_CHECK;
extern const char cors_exposed[];

/* ---- libmicrohttpd's side ---- */

struct MHD_Daemon *connection_daemon(struct server *s, int listen_fd, unsigned max_connections) MUST_CHECK;
void linger(struct server *s, int fd);                   /* keeps a copy open for a moment: our last answer arrives */
void linger_stop(struct server *s);

#endif
