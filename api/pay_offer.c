#include <string.h>

#include "api/pay.h"

json_t *challenge_read(struct slice header, const char **ret_why)
{
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    if (!base64_read(header.p, header.n, &text, &n)) {
        *ret_why = "PAYMENT-REQUIRED is not base64";
        return NULL;
    }
    JSON *j = json_read((const char *)text, n, &why);
    if (!j) {
        *ret_why = "PAYMENT-REQUIRED is not JSON";
        return NULL;
    }
    if (json_integer_value(json_object_get(j, "x402Version")) != 2 || !json_is_array(json_object_get(j, "accepts"))) {
        *ret_why = "PAYMENT-REQUIRED is not an x402 version 2 challenge";
        return NULL;
    }
    return MOVE(j);
}

/* What this agent can sign. The domain's name and version come from the offer: a false one makes a signature that the
 * token refuses, not a payment. */
static bool offer_read(json_t *j, struct offer *ret)
{
    const json_t *extra = json_object_get(j, "extra");
    const char *method = json_str(extra, "assetTransferMethod"), *scheme = json_str(j, "scheme");
    const struct slice asset = json_slice(j, "asset"), to = json_slice(j, "payTo"), amount = json_slice(j, "amount");
    struct offer o = { .accepted = j };
    o.token.name = json_str(extra, "name");
    o.token.version = json_str(extra, "version");
    o.token.symbol = o.token.name;
    o.max_timeout_s = json_integer_value(json_object_get(j, "maxTimeoutSeconds"));
    if (!scheme || strcmp(scheme, "exact") != 0 || (method && strcmp(method, "eip3009") != 0) || !o.token.name ||
        !o.token.version || o.max_timeout_s <= 0)
        return false;
    const char *network = json_str(j, "network");
    if (!network || !network_id_read(network, &o.token.chain_id) || !asset.p || !to.p || !amount.p ||
        !address_read(asset.p, asset.n, &o.token.address) || !address_read(to.p, to.n, &o.pay_to) ||
        !amount_read(amount.p, amount.n, &o.amount))
        return false;
    token_domain(&o.token);
    *ret = o;
    return true;
}

static bool wanted(const struct offer *o, const struct offer_filter *f)
{
    uint64_t chain_id;
    struct address asset;
    if (f->network && (!network_id_read(f->network, &chain_id) || chain_id != o->token.chain_id))
        return false;
    return !f->asset || (address_read(f->asset, strlen(f->asset), &asset) && address_eq(&asset, &o->token.address));
}

enum offer_rc offer_choose(const json_t *challenge, const struct offer_filter *f, struct offer *ret)
{
    const json_t *accepts = json_object_get(challenge, "accepts");
    enum offer_rc rc = OFFER_NONE;
    for (size_t i = 0; i < json_array_size(accepts); i++) {
        struct offer o;
        if (!offer_read(json_array_get(accepts, i), &o) || !wanted(&o, f))
            continue;
        if (amount_cmp(o.amount, f->max_call) > 0) {
            rc = OFFER_OVER_CAP;
            continue;
        }
        *ret = o;
        return OFFER_OK;
    }
    return rc;
}
