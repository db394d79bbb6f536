/* One event loop: file descriptors, timers, and a hook before each sleep. One thread; nothing here locks.
 *
 * A callback may add or remove any watch or timer, its own included. A watch removed during a turn gets no
 * further callback in that turn. Deadlines are on the monotonic clock. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/scope.h"

struct loop;
struct watch;

typedef void watch_fn(void *arg, uint32_t events);       /* events: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP */
typedef void timer_fn(void *arg);

struct loop *loop_new(void) MUST_CHECK;
void loop_free(struct loop *l);                          /* not from a callback; watches and timers must be gone */
/* One sleep (at most max_wait_ms; -1: no bound) and its callbacks. A callback may turn the loop itself. */
void loop_turn(struct loop *l, int64_t max_wait_ms);
void loop_run(struct loop *l);                           /* turns until loop_stop */
void loop_stop(struct loop *l);                          /* from inside a callback */

/* Level-triggered. One watch a descriptor. */
struct watch *loop_watch(struct loop *l, int fd, uint32_t events, watch_fn *fn, void *arg) MUST_CHECK;
void watch_events(struct watch *w, uint32_t events);
void watch_done(struct watch **w);                       /* before the fd is closed; *w becomes NULL */

/* A timer lives inside its owner; zeroed it is idle. Setting one that is set moves it. Any number of them:
 * setting and clearing cost O(log n). */
struct timer { timer_fn *fn; void *arg; int64_t at_ms; size_t place; };
void timer_set(struct loop *l, struct timer *t, int64_t at_ms, timer_fn *fn, void *arg);
void timer_clear(struct loop *l, struct timer *t);
bool timer_is_set(const struct timer *t);

/* Runs before each sleep, after all callbacks of a turn. It returns the longest time in ms that the loop may
 * sleep (0: not at all, -1: no bound). libmicrohttpd's MHD_run and its timeout live here. */
typedef int64_t prepare_fn(void *arg);
void loop_prepare(struct loop *l, prepare_fn *fn, void *arg);

/* SIGTERM and SIGINT as an event (signalfd); both are blocked from here on, also in children until they unblock them.
 * Once a loop. loop_new ignores SIGPIPE for the process. */
void loop_on_stop_signal(struct loop *l, timer_fn *fn, void *arg);

#endif
