/* Paying an offer of x402's: "exact" on EVM, an EIP-3009 authorization. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "load_pay.h"

static const char *need(const json_t *o, const char *key)
{
    const char *s = json_str(o, key);
    if (!s) {
        (void)fprintf(stderr, "load: an offer without %s\n", key);
        exit(1);
    }
    return s;
}

static struct authorization sign_offer(const json_t *offer, const struct key *k)
{
    struct authorization a = { .from = k->address, .valid_after = AMOUNT_ZERO };
    const json_t *extra = json_object_get(offer, "extra"), *timeout = json_object_get(offer, "maxTimeoutSeconds");
    struct token t = { .name = need(extra, "name"), .version = need(extra, "version") };
    const char *to = need(offer, "payTo"), *amount = need(offer, "amount"), *asset = need(offer, "asset");
    bool ok = network_id_read(need(offer, "network"), &t.chain_id) && address_read(to, strlen(to), &a.to) &&
              amount_read(amount, strlen(amount), &a.value) && address_read(asset, strlen(asset), &t.address);
    a.valid_before = amount_of((uint64_t)(clock_wall_s() + json_integer_value(timeout)));
    bytes_random(&a.nonce, sizeof a.nonce);
    token_domain(&t);
    if (!ok || !authorization_sign(&a, &t, k)) {
        (void)fprintf(stderr, "load: an offer that cannot be signed\n");
        exit(1);
    }
    return a;
}

void x402_payment(const char *required, const struct key *k, bool without_quote, struct buf *ret)
{
    uint8_t *text;
    size_t n;
    struct json_why why;
    if (!base64_read(required, strlen(required), &text, &n))
        abort();
    JSON *r = json_read((const char *)text, n, &why);
    free(text);
    json_t *offer = json_array_get(json_object_get(r, "accepts"), 0);
    struct authorization a = sign_offer(offer, k);
    char signature[2 * 65 + 3];
    hex_write(signature, a.signature, 65);
    json_t *authorization =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "from", address_checksum(&a.from).s, "to",
                  address_checksum(&a.to).s,
                  "value", amount_text(a.value).s, "validAfter", "0", "validBefore", amount_text(a.valid_before).s,
                  "nonce", hash_text(&a.nonce).s);
    JSON *p = without_quote ? json_pack("{s:i, s:s, s:s, s:{s:s, s:o}}", "x402Version", 1, "scheme", "exact", "network", "base-sepolia",
                                        "payload", "signature", signature, "authorization", authorization)
                            : json_pack("{s:i, s:{s:s, s:o}, s:O, s:O}", "x402Version", 2, "payload", "signature", signature,
                        "authorization", authorization, "resource", json_object_get(r, "resource"), "accepted", offer);
    OWNED char *json = json_write(p);
    base64_add(ret, json, strlen(json));
}
