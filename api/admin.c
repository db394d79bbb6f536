/* The operator's address: is it alive, is it ready, what has it done. Loopback unless the configuration says otherwise. */
#include <inttypes.h>
#include <string.h>

#include "api/gateway.h"

static const char *const kinds[COUNT_KINDS] = {
    [COUNT_CHALLENGED] = "challenged", [COUNT_PAID] = "paid",           [COUNT_REPLAYED] = "replayed",
    [COUNT_IN_FLIGHT] = "in_flight",   [COUNT_CONFLICT] = "conflict",   [COUNT_REFUSED] = "refused",
    [COUNT_NOT_CHARGED] = "not_charged", [COUNT_IN_REVIEW] = "in_review", [COUNT_UNAVAILABLE] = "unavailable",
    [COUNT_MALFORMED] = "malformed",
};

static void metric(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void network_metrics(struct buf *b, const struct gateway *g)
{
    metric(b, "payonce_rpc_calls_total", "counter", "JSON-RPC calls by endpoint and result.");
    for (size_t i = 0; i < g->config->net_count; i++) {
        struct rpc_stats s[16];
        size_t n = rpc_stats(g->seats[i].rpc, s, COUNT(s));
        for (size_t k = 0; k < n; k++) {
            const char *id = g->config->nets[i].id;
            buf_printf(b, "payonce_rpc_calls_total{network=\"%s\",endpoint=\"%s\",kind=\"call\"} %" PRIu64 "\n", id, s[k].url, s[k].calls);
            buf_printf(b, "payonce_rpc_calls_total{network=\"%s\",endpoint=\"%s\",kind=\"junk\"} %" PRIu64 "\n", id, s[k].url, s[k].junk);
            buf_printf(b, "payonce_rpc_calls_total{network=\"%s\",endpoint=\"%s\",kind=\"error\"} %" PRIu64 "\n", id, s[k].url, s[k].errors);
            buf_printf(b, "payonce_rpc_calls_total{network=\"%s\",endpoint=\"%s\",kind=\"wrong_chain\"} %" PRIu64 "\n", id, s[k].url,
                       s[k].wrong_chain);
        }
    }
}

static struct step metrics(struct request *rq, const struct gateway *g)
{
    BUF b = { 0 };
    struct server_stats s = server_stats(g->server);
    struct db_stats d = db_stats(g->db);
    metric(&b, "payonce_requests_total", "counter", "Requests on priced routes by outcome.");
    for (int i = 0; i < COUNT_KINDS; i++)
        buf_printf(&b, "payonce_requests_total{outcome=\"%s\"} %" PRIu64 "\n", kinds[i], g->counts[i]);
    metric(&b, "payonce_http_connections", "gauge", "Open connections.");
    buf_printf(&b, "payonce_http_connections %u\n", s.connections);
    metric(&b, "payonce_http_parked", "gauge", "Requests that wait for a proof.");
    buf_printf(&b, "payonce_http_parked %u\n", s.parked);
    metric(&b, "payonce_database_calls_total", "counter", "Database calls by result.");
    buf_printf(&b, "payonce_database_calls_total{result=\"all\"} %" PRIu64 "\n", d.calls);
    buf_printf(&b, "payonce_database_calls_total{result=\"repeated\"} %" PRIu64 "\n", d.repeats);
    buf_printf(&b, "payonce_database_calls_total{result=\"unavailable\"} %" PRIu64 "\n", d.unavailable);
    buf_printf(&b, "payonce_database_calls_total{result=\"refused\"} %" PRIu64 "\n", d.refused);
    network_metrics(&b, g);
    struct reply *r = reply_new(200);
    reply_body_take(r, "text/plain; version=0.0.4", &b);
    return request_reply(rq, r);
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
    return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, NULL, NULL));
}
