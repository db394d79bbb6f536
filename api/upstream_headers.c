#include "api/upstream_headers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/log.h"

/* Both ways. Connection's own tokens come on top. */
static const char *const hop_by_hop[] = { "Connection", "Keep-Alive", "TE",     "Trailer", "Transfer-Encoding",
                                          "Upgrade",    "Proxy-*",    "Expect", "Content-Length" };
static const char *const payment[] = { "PAYMENT-SIGNATURE", "PAYMENT-REQUIRED",   "PAYMENT-RESPONSE",
                                       "X-PAYMENT",         "X-PAYMENT-RESPONSE", "SIGN-IN-WITH-X",
                                       "Payment-Receipt",   "Accept-Payment",     "Payonce-*" };

/* Ours, so the client's do not pass. Its Authorization does, unless it is a payment: it is meant for the seller. */
static const char *const said_by_us[] = { "Host",      "Idempotency-Key", "X-Payer",      "X-Forwarded-*",
                                          "Forwarded", "X-Real-IP",       "X-Request-Id", "traceparent" };
/* About the client's connection to us, so the upstream's do not pass. */
static const char *const answered_by_us[] = { "Access-Control-*", "Date", "X-Request-Id" };

/* A paid answer without one of its headers is worth more than none: the head must fit into the server's pool. */
enum { INCOMING_BYTES = 6 * 1024 };

static bool matches(struct slice name, const char *pattern)
{
    const size_t n = strlen(pattern);
    if (pattern[n - 1] == '*')
        return name.n >= n - 1 && strncasecmp(name.p, pattern, n - 1) == 0;
    return name.n == n && strncasecmp(name.p, pattern, n) == 0;
}

static bool any_matches(struct slice name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (matches(name, patterns[i]))
            return true;
    return false;
}
#define ANY(name, table) any_matches(name, table, COUNT(table))

/* Is name one of the tokens of this Connection header? */
static bool lists(struct slice connection, struct slice name)
{
    for (size_t from = 0, i = 0; i <= connection.n; i++) {
        if (i < connection.n && connection.p[i] != ',')
            continue;
        size_t a = from, b = i;
        while (a < b && (connection.p[a] == ' ' || connection.p[a] == '\t'))
            a++;
        while (b > a && (connection.p[b - 1] == ' ' || connection.p[b - 1] == '\t'))
            b--;
        if (b - a == name.n && strncasecmp(connection.p + a, name.p, name.n) == 0)
            return true;
        from = i + 1;
    }
    return false;
}

static bool named_by_connection(const struct header *all, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (matches(all[i].name, "Connection") && lists(all[i].value, name))
            return true;
    return false;
}

/* The scheme Payment among those of an Authorization header. */
static bool is_credential(const struct header *h)
{
    static const char scheme[] = "Payment ";
    if (!matches(h->name, "Authorization"))
        return false;
    for (size_t i = 0; i + sizeof scheme - 1 <= h->value.n; i++)
        if ((i == 0 || strchr(", \t", h->value.p[i - 1])) && strncasecmp(h->value.p + i, scheme, sizeof scheme - 1) == 0)
            return true;
    return false;
}

/* ---- out ---- */

struct collected { struct header *list; size_t count; };

static void collect(void *arg, struct slice name, struct slice value)
{
    struct collected *c = arg;
    c->list = mem_resize(c->list, c->count + 1, sizeof *c->list);
    c->list[c->count++] = (struct header){ name, value };
}

static void add(struct outgoing *o, const char *name, const char *value)
{
    o->list[o->count++] = (struct header){ slice_of(name), slice_of(value) };
}

static bool hex_run(const char *s, size_t n)
{
    bool some = false;
    for (size_t i = 0; i < n; i++) {
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
            return false;
        some = some || s[i] != '0';
    }
    return some;
}

/* W3C Trace Context, version 00: 00-<trace id>-<parent id>-<flags> */
bool traceparent_ok(struct slice s)
{
    return s.n == 55 && memcmp(s.p, "00-", 3) == 0 && s.p[35] == '-' && s.p[52] == '-' && hex_run(s.p + 3, 32) &&
           hex_run(s.p + 36, 16) && (hex_run(s.p + 53, 2) || memcmp(s.p + 53, "00", 2) == 0);
}

/* False: the client had none that can be gone on with, and a new one was made. */
static bool take_trace(struct outgoing *o, const struct request *rq)
{
    struct slice theirs;
    if (request_header(rq, "traceparent", &theirs) == 1 && traceparent_ok(theirs)) {
        memcpy(o->trace, theirs.p, theirs.n);
        o->trace[theirs.n] = '\0';
        return true;
    }
    uint8_t id[24];
    bytes_random(id, sizeof id);
    memcpy(o->trace, "00-", 3);
    hex_write_bare(o->trace + 3, id, 16);
    o->trace[35] = '-';
    hex_write_bare(o->trace + 36, id + 16, 8);
    memcpy(o->trace + 52, "-01", 4);
    return false;
}

/* What may be given again to another client of the same wallet must be readable by it. */
static bool asks_plain(const struct tool *t)
{
    for (size_t i = 0; i < t->vary_count; i++)
        if (strcmp(t->vary[i], "accept-encoding") == 0)
            return false;
    return t->cacheable;
}

void outgoing_make(struct outgoing *o, const struct upstream_call *c)
{
    enum { OURS = 6 };
    struct collected in = { 0 };
    request_each_header(c->rq, collect, &in);
    *o = (struct outgoing){ .list = mem_resize(NULL, in.count + OURS, sizeof *o->list) };
    const bool goes_on = take_trace(o, c->rq);
    for (size_t i = 0; i < in.count; i++) {
        const struct slice name = in.list[i].name;
        if (ANY(name, hop_by_hop) || ANY(name, payment) || is_credential(&in.list[i]) || ANY(name, said_by_us) ||
            named_by_connection(in.list, in.count, name) || (!goes_on && matches(name, "tracestate")) ||
            (asks_plain(c->tool) && matches(name, "Accept-Encoding")))
            continue;
        o->list[o->count++] = in.list[i];
    }
    free(in.list);
    if (asks_plain(c->tool))
        add(o, "Accept-Encoding", "identity");
    if (c->order_id)
        add(o, "Idempotency-Key", c->order_id);
    if (c->payer)
        add(o, "X-Payer", c->payer);
    add(o, "X-Forwarded-For", request_client(c->rq));
    add(o, "X-Request-Id", request_id(c->rq));
    add(o, "traceparent", o->trace);
}

void outgoing_done(struct outgoing *o)
{
    free(o->list);
}

/* ---- back ---- */

static bool comes_back(const struct fetch_answer *a, struct slice name, bool head)
{
    if (head && matches(name, "Content-Length"))
        return true;
    return !ANY(name, hop_by_hop) && !ANY(name, payment) && !ANY(name, answered_by_us) &&
           !named_by_connection(a->headers, a->header_count, name);
}

json_t *incoming_headers(const struct fetch_answer *a, bool head)
{
    json_t *list = json_array();
    size_t bytes = 0;
    for (size_t i = 0; i < a->header_count; i++) {
        const struct header *h = &a->headers[i];
        if (!comes_back(a, h->name, head) || h->value.n == 0)
            continue;
        json_t *name = json_of_slice(h->name), *value = json_of_slice(h->value);
        bytes += h->name.n + h->value.n + 4;
        if (bytes > INCOMING_BYTES || !json_is_string(name) || !json_is_string(value)) {
            log_warn("upstream_header_dropped", "name=%.*s bytes=%zu", (int)(h->name.n < 60 ? h->name.n : 60),
                     h->name.p, h->value.n);
            bytes -= h->name.n + h->value.n + 4;
            json_decref(name);
            json_decref(value);
            continue;
        }
        json_t *pair = json_array();
        json_array_append_new(pair, name);
        json_array_append_new(pair, value);
        json_array_append_new(list, pair);
    }
    return list;
}
