/* Closing a socket with unread bytes in it makes the kernel send a reset, and the reset can destroy an answer that the
 * client has not read yet: a 413 in the middle of an upload would look like a broken connection. So a copy of the
 * descriptor stays open for a moment and what still comes is thrown away. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http.h"
#include "base/clock.h"

enum { LINGER_MS = 2000, LINGER_BYTES = 8 * 1024 * 1024, LINGER_MOST = 256 };

struct lingering {
    struct link place;
    struct server *server;
    int fd;
    struct watch *watch;
    struct timer end;
    size_t bytes;
};

static void let_go(void *arg)
{
    struct lingering *g = arg;
    link_del(&g->place);
    timer_clear(g->server->loop, &g->end);
    watch_done(&g->watch);
    close(g->fd);
    g->server->lingering_count--;
    free(g);
}

static void bytes_came(void *arg, uint32_t events)
{
    (void)events;
    struct lingering *g = arg;
    char waste[16384];
    const ssize_t n = recv(g->fd, waste, sizeof waste, MSG_DONTWAIT);
    if (n > 0)
        g->bytes += (size_t)n;
    if (n <= 0 || g->bytes > LINGER_BYTES)
        let_go(g);
}

void linger(struct server *s, int fd)
{
    if (s->lingering_count == LINGER_MOST)
        return;
    const int copy = dup(fd);
    if (copy < 0)
        return;
    struct lingering *g = mem_new(sizeof *g);
    g->server = s;
    g->fd = copy;
    link_append(&s->lingering, &g->place);
    s->lingering_count++;
    g->watch = loop_watch(s->loop, copy, EPOLLIN, bytes_came, g);
    timer_set(s->loop, &g->end, clock_mono_ms() + LINGER_MS, let_go, g);
}

void linger_stop(struct server *s)
{
    while (!link_alone(&s->lingering))
        let_go(OWNER_OF(struct lingering, place, s->lingering.next));
}
