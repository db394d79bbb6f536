/* The gateway process: it makes what its requests share, runs the loop, and drains when told to stop. It holds no key that
 * can move money. */
#include "api/gateway.h"

#include <stdio.h>
#include <string.h>

#include "api/roles.h"
#include "base/clock.h"
#include "base/log.h"
#include "settle/pin.h"
#include "settle/x402.h"

enum { BEAT_MS = 3000, BEAT_TTL_S = 15, PIN_AGAIN_MS = 2000, PIN_WAIT_MS = 4000, DRAIN_MS = 25000, ADMIN_BODY = 65536, POOL = 24576 };

struct seat *gateway_seat(const struct gateway *g, const struct net *n)
{
    return &g->seats[n - g->config->nets];
}

struct known_by seat_known_by(const struct seat *s, int64_t dead_after)
{
    return terms_known_by(s->net, &s->finality, dead_after, clock_wall_s());
}

void seat_set_known_by(const struct seat *s, int64_t dead_after, json_t *o)
{
    struct known_by k = seat_known_by(s, dead_after);
    json_object_set_new(o, "known_by", json_string(time_iso(k.at).s));
    if (k.note)
        json_object_set_new(o, "known_by_note", json_string(k.note));
}

/* ---- is this the chain that the database knows? ---- */

static void pin_again(void *arg);

static void pinned(void *arg, enum pin result, const char *why)
{
    struct seat *s = arg;
    s->asked = true;
    switch (result) {
    case PIN_OK:
        s->pinned = true;
        log_info("gateway.chain", "network=%s chain=ok", s->net->id);
        return;
    case PIN_UNAVAILABLE:
        log_warn("gateway.chain_unavailable", "network=%s why=%s", s->net->id, why);
        timer_set(s->gateway->loop, &s->retry, clock_mono_ms() + PIN_AGAIN_MS, pin_again, s);
        return;
    case PIN_REPLACED:
        log_error("gateway.chain_replaced", "network=%s why=%s", s->net->id, why);
        s->gateway->failed = true;
        loop_stop(s->gateway->loop);
        return;
    }
}

static void pin_again(void *arg)
{
    struct seat *s = arg;
    pin_start(s->gateway->db, s->rpc, s->net, pinned, s);
}

/* ---- leases live while we do ---- */

static void beaten(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    (void)arg, (void)rows;
    if (rc != DB_OK)
        log_warn("gateway.no_heartbeat", "hint=the database does not answer; leases run out in %d s", BEAT_TTL_S);
}

static void have_finality(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct gateway *g = arg;
    for (int row = 0; rc == DB_OK && row < db_count(rows); row++)
        for (size_t i = 0; i < g->config->net_count; i++)
            if (row_is(rows, row, "id", g->config->nets[i].id))
                g->seats[i].finality =
                    (struct finality){ .usual = row_int(rows, row, "finality_s"), .now = row_int(rows, row, "behind_s") };
}

/* Signs of life out, and what the settlers learned of their networks in. */
static void beat(void *arg)
{
    struct gateway *g = arg;
    DB_ARGS a = { 0 };
    arg_bytes(&a, g->instance.b, 16);
    arg_text(&a, "gateway");
    arg_int(&a, BEAT_TTL_S);
    db_call(g->db, "instance_beat", &a, clock_mono_ms() + BEAT_MS, beaten, g);
    DB_ARGS none = { 0 };
    db_call(g->db, "networks_finality", &none, clock_mono_ms() + BEAT_MS, have_finality, g);
    timer_set(g->loop, &g->beat, clock_mono_ms() + BEAT_MS, beat, g);
}

/* ---- an order changed: whoever waits for it looks again ---- */

static void heard(void *arg, const char *channel, const char *payload)
{
    struct gateway *g = arg;
    struct topic t;
    (void)channel;
    if (!payload) {
        server_wake_all(g->server);
        return;
    }
    for (const char *p = payload; strlen(p) >= 32; p += 33) {
        char hex[35] = "0x";
        memcpy(hex + 2, p, 32);
        if (hex_read(hex, 34, t.b, sizeof t.b))
            server_wake(g->server, t);
        if (!p[32])
            break;
    }
}

/* ---- start and stop ---- */

/* A tool's prices on one rail, in their order: they are put at *next, which moves on. */
static struct terms terms_of(const struct tool *t, bool tempo, struct price **next)
{
    const struct price *list = *next;
    for (size_t i = 0; i < t->price_count; i++)
        if (t->prices[i].net->tempo == tempo)
            *(*next)++ = t->prices[i];
    return (struct terms){ t->name, list, (size_t)(*next - list), t->max_timeout_s, tempo || t->settle == SETTLE_BEFORE_WORK };
}

static void make_mpp_keys(struct gateway *g)
{
    static const char domain[] = "payonce mpp challenge";
    uint8_t text[sizeof domain + 32];
    memcpy(text, domain, sizeof domain);
    for (size_t i = 0; i < g->quote_key.n; i++) {
        memcpy(text + sizeof domain, g->quote_key.b[i], 32);
        const struct hash32 key = sha256(text, sizeof text);
        memcpy(g->mpp_key[i], key.b, sizeof key.b);
    }
    bytes_wipe(text, sizeof text);
}

static void make_terms(struct gateway *g)
{
    const struct config *c = g->config;
    make_mpp_keys(g);
    size_t all = 1;
    for (size_t i = 0; i < c->tool_count; i++)
        all += c->tools[i].price_count;
    struct price *next = g->prices = mem_new(all * sizeof *g->prices);
    g->terms = mem_new(c->tool_count * sizeof *g->terms);
    g->mpp_terms = mem_new(c->tool_count * sizeof *g->mpp_terms);
    g->challenges = mem_new(c->tool_count * sizeof(struct challenge *));
    for (size_t i = 0; i < c->tool_count; i++) {
        const struct tool *t = &c->tools[i];
        g->terms[i] = terms_of(t, false, &next);
        g->mpp_terms[i] = terms_of(t, true, &next);
        if (g->terms[i].price_count > 0)
            g->challenges[i] = challenge_new(&g->terms[i], c->public_url, t->description, t->mime_type,
                                             c->offer_receipt ? &g->receipt_key : NULL);
    }
}

static void make_seats(struct gateway *g)
{
    const struct config *c = g->config;
    g->seats = mem_new(c->net_count * sizeof *g->seats);
    for (size_t i = 0; i < c->net_count; i++) {
        const struct net *n = &c->nets[i];
        struct rpc *rpc = rpc_new(g->fetcher, g->loop, n->chain_id, n->rpc, n->rpc_count, n->rpc_timeout_ms);
        g->seats[i] = (struct seat){ .net = n, .rpc = rpc, .checker = checker_new(g->loop, rpc), .gateway = g };
        pin_start(g->db, rpc, n, pinned, &g->seats[i]);
    }
}

/* Nobody is served before the chains were asked for, so that a restart shows no needless 503. One that does not answer is not
 * waited for: prices and receipts need no chain. */
static void wait_for_chains(struct gateway *g)
{
    int64_t until = clock_mono_ms() + PIN_WAIT_MS;
    bool all = false;
    while (!all && !g->failed && clock_mono_ms() < until) {
        loop_turn(g->loop, 20);
        all = true;
        for (size_t i = 0; i < g->config->net_count; i++)
            all = all && g->seats[i].asked;
    }
}

static size_t admin_body_limit(const struct request *rq)
{
    (void)rq;
    return ADMIN_BODY;
}

static bool make_servers(struct gateway *g, char *why, size_t why_size)
{
    const struct config *c = g->config;
    struct server_options o = {
        .listen = c->listen,
        .max_connections = c->max_connections,
        .idle_ms = c->idle_ms,
        .pool_bytes = POOL,
        .trusted_proxies = c->trusted_proxies,
        .trusted_proxy_count = c->trusted_proxy_count,
    };
    struct server_options admin = {
        .listen = c->admin_listen, .max_connections = 64, .idle_ms = c->idle_ms, .pool_bytes = POOL
    };
    struct server_app app = { gate_body_limit, gate_begin, g }, admin_app = { admin_body_limit, admin_begin, g };
    g->server = server_new(g->loop, &o, &app, why, why_size);
    if (g->server)
        g->admin = server_new(g->loop, &admin, &admin_app, why, why_size);
    return g->server && g->admin;
}

static void stop(void *arg)
{
    loop_stop(((struct gateway *)arg)->loop);
}

/* What waits for an answer from outside is told that none comes, while its request is still there; then the requests go. */
static void take_down(struct gateway *g)
{
    DB_ARGS a = { 0 };
    if (g->server)
        server_drain(g->server, clock_mono_ms() + DRAIN_MS);
    arg_bytes(&a, g->instance.b, 16);
    (void)!db_wait(g->db, "instance_end", &a, clock_mono_ms() + 1000, NULL);
    facilitator_stop(g);
    for (size_t i = 0; i < g->config->net_count; i++) {
        checker_free(g->seats[i].checker);
        rpc_free(g->seats[i].rpc);
    }
    fetcher_free(g->fetcher);
    db_free(g->db);
    outcomes_free(g->outcomes);
    metrics_free(g->metrics);
    facilitator_free(g);
    free(g->admin_token);
    server_free(g->server);
    server_free(g->admin);
    for (size_t i = 0; i < g->config->net_count; i++)
        timer_clear(g->loop, &g->seats[i].retry);
    timer_clear(g->loop, &g->beat);
    upkeep_stop(g);
    loop_free(g->loop);
    for (size_t i = 0; i < g->config->tool_count; i++)
        challenge_free(g->challenges[i]);
    free(g->prices);
    free(g->seats);
    free(g->terms);
    free(g->mpp_terms);
    free(g->challenges);
    repeat_counts_done(&g->repeats);
}

/* Receipts are signed with a key of their own, which holds no money; without one they are not signed. */
static bool receipt_key_load(struct gateway *g)
{
    const char *path = getenv("PAYONCE_RECEIPT_KEY_FILE");
    if (!path && g->config->offer_receipt)
        (void)fprintf(stderr, "payonce gateway: offer_receipt needs PAYONCE_RECEIPT_KEY_FILE\n");
    if (!path)
        return !g->config->offer_receipt;
    g->has_receipt_key = key_load(path, &g->receipt_key) == KEY_OK;
    if (!g->has_receipt_key)
        (void)fprintf(stderr, "payonce gateway: PAYONCE_RECEIPT_KEY_FILE must name a file of mode 0600 with 64 hex digits, a secp256k1 secret key\n");
    return g->has_receipt_key;
}

int gateway_main(const struct config *c)
{
    static const char *const channels[] = { "payonce_order" };
    struct gateway g = { .config = c };
    struct config_why why = { "" };
    const char *key = getenv("PAYONCE_QUOTE_KEY_FILE");
    OWNED char *conninfo = config_conninfo(c, &why);
    if (!conninfo) {
        (void)fprintf(stderr, "payonce gateway: %s\n", why.text);
        return 1;
    }
    if (!key || !quote_key_load(key, &g.quote_key)) {
        (void)fprintf(stderr, "payonce gateway: PAYONCE_QUOTE_KEY_FILE must name a file of mode 0600 with 64 hex digits a line\n");
        return 2;
    }
    if (!receipt_key_load(&g))
        return 2;
    if (!admin_token_load(&g, why.text, sizeof why.text)) {
        (void)fprintf(stderr, "payonce gateway: %s\n", why.text);
        return 2;
    }
    log_open("gateway", LOG_INFO);
    bytes_random(&g.instance, sizeof g.instance);
    g.loop = loop_new();
    loop_on_stop_signal(g.loop, stop, &g);
    g.fetcher = fetcher_new(g.loop);
    g.db = db_open(g.loop, conninfo, "payonce_gateway", c->database_connections);
    g.outcomes = outcomes_new(&g);
    g.metrics = metrics_new(g.db);
    make_terms(&g);
    make_seats(&g);
    wait_for_chains(&g);
    upkeep_start(&g);
    if (g.failed) {
        (void)fprintf(stderr, "payonce gateway: a chain is not the one in the database; the log says which\n");
    } else if (facilitator_start(&g, why.text, sizeof why.text) && make_servers(&g, why.text, sizeof why.text)) {
        db_listen(g.db, channels, COUNT(channels), heard, &g);
        beat(&g);
        log_info("gateway.ready", "listen=%s admin=%s tools=%zu sellers=%zu", c->listen, c->admin_listen, c->tool_count,
                 c->seller_count);
        loop_run(g.loop);
    } else {
        (void)fprintf(stderr, "payonce gateway: %s\n", why.text);
        g.failed = true;
    }
    take_down(&g);
    key_wipe(&g.receipt_key);
    return g.failed ? 1 : 0;
}
