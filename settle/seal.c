#include "settle/seal.h"

#include <nettle/gcm.h>
#include <string.h>

enum { PLAIN = 0, GCM = 1, NONCE = GCM_IV_SIZE, TAG = GCM_DIGEST_SIZE };

/* One key for each order: a nonce at random then never meets itself. */
static void start(struct gcm_aes256_ctx *ctx, const struct quote_key *k, const struct order_id *order, char what, const uint8_t *nonce)
{
    static const char label[] = "payonce answer ";
    uint8_t text[sizeof label + sizeof order->b];
    memcpy(text, label, sizeof label - 1);
    text[sizeof label - 1] = (uint8_t)what;
    memcpy(text + sizeof label, order->b, sizeof order->b);
    struct hash32 key = hmac_sha256(k->b, sizeof k->b, text, sizeof text);
    gcm_aes256_set_key(ctx, key.b);
    gcm_aes256_set_iv(ctx, NONCE, nonce);
    bytes_wipe(&key, sizeof key);
}

void seal(const struct quote_key *k, const struct order_id *order, char what, struct slice plain, struct buf *ret)
{
    struct gcm_aes256_ctx ctx;
    uint8_t head[1 + NONCE] = { GCM }, tag[TAG];
    bytes_random(head + 1, NONCE);
    start(&ctx, k, order, what, head + 1);
    buf_add(ret, head, sizeof head);
    buf_reserve(ret, plain.n + TAG + 1);
    gcm_aes256_encrypt(&ctx, plain.n, (uint8_t *)ret->p + ret->n, (const uint8_t *)plain.p);
    ret->n += plain.n;
    gcm_aes256_digest(&ctx, TAG, tag);
    buf_add(ret, tag, TAG);
    bytes_wipe(&ctx, sizeof ctx);
}

bool seal_open(const struct quote_key *k, const struct order_id *order, char what, struct slice sealed, struct buf *ret)
{
    struct gcm_aes256_ctx ctx;
    const uint8_t *p = (const uint8_t *)sealed.p;
    uint8_t tag[TAG];
    if (sealed.n > 0 && p[0] == PLAIN) {
        buf_add(ret, p + 1, sealed.n - 1);
        return true;
    }
    if (sealed.n < SEAL_EXTRA || p[0] != GCM)
        return false;
    const size_t n = sealed.n - SEAL_EXTRA;
    OWNED uint8_t *plain = mem_new(n + 1);
    start(&ctx, k, order, what, p + 1);
    gcm_aes256_decrypt(&ctx, n, plain, p + 1 + NONCE);
    gcm_aes256_digest(&ctx, TAG, tag);
    bytes_wipe(&ctx, sizeof ctx);
    const bool ok = bytes_equal_ct(tag, p + 1 + NONCE + n, TAG);
    if (ok)
        buf_add(ret, plain, n);
    bytes_wipe(plain, n);
    return ok;
}
