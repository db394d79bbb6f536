/* A small application on api/server.h: what the server's tests and load generators talk to.
 *
 *   server_app LISTEN IDLE_MS READ_MS      prints its port on standard output; SIGTERM drains for two seconds
 *
 * /read and /write call the seller's API at UPSTREAM (from the environment) and answer with what came of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server.h"
#include "api/upstream.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

enum { BODY_LIMIT = 1000, POOL = 32768 };

struct app {
    struct loop *loop;
    struct server *server;
    struct fetcher *fetcher;
    uint64_t ended, delivered;
};

struct memory {
    struct app *app;
    struct request *rq;
    struct timer timer;
    bool parked;
    struct work work;
};

static struct memory *memory(struct request *rq)
{
    struct memory *m = request_memory(rq, sizeof *m);
    m->app = request_app(rq);
    m->rq = rq;
    return m;
}

static void ended(struct request *rq, bool delivered)
{
    struct app *a = request_app(rq);
    a->ended++;
    a->delivered += delivered;
    timer_clear(a->loop, &memory(rq)->timer);
    work_done(&memory(rq)->work);
}

static struct step text(struct request *rq, const char *s)
{
    struct reply *r = reply_new(200);
    reply_body(r, "text/plain", slice_of(s));
    return request_reply(rq, r);
}

static struct step hello(struct request *rq)
{
    return text(rq, "hello\n");
}

static void echo_header(void *arg, struct slice name, struct slice value)
{
    json_array_append_new(arg, json_pack("[o, o]", json_of_slice(name), json_of_slice(value)));
}

static struct step echo(struct request *rq)
{
    json_t *headers = json_array();
    request_each_header(rq, echo_header, headers);
    JSON *j = json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "method", request_method(rq), "target",
                        json_of_slice(request_target(rq)), "path", json_of_slice(request_path(rq)), "query",
                        json_of_slice(request_query(rq)), "body", json_of_slice(request_body(rq)), "client",
                        request_client(rq), "id", request_id(rq), "headers", headers);
    struct reply *r = reply_new(200);
    reply_json(r, NULL, j);
    return request_reply(rq, r);
}

static struct topic topic_of(struct request *rq)
{
    struct topic t = { { 0 } };
    const struct slice q = request_query(rq);
    memcpy(t.b, q.p, q.n < sizeof t.b ? q.n : sizeof t.b);
    return t;
}

static struct step after_park(struct request *rq)
{
    struct app *a = request_app(rq);
    if (server_draining(a->server))
        return request_reply(rq, reply_problem(rq, ERR_SHUTTING_DOWN, NULL, NULL));
    if (slice_is(request_path(rq), "/park-again") && !memory(rq)->parked) {
        memory(rq)->parked = true;
        return request_park(rq, topic_of(rq), clock_mono_ms() + 10000, after_park);
    }
    return text(rq, clock_mono_ms() - request_began_ms(rq) < 300 ? "woken early\n" : "woken late\n");
}

static struct step park(struct request *rq)
{
    const int64_t ms = slice_is(request_path(rq), "/park-short") ? 400 : 10000;
    return request_park(rq, topic_of(rq), clock_mono_ms() + ms, after_park);
}

static struct step wake(struct request *rq)
{
    struct app *a = request_app(rq);
    server_wake(a->server, topic_of(rq));
    return text(rq, "ok\n");
}

static struct step go_sync(struct request *rq)
{
    request_go(rq, hello);
    return request_wait(rq);
}

static void go_now(void *arg)
{
    struct memory *m = arg;
    request_go(m->rq, hello);
}

static struct step go_later(struct request *rq)
{
    struct memory *m = memory(rq);
    timer_set(m->app->loop, &m->timer, clock_mono_ms() + 400, go_now, m);
    return request_wait(rq);
}

static struct step never(struct request *rq)
{
    return request_wait(rq);
}

static struct step inject(struct request *rq)
{
    struct reply *r = reply_new(200);
    reply_header(r, "X-Bad", "a\r\nX-Injected: b");
    reply_header(r, "X-Good", "yes");
    reply_body(r, "text/plain", SLICE("x"));
    return request_reply(rq, r);
}

static struct step large_head(struct request *rq)
{
    BUF value = { 0 };
    for (int i = 0; i < 40000; i++)
        buf_puts(&value, "v");
    struct reply *r = reply_new(200);
    reply_header(r, "X-Large", value.p);
    return request_reply(rq, r);
}

static struct step length(struct request *rq)
{
    struct reply *r = reply_new(200);
    reply_header(r, "Content-Length", "12345");
    return request_reply(rq, r);
}

static struct step stats(struct request *rq)
{
    struct app *a = request_app(rq);
    const struct server_stats s = server_stats(a->server);
    OWNED char *t = str_format("requests=%" PRIu64 " connections=%u parked=%u waiting=%u lost=%" PRIu64 "\n",
                               s.requests, s.connections, s.parked, s.waiting, a->ended - a->delivered);
    return text(rq, t);
}

static const char *end_name(enum work_end e)
{
    switch (e) {
    case WORK_DONE:
        return "done";
    case WORK_REFUSED:
        return "refused";
    case WORK_FAILED:
        return "failed";
    case WORK_UNREACHED:
        return "unreached";
    case WORK_TIMEOUT:
        return "timeout";
    case WORK_TOO_LARGE:
        return "too_large";
    case WORK_LOST:
        return "lost";
    }
    abort();
}

static struct step worked(struct request *rq)
{
    const struct work *w = &memory(rq)->work;
    JSON *j = json_pack("{s:s, s:i, s:O, s:o}", "end", end_name(w->end), "status", w->status, "headers", w->headers,
                        "body", json_of_slice((struct slice){ w->body.p, w->body.n }));
    struct reply *r = reply_new(200);
    reply_json(r, NULL, j);
    return request_reply(rq, r);
}

static void work_came(void *arg, struct work *w)
{
    struct memory *m = arg;
    m->work = *w;
    request_go(m->rq, worked);
}

static struct step work(struct request *rq, enum side_effect effect)
{
    struct memory *m = memory(rq);
    const struct tool tool = { .upstream = getenv("UPSTREAM"), .side_effect = effect, .max_answer = 1000 };
    const bool free = slice_is(request_query(rq), "free");
    const struct upstream_call call = { .tool = &tool,
                                        .rq = rq,
                                        .order_id = free ? NULL : "ord_1",
                                        .payer = free ? NULL : "0xpayer",
                                        .deadline_ms = clock_mono_ms() + 500 };
    upstream_start(m->app->fetcher, &call, work_came, m);
    return request_wait(rq);
}

static struct step work_read(struct request *rq)
{
    return work(rq, EFFECT_READ);
}

static struct step work_write(struct request *rq)
{
    return work(rq, EFFECT_WRITE);
}

static const struct { const char *path; phase *first; } routes[] = {
    { "/hello", hello },           { "/echo", echo },       { "/park", park },     { "/park-short", park },
    { "/park-again", park },       { "/wake", wake },       { "/go-sync", go_sync }, { "/go-later", go_later },
    { "/never", never },           { "/inject", inject },   { "/large-head", large_head }, { "/length", length },
    { "/stats", stats },           { "/read", work_read },  { "/write", work_write },
};

static struct step first(struct request *rq)
{
    request_on_end(rq, ended);
    for (size_t i = 0; i < COUNT(routes); i++)
        if (slice_is(request_path(rq), routes[i].path))
            return routes[i].first(rq);
    return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, NULL, json_pack("{s:i}", "retry_after", 7)));
}

static size_t body_limit(const struct request *rq)
{
    (void)rq;
    return BODY_LIMIT;
}

static void stop(void *arg)
{
    struct app *a = arg;
    server_drain(a->server, clock_mono_ms() + 2000);
    loop_stop(a->loop);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct app a = { .loop = loop_new() };
    a.fetcher = fetcher_new(a.loop);
    const struct server_app app = { body_limit, first, &a };
    static const char *const proxies[] = { "127.0.0.2", "10.0.0.0/8" };
    const struct server_options o = { .listen = argv[1],
                                      .max_connections = 20000,
                                      .idle_ms = strtol(argv[2], NULL, 10),
                                      .read_ms = strtol(argv[3], NULL, 10),
                                      .pool_bytes = POOL,
                                      .trusted_proxies = proxies,
                                      .trusted_proxy_count = COUNT(proxies) };
    char why[200];
    log_open("app", LOG_ERROR);
    a.server = server_new(a.loop, &o, &app, why, sizeof why);
    if (!a.server) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    printf("%u\n", server_port(a.server));
    fflush(stdout);
    loop_on_stop_signal(a.loop, stop, &a);
    loop_run(a.loop);
    fetcher_free(a.fetcher);
    server_free(a.server);
    loop_free(a.loop);
    return 0;
}
