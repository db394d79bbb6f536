#include "settle/chain_clock.h"

enum { TURN_MS = 60000 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void chain_clock_saw(struct chain_clock *c, uint64_t head, int64_t head_time_s, int64_t mono_ms, int64_t wall_ms)
{
    const int64_t ahead = head_time_s * 1000 - mono_ms;
    if (!c->known) {                         /* perhaps hours old: rather too late, and a window is over, than too early */
        *c = (struct chain_clock){ .known = true, .head = head, .ahead_ms = larger(ahead, wall_ms - mono_ms) };
        c->ahead_before_ms = c->ahead_ms;
        return;
    }
    if (head == c->head)
        return;
    c->head = head;
    if (!c->live) {
        c->live = true;
        c->ahead_ms = c->ahead_before_ms = ahead;
        c->turned_ms = mono_ms;
        return;
    }
    /* A head is seen late, never early: the most that was seen is the nearest. One that lied is forgotten with its minute. */
    if (mono_ms - c->turned_ms >= TURN_MS) {
        c->ahead_before_ms = c->ahead_ms;
        c->ahead_ms = ahead;
        c->turned_ms = mono_ms;
    }
    c->ahead_ms = larger(c->ahead_ms, ahead);
}

int64_t chain_clock_ms(const struct chain_clock *c, int64_t mono_ms)
{
    return mono_ms + larger(c->ahead_ms, c->ahead_before_ms);
}
