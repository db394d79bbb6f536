#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"

enum { BATCH = 64 };

struct watch {
    struct loop *loop;
    int fd;
    uint32_t events;
    watch_fn *fn; /* NULL: dead, kept until the turn is over */
    void *arg;
    struct watch *next_dead;
};

struct hook {
    prepare_fn *fn;
    void *arg;
};

struct loop {
    int epoll;
    unsigned depth; /* a callback may turn the loop itself */
    bool stopped;
    struct watch *dead;
    struct timer **heap; /* heap[0] is the earliest */
    size_t timers, heap_cap;
    struct hook *hooks;
    size_t hook_count;
    int signals;
    struct watch *signal_watch;
    timer_fn *on_stop;
    void *on_stop_arg;
};

struct loop *loop_new(void)
{
    struct loop *l = mem_new(sizeof *l);
    l->signals = -1;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0)
        abort();
    signal(SIGPIPE, SIG_IGN);
    return l;
}

static void bury(struct loop *l)
{
    while (l->dead) {
        struct watch *w = l->dead;
        l->dead = w->next_dead;
        free(w);
    }
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    assert(l->depth == 0 && l->timers == 0);
    if (l->signals >= 0) {
        watch_done(&l->signal_watch);
        close(l->signals);
    }
    bury(l);
    close(l->epoll);
    free(l->heap);
    free(l->hooks);
    free(l);
}

/* ---- watches ------------------------------------------------------------------------------------- */

static void control(struct watch *w, int op)
{
    struct epoll_event e = { .events = w->events, .data.ptr = w };
    if (epoll_ctl(w->loop->epoll, op, w->fd, &e) != 0)
        abort(); /* a bad or double descriptor is our bug */
}

struct watch *loop_watch(struct loop *l, int fd, uint32_t events, watch_fn *fn, void *arg)
{
    struct watch *w = mem_new(sizeof *w);
    *w = (struct watch){ .loop = l, .fd = fd, .events = events, .fn = fn, .arg = arg };
    control(w, EPOLL_CTL_ADD);
    return w;
}

void watch_events(struct watch *w, uint32_t events)
{
    if (w->events == events)
        return;
    w->events = events;
    control(w, EPOLL_CTL_MOD);
}

void watch_done(struct watch **pw)
{
    struct watch *w = MOVE(*pw);
    if (!w)
        return;
    struct loop *l = w->loop;
    control(w, EPOLL_CTL_DEL);
    if (l->depth == 0) {
        free(w);
        return;
    }
    w->fn = NULL; /* the batch in hand may still name it */
    w->next_dead = l->dead;
    l->dead = w;
}

/* ---- timers: a binary heap that each timer knows its place in ------------------------------------ */

static void put(struct loop *l, size_t i, struct timer *t)
{
    l->heap[i] = t;
    t->place = i + 1;
}

static void sift_up(struct loop *l, size_t i, struct timer *t)
{
    while (i > 0 && l->heap[(i - 1) / 2]->at_ms > t->at_ms) {
        put(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(l, i, t);
}

static void sift_down(struct loop *l, size_t i, struct timer *t)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= l->timers)
            break;
        if (child + 1 < l->timers && l->heap[child + 1]->at_ms < l->heap[child]->at_ms)
            child++;
        if (l->heap[child]->at_ms >= t->at_ms)
            break;
        put(l, i, l->heap[child]);
        i = child;
    }
    put(l, i, t);
}

static void settle_at(struct loop *l, size_t i, struct timer *t)
{
    if (i > 0 && l->heap[(i - 1) / 2]->at_ms > t->at_ms)
        sift_up(l, i, t);
    else
        sift_down(l, i, t);
}

void timer_set(struct loop *l, struct timer *t, int64_t at_ms, timer_fn *fn, void *arg)
{
    t->fn = fn;
    t->arg = arg;
    t->at_ms = at_ms;
    if (t->place) {
        settle_at(l, t->place - 1, t);
        return;
    }
    if (l->timers == l->heap_cap) {
        l->heap_cap = l->heap_cap ? 2 * l->heap_cap : 64;
        l->heap = mem_resize(l->heap, l->heap_cap, sizeof(struct timer *));
    }
    sift_up(l, l->timers++, t);
}

void timer_clear(struct loop *l, struct timer *t)
{
    if (!t->place)
        return;
    size_t i = t->place - 1;
    t->place = 0;
    struct timer *last = l->heap[--l->timers];
    if (last != t)
        settle_at(l, i, last);
}

bool timer_is_set(const struct timer *t)
{
    return t->place != 0;
}

/* At most as many as there were, so that timers that set themselves to "now" cannot keep the loop from its sockets. */
static void fire_due(struct loop *l)
{
    int64_t now = clock_mono_ms();
    for (size_t n = l->timers; n > 0 && l->timers > 0 && l->heap[0]->at_ms <= now; n--) {
        struct timer *t = l->heap[0];
        timer_clear(l, t);
        t->fn(t->arg);
    }
}

/* ---- turning ------------------------------------------------------------------------------------- */

void loop_prepare(struct loop *l, prepare_fn *fn, void *arg)
{
    l->hooks = mem_resize(l->hooks, l->hook_count + 1, sizeof *l->hooks);
    l->hooks[l->hook_count++] = (struct hook){ fn, arg };
}

static int64_t shorter(int64_t a, int64_t b)
{
    if (a < 0)
        return b;
    return b < 0 || a < b ? a : b;
}

static int sleep_ms(struct loop *l, int64_t max_wait_ms)
{
    int64_t wait = max_wait_ms;
    bool was_stopped = l->stopped;
    for (size_t i = 0; i < l->hook_count; i++)
        wait = shorter(wait, l->hooks[i].fn(l->hooks[i].arg));
    if (l->stopped && !was_stopped)
        return 0;
    if (l->timers > 0) {
        int64_t left = l->heap[0]->at_ms - clock_mono_ms();
        wait = shorter(wait, left > 0 ? left : 0);
    }
    return wait > INT_MAX ? INT_MAX : (int)wait;
}

void loop_turn(struct loop *l, int64_t max_wait_ms)
{
    struct epoll_event batch[BATCH];
    l->depth++;
    int n = epoll_wait(l->epoll, batch, BATCH, sleep_ms(l, max_wait_ms));
    if (n < 0 && errno != EINTR)
        abort();
    for (int i = 0; i < n; i++) {
        struct watch *w = batch[i].data.ptr;
        uint32_t events = batch[i].events & (w->events | EPOLLERR | EPOLLHUP);
        if (w->fn && events)
            w->fn(w->arg, events);
    }
    fire_due(l);
    if (--l->depth == 0)
        bury(l);
}

void loop_run(struct loop *l)
{
    while (!l->stopped)
        loop_turn(l, -1);
    l->stopped = false;
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

static void signal_came(void *arg, uint32_t events)
{
    (void)events;
    struct loop *l = arg;
    struct signalfd_siginfo info;
    if (read(l->signals, &info, sizeof info) == (ssize_t)sizeof info)
        l->on_stop(l->on_stop_arg);
}

void loop_on_stop_signal(struct loop *l, timer_fn *fn, void *arg)
{
    assert(l->signals < 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    l->on_stop = fn;
    l->on_stop_arg = arg;
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        abort();
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signals < 0)
        abort();
    l->signal_watch = loop_watch(l, l->signals, EPOLLIN, signal_came, l);
}
