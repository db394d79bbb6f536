/* The parked: a fixed table of rings, found by topic. Twenty thousand are about five to a ring. */
#include <stdlib.h>
#include <string.h>

#include "api/http.h"

enum { RINGS = 4096 };

struct topics {
    uint64_t key;                                        /* topics may be made of what a client chose */
    struct link rings[RINGS];
};

struct topics *topics_new(void)
{
    struct topics *ts = mem_new(sizeof *ts);
    bytes_random(&ts->key, sizeof ts->key);
    for (size_t i = 0; i < RINGS; i++)
        link_init(&ts->rings[i]);
    return ts;
}

void topics_free(struct topics *ts)
{
    free(ts);
}

static struct link *ring_of(struct topics *ts, const struct topic *t)
{
    uint64_t a, b;
    memcpy(&a, t->b, 8);
    memcpy(&b, t->b + 8, 8);
    a = (a ^ ts->key) * 0x9e3779b97f4a7c15U;
    a = (a ^ a >> 32 ^ b) * 0xd6e8feb86659fd93U;
    return &ts->rings[a >> 32 & (RINGS - 1)];
}

static void unpark(struct request *rq)
{
    timer_clear(rq->server->loop, &rq->deadline);
    link_del(&rq->place);
    rq->server->stats.parked--;
    request_ready(rq);
}

static void deadline_came(void *arg)
{
    unpark(arg);
}

void topics_park(struct request *rq)
{
    struct server *s = rq->server;
    link_append(ring_of(s->topics, &rq->topic), &rq->place);
    timer_set(s->loop, &rq->deadline, rq->deadline.at_ms, deadline_came, rq);
    s->stats.parked++;
}

static void wake_ring(struct link *ring, const struct topic *t)
{
    for (struct link *l = ring->next, *next; l != ring; l = next) {
        next = l->next;
        struct request *rq = OWNER_OF(struct request, place, l);
        if (!t || memcmp(&rq->topic, t, sizeof *t) == 0)
            unpark(rq);
    }
}

/* Waking only makes ready; the phases run later, so none of them can meet this loop. */
void topics_wake(struct topics *ts, const struct topic *t)
{
    if (t) {
        wake_ring(ring_of(ts, t), t);
        return;
    }
    for (size_t i = 0; i < RINGS; i++)
        wake_ring(&ts->rings[i], NULL);
}
