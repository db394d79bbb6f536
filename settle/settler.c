#include "settle/settler.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "settle/desk.h"
#include "settle/pin.h"

enum { TURN_MS = 40, SWEEP_MS = 2000 };

/* How often to look at the chain: often while something is on its way, else a few times a block. */
static int64_t look_every_ms(const struct desk *d)
{
    int64_t block = d->net->block_time_ms;
    int64_t ms = d->open ? block / 16 : block / 4;
    return ms < 50 ? 50 : ms > 1000 ? 1000 : ms;
}

static bool pin(struct desk *d, bool *ret_replaced)
{
    char why[400];
    switch (pin_wait(d->loop, d->db, d->rpc, d->net, why, sizeof why)) {
    case PIN_OK:
        log_info("settler.chain", "network=%s chain=ok", d->net->id);
        d->pinned = true;
        return true;
    case PIN_UNAVAILABLE:
        log_warn("settler.chain_unavailable", "network=%s why=%s", d->net->id, why);
        d->look_at_ms = clock_mono_ms() + 1000;
        return false;
    case PIN_REPLACED:
        log_error("settler.chain_replaced", "network=%s why=%s", d->net->id, why);
        *ret_replaced = true;
        return false;
    }
    return false;
}

/* While blocks may have left the chain nothing is final. */
static void beside(struct desk *d, const struct settler_options *o)
{
    struct settler_turn t = { d, d->loop, d->db, d->rpc, d->net, d->head, d->final, d->owner, d->by };
    if (o->beside && !d->reorg)
        o->beside(o->beside_arg, &t);
}

/* One round. Proving comes first: it is what a parked request waits for. */
static bool turn(struct desk *d, const struct settler_options *o)
{
    bool replaced = false;
    int64_t now = clock_mono_ms();
    if (!d->pinned && (now < d->look_at_ms || !pin(d, &replaced)))
        return !replaced;
    d->new_head = false;
    desk_heads(d);
    if (now >= d->look_at_ms) {
        if (!desk_watch(d)) {
            log_warn("settler.blind", "network=%s hint=no usable RPC answer", d->net->id);
            d->look_at_ms = clock_mono_ms() + 500;
            return true;
        }
        d->look_at_ms = clock_mono_ms() + look_every_ms(d);
    }
    if (!d->seen)
        return true;
    (void)desk_reorg(d);
    (void)desk_seen(d);
    const bool owner = desk_lease(d);
    if (d->net->tempo) {
        (void)desk_charges(d);
    } else {
        if (owner) {
            (void)desk_prove(d);
            (void)desk_submit(d);
        }
        (void)desk_resolve(d);
    }
    (void)desk_scan(d);
    if (d->net->tempo)
        (void)desk_orphans(d);
    beside(d, o);
    return true;
}

/* Every now and then; true: it was time. */
static bool sweep(const struct settler_options *o, const char *by, int64_t *at_ms)
{
    if (clock_mono_ms() < *at_ms)
        return false;
    *at_ms = clock_mono_ms() + SWEEP_MS;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_int(&a, 100);
    arg_text(&a, by);
    if (db_wait(o->db, "orders_sweep", &a, clock_mono_ms() + DESK_DB_MS, &rows) == DB_OK && row_int(rows, 0, "swept") > 0)
        log_warn("settler.swept", "orders=%d", (int)row_int(rows, 0, "swept"));
    return true;
}

static void leave(struct desk *d)
{
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_bytes(&a, d->relayer->address.b, 20);
    arg_bytes(&a, d->instance.b, 16);
    (void)!db_wait(d->db, "relayer_leave", &a, clock_mono_ms() + 1000, NULL);
}

/* Sleeps a little on the loop, less when something is on its way. */
static void doze(struct loop *l)
{
    int64_t until = clock_mono_ms() + TURN_MS, left;
    while ((left = until - clock_mono_ms()) > 0)
        loop_turn(l, left);
}

bool settler_run(const struct settler_options *o)
{
    struct desk d = { .net = o->net, .relayer = o->relayer, .loop = o->loop, .db = o->db };
    int64_t sweep_at_ms = 0;
    bool ok = true;
    d.rpc = rpc_new(o->fetcher, o->loop, d.net->chain_id, d.net->rpc, d.net->rpc_count, d.net->rpc_timeout_ms);
    for (size_t i = 0; d.net->rpc_count > 1 && i < d.net->rpc_count; i++)
        d.each[i] = rpc_new(o->fetcher, o->loop, d.net->chain_id, &d.net->rpc[i], 1, d.net->rpc_timeout_ms);
    char hex[9];
    bytes_random(&d.instance, sizeof d.instance);
    hex_write_bare(hex, d.instance.b, 4);
    (void)snprintf(d.by, sizeof d.by, "{\"actor\":\"settler:%s\"}", hex);
    while (ok && !*o->stop) {
        ok = turn(&d, o);
        if (sweep(o, d.by, &sweep_at_ms))
            desk_faults(&d);
        if (ok && !*o->stop)
            doze(o->loop);
    }
    if (d.owner)
        leave(&d);
    for (size_t i = 0; i < COUNT(d.each); i++)
        if (d.each[i])
            rpc_free(d.each[i]);
    rpc_free(d.rpc);
    return ok;
}
