/* What is written and not offered: the agent's credential, and the receipt that answers it. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "settle/mpp_credential.h"

static void set_text(json_t *o, const char *key, struct slice s)
{
    if (s.p)
        json_object_set_new(o, key, json_of_slice(s));
}

static void add_json(struct buf *ret, const json_t *j)
{
    OWNED char *text = json_write(j);
    base64url_add(ret, text, strlen(text));
}

static json_t *payload_of(const struct hash32 *hash, struct slice raw)
{
    if (hash)
        return json_pack("{s:s, s:s}", "type", "hash", "hash", hash_text(hash).s);
    BUF hex = { 0 };
    buf_hex(&hex, raw.p, raw.n);
    return json_pack("{s:s, s:s}", "type", "transaction", "signature", hex.p);
}

json_t *mpp_challenge_json(const struct mpp_challenge *c)
{
    json_t *j = json_object();
    set_text(j, "id", c->id);
    set_text(j, "realm", c->realm);
    set_text(j, "method", c->method);
    set_text(j, "intent", c->intent);
    set_text(j, "request", c->request);
    set_text(j, "expires", c->expires);
    set_text(j, "digest", c->digest);
    set_text(j, "opaque", c->opaque);
    set_text(j, "description", c->description);
    return j;
}

void mpp_credential_write(const struct mpp_challenge *c, uint64_t chain_id, const struct address *source,
                          const struct hash32 *hash, struct slice raw, struct buf *ret)
{
    OWNED char *who = str_format("did:pkh:eip155:%llu:%s", (unsigned long long)chain_id, address_checksum(source).s);
    JSON *root = json_pack("{s:o, s:o, s:s}", "challenge", mpp_challenge_json(c), "payload", payload_of(hash, raw), "source", who);
    buf_puts(ret, "Payment ");
    add_json(ret, root);
}

/* ---- the receipt ---- */

void mpp_receipt_write(const struct hash32 *tx, int64_t paid_at, struct slice external_id, struct buf *ret)
{
    JSON *o = json_pack("{s:s, s:s, s:s, s:s}", "method", MPP_METHOD, "status", "success", "timestamp",
                        time_iso(paid_at).s, "reference", hash_text(tx).s);
    if (external_id.n > 0)
        json_object_set_new(o, "externalId", json_of_slice(external_id));
    add_json(ret, o);
}

bool mpp_receipt_read(struct slice header, struct hash32 *ret_tx)
{
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    if (!base64url_read_any(header.p, header.n, &text, &n))
        return false;
    JSON *o = json_read((const char *)text, n, &why);
    const struct slice tx = json_slice(o, "reference");
    return slice_is(json_slice(o, "method"), MPP_METHOD) && slice_is(json_slice(o, "status"), "success") && tx.p &&
           hash_read(tx.p, tx.n, ret_tx);
}
