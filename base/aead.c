#include "base/aead.h"

#include <nettle/gcm.h>

enum { NONCE = GCM_IV_SIZE, TAG = GCM_DIGEST_SIZE };

void aead_seal(const struct hash32 *key, struct slice plain, struct buf *ret)
{
    struct gcm_aes256_ctx ctx;
    uint8_t nonce[NONCE], tag[TAG];
    bytes_random(nonce, NONCE);
    gcm_aes256_set_key(&ctx, key->b);
    gcm_aes256_set_iv(&ctx, NONCE, nonce);
    buf_add(ret, nonce, NONCE);
    buf_reserve(ret, plain.n + TAG + 1);
    gcm_aes256_encrypt(&ctx, plain.n, (uint8_t *)ret->p + ret->n, (const uint8_t *)plain.p);
    ret->n += plain.n;
    gcm_aes256_digest(&ctx, TAG, tag);
    buf_add(ret, tag, TAG);
    bytes_wipe(&ctx, sizeof ctx);
}

bool aead_open(const struct hash32 *key, struct slice sealed, struct buf *ret)
{
    struct gcm_aes256_ctx ctx;
    const uint8_t *p = (const uint8_t *)sealed.p;
    uint8_t tag[TAG];
    if (sealed.n < AEAD_EXTRA)
        return false;
    const size_t n = sealed.n - AEAD_EXTRA;
    OWNED uint8_t *plain = mem_new(n + 1);
    gcm_aes256_set_key(&ctx, key->b);
    gcm_aes256_set_iv(&ctx, NONCE, p);
    gcm_aes256_decrypt(&ctx, n, plain, p + NONCE);
    gcm_aes256_digest(&ctx, TAG, tag);
    bytes_wipe(&ctx, sizeof ctx);
    const bool ok = bytes_equal_ct(tag, p + NONCE + n, TAG);
    if (ok)
        buf_add(ret, plain, n);
    bytes_wipe(plain, n);
    return ok;
}
