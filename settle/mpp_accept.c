/* Accept-Payment: `tempo/charge, stripe/charge;q=0.5`, as HTTP's other Accept headers are read. */
#include <string.h>
#include <strings.h>

#include "settle/mpp_challenge.h"

static struct slice trim(struct slice s)
{
    for (; s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'); s.n--)
        s.p++;
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Takes what stands in front of the first `at` off *rest; all of it where there is none. */
static struct slice cut(struct slice *rest, char at)
{
    const char *end = rest->n ? memchr(rest->p, at, rest->n) : NULL;
    const struct slice front = { rest->p, end ? (size_t)(end - rest->p) : rest->n };
    const size_t gone = end ? front.n + 1 : front.n;
    *rest = (struct slice){ rest->p + gone, rest->n - gone };
    return trim(front);
}

/* 0, 1, or either with up to three decimals, in thousandths. False: none of these, or over 1. */
static bool read_q(struct slice s, int *ret)
{
    if (s.n == 0 || s.n > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
        return false;
    int q = (s.p[0] - '0') * 1000, unit = 100;
    for (size_t i = 2; i < s.n; i++, unit /= 10) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        q += (s.p[i] - '0') * unit;
    }
    *ret = q;
    return q <= 1000;
}

struct range { struct slice method, intent; int q; };

static bool is_name(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] > 0x7e || strchr("/;,=\"", s.p[i]))
            return false;
    return s.n > 0;
}

static bool read_range(struct slice s, struct range *ret)
{
    struct slice names = cut(&s, ';');
    *ret = (struct range){ .method = cut(&names, '/'), .q = 1000 };
    ret->intent = trim(names);
    while (s.n > 0) {
        struct slice value = cut(&s, ';'), name = cut(&value, '=');
        if (name.n == 1 && strncasecmp(name.p, "q", 1) == 0 && !read_q(trim(value), &ret->q))
            return false;
    }
    return is_name(ret->method) && is_name(ret->intent);
}

/* How exactly a range names it: 0 by two stars, 2 by both names; -1: not at all. */
static int matches(const struct range *r, const char *method, const char *intent)
{
    const bool by_method = slice_is(r->method, method), by_intent = slice_is(r->intent, intent);
    if ((!by_method && !slice_is(r->method, "*")) || (!by_intent && !slice_is(r->intent, "*")))
        return -1;
    return by_method + by_intent;
}

int mpp_accept(struct slice header, const char *method, const char *intent)
{
    int best = -1, q = 0;
    bool says_something = false;
    while (header.n > 0) {
        struct range r;
        if (!read_range(cut(&header, ','), &r))
            continue;
        const int exact = matches(&r, method, intent);
        says_something = true;
        if (exact > best || (exact >= 0 && exact == best && r.q > q)) {
            best = exact;
            q = r.q;
        }
    }
    return says_something ? q : 1000;
}
