/* The operator's address: is it alive, is it ready, what has it done. Loopback unless the configuration says otherwise,
 * and then the figures ask for a token. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "api/gateway.h"

enum { TOKEN_MIN = 16, TOKEN_MAX = 200 };

/* ---- the token ---- */

/* NULL: it cannot be read, others can read it, or it is no token. */
static char *token_read(const char *path)
{
    struct stat st;
    char text[TOKEN_MAX + 2];
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    bool tight = fstat(fileno(f), &st) == 0 && (st.st_mode & 077) == 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    text[n] = '\0';
    bool good = tight && n >= TOKEN_MIN && n <= TOKEN_MAX && strlen(text) == n;
    for (size_t i = 0; i < n; i++)
        good = good && text[i] > 0x20 && text[i] < 0x7f;
    return good ? str_copy(text) : NULL;
}

bool admin_token_load(struct gateway *g, char *why, size_t why_size)
{
    const char *path = getenv("PAYONCE_ADMIN_TOKEN_FILE");
    if (!path && !config_admin_open(g->config))
        return true;
    if (path)
        g->admin_token = token_read(path);
    if (g->admin_token)
        return true;
    (void)snprintf(why, why_size,
                   path
                       ? "PAYONCE_ADMIN_TOKEN_FILE must name a file of mode 0600 with a token of %d to %d characters"
                       : "admin_listen is no loopback address, so it needs a token: PAYONCE_ADMIN_TOKEN_FILE must name "
                         "a file of mode 0600 with one of %d to %d characters",
                   TOKEN_MIN, TOKEN_MAX);
    return false;
}

/* Digests are compared, so that the time tells nothing of the token, its length included. */
static bool may_read(const struct gateway *g, const struct request *rq)
{
    static const char scheme[] = "Bearer ";
    struct slice sent;
    if (!g->admin_token)
        return true;
    if (request_header(rq, "Authorization", &sent) != 1 || sent.n < strlen(scheme) ||
        strncasecmp(sent.p, scheme, strlen(scheme)) != 0)
        return false;
    struct hash32 theirs = sha256(sent.p + strlen(scheme), sent.n - strlen(scheme));
    struct hash32 ours = sha256(g->admin_token, strlen(g->admin_token));
    return bytes_equal_ct(theirs.b, ours.b, sizeof ours.b);
}

/* ---- the page ---- */

static const char *const kinds[COUNT_KINDS] = {
    [COUNT_CHALLENGED] = "challenged",     [COUNT_PAID] = "paid",
    [COUNT_REPLAYED] = "replayed",         [COUNT_IN_FLIGHT] = "in_flight",
    [COUNT_CONFLICT] = "conflict",         [COUNT_REFUSED] = "refused",
    [COUNT_NOT_CHARGED] = "not_charged",   [COUNT_IN_REVIEW] = "in_review",
    [COUNT_UNAVAILABLE] = "unavailable",   [COUNT_MALFORMED] = "malformed",
    [COUNT_ALREADY_PAID] = "already_paid", [COUNT_SIMILAR] = "similar",
    [COUNT_GONE] = "gone",                 [COUNT_OWED] = "owed",
    [COUNT_FREE_REPEAT] = "free_repeat",
};

static void network_metrics(struct buf *b, const struct gateway *g)
{
    BUF faults = { 0 };
    metrics_head(b, "payonce_rpc_calls_total", "counter", "This gateway's JSON-RPC calls by endpoint.");
    metrics_head(&faults, "payonce_rpc_faults_total", "counter",
                 "What endpoints were at fault for when this gateway asked them, by kind.");
    for (size_t i = 0; i < g->config->net_count; i++) {
        struct rpc_stats s[64];
        size_t n = rpc_stats(g->seats[i].rpc, s, COUNT(s));
        for (size_t e = 0; e < n; e++) {
            const char *id = g->config->nets[i].id;
            buf_printf(b, "payonce_rpc_calls_total{network=\"%s\",endpoint=\"%s\",kind=\"call\"} %" PRIu64 "\n", id, s[e].url, s[e].calls);
            for (enum rpc_fault f = 0; f < RPC_LACKING; f++)
                buf_printf(&faults, "payonce_rpc_faults_total{network=\"%s\",endpoint=\"%s\",kind=\"%s\"} %" PRIu64 "\n", id, s[e].url,
                           rpc_fault_word(f), s[e].faults[f]);
        }
    }
    buf_add(b, faults.p, faults.n);
}

static struct step page(struct request *rq)
{
    const struct gateway *g = request_app(rq);
    BUF b = { 0 };
    struct server_stats s = server_stats(g->server);
    struct db_stats d = db_stats(g->db);
    metrics_head(&b, "payonce_requests_total", "counter", "Answered requests on priced routes by outcome, each once.");
    for (int i = 0; i < COUNT_KINDS; i++)
        buf_printf(&b, "payonce_requests_total{outcome=\"%s\"} %" PRIu64 "\n", kinds[i], g->counts[i]);
    metrics_head(&b, "payonce_http_connections", "gauge", "Open connections.");
    buf_printf(&b, "payonce_http_connections %u\n", s.connections);
    metrics_head(&b, "payonce_http_parked", "gauge", "Requests that wait for a proof.");
    buf_printf(&b, "payonce_http_parked %u\n", s.parked);
    metrics_head(&b, "payonce_database_calls_total", "counter", "Database calls by result.");
    buf_printf(&b, "payonce_database_calls_total{result=\"all\"} %" PRIu64 "\n", d.calls);
    buf_printf(&b, "payonce_database_calls_total{result=\"repeated\"} %" PRIu64 "\n", d.repeats);
    buf_printf(&b, "payonce_database_calls_total{result=\"unavailable\"} %" PRIu64 "\n", d.unavailable);
    buf_printf(&b, "payonce_database_calls_total{result=\"refused\"} %" PRIu64 "\n", d.refused);
    network_metrics(&b, g);
    if (g->facilitator)
        facilitator_print(g->facilitator, &b);
    repeat_counts_print(&g->repeats, &b);
    metrics_print(g->metrics, &b);
    struct reply *r = reply_new(200);
    reply_body_take(r, "text/plain; version=0.0.4", &b);
    return request_reply(rq, r);
}

static struct step no_token(struct request *rq)
{
    struct reply *r = reply_problem(rq, ERR_ADMIN_TOKEN, NULL, NULL);
    reply_header(r, "WWW-Authenticate", "Bearer");
    return request_reply(rq, r);
}

static struct step metrics(struct request *rq, const struct gateway *g)
{
    return may_read(g, rq) ? metrics_read(g->metrics, rq, page) : no_token(rq);
}

static struct step ready(struct request *rq, const struct gateway *g)
{
    bool ok = db_stats(g->db).connected > 0 && !server_draining(g->server);
    for (size_t i = 0; i < g->config->net_count; i++)
        ok = ok && g->seats[i].pinned;
    struct reply *r = reply_new(ok ? 200 : 503);
    reply_body(r, "application/json", ok ? SLICE("{\"ready\":true}") : SLICE("{\"ready\":false}"));
    return request_reply(rq, r);
}

struct step admin_begin(struct request *rq)
{
    const struct gateway *g = request_app(rq);
    struct slice path = request_path(rq);
    if (slice_is(path, "/healthz")) {
        struct reply *r = reply_new(200);
        reply_body(r, "application/json", SLICE("{\"status\":\"ok\"}"));
        return request_reply(rq, r);
    }
    if (slice_is(path, "/readyz"))
        return ready(rq, g);
    if (slice_is(path, "/metrics"))
        return metrics(rq, g);
    if (slice_is(path, "/reconciliation"))
        return may_read(g, rq) ? reconciliation_begin(rq) : no_token(rq);
    return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, NULL, NULL));
}
