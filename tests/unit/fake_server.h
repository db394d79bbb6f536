/* An HTTP server for tests, on the loop of the test. What it answers, and how badly, a function decides. */
#ifndef TESTS_UNIT_FAKE_SERVER_H
#define TESTS_UNIT_FAKE_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/loop.h"

enum fake_then { FAKE_KEEP, FAKE_CLOSE, FAKE_HANG };
/* request: head and body as they came; what is written to reply is sent as it is. */
typedef enum fake_then fake_fn(void *arg, struct slice request, struct buf *reply);

struct fake_conn {
    struct fake *fake;
    struct fake_conn *next;
    int fd;
    struct watch *watch;
    struct buf in;
};

struct fake {
    struct loop *loop;
    int fd;
    struct watch *watch;
    unsigned port, connections, requests;
    fake_fn *fn;
    void *arg;
    struct fake_conn *conns;
    char url[64];
};

static inline void fake_conn_close(struct fake_conn *c)
{
    if (c->fd < 0)
        return;
    watch_done(&c->watch);
    close(c->fd);
    c->fd = -1;
}

static inline size_t fake_request_size(const struct buf *in)
{
    const char *end = in->n ? strstr(in->p, "\r\n\r\n") : NULL;
    if (!end)
        return 0;
    const char *length = strcasestr(in->p, "\r\nContent-Length:");
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    size_t size = (size_t)(end + 4 - in->p) + body;
    return in->n >= size ? size : 0;
}

static inline void fake_conn_ready(void *arg, uint32_t events)
{
    (void)events;
    struct fake_conn *c = arg;
    char chunk[65536];
    ssize_t n = read(c->fd, chunk, sizeof chunk);
    if (n <= 0) {
        fake_conn_close(c);
        return;
    }
    buf_add(&c->in, chunk, (size_t)n);
    size_t size = fake_request_size(&c->in);
    if (size == 0)
        return;
    BUF reply = { 0 };
    c->fake->requests++;
    enum fake_then then = c->fake->fn(c->fake->arg, (struct slice){ c->in.p, size }, &reply);
    c->in.n = 0;
    if (reply.n && send(c->fd, reply.p, reply.n, MSG_NOSIGNAL) < 0)
        abort();
    if (then == FAKE_CLOSE)
        fake_conn_close(c);
}

static inline void fake_accept(void *arg, uint32_t events)
{
    (void)events;
    struct fake *f = arg;
    struct fake_conn *c = mem_new(sizeof *c);
    c->fake = f;
    c->fd = accept(f->fd, NULL, NULL);
    c->watch = loop_watch(f->loop, c->fd, EPOLLIN, fake_conn_ready, c);
    c->next = f->conns;
    f->conns = c;
    f->connections++;
}

static inline struct fake *fake_new(struct loop *l, fake_fn *fn, void *arg)
{
    struct fake *f = mem_new(sizeof *f);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    *f = (struct fake){ .loop = l, .fn = fn, .arg = arg };
    f->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(f->fd, (struct sockaddr *)&at, size) || listen(f->fd, 64) ||
        getsockname(f->fd, (struct sockaddr *)&at, &size))
        abort();
    f->port = ntohs(at.sin_port);
    snprintf(f->url, sizeof f->url, "http://127.0.0.1:%u", f->port);
    f->watch = loop_watch(l, f->fd, EPOLLIN, fake_accept, f);
    return f;
}

static inline void fake_free(struct fake *f)
{
    while (f->conns) {
        struct fake_conn *c = f->conns;
        f->conns = c->next;
        fake_conn_close(c);
        buf_done(&c->in);
        free(c);
    }
    watch_done(&f->watch);
    close(f->fd);
    free(f);
}

static inline void fake_reply(struct buf *b, int status, const char *type, struct slice body)
{
    buf_printf(b, "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status, type, body.n);
    buf_add(b, body.p, body.n);
}

/* Turns until *done. False after ten seconds. */
static inline bool turn_until(struct loop *l, const bool *done)
{
    int64_t end = clock_mono_ms() + 10000;
    while (!*done && clock_mono_ms() < end)
        loop_turn(l, 50);
    return *done;
}

#endif
