/* A credential: found, read, held against our challenge; a signed transaction refused for each thing that is not just
 * this payment. */
#include "mpp.h"

#include <string.h>

#include "base/clock.h"

/* ---- in the header ---- */

static void test_find(void **state)
{
    (void)state;
    static const struct {
        const char *header, *token;
        enum mpp_fault fault;
    } of[] = {
        { "", NULL, MPP_FAULT_NONE },
        { "Bearer abc", NULL, MPP_FAULT_NONE },
        { "Payments abc", NULL, MPP_FAULT_NONE },
        { "Digest a=\"x, Payment e30\", b=1", NULL, MPP_FAULT_NONE },
        { "Digest a=\"x\\\", Payment e30\"", NULL, MPP_FAULT_NONE },
        { "Payment e30", "e30", MPP_FAULT_NONE },
        { "payment \t e30 ", "e30", MPP_FAULT_NONE },
        { "Bearer abc, PAYMENT e30", "e30", MPP_FAULT_NONE },
        { "Payment e30,Bearer abc", "e30", MPP_FAULT_NONE },
        { "Payment", "", MPP_FAULT_NONE },
        { "Payment e30 e30", "e30 e30", MPP_FAULT_NONE },
        { "Payment e30, Payment e30", NULL, MPP_FAULT_SEVERAL },
        { "Payment, payment e30", NULL, MPP_FAULT_SEVERAL },
    };
    for (size_t i = 0; i < COUNT(of); i++) {
        struct slice token = { NULL, 0 };
        const enum mpp_fault fault = mpp_credential_find(slice_of(of[i].header), &token);
        if (fault != of[i].fault || (of[i].token ? !token.p || !slice_is(token, of[i].token) : token.p != NULL))
            fail_msg("%s: fault %d, %.*s", of[i].header, (int)fault, (int)token.n, token.p ? token.p : "");
    }
}

/* ---- its form ---- */

#define PUSH "push_ok"
#define PULL "pull_ok"
#define HASH "0x271e8a073638de8b2cf846abed60bf557a8f4bdbb211f3cda4cce80ce586d69c"

static void test_good(void **state)
{
    (void)state;
    OWNED char *push = mpp_credential_text(PUSH), *pull = mpp_credential_text(PULL);
    const struct address payer = mpp_key("payer").address;
    MPP_CREDENTIAL a = { .root = NULL };
    MPP_CREDENTIAL b = { .root = NULL };
    const char *detail = "untouched";
    assert_int_equal(mpp_read_text(push, &a, &detail), MPP_FAULT_NONE);
    assert_null(detail);
    assert_int_equal(a.mode, MPP_PUSH);
    assert_string_equal(hash_text(&a.hash).s, HASH);
    assert_true(mpp_source_is(&a.source, 42431, &payer));
    assert_null(a.raw);
    assert_int_equal(mpp_read_text(pull, &b, &detail), MPP_FAULT_NONE);
    assert_int_equal(b.mode, MPP_PULL);
    assert_true(hash_eq(&b.hash, &b.tx.hash) && address_eq(&b.tx.sender, &payer));
    const struct slice tx = json_slice(json_object_get(mpp_case(PULL), "receipt"), "transactionHash");
    assert_string_equal(hash_text(&b.hash).s, tx.p);
}

static enum mpp_fault read_with(const char *name, const char *find, const char *put)
{
    OWNED char *good = mpp_credential_text(name), *text = mpp_replaced(good, find, put);
    MPP_CREDENTIAL c = { .root = NULL };
    const char *detail;
    const enum mpp_fault fault = mpp_read_text(text, &c, &detail);
    assert_true((detail != NULL) == (fault == MPP_FAULT_FIELD));
    assert_true((c.root != NULL) == (fault == MPP_FAULT_NONE));
    return fault;
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *name, *find, *put;
        enum mpp_fault fault;
    } bad[] = {
        { PUSH, "\"challenge\":{", "\"more\":{},\"challenge\":{", MPP_FAULT_NONE },
        { PUSH, "\"type\":\"hash\"", "\"more\":1,\"type\":\"hash\"", MPP_FAULT_NONE },
        { PUSH, "\"challenge\":{", "\"challenge\":{},\"challenge\":{", MPP_FAULT_JSON },
        { PUSH, "\"challenge\":{", "\"challenge\":[],\"x\":{", MPP_FAULT_FIELD },
        { PUSH, "\"challenge\":{", "\"x\":{", MPP_FAULT_FIELD },
        { PUSH, "\"id\":", "\"x\":", MPP_FAULT_FIELD },
        { PUSH, "\"id\":\"", "\"id\":\"\",\"x\":\"", MPP_FAULT_FIELD },
        { PUSH, "\"realm\":", "\"realm\":1,\"x\":", MPP_FAULT_FIELD },
        { PUSH, "\"method\":", "\"x\":", MPP_FAULT_FIELD },
        { PUSH, "\"intent\":", "\"x\":", MPP_FAULT_FIELD },
        { PUSH, "\"request\":\"", "\"request\":{},\"x\":\"", MPP_FAULT_FIELD },
        { PUSH, "\"expires\":", "\"expires\":1,\"x\":", MPP_FAULT_FIELD },
        { PUSH, "\"id\":", "\"digest\":{},\"id\":", MPP_FAULT_FIELD },
        { PUSH, "\"id\":", "\"opaque\":{\"a\":\"b\"},\"id\":", MPP_FAULT_FIELD },
        { PUSH, "\"payload\":{", "\"payload\":[],\"x\":{", MPP_FAULT_FIELD },
        { PUSH, "\"method\":\"tempo\"", "\"method\":\"evm\"", MPP_FAULT_METHOD },
        { PUSH, "\"intent\":\"charge\"", "\"intent\":\"session\"", MPP_FAULT_METHOD },
        { PUSH, "\"type\":\"hash\"", "\"type\":\"proof\"", MPP_FAULT_PAYLOAD_TYPE },
        { PUSH, "\"type\":\"hash\"", "\"type\":1", MPP_FAULT_PAYLOAD_TYPE },
        { PUSH, "\"type\":\"hash\"", "\"x\":1", MPP_FAULT_PAYLOAD_TYPE },
        { PUSH, HASH, "271e8a073638de8b2cf846abed60bf557a8f4bdbb211f3cda4cce80ce586d69c", MPP_FAULT_PAYLOAD_HASH },
        { PUSH, HASH, HASH "00", MPP_FAULT_PAYLOAD_HASH },
        { PUSH, HASH, "", MPP_FAULT_PAYLOAD_HASH },
        { PUSH, "\"hash\":\"0x", "\"hash\":null,\"x\":\"0x", MPP_FAULT_PAYLOAD_HASH },
        { PUSH, "\"source\":\"did:pkh", "\"source\":\"did:web", MPP_FAULT_NONE }, /* it may have paid all the same */
        { PUSH, "\"source\":\"", "\"source\":null,\"x\":\"", MPP_FAULT_NONE },
        { PULL, "\"signature\":", "\"x\":", MPP_FAULT_PAYLOAD_SIGNATURE },
        { PULL, "\"signature\":\"0x", "\"signature\":\"", MPP_FAULT_PAYLOAD_SIGNATURE },
        { PULL, "\"signature\":\"0x7", "\"signature\":\"0xg", MPP_FAULT_PAYLOAD_SIGNATURE },
        { PULL, "\"signature\":\"0x7", "\"signature\":\"0x77",
          MPP_FAULT_PAYLOAD_SIGNATURE }, /* an odd number of digits */
        { PULL, "\"signature\":\"0x76", "\"signature\":\"0x78", MPP_FAULT_TX_TYPE },
        { PULL, "\"signature\":\"0x76", "\"signature\":\"0x02", MPP_FAULT_TX_TYPE },
        { PULL, "\"signature\":\"0x76", "\"signature\":\"0x7600", MPP_FAULT_TX_RLP },
        { PULL, "\"signature\":\"0x76f9010582a5bf", "\"signature\":\"0x76f901058200bf", MPP_FAULT_TX_FIELD },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const enum mpp_fault fault = read_with(bad[i].name, bad[i].find, bad[i].put);
        if (fault != bad[i].fault)
            fail_msg("%s: %s", bad[i].put, fault ? mpp_fault_text(fault) : "read");
    }
}

static void test_encoding(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        enum mpp_fault fault;
    } bad[] = {
        { "", MPP_FAULT_ENCODING },    { "!!!!", MPP_FAULT_ENCODING },    { "e30=", MPP_FAULT_ENCODING },
        { "e31", MPP_FAULT_ENCODING }, { "e30 e30", MPP_FAULT_ENCODING }, { "eyJhIjo", MPP_FAULT_JSON },
        { "W10", MPP_FAULT_JSON },     { "e30", MPP_FAULT_FIELD },
    };
    MPP_CREDENTIAL c = { .root = NULL };
    const char *detail;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(mpp_credential_read(slice_of(bad[i].token), &c, &detail), bad[i].fault);
    BUF large = { 0 };
    while (large.n <= 16384)
        buf_puts(&large, "e30x");
    assert_int_equal(mpp_credential_read((struct slice){ large.p, large.n }, &c, &detail), MPP_FAULT_TOO_LARGE);
    large.n = 16384;
    assert_int_equal(mpp_credential_read((struct slice){ large.p, large.n }, &c, &detail), MPP_FAULT_JSON);
}

static void test_faults(void **state)
{
    (void)state;
    static const char *const problems[] = { "bad-request",        "malformed-credential", "method-unsupported",
                                            "invalid-challenge",  "invalid-payload",      "payment-expired",
                                            "verification-failed" };
    for (enum mpp_fault f = MPP_FAULT_NONE + 1; f <= MPP_FAULT_TX_FEE_TOKEN; f++) {
        bool known = false;
        for (size_t i = 0; i < COUNT(problems); i++)
            known = known || strcmp(mpp_fault_problem(f), problems[i]) == 0;
        assert_true(known && strlen(mpp_fault_text(f)) > 10);
    }
}

/* ---- is it ours ---- */

static enum mpp_fault check_with(const char *find, const char *put, struct slice key, const char *realm)
{
    OWNED char *good = mpp_credential_text(PUSH), *text = mpp_replaced(good, find, put);
    const struct mpp_in in = { key, realm, json_integer_value(json_object_get(mpp_case(PUSH), "now_ms")) };
    MPP_CREDENTIAL c = { .root = NULL };
    struct mpp_charge charge;
    const char *detail;
    bool late = true;
    assert_int_equal(mpp_read_text(text, &c, &detail), MPP_FAULT_NONE);
    const enum mpp_fault fault = mpp_credential_check(&c, &in, &charge, &late);
    assert_true(fault != MPP_FAULT_NONE || (!late && mpp_charge_is(&charge, &mpp_price)));
    return fault;
}

static void test_ours(void **state)
{
    (void)state;
    assert_int_equal(check_with("\"id\":", "\"id\":", mpp_secret, mpp_realm), MPP_FAULT_NONE);
    assert_int_equal(check_with("\"id\":", "\"description\":\"any\",\"id\":", mpp_secret, mpp_realm), MPP_FAULT_NONE);
    assert_int_equal(check_with("\"id\":\"", "\"id\":\"x", mpp_secret, mpp_realm), MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"realm\":\"gw", "\"realm\":\"gx", mpp_secret, mpp_realm), MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"request\":\"ey", "\"request\":\"ez", mpp_secret, mpp_realm), MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"expires\":\"20", "\"expires\":\"21", mpp_secret, mpp_realm), MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"expires\":", "\"x\":", mpp_secret, mpp_realm), MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"id\":", "\"digest\":\"d\",\"id\":", mpp_secret, mpp_realm), MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"id\":", "\"opaque\":\"e30\",\"id\":", mpp_secret, mpp_realm), MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"id\":", "\"id\":", SLICE("another secret of thirty-two bytes"), mpp_realm),
                     MPP_FAULT_NOT_OURS);
    assert_int_equal(check_with("\"id\":", "\"id\":", mpp_secret, "gw.example.org"), MPP_FAULT_NOT_OURS);
}

/* ---- our own challenges, and transactions signed for them ---- */

enum { NOW = 1796083000, EXPIRES = NOW + 300 };

static void own_challenge(bool push_only, struct buf *texts, struct mpp_challenge *ret)
{
    const struct mpp_offer o = { .key = mpp_secret,
                                 .realm = mpp_realm,
                                 .price = &mpp_price,
                                 .external_id = SLICE_INIT("quote"),
                                 .expires = EXPIRES,
                                 .push_only = push_only };
    BUF header = { 0 };
    mpp_challenge_write(&o, &header);
    assert_int_equal(mpp_challenges_read((struct slice){ header.p, header.n }, texts, ret, 1), 1);
}

static void read_header(const struct buf *header, struct mpp_credential *ret)
{
    struct slice token;
    const char *detail;
    assert_int_equal(mpp_credential_find((struct slice){ header->p, header->n }, &token), MPP_FAULT_NONE);
    assert_int_equal(mpp_credential_read(token, ret, &detail), MPP_FAULT_NONE);
}

static void test_modes_and_times(void **state)
{
    (void)state;
    const struct key payer = mpp_key("payer");
    const struct hash32 hash = { { 1, 2, 3 } };
    const struct slice none = { NULL, 0 };
    for (int push_only = 0; push_only < 2; push_only++) {
        BUF texts = { 0 };
        BUF header = { 0 };
        struct mpp_challenge challenge;
        struct mpp_charge charge;
        MPP_CREDENTIAL c = { .root = NULL };
        bool late;
        own_challenge(push_only, &texts, &challenge);
        mpp_credential_write(&challenge, 42431, &payer.address, &hash, none, &header);
        read_header(&header, &c);
        assert_true(hash_eq(&c.hash, &hash) && mpp_source_is(&c.source, 42431, &payer.address));
        struct mpp_in in = { mpp_secret, mpp_realm, (int64_t)EXPIRES * 1000 };
        assert_int_equal(mpp_credential_check(&c, &in, &charge, &late), MPP_FAULT_NONE);
        assert_false(late);
        assert_string_equal(charge.external_id, "quote");
        in.now_ms++;
        assert_int_equal(mpp_credential_check(&c, &in, &charge, &late), MPP_FAULT_NONE);
        assert_true(late);
        c.mode = MPP_PULL;
        assert_int_equal(mpp_credential_check(&c, &in, &charge, &late), push_only ? MPP_FAULT_MODE : MPP_FAULT_NONE);
    }
}

struct pull { struct tempo_tx tx; struct tempo_transfer transfer; };

typedef void spoil_fn(struct pull *p);

/* What the check says of a transaction that is right but for one thing. */
static enum mpp_fault check_pull(spoil_fn *spoil, int64_t now)
{
    const struct key payer = mpp_key("payer");
    BUF texts = { 0 };
    BUF header = { 0 };
    BUF data = { 0 };
    BUF raw = { 0 };
    struct mpp_challenge challenge;
    struct mpp_charge charge;
    struct hash32 hash;
    bool late;
    own_challenge(false, &texts, &challenge);
    struct pull p = {
        .tx = { .chain_id = 42431,
                .gas = 789000,
                .max_tip = amount_of(1),
                .max_fee = amount_of(100),
                .nonce_key = tempo_expiring_key(),
                .valid_before = NOW + 25,
                .valid_after = NOW - 1000,
                .call.to = mpp_price.token->address },
        .transfer = { mpp_price.pay_to, mpp_price.amount, mpp_memo(challenge.realm, challenge.id) },
    };
    if (spoil)
        spoil(&p);
    tempo_transfer_call(&data, &p.transfer);
    if (!p.tx.call.input.p)
        p.tx.call.input = (struct slice){ data.p, data.n };
    assert_true(tempo_sign(&p.tx, &payer, &raw, &hash));
    mpp_credential_write(&challenge, 42431, &payer.address, NULL, (struct slice){ raw.p, raw.n }, &header);
    MPP_CREDENTIAL c = { .root = NULL };
    read_header(&header, &c);
    const struct mpp_in in = { mpp_secret, mpp_realm, now * 1000 };
    assert_int_equal(mpp_credential_check(&c, &in, &charge, &late), MPP_FAULT_NONE);
    return mpp_pull_check(&c, &charge, now);
}

static void other_chain(struct pull *p) { p->tx.chain_id = 4217; }
static void fee_token(struct pull *p)
{
    p->tx.has_fee_token = true;
    p->tx.fee_token = (struct address){ { 0x20, 0xc0, 1 } };
}
static void no_fee_token(struct pull *p) { p->tx.has_fee_token = true; p->tx.fee_token = mpp_price.pay_to; }
static void creates(struct pull *p) { p->tx.call.creates = true; }
static void other_token(struct pull *p) { p->tx.call.to.b[19] ^= 1; }
static void value(struct pull *p) { p->tx.call.value = amount_of(1); }
static void no_calldata(struct pull *p) { p->tx.call.input = SLICE(""); }
static void transfer_only(struct pull *p) { p->tx.call.input = SLICE("\xa9\x05\x9c\xbb"); }
static void other_recipient(struct pull *p) { p->transfer.to.b[19] ^= 1; }
static void one_more(struct pull *p) { p->transfer.amount = amount_of(250001); }
static void one_less(struct pull *p) { p->transfer.amount = amount_of(249999); }
static void other_memo(struct pull *p) { p->transfer.memo.b[31] ^= 1; }
static void client_memo(struct pull *p) { p->transfer.memo.b[16] ^= 1; }
static void counted_nonce(struct pull *p) { p->tx.nonce_key = AMOUNT_ZERO; }
static void a_nonce(struct pull *p) { p->tx.nonce = 0x123456789abcdef0u; }
static void no_deadline(struct pull *p) { p->tx.valid_before = 0; }
static void now_past(struct pull *p) { p->tx.valid_before = NOW + 3; }
static void just_time(struct pull *p) { p->tx.valid_before = NOW + 4; }
static void latest(struct pull *p) { p->tx.valid_before = NOW + 30; }
static void too_far(struct pull *p) { p->tx.valid_before = NOW + 31; }
static void forever(struct pull *p) { p->tx.valid_before = UINT64_MAX; }
static void valid_now(struct pull *p) { p->tx.valid_after = NOW; }
static void not_yet(struct pull *p) { p->tx.valid_after = NOW + 1; }
static void past_expiry(struct pull *p) { p->tx.valid_before = EXPIRES + 1; }
static void at_expiry(struct pull *p) { p->tx.valid_before = EXPIRES; }

static void test_pull(void **state)
{
    (void)state;
    static const struct {
        spoil_fn *spoil;
        int64_t now;
        enum mpp_fault fault;
    } of[] = {
        { NULL, NOW, MPP_FAULT_NONE },
        { other_chain, NOW, MPP_FAULT_TX_CHAIN },
        { fee_token, NOW, MPP_FAULT_NONE },
        { no_fee_token, NOW, MPP_FAULT_TX_FEE_TOKEN },
        { creates, NOW, MPP_FAULT_TX_TOKEN },
        { other_token, NOW, MPP_FAULT_TX_TOKEN },
        { value, NOW, MPP_FAULT_TX_VALUE },
        { no_calldata, NOW, MPP_FAULT_TX_CALLDATA },
        { transfer_only, NOW, MPP_FAULT_TX_CALLDATA },
        { other_recipient, NOW, MPP_FAULT_TX_RECIPIENT },
        { one_more, NOW, MPP_FAULT_TX_AMOUNT },
        { one_less, NOW, MPP_FAULT_TX_AMOUNT },
        { other_memo, NOW, MPP_FAULT_TX_MEMO },
        { client_memo, NOW, MPP_FAULT_NONE },
        { counted_nonce, NOW, MPP_FAULT_TX_NONCE_KEY },
        { a_nonce, NOW, MPP_FAULT_NONE },
        { no_deadline, NOW, MPP_FAULT_TX_NO_DEADLINE },
        { now_past, NOW, MPP_FAULT_TX_DEADLINE_PAST },
        { just_time, NOW, MPP_FAULT_NONE },
        { latest, NOW, MPP_FAULT_NONE },
        { too_far, NOW, MPP_FAULT_TX_DEADLINE_FAR },
        { forever, NOW, MPP_FAULT_TX_DEADLINE_FAR },
        { valid_now, NOW, MPP_FAULT_NONE },
        { not_yet, NOW, MPP_FAULT_TX_NOT_YET },
        { at_expiry, EXPIRES - 10, MPP_FAULT_NONE },
        { past_expiry, EXPIRES - 10, MPP_FAULT_TX_DEADLINE_FAR },
        { past_expiry, EXPIRES + 1, MPP_FAULT_EXPIRED },
    };
    for (size_t i = 0; i < COUNT(of); i++) {
        const enum mpp_fault fault = check_pull(of[i].spoil, of[i].now);
        if (fault != of[i].fault)
            fail_msg("%zu: %s", i, fault ? mpp_fault_text(fault) : "taken");
    }
}

/* What our own encoder does not make. */
static void test_pull_shapes(void **state)
{
    (void)state;
    OWNED char *text = mpp_credential_text(PULL);
    const int64_t now_ms = json_integer_value(json_object_get(mpp_case(PULL), "now_ms"));
    const struct mpp_in in = { mpp_secret, mpp_realm, now_ms };
    MPP_CREDENTIAL c = { .root = NULL };
    struct mpp_charge charge;
    const char *detail;
    bool late;
    assert_int_equal(mpp_read_text(text, &c, &detail), MPP_FAULT_NONE);
    assert_int_equal(mpp_credential_check(&c, &in, &charge, &late), MPP_FAULT_NONE);
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_NONE);
    const struct tempo_signed good = c.tx;
    const struct mpp_source source = c.source;
    c.tx.kind = TEMPO_P256;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_SIGNATURE_KIND);
    c.tx = good;
    c.tx.tx.fees = TEMPO_FEES_OPEN;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_SPONSOR);
    c.tx = good;
    c.tx.tx.access_count = 1;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_ACCESS_LIST);
    c.tx = good;
    c.tx.tx.authorization_count = 1;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_AUTHORIZATIONS);
    c.tx = good;
    c.tx.tx.has_key_authorization = true;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_KEY_AUTHORIZATION);
    c.tx = good;
    c.tx.tx.call_count = 2;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_CALLS);
    c.tx = good;
    c.source.address.b[0] ^= 1;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_SENDER);
    c.source = source;
    c.source.kind = MPP_SOURCE_OTHER;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_TX_SENDER);
    c.source.kind = MPP_SOURCE_NONE;
    assert_int_equal(mpp_pull_check(&c, &charge, now_ms / 1000), MPP_FAULT_NONE);
}

/* ---- receipts ---- */

static void test_receipts(void **state)
{
    (void)state;
    const struct hash32 tx = { { 0xab, 0xcd } };
    struct hash32 said;
    BUF b = { 0 };
    BUF with_id = { 0 };
    mpp_receipt_write(&tx, NOW, SLICE(""), &b);
    OWNED uint8_t *text = NULL;
    size_t n;
    assert_true(base64url_read_any(b.p, b.n, &text, &n));
    OWNED char *want =
        str_format("{\"method\":\"tempo\",\"status\":\"success\",\"timestamp\":\"%s\",\"reference\":\"%s\"}",
                   time_iso(NOW).s, hash_text(&tx).s);
    assert_string_equal((const char *)text, want);
    assert_true(mpp_receipt_read((struct slice){ b.p, b.n }, &said) && hash_eq(&said, &tx));
    mpp_receipt_write(&tx, NOW, SLICE("order-7"), &with_id);
    assert_true(with_id.n > b.n && mpp_receipt_read((struct slice){ with_id.p, with_id.n }, &said));
    static const char *const bad[] = { "", "!", "e30", "W10" };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(mpp_receipt_read(slice_of(bad[i]), &said));
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(vectors, "exchanges"), i, v) { /* the official server's are read */
        OWNED char *json = json_write(json_object_get(v, "receipt"));
        BUF header = { 0 };
        base64url_add(&header, json, strlen(json));
        assert_true(mpp_receipt_read((struct slice){ header.p, header.n }, &said));
    }
}

/* ---- whatever comes ---- */

static void test_mutations(void **state)
{
    (void)state;
    static const char *const names[] = { PUSH, PULL, "pull_two_identical_calls" };
    size_t read = 0;
    for (int i = 0; i < 12000; i++) {
        OWNED char *text = mpp_credential_text(names[i % 3]);
        BUF json = { 0 };
        BUF header = { 0 };
        struct slice token;
        struct mpp_charge charge;
        MPP_CREDENTIAL c = { .root = NULL };
        const char *detail;
        bool late;
        buf_puts(&json, text);
        if (i % 2)
            mpp_mutate(&json);
        buf_puts(&header, "Bearer x, Payment ");
        base64url_add(&header, json.p, json.n);
        if (i % 2 == 0)
            mpp_mutate(&header);
        OWNED char *exact = mem_resize(NULL, header.n + !header.n, 1);
        memcpy(exact, header.p, header.n);
        if (mpp_credential_find((struct slice){ exact, header.n }, &token) != MPP_FAULT_NONE || !token.p ||
            mpp_credential_read(token, &c, &detail) != MPP_FAULT_NONE)
            continue;
        read++;
        const struct mpp_in in = { mpp_secret, mpp_realm, 0 };
        if (mpp_credential_check(&c, &in, &charge, &late) == MPP_FAULT_NONE && c.mode == MPP_PULL)
            (void)!mpp_pull_check(&c, &charge, 1796000000);
    }
    assert_true(read > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),        cmocka_unit_test(test_good),     cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_encoding),    cmocka_unit_test(test_faults),   cmocka_unit_test(test_ours),
        cmocka_unit_test(test_modes_and_times), cmocka_unit_test(test_pull), cmocka_unit_test(test_pull_shapes),
        cmocka_unit_test(test_receipts),    cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, mpp_start, mpp_stop);
}
