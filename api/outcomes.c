/* Many requests wait for one commit: their reads share one call, and so do the notes of what was delivered. */
#include <string.h>

#include "api/gateway.h"
#include "base/clock.h"
#include "base/json.h"

enum { READ_MS = 5000, DELIVERED_EVERY_MS = 200 };

struct asking {
    struct asking *next;
    struct request *rq;
    struct order_id order;
    struct outcome *ret;
    phase *then;
};

struct outcomes {
    struct gateway *g;
    struct asking *queue;
    struct timer flush;
    json_t *delivered;
    struct timer note;
};

struct outcomes *outcomes_new(struct gateway *g)
{
    struct outcomes *o = mem_new(sizeof *o);
    o->g = g;
    o->delivered = json_array();
    return o;
}

void outcomes_free(struct outcomes *o)
{
    timer_clear(o->g->loop, &o->flush);
    timer_clear(o->g->loop, &o->note);
    json_decref(o->delivered);
    free(o);
}

static json_t *hex_id(const struct order_id *id)
{
    char hex[33];
    hex_write_bare(hex, id->b, 16);
    return json_string(hex);
}

static void fill(struct outcome *o, const struct db_rows *rows, int i)
{
    struct slice status = row_text(rows, i, "status");
    o->known = true;
    memcpy(o->status, status.p, status.n < sizeof o->status ? status.n : sizeof o->status - 1);
    (void)row_copy(rows, i, "receipt", o->receipt.b, 16);
    o->has_tx = row_copy(rows, i, "tx", o->tx.b, 32);
    o->has_hash = row_copy(rows, i, "last_hash", o->last_hash.b, 32);
    o->dead_after = row_int(rows, i, "dead_after");
    o->block_time = row_int(rows, i, "block_time");
}

static void have_rows(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct asking *list = arg, *next;
    for (struct asking *a = list; a; a = next) {
        next = a->next;
        memset(a->ret, 0, sizeof *a->ret);
        for (int i = 0; rc == DB_OK && i < db_count(rows); i++) {
            struct slice id = row_bytes(rows, i, "id");
            if (memcmp(id.p, a->order.b, 16) == 0)
                fill(a->ret, rows, i);
        }
        request_go(a->rq, a->then);
        free(a);
    }
}

static void flush(void *arg)
{
    struct outcomes *o = arg;
    JSON *ids = json_array();
    for (struct asking *a = o->queue; a; a = a->next)
        json_array_append_new(ids, hex_id(&a->order));
    OWNED char *text = json_write(ids);
    DB_ARGS args = { 0 };
    arg_text(&args, text);
    db_call(o->g->db, "orders_by_ids", &args, clock_mono_ms() + READ_MS, have_rows, MOVE(o->queue));
}

struct step outcome_read(struct request *rq, const struct order_id *order, struct outcome *ret, phase *next)
{
    struct outcomes *o = ((struct gateway *)request_app(rq))->outcomes;
    struct asking *a = mem_new(sizeof *a);
    *a = (struct asking){ .next = o->queue, .rq = rq, .order = *order, .ret = ret, .then = next };
    o->queue = a;
    if (!timer_is_set(&o->flush))
        timer_set(o->g->loop, &o->flush, clock_mono_ms(), flush, o);
    return request_wait(rq);
}

static void noted(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    (void)arg, (void)rc, (void)rows;             /* a note that is lost costs nothing but the note */
}

static void note(void *arg)
{
    struct outcomes *o = arg;
    OWNED char *text = json_write(o->delivered);
    DB_ARGS args = { 0 };
    json_array_clear(o->delivered);
    arg_text(&args, text);
    db_call(o->g->db, "orders_delivered", &args, clock_mono_ms() + READ_MS, noted, NULL);
}

void outcome_delivered(struct gateway *g, const struct order_id *order)
{
    struct outcomes *o = g->outcomes;
    json_array_append_new(o->delivered, hex_id(order));
    if (!timer_is_set(&o->note))
        timer_set(g->loop, &o->note, clock_mono_ms() + DELIVERED_EVERY_MS, note, o);
}
