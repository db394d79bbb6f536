/* Our own addresses: what anybody who has an id may know of an order. Ids carry 128 random bits; a status is found by
 * them, an answer never is. */
#include <string.h>

#include "api/gateway.h"
#include "base/clock.h"
#include "receipts/receipts.h"

enum { READ_MS = 5000 };

struct lookup { enum err err; json_t *(*build)(const struct db_rows *, int, const struct receipt_links *); json_t *found; };

static bool starts(struct slice s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

bool lookup_is_ours(struct slice path)
{
    return starts(path, "/orders/") || starts(path, "/receipts/") || slice_is(path, "/healthz");
}

static struct step say(struct request *rq)
{
    struct lookup *l = request_memory(rq, sizeof *l);
    struct reply *r = l->found ? reply_new(200) : reply_problem(rq, l->err, NULL, NULL);
    if (l->found) {
        reply_json(r, NULL, l->found);
        reply_header(r, "Cache-Control", "no-store");
    }
    json_decref(l->found);
    l->found = NULL;
    return request_reply(rq, r);
}

static void have_row(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct lookup *l = request_memory(arg, sizeof *l);
    struct gateway *g = request_app(arg);
    struct receipt_links links = { .public_url = g->config->public_url };
    l->err = rc == DB_OK ? ERR_NOT_FOUND : ERR_STORE_UNAVAILABLE;
    if (rc == DB_OK && db_count(rows) > 0) {
        for (size_t i = 0; i < g->config->net_count; i++)
            if (row_is(rows, 0, "network", g->config->nets[i].id))
                links.known_by = terms_known_by(&g->config->nets[i], row_int(rows, 0, "dead_after"));
        l->found = l->build(rows, 0, &links);
    }
    request_go(arg, say);
}

static struct step look_up(struct request *rq, const char *function, const struct order_id *id,
                           json_t *(*build)(const struct db_rows *, int, const struct receipt_links *))
{
    struct lookup *l = request_memory(rq, sizeof *l);
    struct gateway *g = request_app(rq);
    DB_ARGS a = { 0 };
    l->build = build;
    arg_bytes(&a, id->b, 16);
    db_call(g->db, function, &a, clock_mono_ms() + READ_MS, have_row, rq);
    return request_wait(rq);
}

struct step lookup_begin(struct request *rq, struct slice path)
{
    struct order_id id;
    struct slice last = { memrchr(path.p, '/', path.n), 0 };
    last.n = (size_t)(path.p + path.n - ++last.p);
    if (strcmp(request_method(rq), "GET") != 0 && strcmp(request_method(rq), "HEAD") != 0) {
        struct reply *r = reply_problem(rq, ERR_METHOD_NOT_ALLOWED, NULL, NULL);
        reply_header(r, "Allow", "GET, HEAD");
        return request_reply(rq, r);
    }
    if (slice_is(path, "/healthz")) {
        struct reply *r = reply_new(200);
        reply_body(r, "application/json", SLICE("{\"status\":\"ok\"}"));
        return request_reply(rq, r);
    }
    if (starts(path, "/orders/") && path.n == 8 + last.n && order_id_read(last, &id))
        return look_up(rq, "order_by_id", &id, order_json);
    if (starts(path, "/receipts/") && path.n == 10 + last.n && receipt_id_read(last, &id))
        return look_up(rq, "order_by_receipt", &id, receipt_json);
    return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, NULL, NULL));
}
