/* With a quorum of one the first usable endpoint is believed, and one that stands still is usable. So their heads are compared every
 * few seconds, beside the work: whichever is far from the others is set aside. Two can only tell that one of them does not move. */
#include <string.h>

#include "settle/desk.h"

enum { COMPARE_MS = 5000, FAR_MS = 4000 };

struct one { struct desk *d; size_t at; };

static void have_head(void *arg, const struct rpc_answer *a, size_t n)
{
    OWNED struct one *x = arg;
    struct heads *h = &x->d->heads;
    struct block b;
    (void)n;
    h->number[x->at] = a->rc == RPC_OK && block_read(a->result, &b) ? b.number : 0;
    h->waiting--;
}

static void ask(struct desk *d)
{
    d->heads.asked = true;
    d->heads.waiting = d->net->rpc_count;
    for (size_t e = 0; e < d->net->rpc_count; e++) {
        struct rpc_item item = { "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0) };
        struct one *x = mem_new(sizeof *x);
        *x = (struct one){ d, e };
        rpc_start(d->each[e], &item, 1, have_head, x);
    }
}

/* The one in the middle, of those that answered; of two, the higher. */
static uint64_t usual(const struct desk *d, size_t *ret_n)
{
    uint64_t sorted[COUNT(d->heads.number)];
    size_t n = 0;
    for (size_t e = 0; e < d->net->rpc_count; e++) {
        const uint64_t number = d->heads.number[e];
        size_t at = n;
        if (number == 0)
            continue;
        for (; at > 0 && sorted[at - 1] < number; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = number;
        n++;
    }
    *ret_n = n;
    return n > 0 ? sorted[(n - 1) / 2] : 0;
}

static void compare(struct desk *d)
{
    struct heads *h = &d->heads;
    size_t n;
    const uint64_t number = usual(d, &n), near = 2 + FAR_MS / (uint64_t)d->net->block_time_ms;
    for (size_t e = 0; n > 1 && e < d->net->rpc_count; e++) {
        if (h->number[e] == 0)
            continue;
        if (h->number[e] + near < number && (n > 2 || h->number[e] == h->before[e]))
            rpc_blame(d->rpc, e, RPC_BEHIND);
        else if (h->number[e] > number + near)
            rpc_blame(d->rpc, e, RPC_AHEAD);
    }
    memcpy(h->before, h->number, sizeof h->before);
}

void desk_heads(struct desk *d)
{
    struct heads *h = &d->heads;
    if (d->net->quorum > 1 || d->net->rpc_count < 2 || h->waiting > 0)
        return;
    if (h->asked)
        compare(d);
    h->asked = false;
    if (clock_mono_ms() < h->at_ms)
        return;
    h->at_ms = clock_mono_ms() + COMPARE_MS;
    ask(d);
}
