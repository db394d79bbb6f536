/* WWW-Authenticate as an agent reads it (RFC 9110, section 11): challenges of any schemes in one value, each a name and
 * its parameters. */
#include <string.h>
#include <strings.h>

#include "settle/mpp_challenge.h"

static void skip(struct slice *rest, const char *what)
{
    for (; rest->n > 0 && rest->p[0] && strchr(what, rest->p[0]); rest->n--)
        rest->p++;
}

static struct slice take_run(struct slice *rest, const char *more)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+";
    struct slice run = { rest->p, 0 };
    while (run.n < rest->n && rest->p[run.n] && (strchr(letters, rest->p[run.n]) || strchr(more, rest->p[run.n])))
        run.n++;
    *rest = (struct slice){ rest->p + run.n, rest->n - run.n };
    return run;
}

static struct slice take_token(struct slice *rest)
{
    return take_run(rest, "!#$%&'*^`|");
}

/* Some schemes have one text in the place of parameters. False: none here, nothing taken. */
static bool take_token68(struct slice *rest)
{
    struct slice look = *rest;
    const struct slice run = take_run(&look, "/");
    skip(&look, "=");
    skip(&look, " \t");
    if (run.n == 0 || (look.n > 0 && look.p[0] != ','))
        return false;
    *rest = look;
    return true;
}

/* A token, or a quoted string without its quotes and escapes, ended by a NUL. False: neither. */
static bool take_value(struct slice *rest, struct buf *b, struct slice *ret)
{
    const size_t from = b->n;
    if (rest->n > 0 && rest->p[0] == '"') {
        size_t i = 1;
        for (; i < rest->n && rest->p[i] != '"'; i++) {
            i += rest->p[i] == '\\' && i + 1 < rest->n;
            buf_add(b, rest->p + i, 1);
        }
        if (i >= rest->n)
            return false;
        *rest = (struct slice){ rest->p + i + 1, rest->n - i - 1 };
    } else {
        const struct slice token = take_token(rest);
        if (token.n == 0)
            return false;
        buf_add(b, token.p, token.n);
    }
    *ret = (struct slice){ b->p + from, b->n - from };
    buf_add(b, "", 1);
    return true;
}

static bool name_is(struct slice name, const char *want)
{
    return name.n == strlen(want) && strncasecmp(name.p, want, name.n) == 0;
}

/* Where a parameter goes; NULL: it is none that is needed. */
static struct slice *place_of(struct slice name, struct mpp_challenge *c)
{
    const struct { const char *name; struct slice *place;
    } places[] = {
        { "id", &c->id },         { "realm", &c->realm },     { "method", &c->method },
        { "intent", &c->intent }, { "request", &c->request }, { "expires", &c->expires },
        { "digest", &c->digest }, { "opaque", &c->opaque },   { "description", &c->description },
    };
    for (size_t i = 0; i < COUNT(places); i++)
        if (name_is(name, places[i].name))
            return places[i].place;
    return NULL;
}

/* The parameters up to the next scheme. *ret_usable: no name twice, and none by which it asks for another header than
 * Authorization. False: what is left cannot be read. */
static bool take_params(struct slice *rest, struct buf *b, struct mpp_challenge *c, bool *ret_usable)
{
    *ret_usable = true;
    for (;;) {
        struct slice look = *rest, value;
        skip(&look, " \t,");
        const struct slice name = take_token(&look);
        skip(&look, " \t");
        if (name.n == 0 || look.n == 0 || look.p[0] != '=')
            return name.n > 0 || look.n == 0;
        look = (struct slice){ look.p + 1, look.n - 1 };
        skip(&look, " \t");
        if (!take_value(&look, b, &value))
            return false;
        struct slice *place = place_of(name, c);
        if (name_is(name, "header") || (place && place->p))
            *ret_usable = false;
        if (place)
            *place = value;
        *rest = look;
    }
}

size_t mpp_challenges_read(struct slice header, struct buf *b, struct mpp_challenge *ret, size_t max)
{
    size_t n = 0;
    buf_reserve(b, header.n + 1); /* texts are shorter than what they are read from: what points into b stays good */
    for (;;) {
        struct mpp_challenge c = { .id = { NULL, 0 } };
        bool usable = false;
        skip(&header, " \t,");
        const struct slice scheme = take_token(&header);
        if (scheme.n == 0)
            return n;
        skip(&header, " \t");
        if (!take_token68(&header) && !take_params(&header, b, &c, &usable))
            return n;
        if (!usable || !name_is(scheme, "Payment") || c.id.n == 0 || !c.realm.p || !c.method.p || !c.intent.p ||
            !c.request.p)
            continue;
        if (n < max)
            ret[n] = c;
        n++;
    }
}
