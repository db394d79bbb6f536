/* Sign-in with a wallet: the reference's own texts and signatures, each check, and what comes back from a contract. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "settle/seal.h"
#include "settle/siwx.h"

static const struct quote_key ours = { { { 7 } }, 1 }, others = { { { 8 } }, 1 }, both = { { { 8 }, { 7 } }, 2 };

static json_t *vectors(void)
{
    json_t *j = json_load_file(SIGN_INS, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    return j;
}

static void test_vectors(void **state)
{
    (void)state;
    JSON *all = vectors();
    const char *name;
    json_t *v;
    json_object_foreach(all, name, v)
    {
        SIWX s = { 0 };
        BUF text = { 0 };
        const char *detail = NULL, *message = json_str(v, "message");
        assert_true(siwx_read(json_slice(v, "header"), &s, &detail));
        siwx_text(s.fields, &text);
        assert_string_equal(text.p, message);
        const struct hash32 digest = siwx_digest(slice_of(message));
        assert_string_equal(hash_text(&digest).s, json_str(v, "digest"));
        assert_true(siwx_signed(&s));
        s.address.b[0] ^= 1;
        assert_false(siwx_signed(&s));
    }
}

static char *encode(const json_t *o)
{
    OWNED char *text = json_write(o);
    BUF b = { 0 };
    base64_add(&b, text, strlen(text));
    return str_copy(b.p);
}

static void test_malformed(void **state)
{
    (void)state;
    JSON *all = vectors();
    static const char *const needed[] = { "domain", "address", "uri", "version", "chainId", "type", "nonce", "issuedAt", "signature" };
    const json_t *payload = json_object_get(json_object_get(all, "full"), "payload");
    const char *detail = NULL;
    for (size_t i = 0; i < COUNT(needed); i++)
        for (int how = 0; how < 3; how++) {
            SIWX s = { 0 };
            JSON *o = json_deep_copy(payload);
            json_object_del(o, needed[i]);
            if (how > 0)
                json_object_set_new(o, needed[i], how == 1 ? json_integer(1) : json_string("x\ny"));
            OWNED char *header = encode(o);
            if (siwx_read(slice_of(header), &s, &detail))
                fail_msg("%s was taken", needed[i]);
        }
    static const char *const headers[] = { "", "!", "e30=", "W10=", "eyJhIjoxLCJhIjoyfQ==" };
    for (size_t i = 0; i < COUNT(headers); i++) {
        SIWX s = { 0 };
        assert_false(siwx_read(slice_of(headers[i]), &s, &detail));
    }
}

/* ---- checks ---- */

static const struct siwx_want want = { &ours, "api.example.com", "https://api.example.com/receipts/rcp_1/result", 1800000000 };

static struct siwx signed_in(json_t *offer, const struct key *k)
{
    struct siwx s = { 0 };
    const char *detail = NULL;
    OWNED char *header = siwx_answer(offer, "eip155:84532", k);
    assert_non_null(header);
    assert_true(siwx_read(slice_of(header), &s, &detail));
    return s;
}

static struct key wallet(void)
{
    struct key k;
    const uint8_t secret[32] = { 1, 2, 3 };
    assert_true(key_from_secret(secret, &k));
    return k;
}

static enum err checked(const char *field, const char *value, const struct siwx_want *w)
{
    const struct key k = wallet();
    struct hash32 nonce;
    JSON *offer = siwx_offer(&want, "Sign in.");
    if (field)
        json_object_set_new(offer, field, json_string(value));
    SIWX s = signed_in(offer, &k);
    assert_true(siwx_signed(&s));
    return siwx_check(&s, w, &nonce);
}

static void test_checks(void **state)
{
    (void)state;
    struct siwx_want later = want, sooner = want, elsewhere = want;
    later.now += 301;
    sooner.now -= 60;
    elsewhere.key = &others;
    assert_int_equal(checked(NULL, NULL, &want), ERR_NONE);
    assert_int_equal(checked("domain", "evil.example.com", &want), ERR_SIGN_IN_DOMAIN);
    assert_int_equal(checked("domain", "API.example.com", &want), ERR_SIGN_IN_DOMAIN);
    assert_int_equal(checked("uri", "https://api.example.com/receipts/rcp_2/result", &want), ERR_SIGN_IN_URI);
    assert_int_equal(checked("nonce", "a1b2c3d4e5f67890a1b2c3d4e5f67890", &want), ERR_SIGN_IN_NONCE);
    assert_int_equal(checked(NULL, NULL, &elsewhere), ERR_SIGN_IN_NONCE);
    assert_int_equal(checked(NULL, NULL, &later), ERR_SIGN_IN_EXPIRED);
    assert_int_equal(checked(NULL, NULL, &sooner), ERR_SIGN_IN_EXPIRED);
    /* times that the client changes: the nonce carries its own end */
    assert_int_equal(checked("issuedAt", "2027-01-15T08:05:00Z", &later), ERR_SIGN_IN_EXPIRED);
    assert_int_equal(checked("issuedAt", "yesterday", &want), ERR_SIGN_IN_EXPIRED);
    assert_int_equal(checked("issuedAt", "2027-01-15T09:00:00.123+01:00", &want), ERR_NONE);
    assert_int_equal(checked("issuedAt", "2027-01-15T08:00:00+01:00", &want), ERR_SIGN_IN_EXPIRED);
    assert_int_equal(checked("expirationTime", "2027-01-15T07:59:59Z", &want), ERR_SIGN_IN_EXPIRED);
    assert_int_equal(checked("notBefore", "2027-01-15T08:02:00Z", &want), ERR_SIGN_IN_EXPIRED);
}

/* Nothing that the client dates anew makes an old nonce young. */
static void test_nonce_ends(void **state)
{
    (void)state;
    const struct key k = wallet();
    struct siwx_want later = want;
    struct hash32 nonce;
    JSON *offer = siwx_offer(&want, "Sign in.");
    json_object_set_new(offer, "issuedAt", json_string("2027-01-15T08:05:00Z"));
    json_object_set_new(offer, "expirationTime", json_string("2027-01-15T08:10:00Z"));
    SIWX s = signed_in(offer, &k);
    later.now += 299;
    assert_int_equal(siwx_check(&s, &later, &nonce), ERR_NONE);
    later.now += 2;
    assert_int_equal(siwx_check(&s, &later, &nonce), ERR_SIGN_IN_EXPIRED);
}

static void test_nonces_differ(void **state)
{
    (void)state;
    JSON *a = siwx_offer(&want, "x"), *b = siwx_offer(&want, "x");
    assert_string_not_equal(json_str(a, "nonce"), json_str(b, "nonce"));
}

static void test_contract(void **state)
{
    (void)state;
    const struct key k = wallet();
    const uint8_t yes[32] = { 0x16, 0x26, 0xba, 0x7e }, no[32] = { 0xff, 0xff, 0xff, 0xff }, one[32] = { [31] = 1 };
    JSON *offer = siwx_offer(&want, "x");
    SIWX s = signed_in(offer, &k);
    BUF data = { 0 };
    s.signature_n = 70; /* of any length */
    siwx_contract_call(&s, &data);
    assert_int_equal(data.n, 4 + 32 * 3 + 96);
    assert_int_equal((uint8_t)data.p[4 + 32 * 3 - 1], 70);
    assert_false(siwx_signed(&s));
    assert_true(siwx_contract_says_yes(yes, 32));
    assert_false(siwx_contract_says_yes(yes, 31) || siwx_contract_says_yes(no, 32) || siwx_contract_says_yes(one, 32));
}

static void test_hosts(void **state)
{
    (void)state;
    static const char *const hosts[][2] = { { "https://api.example.com", "api.example.com" },
                                            { "http://127.0.0.1:8402/x", "127.0.0.1:8402" },
                                            { "https://a.example?b", "a.example" } };
    for (size_t i = 0; i < COUNT(hosts); i++) {
        OWNED char *host = url_host(hosts[i][0]);
        assert_string_equal(host, hosts[i][1]);
    }
}

/* ---- answers at rest ---- */

static void test_seal(void **state)
{
    (void)state;
    const struct order_id a = { { 1 } }, b = { { 2 } };
    const struct slice plain = SLICE("what was paid for");
    BUF sealed = { 0 }, again = { 0 }, open = { 0 };
    seal(&ours, &a, 'b', plain, &sealed);
    seal(&ours, &a, 'b', plain, &again);
    assert_int_equal(sealed.n, plain.n + SEAL_EXTRA);
    assert_memory_not_equal(sealed.p, again.p, sealed.n);
    assert_null(memmem(sealed.p, sealed.n, "paid", 4));
    const struct slice s = { sealed.p, sealed.n };
    assert_true(seal_open(&ours, &a, 'b', s, &open));
    assert_string_equal(open.p, plain.p);
    assert_false(seal_open(&others, &a, 'b', s, &open) || seal_open(&ours, &b, 'b', s, &open) || seal_open(&ours, &a, 'h', s, &open));
    for (size_t i = 1; i < sealed.n; i++) {
        sealed.p[i] = (char)(sealed.p[i] ^ 1);
        assert_false(seal_open(&ours, &a, 'b', s, &open));
        sealed.p[i] = (char)(sealed.p[i] ^ 1);
        assert_false(seal_open(&ours, &a, 'b', (struct slice){ sealed.p, i }, &open));
    }
    assert_int_equal(open.n, plain.n);
    assert_true(seal_open(&both, &a, 'b', s, &open)); /* the key was changed since */
    assert_int_equal(open.n, 2 * plain.n);
    BUF nothing = { 0 }, opened = { 0 };
    seal(&ours, &a, 'b', SLICE(""), &nothing);
    assert_true(seal_open(&ours, &a, 'b', (struct slice){ nothing.p, nothing.n }, &opened));
    assert_int_equal(opened.n, 0);
    assert_true(seal_open(&ours, &a, 'b', (struct slice){ "\0before", 7 }, &opened));
    assert_string_equal(opened.p, "before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),  cmocka_unit_test(test_malformed), cmocka_unit_test(test_checks), cmocka_unit_test(test_nonces_differ),
        cmocka_unit_test(test_nonce_ends),
        cmocka_unit_test(test_contract), cmocka_unit_test(test_hosts),     cmocka_unit_test(test_seal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
