/* The part of a payment that both versions and every sender share: the signed authorization. */
#include "base/json.h"
#include "settle/x402.h"

static bool no(const char **ret_detail, const char *detail)
{
    *ret_detail = detail;
    return false;
}

static bool text_amount(const json_t *o, const char *key, struct amount *ret)
{
    struct slice s = json_slice(o, key);
    return s.p && amount_read(s.p, s.n, ret);
}

static bool text_address(const json_t *o, const char *key, struct address *ret)
{
    struct slice s = json_slice(o, key);
    return s.p && address_read(s.p, s.n, ret);
}

bool x402_authorization(const json_t *payload, struct authorization *a, const char **ret_detail)
{
    const json_t *o = json_object_get(payload, "authorization");
    if (!json_is_object(payload) || !json_is_object(o))
        return no(ret_detail, "payload.authorization must be an object");
    if (!text_address(o, "from", &a->from))
        return no(ret_detail, "payload.authorization.from must be 0x and 40 hex digits");
    if (!text_address(o, "to", &a->to))
        return no(ret_detail, "payload.authorization.to must be 0x and 40 hex digits");
    if (!text_amount(o, "value", &a->value))
        return no(ret_detail, "payload.authorization.value must be a decimal string below 2^256");
    if (!text_amount(o, "validAfter", &a->valid_after))
        return no(ret_detail, "payload.authorization.validAfter must be a decimal string");
    if (!text_amount(o, "validBefore", &a->valid_before))
        return no(ret_detail, "payload.authorization.validBefore must be a decimal string");
    struct slice nonce = json_slice(o, "nonce"), signature = json_slice(payload, "signature");
    if (!nonce.p || !hash_read(nonce.p, nonce.n, &a->nonce))
        return no(ret_detail, "payload.authorization.nonce must be 0x and 64 hex digits");
    if (!signature.p || !hex_read_any(signature.p, signature.n, a->signature, sizeof a->signature, &a->signature_n))
        return no(ret_detail, "payload.signature must be 0x and an even number of hex digits");
    return true;
}

void x402_prove_signer(struct payment *p)
{
    struct signature s;
    struct address signer;
    p->signer_proven = false;
    if (!signature_read(p->auth.signature, p->auth.signature_n, &s))
        return;
    struct hash32 digest = authorization_digest(&p->auth, p->price.token);
    if (!signature_recover(&s, &digest, &signer) || !address_eq(&signer, &p->auth.from))
        return;
    signature_write(&s, p->auth.signature);
    p->signer_proven = true;
}
