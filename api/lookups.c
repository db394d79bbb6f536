/* Our own addresses: what anybody who has an id may know of an order. Ids carry 128 random bits; a status is found by
 * them, an answer never is. */
#include <string.h>

#include "api/gateway.h"
#include "base/clock.h"
#include "base/json.h"
#include "receipts/receipts.h"

enum { READ_MS = 5000, REVIEW_S = 60, UNKNOWN_S = 5 };

typedef json_t *build_fn(const struct db_rows *rows, int row, const struct receipt_links *l);
struct lookup {
    build_fn *build;
    bool page; /* a receipt, asked for by a browser */
    struct slice payment_id; /* what was asked for; p NULL: an order's or a receipt's id */
    enum db_rc rc;
    json_t *found;
};

static bool starts(struct slice s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

bool lookup_is_ours(struct slice path)
{
    return starts(path, "/orders/") || starts(path, "/receipts/") || starts(path, "/payments/") ||
           starts(path, "/authorizations/") || starts(path, "/.well-known/payonce-") || slice_is(path, "/healthz") ||
           slice_is(path, "/guide") || slice_is(path, "/guide/sellers");
}

static struct reply *json_reply(int status, const json_t *body)
{
    struct reply *r = reply_new(status);
    const json_t *after = json_object_get(body, "retry_after");
    reply_json(r, NULL, body);
    reply_header(r, "Cache-Control", "no-store");
    if (json_is_integer(after)) {
        OWNED char *seconds = str_format("%" JSON_INTEGER_FORMAT, json_integer_value(after));
        reply_header(r, "Retry-After", seconds);
    }
    return r;
}

/* Not there: perhaps not yet, since a payment is stored only after it was checked. */
static struct reply *not_found(struct slice payment_id)
{
    JSON *body = json_pack("{s:o, s:s, s:i}", "payment_id", json_of_slice(payment_id), "status", "not_found",
                           "retry_after", UNKNOWN_S);
    return json_reply(404, body);
}

/* text/html, and not JSON, among what the client accepts: a browser. */
static bool wants_page(const struct request *rq)
{
    struct slice accept;
    return request_header(rq, "Accept", &accept) > 0 && memmem(accept.p, accept.n, "text/html", 9) &&
           !memmem(accept.p, accept.n, "application/json", 16);
}

static struct reply *page_reply(const json_t *receipt)
{
    BUF page = { 0 };
    OWNED char *policy = receipt_page_policy();
    struct reply *r = reply_new(200);
    receipt_page(&page, receipt);
    reply_body_take(r, "text/html; charset=utf-8", &page);
    reply_header(r, "Content-Security-Policy", policy);
    reply_header(r, "X-Content-Type-Options", "nosniff");
    reply_header(r, "Referrer-Policy", "no-referrer");
    reply_header(r, "Cache-Control", "no-store");
    reply_header(r, "Vary", "Accept");
    return r;
}

static struct step say(struct request *rq)
{
    struct lookup *l = request_memory(rq, sizeof *l);
    JSON *found = MOVE(l->found);
    if (found && l->page)
        return request_reply(rq, page_reply(found));
    if (found)
        return request_reply(rq, json_reply(200, found));
    if (l->rc != DB_OK)
        return request_reply(rq, reply_problem(rq, ERR_STORE_UNAVAILABLE, NULL, NULL));
    return request_reply(rq, l->payment_id.p ? not_found(l->payment_id) : reply_problem(rq, ERR_NOT_FOUND, NULL, NULL));
}

/* An order found by its payment id: the same, and when to ask again wherever a person is asked. */
static json_t *payment_json(const struct db_rows *rows, int row, const struct receipt_links *l)
{
    json_t *o = order_json(rows, row, l);
    if (row_is(rows, row, "status", "in_review"))
        json_object_set_new(o, "retry_after", json_integer(REVIEW_S));
    return o;
}

const struct net *gateway_net(const struct gateway *g, struct slice id)
{
    for (size_t i = 0; i < g->config->net_count; i++)
        if (slice_is(id, g->config->nets[i].id))
            return &g->config->nets[i];
    return NULL;
}

static void name_token(const struct net *n, struct slice asset, struct receipt_links *links)
{
    links->explorer = n->explorer;
    for (size_t i = 0; i < n->token_count; i++)
        if (asset.n == 20 && memcmp(n->tokens[i].address.b, asset.p, 20) == 0) {
            links->symbol = n->tokens[i].symbol;
            links->decimals = n->tokens[i].decimals;
        }
}

static void have_row(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct lookup *l = request_memory(arg, sizeof *l);
    struct gateway *g = request_app(arg);
    struct receipt_links links = { .public_url = g->config->public_url,
                                   .seller = g->config->seller,
                                   .signer = g->has_receipt_key ? &g->receipt_key : NULL };
    l->rc = rc;
    if (rc == DB_OK && db_count(rows) > 0) {
        const struct net *n = gateway_net(g, row_text(rows, 0, "network"));
        if (n) {
            struct known_by k = seat_known_by(gateway_seat(g, n), row_int(rows, 0, "dead_after"));
            links.known_by = k.at;
            links.known_by_note = k.note;
            name_token(n, row_bytes(rows, 0, "asset"), &links);
        }
        l->found = l->build(rows, 0, &links);
    }
    request_go(arg, say);
}

static struct step look_up(struct request *rq, const char *function, struct db_args *args, build_fn *build)
{
    struct lookup *l = request_memory(rq, sizeof *l);
    struct gateway *g = request_app(rq);
    l->build = build;
    db_call(g->db, function, args, clock_mono_ms() + READ_MS, have_row, rq);
    return request_wait(rq);
}

static struct step by_id(struct request *rq, const char *function, const struct order_id *id, build_fn *build)
{
    DB_ARGS a = { 0 };
    arg_bytes(&a, id->b, sizeof id->b);
    return look_up(rq, function, &a, build);
}

static struct step by_payment_id(struct request *rq, struct slice payment_id)
{
    struct lookup *l = request_memory(rq, sizeof *l);
    DB_ARGS a = { 0 };
    if (!payment_id_ok(payment_id))
        return request_reply(rq, reply_problem(rq, ERR_PAYMENT_ID_FORM, NULL, NULL));
    l->payment_id = payment_id;
    arg_slice(&a, payment_id);
    return look_up(rq, "order_by_payment_id", &a, payment_json);
}

static struct step only_get(struct request *rq)
{
    struct reply *r = reply_problem(rq, ERR_METHOD_NOT_ALLOWED, NULL, NULL);
    reply_header(r, "Allow", "GET, HEAD");
    return request_reply(rq, r);
}

struct step lookup_begin(struct request *rq, struct slice path)
{
    struct order_id id;
    struct slice last = { memrchr(path.p, '/', path.n), 0 };
    last.n = (size_t)(path.p + path.n - ++last.p);
    if (strcmp(request_method(rq), "GET") != 0 && strcmp(request_method(rq), "HEAD") != 0)
        return only_get(rq);
    if (slice_is(path, "/healthz")) {
        struct reply *r = reply_new(200);
        reply_body(r, "application/json", SLICE("{\"status\":\"ok\"}"));
        return request_reply(rq, r);
    }
    if (slice_is(path, "/guide") || slice_is(path, "/guide/sellers"))
        return guide_begin(rq);
    if (starts(path, "/orders/") && path.n == 8 + last.n && order_id_read(last, &id))
        return by_id(rq, "order_by_id", &id, order_json);
    if (starts(path, "/authorizations/"))
        return authorization_begin(rq, path);
    if (slice_is(path, "/.well-known/payonce-keys.json"))
        return keys_begin(rq);
    if (starts(path, "/receipts/") && path.n == 10 + last.n && receipt_id_read(last, &id)) {
        ((struct lookup *)request_memory(rq, sizeof(struct lookup)))->page = wants_page(rq);
        return by_id(rq, "order_by_receipt", &id, receipt_json);
    }
    if (starts(path, "/receipts/") && slice_is(last, "result") && receipt_id_read((struct slice){ path.p + 10, path.n - 17 }, &id))
        return result_begin(rq, &id);
    if (starts(path, "/payments/"))
        return by_payment_id(rq, (struct slice){ path.p + 10, path.n - 10 });
    return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, NULL, NULL));
}
