/* Who a seller is, what he may ask for, and how often he did. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/facilitator.h"
#include "base/clock.h"
#include "base/json.h"

/* NEAR: so close to a day's limit the database counts exactly. Further away its last count will do, until AHEAD of our own came on top of
 * it; at AGAIN it counts anew. So a gateway passes a limit by AHEAD at most, and only where others took NEAR since that count. */
enum { LOAD_EVERY_MS = 5000, LOAD_MS = 4000, NEAR = 5000, AHEAD = 500, AGAIN = AHEAD / 2 };

struct seller_counts {
    uint64_t by_call[ASKED_CALLS][ASKED_OUTCOMES];
    int64_t today, since;            /* settlements of 24 hours when they were last counted, and ours since */
    int64_t under_way;               /* of since, what the database has not answered yet */
    int64_t asked;                   /* of since, what the next count holds */
    bool counted;
};

struct facilitator {
    struct gateway *g;
    struct seller_counts *counts;    /* one a seller, in the configuration's order; the last: nobody's */
    struct timer load;
    bool loading;
    struct notices *notices;
};

/* ---- whose key, whose payee ---- */

bool seller_of_key(const struct config *c, const struct request *rq, const struct seller **ret)
{
    static const char scheme[] = "Bearer ";
    struct slice sent;
    size_t n = request_header(rq, "Authorization", &sent);
    *ret = NULL;
    if (n == 0)
        return true;
    if (n > 1 || sent.n < strlen(scheme) || strncasecmp(sent.p, scheme, strlen(scheme)) != 0)
        return false;
    struct hash32 digest = sha256(sent.p + strlen(scheme), sent.n - strlen(scheme));
    for (size_t i = 0; i < c->seller_count; i++)
        if (!c->sellers[i].open && bytes_equal_ct(digest.b, c->sellers[i].key_digest.b, sizeof digest.b))
            *ret = &c->sellers[i];
    return *ret != NULL;
}

const struct price *seller_serves(const struct seller *s, const struct x402_asked *a)
{
    for (size_t i = 0; i < s->serve_count; i++) {
        const struct price *p = &s->serves[i];
        if (p->net == a->net && address_eq(&p->token->address, &a->asset) && address_eq(&p->pay_to, &a->pay_to))
            return p;
    }
    return NULL;
}

/* ---- limits ---- */

static struct seller_counts *counts_of(const struct facilitator *f, const struct seller *s)
{
    const struct config *c = f->g->config;
    return &f->counts[s ? (size_t)(s - c->sellers) : c->seller_count];
}

bool seller_over_limit(const struct facilitator *f, const struct asked *a)
{
    const struct seller_counts *n = counts_of(f, a->seller);
    if (!amount_is_zero(a->serve->amount) && amount_cmp(a->ask.payment.price.amount, a->serve->amount) > 0)
        return true;
    return a->seller->max_per_day > 0 && n->today + n->since >= a->seller->max_per_day;
}

int64_t seller_most(const struct facilitator *f, const struct seller *s)
{
    const struct seller_counts *n = counts_of(f, s);
    return n->counted && n->since < AHEAD && n->today + n->since < s->max_per_day - NEAR ? 0 : s->max_per_day;
}

static void load(void *arg);

void seller_takes(struct facilitator *f, const struct seller *s)
{
    struct seller_counts *n = counts_of(f, s);
    n->under_way++;
    if (++n->since >= AGAIN && s->max_per_day > 0 && !f->loading)
        load(f);
}

void seller_took(struct facilitator *f, const struct seller *s, bool taken)
{
    struct seller_counts *n = counts_of(f, s);
    n->under_way--;
    n->since -= !taken;
}

static void loaded(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct facilitator *f = arg;
    const struct config *c = f->g->config;
    f->loading = false;
    for (int i = 0; rc == DB_OK && i < db_count(rows); i++)
        for (size_t s = 0; s < c->seller_count; s++)
            if (row_is(rows, i, "seller", c->sellers[s].name)) {
                f->counts[s].today = row_int(rows, i, "today");
                f->counts[s].since -= f->counts[s].asked;
                f->counts[s].counted = true;
            }
}

/* Counted by the database for all gateways, from time to time and when we took many; each adds what it took since. */
static void load(void *arg)
{
    struct facilitator *f = arg;
    const struct config *c = f->g->config;
    JSON *names = json_array();
    for (size_t i = 0; i < c->seller_count; i++)
        if (c->sellers[i].max_per_day > 0) {
            json_array_append_new(names, json_string(c->sellers[i].name));
            f->counts[i].asked = f->counts[i].since - f->counts[i].under_way;
        }
    if (json_array_size(names) == 0)
        return;
    OWNED char *text = json_write(names);
    DB_ARGS a = { 0 };
    arg_text(&a, text);
    f->loading = true;
    db_call(f->g->db, "sellers_load", &a, clock_mono_ms() + LOAD_MS, loaded, f);
    timer_set(f->g->loop, &f->load, clock_mono_ms() + LOAD_EVERY_MS, load, f);
}

/* ---- counts ---- */

void facilitator_count(struct facilitator *f, const struct asked *a, enum asked_outcome o)
{
    counts_of(f, a->seller)->by_call[a->call][o]++;
}

static void print_counts(const struct facilitator *f, struct buf *b, const char *name, const struct seller_counts *n)
{
    static const char *const calls[ASKED_CALLS] = { [ASKED_VERIFY] = "verify", [ASKED_SETTLE] = "settle" };
    static const char *const outcomes[ASKED_OUTCOMES] = {
        [ASKED_VALID] = "valid",     [ASKED_SETTLED] = "settled",     [ASKED_REPLAYED] = "replayed",
        [ASKED_PENDING] = "pending", [ASKED_REFUSED] = "refused",     [ASKED_MALFORMED] = "malformed",
        [ASKED_UNAVAILABLE] = "unavailable",
    };
    (void)f;
    for (size_t call = 0; call < ASKED_CALLS; call++)
        for (size_t o = 0; o < ASKED_OUTCOMES; o++)
            if (n->by_call[call][o] > 0)
                buf_printf(b, "payonce_facilitator_requests_total{seller=\"%s\",call=\"%s\",outcome=\"%s\"} %" PRIu64 "\n", name,
                           calls[call], outcomes[o], n->by_call[call][o]);
}

void facilitator_print(const struct facilitator *f, struct buf *b)
{
    const struct config *c = f->g->config;
    metrics_head(b, "payonce_facilitator_requests_total", "counter", "/verify and /settle by seller and outcome; seller empty: nobody's.");
    for (size_t i = 0; i <= c->seller_count; i++)
        print_counts(f, b, i < c->seller_count ? c->sellers[i].name : "", &f->counts[i]);
    notices_print(f->notices, b);
}

/* ---- start and stop ---- */

bool facilitator_start(struct gateway *g, char *why, size_t why_size)
{
    if (g->config->seller_count == 0)
        return true;
    struct facilitator *f = mem_new(sizeof *f);
    f->g = g;
    f->counts = mem_new((g->config->seller_count + 1) * sizeof *f->counts);
    g->facilitator = f;
    why[0] = '\0';
    f->notices = notices_new(g, why, why_size);
    if (why[0])
        return false;
    load(f);
    return true;
}

void facilitator_stop(struct gateway *g)
{
    struct facilitator *f = g->facilitator;
    if (!f)
        return;
    timer_clear(g->loop, &f->load);
    notices_stop(f->notices);
}

void facilitator_free(struct gateway *g)
{
    struct facilitator *f = g->facilitator;
    if (!f)
        return;
    notices_free(f->notices);
    free(f->counts);
    free(f);
    g->facilitator = NULL;
}
