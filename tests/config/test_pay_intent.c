/* The agent's nonce, its intent on paper, and which offer it takes. */
#include "tests/unit/test.h"

#include <string.h>

#include "api/pay.h"

static const uint8_t secret[32] = { [31] = 7 };
static const char challenge_text[] =
    "{\"x402Version\":2,\"error\":\"Payment required\",\"resource\":{\"url\":\"https://api.example.com/orders?x=1\"},"
    "\"accepts\":["
    "{\"scheme\":\"upto\",\"network\":\"eip155:84532\",\"amount\":\"1\",\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\","
    "\"payTo\":\"0x2222222222222222222222222222222222222222\",\"maxTimeoutSeconds\":120,\"extra\":{\"name\":\"USDC\",\"version\":\"2\"}},"
    "{\"scheme\":\"exact\",\"network\":\"eip155:84532\",\"amount\":\"5000\",\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\","
    "\"payTo\":\"0x2222222222222222222222222222222222222222\",\"maxTimeoutSeconds\":120,\"extra\":{\"name\":\"USDC\",\"version\":\"2\","
    "\"quote\":\"q1\"}},"
    "{\"scheme\":\"exact\",\"network\":\"eip155:8453\",\"amount\":\"1000\",\"asset\":\"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913\","
    "\"payTo\":\"0x2222222222222222222222222222222222222222\",\"maxTimeoutSeconds\":99999,\"extra\":{\"name\":\"USD Coin\","
    "\"version\":\"2\"}}],"
    "\"extensions\":{\"payment-identifier\":{\"info\":{\"required\":false},\"schema\":{}}}}";

static json_t *challenge(void)
{
    BUF header = { 0 };
    const char *why = NULL;
    base64_add(&header, challenge_text, sizeof challenge_text - 1);
    json_t *j = challenge_read((struct slice){ header.p, header.n }, &why);
    assert_non_null(j);
    return j;
}

/* Made once with another Keccak and SHA-256: an agent that loses its store must find the same nonce in later versions. */
static void test_nonce_vector(void **state)
{
    (void)state;
    const struct hash32 request = request_digest("POST", "https://api.example.com/orders?x=1", SLICE("{\"item\":\"tea\"}"));
    assert_string_equal(hash_text(&request).s, "0xbecae12a51805a88dbaa60532828ea24e2e3cb99fe141e10c3a8413375be1613");
    struct hash32 nonce = intent_nonce("pay_0123456789abcdef", &request, 0);
    assert_string_equal(hash_text(&nonce).s, "0x844aaafe950991d76a641ea2e626727a9d2c1259345d29db05b683fd2bf65ffa");
    nonce = intent_nonce("pay_0123456789abcdef", &request, 1);
    assert_string_equal(hash_text(&nonce).s, "0x1661f53d1e890f7cc8de4fef51d5f27e5519ec7a31fb389fe0cd7c1f731c3749");
}

static void test_digest_tells_requests_apart(void **state)
{
    (void)state;
    const struct hash32 a = request_digest("GET", "http://x/a", SLICE("")), b = request_digest("GET", "http://x/b", SLICE("")),
                        c = request_digest("PUT", "http://x/a", SLICE("")), d = request_digest("GET", "http://x/a", SLICE("y"));
    assert_false(hash_eq(&a, &b) || hash_eq(&a, &c) || hash_eq(&a, &d));
}

static void test_offers(void **state)
{
    (void)state;
    struct offer o;
    JSON *j = challenge();
    struct offer_filter f = { NULL, NULL, amount_of(100000) };
    assert_int_equal(offer_choose(j, &f, &o), OFFER_OK); /* the first that it can sign, not the cheapest */
    assert_string_equal(amount_text(o.amount).s, "5000");
    f.max_call = amount_of(4999);
    assert_int_equal(offer_choose(j, &f, &o), OFFER_OK);
    assert_int_equal(o.token.chain_id, 8453);
    f.network = "eip155:84532";
    assert_int_equal(offer_choose(j, &f, &o), OFFER_OVER_CAP);
    f = (struct offer_filter){ NULL, "0x1111111111111111111111111111111111111111", amount_of(100000) };
    assert_int_equal(offer_choose(j, &f, &o), OFFER_NONE);
}

static void make_intent(struct intent *i, const json_t *from, struct key *k)
{
    struct offer o;
    const struct offer_filter f = { NULL, NULL, amount_of(100000) };
    assert_true(key_from_secret(secret, k));
    assert_int_equal(offer_choose(from, &f, &o), OFFER_OK);
    memcpy(i->payment_id, "pay_0123456789abcdef", 21);
    i->method = str_copy("POST");
    i->url = str_copy("https://api.example.com/orders?x=1");
    i->request = request_digest(i->method, i->url, SLICE("{\"item\":\"tea\"}"));
    assert_true(intent_sign(i, from, &o, k, 1800000000));
}

static void test_intent_round_trip(void **state)
{
    (void)state;
    struct key k;
    INTENT i = { 0 }, back = { 0 };
    JSON *j = challenge();
    make_intent(&i, j, &k);
    assert_string_equal(amount_text(i.auth.valid_before).s, "1800000120");

    struct signature s;
    struct address signer;
    const struct token t = intent_token(&i);
    const struct hash32 digest = authorization_digest(&i.auth, &t);
    assert_true(signature_read(i.auth.signature, i.auth.signature_n, &s));
    assert_true(signature_recover(&s, &digest, &signer));
    assert_true(address_eq(&signer, &k.address));

    JSON *written = intent_json(&i);
    assert_true(intent_read(written, &back));
    OWNED char *first = intent_header(&i), *second = intent_header(&back);
    assert_string_equal(first, second);
    json_object_set_new(written, "attempt", json_integer(1)); /* and then the nonce is not that of this intent */
    INTENT other = { 0 };
    assert_false(intent_read(written, &other));
}

static void test_payment_header(void **state)
{
    (void)state;
    struct key k;
    size_t n;
    struct json_why why;
    INTENT i = { 0 };
    OWNED uint8_t *text = NULL;
    JSON *from = challenge();
    make_intent(&i, from, &k);
    OWNED char *header = intent_header(&i);
    assert_true(base64_read(header, strlen(header), &text, &n));
    JSON *j = json_read((const char *)text, n, &why);
    assert_int_equal(json_integer_value(json_object_get(j, "x402Version")), 2);
    assert_true(json_equal(json_object_get(j, "accepted"), json_array_get(json_object_get(from, "accepts"), 1)));
    assert_true(json_equal(json_object_get(j, "resource"), json_object_get(from, "resource")));
    const json_t *info = json_object_get(json_object_get(json_object_get(j, "extensions"), "payment-identifier"), "info");
    assert_string_equal(json_str(info, "id"), "pay_0123456789abcdef");
    assert_true(json_is_false(json_object_get(info, "required")));
    const json_t *auth = json_object_get(json_object_get(j, "payload"), "authorization");
    assert_string_equal(json_str(auth, "value"), "5000");
    assert_string_equal(json_str(auth, "validAfter"), "0");
}

static void test_payment_ids(void **state)
{
    (void)state;
    char id[PAYMENT_ID_MAX + 1];
    payment_id_random(id);
    assert_true(payment_id_ok(slice_of(id)));
    assert_int_equal(strlen(id), 36);
    assert_false(payment_id_ok(SLICE("tooshort")));
    assert_false(payment_id_ok(SLICE("with a space in it")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nonce_vector),      cmocka_unit_test(test_digest_tells_requests_apart),
        cmocka_unit_test(test_offers),            cmocka_unit_test(test_intent_round_trip),
        cmocka_unit_test(test_payment_header),    cmocka_unit_test(test_payment_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
