#include "settle/canonical.h"

#include <string.h>
#include <strings.h>

enum { TYPE_MAX = 100 };

/* ---- the query ---- */

struct pair {
    struct buf text;                 /* as it goes into the key */
    struct buf name;                 /* the coarsest reading of its name: equal ones keep their order */
    struct buf decoded;              /* the name decoded, to be compared with what is volatile */
    size_t at;
};

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool unreserved(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static bool reserved(unsigned char c)
{
    return c && strchr(":/?#[]@!$&'()*+,;=", c);
}

/* One character of the query, decoded. False: a broken percent-encoding. */
static bool next_byte(struct slice s, size_t *at, unsigned char *ret, bool *ret_encoded)
{
    *ret = (unsigned char)s.p[*at];
    *ret_encoded = *ret == '%';
    if (*ret_encoded) {
        const int high = *at + 2 < s.n ? hex_digit(s.p[*at + 1]) : -1, low = high < 0 ? -1 : hex_digit(s.p[*at + 2]);
        if (low < 0)
            return false;
        *ret = (unsigned char)(high * 16 + low);
        *at += 2;
    }
    ++*at;
    return true;
}

/* What some server takes for the same name: letters of either case, what a form decodes to a blank, a name with its index. */
static void add_coarse(struct buf *b, unsigned char c, bool *ended)
{
    const char plain = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c == ' ' || c == '+' || c == '.' ? '_' : c);
    *ended = *ended || c == '[';
    if (!*ended)
        buf_add(b, &plain, 1);
}

static bool read_pair(struct slice s, struct pair *p)
{
    bool in_value = false, index = false;
    buf_puts(&p->text, "");
    buf_puts(&p->name, "");
    buf_puts(&p->decoded, "");
    for (size_t at = 0; at < s.n;) {
        unsigned char c;
        bool encoded;
        if (!next_byte(s, &at, &c, &encoded))
            return false;
        if (unreserved(c) || (!encoded && reserved(c)))
            buf_add(&p->text, &c, 1);
        else
            buf_printf(&p->text, "%%%02X", c);
        in_value = in_value || (c == '=' && !encoded);
        if (in_value)
            continue;
        add_coarse(&p->name, c, &index);
        buf_add(&p->decoded, c == '+' && !encoded ? (const unsigned char *)" " : &c, 1);
    }
    return true;
}

static int compare_bytes(const struct buf *a, const struct buf *b)
{
    const int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

static int compare_pairs(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;
    const int c = compare_bytes(&a->name, &b->name);
    return c ? c : a->at < b->at ? -1 : a->at > b->at;
}

static bool is_volatile(const struct pair *p, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (names[i][0] != '/' && slice_is((struct slice){ p->decoded.p, p->decoded.n }, names[i]))
            return true;
    return false;
}

static size_t count_pairs(struct slice query)
{
    size_t n = query.n > 0;
    for (size_t i = 0; i < query.n; i++)
        n += query.p[i] == '&';
    return n;
}

static void pairs_done(struct pair *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_done(&list[i].text);
        buf_done(&list[i].name);
        buf_done(&list[i].decoded);
    }
    free(list);
}

bool canonical_query(struct slice query, const char *const *volatiles, size_t n, struct buf *ret)
{
    const size_t count = count_pairs(query);
    struct pair *list = mem_new((count + 1) * sizeof *list);
    bool ok = true;
    size_t from = 0;
    for (size_t i = 0; i < count && ok; i++) {
        const char *end = memchr(query.p + from, '&', query.n - from);
        const size_t to = end ? (size_t)(end - query.p) : query.n;
        list[i].at = i;
        ok = read_pair((struct slice){ query.p + from, to - from }, &list[i]);
        from = to + 1;
    }
    if (ok && count)
        qsort(list, count, sizeof *list, compare_pairs);
    for (size_t i = 0; i < count && ok; i++)
        if (!is_volatile(&list[i], volatiles, n)) {
            buf_add(ret, list[i].text.p, list[i].text.n);
            buf_add(ret, "&", 1);
        }
    pairs_done(list, count);
    return ok;
}

/* ---- all of it ---- */

/* With its length in front, so that no two lists of parts are one text. */
static void add_part(struct buf *b, char kind, struct slice s)
{
    buf_printf(b, "%c%zu:", s.p ? kind : '-', s.n);
    buf_add(b, s.p, s.n);
}

static struct slice trimmed(struct slice s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct slice){ s.p + 1, s.n - 1 };
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static bool is_word(struct slice s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* JSON, and nothing said of it that makes other arguments of the same text: a parameter may name another charset, or a dialect. ret: its
 * media type in small letters, held in room. */
static bool is_json(struct slice content_type, char room[TYPE_MAX], struct slice *ret)
{
    const char *end = content_type.n ? memchr(content_type.p, ';', content_type.n) : NULL;
    const size_t n = end ? (size_t)(end - content_type.p) : content_type.n;
    const struct slice type = trimmed((struct slice){ content_type.p, n });
    const struct slice more = trimmed(end ? (struct slice){ end + 1, content_type.n - n - 1 } : (struct slice){ NULL, 0 });
    if (type.n > TYPE_MAX || (more.n && !is_word(more, "charset=utf-8") && !is_word(more, "charset=\"utf-8\"")))
        return false;
    for (size_t i = 0; i < type.n; i++)
        room[i] = (char)(type.p[i] >= 'A' && type.p[i] <= 'Z' ? type.p[i] + 32 : type.p[i]);
    *ret = (struct slice){ room, type.n };
    return slice_is(*ret, "application/json") || (type.n > 5 && memcmp(room + type.n - 5, "+json", 5) == 0);
}

static void add_body(const struct question *q, struct buf *b)
{
    char room[TYPE_MAX];
    struct slice type;
    BUF json = { 0 };
    if (q->body.n && !q->content_encoding.p && is_json(q->content_type, room, &type) &&
        canonical_json(q->body, q->volatiles, q->volatile_count, &json)) {
        add_part(b, 't', type);
        add_part(b, 'j', (struct slice){ json.p, json.n });
        return;
    }
    if (q->body.n) {
        add_part(b, 't', q->content_type);
        add_part(b, 'e', q->content_encoding);
    }
    add_part(b, 'b', q->body);
}

bool question_key(const struct question *q, struct hash32 *ret)
{
    BUF b = { 0 }, query = { 0 };
    buf_puts(&query, "");
    if (!canonical_query(q->query, q->volatiles, q->volatile_count, &query))
        return false;
    buf_puts(&b, "payonce question 1\n");
    buf_add(&b, q->payer->b, sizeof q->payer->b);
    add_part(&b, 'n', slice_of(q->tool));
    add_part(&b, 'm', slice_of(q->method));
    add_part(&b, 'p', q->path);
    add_part(&b, 'q', (struct slice){ query.p, query.n });
    add_body(q, &b);
    for (size_t i = 0; i < q->vary_count; i++) {
        add_part(&b, 'h', slice_of(q->vary[i]));
        add_part(&b, 'v', q->vary_values[i]);
    }
    *ret = sha256(b.p, b.n);
    return true;
}
