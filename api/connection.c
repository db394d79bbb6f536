/* What libmicrohttpd calls.
 *
 * Its order: the request line (a request is made here, from the raw target: the url that comes later is decoded and cut
 * at %00), the head, the body in pieces, its end, and at last the completion, which frees the request. A reply may be
 * queued at the head (the body is then not read and the connection closes) or at the end, not in between. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/http.h"
#include "base/clock.h"
#include "base/log.h"

/* How much of a chunked body over its limit is read and thrown away, so that the client gets to see the 413. */
enum { SWALLOW_BYTES = 1024 * 1024 };

/* ---- patience: a connection owes us a whole request within idle_ms + read_ms of its last answer ---- */

/* The library's own timeout starts again with each byte, which a client may send one a minute. */
static void out_of_patience(void *arg)
{
    struct server *s = arg;
    const int64_t allowed = s->idle_ms + s->read_ms, now = clock_mono_ms();
    while (!link_alone(&s->reading)) {
        struct connection *c = OWNER_OF(struct connection, reading, s->reading.next);
        if (c->since_ms + allowed > now) {
            timer_set(s->loop, &s->patience, c->since_ms + allowed, out_of_patience, s);
            return;
        }
        link_del(&c->reading);
        shutdown(c->fd, SHUT_RDWR);                      /* the library sees the end and cleans up */
    }
}

static void expect_request(struct server *s, struct connection *c)
{
    c->since_ms = clock_mono_ms();
    link_del(&c->reading);
    link_append(&s->reading, &c->reading);
    if (!timer_is_set(&s->patience))
        timer_set(s->loop, &s->patience, c->since_ms + s->idle_ms + s->read_ms, out_of_patience, s);
}

static const union MHD_ConnectionInfo *info_of(struct MHD_Connection *m, enum MHD_ConnectionInfoType what)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(m, what);
    if (!info)
        abort();
    return info;
}

static struct connection *connection_of(struct MHD_Connection *m)
{
    return info_of(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void connection_changed(void *arg, struct MHD_Connection *m, void **context,
                               enum MHD_ConnectionNotificationCode what)
{
    struct server *s = arg;
    struct connection *c = *context;
    switch (what) {
    case MHD_CONNECTION_NOTIFY_STARTED:
        *context = c = mem_new(sizeof *c);
        link_init(&c->reading);
        c->fd = info_of(m, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        peer_read(&s->trust, info_of(m, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr, &c->peer);
        expect_request(s, c);
        break;
    case MHD_CONNECTION_NOTIFY_CLOSED:
        link_del(&c->reading);
        free(c);
        break;
    }
}

/* ---- the request line ---- */

/* Unique in this process, and not to be guessed from another: a mixed counter behind a random start (splitmix64). */
static void give_id(struct server *s, char ret[17])
{
    uint64_t z = s->id_key + ++s->id_count * 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    hex_write_bare(ret, &z, sizeof z);
}

static void *line_came(void *arg, const char *uri, struct MHD_Connection *m)
{
    struct server *s = arg;
    const size_t n = strlen(uri);
    struct request *rq = mem_new(sizeof *rq + n + 1);
    const char *query = memchr(uri, '?', n);
    memcpy(rq->target, uri, n);
    rq->target_n = n;
    rq->path_n = query ? (size_t)(query - uri) : n;
    rq->raw = uri;
    rq->server = s;
    rq->connection = m;
    rq->began_ms = clock_mono_ms();
    rq->client = connection_of(m)->peer.text;
    give_id(s, rq->id);
    link_init(&rq->place);
    link_append(&s->live, &rq->live);
    s->stats.requests++;
    return rq;
}

/* ---- head, body, end ---- */

static enum MHD_Result refuse(struct request *rq, enum err e, const char *detail)
{
    log_info("refused", "request=%s client=%s code=%s", rq->id, rq->client, err_info(e)->code);
    rq->stage = STAGE_REPLIED;
    rq->reply = reply_problem(rq, e, detail, NULL);
    return reply_send(rq);
}

static enum MHD_Result head_came(struct request *rq, const char *version)
{
    uint64_t length;
    const struct refusal no = strict_judge(rq, version, &length);
    rq->client = client_of(rq, &connection_of(rq->connection)->peer);
    if (no.err != ERR_NONE)
        return refuse(rq, no.err, no.detail);
    rq->stage = STAGE_BODY;
    rq->body_limit = rq->server->app.body_limit(rq);
    if (length > rq->body_limit)
        return refuse(rq, ERR_BODY_TOO_LARGE, NULL);
    return MHD_YES;
}

static enum MHD_Result body_came(struct request *rq, const char *p, size_t n)
{
    if (n <= rq->body_limit - rq->body.n && !rq->body_too_large) {
        buf_add(&rq->body, p, n);
        return MHD_YES;
    }
    rq->body_too_large = true;
    buf_done(&rq->body);
    rq->body_dropped += n;
    return rq->body_dropped <= SWALLOW_BYTES ? MHD_YES : MHD_NO;
}

static enum MHD_Result end_came(struct request *rq)
{
    rq->body_read = true;
    link_del(&connection_of(rq->connection)->reading);
    if (rq->body_too_large)
        return refuse(rq, ERR_BODY_TOO_LARGE, NULL);
    if (strcmp(rq->method, "OPTIONS") == 0) {
        rq->stage = STAGE_REPLIED;
        rq->reply = cors_preflight(rq);
        return reply_send(rq);
    }
    if (rq->server->draining)
        return refuse(rq, ERR_SHUTTING_DOWN, NULL);

    request_run(rq, rq->server->app.first);
    if (rq->stage == STAGE_REPLIED)
        return reply_send(rq);
    rq->suspended = true;
    MHD_suspend_connection(rq->connection);
    return MHD_YES;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *m, const char *url, const char *method,
                              const char *version, const char *body, size_t *body_n, void **context)
{
    (void)arg, (void)m, (void)url;
    struct request *rq = *context;
    switch (rq->stage) {
    case STAGE_HEAD:
        rq->method = method;
        return head_came(rq, version);
    case STAGE_BODY:
        if (*body_n == 0)
            return end_came(rq);
        const size_t n = *body_n;
        *body_n = 0;
        return body_came(rq, body, n);
    case STAGE_REPLIED:                                  /* resumed */
        return reply_send(rq);
    case STAGE_RUNNING:
    case STAGE_WAITING:
    case STAGE_PARKED:
    case STAGE_READY:
        break;
    }
    return MHD_NO;                                       /* resumed without a reply: the server stops */
}

/* ---- the end ---- */

static bool client_left(enum MHD_RequestTerminationCode how)
{
    return how == MHD_REQUEST_TERMINATED_CLIENT_ABORT || how == MHD_REQUEST_TERMINATED_READ_ERROR;
}

static void request_ended(void *arg, struct MHD_Connection *m, void **context, enum MHD_RequestTerminationCode how)
{
    struct server *s = arg;
    struct request *rq = *context;
    struct connection *c = connection_of(m);
    if (!rq->body_read && !client_left(how))
        linger(s, c->fd);
    if (rq->on_end)
        rq->on_end(rq, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    request_free(rq);
    *context = NULL;
    expect_request(s, c);
}

/* ---- the daemon ---- */

static void library_says(void *arg, const char *fmt, va_list args)
{
    (void)arg;
    char text[300];
    vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = '\0';
    log_debug("libmicrohttpd", "says=%s", text);
}

struct MHD_Daemon *connection_daemon(struct server *s, int listen_fd, unsigned max_connections)
{
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(flags, 0, NULL, NULL, handle, s,
                            MHD_OPTION_EXTERNAL_LOGGER, library_says, NULL,
                            MHD_OPTION_LISTEN_SOCKET, listen_fd,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->pool_bytes,
                            MHD_OPTION_CONNECTION_LIMIT, max_connections,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((s->idle_ms + 999) / 1000),
                            MHD_OPTION_URI_LOG_CALLBACK, line_came, s,
                            MHD_OPTION_NOTIFY_CONNECTION, connection_changed, s,
                            MHD_OPTION_NOTIFY_COMPLETED, request_ended, s, MHD_OPTION_END);
}
