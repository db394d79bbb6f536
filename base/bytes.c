#include "base/bytes.h"

#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

struct slice slice_of(const char *s)
{
    return (struct slice){ s, s ? strlen(s) : 0 };
}

bool slice_is(struct slice a, const char *s)
{
    const size_t n = strlen(s);
    return a.n == n && (n == 0 || memcmp(a.p, s, n) == 0);
}

/* ---- the growing buffer ---- */

static void make_room(struct buf *b, size_t more)
{
    if (more > SIZE_MAX / 4 || b->n > SIZE_MAX / 4)
        abort();
    const size_t need = b->n + more + 1;
    if (need <= b->cap)
        return;
    b->cap = need < 64 ? 64 : need < 2 * b->cap ? 2 * b->cap : need;
    b->p = mem_resize(b->p, b->cap, 1);
}

void buf_reserve(struct buf *b, size_t n)
{
    make_room(b, n);
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    make_room(b, n);
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_html(struct buf *b, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '&':
            buf_puts(b, "&amp;");
            break;
        case '<':
            buf_puts(b, "&lt;");
            break;
        case '>':
            buf_puts(b, "&gt;");
            break;
        case '"':
            buf_puts(b, "&quot;");
            break;
        case '\'':
            buf_puts(b, "&#39;");
            break;
        default:
            buf_add(b, s, 1);
        }
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    make_room(b, 512);                           /* most texts are then written in one pass */
    const int n = vsnprintf(b->p + b->n, b->cap - b->n, fmt, args);
    va_end(args);
    if (n < 0)
        abort();
    if ((size_t)n >= b->cap - b->n) {
        make_room(b, (size_t)n);
        vsnprintf(b->p + b->n, b->cap - b->n, fmt, again);
    }
    va_end(again);
    b->n += (size_t)n;
}

void buf_done(struct buf *b)
{
    free(b->p);
    *b = (struct buf){ 0 };
}

/* ---- hex ---- */

/* The digit's value and one; 0: it is none. */
static const uint8_t digit[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

bool hex_read_any(const char *s, size_t n, uint8_t *ret, size_t max, size_t *ret_n)
{
    const uint8_t *p = (const uint8_t *)s;
    if (n < 2 || n % 2 != 0 || s[0] != '0' || s[1] != 'x' || n / 2 - 1 > max)
        return false;
    for (size_t i = 2; i < n; i++)
        if (digit[p[i]] == 0)
            return false;
    for (size_t i = 2; i < n; i += 2)
        ret[i / 2 - 1] = (uint8_t)((digit[p[i]] - 1) << 4 | (digit[p[i + 1]] - 1));
    *ret_n = n / 2 - 1;
    return true;
}

bool hex_read(const char *s, size_t n, uint8_t *ret, size_t size)
{
    size_t got;
    return n / 2 == size + 1 && hex_read_any(s, n, ret, size, &got);
}

void hex_write_bare(char *ret, const void *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++) {
        *ret++ = digits[b[i] >> 4];
        *ret++ = digits[b[i] & 15];
    }
    *ret = '\0';
}

void hex_write(char *ret, const void *p, size_t n)
{
    ret[0] = '0';
    ret[1] = 'x';
    hex_write_bare(ret + 2, p, n);
}

void buf_hex(struct buf *b, const void *p, size_t n)
{
    if (n > SIZE_MAX / 8)
        abort();
    make_room(b, 2 * n + 2);
    hex_write(b->p + b->n, p, n);
    b->n += 2 * n + 2;
}

/* ---- addresses and hashes ---- */

bool address_read(const char *s, size_t n, struct address *ret)
{
    return hex_read(s, n, ret->b, sizeof ret->b);
}

struct address_text address_lower(const struct address *a)
{
    struct address_text t;
    hex_write(t.s, a->b, sizeof a->b);
    return t;
}

bool hash_read(const char *s, size_t n, struct hash32 *ret)
{
    return hex_read(s, n, ret->b, sizeof ret->b);
}

struct hash_text hash_text(const struct hash32 *h)
{
    struct hash_text t;
    hex_write(t.s, h->b, sizeof h->b);
    return t;
}

bool address_eq(const struct address *a, const struct address *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

bool hash_eq(const struct hash32 *a, const struct hash32 *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

/* ---- secrets ---- */

bool bytes_equal_ct(const void *a, const void *b, size_t n)
{
    return memeql_sec(a, b, n);
}

void bytes_wipe(void *p, size_t n)
{
    explicit_bzero(p, n);
}

void bytes_random(void *ret, size_t n)
{
    for (uint8_t *p = ret; n > 0;) {
        const ssize_t got = getrandom(p, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        p += got;
        n -= (size_t)got;
    }
}

struct hash32 sha256(const void *p, size_t n)
{
    struct sha256_ctx ctx;
    struct hash32 h;
    sha256_init(&ctx);
    sha256_update(&ctx, n, p);
    sha256_digest(&ctx, sizeof h.b, h.b);
    return h;
}

struct hash32 hmac_sha256(const void *key, size_t key_n, const void *p, size_t n)
{
    struct hmac_sha256_ctx ctx;
    struct hash32 h;
    hmac_sha256_set_key(&ctx, key_n, key);
    hmac_sha256_update(&ctx, n, p);
    hmac_sha256_digest(&ctx, sizeof h.b, h.b);
    bytes_wipe(&ctx, sizeof ctx);
    return h;
}
