#include <string.h>

#include "chain/internal.h"

void word_address(uint8_t ret[WORD], const struct address *a)
{
    memset(ret, 0, WORD - sizeof a->b);
    memcpy(ret + WORD - sizeof a->b, a->b, sizeof a->b);
}

void word_u64(uint8_t ret[WORD], uint64_t v)
{
    amount_to_be(amount_of(v), ret);
}

/* ---- calldata ---- */

static void add_word(struct buf *b, uint64_t v)
{
    uint8_t word[WORD];
    word_u64(word, v);
    buf_add(b, word, WORD);
}

static void add_address(struct buf *b, const struct address *a)
{
    uint8_t word[WORD];
    word_address(word, a);
    buf_add(b, word, WORD);
}

static void add_amount(struct buf *b, struct amount a)
{
    uint8_t word[WORD];
    amount_to_be(a, word);
    buf_add(b, word, WORD);
}

static size_t padded(size_t n)
{
    return (n + WORD - 1) / WORD * WORD;
}

/* `bytes` behind its offset: the length, the data, zeros up to a whole word. */
static void add_bytes(struct buf *b, const void *p, size_t n)
{
    static const uint8_t zeros[WORD];
    add_word(b, n);
    buf_add(b, p, n);
    buf_add(b, zeros, padded(n) - n);
}

void authorization_call(struct buf *b, const struct authorization *a)
{
    const bool is_vrs = a->signature_n == 65;
    buf_add(b, is_vrs ? "\xe3\xee\x16\x0e" : "\xcf\x09\x29\x95", 4);
    add_address(b, &a->from);
    add_address(b, &a->to);
    add_amount(b, a->value);
    add_amount(b, a->valid_after);
    add_amount(b, a->valid_before);
    buf_add(b, a->nonce.b, WORD);
    if (is_vrs) {
        add_word(b, a->signature[64]);
        buf_add(b, a->signature, 2 * WORD); /* r, s */
    } else {
        add_word(b, 7 * WORD); /* where the bytes begin: behind these seven words */
        add_bytes(b, a->signature, a->signature_n);
    }
}

struct state_call state_call(const struct address *payer, const struct hash32 *nonce)
{
    struct state_call c = { { 0xe9, 0x4a, 0x01, 0x02 } };
    word_address(c.b + 4, payer);
    memcpy(c.b + 4 + WORD, nonce->b, WORD);
    return c;
}

struct balance_call balance_call(const struct address *holder)
{
    struct balance_call c = { { 0x70, 0xa0, 0x82, 0x31 } };
    word_address(c.b + 4, holder);
    return c;
}

void multicall_call(struct buf *b, const struct call3 *calls, size_t n)
{
    buf_add(b, "\x82\xad\x56\xcb", 4); /* aggregate3((address target, bool allowFailure, bytes callData)[]) */
    add_word(b, WORD);
    add_word(b, n);
    size_t at = n * WORD;
    for (size_t i = 0; i < n; i++) {
        add_word(b, at);
        at += 4 * WORD + padded(calls[i].data.n);
    }
    for (size_t i = 0; i < n; i++) {
        add_address(b, &calls[i].to);
        add_word(b, true);
        add_word(b, 3 * WORD);
        add_bytes(b, calls[i].data.p, calls[i].data.n);
    }
}

/* ---- replies: whatever an RPC node says, nothing outside of the slice is read ---- */

/* The word at `at` as a number below 2^64. */
static bool read_word(struct slice s, size_t at, uint64_t *ret)
{
    if (s.n < WORD || at > s.n - WORD)
        return false;
    return amount_u64(amount_from_be((const uint8_t *)s.p + at), ret);
}

/* What the offset that stands at `at` points to, up to the slice's end. */
static bool follow(struct slice s, size_t at, struct slice *ret)
{
    uint64_t offset;
    if (!read_word(s, at, &offset) || offset > s.n)
        return false;
    *ret = (struct slice){ s.p + offset, s.n - (size_t)offset };
    return true;
}

/* (bool success, bytes returnData) */
static bool read_result(struct slice tuple, struct call3_result *ret)
{
    struct slice data;
    uint64_t ok, n;
    if (!read_word(tuple, 0, &ok) || ok > 1 || !follow(tuple, WORD, &data))
        return false;
    if (!read_word(data, 0, &n) || n > data.n - WORD)
        return false;
    *ret = (struct call3_result){ ok == 1, { data.p + WORD, (size_t)n } };
    return true;
}

bool multicall_read(struct slice reply, struct call3_result *ret, size_t n)
{
    struct slice array, tuple;
    uint64_t count;
    if (!follow(reply, 0, &array) || !read_word(array, 0, &count) || count != n)
        return false;
    const struct slice items = { array.p + WORD, array.n - WORD };
    for (size_t i = 0; i < n; i++) {
        if (!follow(items, i * WORD, &tuple) || !read_result(tuple, &ret[i]))
            return false;
    }
    return true;
}
