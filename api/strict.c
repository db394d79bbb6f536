/* Is this head one that everybody reads the same way?
 *
 * libmicrohttpd 0.9.75 accepts bare line feeds, folded lines (it glues them to the header's *name*), NULs, "Name :",
 * two lengths, and spaces around the target. What it hands out points into its buffer, where it has only put NULs in
 * place of the separators. So one walk shows all of that at once: in a clean head each line begins exactly where the
 * one before it ended, two bytes (CR LF) further on. */
#include <string.h>
#include <strings.h>

#include "api/http.h"

/* The library keeps a record of about this size for each header, query parameter and cookie in the same pool. */
enum { RECORD_BYTES = 64 };

static bool is_tchar(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+.^_`|~", c));
}

bool is_token(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_tchar((unsigned char)s.p[i]))
            return false;
    return s.n > 0;
}

bool name_is(struct slice name, const char *s)
{
    return strlen(s) == name.n && strncasecmp(name.p, s, name.n) == 0;
}

/* ---- collecting ---- */

struct walk {
    struct request *rq;
    const char *at;                                      /* where the next line must begin */
    bool broken;
    size_t cookie_bytes;
};

static bool only_blanks(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    return from == to;
}

static enum MHD_Result take_header(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_n,
                                   const char *value, size_t value_n)
{
    (void)kind;
    struct walk *w = arg;
    if (!value || name != w->at || value <= name + name_n || !only_blanks(name + name_n + 1, value)) {
        w->broken = true;
        return MHD_NO;
    }
    w->at = value + value_n + 2;
    while (value_n > 0 && (value[value_n - 1] == ' ' || value[value_n - 1] == '\t'))
        value_n--;
    struct request *rq = w->rq;
    rq->headers[rq->header_count++] = (struct header){ { name, name_n }, { value, value_n } };
    if (name_is((struct slice){ name, name_n }, "Cookie"))
        w->cookie_bytes += value_n;                      /* the library makes a copy */
    return MHD_YES;
}

static size_t head_size(struct request *rq)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(rq->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

/* False: the head did not lie in one piece. */
static bool collect(struct request *rq, const char *raw_version)
{
    const int kinds = MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND;
    const int records = MHD_get_connection_values(rq->connection, (enum MHD_ValueKind)kinds, NULL, NULL);
    const int count = MHD_get_connection_values(rq->connection, MHD_HEADER_KIND, NULL, NULL);
    const size_t size = head_size(rq);
    struct walk w = { .rq = rq, .at = raw_version + strlen(raw_version) + 2 };

    rq->headers = mem_resize(NULL, (size_t)count, sizeof *rq->headers);
    if (rq->raw != rq->method + strlen(rq->method) + 1 || raw_version != rq->raw + rq->target_n + 1)
        return false;
    MHD_get_connection_values_n(rq->connection, MHD_HEADER_KIND, take_header, &w);
    rq->head_bytes = size + w.cookie_bytes + (size_t)records * RECORD_BYTES;
    return !w.broken && w.at + 2 == rq->method + size;
}

/* ---- judging ---- */

static const struct refusal fine = { ERR_NONE, NULL };

static struct refusal bad(const char *detail)
{
    return (struct refusal){ ERR_BAD_REQUEST, detail };
}

static struct refusal judge_target(const struct request *rq)
{
    if (rq->target[0] != '/' && !(strcmp(rq->target, "*") == 0 && strcmp(rq->method, "OPTIONS") == 0))
        return (struct refusal){ ERR_BAD_TARGET,
                                 "The target must begin with a slash: a path and query, without scheme and host." };
    for (size_t i = 0; i < rq->target_n; i++) {
        const unsigned char c = (unsigned char)rq->target[i];
        if (c <= 0x20 || c >= 0x7f || c == '#')
            return (struct refusal){ ERR_BAD_TARGET, NULL };
    }
    return fine;
}

static bool text_ok(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool host_ok(struct slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if (c <= 0x20 || c >= 0x7f || strchr("/?#@,\\\"<>", c))
            return false;
    }
    return s.n > 0;
}

/* At most 18 digits, so that no sum with it overflows. */
static bool read_length(struct slice s, uint64_t *ret)
{
    uint64_t v = 0;
    if (s.n == 0 || s.n > 18)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    }
    *ret = v;
    return true;
}

static struct refusal judge_framing(const struct request *rq, bool http10, uint64_t *ret_length)
{
    struct slice length, coding, host;
    const size_t lengths = request_header(rq, "Content-Length", &length);
    const size_t codings = request_header(rq, "Transfer-Encoding", &coding);
    const size_t hosts = request_header(rq, "Host", &host);

    if (lengths > 0 && codings > 0)
        return bad("Content-Length and Transfer-Encoding in one request.");
    if (lengths > 1)
        return bad("More than one Content-Length.");
    if (lengths == 1 && !read_length(length, ret_length))
        return bad("Content-Length is not a plain number.");
    if (codings > 1 || (codings == 1 && (http10 || !name_is(coding, "chunked"))))
        return bad("Transfer-Encoding is not exactly chunked.");
    if (hosts > 1 || (hosts == 0 && !http10))
        return bad("There must be exactly one Host.");
    if (hosts == 1 && !host_ok(host))
        return bad("Host is malformed.");
    return fine;
}

static struct refusal judge_expect(const struct request *rq, bool http10)
{
    struct slice expect;
    const size_t n = request_header(rq, "Expect", &expect);
    if (n == 0 || http10 || (n == 1 && name_is(expect, "100-continue"))) /* HTTP/1.0 has no Expect: ignored */
        return fine;
    return (struct refusal){ ERR_EXPECTATION_FAILED, NULL };
}

struct refusal strict_judge(struct request *rq, const char *raw_version, uint64_t *ret_length)
{
    *ret_length = 0;
    if (!collect(rq, raw_version))
        return bad("The header section holds a bare line feed, a folded line, a NUL or stray white space.");
    if (rq->head_bytes > rq->server->pool_bytes / 8 * 5) /* the rest is for the answer's head */
        return (struct refusal){ ERR_HEADER_TOO_LARGE, NULL };
    if (!is_token(slice_of(rq->method)))
        return bad("The method is not a token.");
    for (size_t i = 0; i < rq->header_count; i++)
        if (!is_token(rq->headers[i].name) || !text_ok(rq->headers[i].value))
            return bad("A header's name is not a token, or its value holds control bytes.");
    const struct refusal target = judge_target(rq);
    if (target.err != ERR_NONE)
        return target;
    const bool http10 = strcmp(raw_version, "HTTP/1.0") == 0;
    const struct refusal framing = judge_framing(rq, http10, ret_length);
    return framing.err != ERR_NONE ? framing : judge_expect(rq, http10);
}
