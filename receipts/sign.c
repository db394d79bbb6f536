#include "receipts/receipts.h"

#include <string.h>

#include "base/json.h"

static const char record_domain[] = "payonce receipt", record_type[] = "Record(string json)";
static const char x402_domain[] = "x402 receipt";
static const char x402_type[] =
    "Receipt(uint256 version,string network,string resourceUrl,string payer,uint256 issuedAt,string transaction)";

static char *signature_hex(const struct key *signer, const struct hash32 *digest)
{
    struct signature s;
    uint8_t bytes[65];
    BUF b = { 0 };
    if (!key_sign(signer, digest, &s))
        abort();
    signature_write(&s, bytes);
    buf_hex(&b, bytes, sizeof bytes);
    return str_copy(b.p);
}

/* Sorted keys, no white space: RFC 8785, for documents of strings, small integers and booleans. */
static struct hash32 record_digest(const json_t *document)
{
    JSON *copy = json_copy((json_t *)(uintptr_t)document) /* it only reads */;
    json_object_del(copy, "signature");
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    const struct hash32 word = typed_text(slice_of(text));
    free(text);
    return typed_digest(record_domain, record_type, &word, 1);
}

void record_sign(json_t *document, const struct key *signer)
{
    if (!signer)
        return;
    json_object_del(document, "signature");
    const struct hash32 digest = record_digest(document);
    OWNED char *hex = signature_hex(signer, &digest);
    json_object_set_new(document, "signature",
                        json_pack("{s:s, s:{s:s, s:s, s:i}, s:s, s:s, s:s}", "format", "eip712", "domain", "name",
                                  record_domain, "version", "1", "chainId", 1, "type", record_type, "signer",
                                  address_checksum(&signer->address).s, "value", hex));
}

static struct hash32 x402_digest(const json_t *payload)
{
    const struct hash32 words[] = {
        typed_u64((uint64_t)json_integer_value(json_object_get(payload, "version"))),
        typed_text(json_slice(payload, "network")),
        typed_text(json_slice(payload, "resourceUrl")),
        typed_text(json_slice(payload, "payer")),
        typed_u64((uint64_t)json_integer_value(json_object_get(payload, "issuedAt"))),
        typed_text(json_slice(payload, "transaction")),
    };
    return typed_digest(x402_domain, x402_type, words, COUNT(words));
}

json_t *x402_receipt(const struct key *signer, const char *network, const char *url, const char *payer,
                     int64_t issued_at, const char *transaction)
{
    json_t *payload = json_pack("{s:i, s:s, s:s, s:s, s:I, s:s}", "version", 1, "network", network, "resourceUrl", url,
                                "payer", payer, "issuedAt", (json_int_t)issued_at, "transaction", transaction);
    const struct hash32 digest = x402_digest(payload);
    OWNED char *hex = signature_hex(signer, &digest);
    return json_pack("{s:s, s:o, s:s}", "format", "eip712", "payload", payload, "signature", hex);
}

static const char offer_domain[] = "x402 offer";
static const char offer_type[] = "Offer(uint256 version,string resourceUrl,string scheme,string network,string asset,"
                                 "string payTo,string amount,uint256 validUntil)";

json_t *x402_offer(const struct key *signer, size_t accept_index, const struct x402_offer_terms *t)
{
    const struct hash32 words[] = {
        typed_u64(1),
        typed_text(slice_of(t->url)),
        typed_text(SLICE("exact")),
        typed_text(slice_of(t->network)),
        typed_text(slice_of(t->asset)),
        typed_text(slice_of(t->pay_to)),
        typed_text(slice_of(t->amount)),
        typed_u64((uint64_t)t->valid_until),
    };
    const struct hash32 digest = typed_digest(offer_domain, offer_type, words, COUNT(words));
    OWNED char *hex = signature_hex(signer, &digest);
    return json_pack("{s:s, s:i, s:{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:I}, s:s}", "format", "eip712", "acceptIndex",
                     (int)accept_index, "payload", "version", 1, "resourceUrl", t->url, "scheme", "exact", "network",
                     t->network, "asset", t->asset, "payTo", t->pay_to, "amount", t->amount, "validUntil",
                     (json_int_t)t->valid_until, "signature", hex);
}

/* JSON Schemas, as the extension's specification has them. */
#define SCHEMA(key, value)                                                                                             \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","                               \
    "\"properties\":{\"" key "\":" value "},\"required\":[\"" key "\"]}"
#define TEXT "{\"type\":\"string\"}"
#define NUMBER "{\"type\":\"integer\"}"
static const char offers_schema[] = SCHEMA(
    "offers",
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"format\":" TEXT ",\"acceptIndex\":" NUMBER
    ",\"payload\":{\"type\":\"object\",\"properties\":{\"version\":" NUMBER ",\"resourceUrl\":" TEXT ",\"scheme\":" TEXT
    ",\"network\":" TEXT ",\"asset\":" TEXT ",\"payTo\":" TEXT ",\"amount\":" TEXT ",\"validUntil\":" NUMBER
    "},\"required\":[\"version\",\"resourceUrl\",\"scheme\",\"network\",\"asset\",\"payTo\",\"amount\"]},"
    "\"signature\":" TEXT "},\"required\":[\"format\",\"signature\"]}}");
static const char receipt_schema[] =
    SCHEMA("receipt", "{\"type\":\"object\",\"properties\":{\"format\":" TEXT
                      ",\"payload\":{\"type\":\"object\",\"properties\":{\"version\":" NUMBER ",\"network\":" TEXT
                      ",\"resourceUrl\":" TEXT ",\"payer\":" TEXT ",\"issuedAt\":" NUMBER ",\"transaction\":" TEXT
                      "},\"required\":[\"version\",\"network\",\"resourceUrl\",\"payer\",\"issuedAt\"]},"
                      "\"signature\":" TEXT "},\"required\":[\"format\",\"signature\"]}");

json_t *x402_offer_receipt(const char *key, json_t *what)
{
    struct json_why why;
    const char *schema = strcmp(key, "offers") == 0 ? offers_schema : receipt_schema;
    return json_pack("{s:{s:o}, s:o}", "info", key, what, "schema", json_read(schema, strlen(schema), &why));
}

/* ---- verifying ---- */

static bool signer_of(const json_t *signature, const struct hash32 *digest, struct address *ret)
{
    const char *hex = json_string_value(signature);
    uint8_t bytes[65];
    struct signature s;
    return hex && hex_read(hex, strlen(hex), bytes, sizeof bytes) && signature_read(bytes, sizeof bytes, &s) &&
           signature_recover(&s, digest, ret);
}

enum receipt_check receipt_check(const json_t *document, struct address *ret_signer)
{
    const json_t *signature = json_object_get(document, "signature"), *x402 = json_object_get(document, "x402_receipt");
    struct address signer, claimed, other;
    const struct hash32 digest = record_digest(document);
    const char *claim = json_str(signature, "signer");
    if (!signature)
        return RECEIPT_UNSIGNED;
    if (!claim || !address_read(claim, strlen(claim), &claimed) ||
        !signer_of(json_object_get(signature, "value"), &digest, &signer) || !address_eq(&claimed, &signer))
        return RECEIPT_CHANGED;
    if (x402) {
        const struct hash32 inner = x402_digest(json_object_get(x402, "payload"));
        if (!signer_of(json_object_get(x402, "signature"), &inner, &other) || !address_eq(&other, &signer))
            return RECEIPT_CHANGED;
    }
    *ret_signer = signer;
    return RECEIPT_OK;
}
