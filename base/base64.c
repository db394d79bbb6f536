#include <string.h>

#include "base/bytes.h"

/* Decoding tables: VALID + the character's value; 0 is no character of the alphabet. */
#define VALID 64
#define DIGIT(c, v) [c] = VALID + (v)
#define DIGITS_OF_BOTH                                                                                                 \
    DIGIT('A', 0), DIGIT('B', 1), DIGIT('C', 2), DIGIT('D', 3), DIGIT('E', 4), DIGIT('F', 5), DIGIT('G', 6),           \
        DIGIT('H', 7), DIGIT('I', 8), DIGIT('J', 9), DIGIT('K', 10), DIGIT('L', 11), DIGIT('M', 12), DIGIT('N', 13),   \
        DIGIT('O', 14), DIGIT('P', 15), DIGIT('Q', 16), DIGIT('R', 17), DIGIT('S', 18), DIGIT('T', 19),                \
        DIGIT('U', 20), DIGIT('V', 21), DIGIT('W', 22), DIGIT('X', 23), DIGIT('Y', 24), DIGIT('Z', 25),                \
        DIGIT('a', 26), DIGIT('b', 27), DIGIT('c', 28), DIGIT('d', 29), DIGIT('e', 30), DIGIT('f', 31),                \
        DIGIT('g', 32), DIGIT('h', 33), DIGIT('i', 34), DIGIT('j', 35), DIGIT('k', 36), DIGIT('l', 37),                \
        DIGIT('m', 38), DIGIT('n', 39), DIGIT('o', 40), DIGIT('p', 41), DIGIT('q', 42), DIGIT('r', 43),                \
        DIGIT('s', 44), DIGIT('t', 45), DIGIT('u', 46), DIGIT('v', 47), DIGIT('w', 48), DIGIT('x', 49),                \
        DIGIT('y', 50), DIGIT('z', 51), DIGIT('0', 52), DIGIT('1', 53), DIGIT('2', 54), DIGIT('3', 55),                \
        DIGIT('4', 56), DIGIT('5', 57), DIGIT('6', 58), DIGIT('7', 59), DIGIT('8', 60), DIGIT('9', 61)

static const uint8_t values[256] = { DIGITS_OF_BOTH, DIGIT('+', 62), DIGIT('/', 63) };
static const uint8_t url_values[256] = { DIGITS_OF_BOTH, DIGIT('-', 62), DIGIT('_', 63) };

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
static const char letters[] = LETTERS "+/";
static const char url_letters[] = LETTERS "-_";

/* How many bytes n characters without padding hold. */
static size_t bytes_in(size_t n)
{
    return n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0);
}

/* The 2 or 3 characters behind the last group of four; what they hold beyond whole bytes must be zero, so that
 * each run of bytes has one spelling. */
static bool decode_rest(const uint8_t table[256], const uint8_t *s, size_t n, uint8_t *ret)
{
    if (n == 1)
        return false;
    const unsigned a = table[s[0]], b = table[s[1]], c = n == 3 ? table[s[2]] : VALID;
    if (!(a & b & c & VALID))
        return false;
    const unsigned bits = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6;
    ret[0] = (uint8_t)(bits >> 16);
    if (n == 2)
        return (bits & 0xffff) == 0;
    ret[1] = (uint8_t)(bits >> 8);
    return (bits & 0xff) == 0;
}

static bool decode(const uint8_t table[256], const char *text, size_t n, uint8_t *ret)
{
    const uint8_t *s = (const uint8_t *)text;
    for (; n >= 4; s += 4, n -= 4, ret += 3) {
        const unsigned a = table[s[0]], b = table[s[1]], c = table[s[2]], d = table[s[3]];
        if (!(a & b & c & d & VALID))
            return false;
        const unsigned bits = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
        ret[0] = (uint8_t)(bits >> 16);
        ret[1] = (uint8_t)(bits >> 8);
        ret[2] = (uint8_t)bits;
    }
    return n == 0 || decode_rest(table, s, n, ret);
}

static bool decode_any(const uint8_t table[256], const char *s, size_t n, uint8_t **ret, size_t *ret_n)
{
    OWNED uint8_t *bytes = mem_resize(NULL, bytes_in(n) + 1, 1);
    if (!decode(table, s, n, bytes))
        return false;
    bytes[bytes_in(n)] = '\0';
    *ret_n = bytes_in(n);
    *ret = MOVE(bytes);
    return true;
}

bool base64_read(const char *s, size_t n, uint8_t **ret, size_t *ret_n)
{
    if (n > 0 && s[n - 1] == '=') { /* padding is whole or absent */
        if (n % 4 != 0)
            return false;
        n -= s[n - 2] == '=' ? 2 : 1;
    }
    return decode_any(values, s, n, ret, ret_n);
}

bool base64url_read_any(const char *s, size_t n, uint8_t **ret, size_t *ret_n)
{
    return decode_any(url_values, s, n, ret, ret_n);
}

bool base64url_read(const char *s, size_t n, uint8_t *ret, size_t size)
{
    if (n % 4 == 1 || bytes_in(n) != size)
        return false;
    OWNED uint8_t *bytes = mem_resize(NULL, size, 1);
    if (!decode(url_values, s, n, bytes))
        return false;
    if (size)
        memcpy(ret, bytes, size);
    return true;
}

static char *encode_group(char *to, const char *alphabet, unsigned bits, size_t characters)
{
    for (size_t i = 0; i < characters; i++)
        *to++ = alphabet[bits >> (18 - 6 * i) & 63];
    return to;
}

/* Two characters a look: what twelve bits are written as. Every 402 has a thousand bytes of it. */
struct pairs {
    bool made;
    char of[4096][2];
};

static const struct pairs *pairs_of(struct pairs *t, const char *alphabet)
{
    for (unsigned i = 0; !t->made && i < COUNT(t->of); i++)
        (void)encode_group(t->of[i], alphabet, i << 12, 2);
    t->made = true;
    return t;
}

static void encode(struct buf *b, const char *alphabet, struct pairs *table, const uint8_t *p, size_t n, bool pad)
{
    const struct pairs *pairs = pairs_of(table, alphabet);
    buf_reserve(b, n / 3 * 4 + 4);
    char *to = b->p + b->n;
    for (; n >= 3; p += 3, n -= 3, to += 4) {
        memcpy(to, pairs->of[(unsigned)p[0] << 4 | p[1] >> 4], 2);
        memcpy(to + 2, pairs->of[(p[1] & 15U) << 8 | p[2]], 2);
    }
    if (n > 0)
        to = encode_group(to, alphabet, (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0), n + 1);
    for (size_t i = n; pad && n > 0 && i < 3; i++)
        *to++ = '=';
    *to = '\0'; /* a string also where there is nothing to encode */
    b->n = (size_t)(to - b->p);
}

void base64_add(struct buf *b, const void *p, size_t n)
{
    static struct pairs pairs;
    encode(b, letters, &pairs, p, n, true);
}

void base64url_add(struct buf *b, const void *p, size_t n)
{
    static struct pairs pairs;
    encode(b, url_letters, &pairs, p, n, false);
}
