/* The agent on MPP: which challenge it takes, and what its intent is on paper. */
#include "tests/unit/test.h"

#include <string.h>

#include "api/pay.h"

static const uint8_t secret[32] = { [31] = 7 };

/* A challenge for `json`, with more parameters behind it. */
static void add_challenge(struct buf *b, const char *method, const char *json, const char *more)
{
    BUF request = { 0 };
    base64url_add(&request, json, strlen(json));
    buf_printf(b, "%sPayment id=\"c%zu\", realm=\"shop.example\", method=\"%s\", intent=\"charge\", request=\"%s\"%s",
               b->n ? ", " : "", b->n, method, request.p, more);
}

#define CHARGE(amount, chain, details)                                                                                 \
    "{\"amount\":\"" amount "\",\"currency\":\"0x20c0000000000000000000000000000000000000\",\"methodDetails\":{"           \
    "\"chainId\":" chain details "},\"recipient\":\"0x2222222222222222222222222222222222222222\"}"
#define EXPIRES ", expires=\"2027-01-15T08:00:00Z\""

static enum offer_rc choose(const struct buf *header, const struct offer_filter *f, const char *mode, struct buf *texts,
                            struct mpp_choice *ret)
{
    buf_done(texts);
    return mpp_choose((struct slice){ header->p, header->n }, f, mode, texts, ret);
}

static void test_choice(void **state)
{
    (void)state;
    struct offer_filter f = { NULL, NULL, amount_of(100000) };
    struct mpp_choice c;
    BUF header = { 0 };
    BUF texts = { 0 };
    assert_int_equal(choose(&header, &f, NULL, &texts, &c), OFFER_NONE);
    add_challenge(&header, "stripe", CHARGE("1", "42431", ""), EXPIRES);
    add_challenge(&header, "tempo", CHARGE("1", "42431", ",\"feePayer\":true"), EXPIRES);
    add_challenge(&header, "tempo", CHARGE("1", "42431", ",\"splits\":[]"), EXPIRES);
    add_challenge(&header, "tempo", CHARGE("0", "42431", ""), EXPIRES);
    add_challenge(&header, "tempo", CHARGE("1", "42431", ",\"supportedModes\":[]"), EXPIRES);
    add_challenge(&header, "tempo", CHARGE("1", "42431", ""), ", expires=\"tomorrow\"");
    assert_int_equal(choose(&header, &f, NULL, &texts, &c), OFFER_NONE);
    add_challenge(&header, "tempo", CHARGE("5000", "42431", ",\"supportedModes\":[\"pull\"]"), EXPIRES);
    add_challenge(&header, "tempo", CHARGE("4000", "4217", ""), "");
    assert_int_equal(choose(&header, &f, NULL, &texts, &c), OFFER_OK); /* the first that it can pay, not the cheapest */
    assert_string_equal(amount_text(c.charge.amount).s, "5000");
    assert_int_equal(c.mode, MPP_PULL);
    assert_int_equal(c.expires_s, 1800000000);
    assert_int_equal(choose(&header, &f, "push", &texts, &c), OFFER_OK);
    assert_string_equal(amount_text(c.charge.amount).s, "4000");
    assert_true(c.mode == MPP_PUSH && c.expires_s == INT64_MAX);
    f.max_call = amount_of(4999);
    assert_int_equal(choose(&header, &f, NULL, &texts, &c), OFFER_OK);
    assert_int_equal(c.charge.chain_id, 4217);
    assert_int_equal(c.mode, MPP_PUSH); /* where both are taken */
    f.network = "eip155:42431";
    assert_int_equal(choose(&header, &f, NULL, &texts, &c), OFFER_OVER_CAP);
    f = (struct offer_filter){ NULL, "0x20c0000000000000000000000000000000000001", amount_of(100000) };
    assert_int_equal(choose(&header, &f, NULL, &texts, &c), OFFER_NONE);
}

static void sign(enum mpp_mode mode, struct intent *i)
{
    BUF header = { 0 };
    BUF texts = { 0 };
    const struct offer_filter f = { NULL, NULL, amount_of(100000) };
    struct mpp_choice c;
    struct key k;
    add_challenge(&header, "tempo", CHARGE("5000", "42431", ""), EXPIRES ", opaque=\"e30\", description=\"a call\"");
    assert_int_equal(choose(&header, &f, mode == MPP_PUSH ? "push" : "pull", &texts, &c), OFFER_OK);
    assert_true(key_from_secret(secret, &k));
    memcpy(i->payment_id, "pay_0123456789abcdef", 21);
    i->method = str_copy("GET");
    i->url = str_copy("https://api.example.com/x");
    i->request = request_digest(i->method, i->url, SLICE(""));
    struct tempo_tx tx = { .chain_id = 42431, .gas = 800000, .valid_before = 1799999999,
                           .nonce_key = mode == MPP_PULL ? tempo_expiring_key() : amount_of(7) };
    assert_true(intent_sign_mpp(i, &c, &tx, &k, 1799999900));
}

static void test_round_trip(void **state)
{
    (void)state;
    for (enum mpp_mode mode = MPP_PUSH; mode <= MPP_PULL; mode++) {
        INTENT i = { 0 };
        INTENT again = { 0 };
        sign(mode, &i);
        JSON *j = intent_json(&i);
        OWNED char *text = json_write(j);
        assert_true(intent_read(j, &again));
        JSON *k = intent_json(&again);
        OWNED char *same = json_write(k);
        assert_string_equal(text, same);
        assert_true(hash_eq(&i.mpp.tx, &again.mpp.tx) && again.mpp.mode == mode && again.signed_at == 1799999900);
        assert_null(json_object_get(j, "signature"));
        json_object_set_new(j, "transaction", json_string("0x76"));
        INTENT bad = { 0 };
        assert_false(intent_read(j, &bad));
    }
}

/* What is sent is what the other side reads, and its transaction is the one that was signed. */
static void test_header(void **state)
{
    (void)state;
    for (enum mpp_mode mode = MPP_PUSH; mode <= MPP_PULL; mode++) {
        INTENT i = { 0 };
        MPP_CREDENTIAL c = { .root = NULL };
        struct slice token;
        const char *detail;
        sign(mode, &i);
        OWNED char *header = intent_header(&i);
        assert_int_equal(mpp_credential_find(slice_of(header), &token), MPP_FAULT_NONE);
        assert_int_equal(mpp_credential_read(token, &c, &detail), MPP_FAULT_NONE);
        assert_int_equal(c.mode, mode);
        assert_true(hash_eq(&c.hash, &i.mpp.tx));
        assert_true(mpp_source_is(&c.source, 42431, &i.auth.from) && c.source.kind == MPP_SOURCE_ACCOUNT);
        assert_true(slice_is(c.challenge.opaque, "e30") && slice_is(c.challenge.expires, "2027-01-15T08:00:00Z"));
        if (mode == MPP_PUSH)
            continue;
        struct tempo_transfer t;
        assert_true(tempo_transfer_read(c.tx.tx.call.input, &t));
        assert_true(mpp_memo_is(&t.memo, c.challenge.realm, c.challenge.id) && address_eq(&t.to, &i.auth.to));
    }
}

/* One that is signed on the other rail after all has nothing left of this one. */
static void test_other_rail(void **state)
{
    (void)state;
    INTENT i = { 0 };
    sign(MPP_PUSH, &i);
    struct key k;
    assert_true(key_from_secret(secret, &k));
    JSON *accepted = json_pack("{s:s}", "scheme", "exact"), *challenge = json_object();
    const struct offer o = { .accepted = accepted, .max_timeout_s = 60, .amount = amount_of(1),
                             .token = { .chain_id = 84532, .name = "USDC", .version = "2", .symbol = "USDC", .decimals = 6 } };
    assert_true(intent_sign(&i, challenge, &o, &k, 1));
    assert_null(i.mpp.challenge);
    JSON *j = intent_json(&i);
    assert_null(json_object_get(j, "transaction"));
    INTENT again = { 0 };
    assert_true(intent_read(j, &again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_other_rail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
