#include "api/answers.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/log.h"
#include "settle/seal.h"

void kept_done(struct kept *k)
{
    buf_done(&k->headers);
    buf_done(&k->body);
}

/* ---- may it be given again? ---- */

static bool listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; *p;) {
        p += strspn(p, " \t,");
        const size_t token = strcspn(p, " \t,;=");
        if (token == n && strncasecmp(p, word, n) == 0)
            return true;
        p += strcspn(p, ",");
    }
    return false;
}

static bool varies_by(const struct tool *t, const char *name, size_t n)
{
    for (size_t i = 0; i < t->vary_count; i++)
        if (strlen(t->vary[i]) == n && strncasecmp(t->vary[i], name, n) == 0)
            return true;
    return false;
}

/* We ask for no encoding (api/upstream_headers.c) and answer browsers' origins ourselves; all else must be in the key. */
static bool vary_known(const struct tool *t, const char *value)
{
    for (const char *p = value + strspn(value, " \t,"); *p; p += strspn(p, " \t,")) {
        const size_t n = strcspn(p, " \t,");
        const bool ours = (n == 15 && strncasecmp(p, "Accept-Encoding", n) == 0) || (n == 6 && strncasecmp(p, "Origin", n) == 0);
        if (!ours && !varies_by(t, p, n))
            return false;
        p += n;
    }
    return true;
}

static bool header_allows(const struct tool *t, const char *name, const char *value)
{
    if (strcasecmp(name, "Set-Cookie") == 0)
        return false;
    if (strcasecmp(name, "Cache-Control") == 0)
        return !listed(value, "no-store");
    if (strcasecmp(name, "Vary") == 0)
        return vary_known(t, value);
    return strcasecmp(name, "Content-Encoding") != 0 || varies_by(t, "accept-encoding", 15);
}

bool answer_repeatable(const struct tool *t, const struct work *w)
{
    enum { PARTIAL = 206, NOT_MODIFIED = 304 };
    size_t i;
    json_t *h;
    if (!t->cacheable || w->status >= 400 || w->status == PARTIAL || w->status == NOT_MODIFIED || w->body.n > t->repeat_max_answer)
        return false;
    json_array_foreach(w->headers, i, h)
        if (!header_allows(t, json_string_value(json_array_get(h, 0)), json_string_value(json_array_get(h, 1))))
            return false;
    return true;
}

/* ---- sealed ---- */

void answer_seal(const struct gateway *g, const struct tool *tool, const struct order_id *order, const struct work *w, struct kept *ret)
{
    OWNED char *headers = w->headers ? json_write(w->headers) : str_copy("[]");
    const struct slice body = { w->body.p, w->body.n };
    BUF sealed = { 0 };
    seal(&g->quote_key, order, 'h', slice_of(headers), &sealed);
    base64_add(&ret->headers, sealed.p, sealed.n);
    seal(&g->quote_key, order, 'b', body, &ret->body);
    ret->answer = (struct order_answer){ .status = w->status,
                                         .headers = ret->headers.p,
                                         .body = { ret->body.p, ret->body.n },
                                         .digest = sha256(body.p, body.n),
                                         .size = body.n,
                                         .repeatable = answer_repeatable(tool, w) };
}

/* A list in plain text was stored by a version that did not seal. */
static bool open_headers(const struct gateway *g, const struct order_id *order, struct slice sealed, struct buf *ret)
{
    OWNED uint8_t *raw = NULL;
    size_t n;
    if (sealed.n > 0 && sealed.p[0] == '[') {
        buf_add(ret, sealed.p, sealed.n);
        return true;
    }
    return base64_read(sealed.p, sealed.n, &raw, &n) && seal_open(&g->quote_key, order, 'h', (struct slice){ (char *)raw, n }, ret);
}

bool answer_open(const struct gateway *g, const struct order_id *order, int status, struct slice headers, struct slice body,
                 struct work *ret)
{
    BUF list = { 0 }, plain = { 0 };
    struct json_why why;
    if (!open_headers(g, order, headers, &list) || !seal_open(&g->quote_key, order, 'b', body, &plain)) {
        log_error("gateway.answer_unreadable", "order=%s hint=PAYONCE_QUOTE_KEY_FILE is not the file that it was sealed under",
                  order_id_text(order).s);
        return false;
    }
    *ret = (struct work){ .end = WORK_DONE, .status = status, .headers = json_read(list.p, list.n, &why), .body = plain };
    plain = (struct buf){ 0 };           /* it is the work's now */
    return true;
}
