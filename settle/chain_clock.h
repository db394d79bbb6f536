/* What time is it on the chain? The windows of free repeats are counted in block time, so they are held by this clock: the chain's last
 * block time, moved on by the monotonic clock. The wall clock has no part in it once a new block was seen, so its steps do no harm; and
 * a chain that stands still does not stop it. */
#ifndef SETTLE_CHAIN_CLOCK_H
#define SETTLE_CHAIN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct chain_clock {
    bool known;                      /* a head was seen */
    bool live;                       /* and a new one after it: until then nobody knows how old the first one was */
    uint64_t head;
    int64_t ahead_ms, ahead_before_ms, turned_ms; /* of the monotonic clock: the most that heads showed, in this minute and the last */
};
/* A head as it is known at mono_ms. wall_ms is used only while no new head has come. */
void chain_clock_saw(struct chain_clock *c, uint64_t head, int64_t head_time_s, int64_t mono_ms, int64_t wall_ms);
int64_t chain_clock_ms(const struct chain_clock *c, int64_t mono_ms); /* unix milliseconds; c->known must be true */

#endif
