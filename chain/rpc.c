#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "chain/rpc_internal.h"

enum {
    MAX_ENDPOINTS = 64,
    MAX_ANSWER = 32 * 1024 * 1024,
    ASIDE_FIRST_MS = 5000,
    ASIDE_MOST_MS = 60000,
    CHAIN_CHECK_MS = 60000,
};

struct endpoint {
    char *url, *shown;
    int64_t aside_until_ms, aside_ms, failed_ms;
    int64_t chain_seen_ms; /* when it last named our chain */
    bool chain_seen;
    struct rpc_stats count;
};

struct call {
    struct rpc *rpc;
    struct call *next, *prev;
    rpc_done_fn *fn;
    void *arg;
    struct buf items; /* the requests' text, with commas */
    size_t n;
    uint64_t first_id;
    bool sends, pinned, asks_chain;
    size_t at;      /* the endpoint that is being asked */
    size_t but;     /* one that is asked only where no other is in good standing */
    uint64_t tried; /* a bit for each endpoint */
    int64_t deadline_ms;
    struct fetch *fetch;
    enum rpc_fault fault;
    const char *why;
    struct rpc_answer *answers; /* n, and one for the chain id */
    bool *never_null;           /* n: a node that is sound never answers null to it */
};

struct rpc {
    struct fetcher *fetcher;
    struct loop *loop;
    uint64_t chain_id, next_id;
    int64_t timeout_ms;
    struct endpoint *endpoints;
    size_t n;
    struct call *calls;
};

/* Keys sit in the userinfo, the path or the query: nobody is shown more than this. */
static char *url_shown(const char *url)
{
    const char *sep = strstr(url, "://");
    if (!sep)
        return str_copy("?");
    const char *host = sep + 3;
    size_t n = strcspn(host, "/?#");
    for (size_t i = n; i > 0; i--)
        if (host[i - 1] == '@') {
            host += i;
            n -= i;
            break;
        }
    return str_format("%.*s%.*s", (int)(sep + 3 - url), url, (int)n, host);
}

struct rpc *rpc_new(struct fetcher *f, struct loop *l, uint64_t chain_id, const char *const *urls, size_t n,
                    int64_t timeout_ms)
{
    assert(n > 0 && n <= MAX_ENDPOINTS);
    struct rpc *r = mem_new(sizeof *r);
    *r = (struct rpc){ .fetcher = f, .loop = l, .chain_id = chain_id, .next_id = 1, .timeout_ms = timeout_ms, .n = n };
    r->endpoints = mem_new(n * sizeof *r->endpoints);
    for (size_t i = 0; i < n; i++) {
        r->endpoints[i].url = str_copy(urls[i]);
        r->endpoints[i].shown = url_shown(urls[i]);
    }
    return r;
}

uint64_t rpc_chain_id(const struct rpc *r)
{
    return r->chain_id;
}

size_t rpc_endpoints(const struct rpc *r)
{
    return r->n;
}

struct loop *rpc_loop(const struct rpc *r)
{
    return r->loop;
}

/* ---- the end of a call --------------------------------------------------------------------------- */

static void call_end(struct call *c)
{
    struct rpc *r = c->rpc;
    if (c->prev)
        c->prev->next = c->next;
    else
        r->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->fn(c->arg, c->answers, c->n);
    buf_done(&c->items);
    free(c->answers);
    free(c->never_null);
    free(c);
}

static void call_unavailable(struct call *c)
{
    for (size_t i = 0; i < c->n; i++)
        c->answers[i] = (struct rpc_answer){ .rc = RPC_UNAVAILABLE, .message = c->why, .endpoint = c->at };
    call_end(c);
}

void rpc_free(struct rpc *r)
{
    if (!r)
        return;
    while (r->calls) {
        fetch_cancel(r->calls->fetch);
        r->calls->why = "shutting down";
        call_unavailable(r->calls);
    }
    for (size_t i = 0; i < r->n; i++) {
        free(r->endpoints[i].url);
        free(r->endpoints[i].shown);
    }
    free(r->endpoints);
    free(r);
}

/* ---- which endpoint ------------------------------------------------------------------------------ */

static bool is_aside(const struct endpoint *e)
{
    return clock_mono_ms() < e->aside_until_ms;
}

/* The first in the configured order that is in good standing, else the one whose last failure is oldest. */
static bool choose(const struct call *c, size_t *ret)
{
    const struct rpc *r = c->rpc;
    size_t best = r->n;
    for (size_t i = 0; i < r->n; i++) {
        if (c->tried & UINT64_C(1) << i)
            continue;
        if (!is_aside(&r->endpoints[i]) && i != c->but) {
            *ret = i;
            return true;
        }
        if (best == r->n || r->endpoints[i].failed_ms < r->endpoints[best].failed_ms)
            best = i;
    }
    if (best == r->n)
        return false;
    *ret = best;
    return true;
}

static size_t untried(const struct call *c)
{
    return c->pinned ? 1 : c->rpc->n - (size_t)__builtin_popcountll(c->tried);
}

static void set_aside(struct endpoint *e, int64_t at_least_ms)
{
    int64_t now = clock_mono_ms();
    e->failed_ms = now;
    if (now < e->aside_until_ms)
        return; /* one outage, many calls: counted once */
    e->aside_ms = e->aside_ms ? 2 * e->aside_ms : ASIDE_FIRST_MS;
    if (e->aside_ms < at_least_ms)
        e->aside_ms = at_least_ms;
    if (e->aside_ms > ASIDE_MOST_MS)
        e->aside_ms = ASIDE_MOST_MS;
    e->aside_until_ms = now + e->aside_ms;
}

/* ---- one attempt --------------------------------------------------------------------------------- */

enum verdict { GOOD, FAILED, LIMITED };

static const struct { const char *word, *why; } faults[RPC_FAULTS] = {
    [RPC_UNREACHABLE] = { "unreachable", "no connection" },
    [RPC_CUT] = { "cut", "no complete reply in time" },
    [RPC_TOO_LARGE] = { "too_large", "reply too large" },
    [RPC_RATE_LIMIT] = { "rate_limit", "HTTP 429" },
    [RPC_HTTP_5XX] = { "http_5xx", "HTTP 5xx" },
    [RPC_HTTP_STATUS] = { "http_status", "HTTP status other than 200" },
    [RPC_NOT_JSON] = { "not_json", "not JSON" },
    [RPC_MISMATCH] = { "mismatch", "a reply that does not fit the request" },
    [RPC_NULL] = { "null", "null where there is always something" },
    [RPC_NO_CHAIN] = { "no_chain", "no chain id" },
    [RPC_OTHER_CHAIN] = { "other_chain", "another chain" },
    [RPC_REFUSED] = { "refused", "request refused" },
    [RPC_LIMIT] = { "limit", "provider's limit or internal error" },
    [RPC_LACKING] = { "lacking", "null where others have something" },
    [RPC_BEHIND] = { "behind", "blocks behind the others" },
    [RPC_AHEAD] = { "ahead", "blocks ahead of the others" },
    [RPC_DIFFERS] = { "differs", "an answer that others do not give" },
};

const char *rpc_fault_word(enum rpc_fault f)
{
    return faults[f].word;
}

/* Why this reply is none, for the callers and for the counters. */
static enum verdict bad(struct call *c, enum rpc_fault f)
{
    c->fault = f;
    return f == RPC_LIMIT ? LIMITED : FAILED;
}

static enum verdict chain_verdict(struct call *c)
{
    struct endpoint *e = &c->rpc->endpoints[c->at];
    const struct rpc_answer *a = &c->answers[c->n];
    uint64_t id;
    if (a->rc != RPC_OK || !rpc_read_u64(a->result, &id))
        return bad(c, RPC_NO_CHAIN);
    if (id != c->rpc->chain_id)
        return bad(c, RPC_OTHER_CHAIN);
    e->chain_seen = true;
    e->chain_seen_ms = clock_mono_ms();
    return GOOD;
}

static bool has_null(const struct call *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->never_null[i] && c->answers[i].rc == RPC_OK && json_is_null(c->answers[i].result))
            return true;
    return false;
}

static bool has_error(const struct call *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->answers[i].rc == RPC_ERROR)
            return true;
    return false;
}

static enum verdict reply_verdict(struct call *c, json_t *root)
{
    switch (reply_read(root, c->first_id, c->n + c->asks_chain, c->sends, c->answers)) {
    case REPLY_GOOD:
        if (has_null(c))
            return bad(c, RPC_NULL);
        return c->asks_chain ? chain_verdict(c) : GOOD;
    case REPLY_JUNK:
        return bad(c, RPC_MISMATCH);
    case REPLY_TROUBLE:
        return bad(c, RPC_REFUSED);
    case REPLY_LIMIT:
        return bad(c, RPC_LIMIT);
    }
    abort();
}

static enum verdict http_verdict(struct call *c, const struct fetch_answer *a, json_t **ret_root)
{
    struct json_why why;
    switch (a->end) {
    case FETCH_NOT_SENT:
        return bad(c, RPC_UNREACHABLE);
    case FETCH_LOST:
        return bad(c, RPC_CUT);
    case FETCH_TOO_LARGE:
        return bad(c, RPC_TOO_LARGE);
    case FETCH_ANSWERED:
        break;
    }
    if (a->status == 429 || a->status >= 500)
        return bad(c, a->status == 429 ? RPC_RATE_LIMIT : RPC_HTTP_5XX);
    *ret_root = json_read(a->body.p, a->body.n, &why);
    enum verdict v = *ret_root ? reply_verdict(c, *ret_root) : bad(c, RPC_NOT_JSON);
    if (a->status == 200 || v == LIMITED || (v == GOOD && has_error(c))) /* some say a no by HTTP too */
        return v;
    return bad(c, RPC_HTTP_STATUS);
}

static void attempt(struct call *c);

static void attempt_failed(struct call *c, enum verdict v)
{
    struct endpoint *e = &c->rpc->endpoints[c->at];
    e->count.trouble = c->why = faults[c->fault].why;
    e->count.faults[c->fault]++;
    if (c->fault == RPC_OTHER_CHAIN)
        e->chain_seen = false;
    if (v != LIMITED) /* that may be this request's fault alone */
        set_aside(e, c->fault == RPC_OTHER_CHAIN ? ASIDE_MOST_MS : 0);
    if (untried(c) == 0 || c->pinned || clock_mono_ms() >= c->deadline_ms || !choose(c, &c->at)) {
        call_unavailable(c);
        return;
    }
    attempt(c);
}

static void attempt_done(void *arg, const struct fetch_answer *a)
{
    struct call *c = arg;
    JSON *root = NULL;
    c->fetch = NULL;
    enum verdict v = http_verdict(c, a, &root);
    if (v != GOOD) {
        attempt_failed(c, v);
        return;
    }
    c->rpc->endpoints[c->at].aside_ms = c->rpc->endpoints[c->at].aside_until_ms = 0;
    for (size_t i = 0; i < c->n; i++)
        c->answers[i].endpoint = c->at;
    call_end(c);
}

/* The time left is shared evenly by the endpoints not yet asked, so that one that hangs leaves some for the next. */
static void attempt(struct call *c)
{
    static const struct header headers[] = { { SLICE_INIT("Content-Type"), SLICE_INIT("application/json") } };
    struct endpoint *e = &c->rpc->endpoints[c->at];
    int64_t now = clock_mono_ms();
    int64_t share = (c->deadline_ms - now) / (int64_t)untried(c);
    BUF body = { 0 };
    c->tried |= UINT64_C(1) << c->at;
    c->asks_chain = !e->chain_seen || now - e->chain_seen_ms >= CHAIN_CHECK_MS;
    size_t n = c->n + c->asks_chain;
    if (n > 1)
        buf_puts(&body, "[");
    buf_add(&body, c->items.p, c->items.n);
    if (c->asks_chain) {
        buf_puts(&body, ",");
        request_add(&body, c->first_id + c->n, "eth_chainId", NULL);
    }
    if (n > 1)
        buf_puts(&body, "]");
    e->count.requests++;
    e->count.calls += c->n;
    c->fetch = fetch_start(c->rpc->fetcher,
                           &(struct fetch_request){
                               .method = "POST",
                               .url = e->url,
                               .headers = headers,
                               .header_count = COUNT(headers),
                               .body = { body.p, body.n },
                               .deadline_ms = now + share,
                               .max_answer = MAX_ANSWER,
                           },
                           attempt_done, c);
}

/* Null is an answer where something may not be there (yet): a receipt, a block by number or hash. The newest block, a balance, the
 * result of a call are always there. */
static bool is_never_null(const struct rpc_item *item)
{
    const char *block = json_string_value(json_array_get(item->params, 0));
    if (strcmp(item->method, "eth_getBlockByNumber") == 0)
        return block && strcmp(block, "latest") == 0;
    return strncmp(item->method, "eth_getTransactionBy", 20) != 0 && strcmp(item->method, "eth_getTransactionReceipt") != 0 &&
           strcmp(item->method, "eth_getBlockByHash") != 0;
}

/* ---- starting ------------------------------------------------------------------------------------ */

static struct call *call_new(struct rpc *r, struct rpc_item *items, size_t n, rpc_done_fn *fn, void *arg)
{
    assert(n > 0);
    struct call *c = mem_new(sizeof *c);
    *c = (struct call){ .rpc = r, .next = r->calls, .fn = fn, .arg = arg, .n = n, .first_id = r->next_id };
    c->deadline_ms = clock_mono_ms() + r->timeout_ms;
    r->next_id += n + 1;
    c->answers = mem_new((n + 1) * sizeof *c->answers);
    c->never_null = mem_new(n * sizeof *c->never_null);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_puts(&c->items, ",");
        request_add(&c->items, c->first_id + i, items[i].method, items[i].params);
        c->sends = c->sends || method_sends(items[i].method);
        c->never_null[i] = is_never_null(&items[i]);
        json_decref(items[i].params);
        items[i].params = NULL;
    }
    if (r->calls)
        r->calls->prev = c;
    r->calls = c;
    return c;
}

void rpc_start(struct rpc *r, struct rpc_item *items, size_t n, rpc_done_fn *fn, void *arg)
{
    rpc_start_elsewhere(r, SIZE_MAX, items, n, fn, arg);
}

void rpc_start_elsewhere(struct rpc *r, size_t but, struct rpc_item *items, size_t n, rpc_done_fn *fn, void *arg)
{
    struct call *c = call_new(r, items, n, fn, arg);
    c->but = but;
    if (!choose(c, &c->at))
        abort(); /* none is tried yet */
    attempt(c);
}

void rpc_start_at(struct rpc *r, size_t endpoint, struct rpc_item *items, size_t n, rpc_done_fn *fn, void *arg)
{
    struct call *c = call_new(r, items, n, fn, arg);
    c->pinned = true;
    c->at = endpoint;
    attempt(c);
}

void rpc_blame(struct rpc *r, size_t endpoint, enum rpc_fault f)
{
    struct endpoint *e = &r->endpoints[endpoint];
    e->count.trouble = faults[f].why;
    e->count.faults[f]++;
    set_aside(e, 0);
    if (f == RPC_BEHIND || f == RPC_AHEAD) /* whatever it answers meanwhile, until somebody finds it where the others are */
        e->aside_until_ms = clock_mono_ms() + ASIDE_MOST_MS;
}

size_t rpc_stats(const struct rpc *r, struct rpc_stats *ret, size_t max)
{
    for (size_t i = 0; i < r->n && i < max; i++) {
        ret[i] = r->endpoints[i].count;
        ret[i].url = r->endpoints[i].shown;
        ret[i].set_aside = is_aside(&r->endpoints[i]);
    }
    return r->n < max ? r->n : max;
}
