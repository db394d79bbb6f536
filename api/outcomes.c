/* How requests end. Many wait for one commit: their reads share one call, and so do the notes of what was delivered. */
#include <string.h>

#include "api/gateway.h"
#include "base/clock.h"
#include "base/json.h"

/* A second purchase that follows the first at once must not find it undelivered; what repeats were told can wait. Under
 * a storm of repeats the rest of a batch is left out. */
enum { READ_MS = 5000, DELIVERED_AFTER_MS = 20, NOTES_AFTER_MS = 200, NOTES_MAX = 256 };

/* Told in so many words; whatever else is told goes by its HTTP status. */
static const struct told {
    enum err err;
    enum outcome_kind kind;
} told[] = {
    { ERR_PAYMENT_CONFLICT, COUNT_CONFLICT },
    { ERR_PAYMENT_IN_FLIGHT, COUNT_IN_FLIGHT },
    { ERR_IN_REVIEW, COUNT_IN_REVIEW },
    { ERR_SIMILAR_ORDER, COUNT_SIMILAR },
    { ERR_ALREADY_PAID, COUNT_ALREADY_PAID },
    { ERR_DONE_UNCHARGED, COUNT_NOT_CHARGED },
    { ERR_ANSWER_GONE, COUNT_GONE },
    { ERR_ANSWER_NOT_PROVEN, COUNT_GONE },
    { ERR_AUTHORIZATION_SPENT, COUNT_GONE },
    { ERR_WORK_FAILED_PAID, COUNT_OWED },
    { ERR_PAYMENT_PENDING, COUNT_IN_FLIGHT },
    { ERR_PAYMENT_UNSEEN, COUNT_IN_FLIGHT },
    { ERR_PAYMENT_OWED, COUNT_OWED },
    { ERR_PAYMENT_NOT_YOURS, COUNT_CONFLICT },
    { ERR_ANSWER_CLOSED, COUNT_GONE },
    { ERR_WORK_FAILED, COUNT_NOT_CHARGED },
};

enum outcome_kind outcome_of(enum err e)
{
    for (size_t i = 0; i < COUNT(told); i++)
        if (told[i].err == e)
            return told[i].kind;
    return err_info(e)->http >= 500 ? COUNT_UNAVAILABLE : err_info(e)->http == 402 ? COUNT_REFUSED : COUNT_MALFORMED;
}

struct asking {
    struct asking *next;
    struct request *rq;
    struct order_id order;
    struct outcome *ret;
    phase *then;
    int64_t asked_ms;
};

struct outcomes {
    struct gateway *g;
    struct asking *queue;
    struct timer flush;
    json_t *delivered, *notes;
    struct timer deliver, note;
};

struct outcomes *outcomes_new(struct gateway *g)
{
    struct outcomes *o = mem_new(sizeof *o);
    o->g = g;
    o->delivered = json_array();
    o->notes = json_array();
    return o;
}

void outcomes_free(struct outcomes *o)
{
    timer_clear(o->g->loop, &o->flush);
    timer_clear(o->g->loop, &o->deliver);
    timer_clear(o->g->loop, &o->note);
    json_decref(o->delivered);
    json_decref(o->notes);
    free(o);
}

static json_t *hex_id(const struct order_id *id)
{
    char hex[33];
    hex_write_bare(hex, id->b, 16);
    return json_string(hex);
}

static void fill(const struct gateway *g, struct outcome *o, const struct db_rows *rows, int i)
{
    struct slice status = row_text(rows, i, "status");
    o->known = true;
    memcpy(o->status, status.p, status.n < sizeof o->status ? status.n : sizeof o->status - 1);
    (void)row_copy(rows, i, "receipt", o->receipt.b, 16);
    o->has_tx = row_copy(rows, i, "tx", o->tx.b, 32);
    o->has_hash = row_copy(rows, i, "last_hash", o->last_hash.b, 32);
    o->dead_after = row_int(rows, i, "dead_after");
    o->block_time = row_int(rows, i, "block_time");
    for (size_t n = 0; n < g->config->net_count; n++)
        if (row_is(rows, i, "network", g->config->nets[n].id))
            o->net = &g->config->nets[n];
}

static void have_rows(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct asking *list = arg, *next;
    for (struct asking *a = list; a; a = next) {
        next = a->next;
        memset(a->ret, 0, sizeof *a->ret);
        metrics_span(((struct gateway *)request_app(a->rq))->metrics, SPAN_STATUS, a->asked_ms);
        for (int i = 0; rc == DB_OK && i < db_count(rows); i++) {
            struct slice id = row_bytes(rows, i, "id");
            if (memcmp(id.p, a->order.b, 16) == 0)
                fill(request_app(a->rq), a->ret, rows, i);
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
    *a = (struct asking){
        .next = o->queue, .rq = rq, .order = *order, .ret = ret, .then = next, .asked_ms = clock_mono_ms()
    };
    o->queue = a;
    if (!timer_is_set(&o->flush))
        timer_set(o->g->loop, &o->flush, clock_mono_ms(), flush, o);
    return request_wait(rq);
}

static void noted(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    (void)arg, (void)rc, (void)rows; /* a note that is lost costs nothing but the note */
}

/* Empties the list into one call. */
static void tell(struct outcomes *o, const char *function, json_t *list)
{
    OWNED char *text = json_write(list);
    DB_ARGS args = { 0 };
    json_array_clear(list);
    arg_text(&args, text);
    db_call(o->g->db, function, &args, clock_mono_ms() + READ_MS, noted, NULL);
}

static void deliver(void *arg)
{
    struct outcomes *o = arg;
    tell(o, "orders_delivered", o->delivered);
}

static void note(void *arg)
{
    struct outcomes *o = arg;
    tell(o, "events_note", o->notes);
}

void outcome_delivered(struct gateway *g, const struct order_id *order)
{
    struct outcomes *o = g->outcomes;
    json_array_append_new(o->delivered, hex_id(order));
    if (!timer_is_set(&o->deliver))
        timer_set(g->loop, &o->deliver, clock_mono_ms() + DELIVERED_AFTER_MS, deliver, o);
}

void outcome_note(struct gateway *g, const struct order_id *order, const char *event, char *by)
{
    struct outcomes *o = g->outcomes;
    OWNED char *text = by;
    struct json_why why;
    if (json_array_size(o->notes) >= NOTES_MAX)
        return;
    json_t *who = json_read(text, strlen(text), &why);
    json_array_append_new(o->notes, json_pack("{s:o, s:s, s:o*}", "order", hex_id(order), "event", event, "by", who));
    if (!timer_is_set(&o->note))
        timer_set(g->loop, &o->note, clock_mono_ms() + NOTES_AFTER_MS, note, o);
}
