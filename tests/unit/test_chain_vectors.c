/* What official SDKs made, byte for byte: tests/vectors/chain.json. */
#include "test.h"

#include <string.h>

#include "base/json.h"
#include "chain/chain.h"

static json_t *vectors;

static int load(void **state)
{
    (void)state;
    json_error_t e;
    vectors = json_load_file(VECTORS_DIR "/chain.json", JSON_REJECT_DUPLICATES, &e);
    return vectors ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(vectors);
    return 0;
}

/* ---- fields: a missing or malformed one fails the test ---- */

static struct slice text_of(const json_t *j, const char *key)
{
    const struct slice s = json_slice(j, key);
    if (!s.p)
        fail_msg("no %s", key);
    return s;
}

static struct amount amount_in(const json_t *j, const char *key)
{
    const struct slice s = text_of(j, key);
    struct amount a;
    assert_true(amount_read(s.p, s.n, &a));
    return a;
}

static uint64_t u64_in(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    uint64_t n = (uint64_t)json_integer_value(v);
    assert_true(json_is_integer(v) || amount_u64(amount_in(j, key), &n));
    return n;
}

static struct address address_in(const json_t *j, const char *key)
{
    const struct slice s = text_of(j, key);
    struct address a;
    assert_true(address_read(s.p, s.n, &a));
    return a;
}

static struct hash32 hash_in(const json_t *j, const char *key)
{
    const struct slice s = text_of(j, key);
    struct hash32 h;
    assert_true(hash_read(s.p, s.n, &h));
    return h;
}

static void bytes_in(const json_t *j, const char *key, struct buf *ret)
{
    const struct slice s = text_of(j, key);
    OWNED uint8_t *p = mem_resize(NULL, s.n, 1);
    size_t n;
    assert_true(hex_read_any(s.p, s.n, p, s.n, &n));
    buf_add(ret, p, n);
}

static struct key key_in(const json_t *j)
{
    struct key k;
    const struct hash32 secret = hash_in(j, "privateKey");
    assert_true(key_from_secret(secret.b, &k));
    return k;
}

static struct token token_in(const json_t *v)
{
    const json_t *d = json_object_get(v, "domain");
    struct token t = { .chain_id = u64_in(d, "chainId"),
                       .address = address_in(d, "verifyingContract"),
                       .name = text_of(d, "name").p,
                       .version = text_of(d, "version").p,
                       .symbol = "",
                       .decimals = 6 };
    token_domain(&t);
    return t;
}

static struct authorization authorization_in(const json_t *v)
{
    const json_t *m = json_object_get(v, "message");
    return (struct authorization){
        .from = address_in(m, "from"),
        .to = address_in(m, "to"),
        .value = amount_in(m, "value"),
        .valid_after = amount_in(m, "validAfter"),
        .valid_before = amount_in(m, "validBefore"),
        .nonce = hash_in(m, "nonce"),
    };
}

static void assert_buf_is(const struct buf *b, const json_t *v, const char *key)
{
    BUF expected = { 0 };
    bytes_in(v, key, &expected);
    assert_int_equal(b->n, expected.n);
    assert_memory_equal(b->p, expected.p, expected.n);
}

static void assert_hash_is(struct hash32 h, const json_t *v, const char *key)
{
    assert_string_equal(hash_text(&h).s, text_of(v, key).p);
}

/* ---- authorizations ---- */

static void check_authorization(const json_t *v)
{
    const struct token t = token_in(v);
    const struct key k = key_in(v);
    struct authorization a = authorization_in(v);
    const struct hash32 digest = authorization_digest(&a, &t);
    assert_hash_is(t.domain, v, "domainSeparator");
    assert_hash_is(digest, v, "digest");

    assert_true(authorization_sign(&a, &t, &k));
    BUF signature = { 0 };
    buf_add(&signature, a.signature, a.signature_n);
    assert_buf_is(&signature, v, "signature");

    struct signature s;
    struct address who;
    assert_true(signature_read(a.signature, a.signature_n, &s));
    assert_true(signature_recover(&s, &digest, &who));
    assert_string_equal(address_checksum(&who).s, text_of(v, "recovered").p);
    a.from.b[0] ^= 1;
    assert_false(authorization_sign(&a, &t, &k));
}

/* The SDK's calldata for the bytes overload carries 65 bytes, for which we use the other overload; with one zero byte
 * more, which the padding has anyway, only the length word differs. */
static void check_calldata(const json_t *v)
{
    struct authorization a = authorization_in(v);
    const struct slice hex = text_of(v, "signature");
    assert_true(hex_read(hex.p, hex.n, a.signature, 65));
    a.signature_n = 65;
    BUF vrs = { 0 };
    authorization_call(&vrs, &a);
    assert_buf_is(&vrs, v, "vrs");

    const size_t length_at = 4 + 8 * 32 - 1;
    BUF bytes = { 0 };
    a.signature_n = 66;
    authorization_call(&bytes, &a);
    assert_int_equal(bytes.p[length_at], 66);
    bytes.p[length_at] = 65;
    assert_buf_is(&bytes, v, "bytes");
}

static void authorizations(void **state)
{
    (void)state;
    const json_t *list = json_object_get(vectors, "authorizations");
    size_t with_calldata = 0;
    assert_int_equal(json_array_size(list), 14);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        check_authorization(v);
        if (json_object_get(v, "vrs")) {
            check_calldata(v);
            with_calldata++;
        }
    }
    assert_int_equal(with_calldata, 8);
}

enum verdict { UNREADABLE, BY_PAYER, BY_OTHER };

/* The signature `name` over the first authorization. */
static enum verdict judge(const char *name, uint8_t *ret_v)
{
    const json_t *first = json_array_get(json_object_get(vectors, "authorizations"), 0);
    const struct token t = token_in(first);
    const struct authorization a = authorization_in(first);
    const struct hash32 digest = authorization_digest(&a, &t);
    BUF bytes = { 0 };
    bytes_in(json_object_get(vectors, "signatures_of_first"), name, &bytes);
    struct signature s;
    struct address who;
    if (!signature_read((const uint8_t *)bytes.p, bytes.n, &s))
        return UNREADABLE;
    *ret_v = s.v;
    return signature_recover(&s, &digest, &who) && address_eq(&who, &a.from) ? BY_PAYER : BY_OTHER;
}

static void odd_signatures(void **state)
{
    (void)state;
    uint8_t v = 0;
    assert_int_equal(judge("base", &v), BY_PAYER);
    v = 0;
    assert_int_equal(judge("vZeroOne", &v), BY_PAYER);
    assert_int_equal(v, 27);
    assert_int_equal(judge("highS", &v), UNREADABLE);
    assert_int_equal(judge("eip2098Compact64", &v), UNREADABLE);
    assert_int_equal(judge("erc6492Wrapped", &v), UNREADABLE);
    assert_int_equal(judge("flippedNibble", &v), BY_OTHER);
}

/* ---- transactions ---- */

static void transactions(void **state)
{
    (void)state;
    const json_t *list = json_object_get(vectors, "transactions");
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i), *j = json_object_get(v, "tx");
        BUF data = { 0 };
        bytes_in(j, "data", &data);
        const struct transaction tx = {
            .chain_id = u64_in(j, "chainId"),
            .nonce = u64_in(j, "nonce"),
            .gas = u64_in(j, "gas"),
            .max_fee = amount_in(j, "maxFeePerGas"),
            .max_tip = amount_in(j, "maxPriorityFeePerGas"),
            .value = amount_in(j, "value"),
            .to = address_in(j, "to"),
            .data = { data.p, data.n },
        };
        const struct key k = key_in(v);
        assert_string_equal(address_checksum(&k.address).s, text_of(v, "from").p);
        BUF raw = { 0 };
        struct hash32 hash;
        assert_true(transaction_sign(&tx, &k, &raw, &hash));
        assert_buf_is(&raw, v, "raw");
        assert_hash_is(hash, v, "hash");
    }
}

static void topics(void **state)
{
    (void)state;
    const json_t *j = json_object_get(vectors, "topics");
    assert_hash_is(topic_transfer, j, "Transfer");
    assert_hash_is(topic_authorization_used, j, "AuthorizationUsed");
    assert_hash_is(topic_authorization_canceled, j, "AuthorizationCanceled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(authorizations),
        cmocka_unit_test(odd_signatures),
        cmocka_unit_test(transactions),
        cmocka_unit_test(topics),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
