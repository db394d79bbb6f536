/* The answer, and the one place where it becomes libmicrohttpd's. */
#include <stdlib.h>
#include <string.h>

#include "api/http.h"
#include "base/json.h"
#include "base/log.h"

struct reply {
    int status;
    struct buf heads;                                    /* name NUL value NUL, again and again */
    size_t head_bytes;                                   /* the same on the wire */
    struct buf body;
    bool has_length;                                     /* of what a GET would have got: for HEAD */
    uint64_t length;
};

struct reply *reply_new(int status)
{
    struct reply *r = mem_new(sizeof *r);
    r->status = status;
    return r;
}

bool reply_is_success(const struct reply *r)
{
    return r->status >= 200 && r->status < 300;
}

void reply_free(struct reply *r)
{
    if (!r)
        return;
    buf_done(&r->heads);
    buf_done(&r->body);
    free(r);
}

/* ---- building ---- */

static unsigned char bad_among(const char *p, size_t n)
{
    unsigned char bad = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)p[i];
        bad |= (unsigned char)((c < 0x20 && c != '\t') | (c == 0x7f));
    }
    return bad;
}

/* A challenge is long, so it is looked at in blocks: a loop of known length without a branch is done many bytes at once. */
static bool value_ok(struct slice s)
{
    enum { BLOCK = 64 };
    unsigned char bad = s.n == 0;
    for (; s.n >= BLOCK; s.p += BLOCK, s.n -= BLOCK)
        bad |= bad_among(s.p, BLOCK);
    return !(bad | bad_among(s.p, s.n));
}

static void take_length(struct reply *r, struct slice value)
{
    BUF text = { 0 };
    buf_add(&text, value.p, value.n);
    char *end;
    r->length = strtoull(text.p, &end, 10);
    r->has_length = *end == '\0' && value.n > 0 && value.n < 19 && value.p[0] >= '0' && value.p[0] <= '9';
}

void reply_header_slice(struct reply *r, struct slice name, struct slice value)
{
    if (name_is(name, "Content-Length")) {
        take_length(r, value);
        return;
    }
    if (!is_token(name) || !value_ok(value)) {
        log_warn("reply_header_dropped", "name=%.*s", (int)(name.n < 100 ? name.n : 100), name.p);
        return;
    }
    buf_add(&r->heads, name.p, name.n);
    buf_add(&r->heads, "", 1);
    buf_add(&r->heads, value.p, value.n);
    buf_add(&r->heads, "", 1);
    r->head_bytes += name.n + value.n + 4;
}

void reply_header(struct reply *r, const char *name, const char *value)
{
    reply_header_slice(r, slice_of(name), slice_of(value));
}

void reply_body(struct reply *r, const char *type, struct slice body)
{
    if (type)
        reply_header(r, "Content-Type", type);
    r->body.n = 0;
    buf_add(&r->body, body.p, body.n);
}

void reply_body_take(struct reply *r, const char *type, struct buf *body)
{
    if (type)
        reply_header(r, "Content-Type", type);
    buf_done(&r->body);
    r->body = *body;
    *body = (struct buf){ 0 };
}

void reply_json(struct reply *r, const char *type, const json_t *body)
{
    OWNED char *text = json_write(body);
    reply_body(r, type ? type : "application/json", slice_of(text));
}

static json_t *text_of(const char *s)
{
    return json_of_slice(slice_of(s));
}

struct reply *reply_problem(const struct request *rq, enum err e, const char *detail, json_t *more)
{
    const struct err_info *info = err_info(e);
    OWNED char *type = str_format("urn:payonce:problem:%s", info->code);
    OWNED char *instance = str_format("urn:payonce:request:%s", request_id(rq));
    JSON *extra = more;
    JSON *j = json_object();
    json_object_set_new(j, "type", text_of(type));
    json_object_set_new(j, "title", text_of(info->title));
    json_object_set_new(j, "status", json_integer(info->http));
    json_object_set_new(j, "detail", text_of(detail ? detail : info->detail));
    json_object_set_new(j, "code", text_of(info->code));
    json_object_set_new(j, "retry", text_of(info->retry));
    json_object_set_new(j, "money", text_of(info->money));
    json_object_set_new(j, "instance", text_of(instance));
    if (extra)
        json_object_update(j, extra);

    struct reply *r = reply_new(info->http);
    reply_json(r, "application/problem+json", j);
    reply_header(r, "Cache-Control", "no-store");
    const json_t *after = json_object_get(extra, "retry_after");
    if (json_is_integer(after)) {
        OWNED char *seconds = str_format("%" JSON_INTEGER_FORMAT, json_integer_value(after));
        reply_header(r, "Retry-After", seconds);
    }
    return r;
}

/* ---- sending ---- */

/* What the library writes by itself: status line, Date, Connection, Content-Length, and ours below. */
enum { OWN_BYTES = 800 };

/* A head that does not fit into the connection's pool would close the connection without a word. */
static void make_fit(struct request *rq)
{
    const size_t bytes = rq->reply->head_bytes;
    if (rq->head_bytes + bytes + OWN_BYTES <= rq->server->pool_bytes)
        return;
    log_error("reply_head_too_large", "request=%s status=%d bytes=%zu", rq->id, rq->reply->status, bytes);
    reply_free(rq->reply);
    rq->reply = reply_problem(rq, ERR_INTERNAL, "The answer's header section is too large.", NULL);
}

static ssize_t no_bytes(void *arg, uint64_t at, char *p, size_t n)
{
    (void)arg, (void)at, (void)p, (void)n;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *response_of(const struct request *rq, struct reply *r)
{
    static char none[1];
    if (r->body.n > 0) {
        struct buf body = r->body;
        r->body = (struct buf){ 0 };
        return MHD_create_response_from_buffer(body.n, body.p, MHD_RESPMEM_MUST_FREE);
    }
    if (r->has_length && strcmp(rq->method, "HEAD") == 0)
        return MHD_create_response_from_callback(r->length, 1024, no_bytes, NULL, NULL);
    return MHD_create_response_from_buffer(0, none, MHD_RESPMEM_PERSISTENT);
}

static void add_headers(struct MHD_Response *m, const struct request *rq)
{
    const struct buf *heads = &rq->reply->heads;
    for (const char *p = heads->p, *end = p + heads->n; p < end;) {
        const char *value = p + strlen(p) + 1;
        MHD_add_response_header(m, p, value);
        p = value + strlen(value) + 1;
    }
    MHD_add_response_header(m, "Access-Control-Allow-Origin", "*");
    MHD_add_response_header(m, "Access-Control-Expose-Headers", cors_exposed);
    MHD_add_response_header(m, "X-Request-Id", rq->id);
    if (rq->server->draining)
        MHD_add_response_header(m, "Connection", "close");
}

enum MHD_Result reply_send(struct request *rq)
{
    make_fit(rq);
    struct MHD_Response *m = response_of(rq, rq->reply);
    if (!m)
        abort();
    add_headers(m, rq);
    const enum MHD_Result queued = MHD_queue_response(rq->connection, (unsigned)rq->reply->status, m);
    MHD_destroy_response(m);
    reply_free(rq->reply);
    rq->reply = NULL;
    return queued;
}
