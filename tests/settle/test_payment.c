/* A payment header, read: the official packages' own payments are taken, and each way to spoil one has its own answer.
 */
#include "sale.h"

#include <string.h>

#define V2_ID "v2-exact-eip3009-84532-payment-identifier"

static int version_of(const char *vector)
{
    return vector[1] - '0';
}

/* ---- good ones ---- */

static void is_good(const char *text, int version, const struct price *price)
{
    struct address payer;
    assert_int_equal(read_text(text, version), ERR_NONE);
    assert_int_equal(reason, REASON_NONE);
    assert_null(detail);
    assert_true(payment.signer_proven);
    assert_true(address_read("0x70997970c51812dc3a010c7d01b50e0d17dc79c8", 42, &payer));
    assert_true(address_eq(&payment.auth.from, &payer));
    assert_true(address_eq(&payment.auth.to, &price->pay_to));
    assert_string_equal(amount_text(payment.auth.value).s, "10000");
    assert_string_equal(amount_text(payment.auth.valid_before).s, "1800000060");
    assert_int_equal(payment.auth.signature_n, 65);
    assert_ptr_equal(payment.price.net, price->net);
    assert_ptr_equal(payment.price.token, price->token);
    assert_string_equal(amount_text(payment.price.amount).s, "10000");
}

static void test_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *vector;
        int price;
    } good[] = {
        { V2, PRICE_SEPOLIA },
        { V2_ID, PRICE_SEPOLIA },
        { "v2-exact-eip3009-31337", PRICE_LOCAL },
        { "v2-exact-eip3009-8453-usd-coin", PRICE_BASE },
        { "v2-exact-eip3009-84532-utf8-name", PRICE_UTF8 },
        { V1, PRICE_SEPOLIA },
        { "v1-exact-8453", PRICE_BASE },
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        OWNED char *text = payment_text(good[i].vector);
        const int version = version_of(good[i].vector);
        is_good(text, version, &prices[good[i].price]);
        assert_int_equal(payment.version, version);
        assert_true(payment.has_quote == (version == 2));
        assert_string_equal(payment.payment_id,
                            strcmp(good[i].vector, V2_ID) == 0 ? "pay_7d5d747be160e280504c099d984bcfe0" : "");
    }
}

/* Other spellings of the same payment. */
static void test_same(void **state)
{
    (void)state;
    static const struct {
        const char *vector, *find, *put;
    } same[] = {
        { V2, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x70997970C51812DC3A010C7D01B50E0D17DC79C8" },
        { V2, "0x6f847690e8fb", "0x6F847690E8FB" },
        { V2, "\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\"",
          "\"asset\":\"0x036cbd53842c5426634e7929541ec2318f3dcf7e\"" },
        { V2, "\"payTo\":\"0x3C44", "\"payTo\":\"0x3c44" },
        { V2, "\"maxTimeoutSeconds\":60", "\"maxTimeoutSeconds\":60.0" },
        { V2, "ee1b\"", "ee00\"" },
        { V1, "0e1c\"", "0e01\"" },
        {
            V2,
            "\"extra\":{",
            "\"extra\":{\"more\":[1],",
        },
        { V2, "{\"x402Version\":2", "{\"more\":{},\"x402Version\":2" },
        { V2, "{\"authorization\":{", "{\"authorization\":{\"more\":1," },
        { V2, "\"resource\":{", "\"extensions\":null,\"resource\":{" },
        { V2, "\"resource\":{", "\"extensions\":{},\"resource\":{" },
        { V2, "\"resource\":{", "\"extensions\":{\"other\":{\"info\":1}},\"resource\":{" },
        { V2, "https://api.example.com/premium-data", "https://elsewhere.example/" },
        { V1, "{\"x402Version\":1", "{\"more\":1,\"x402Version\":1" },
    };
    for (size_t i = 0; i < COUNT(same); i++) {
        OWNED char *text = payment_text(same[i].vector), *other = replaced(text, same[i].find, same[i].put);
        is_good(other, version_of(same[i].vector), &prices[PRICE_SEPOLIA]);
        assert_true(payment.auth.signature[64] == 27 || payment.auth.signature[64] == 28); /* as the token wants it */
    }
}

static void test_version_of_header(void **state)
{
    (void)state;
    OWNED char *v2 = payment_text(V2), *v1 = payment_text(V1);
    is_good(v2, 1, &prices[PRICE_SEPOLIA]); /* what is inside decides */
    assert_int_equal(payment.version, 2);
    assert_int_equal(read_text(v1, 2), ERR_PAYMENT_REFUSED);
    assert_int_equal(reason, REASON_VERSION);
}

/* ---- fields ---- */

#define FROM "payload.authorization.from must be 0x and 40 hex digits"
#define VALUE "payload.authorization.value must be a decimal string below 2^256"
#define AFTER "payload.authorization.validAfter must be a decimal string"
#define BEFORE "payload.authorization.validBefore must be a decimal string"
#define NONCE "payload.authorization.nonce must be 0x and 64 hex digits"
#define SIGNATURE "payload.signature must be 0x and an even number of hex digits"
#define OBJECT "payload.authorization must be an object"
#define NUMBER "x402Version must be a number"
#define OFFERS "accepted must be one of the offers"
#define TWO_256 "115792089237316195423570985008687907853269984665640564039457584007913129639936"
#define NONCE_30 "0x424242424242424242424242424242424242424242424242424242424242"

struct spoilt {
    const char *vector, *find, *put, *detail;
};
static const struct spoilt malformed[] = {
    { V2, "\"value\":\"10000\"", "\"value\":\"1e3\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"-1\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"+1\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\" 1\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"1 \"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"0x3e8\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"01\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"1.0\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":10000", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":null", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":[\"10000\"]", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"" TWO_256 "\"", VALUE },
    { V2, "\"value\":\"10000\"", "\"value\":\"1" TWO_256 "\"", VALUE },
    { V2, "\"value\":\"10000\",", "", VALUE },
    { V1, "\"value\":\"10000\"", "\"value\":\"1e3\"", VALUE },
    { V2, "\"validAfter\":\"0\"", "\"validAfter\":0", AFTER },
    { V2, "\"validAfter\":\"0\"", "\"validAfter\":\"00\"", AFTER },
    { V2, "\"validBefore\":\"1800000060\"", "\"validBefore\":1800000060", BEFORE },
    { V2, "\"validBefore\":\"1800000060\"", "\"validBefore\":\"" TWO_256 "\"", BEFORE },
    { V2, NONCE_30 "4242\"", NONCE_30 "42\"", NONCE },
    { V2, NONCE_30 "4242\"", NONCE_30 "424242\"", NONCE },
    { V2, NONCE_30 "4242\"", NONCE_30 "424\"", NONCE },
    { V2, NONCE_30 "4242\"", NONCE_30 "42xy\"", NONCE },
    { V2, "\"nonce\":\"0x42", "\"nonce\":\"0X42", NONCE },
    { V2, "\"nonce\":\"0x42", "\"nonce\":\"42", NONCE },
    { V2, "\"from\":\"0x70997970C51812dc3A010C7d01b50e0d17dc79C8\"",
      "\"from\":\"0x70997970C51812dc3A010C7d01b50e0d17dc79\"", FROM },
    { V2, "\"from\":\"0x70997970C5", "\"from\":\"0x70997970C500", FROM },
    { V2, "\"from\":", "\"From\":", FROM },
    { V2, "\"to\":\"0x3C44", "\"to\":\"3C44", "payload.authorization.to must be 0x and 40 hex digits" },
    { V2, "\"signature\":\"0x6f", "\"signature\":\"6f", SIGNATURE },
    { V2, "\"signature\":\"0x6f", "\"signature\":\"0xf", SIGNATURE },
    { V2, "\"signature\":\"0x6f", "\"signature\":\"0x6g", SIGNATURE },
    { V2, "\"signature\":\"0x6f", "\"signature\":[], \"s\":\"0x6f", SIGNATURE },
    { V2, "\"authorization\":{", "\"permit2\":{", OBJECT },
    { V2, "\"authorization\":{", "\"authorization\":\"x\",\"a\":{", OBJECT },
    { V2, "\"payload\":{", "\"payload\":[],\"p\":{", OBJECT },
    { V2, "\"payload\":{", "\"p\":{", OBJECT },
    { V2, "\"x402Version\":2", "\"x402Version\":\"2\"", NUMBER },
    { V2, "\"x402Version\":2", "\"x402Version\":null", NUMBER },
    { V2, "\"x402Version\":2", "\"x402Version\":true", NUMBER },
    { V2, "\"x402Version\":2,", "", NUMBER },
    { V2, "\"accepted\":{", "\"accepted\":[],\"a\":{", OFFERS },
    { V2, "\"accepted\":{", "\"a\":{", OFFERS },
    { V2, "\"scheme\":\"exact\"", "\"scheme\":1", OFFERS },
    { V2, "\"network\":\"eip155:84532\"", "\"network\":84532", OFFERS },
    { V2, "\"amount\":\"10000\"", "\"amount\":10000", "accepted.amount must be a decimal string below 2^256" },
    { V2, "\"amount\":\"10000\"", "\"amount\":\"1e4\"", "accepted.amount must be a decimal string below 2^256" },
    { V1, "\"scheme\":\"exact\",", "", "scheme and network must be strings" },
    { V1, "\"network\":\"base-sepolia\"", "\"network\":null", "scheme and network must be strings" },
    { V2, "\"resource\":{", "\"extensions\":[],\"resource\":{", "extensions must be an object" },
};

static void test_malformed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(malformed); i++) {
        const struct spoilt *m = &malformed[i];
        OWNED char *good = payment_text(m->vector), *bad = replaced(good, m->find, m->put);
        const enum err e = read_text(bad, version_of(m->vector));
        if (e != ERR_PAYMENT_FIELD || !detail || strcmp(detail, m->detail) != 0)
            fail_msg("%s: err %d, detail %s", m->put, (int)e, detail ? detail : "none");
        assert_int_equal(reason, REASON_NONE);
    }
}

/* ---- well-formed, and not on our terms ---- */

static const struct {
    const char *vector, *find, *put;
    enum reason reason;
} refused[] = {
    { V2, "\"x402Version\":2", "\"x402Version\":3", REASON_VERSION },
    { V2, "\"x402Version\":2", "\"x402Version\":0", REASON_VERSION },
    { V2, "\"x402Version\":2", "\"x402Version\":-1", REASON_VERSION },
    { V2, "\"x402Version\":2", "\"x402Version\":4294967298", REASON_VERSION },
    { V1, "\"x402Version\":1", "\"x402Version\":3", REASON_VERSION },
    { V2, "\"scheme\":\"exact\"", "\"scheme\":\"upto\"", REASON_SCHEME },
    { V2, "\"scheme\":\"exact\"", "\"scheme\":\"\"", REASON_SCHEME },
    { V1, "\"scheme\":\"exact\"", "\"scheme\":\"Exact\"", REASON_SCHEME },
    { V2, "\"network\":\"eip155:84532\"", "\"network\":\"eip155:1\"", REASON_NETWORK },
    { V2, "\"network\":\"eip155:84532\"", "\"network\":\"base-sepolia\"", REASON_NETWORK },
    { V2, "\"network\":\"eip155:84532\"", "\"network\":\"eip155:845320\"", REASON_NETWORK },
    { V1, "\"network\":\"base-sepolia\"", "\"network\":\"avalanche\"", REASON_NETWORK },
    { V1, "\"network\":\"base-sepolia\"", "\"network\":\"eip155:84532\"", REASON_NETWORK },
    { V2, "\"accepted\":{", "\"accepted\":{\"more\":1,", REASON_REQUIREMENTS },
    { V2, "\"maxTimeoutSeconds\":60,", "", REASON_REQUIREMENTS },
    { V2, "\"maxTimeoutSeconds\":60", "\"maxTimeoutSeconds\":61", REASON_REQUIREMENTS },
    { V2, "\"maxTimeoutSeconds\":60", "\"maxTimeoutSeconds\":60.5", REASON_REQUIREMENTS },
    { V2, "\"maxTimeoutSeconds\":60", "\"maxTimeoutSeconds\":\"60\"", REASON_REQUIREMENTS },
    { V2, "\"amount\":\"10000\"", "\"amount\":\"9999\"", REASON_REQUIREMENTS },
    { V2, "\"amount\":\"10000\"", "\"amount\":\"10001\"", REASON_REQUIREMENTS },
    { V2, "\"asset\":\"0x036C", "\"asset\":\"0x136C", REASON_REQUIREMENTS },
    { V2, "\"asset\":\"0x036C", "\"asset\":\"036C", REASON_REQUIREMENTS },
    { V2, "\"payTo\":\"0x3C44", "\"payTo\":\"0x4C44", REASON_REQUIREMENTS },
    { V2, "\"name\":\"USDC\"", "\"name\":\"USD Coin\"", REASON_REQUIREMENTS },
    { V2, "\"version\":\"2\"", "\"version\":\"1\"", REASON_REQUIREMENTS },
    { V2, "\"version\":\"2\"", "\"version\":2", REASON_REQUIREMENTS },
    { V2, "\"quote\":", "\"other\":", REASON_REQUIREMENTS },
    { V2, "\"quote\":\"", "\"quote\":null,\"q\":\"", REASON_REQUIREMENTS },
    { V2, "\"quote\":\"", "\"quote\":\"A", REASON_QUOTE_OTHER },
    { V2, "\"quote\":\"qr", "\"quote\":\"rr", REASON_QUOTE_OTHER },
    { V2, "\"quote\":\"", "\"quote\":\"\",\"q\":\"", REASON_QUOTE_OTHER },
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        OWNED char *good = payment_text(refused[i].vector), *bad = replaced(good, refused[i].find, refused[i].put);
        const enum err e = read_text(bad, version_of(refused[i].vector));
        if (e != ERR_PAYMENT_REFUSED || reason != refused[i].reason)
            fail_msg("%s: err %d, reason %d", refused[i].put, (int)e, (int)reason);
    }
    OWNED char *no_v1_name = payment_text("v1-exact-31337");
    assert_int_equal(read_text(no_v1_name, 1), ERR_PAYMENT_REFUSED);
    assert_int_equal(reason, REASON_NETWORK);
}

/* ---- quotes within a payment ---- */

static char *with_quote(const struct price *price, int64_t expires)
{
    OWNED char *text = payment_text(V2);
    OWNED char *was = str_format("\"quote\":\"%s\"", quote_for(&prices[PRICE_SEPOLIA], now + 60).s);
    OWNED char *is = str_format("\"quote\":\"%s\"", quote_for(price, expires).s);
    return replaced(text, was, is);
}

static void test_quote_expired(void **state)
{
    (void)state;
    static const struct quote_id id = { { 0xaa, 0xbb } };
    OWNED char *text = with_quote(&prices[PRICE_SEPOLIA], now - 1);
    assert_int_equal(read_text(text, 2), ERR_PAYMENT_REFUSED);
    assert_int_equal(reason, REASON_QUOTE_EXPIRED);
    assert_true(payment.has_quote && payment.signer_proven); /* filled, so that a known one is found again */
    assert_memory_equal(&payment.quote, &id, sizeof id);
}

/* An older price counts under the MAC of its quote, and only with it. */
static void test_quote_fixes_price(void **state)
{
    (void)state;
    struct price old = prices[PRICE_SEPOLIA];
    old.amount = amount_of(9000);
    OWNED char *text = with_quote(&old, now + 60),
               *accepted = replaced(text, "\"amount\":\"10000\"", "\"amount\":\"9000\"");
    assert_int_equal(read_text(accepted, 2), ERR_NONE);
    assert_string_equal(amount_text(payment.price.amount).s, "9000");
    assert_int_equal(x402_check(&payment, &terms, now, 6), REASON_VALUE); /* what was signed is another amount */
    assert_int_equal(read_text(text, 2), ERR_PAYMENT_REFUSED);
    assert_int_equal(reason, REASON_QUOTE_OTHER);
    OWNED char *other = with_quote(&prices[PRICE_LOCAL], now + 60);
    assert_int_equal(read_text(other, 2), ERR_PAYMENT_REFUSED);
    assert_int_equal(reason, REASON_QUOTE_OTHER);
}

/* ---- signatures: what is no signature of the payer's key is for a contract's code to judge ---- */

static void is_unproven(const char *signature, size_t bytes)
{
    OWNED char *good = payment_text(V2), *bad = replaced(good, vector_signature(V2), signature);
    assert_int_equal(read_text(bad, 2), ERR_NONE);
    assert_int_equal(reason, REASON_NONE);
    assert_false(payment.signer_proven);
    assert_int_equal(payment.auth.signature_n, bytes);
    const struct auth_facts fine = { .known = true, .transfer_ok = true },
                            code = { .known = true, .has_code = true, .transfer_ok = true };
    assert_int_equal(x402_judge(&payment, &fine), REASON_SIGNATURE);
    assert_int_equal(x402_judge(&payment, &code), REASON_NONE);
}

static void test_signatures(void **state)
{
    (void)state;
    static const char *const v[] = { "02", "1a", "1d", "ff", "1c", "01" };
    const json_t *negative = json_object_get(vectors, "negative");
    const char *good = vector_signature(V2);
    for (size_t i = 0; i < COUNT(v); i++) {
        OWNED char *bad = str_format("%.130s%s", good, v[i]);
        is_unproven(bad, 65);
        uint8_t last;
        OWNED char *hex = str_format("0x%s", v[i]);
        assert_true(hex_read(hex, 4, &last, 1));
        assert_int_equal(payment.auth.signature[64], last); /* kept as it came */
    }
    OWNED char *longer = str_format("%s00", good), *none = str_copy("0x");
    is_unproven(longer, 66);
    is_unproven(none, 0);
    is_unproven(json_str(negative, "compact"), 64);
    is_unproven(json_str(negative, "highS"), 65);
    is_unproven(json_str(negative, "flipped"), 65);
    is_unproven(vector_signature("v2-exact-eip3009-31337"), 65);           /* another chain's */
    is_unproven(vector_signature("v2-exact-eip3009-84532-utf8-name"), 65); /* another token's */
    is_unproven(vector_signature(V1), 65);                                 /* another authorization's */
    BUF zero = { 0 };
    buf_puts(&zero, "0x");
    for (int i = 0; i < 65; i++)
        buf_puts(&zero, "00");
    is_unproven(zero.p, 65);
}

static void test_signature_size(void **state)
{
    (void)state;
    BUF b = { 0 };
    buf_puts(&b, "0x");
    for (size_t i = 0; i < sizeof payment.auth.signature; i++)
        buf_puts(&b, "11");
    is_unproven(b.p, sizeof payment.auth.signature);
    buf_puts(&b, "11");
    OWNED char *good = payment_text(V2), *bad = replaced(good, vector_signature(V2), b.p);
    assert_int_equal(read_text(bad, 2), ERR_PAYMENT_FIELD);
    assert_string_equal(detail, SIGNATURE);
}

/* Each signed field is signed. */
static void test_signed_fields(void **state)
{
    (void)state;
    static const struct {
        const char *find, *put;
    } other[] = {
        { "\"from\":\"0x7099", "\"from\":\"0x8099" },
        { "\"to\":\"0x3C44", "\"to\":\"0x4C44" },
        { "\"value\":\"10000\"", "\"value\":\"10001\"" },
        { "\"validAfter\":\"0\"", "\"validAfter\":\"1\"" },
        { "\"validBefore\":\"1800000060\"", "\"validBefore\":\"1800000061\"" },
        { "\"nonce\":\"0x42", "\"nonce\":\"0x43" },
    };
    for (size_t i = 0; i < COUNT(other); i++) {
        OWNED char *good = payment_text(V2), *bad = replaced(good, other[i].find, other[i].put);
        assert_int_equal(read_text(bad, 2), ERR_NONE);
        assert_false(payment.signer_proven);
    }
}

/* ---- the payment id ---- */

static enum err read_id(const char *id_json)
{
    OWNED char *good = payment_text(V2_ID), *text = replaced(good, "\"pay_7d5d747be160e280504c099d984bcfe0\"", id_json);
    return read_text(text, 2);
}

static void test_payment_id(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\"\"",
        "\"fifteen_chars__\"",
        "\"sixteen chars___\"",
        "\"sixteen.chars___\"",
        "\"sixteen\\u00e4chars__\"",
        "\"sixteen\\nchars___\"",
        "1234567890123456",
        "null",
        "[]",
        "{}",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(read_id(bad[i]), ERR_PAYMENT_ID_FORM);
        assert_int_equal(reason, REASON_NONE);
    }
    assert_int_equal(read_id("\"sixteen_chars-0A\""), ERR_NONE);
    assert_string_equal(payment.payment_id, "sixteen_chars-0A");
    char id[132] = "\"";
    memset(id + 1, 'a', 128);
    memcpy(id + 129, "\"", 2);
    assert_int_equal(read_id(id), ERR_NONE);
    assert_int_equal(strlen(payment.payment_id), 128);
    memcpy(id + 129, "a\"", 3);
    assert_int_equal(read_id(id), ERR_PAYMENT_ID_FORM);
    assert_false(payment_id_ok((struct slice){ "sixteen\0chars___", 16 }));
    assert_false(payment_id_ok((struct slice){ NULL, 0 }));
}

static void test_extension_echo(void **state)
{
    (void)state;
    static const char *const bad[] = { "\"required\":true", "\"required\":null", "\"required\":0",
                                       "\"optional\":false" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        OWNED char *good = payment_text(V2_ID), *text = replaced(good, "\"required\":false", bad[i]);
        assert_int_equal(read_text(text, 2), ERR_PAYMENT_REFUSED);
        assert_int_equal(reason, REASON_EXTENSION_ECHO);
    }
    OWNED char *good = payment_text(V2_ID), *no_info = replaced(good, "\"info\":{", "\"inf\":{");
    assert_int_equal(read_text(no_info, 2), ERR_PAYMENT_REFUSED);
    assert_int_equal(reason, REASON_EXTENSION_ECHO);
    OWNED char *no_id = replaced(good, "\"id\":\"pay_", "\"other\":\"pay_");
    assert_int_equal(read_text(no_id, 2), ERR_NONE);
    assert_string_equal(payment.payment_id, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),           cmocka_unit_test(test_same),
        cmocka_unit_test(test_version_of_header), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_refused),           cmocka_unit_test(test_quote_expired),
        cmocka_unit_test(test_quote_fixes_price), cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_signature_size),    cmocka_unit_test(test_signed_fields),
        cmocka_unit_test(test_payment_id),        cmocka_unit_test(test_extension_echo),
    };
    return cmocka_run_group_tests(tests, sale_start, sale_stop);
}
