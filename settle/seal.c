#include "settle/seal.h"

#include <string.h>

#include "base/aead.h"

enum { PLAIN = 0, SEALED = 1 };

/* One key for each order: a nonce at random then never meets itself. */
static struct hash32 key_of(const struct quote_key *k, const struct order_id *order, char what)
{
    static const char label[] = "payonce answer ";
    uint8_t text[sizeof label + sizeof order->b];
    memcpy(text, label, sizeof label - 1);
    text[sizeof label - 1] = (uint8_t)what;
    memcpy(text + sizeof label, order->b, sizeof order->b);
    return hmac_sha256(k->b, sizeof k->b, text, sizeof text);
}

void seal(const struct quote_key *k, const struct order_id *order, char what, struct slice plain, struct buf *ret)
{
    static const char version = SEALED;
    struct hash32 key = key_of(k, order, what);
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
    struct hash32 key = key_of(k, order, what);
    const bool ok = aead_open(&key, rest, ret);
    bytes_wipe(&key, sizeof key);
    return ok;
}
