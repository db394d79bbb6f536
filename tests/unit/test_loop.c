#include "test.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"

struct mark {
    struct loop *loop;
    struct timer timer;
    int64_t at;
    int64_t *last;
    unsigned *count;
};

static void note_order(void *arg)
{
    struct mark *m = arg;
    assert_true(m->at >= *m->last);
    assert_false(timer_is_set(&m->timer));
    *m->last = m->at;
    (*m->count)++;
}

/* Set, moved and cleared in a mixed order, they still fire in the order of time, and only those that are set. */
static void timers_fire_in_order(void **state)
{
    (void)state;
    enum { N = 500 };
    static struct mark marks[N];
    struct loop *l = loop_new();
    int64_t now = clock_mono_ms(), last = 0;
    unsigned count = 0, want = 0;
    uint32_t seed = 12345;
    memset(marks, 0, sizeof marks);
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < N; i++) {
            seed = seed * 1103515245 + 12345;
            marks[i].at = now - 1000 + (int64_t)(seed >> 16) % 1000;
            marks[i].last = &last;
            marks[i].count = &count;
            if (seed >> 8 & 1)
                timer_set(l, &marks[i].timer, marks[i].at, note_order, &marks[i]);
            else if (seed >> 9 & 1)
                timer_clear(l, &marks[i].timer);
            else if (timer_is_set(&marks[i].timer))
                marks[i].at = marks[i].timer.at_ms;
        }
    for (size_t i = 0; i < N; i++)
        want += timer_is_set(&marks[i].timer);
    for (size_t i = 0; i < N; i++)
        if (timer_is_set(&marks[i].timer))
            marks[i].at = marks[i].timer.at_ms;
    loop_turn(l, 0);
    assert_true(want > 100);
    assert_int_equal(count, want);
    loop_free(l);
}

static void set_again(void *arg)
{
    struct mark *m = arg;
    (*m->count)++;
    timer_set(m->loop, &m->timer, 0, set_again, m);
}

static void timer_that_sets_itself_ends_the_turn(void **state)
{
    (void)state;
    unsigned count = 0;
    struct loop *l = loop_new();
    struct mark m = { .loop = l, .count = &count };
    timer_set(l, &m.timer, 0, set_again, &m);
    loop_turn(l, -1);
    assert_int_equal(count, 1);
    loop_turn(l, -1);
    assert_int_equal(count, 2);
    timer_clear(l, &m.timer);
    loop_free(l);
}

static void timer_is_not_early(void **state)
{
    (void)state;
    int64_t last = 0;
    unsigned count = 0;
    struct loop *l = loop_new();
    struct mark m = { .last = &last, .count = &count, .at = clock_mono_ms() + 30 };
    timer_set(l, &m.timer, m.at, note_order, &m);
    while (count == 0)
        loop_turn(l, -1);
    assert_true(clock_mono_ms() >= m.at);
    loop_free(l);
}

struct pair {
    struct watch *watch[2];
    unsigned ran;
};

static void remove_both(void *arg, uint32_t events)
{
    struct pair *p = arg;
    assert_true(events & EPOLLIN);
    p->ran++;
    watch_done(&p->watch[0]);
    watch_done(&p->watch[1]);
}

static void removed_watch_gets_nothing_more(void **state)
{
    (void)state;
    int a[2], b[2];
    struct pair p = { .ran = 0 };
    struct loop *l = loop_new();
    assert_int_equal(pipe(a) | pipe(b), 0);
    p.watch[0] = loop_watch(l, a[0], EPOLLIN, remove_both, &p);
    p.watch[1] = loop_watch(l, b[0], EPOLLIN, remove_both, &p);
    assert_int_equal(write(a[1], "x", 1) + write(b[1], "x", 1), 2);
    loop_turn(l, 1000);
    assert_int_equal(p.ran, 1);
    assert_null(p.watch[0]);
    loop_turn(l, 0);
    assert_int_equal(p.ran, 1);
    close(a[0]), close(a[1]), close(b[0]), close(b[1]);
    loop_free(l);
}

struct inner {
    struct loop *loop;
    struct watch *watch;
    unsigned depth, most;
};

static void turn_inside(void *arg, uint32_t events)
{
    (void)events;
    struct inner *in = arg;
    if (++in->depth > in->most)
        in->most = in->depth;
    if (in->depth < 3)
        loop_turn(in->loop, 1000);
    else
        watch_done(&in->watch);
    in->depth--;
}

/* Level-triggered: the event is there again for the turn inside; the removed watch is freed once, by the outermost. */
static void a_callback_may_turn_the_loop(void **state)
{
    (void)state;
    int a[2];
    struct loop *l = loop_new();
    struct inner in = { .loop = l };
    assert_int_equal(pipe(a), 0);
    in.watch = loop_watch(l, a[0], EPOLLIN, turn_inside, &in);
    assert_int_equal(write(a[1], "x", 1), 1);
    loop_turn(l, 1000);
    assert_int_equal(in.most, 3);
    close(a[0]), close(a[1]);
    loop_free(l);
}

static int64_t hook_says(void *arg)
{
    int64_t *say = arg;
    return *say;
}

static void shortest_hook_bounds_the_sleep(void **state)
{
    (void)state;
    int64_t no_bound = -1, soon = 20, at_once = 0;
    struct loop *l = loop_new();
    int64_t start = clock_mono_ms();
    loop_prepare(l, hook_says, &no_bound);
    loop_prepare(l, hook_says, &soon);
    loop_turn(l, 60000);
    int64_t took = clock_mono_ms() - start;
    assert_in_range((uint64_t)took, 19, 5000);
    loop_prepare(l, hook_says, &at_once);
    loop_turn(l, -1);
    loop_free(l);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

static void stop_signal_is_an_event(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    loop_on_stop_signal(l, stop, l);
    raise(SIGTERM);
    loop_run(l);
    raise(SIGINT);
    loop_run(l);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order),         cmocka_unit_test(timer_that_sets_itself_ends_the_turn),
        cmocka_unit_test(timer_is_not_early),           cmocka_unit_test(removed_watch_gets_nothing_more),
        cmocka_unit_test(a_callback_may_turn_the_loop), cmocka_unit_test(shortest_hook_bounds_the_sleep),
        cmocka_unit_test(stop_signal_is_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
