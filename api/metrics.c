#include "api/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { FRESH_MS = 2000, READ_MS = 3000 };

/* Seconds; the last bucket of each is without a bound. */
static const char resolved_bounds[] = "{2,5,10,15,30,60,120,300,900,1800}";
static const char *const resolved_le[] = { "2", "5", "10", "15", "30", "60", "120", "300", "900", "1800", "+Inf" };
static const int64_t span_ms[] = { 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10000 };
static const char *const span_le[] = { "0.001", "0.002", "0.005", "0.01", "0.025", "0.05", "0.1",
                                       "0.25",  "0.5",   "1",     "2.5",  "10",    "+Inf" };

struct span_counts {
    uint64_t in[COUNT(span_le)], sum_ms;
};
struct scrape {
    struct scrape *next;
    struct request *rq;
    phase *then;
};

struct metrics {
    struct db *db;
    struct span_counts spans[SPAN_KINDS];
    uint64_t retries[3], found[2];

    struct scrape *waiting;
    bool read;     /* once at least */
    bool answered; /* the last time */
    int64_t read_ms;
    int64_t after;     /* events up to here are counted */
    struct buf gauges; /* as the page has them */
    uint64_t resolved[COUNT(resolved_le)], resolved_s, run_again, ended;
};

struct metrics *metrics_new(struct db *db)
{
    struct metrics *m = mem_new(sizeof *m);
    m->db = db;
    return m;
}

void metrics_free(struct metrics *m)
{
    buf_done(&m->gauges);
    free(m);
}

/* ---- counted by the gateway itself ---- */

void metrics_span(struct metrics *m, enum span s, int64_t began_ms)
{
    int64_t ms = clock_mono_ms() - began_ms;
    size_t i = 0;
    while (i < COUNT(span_ms) && ms > span_ms[i])
        i++;
    m->spans[s].in[i]++;
    m->spans[s].sum_ms += (uint64_t)ms;
}

static const char *const sources[] = { "llm", "framework", "http" };

void metrics_presented(struct metrics *m, struct request *rq)
{
    struct slice source;
    if (request_header(rq, "Payonce-Retry-Source", &source) == 0)
        return;
    for (size_t i = 0; i < COUNT(sources); i++)
        m->retries[i] += slice_is(source, sources[i]);
}

void metrics_found(struct metrics *m, bool known)
{
    m->found[known]++;
}

/* ---- counted by the database ---- */

static const struct gauge {
    const char *metric, *name, *type, *label, *help; /* label "": the rows have whole labels */
} gauges[] = {
    { "open", "payonce_authorizations_open", "gauge", "state",
      "Authorizations that are not proven settled or dead, by state." },
    { "open_oldest", "payonce_authorizations_oldest_seconds", "gauge", "state",
      "Age of the oldest of them in its state." },
    { "unknowns", "payonce_unknowns", "gauge", NULL, "Authorizations that were sent and are not proven either way." },
    { "unknown_oldest", "payonce_unknown_oldest_seconds", "gauge", NULL, "Age of the oldest unknown." },
    { "settlements", "payonce_settlements_open", "gauge", "seller", "Settlements of a seller's that are not proven either way." },
    { "untold", "payonce_webhooks_waiting", "gauge", NULL, "Ends of settlements that a seller's webhook was not told yet." },
    { "untold_oldest", "payonce_webhook_oldest_seconds", "gauge", NULL, "Age of the oldest of them." },
    { "reviews", "payonce_reviews_open", "gauge", NULL, "Orders that wait for a person." },
    { "review_oldest", "payonce_review_oldest_seconds", "gauge", NULL, "Age of the oldest of them." },
    { "duplicates", "payonce_duplicate_charges_total", "counter", NULL,
      "Second payments for one order, each owed back." },
    { "relay", "payonce_relay_transactions", "gauge", "state", "The newest 10,000 relay transactions by state." },
    { "fee_capped", "payonce_relay_fee_capped", "gauge", "network",
      "Account nonces that wait for a block at fee_max_wei, where their fee cannot be raised." },
    { "gas", "payonce_gas_balance_wei", "gauge", "network", "What the relayer has for gas." },
    { "debts", "payonce_debts_open", "gauge", "state", "Debts that are not paid back, by state." },
    { "debt_oldest", "payonce_debt_oldest_seconds", "gauge", NULL, "Age of the oldest of them." },
    { "refund_wallet", "payonce_refund_wallet_balance", "gauge", "asset", "What the refund wallet holds, in minor units." },
    { "refund_lacks", "payonce_refund_wallet_lacks", "gauge", "asset",
      "What it lacks for the debts that are approved. Alert above 0: fund the refund wallet." },
    { "books", "payonce_books_differ", "gauge", NULL,
      "Wallets whose balance on the chain is not what the books come to. Alert above 0." },
    { "seen", "payonce_network_seen_age_seconds", "gauge", "network", "Since a settler last read the network's head." },
    { "rpc_faults", "payonce_settler_rpc_faults_total", "counter", "",
      "What endpoints were at fault for when settlers asked them, by endpoint and kind." },
};

void metrics_head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void keep_gauge(struct metrics *m, const struct gauge *g, const struct db_rows *rows)
{
    metrics_head(&m->gauges, g->name, g->type, g->help);
    for (int i = 0; i < db_count(rows); i++) {
        if (!row_is(rows, i, "metric", g->metric))
            continue;
        if (g->label && *g->label)
            buf_printf(&m->gauges, "%s{%s=\"%s\"} %s\n", g->name, g->label, row_text(rows, i, "label").p,
                       row_text(rows, i, "value").p);
        else if (g->label)
            buf_printf(&m->gauges, "%s{%s} %s\n", g->name, row_text(rows, i, "label").p, row_text(rows, i, "value").p);
        else
            buf_printf(&m->gauges, "%s %s\n", g->name, row_text(rows, i, "value").p);
    }
}

static void keep_count(struct metrics *m, const struct db_rows *rows, int i)
{
    const char *label = row_text(rows, i, "label").p;
    uint64_t value = strtoull(row_text(rows, i, "value").p, NULL, 10);
    if (row_is(rows, i, "metric", "until"))
        m->after = (int64_t)value;
    else if (row_is(rows, i, "metric", "resolved") && strtoull(label, NULL, 10) < COUNT(resolved_le))
        m->resolved[strtoull(label, NULL, 10)] += value;
    else if (row_is(rows, i, "metric", "resolved_s"))
        m->resolved_s += value;
    else if (row_is(rows, i, "metric", "taken_over"))
        *(row_is(rows, i, "label", "run_again") ? &m->run_again : &m->ended) += value;
}

static void have_figures(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct metrics *m = arg;
    struct scrape *waiting = MOVE(m->waiting);
    m->answered = rc == DB_OK;
    m->read_ms = clock_mono_ms();
    m->gauges.n = 0; /* old figures are not shown as if they were of now */
    if (rc == DB_OK) {
        m->read = true;
        for (size_t i = 0; i < COUNT(gauges); i++)
            keep_gauge(m, &gauges[i], rows);
        for (int i = 0; i < db_count(rows); i++)
            keep_count(m, rows, i);
    }
    while (waiting) {
        struct scrape *s = waiting;
        waiting = s->next;
        request_go(s->rq, s->then);
    }
}

static struct step stale(struct metrics *m, struct request *rq, phase *next)
{
    struct scrape *s = request_memory(rq, sizeof *s);
    bool asked = m->waiting != NULL;
    *s = (struct scrape){ m->waiting, rq, next };
    m->waiting = s;
    if (!asked) {
        DB_ARGS a = { 0 };
        if (m->read)
            arg_int(&a, m->after);
        else
            arg_null(&a);
        arg_text(&a, resolved_bounds);
        db_call(m->db, "metrics_read", &a, clock_mono_ms() + READ_MS, have_figures, m);
    }
    return request_wait(rq);
}

struct step metrics_read(struct metrics *m, struct request *rq, phase *next)
{
    if (m->answered && clock_mono_ms() < m->read_ms + FRESH_MS)
        return next(rq);
    return stale(m, rq, next);
}

/* ---- the page ---- */

/* One histogram: buckets that count what is within their bound. labels: before le, with a comma behind. */
static void print_buckets(struct buf *b, const char *name, const char *labels, const char *const *le,
                          const uint64_t *in, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += in[i];
        buf_printf(b, "%s_bucket{%sle=\"%s\"} %" PRIu64 "\n", name, labels, le[i], sum);
    }
}

static void print_span(struct buf *b, const struct span_counts *c, const char *name, const char *call)
{
    uint64_t count = 0;
    OWNED char *labels = call ? str_format("call=\"%s\",", call) : str_copy("");
    OWNED char *alone = call ? str_format("{call=\"%s\"}", call) : str_copy("");
    for (size_t i = 0; i < COUNT(c->in); i++)
        count += c->in[i];
    print_buckets(b, name, labels, span_le, c->in, COUNT(c->in));
    buf_printf(b, "%s_sum%s %" PRIu64 ".%03" PRIu64 "\n%s_count%s %" PRIu64 "\n", name, alone, c->sum_ms / 1000,
               c->sum_ms % 1000, name, alone, count);
}

static void print_spans(const struct metrics *m, struct buf *b)
{
    static const char database[] = "payonce_database_seconds", upstream[] = "payonce_upstream_seconds";
    static const char *const calls[] = {
        [SPAN_FIND] = "find", [SPAN_ACCEPT] = "accept", [SPAN_FINISH] = "finish", [SPAN_STATUS] = "status"
    };
    metrics_head(b, database, "histogram",
                 "From asking the database to its answer, waiting for a connection included.");
    for (size_t i = 0; i < COUNT(calls); i++)
        print_span(b, &m->spans[i], database, calls[i]);
    metrics_head(b, upstream, "histogram",
                 "From calling the seller's API for a paid call to its whole answer, or its failure.");
    print_span(b, &m->spans[SPAN_UPSTREAM], upstream, NULL);
}

static void print_own(const struct metrics *m, struct buf *b)
{
    metrics_head(b, "payonce_retries_total", "counter",
                 "Payments presented with a Payonce-Retry-Source, by what it says.");
    for (size_t i = 0; i < COUNT(sources); i++)
        buf_printf(b, "payonce_retries_total{source=\"%s\"} %" PRIu64 "\n", sources[i], m->retries[i]);
    metrics_head(b, "payonce_presentations_total", "counter", "Payments presented that could be read.");
    buf_printf(b, "payonce_presentations_total %" PRIu64 "\n", m->found[false] + m->found[true]);
    metrics_head(b, "payonce_known_presentations_total", "counter",
                 "Those that named an order, or conflicted with one.");
    buf_printf(b, "payonce_known_presentations_total %" PRIu64 "\n", m->found[true]);
}

static void print_counts(const struct metrics *m, struct buf *b)
{
    static const char resolution[] = "payonce_resolution_seconds";
    uint64_t count = 0;
    for (size_t i = 0; i < COUNT(m->resolved); i++)
        count += m->resolved[i];
    metrics_head(b, resolution, "histogram",
                 "From sending an authorization to the proof of its end, since this gateway started.");
    print_buckets(b, resolution, "", resolved_le, m->resolved, COUNT(m->resolved));
    buf_printf(b, "%s_sum %" PRIu64 "\n%s_count %" PRIu64 "\n", resolution, m->resolved_s, resolution, count);
    metrics_head(b, "payonce_leases_taken_over_total", "counter",
                 "Work whose instance died, since this gateway started, by what became of it.");
    buf_printf(b, "payonce_leases_taken_over_total{how=\"run_again\"} %" PRIu64 "\n", m->run_again);
    buf_printf(b, "payonce_leases_taken_over_total{how=\"ended\"} %" PRIu64 "\n", m->ended);
}

void metrics_print(const struct metrics *m, struct buf *b)
{
    print_own(m, b);
    print_spans(m, b);
    metrics_head(b, "payonce_database_figures", "gauge", "1 when what follows was read from the database just now.");
    buf_printf(b, "payonce_database_figures %d\n", m->answered);
    print_counts(m, b);
    buf_add(b, m->gauges.p, m->gauges.n);
}
