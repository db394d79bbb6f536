/* JSON as an argument: keys sorted, white space and escapes made one, numbers as they are written. A reader of its own, since a
 * library's would turn numbers into values. */
#include <stdio.h>
#include <string.h>

#include "settle/canonical.h"

enum { DEEPEST = 64 };

struct reader {
    const char *p, *end;
    const char *const *pointers;
    size_t pointer_count;
    struct buf path;                 /* the JSON pointer of where we are */
    unsigned depth;
};

static void skip_blank(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static bool take(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static bool is_volatile(const struct reader *r)
{
    for (size_t i = 0; i < r->pointer_count; i++)
        if (r->pointers[i][0] == '/' && slice_is((struct slice){ r->path.p, r->path.n }, r->pointers[i]))
            return true;
    return false;
}

static size_t enter(struct reader *r, const char *name, size_t n)
{
    const size_t before = r->path.n;
    buf_puts(&r->path, "/");
    for (size_t i = 0; i < n; i++)
        buf_add(&r->path, name[i] == '~' ? "~0" : name[i] == '/' ? "~1" : name + i, name[i] == '~' || name[i] == '/' ? 2 : 1);
    return before;
}

static void leave(struct reader *r, size_t before)
{
    r->path.n = before;
    r->path.p[before] = '\0';
}

/* ---- strings ---- */

static void add_utf8(struct buf *b, unsigned c)
{
    const char four[4] = { (char)(c >> 18 | 0xf0), (char)((c >> 12 & 0x3f) | 0x80), (char)((c >> 6 & 0x3f) | 0x80), (char)((c & 0x3f) | 0x80) };
    const char three[3] = { (char)(c >> 12 | 0xe0), four[2], four[3] }, two[2] = { (char)(c >> 6 | 0xc0), four[3] }, one = (char)c;
    if (c < 0x80)
        buf_add(b, &one, 1);
    else if (c < 0x800)
        buf_add(b, two, 2);
    else if (c < 0x10000)
        buf_add(b, three, 3);
    else
        buf_add(b, four, 4);
}

static bool read_hex4(struct reader *r, unsigned *ret)
{
    char text[7] = "0x";
    uint8_t two[2];
    if (r->end - r->p < 4)
        return false;
    memcpy(text + 2, r->p, 4);
    if (!hex_read(text, 6, two, 2))
        return false;
    *ret = (unsigned)two[0] << 8 | two[1];
    r->p += 4;
    return true;
}

static bool read_escape(struct reader *r, struct buf *ret)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    unsigned c, low;
    if (r->p == r->end)
        return false;
    const char *known = *r->p ? strchr(from, *r->p) : NULL;
    if (known) {
        buf_add(ret, to + (known - from), 1);
        r->p++;
        return true;
    }
    if (!take(r, 'u') || !read_hex4(r, &c) || (c >= 0xdc00 && c < 0xe000))
        return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (!take(r, '\\') || !take(r, 'u') || !read_hex4(r, &low) || low < 0xdc00 || low >= 0xe000)
            return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    add_utf8(ret, c);
    return true;
}

/* One character beyond ASCII, by the shortest form and no surrogate. */
static bool read_utf8(struct reader *r, struct buf *ret)
{
    const unsigned char *s = (const unsigned char *)r->p;
    const size_t left = (size_t)(r->end - r->p), n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned c = s[0] & (0xffu >> (n + 1));
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < n)
        return false;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return false;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return false;
    buf_add(ret, s, n);
    r->p += n;
    return true;
}

/* The decoded bytes. */
static bool read_string(struct reader *r, struct buf *ret)
{
    buf_puts(ret, "");
    if (!take(r, '"'))
        return false;
    while (r->p < r->end && *r->p != '"') {
        const unsigned char c = (unsigned char)*r->p;
        if (c < 0x20)
            return false;
        if (c == '\\') {
            r->p++;
            if (!read_escape(r, ret))
                return false;
        } else if (c >= 0x80) {
            if (!read_utf8(r, ret))
                return false;
        } else {
            buf_add(ret, r->p++, 1);
        }
    }
    return take(r, '"');
}

/* With its length in front: no character needs an escape then. */
static void add_string(struct buf *b, const struct buf *s)
{
    buf_printf(b, "\"%zu:", s->n);
    buf_add(b, s->p, s->n);
}

/* ---- numbers and words ---- */

static size_t digits(struct reader *r)
{
    const char *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return (size_t)(r->p - from);
}

static bool read_number(struct reader *r, struct buf *ret)
{
    const char *from = r->p;
    (void)take(r, '-');
    const bool zero = r->p < r->end && *r->p == '0';
    const size_t whole = digits(r);
    if (whole == 0 || (zero && whole > 1) || (take(r, '.') && digits(r) == 0))
        return false;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+'))
            (void)take(r, '-');
        if (digits(r) == 0)
            return false;
    }
    buf_add(ret, from, (size_t)(r->p - from));
    return true;
}

static bool read_word(struct reader *r, struct buf *ret)
{
    static const char *const words[] = { "true", "false", "null" };
    for (size_t i = 0; i < COUNT(words); i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(r->end - r->p) >= n && memcmp(r->p, words[i], n) == 0) {
            buf_puts(ret, words[i]);
            r->p += n;
            return true;
        }
    }
    return false;
}

/* ---- objects and arrays ---- */

static bool read_value(struct reader *r, struct buf *ret);

struct member { struct buf name, value; bool dropped; };
struct members { struct member *list; size_t n; };

static void members_done(struct members *m)
{
    for (size_t i = 0; i < m->n; i++) {
        buf_done(&m->list[i].name);
        buf_done(&m->list[i].value);
    }
    free(m->list);
}

static int compare_members(const void *x, const void *y)
{
    const struct buf *a = &((const struct member *)x)->name, *b = &((const struct member *)y)->name;
    const int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

static bool read_member(struct reader *r, struct members *all)
{
    all->list = mem_resize(all->list, all->n + 1, sizeof *all->list);
    struct member *m = &all->list[all->n++];
    *m = (struct member){ 0 };
    skip_blank(r);
    if (!read_string(r, &m->name))
        return false;
    skip_blank(r);
    if (!take(r, ':'))
        return false;
    const size_t before = enter(r, m->name.p, m->name.n);
    m->dropped = is_volatile(r);
    const bool ok = read_value(r, &m->value);
    leave(r, before);
    skip_blank(r);
    return ok;
}

static bool add_members(struct members *all, struct buf *ret)
{
    if (all->n)
        qsort(all->list, all->n, sizeof *all->list, compare_members);
    for (size_t i = 0; i < all->n; i++) {
        if (i > 0 && compare_members(&all->list[i - 1], &all->list[i]) == 0)
            return false;                /* a name twice: servers differ on which counts */
        if (all->list[i].dropped)
            continue;
        add_string(ret, &all->list[i].name);
        buf_add(ret, all->list[i].value.p, all->list[i].value.n);
    }
    return true;
}

static bool read_object(struct reader *r, struct buf *ret)
{
    SCOPE(members_done) struct members all = { 0 };
    buf_puts(ret, "{");
    skip_blank(r);
    if (!take(r, '}')) {
        do
            if (!read_member(r, &all))
                return false;
        while (take(r, ','));
        if (!take(r, '}'))
            return false;
    }
    if (!add_members(&all, ret))
        return false;
    buf_puts(ret, "}");
    return true;
}

static bool read_array(struct reader *r, struct buf *ret)
{
    buf_puts(ret, "[");
    skip_blank(r);
    if (take(r, ']')) {
        buf_puts(ret, "]");
        return true;
    }
    size_t i = 0;
    do {
        char index[24];
        const int n = snprintf(index, sizeof index, "%zu", i++);
        const size_t before = enter(r, index, (size_t)n), at = ret->n;
        const bool ok = read_value(r, ret);
        if (ok && is_volatile(r)) {      /* what follows keeps its place */
            ret->n = at;
            buf_puts(ret, "~");
        }
        leave(r, before);
        skip_blank(r);
        if (!ok)
            return false;
        buf_puts(ret, ",");
    } while (take(r, ','));
    buf_puts(ret, "]");
    return take(r, ']');
}

static bool read_value(struct reader *r, struct buf *ret)
{
    BUF text = { 0 };
    bool ok;
    skip_blank(r);
    if (r->p == r->end)
        return false;
    switch (*r->p) {
    case '{':
    case '[':
        if (r->depth == DEEPEST)
            return false;
        r->depth++;
        ok = *r->p++ == '{' ? read_object(r, ret) : read_array(r, ret);
        r->depth--;
        return ok;
    case '"':
        ok = read_string(r, &text);
        if (ok)
            add_string(ret, &text);
        return ok;
    case 't':
    case 'f':
    case 'n':
        return read_word(r, ret);
    default:
        return read_number(r, ret);
    }
}

bool canonical_json(struct slice text, const char *const *pointers, size_t n, struct buf *ret)
{
    struct reader r = { .p = text.p, .end = text.p + text.n, .pointers = pointers, .pointer_count = n };
    buf_puts(&r.path, "");
    bool ok = read_value(&r, ret);
    skip_blank(&r);
    ok = ok && r.p == r.end;
    buf_done(&r.path);
    return ok;
}

bool json_pointer_ok(const char *s)
{
    if (*s != '/')
        return false;
    for (; *s; s++)
        if (*s == '~' && s[1] != '0' && s[1] != '1')
            return false;
    return true;
}
