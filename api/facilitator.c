#include "api/facilitator.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"

enum { READ_MS = 3000 };

struct asked *asked_of(struct request *rq)
{
    return request_memory(rq, sizeof(struct asked));
}

/* ---- whose is it ---- */

/* Without a key only what is open is served; with one, only what is its seller's. */
static enum reason find_seller(struct request *rq, struct asked *a)
{
    const struct config *c = a->g->config;
    const struct seller *asking;
    if (!seller_of_key(c, rq, &asking))
        return REASON_API_KEY;
    for (size_t i = 0; i < c->seller_count; i++) {
        const struct seller *s = &c->sellers[i];
        const struct price *serve = asking && asking != s ? NULL : seller_serves(s, &a->ask);
        if (!serve)
            continue;
        if (!asking && !s->open)
            return REASON_API_KEY;
        a->seller = s;
        a->serve = serve;
        return REASON_NONE;
    }
    return REASON_NOT_SERVED;
}

/* ---- /verify and /settle ---- */

static struct step judge(struct request *rq, struct asked *a)
{
    enum reason why = x402_asked(a->body, a->g->config->nets, a->g->config->net_count, &a->ask);
    if (why == REASON_NONE)
        why = find_seller(rq, a);
    if (why == REASON_NONE)
        why = x402_serve(&a->ask, a->serve->token);
    if (why != REASON_NONE)
        return facilitator_refuse(rq, why);
    a->seat = gateway_seat(a->g, a->ask.net);
    a->terms = (struct terms){ .tool = a->seller->name, .max_timeout_s = a->ask.max_timeout_s };
    a->need_s = terms_settle_s(a->ask.net) + 2;
    a->give_up_ms = a->began_ms + a->seller->wait_ms;
    return a->call == ASKED_VERIFY ? facilitator_check(rq) : facilitator_settle(rq);
}

static void ended(struct request *rq, bool delivered)
{
    (void)delivered;
    json_decref(asked_of(rq)->body);
}

static struct step ask(struct request *rq, enum asked_call call)
{
    struct asked *a = asked_of(rq);
    struct slice body = request_body(rq);
    struct json_why why;
    a->g = request_app(rq);
    a->call = call;
    a->ask.version = 2;
    a->began_ms = clock_mono_ms();
    request_on_end(rq, ended);
    a->body = json_read(body.p, body.n, &why);
    return json_is_object(a->body) ? judge(rq, a) : facilitator_refuse(rq, REASON_JSON);
}

/* ---- GET /supported ---- */

struct supported { enum db_rc rc; json_t *signers; };

static bool serves_net(const struct config *c, const struct net *n)
{
    for (size_t s = 0; s < c->seller_count; s++)
        for (size_t i = 0; i < c->sellers[s].serve_count; i++)
            if (c->sellers[s].serves[i].net == n)
                return true;
    return false;
}

static json_t *kind(int version, const char *network)
{
    return json_pack("{s:i, s:s, s:s}", "x402Version", version, "scheme", "exact", "network", network);
}

static struct step say_supported(struct request *rq)
{
    const struct config *c = ((struct gateway *)request_app(rq))->config;
    struct supported *s = request_memory(rq, sizeof *s);
    json_t *kinds = json_array();
    for (size_t i = 0; i < c->net_count; i++) {
        if (!serves_net(c, &c->nets[i]))
            continue;
        json_array_append_new(kinds, kind(2, c->nets[i].id));
        if (c->nets[i].v1_name)
            json_array_append_new(kinds, kind(1, c->nets[i].v1_name));
    }
    JSON *body = json_pack("{s:o, s:[], s:{s:o}}", "kinds", kinds, "extensions", "signers", "eip155:*", MOVE(s->signers));
    struct reply *r = reply_new(200);
    reply_json(r, NULL, body);
    return request_reply(rq, r);
}

/* Who submits, as far as a settler has shown itself. Without the database: nobody is named, and the rest is true. */
static void have_signers(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct supported *s = request_memory(arg, sizeof *s);
    s->signers = json_array();
    for (int i = 0; rc == DB_OK && i < db_count(rows); i++) {
        struct address a;
        if (row_copy(rows, i, "address", a.b, 20))
            json_array_append_new(s->signers, json_string(address_checksum(&a).s));
    }
    request_go(arg, say_supported);
}

static struct step supported(struct request *rq)
{
    const struct gateway *g = request_app(rq);
    DB_ARGS none = { 0 };
    (void)request_memory(rq, sizeof(struct supported));
    db_call(g->db, "relayer_addresses", &none, clock_mono_ms() + READ_MS, have_signers, rq);
    return request_wait(rq);
}

/* ---- routes ---- */

static bool begins(struct slice path, struct slice with)
{
    return path.n > with.n && memcmp(path.p, with.p, with.n) == 0;
}

bool facilitator_is_ours(struct slice path)
{
    return slice_is(path, "/verify") || slice_is(path, "/settle") || slice_is(path, "/supported") ||
           begins(path, SLICE("/settlements/"));
}

static struct step only(struct request *rq, const char *methods)
{
    struct reply *r = reply_problem(rq, ERR_METHOD_NOT_ALLOWED, NULL, NULL);
    reply_header(r, "Allow", methods);
    return request_reply(rq, r);
}

struct step facilitator_begin(struct request *rq, struct slice path)
{
    const char *method = request_method(rq);
    bool post = slice_is(path, "/verify") || slice_is(path, "/settle");
    if (post && strcmp(method, "POST") != 0)
        return only(rq, "POST");
    if (!post && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return only(rq, "GET, HEAD");
    if (slice_is(path, "/verify"))
        return ask(rq, ASKED_VERIFY);
    if (slice_is(path, "/settle"))
        return ask(rq, ASKED_SETTLE);
    return slice_is(path, "/supported") ? supported(rq) : facilitator_status(rq, path);
}
