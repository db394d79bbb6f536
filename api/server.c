/* The daemon on our loop.
 *
 * libmicrohttpd has an epoll descriptor of its own, which is one watch in ours. All it does happens in MHD_run, which
 * only our hook before each sleep calls: when that descriptor was ready, when a request was resumed (the library
 * does not tell itself), or when its timeout is due. Driven like this its inner loop never blocks, so that it does not
 * stall at 128, 256, ... ready connections as its own threads do. */
#include "api/server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http.h"
#include "base/clock.h"
#include "base/log.h"

enum { BACKLOG = 1024, READ_MS = 20000, SPARE_FDS = 512 };

/* ---- the hook ---- */

/* As many as there are now; what they make ready comes with the next turn. */
static void run_ready(struct server *s)
{
    struct link now;
    if (link_alone(&s->ready))
        return;
    now = s->ready;                                      /* the whole ring changes its head */
    now.prev->next = now.next->prev = &now;
    link_init(&s->ready);
    while (!link_alone(&now)) {
        struct request *rq = OWNER_OF(struct request, place, now.next);
        link_del(&rq->place);
        request_run(rq, rq->next);
        if (rq->stage == STAGE_REPLIED) {
            MHD_resume_connection(rq->connection);
            s->run_due = true;
        }
    }
}

static int64_t library_wait_ms(const struct server *s)
{
    MHD_UNSIGNED_LONG_LONG ms;
    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
        return -1;
    return ms < 60000 ? (int64_t)ms : 60000;
}

static int64_t before_sleep(void *arg)
{
    struct server *s = arg;
    run_ready(s);
    if (s->run_due || library_wait_ms(s) == 0) {
        s->run_due = false;
        MHD_run(s->daemon);
    }
    return s->run_due ? 0 : library_wait_ms(s);
}

static void socket_ready(void *arg, uint32_t events)
{
    (void)events;
    struct server *s = arg;
    s->run_due = true;
}

/* ---- the listening socket ---- */

static int fail(char *why, size_t why_size, const char *listen_on, const char *what)
{
    snprintf(why, why_size, "cannot listen on %s: %s", listen_on, what);
    return -1;
}

static int bind_one(const struct addrinfo *a)
{
    const int on = 1;
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int e = errno;
    close(fd);
    errno = e;
    return -1;
}

/* "host:port" or "[v6]:port"; the host may be empty for every address. */
static int listen_on(const char *where, char *why, size_t why_size)
{
    OWNED char *text = str_copy(where);
    char *colon = strrchr(text, ':'), *host = text;
    if (!colon)
        return fail(why, why_size, where, "write host:port");
    *colon = '\0';
    if (host[0] == '[' && colon[-1] == ']') {
        host++;
        colon[-1] = '\0';
    } else if (strchr(host, ':')) {
        return fail(why, why_size, where, "an IPv6 address stands in brackets");
    }
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found;
    const int e = getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, &found);
    if (e != 0)
        return fail(why, why_size, where, gai_strerror(e));
    int fd = -1;
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
        fd = bind_one(a);
    if (fd < 0)
        fail(why, why_size, where, strerror(errno));
    freeaddrinfo(found);
    return fd;
}

/* A descriptor for each connection, and some for everything else. */
static void raise_fd_limit(unsigned connections)
{
    struct rlimit r;
    const rlim_t want = (rlim_t)connections + SPARE_FDS;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= want)
        return;
    r.rlim_cur = r.rlim_max < want ? r.rlim_max : want;
    if (setrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur < want)
        log_warn("few_descriptors", "limit=%llu wanted=%llu", (unsigned long long)r.rlim_cur, (unsigned long long)want);
}

/* ---- life ---- */

static struct server *server_of(struct loop *l, const struct server_options *o, const struct server_app *app)
{
    struct server *s = mem_new(sizeof *s);
    s->loop = l;
    s->app = *app;
    s->listen_fd = -1;
    s->pool_bytes = o->pool_bytes;
    s->idle_ms = o->idle_ms;
    s->read_ms = o->read_ms ? o->read_ms : READ_MS;
    s->topics = topics_new();
    bytes_random(&s->id_key, sizeof s->id_key);
    link_init(&s->ready);
    link_init(&s->live);
    link_init(&s->reading);
    link_init(&s->lingering);
    return s;
}

struct server *server_new(struct loop *l, const struct server_options *o, const struct server_app *app, char *why,
                          size_t why_size)
{
    struct server *s = server_of(l, o, app);
    const char *bad;
    if (!trust_read(&s->trust, o->trusted_proxies, o->trusted_proxy_count, &bad)) {
        snprintf(why, why_size, "trusted proxy %s is neither an address nor a prefix", bad);
        server_free(s);
        return NULL;
    }
    raise_fd_limit(o->max_connections);
    const int fd = listen_on(o->listen, why, why_size);
    if (fd < 0) {
        server_free(s);
        return NULL;
    }
    s->daemon = connection_daemon(s, fd, o->max_connections);
    if (!s->daemon)
        abort();
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    s->watch = loop_watch(l, info->epoll_fd, EPOLLIN, socket_ready, s);
    s->run_due = true;
    loop_prepare(l, before_sleep, s);
    return s;
}

unsigned server_port(const struct server *s)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    char port[8];
    if (getsockname(info->listen_fd, (struct sockaddr *)&a, &n) != 0 ||
        getnameinfo((struct sockaddr *)&a, n, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0)
        abort();
    return (unsigned)strtoul(port, NULL, 10);
}

void server_wake(struct server *s, struct topic t)
{
    topics_wake(s->topics, &t);
}

void server_wake_all(struct server *s)
{
    topics_wake(s->topics, NULL);
}

bool server_draining(const struct server *s)
{
    return s->draining;
}

struct server_stats server_stats(const struct server *s)
{
    struct server_stats now = s->stats;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    now.connections = info->num_connections;
    return now;
}

/* Requests whose head or body is still coming do not hold a drain up: nothing has begun for them. */
static bool busy(const struct server *s)
{
    for (struct link *l = s->live.next; l != &s->live; l = l->next)
        if (OWNER_OF(struct request, live, l)->body_read)
            return true;
    return false;
}

void server_drain(struct server *s, int64_t deadline_ms)
{
    s->draining = true;
    s->listen_fd = MHD_quiesce_daemon(s->daemon);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    server_wake_all(s);
    for (;;) {
        const int64_t left = deadline_ms - clock_mono_ms();
        if (left <= 0 || !busy(s))
            return;
        loop_turn(s->loop, left < 50 ? left : 50);
    }
}

/* The library wants every connection resumed before it stops. */
static void resume_all(struct server *s)
{
    for (struct link *l = s->live.next; l != &s->live; l = l->next) {
        struct request *rq = OWNER_OF(struct request, live, l);
        if (rq->suspended && rq->stage != STAGE_REPLIED)
            MHD_resume_connection(rq->connection);
    }
}

void server_free(struct server *s)
{
    if (!s)
        return;
    if (s->daemon) {
        watch_done(&s->watch);
        resume_all(s);
        MHD_stop_daemon(s->daemon);
    }
    linger_stop(s);
    timer_clear(s->loop, &s->patience);
    timer_clear(s->loop, &s->kick);
    topics_free(s->topics);
    trust_done(&s->trust);
    free(s);
}
