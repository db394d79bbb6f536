/* A seller's webhook is told how each settlement ended: signed (Standard Webhooks: webhook-id, webhook-timestamp,
 * webhook-signature), tried again with growing pauses for three days, the same news always under the same id. What is to be told
 * stands in the database since the payment was taken, so that no end is forgotten, and any gateway may tell it. Each seller has his own
 * few under way: one whose server hangs keeps nobody else's news waiting. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/facilitator.h"
#include "api/webhook_key.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

enum { EVERY_MS = 1000, EACH = 8, CLAIM_S = 60, CALL_MS = 10000, POST_MS = 15000, FIRST_S = 5, LAST_S = 3600 };

struct notices {
    struct gateway *g;
    struct webhook_key *keys;        /* one a seller, in the configuration's order */
    unsigned *under_way;             /* likewise */
    struct timer timer;
    struct notice *list;             /* under way */
    bool stopping;                   /* nothing more is asked of the database or told */
    uint64_t told, failed;
};

/* One piece of news on its way. */
struct notice {
    struct notices *all;
    struct notice *next, *prev;
    struct fetch *fetch;             /* while it is being told */
    const struct seller *seller;
    int64_t authorization;
    int tries;
    struct order_id order, id;
    char id_text[40];
};

/* ---- one telling ---- */

static size_t place_of(const struct notices *n, const struct seller *s)
{
    return (size_t)(s - n->g->config->sellers);
}

static struct notice *notice_new(struct notices *n, const struct seller *s)
{
    struct notice *x = mem_new(sizeof *x);
    x->all = n;
    x->seller = s;
    x->next = n->list;
    if (n->list)
        n->list->prev = x;
    n->list = x;
    n->under_way[place_of(n, s)]++;
    return x;
}

static void notice_free(struct notice *x)
{
    struct notices *n = x->all;
    if (x->prev)
        x->prev->next = x->next;
    else
        n->list = x->next;
    if (x->next)
        x->next->prev = x->prev;
    n->under_way[place_of(n, x->seller)]--;
    free(x);
}

static void noted(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    (void)arg, (void)rc, (void)rows; /* not noted: it is told once more, under the same id */
}

static int pause_s(int tries)
{
    int s = FIRST_S;
    for (int i = 1; i < tries && s < LAST_S; i++)
        s *= 2;
    return s < LAST_S ? s : LAST_S;
}

static void end(struct notice *x, bool told, const char *what)
{
    struct notices *n = x->all;
    DB_ARGS a = { 0 };
    *(told ? &n->told : &n->failed) += 1;
    if (!told)
        log_warn("gateway.webhook", "seller=%s notice=%s try=%d why=%s", x->seller->name, x->id_text, x->tries, what);
    arg_int(&a, x->authorization);
    arg_bytes(&a, x->id.b, sizeof x->id.b);
    arg_bool(&a, told);
    arg_text(&a, what);
    arg_int(&a, pause_s(x->tries));
    if (!n->stopping)
        db_call(n->g->db, "notice_end", &a, clock_mono_ms() + CALL_MS, noted, n);
    notice_free(x);
}

static void answered(void *arg, const struct fetch_answer *a)
{
    OWNED char *what = a->end == FETCH_ANSWERED ? str_format("HTTP %d", a->status) : str_copy(a->why ? a->why : "no answer");
    ((struct notice *)arg)->fetch = NULL;
    end(arg, a->end == FETCH_ANSWERED && a->status >= 200 && a->status < 300, what);
}

static char *sign(const struct notice *x, int64_t now, const char *body)
{
    const struct webhook_key *k = &x->all->keys[place_of(x->all, x->seller)];
    OWNED char *text = str_format("%s.%" PRId64 ".%s", x->id_text, now, body);
    struct hash32 mac = hmac_sha256(k->b, k->n, text, strlen(text));
    BUF b = { 0 };
    buf_puts(&b, "v1,");
    base64_add(&b, mac.b, sizeof mac.b);
    return str_copy(b.p);
}

static void post(struct notice *x, json_t *settlement)
{
    int64_t now = clock_wall_s();
    OWNED char *type = str_format("settlement.%s", json_str(settlement, "status"));
    JSON *body = json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", x->id_text, "type", type, "timestamp", time_iso(now).s, "seller",
                           x->seller->name, "data", settlement);
    OWNED char *text = json_write(body), *signature = sign(x, now, text), *time = str_format("%" PRId64, now);
    const struct header headers[] = {
        { SLICE("Content-Type"), SLICE("application/json") },
        { SLICE("webhook-id"), slice_of(x->id_text) },
        { SLICE("webhook-timestamp"), slice_of(time) },
        { SLICE("webhook-signature"), slice_of(signature) },
    };
    struct fetch_request rq = {
        .method = "POST", .url = x->seller->webhook, .headers = headers, .header_count = COUNT(headers), .body = slice_of(text),
        .deadline_ms = clock_mono_ms() + POST_MS, .max_answer = 65536,
    };
    x->fetch = fetch_start(x->all->g->fetcher, &rq, answered, x);
}

/* ---- what is to be told ---- */

struct batch {
    struct notices *all;
    size_t n;
    struct notice *list[];
};

static void have_orders(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    OWNED struct batch *b = arg;
    for (size_t i = 0; i < b->n; i++) {
        struct notice *x = b->list[i];
        json_t *settlement = NULL;
        for (int row = 0; rc == DB_OK && !settlement && row < db_count(rows); row++)
            if (memcmp(row_bytes(rows, row, "id").p, x->order.b, 16) == 0)
                settlement = settlement_json(b->all->g, rows, row);
        if (settlement && !b->all->stopping)
            post(x, MOVE(settlement));
        else
            end(x, false, "the database did not answer");
        json_decref(settlement);
    }
}

static const struct seller *seller_named(const struct config *c, struct slice name)
{
    for (size_t i = 0; i < c->seller_count; i++)
        if (slice_is(name, c->sellers[i].name))
            return &c->sellers[i];
    return NULL;
}

static void add(struct batch *b, const struct db_rows *rows, int row, json_t *ids)
{
    const struct seller *s = seller_named(b->all->g->config, row_text(rows, row, "seller"));
    char hex[33];
    if (!s)
        return;
    struct notice *x = notice_new(b->all, s);
    x->authorization = row_int(rows, row, "authorization_id");
    x->tries = (int)row_int(rows, row, "tries");
    (void)row_copy(rows, row, "order_id", x->order.b, 16);
    (void)row_copy(rows, row, "notice", x->id.b, 16);
    hex_write_bare(hex, x->id.b, 16);
    (void)snprintf(x->id_text, sizeof x->id_text, "msg_%s", hex);
    hex_write_bare(hex, x->order.b, 16);
    json_array_append_new(ids, json_string(hex));
    b->list[b->n++] = x;
}

static void claimed(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct notices *n = arg;
    if (rc != DB_OK || db_count(rows) == 0 || n->stopping)
        return;
    struct batch *b = mem_new(sizeof *b + (size_t)db_count(rows) * sizeof b->list[0]);
    JSON *ids = json_array();
    b->all = n;
    for (int i = 0; i < db_count(rows); i++)
        add(b, rows, i, ids);
    OWNED char *text = json_write(ids);
    DB_ARGS a = { 0 };
    arg_text(&a, text);
    db_call(n->g->db, "orders_by_ids", &a, clock_mono_ms() + CALL_MS, have_orders, b);
}

static void look(void *arg)
{
    struct notices *n = arg;
    const struct config *c = n->g->config;
    JSON *names = json_array();
    DB_ARGS a = { 0 };
    timer_set(n->g->loop, &n->timer, clock_mono_ms() + EVERY_MS, look, n);
    for (size_t i = 0; i < c->seller_count; i++)
        if (c->sellers[i].webhook && n->under_way[i] < EACH)
            json_array_append_new(names, json_string(c->sellers[i].name));
    if (json_array_size(names) == 0)
        return;
    OWNED char *text = json_write(names);
    arg_text(&a, text);
    arg_int(&a, EACH);
    arg_int(&a, CLAIM_S);
    db_call(n->g->db, "notices_claim", &a, clock_mono_ms() + CALL_MS, claimed, n);
}

/* ---- start and stop ---- */

struct notices *notices_new(struct gateway *g, char *why, size_t why_size)
{
    const struct config *c = g->config;
    struct notices *n = mem_new(sizeof *n);
    n->g = g;
    n->keys = mem_new(c->seller_count * sizeof *n->keys);
    n->under_way = mem_new(c->seller_count * sizeof *n->under_way);
    bool any = false;
    for (size_t i = 0; i < c->seller_count; i++) {
        if (!c->sellers[i].webhook)
            continue;
        any = true;
        if (!webhook_key_read(c->sellers[i].webhook_key_file, &n->keys[i]))
            (void)snprintf(why, why_size, "sellers[%zu].webhook_key_file must name a file of mode 0600 with whsec_ and the base64 of at "
                           "least 24 bytes", i);
    }
    if (!why[0] && any)
        look(n);
    return n;
}

/* What is being told is cut: nothing was noted, so it is told again. */
void notices_stop(struct notices *n)
{
    struct notice *next;
    n->stopping = true;
    timer_clear(n->g->loop, &n->timer);
    for (struct notice *x = n->list; x; x = next) {
        next = x->next;
        if (!x->fetch)
            continue;                            /* the database's answer is still to come, and frees it */
        fetch_cancel(x->fetch);
        notice_free(x);
    }
}

void notices_free(struct notices *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->g->config->seller_count; i++)
        webhook_key_done(&n->keys[i]);
    free(n->keys);
    free(n->under_way);
    free(n);
}

void notices_print(const struct notices *n, struct buf *b)
{
    metrics_head(b, "payonce_webhooks_total", "counter", "Tries to tell sellers' webhooks how a settlement ended.");
    buf_printf(b, "payonce_webhooks_total{result=\"told\"} %" PRIu64 "\npayonce_webhooks_total{result=\"failed\"} %" PRIu64 "\n", n->told,
               n->failed);
}
