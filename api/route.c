#include "api/route.h"

#include <string.h>

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c));
}

static bool is_literal(char c)
{
    return is_unreserved(c) || (c != '\0' && strchr(":@!$&'()*+,;=", c));
}

/* The segment behind the slash at *at, which moves to the next slash or the end. */
static struct slice next_segment(struct slice path, size_t *at)
{
    const size_t from = *at + 1;
    size_t i = from;
    while (i < path.n && path.p[i] != '/')
        i++;
    *at = i;
    return (struct slice){ path.p + from, i - from };
}

static bool is_dots(struct slice s)
{
    return slice_is(s, ".") || slice_is(s, "..");
}

static bool is_named(struct slice s)
{
    return s.n > 0 && s.p[0] == '{';
}

static const char *segment_fault(struct slice s)
{
    if (s.n == 0)
        return "a segment is empty (a double or trailing slash)";
    if (is_dots(s))
        return "dot segments match nothing";
    if (is_named(s)) {
        if (s.n < 3 || s.p[s.n - 1] != '}')
            return "a named segment is {name} and nothing else";
        s = (struct slice){ s.p + 1, s.n - 2 };
        for (size_t i = 0; i < s.n; i++)
            if (!is_unreserved(s.p[i]))
                return "a segment's name has letters, digits, - . _ and ~";
        return NULL;
    }
    for (size_t i = 0; i < s.n; i++)
        if (!is_literal(s.p[i]))
            return "a character that no path may hold as it is (percent-encoding matches nothing)";
    return NULL;
}

bool route_pattern_ok(const char *pattern, const char **ret_why)
{
    const struct slice p = slice_of(pattern);
    if (p.n == 0 || p.p[0] != '/') {
        *ret_why = "it must begin with a slash";
        return false;
    }
    for (size_t at = 0; p.n > 1 && at < p.n;) {
        const char *fault = segment_fault(next_segment(p, &at));
        if (fault) {
            *ret_why = fault;
            return false;
        }
    }
    return true;
}

static bool fits(struct slice pattern, struct slice s)
{
    if (!is_named(pattern))
        return s.n == pattern.n && memcmp(s.p, pattern.p, s.n) == 0;
    for (size_t i = 0; i < s.n; i++)
        if (!is_unreserved(s.p[i]))
            return false;
    return s.n > 0 && !is_dots(s);
}

bool route_matches(const char *pattern, struct slice path)
{
    const struct slice p = slice_of(pattern);
    size_t a = 0, b = 0;
    if (p.n == 0 || path.n == 0 || path.p[0] != '/')
        return false;
    while (a < p.n && b < path.n) {
        const struct slice want = next_segment(p, &a), got = next_segment(path, &b);
        if (!fits(want, got))
            return false;
    }
    return a == p.n && b == path.n;
}

bool route_reserved(const char *pattern)
{
    static const char *const ours[] = {
        "orders",      "receipts", "payments", "authorizations", "settlements", "refunds", "verify",
        "settle",      "supported", "guide",   "healthz",        "problems",    ".well-known",
    };
    const struct slice p = slice_of(pattern);
    size_t at = 0;
    const struct slice first = next_segment(p, &at);
    for (size_t i = 0; i < COUNT(ours); i++)
        if (slice_is(first, ours[i]))
            return true;
    return false;
}

/* Where two patterns match one path, the one that spells out more at the first difference is meant. */
static bool closer(const char *a, const char *b)
{
    const struct slice pa = slice_of(a), pb = slice_of(b);
    for (size_t i = 0, j = 0; i < pa.n && j < pb.n;) {
        const bool named_a = is_named(next_segment(pa, &i)), named_b = is_named(next_segment(pb, &j));
        if (named_a != named_b)
            return named_b;
    }
    return false;
}

static void add_allowed(struct buf *allow, const char *method)
{
    if (allow->n > 0 && strstr(allow->p, method))        /* none of the methods is part of another */
        return;
    if (allow->n > 0)
        buf_puts(allow, ", ");
    buf_puts(allow, method);
    if (strcmp(method, "GET") == 0)
        buf_puts(allow, ", HEAD");
}

const struct tool *route_find(const struct config *c, const char *method, struct slice path, struct buf *ret_allow)
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    const struct tool *best = NULL;
    bool path_known = false;
    for (size_t i = 0; i < c->tool_count; i++) {
        const struct tool *t = &c->tools[i];
        if (!route_matches(t->path, path))
            continue;
        path_known = true;
        if (strcmp(t->method, wanted) == 0 && (!best || closer(t->path, best->path)))
            best = t;
    }
    if (best || !path_known)
        return best;
    for (size_t i = 0; i < c->tool_count; i++)
        if (route_matches(c->tools[i].path, path))
            add_allowed(ret_allow, c->tools[i].method);
    buf_puts(ret_allow, ", OPTIONS");
    return NULL;
}
