/* What goes out: the 402 for both versions at once, and the settlement's header. */
#include "sale.h"

#include <string.h>

#include "base/clock.h"

static const char about[] = "L\xc3\xa4nder: \xf0\x9f\x8c\x8d \"all\" \\ <b>";

static json_t *decoded(const struct buf *b)
{
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    assert_true(base64_read(b->p, b->n, &text, &n));
    assert_int_equal(b->n % 4, 0); /* padded */
    for (size_t i = 0; i < n; i++)
        assert_in_range(text[i], 0x20, 0x7e); /* for peers whose base64 works on Latin-1 */
    json_t *j = json_read((const char *)text, n, &why);
    if (!j)
        fail_msg("%s", why.text);
    return j;
}

static json_t *object_of(const struct buf *members)
{
    OWNED char *text = str_format("{%s}", members->p);
    struct json_why why;
    for (const char *c = text; *c; c++)
        assert_in_range(*c, 0x20, 0x7e);
    json_t *j = json_read(text, strlen(text), &why);
    if (!j)
        fail_msg("%s", why.text);
    return j;
}

static void has_keys(const json_t *o, const char *const *keys, size_t n)
{
    assert_int_equal(json_object_size(o), n);
    for (size_t i = 0; i < n; i++)
        if (!json_object_get(o, keys[i]))
            fail_msg("no %s", keys[i]);
}
#define HAS_KEYS(o, ...)                                                                                               \
    has_keys(o, (const char *const[]){ __VA_ARGS__ }, COUNT(((const char *const[]){ __VA_ARGS__ })))

static void text_is(const json_t *o, const char *key, const char *text)
{
    assert_non_null(json_str(o, key));
    assert_string_equal(json_str(o, key), text);
}

static const struct key *signer; /* of offers; NULL: none */

static void write_for(const struct terms *t, const char *description, const char *target, enum reason why,
                      json_t **ret_v2, json_t **ret_v1)
{
    struct challenge *c =
        challenge_new(t, "https://api.example.com", description, description ? "application/json" : NULL, signer);
    const struct challenge_for f = { &quote_key, quote_fresh(), &request, slice_of(target), now + 60, why };
    BUF header = { 0 }, v1 = { 0 };
    challenge_write(c, &f, &header, &v1);
    challenge_free(c);
    *ret_v2 = decoded(&header);
    *ret_v1 = v1.n ? object_of(&v1) : NULL;
}

static void is_v2_offer(const json_t *o, size_t i)
{
    HAS_KEYS(o, "scheme", "network", "amount", "asset", "payTo", "maxTimeoutSeconds", "extra");
    text_is(o, "scheme", "exact");
    text_is(o, "network", prices[i].net->id);
    text_is(o, "amount", "10000");
    text_is(o, "asset", address_checksum(&prices[i].token->address).s);
    text_is(o, "payTo", "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
    assert_int_equal(json_integer_value(json_object_get(o, "maxTimeoutSeconds")), 60);
    const json_t *extra = json_object_get(o, "extra");
    struct quote_id id;
    HAS_KEYS(extra, "name", "version", "quote");
    text_is(extra, "name", prices[i].token->name);
    text_is(extra, "version", prices[i].token->version);
    assert_int_equal(quote_read(&quote_key, json_slice(extra, "quote"), "countries", &request, &prices[i], now, &id),
                     QUOTE_OK);
    for (size_t k = 0; k < PRICE_COUNT; k++) /* each offer's quote is for that offer */
        if (k != i &&
            (prices[k].net != prices[i].net || !address_eq(&prices[k].token->address, &prices[i].token->address)))
            assert_int_equal(
                quote_read(&quote_key, json_slice(extra, "quote"), "countries", &request, &prices[k], now, &id),
                QUOTE_OTHER);
}

static void test_v2(void **state)
{
    (void)state;
    JSON *v2 = NULL, *v1 = NULL;
    write_for(&terms, about, "/countries?q=%22a%22", REASON_REQUIRED, &v2, &v1);
    HAS_KEYS(v2, "x402Version", "error", "resource", "accepts", "extensions");
    assert_true(json_is_integer(json_object_get(v2, "x402Version")));
    assert_int_equal(json_integer_value(json_object_get(v2, "x402Version")), 2);
    text_is(v2, "error", "Payment required");
    const json_t *resource = json_object_get(v2, "resource"), *accepts = json_object_get(v2, "accepts");
    HAS_KEYS(resource, "url", "description", "mimeType");
    text_is(resource, "url", "https://api.example.com/countries?q=%22a%22");
    text_is(resource, "description", about);
    text_is(resource, "mimeType", "application/json");
    assert_int_equal(json_array_size(accepts), PRICE_COUNT);
    for (size_t i = 0; i < PRICE_COUNT; i++)
        is_v2_offer(json_array_get(accepts, i), i);
    JSON *declared = json_loads(
        "{\"payment-identifier\":{\"info\":{\"required\":false},\"schema\":{\"$schema\":\"https://json-schema.org/"
        "draft/2020-12/schema\",\"type\":\"object\",\"properties\":{\"required\":{\"type\":\"boolean\"},\"id\":"
        "{\"type\":\"string\",\"minLength\":16,\"maxLength\":128,\"pattern\":\"^[a-zA-Z0-9_-]+$\"}},\"required\":"
        "[\"required\"]}}}",
        0, NULL);
    assert_true(json_equal(declared, json_object_get(v2, "extensions")));
}

/* x402-fetch throws the whole 402 away when one entry is off. */
static void is_v1_offer(const json_t *o, size_t i)
{
    HAS_KEYS(o, "scheme", "network", "maxAmountRequired", "resource", "description", "mimeType", "payTo",
             "maxTimeoutSeconds", "asset", "extra");
    text_is(o, "scheme", "exact");
    text_is(o, "network", prices[i].net->v1_name);
    text_is(o, "maxAmountRequired", "10000");
    text_is(o, "resource", "https://api.example.com/countries");
    text_is(o, "description", about);
    text_is(o, "mimeType", "application/json");
    text_is(o, "payTo", "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
    text_is(o, "asset", address_checksum(&prices[i].token->address).s);
    assert_true(json_is_integer(json_object_get(o, "maxTimeoutSeconds")));
    HAS_KEYS(json_object_get(o, "extra"), "name", "version");
    text_is(json_object_get(o, "extra"), "name", prices[i].token->name);
}

static void test_v1(void **state)
{
    (void)state;
    JSON *v2 = NULL, *v1 = NULL;
    write_for(&terms, about, "/countries", REASON_REQUIRED, &v2, &v1);
    HAS_KEYS(v1, "x402Version", "error", "accepts");
    assert_int_equal(json_integer_value(json_object_get(v1, "x402Version")), 1);
    text_is(v1, "error", "X-PAYMENT header is required");
    const json_t *accepts = json_object_get(v1, "accepts");
    assert_int_equal(json_array_size(accepts), 3); /* the network without a v1 name is left out */
    is_v1_offer(json_array_get(accepts, 0), PRICE_SEPOLIA);
    is_v1_offer(json_array_get(accepts, 1), PRICE_BASE);
    is_v1_offer(json_array_get(accepts, 2), PRICE_UTF8);
}

static void test_no_v1_name(void **state)
{
    (void)state;
    const struct terms local = {
        .tool = "countries", .prices = &prices[PRICE_LOCAL], .price_count = 1, .max_timeout_s = 60
    };
    JSON *v2 = NULL, *v1 = NULL;
    write_for(&local, NULL, "/", REASON_REQUIRED, &v2, &v1);
    assert_null(v1);
    text_is(json_object_get(v2, "resource"), "description", ""); /* absent ones are empty, never null */
    text_is(json_object_get(v2, "resource"), "mimeType", "");
}

static void test_reason(void **state)
{
    (void)state;
    JSON *v2 = NULL, *v1 = NULL;
    write_for(&terms, NULL, "/", REASON_BALANCE, &v2, &v1);
    text_is(v2, "error", "invalid_exact_evm_insufficient_balance");
    text_is(v1, "error", "insufficient_funds");
    text_is(json_array_get(json_object_get(v1, "accepts"), 0), "description", "");
}

/* Whatever the server lets through in a target stays a string's content. */
static void test_target(void **state)
{
    (void)state;
    static const char target[] = "/a\"b\\c\",\"x\":\"\\\\u0001Q!~{}<>&'?\\u0001E";
    JSON *v2 = NULL, *v1 = NULL;
    write_for(&terms, NULL, target, REASON_REQUIRED, &v2, &v1);
    OWNED char *url = str_format("https://api.example.com%s", target);
    text_is(json_object_get(v2, "resource"), "url", url);
    text_is(json_array_get(json_object_get(v1, "accepts"), 0), "resource", url);
}

/* A description may hold anything, also what looks like the challenge's own marks. */
static void test_description(void **state)
{
    (void)state;
    static const char *const texts[] = { "a backslash at the end \\", "\\u0000", "\\u0001U and \\u0001E", "\t\r\n" };
    for (size_t i = 0; i < COUNT(texts); i++) {
        JSON *v2 = NULL, *v1 = NULL;
        write_for(&terms, texts[i], "/", REASON_REQUIRED, &v2, &v1);
        text_is(json_object_get(v2, "resource"), "description", texts[i]);
        text_is(json_array_get(json_object_get(v1, "accepts"), 0), "description", texts[i]);
    }
}

static void test_fresh_quotes(void **state)
{
    (void)state;
    JSON *a = NULL, *b = NULL, *v1a = NULL, *v1b = NULL;
    write_for(&terms, NULL, "/", REASON_REQUIRED, &a, &v1a);
    write_for(&terms, NULL, "/", REASON_REQUIRED, &b, &v1b);
    assert_false(json_equal(a, b));
    assert_true(json_equal(v1a, v1b)); /* v1 has no place for a quote */
}

/* A challenge comes back as a payment: what was offered is accepted. */
static void test_echo(void **state)
{
    (void)state;
    JSON *v2 = NULL, *v1 = NULL;
    write_for(&terms, about, "/countries", REASON_REQUIRED, &v2, &v1);
    OWNED char *text = payment_text("v2-exact-eip3009-84532");
    JSON *pay = json_loads(text, 0, NULL);
    json_object_set(pay, "accepted", json_array_get(json_object_get(v2, "accepts"), PRICE_SEPOLIA));
    json_object_set(pay, "extensions", json_object_get(v2, "extensions"));
    json_object_set(pay, "resource", json_object_get(v2, "resource"));
    OWNED char *whole = json_write(pay);
    assert_int_equal(read_text(whole, 2), ERR_NONE);
    assert_true(payment.has_quote && payment.signer_proven);
}

/* ---- the settlement ---- */

static void test_responses(void **state)
{
    (void)state;
    static const char *const tx_text = "0x4242424242424242424242424242424242424242424242424242424242424242";
    static const struct {
        int version, net;
        bool paid;
        const char *error, *json;
    } table[] = {
        { 2, NET_SEPOLIA, true, NULL,
          "{\"success\":true,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"transaction\":\"TX\","
          "\"network\":\"eip155:84532\"}" },
        { 1, NET_SEPOLIA, true, NULL,
          "{\"success\":true,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"transaction\":\"TX\","
          "\"network\":\"base-sepolia\"}" },
        { 1, NET_LOCAL, true, NULL,
          "{\"success\":true,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"transaction\":\"TX\","
          "\"network\":\"eip155:31337\"}" },
        { 2, NET_BASE, false, "quote_expired",
          "{\"success\":false,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"transaction\":"
          "\"\",\"network\":\"eip155:8453\",\"errorReason\":\"quote_expired\"}" },
        { 1, NET_BASE, false, "insufficient_funds",
          "{\"success\":false,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\","
          "\"transaction\":\"\",\"network\":\"base\",\"errorReason\":\"insufficient_funds\"}" },
        { 2, NET_LOCAL, false, "quote_expired",
          "{\"success\":false,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"transaction\":"
          "\"\",\"network\":\"eip155:31337\",\"errorReason\":\"quote_expired\"}" },
        { 1, NET_LOCAL, true, "settlement_pending",
          "{\"success\":false,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"transaction\":"
          "\"TX\",\"network\":\"eip155:31337\",\"errorReason\":\"settlement_pending\"}" },
        { 2, NET_BASE, true, "settlement_pending",
          "{\"success\":false,\"payer\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\","
          "\"transaction\":\"TX\",\"network\":\"eip155:8453\",\"errorReason\":\"settlement_pending\"}" },
    };
    struct hash32 tx;
    assert_true(hash_read(tx_text, 66, &tx));
    for (size_t i = 0; i < COUNT(table); i++) {
        BUF b = { 0 };
        x402_response(table[i].version, &nets[table[i].net], &prices[0].pay_to, table[i].paid ? &tx : NULL,
                      table[i].error, NULL, NULL, &b);
        JSON *got = decoded(&b);
        OWNED char *expected = table[i].paid ? replaced(table[i].json, "TX", tx_text) : str_copy(table[i].json);
        JSON *want = json_loads(expected, 0, NULL);
        if (!json_equal(got, want))
            fail_msg("row %zu", i);
    }
}

static void test_response_extra(void **state)
{
    (void)state;
    BUF b = { 0 };
    x402_response(2, &nets[0], &prices[0].pay_to, NULL, NULL, json_pack("{s:s}", "order_id", "ord_\xc3\xa4"), NULL, &b);
    JSON *got = decoded(&b);
    text_is(json_object_get(got, "extra"), "order_id", "ord_\xc3\xa4");
    assert_true(json_is_false(json_object_get(got, "success")));
}

/* x402's offer-receipt: one signed offer an accept, over what is offered there; the same for a while. */
static void test_signed_offers(void **state)
{
    (void)state;
    struct key k;
    uint8_t secret[32] = { 7 };
    JSON *v2 = NULL, *v1 = NULL, *again = NULL, *v1_again = NULL;
    assert_true(key_from_secret(secret, &k));
    signer = &k;
    write_for(&terms, about, "/a?b=\"\\", REASON_REQUIRED, &v2, &v1);
    write_for(&terms, about, "/a?b=\"\\", REASON_REQUIRED, &again, &v1_again);
    signer = NULL;
    const json_t *extension = json_object_get(json_object_get(v2, "extensions"), "offer-receipt");
    const json_t *offers = json_object_get(json_object_get(extension, "info"), "offers");
    HAS_KEYS(extension, "info", "schema");
    assert_int_equal(json_array_size(offers), json_array_size(json_object_get(v2, "accepts")));
    assert_true(json_array_size(offers) > 1);
    for (size_t i = 0; i < json_array_size(offers); i++) {
        const json_t *o = json_array_get(offers, i), *p = json_object_get(o, "payload");
        const json_t *accept = json_array_get(json_object_get(v2, "accepts"), i);
        HAS_KEYS(o, "format", "acceptIndex", "payload", "signature");
        assert_int_equal(json_integer_value(json_object_get(o, "acceptIndex")), i);
        text_is(p, "resourceUrl", json_str(json_object_get(v2, "resource"), "url"));
        for (const char *const *key = (const char *const[]){ "scheme", "network", "asset", "payTo", "amount", NULL }; *key; key++)
            text_is(p, *key, json_str(accept, *key));
        assert_true(json_integer_value(json_object_get(p, "validUntil")) >= clock_wall_s() + (int64_t)terms.max_timeout_s - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v2),           cmocka_unit_test(test_v1),
        cmocka_unit_test(test_no_v1_name),   cmocka_unit_test(test_reason),
        cmocka_unit_test(test_target),       cmocka_unit_test(test_description),
        cmocka_unit_test(test_fresh_quotes), cmocka_unit_test(test_echo),
        cmocka_unit_test(test_responses),    cmocka_unit_test(test_response_extra), cmocka_unit_test(test_signed_offers),
    };
    return cmocka_run_group_tests(tests, sale_start, sale_stop);
}
