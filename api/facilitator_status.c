/* GET /settlements/{network}/{payer}/{nonce}: what became of a settlement, for its seller. */
#include <string.h>

#include "api/facilitator.h"
#include "base/clock.h"
#include "base/json.h"
#include "receipts/receipts.h"

enum { READ_MS = 5000 };

struct wanted {
    const struct net *net;
    enum db_rc rc;
    json_t *found;
};

/* ---- one settlement ---- */

/* settled, expired, void: proven. Whatever else we think of it, it is on its way. */
static const char *status_of(const struct db_rows *rows, int row)
{
    static const char *const ends[] = { "settled", "expired", "void" };
    for (size_t i = 0; i < COUNT(ends); i++)
        if (row_is(rows, row, "money", ends[i]))
            return ends[i];
    return "settling";
}

json_t *settlement_json(const struct gateway *g, const struct db_rows *rows, int row)
{
    static const char *const taken[] = { "order_id", "network", "asset", "payer", "payee", "amount", "created_at", "settled_at",
                                         "transaction", "block", "depth", "final", "known_by", "known_by_note", "retry_after", "note" };
    struct receipt_links links = { .public_url = g->config->public_url };
    struct hash32 nonce;
    for (size_t i = 0; i < g->config->net_count; i++)
        if (row_is(rows, row, "network", g->config->nets[i].id)) {
            struct known_by k = seat_known_by(&g->seats[i], row_int(rows, row, "dead_after"));
            links.known_by = k.at;
            links.known_by_note = k.note;
        }
    JSON *all = order_json(rows, row, &links);
    json_t *o = json_pack("{s:s}", "status", status_of(rows, row));
    if (row_copy(rows, row, "nonce", nonce.b, 32))
        json_object_set_new(o, "nonce", json_string(hash_text(&nonce).s));
    for (size_t i = 0; i < COUNT(taken); i++)
        if (json_object_get(all, taken[i]))
            json_object_set(o, taken[i], json_object_get(all, taken[i]));
    if (row_is(rows, row, "status", "in_review"))
        json_object_set_new(o, "review", json_true());
    return o;
}

/* ---- which ---- */

static const struct net *find_net(const struct config *c, struct slice name)
{
    for (size_t i = 0; i < c->net_count; i++) {
        const struct net *n = &c->nets[i];
        OWNED char *encoded = str_format("eip155%%3A%llu", (unsigned long long)n->chain_id);
        if (slice_is(name, n->id) || slice_is(name, encoded) || (n->v1_name && slice_is(name, n->v1_name)))
            return n;
    }
    return NULL;
}

/* The next segment of what is left of a path; p NULL: none. */
static struct slice segment(struct slice *path)
{
    const char *slash = memchr(path->p, '/', path->n);
    size_t n = slash ? (size_t)(slash - path->p) : path->n, used = slash ? n + 1 : n;
    struct slice s = { path->p, n };
    path->p += used;
    path->n -= used;
    return s;
}

/* Names of those whose settlements may be told, and the tokens that they are paid in there. */
static void visible(const struct config *c, const struct seller *asking, const struct net *net, json_t *sellers, json_t *assets)
{
    for (size_t s = 0; s < c->seller_count; s++) {
        const struct seller *seller = &c->sellers[s];
        if (asking ? asking != seller : !seller->open)
            continue;
        json_array_append_new(sellers, json_string(seller->name));
        for (size_t i = 0; i < seller->serve_count; i++) {
            char hex[41];
            if (seller->serves[i].net != net)
                continue;
            hex_write_bare(hex, seller->serves[i].token->address.b, 20);
            json_array_append_new(assets, json_string(hex));
        }
    }
}

static struct step say(struct request *rq)
{
    struct wanted *w = request_memory(rq, sizeof *w);
    JSON *found = MOVE(w->found);
    if (w->rc != DB_OK)
        return request_reply(rq, reply_problem(rq, ERR_STORE_UNAVAILABLE, NULL, NULL));
    if (!found)
        return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, "No settlement of yours has this payer and nonce. It may not "
                                               "have been stored yet.", NULL));
    struct reply *r = reply_new(200);
    reply_json(r, NULL, found);
    reply_header(r, "Cache-Control", "no-store");
    return request_reply(rq, r);
}

static void have_row(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct wanted *w = request_memory(arg, sizeof *w);
    w->rc = rc;
    if (rc == DB_OK && db_count(rows) > 0)
        w->found = settlement_json(request_app(arg), rows, 0);
    request_go(arg, say);
}

static struct step look_up(struct request *rq, const struct seller *asking, const struct net *net, const struct address *payer,
                           const struct hash32 *nonce)
{
    const struct gateway *g = request_app(rq);
    JSON *sellers = json_array(), *assets = json_array();
    visible(g->config, asking, net, sellers, assets);
    OWNED char *names = json_write(sellers), *tokens = json_write(assets);
    DB_ARGS a = { 0 };
    (void)request_memory(rq, sizeof(struct wanted));
    arg_text(&a, names);
    arg_text(&a, net->id);
    arg_text(&a, tokens);
    arg_bytes(&a, payer->b, 20);
    arg_bytes(&a, nonce->b, 32);
    db_call(g->db, "settlement_read", &a, clock_mono_ms() + READ_MS, have_row, rq);
    return request_wait(rq);
}

struct step facilitator_status(struct request *rq, struct slice path)
{
    const struct gateway *g = request_app(rq);
    struct slice rest = { path.p + strlen("/settlements/"), path.n - strlen("/settlements/") };
    struct slice network = segment(&rest), payer = segment(&rest), nonce = segment(&rest);
    const struct net *net = find_net(g->config, network);
    const struct seller *asking;
    struct address from;
    struct hash32 number;
    if (!seller_of_key(g->config, rq, &asking)) {
        struct reply *r = reply_problem(rq, ERR_SELLER_KEY, NULL, NULL);
        reply_header(r, "WWW-Authenticate", "Bearer");
        return request_reply(rq, r);
    }
    if (!net || rest.n > 0 || !address_read(payer.p, payer.n, &from) || !hash_read(nonce.p, nonce.n, &number))
        return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, "The address is /settlements/{network}/{payer}/{nonce}.", NULL));
    return look_up(rq, asking, net, &from, &number);
}
