/* GET /reconciliation at the operator's address: how books and chain compared the last time, a network each. */
#include <inttypes.h>
#include <string.h>

#include "api/gateway.h"
#include "base/clock.h"
#include "base/json.h"

enum { READ_MS = 5000 };

static const char style[] =
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #888}"
    "th,td.n{white-space:nowrap}td{min-width:8rem;overflow-wrap:anywhere}td.n{min-width:0;text-align:right;"
    "font-variant-numeric:tabular-nums}div{overflow-x:auto}";

struct question {
    json_t *reports;
    bool unavailable;
};

/* "on_chain": On chain. */
static void heading(struct buf *b, const char *key)
{
    buf_printf(b, "<th scope=\"col\">%c", key[0] - 'a' + 'A');
    for (const char *c = key + 1; *c; c++)
        buf_printf(b, "%c", *c == '_' ? ' ' : *c);
    buf_puts(b, "</th>");
}

static void table(struct buf *b, const char *caption, const json_t *rows, const char *const *keys, size_t n)
{
    size_t i, k;
    json_t *row;
    buf_printf(b, "<h3>%s</h3>\n<div tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><thead><tr>", caption,
               caption);
    for (k = 0; k < n; k++)
        heading(b, keys[k]);
    buf_puts(b, "</tr></thead><tbody>\n");
    json_array_foreach(rows, i, row)
    {
        buf_puts(b, "<tr>");
        for (k = 0; k < n; k++) {
            const char *s = json_str(row, keys[k]);
            const bool is_number = s && *s && strspn(s, "-0123456789") == strlen(s);
            buf_puts(b, is_number ? "<td class=\"n\">" : "<td>");
            buf_html(b, s ? s : "");
            buf_puts(b, "</td>");
        }
        buf_puts(b, "</tr>\n");
    }
    buf_puts(b, "</tbody></table></div>\n");
}

static void one_network(struct buf *b, const json_t *r)
{
    static const char *const wallets[] = { "account", "symbol",   "opening",   "entries",
                                           "closing", "on_chain", "difference", "note" };
    static const char *const liabilities[] = { "asset", "account", "open_debts", "suspense", "trial_balance" };
    static const char *const differences[] = { "what", "asset", "expected", "found", "owner", "reason" };
    const size_t n = books_differences(r);
    buf_puts(b, "<h2>");
    buf_html(b, json_str(r, "network"));
    buf_printf(b, " at block %" JSON_INTEGER_FORMAT "</h2>\n<p>%s, ", json_integer_value(json_object_get(r, "block")),
               n == 0 ? "No difference" : "THERE ARE DIFFERENCES");
    buf_html(b, json_str(r, "made_at"));
    buf_puts(b, ". Amounts are minor units.</p>\n");
    if (n > 0)
        table(b, "Differences", json_object_get(r, "differences"), differences, COUNT(differences));
    table(b, "Wallets", json_object_get(r, "wallets"), wallets, COUNT(wallets));
    table(b, "Refunds owed", json_object_get(r, "liabilities"), liabilities, COUNT(liabilities));
}

static struct reply *as_page(const json_t *reports)
{
    BUF b = { 0 }, hash = { 0 };
    const struct hash32 h = sha256(style, sizeof style - 1);
    size_t i;
    json_t *r;
    buf_printf(&b,
               "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
               "content=\"width=device-width\">"
               "<title>Reconciliation</title><style>%s</style></head><body><main><h1>Books and chain</h1>\n",
               style);
    if (json_array_size(reports) == 0)
        buf_puts(&b, "<p>There is no report yet: the settler makes the first when its books are open.</p>");
    json_array_foreach(reports, i, r) one_network(&b, r);
    buf_puts(&b, "</main></body></html>\n");
    base64_add(&hash, h.b, sizeof h.b);
    OWNED char *policy =
        str_format("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; frame-ancestors 'none'", hash.p);
    struct reply *reply = reply_new(200);
    reply_body_take(reply, "text/html; charset=utf-8", &b);
    reply_header(reply, "Content-Security-Policy", policy);
    return reply;
}

static struct reply *as_csv(const json_t *reports)
{
    BUF b = { 0 };
    size_t i;
    json_t *r;
    json_array_foreach(reports, i, r)
    {
        OWNED char *csv = books_csv(r);
        buf_puts(&b, csv);
    }
    struct reply *reply = reply_new(200);
    reply_body_take(reply, "text/csv; charset=utf-8", &b);
    return reply;
}

static struct step tell(struct request *rq)
{
    struct question *q = request_memory(rq, sizeof *q);
    struct slice accept;
    JSON *reports = MOVE(q->reports);
    if (q->unavailable)
        return request_reply(rq, reply_problem(rq, ERR_STORE_UNAVAILABLE, NULL, NULL));
    struct reply *r;
    if (slice_is(request_query(rq), "format=csv")) {
        r = as_csv(reports);
    } else if (request_header(rq, "Accept", &accept) > 0 && memmem(accept.p, accept.n, "text/html", 9)) {
        r = as_page(reports);
    } else {
        r = reply_new(200);
        reply_json(r, NULL, reports);
    }
    reply_header(r, "Cache-Control", "no-store");
    return request_reply(rq, r);
}

static void have_reports(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct question *q = request_memory(arg, sizeof *q);
    struct json_why why;
    const struct slice reports = rc == DB_OK ? row_text(rows, 0, "reports") : (struct slice){ NULL, 0 };
    q->reports = reports.p ? json_read(reports.p, reports.n, &why) : NULL;
    q->unavailable = !q->reports;
    request_go(arg, tell);
}

struct step reconciliation_begin(struct request *rq)
{
    struct gateway *g = request_app(rq);
    DB_ARGS none = { 0 };
    (void)request_memory(rq, sizeof(struct question));
    db_call(g->db, "reconciliations_read", &none, clock_mono_ms() + READ_MS, have_reports, rq);
    return request_wait(rq);
}
