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
