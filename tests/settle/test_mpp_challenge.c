/* MPP's challenge: ids, requests and memos as the official client computes them, preferences, and challenges read as an
 * agent does. */
#include "mpp.h"

#include <string.h>

static struct slice param(const json_t *o, const char *key)
{
    const struct slice s = json_slice(o, key);
    return s.n > 0 ? s : (struct slice){ NULL, 0 };
}

static struct mpp_challenge challenge_in(const json_t *p)
{
    return (struct mpp_challenge){ .id = param(p, "id"),
                                   .realm = param(p, "realm"),
                                   .method = param(p, "method"),
                                   .intent = param(p, "intent"),
                                   .request = param(p, "request"),
                                   .expires = param(p, "expires"),
                                   .digest = param(p, "digest"),
                                   .opaque = param(p, "opaque") };
}

static void test_ids(void **state)
{
    (void)state;
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(vectors, "ids"), i, v) {
        const struct mpp_challenge c = challenge_in(json_object_get(v, "params"));
        assert_string_equal(mpp_id_of(mpp_secret, &c).s, json_str(v, "id"));
    }
    assert_int_equal(i, 5);
    json_array_foreach(json_object_get(vectors, "exchanges"), i, v) {
        const struct mpp_challenge c = challenge_in(json_object_get(v, "challenge"));
        assert_string_equal(mpp_id_of(mpp_secret, &c).s, c.id.p);
    }
    assert_int_equal(i, 3);
}

/* ---- out ---- */

static struct mpp_offer offer(void)
{
    return (struct mpp_offer){ .key = mpp_secret,
                               .realm = mpp_realm,
                               .price = &mpp_price,
                               .external_id = SLICE("order-7"),
                               .expires = 1796083200,
                               .description = "one lookup" };
}

static void request_of(const struct mpp_challenge *c, struct buf *ret)
{
    OWNED uint8_t *text = NULL;
    size_t n;
    assert_true(base64url_read_any(c->request.p, c->request.n, &text, &n));
    buf_add(ret, text, n);
}

/* The request is the official one, but for the case of hex digits. */
static void test_write(void **state)
{
    (void)state;
    static const char *const modes[] = { "\"pull\",\"push\"", "\"push\"" };
    for (int push_only = 0; push_only < 2; push_only++) {
        struct mpp_offer o = offer();
        struct mpp_challenge c;
        BUF header = { 0 };
        BUF texts = { 0 };
        BUF request = { 0 };
        o.push_only = push_only;
        mpp_challenge_write(&o, &header);
        assert_int_equal(mpp_challenges_read((struct slice){ header.p, header.n }, &texts, &c, 1), 1);
        assert_string_equal(c.realm.p, mpp_realm);
        assert_string_equal(c.method.p, "tempo");
        assert_string_equal(c.intent.p, "charge");
        assert_string_equal(c.expires.p, "2026-12-01T00:00:00Z");
        assert_string_equal(c.description.p, "one lookup");
        assert_string_equal(mpp_id_of(mpp_secret, &c).s, c.id.p);
        request_of(&c, &request);
        OWNED char *want = str_format(
            "{\"amount\":\"250000\",\"currency\":\"0x20c0000000000000000000000000000000000000\",\"externalId\":"
            "\"order-7\",\"methodDetails\":{\"chainId\":42431,\"supportedModes\":[%s]},\"recipient\":"
            "\"0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a\"}",
            modes[push_only]);
        assert_string_equal(request.p, want);
        JSON *j = json_loads(request.p, 0, NULL);
        OWNED char *sorted = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(sorted, request.p);
    }
    struct mpp_offer o = offer();
    BUF plain = { 0 };
    BUF odd = { 0 };
    o.description = NULL;
    mpp_challenge_write(&o, &plain);
    o.description = "a \"quoted\" one";
    mpp_challenge_write(&o, &odd);
    assert_string_equal(plain.p, odd.p);
    assert_null(strstr(plain.p, "description"));
}

static void test_realms(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "a|b", "a\"b", "a\\b", "a\nb", "b\xc3\xbc" };
    assert_true(mpp_realm_ok("api.example.com:8402"));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(mpp_realm_ok(bad[i]));
}

/* ---- what is asked for ---- */

static bool read_json(const char *json, struct mpp_charge *ret, const char **ret_detail)
{
    BUF b = { 0 };
    base64url_add(&b, json, strlen(json));
    return mpp_charge_read((struct slice){ b.p, b.n }, ret, ret_detail);
}

#define GOOD                                                                                                           \
    "{\"amount\":\"250000\",\"currency\":\"0x20c0000000000000000000000000000000000000\",\"externalId\":\"order-7\","   \
    "\"methodDetails\":{"                                                                                              \
    "\"chainId\":42431,\"supportedModes\":[\"pull\",\"push\"]},\"recipient\":"                                         \
    "\"0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A\"}"

static void test_charge(void **state)
{
    (void)state;
    struct mpp_charge c;
    const char *detail = NULL;
    assert_true(read_json(GOOD, &c, &detail));
    assert_true(mpp_charge_is(&c, &mpp_price) && c.plain && c.pull && c.push);
    assert_string_equal(c.external_id, "order-7");
    static const struct {
        const char *find, *put;
        bool is, plain, pull, push;
    } other[] = {
        { "\"250000\"", "\"250001\"", false, true, true, true },
        { "\"250000\"", "\"0\"", false, false, true, true },
        { "42431", "4217", false, true, true, true },
        { "0x20c0", "0x20c1", false, true, true, true },
        { "0x19E7", "0x29E7", false, true, true, true },
        { "[\"pull\",\"push\"]", "[\"push\"]", true, true, false, true },
        { ",\"supportedModes\":[\"pull\",\"push\"]", "", true, true, true, true },
        { "\"chainId\"", "\"feePayer\":true,\"chainId\"", true, false, true, true },
        { "\"chainId\"", "\"feePayer\":false,\"chainId\"", true, true, true, true },
        { "\"chainId\"", "\"splits\":[],\"chainId\"", true, false, true, true },
        { "\"chainId\"", "\"memo\":\"0x00\",\"chainId\"", true, false, true, true },
        { "\"externalId\":\"order-7\",", "", true, true, true, true },
    };
    for (size_t i = 0; i < COUNT(other); i++) {
        OWNED char *text = mpp_replaced(GOOD, other[i].find, other[i].put);
        assert_true(read_json(text, &c, &detail));
        if (mpp_charge_is(&c, &mpp_price) != other[i].is || c.plain != other[i].plain || c.pull != other[i].pull ||
            c.push != other[i].push)
            fail_msg("%s", other[i].put);
    }
}

static void test_charge_malformed(void **state)
{
    (void)state;
    struct mpp_charge c;
    const char *detail;
    static const struct {
        const char *find, *put, *detail;
    } bad[] = {
        { "\"250000\"", "250000", "request.amount" },
        { "\"250000\"", "\"0250000\"", "request.amount" },
        { "\"250000\"", "\"-1\"", "request.amount" },
        { "0x20c0", "20c0", "request.currency" },
        { "\"recipient\"", "\"recipien\"", "request.recipient" },
        { "\"order-7\"", "7", "request.externalId" },
        { "42431", "\"42431\"", "request.methodDetails.chainId" },
        { "42431", "0", "request.methodDetails.chainId" },
        { "42431", "42431.5", "request.methodDetails.chainId" },
        { "[\"pull\",\"push\"]", "\"pull\"", "request.methodDetails.supportedModes" },
        { "\"methodDetails\"", "\"details\"", "request.methodDetails" },
        { "{\"amount\"", "[{\"amount\"", "request must be one strict JSON object" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        OWNED char *text = mpp_replaced(GOOD, bad[i].find, bad[i].put);
        detail = NULL;
        if (read_json(text, &c, &detail) || !detail || strncmp(detail, bad[i].detail, strlen(bad[i].detail)) != 0)
            fail_msg("%s: %s", bad[i].put, detail ? detail : "read");
    }
    OWNED char *twice = mpp_replaced(GOOD, "{\"amount\"", "{\"amount\":\"1\",\"amount\"");
    assert_false(read_json(twice, &c, &detail));
    char id[160] = "\"";
    memset(id + 1, 'a', 128);
    strncpy(id + 129, "\"", 2);
    OWNED char *longest = mpp_replaced(GOOD, "\"order-7\"", id);
    assert_true(read_json(longest, &c, &detail));
    strncpy(id + 129, "a\"", 3);
    OWNED char *longer = mpp_replaced(GOOD, "\"order-7\"", id);
    assert_false(read_json(longer, &c, &detail));
    assert_false(mpp_charge_read(SLICE("e30="), &c, &detail));
    assert_false(mpp_charge_read(SLICE(""), &c, &detail));
}

/* ---- memos and sources ---- */

static void test_memos(void **state)
{
    (void)state;
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(vectors, "memos"), i, v) {
        const struct slice realm = json_slice(v, "realm"), id = json_slice(v, "challenge_id"),
                           text = json_slice(v, "memo");
        struct hash32 memo;
        assert_true(hash_read(text.p, text.n, &memo));
        assert_true(mpp_memo_is(&memo, realm, id) && mpp_memo_of_realm(&memo, realm));
        assert_false(mpp_memo_is(&memo, realm, SLICE("another")) || mpp_memo_is(&memo, SLICE("another"), id));
        assert_false(mpp_memo_of_realm(&memo, SLICE("another")));
        if (json_is_null(json_object_get(v, "client_id")))
            assert_string_equal(hash_text(&(struct hash32[]){ mpp_memo(realm, id) }[0]).s, text.p);
        for (size_t byte = 0; byte < 32; byte++) {
            struct hash32 other = memo;
            other.b[byte] ^= 1;
            assert_true(mpp_memo_is(&other, realm, id) ==
                        (byte >= 15 && byte < 25)); /* only the client's part is free */
            assert_true(mpp_memo_of_realm(&other, realm) == (byte >= 15));
        }
    }
    assert_int_equal(i, 3);
}

static void test_sources(void **state)
{
    (void)state;
    static const char account[] = "did:pkh:eip155:42431:0x1563915e194D8CfBA1943570603F7606A3115508";
    static const char *const bad[] = {
        "",
        "0x1563915e194D8CfBA1943570603F7606A3115508",
        "did:pkh:eip155:42431",
        "did:pkh:eip155:042431:0x1563915e194D8CfBA1943570603F7606A3115508",
        "did:pkh:eip155::0x1563915e194D8CfBA1943570603F7606A3115508",
        "did:pkh:eip155:42431:0x1563915e194D8CfBA1943570603F7606A311550",
        "did:pkh:eip155:42431:0x1563915e194D8CfBA1943570603F7606A3115508 ",
        "did:pkh:solana:42431:0x1563915e194D8CfBA1943570603F7606A3115508",
        "did:pkh:eip155:99999999999999999999999:0x1563915e194D8CfBA1943570603F7606A3115508",
    };
    const struct address payer = mpp_key("payer").address, other = mpp_key("merchant").address;
    struct mpp_source s;
    mpp_source_read(SLICE(account), &s);
    assert_int_equal(s.kind, MPP_SOURCE_ACCOUNT);
    assert_true(mpp_source_is(&s, 42431, &payer));
    assert_false(mpp_source_is(&s, 42431, &other) || mpp_source_is(&s, 4217, &payer));
    for (size_t i = 0; i < COUNT(bad); i++) {
        mpp_source_read(slice_of(bad[i]), &s);
        assert_int_equal(s.kind, MPP_SOURCE_OTHER);
        assert_false(mpp_source_is(&s, 42431, &payer));
    }
    s = (struct mpp_source){ .kind = MPP_SOURCE_NONE };
    assert_true(mpp_source_is(&s, 42431, &payer));
}

/* ---- preferences ---- */

static void test_accept(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int q;
    } of[] = {
        { NULL, 1000 },
        { "", 1000 },
        { " , ,", 1000 },
        { "tempo/charge", 1000 },
        { "tempo/charge, stripe/charge;q=0.5", 1000 },
        { "stripe/charge", 0 },
        { "tempo/session", 0 },
        { "tempo/charge;q=0", 0 },
        { "tempo/charge;q=0, */*", 0 },
        { "*/*, tempo/charge;q=0.000", 0 },
        { "*/*;q=0.1, tempo/*;q=0.25", 250 },
        { "*/charge ; Q = 0.125 , */*", 125 },
        { "tempo/*;q=0.2, */charge;q=0.3", 300 },
        { "\ttempo/charge;x=1;q=0.9;y", 900 },
        { "tempo/charge;q=1.000", 1000 },
        { "tempo/charge;q=1.001", 1000 },           /* no such weight: passed over, and nothing else is said */
        { "tempo/charge;q=0.0001", 1000 },
        { "tempo/charge;q=.5", 1000 },
        { "tempo/charge;q=x, */*;q=0.4", 400 },
        { "tempo, charge, tempo/, /charge", 1000 },
        { "Tempo/charge", 0 },
    };
    for (size_t i = 0; i < COUNT(of); i++) {
        const int q = mpp_accept(slice_of(of[i].header), "tempo", "charge");
        if (q != of[i].q)
            fail_msg("%s: %d", of[i].header, q);
    }
    const char *both = "stripe/charge;q=0.5, tempo/charge";
    assert_true(mpp_accept(slice_of(both), "stripe", "charge") < mpp_accept(slice_of(both), "tempo", "charge"));
}

/* ---- challenges, read ---- */

static void test_read(void **state)
{
    (void)state;
    static const char header[] =
        "Negotiate, Basic realm=\"a, Payment id=b\", Negotiate abc/+==,, payment ID = \"x\\\"y\" , "
        "realm=gw,method=\"tempo\", "
        "intent=\"charge\", request=\"e30\", more=\"z\", Payment id=\"1\", realm=\"\", method=\"stripe\", "
        "intent=\"charge\", request=\"\", "
        "digest=\"d\", opaque=\"o\", Payment id=\"2\", id=\"3\", realm=\"a\", method=\"m\", intent=\"i\", "
        "request=\"r\", "
        "Payment id=\"4\", realm=\"a\", method=\"m\", intent=\"i\", request=\"r\", header=\"Payment-Authorization\", "
        "Payment id=\"5\", realm=\"a\", method=\"m\", intent=\"i\", Bearer";
    BUF b = { 0 };
    struct mpp_challenge c[4];
    assert_int_equal(mpp_challenges_read(SLICE(header), &b, c, 4), 2);
    assert_string_equal(c[0].id.p, "x\"y");
    assert_string_equal(c[0].realm.p, "gw");
    assert_string_equal(c[0].request.p, "e30");
    assert_null(c[0].expires.p);
    assert_string_equal(c[1].method.p, "stripe");
    assert_int_equal(c[1].realm.n, 0);
    assert_string_equal(c[1].opaque.p, "o");
    BUF again = { 0 };
    assert_int_equal(mpp_challenges_read(SLICE(header), &again, c, 1), 2);
    static const char *const none[] = {
        "", ",", "Payment", "Payment abc", "Bearer realm=\"a\"", "Payment id=\"x", "Payment id=", "\"", "="
    };
    for (size_t i = 0; i < COUNT(none); i++) {
        BUF t = { 0 };
        assert_int_equal(mpp_challenges_read(slice_of(none[i]), &t, c, 4), 0);
    }
}

static void test_mutations(void **state)
{
    (void)state;
    struct mpp_offer o = offer();
    BUF header = { 0 };
    mpp_challenge_write(&o, &header);
    buf_puts(&header, ", Basic realm=\"x\", Payment id=1,realm=2,method=tempo,intent=charge,request=e30");
    size_t read = 0;
    for (int i = 0; i < 20000; i++) {
        BUF b = { 0 };
        BUF t = { 0 };
        struct mpp_challenge c[2];
        struct mpp_charge charge;
        const char *detail;
        buf_add(&b, header.p, header.n);
        mpp_mutate(&b);
        OWNED char *exact = mem_resize(NULL, b.n + !b.n, 1); /* no byte more: the sanitizer sees one too far */
        memcpy(exact, b.p, b.n);
        const size_t n = mpp_challenges_read((struct slice){ exact, b.n }, &t, c, 2);
        for (size_t k = 0; k < n && k < 2; k++, read++)
            (void)!mpp_charge_read(c[k].request, &charge, &detail);
        assert_in_range(mpp_accept((struct slice){ exact, b.n }, "tempo", "charge"), 0, 1000);
    }
    assert_true(read > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),     cmocka_unit_test(test_write),  cmocka_unit_test(test_realms),
        cmocka_unit_test(test_charge),  cmocka_unit_test(test_charge_malformed),
        cmocka_unit_test(test_memos),   cmocka_unit_test(test_sources), cmocka_unit_test(test_accept),
        cmocka_unit_test(test_read),    cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, mpp_start, mpp_stop);
}
