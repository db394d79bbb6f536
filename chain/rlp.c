#include <string.h>

#include "chain/internal.h"

/* A short length stands in the tag itself, a long one behind it in as few bytes as it takes. */
static void add_head(struct buf *b, uint8_t tag, size_t n)
{
    uint8_t head[1 + sizeof n];
    size_t k = 0;
    if (n <= 55) {
        head[k++] = (uint8_t)(tag + n);
    } else {
        size_t size = 0;
        for (size_t left = n; left > 0; left >>= 8)
            size++;
        head[k++] = (uint8_t)(tag + 55 + size);
        while (size-- > 0)
            head[k++] = (uint8_t)(n >> 8 * size);
    }
    buf_add(b, head, k);
}

void rlp_bytes(struct buf *b, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    if (n != 1 || bytes[0] >= 0x80) /* a byte below 0x80 is its own spelling */
        add_head(b, 0x80, n);
    buf_add(b, p, n);
}

void rlp_integer(struct buf *b, const uint8_t *big_endian, size_t n)
{
    for (; n > 0 && big_endian[0] == 0; n--)
        big_endian++;
    rlp_bytes(b, big_endian, n);
}

void rlp_amount(struct buf *b, struct amount a)
{
    uint8_t be[32];
    amount_to_be(a, be);
    rlp_integer(b, be, sizeof be);
}

void rlp_u64(struct buf *b, uint64_t v)
{
    rlp_amount(b, amount_of(v));
}

void rlp_list(struct buf *b, const struct buf *items)
{
    add_head(b, 0xc0, items->n);
    buf_add(b, items->p, items->n);
}

/* ---- in ---- */

/* The length that stands in `size` bytes behind the tag: a long one, in as few bytes as it takes. */
static bool read_length(struct slice s, size_t size, size_t *ret)
{
    size_t n = 0;
    if (size > sizeof n || s.n < size || s.p[0] == 0)
        return false;
    for (size_t i = 0; i < size; i++)
        n = n << 8 | (uint8_t)s.p[i];
    *ret = n;
    return n > 55;
}

bool rlp_next(struct slice *rest, struct rlp_item *ret)
{
    if (rest->n == 0)
        return false;
    const uint8_t tag = (uint8_t)rest->p[0], base = tag < 0xc0 ? 0x80 : 0xc0;
    size_t head = tag < 0x80 ? 0 : 1, n = tag < 0x80 ? 1 : (size_t)(tag - base);
    if (n > 55) {
        const size_t size = n - 55;
        if (!read_length((struct slice){ rest->p + 1, rest->n - 1 }, size, &n))
            return false;
        head += size;
    }
    if (n > rest->n - head)
        return false;
    if (tag == 0x81 && (uint8_t)rest->p[1] < 0x80) /* such a byte is its own spelling */
        return false;
    *ret = (struct rlp_item){ tag >= 0xc0, { rest->p + head, n }, { rest->p, head + n } };
    *rest = (struct slice){ rest->p + head + n, rest->n - head - n };
    return true;
}

bool rlp_read_amount(const struct rlp_item *i, size_t max_bytes, struct amount *ret)
{
    uint8_t be[32] = { 0 };
    if (i->is_list || i->body.n > max_bytes || i->body.n > sizeof be || (i->body.n > 0 && i->body.p[0] == 0))
        return false;
    memcpy(be + sizeof be - i->body.n, i->body.p, i->body.n);
    *ret = amount_from_be(be);
    return true;
}

bool rlp_read_u64(const struct rlp_item *i, uint64_t *ret)
{
    struct amount a;
    return rlp_read_amount(i, 8, &a) && amount_u64(a, ret);
}
