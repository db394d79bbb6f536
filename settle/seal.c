#include "settle/seal.h"

#include <string.h>

#include "base/aead.h"

enum { PLAIN = 0, SEALED = 1 };

/* One key for each order: a nonce at random then never meets itself. */
static struct hash32 key_of(const uint8_t key[32], const struct order_id *order, char what)
{
    static const char label[] = "payonce answer ";
    uint8_t text[sizeof label + sizeof order->b];
    memcpy(text, label, sizeof label - 1);
    text[sizeof label - 1] = (uint8_t)what;
    memcpy(text + sizeof label, order->b, sizeof order->b);
    return hmac_sha256(key, 32, text, sizeof text);
}

void seal(const struct quote_key *k, const struct order_id *order, char what, struct slice plain, struct buf *ret)
{
    static const char version = SEALED;
    struct hash32 key = key_of(k->b[0], order, what);
    buf_add(ret, &version, 1);
    aead_seal(&key, plain, ret);
    bytes_wipe(&key, sizeof key);
}

bool seal_open(const struct quote_key *k, const struct order_id *order, char what, struct slice sealed, struct buf *ret)
{
    if (sealed.n == 0 || (sealed.p[0] != PLAIN && sealed.p[0] != SEALED))
        return false;
    const struct slice rest = { sealed.p + 1, sealed.n - 1 };
    if (sealed.p[0] == PLAIN) {
        buf_add(ret, rest.p, rest.n);
        return true;
    }
    bool ok = false;
    for (size_t i = 0; i < k->n && !ok; i++) {
        struct hash32 key = key_of(k->b[i], order, what);
        ok = aead_open(&key, rest, ret);
        bytes_wipe(&key, sizeof key);
    }
    return ok;
}
