/* Tempo's transaction: what official clients signed, read and made again byte for byte, and each way to spell it
 * otherwise refused. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "chain/tempo_tx.h"

static json_t *vectors;

static int load(void **state)
{
    (void)state;
    json_error_t e;
    vectors = json_load_file(VECTORS_DIR "/mpp.json", JSON_REJECT_DUPLICATES, &e);
    return vectors ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(vectors);
    return 0;
}

static const json_t *vector(const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(vectors, "transactions"), i, v)
        if (strcmp(json_str(v, "name"), name) == 0)
            return v;
    fail_msg("no vector %s", name);
    return NULL;
}

static void bytes_of(const json_t *v, const char *key, struct buf *ret)
{
    const struct slice s = json_slice(v, key);
    OWNED uint8_t *p = mem_resize(NULL, s.n, 1);
    size_t n = 0;
    assert_true(s.p && hex_read_any(s.p, s.n, p, s.n, &n));
    buf_add(ret, p, n);
}

static enum tempo_rc read_buf(const struct buf *b, struct tempo_signed *ret)
{
    memset(ret, 0xee, sizeof *ret);
    OWNED uint8_t *copy = mem_resize(NULL, b->n ? b->n : 1, 1); /* exact, so that the sanitizer sees a byte too far */
    memcpy(copy, b->p, b->n);
    const enum tempo_rc rc = tempo_read(copy, b->n, ret);
    if (rc == TEMPO_OK)
        ret->tx.call.input.p = b->p + (ret->tx.call.input.p - (const char *)copy);
    return rc;
}

/* ---- the vectors ---- */

static void is_hex(const void *p, size_t n, const char *want)
{
    BUF b = { 0 };
    buf_hex(&b, p, n);
    assert_string_equal(b.p, want);
}

static void is_u64(uint64_t v, const json_t *want)
{
    assert_true(json_is_null(want) ? v == 0 : json_is_integer(want) && json_integer_value(want) == (json_int_t)v);
}

static void is_nonce_key(struct amount key, const char *want)
{
    uint8_t be[32];
    char hex[67];
    amount_to_be(key, be);
    hex_write(hex, be, sizeof be);
    const char *digits = hex + 2;
    while (digits[0] == '0' && digits[1])
        digits++;
    assert_string_equal(digits, want + 2);
}

static void check_vector(const json_t *v)
{
    const json_t *d = json_object_get(v, "decoded"), *call = json_array_get(json_object_get(d, "calls"), 0);
    BUF raw = { 0 };
    struct tempo_signed t;
    bytes_of(v, "raw", &raw);
    assert_int_equal(read_buf(&raw, &t), TEMPO_OK);
    is_u64(t.tx.chain_id, json_object_get(d, "chain_id"));
    is_u64(t.tx.gas, json_object_get(d, "gas_limit"));
    is_u64(t.tx.nonce, json_object_get(d, "nonce"));
    is_u64(t.tx.valid_before, json_object_get(d, "valid_before"));
    is_u64(t.tx.valid_after, json_object_get(d, "valid_after"));
    is_u64(t.tx.access_count, json_object_get(d, "access_list_len"));
    is_u64(t.tx.authorization_count, json_object_get(d, "authorization_list_len"));
    is_u64(amount_u64_cap(t.tx.max_fee), json_object_get(d, "max_fee_per_gas"));
    is_u64(amount_u64_cap(t.tx.max_tip), json_object_get(d, "max_priority_fee_per_gas"));
    is_nonce_key(t.tx.nonce_key, json_str(d, "nonce_key"));
    assert_int_equal(t.tx.call_count, json_array_size(json_object_get(d, "calls")));
    assert_false(t.tx.call.creates);
    assert_true(amount_is_zero(t.tx.call.value));
    is_hex(t.tx.call.to.b, 20, json_str(call, "to"));
    is_hex(t.tx.call.input.p, t.tx.call.input.n, json_str(call, "input"));
    assert_true(t.tx.has_fee_token == json_is_string(json_object_get(d, "fee_token")));
    assert_false(t.tx.has_key_authorization);
    is_hex(t.digest.b, 32, json_str(d, "sender_signing_hash"));
    is_hex(t.hash.b, 32, json_str(d, "tx_hash_canonical"));
    const bool p256 = strcmp(json_str(d, "signature_kind"), "p256") == 0;
    assert_int_equal(t.kind, p256 ? TEMPO_P256 : TEMPO_SECP256K1);
    assert_true(t.has_sender);
    is_hex(t.sender.b, 20, json_str(d, p256 ? "p256_address" : "recovered_sender"));
}

static void test_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum tempo_fees fees;
    } good[] = {
        { "pull_secp256k1_expiring_nonce", TEMPO_FEES_SENDER },
        { "pull_sponsored_final_broadcast_0x76", TEMPO_FEES_SPONSORED },
        { "sequential_nonce_no_valid_before", TEMPO_FEES_SENDER },
        { "p256_signature", TEMPO_FEES_SENDER },
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        BUF raw = { 0 };
        struct tempo_signed t;
        check_vector(vector(good[i].name));
        bytes_of(vector(good[i].name), "raw", &raw);
        assert_int_equal(read_buf(&raw, &t), TEMPO_OK);
        assert_int_equal(t.tx.fees, good[i].fees);
    }
    BUF other = { 0 };
    struct tempo_signed t;
    bytes_of(vector("pull_sponsored_credential_0x78_form"), "raw", &other);
    assert_int_equal(read_buf(&other, &t), TEMPO_TYPE);
}

/* The name of a transaction is one, however its v is spelled. */
static void test_v(void **state)
{
    (void)state;
    BUF raw = { 0 };
    struct tempo_signed as_sent, as_01;
    bytes_of(vector("pull_secp256k1_expiring_nonce"), "raw", &raw);
    assert_int_equal(read_buf(&raw, &as_sent), TEMPO_OK);
    raw.p[raw.n - 1] = (char)(raw.p[raw.n - 1] - 27);
    assert_int_equal(read_buf(&raw, &as_01), TEMPO_OK);
    assert_true(hash_eq(&as_sent.hash, &as_01.hash));
    assert_true(address_eq(&as_sent.sender, &as_01.sender));
    const struct hash32 bytes = keccak256(raw.p, raw.n);
    assert_false(hash_eq(&bytes, &as_01.hash));
    raw.p[raw.n - 1] = 29;
    assert_int_equal(read_buf(&raw, &as_01), TEMPO_SIGNATURE);
}

/* ---- made again ---- */

static struct key payer(void)
{
    const struct slice s = json_slice(json_object_get(json_object_get(vectors, "setup"), "payer"), "private_key");
    uint8_t secret[32];
    struct key k = { .secret = { 0 } };
    assert_true(hex_read(s.p, s.n, secret, sizeof secret) && key_from_secret(secret, &k));
    return k;
}

static void test_sign(void **state)
{
    (void)state;
    static const char *const names[] = { "pull_secp256k1_expiring_nonce", "sequential_nonce_no_valid_before" };
    for (size_t i = 0; i < COUNT(names); i++) {
        BUF raw = { 0 };
        BUF again = { 0 };
        struct tempo_signed t;
        struct hash32 hash;
        const struct key k = payer();
        bytes_of(vector(names[i]), "raw", &raw);
        assert_int_equal(read_buf(&raw, &t), TEMPO_OK);
        assert_true(tempo_sign(&t.tx, &k, &again, &hash));
        assert_int_equal(again.n, raw.n);
        assert_memory_equal(again.p, raw.p, raw.n);
        assert_true(hash_eq(&hash, &t.hash));
    }
}

static struct tempo_tx refund(struct slice input)
{
    const struct hash32 debt = { { 0x5b, 1, 2, 3 } };
    struct tempo_tx tx = { .chain_id = 4217,
                           .gas = 300000,
                           .nonce = 0,
                           .max_tip = amount_of(1),
                           .max_fee = amount_of(20000000000u),
                           .nonce_key = tempo_key_of(&debt),
                           .valid_before = 1800000300,
                           .call_count = 1 };
    memset(tx.call.to.b, 0x20, sizeof tx.call.to.b);
    tx.call.input = input;
    return tx;
}

static void test_refund(void **state)
{
    (void)state;
    const struct key k = payer();
    const struct tempo_transfer transfer = { { { 9 } }, amount_of(250000), { { 7, 7 } } };
    BUF data = { 0 };
    BUF raw = { 0 };
    struct hash32 hash;
    struct tempo_signed t;
    struct tempo_transfer said;
    tempo_transfer_call(&data, &transfer);
    struct tempo_tx tx = refund((struct slice){ data.p, data.n });
    tx.has_fee_token = true;
    tx.fee_token = (struct address){ { 0x20, 0xc0 } };
    assert_true(tempo_sign(&tx, &k, &raw, &hash));
    assert_int_equal(read_buf(&raw, &t), TEMPO_OK);
    assert_true(hash_eq(&hash, &t.hash) && address_eq(&t.sender, &k.address));
    assert_true(t.tx.has_fee_token && address_eq(&t.tx.fee_token, &tx.fee_token));
    assert_int_equal(amount_cmp(t.tx.nonce_key, tx.nonce_key), 0);
    assert_true(tempo_transfer_read(t.tx.call.input, &said));
    assert_true(address_eq(&said.to, &transfer.to) && hash_eq(&said.memo, &transfer.memo));
    assert_int_equal(amount_cmp(said.amount, transfer.amount), 0);
    data.p[4] = 1; /* an address has no more than 20 bytes */
    assert_false(tempo_transfer_read((struct slice){ data.p, data.n }, &said));
    data.p[4] = 0;
    assert_false(tempo_transfer_read((struct slice){ data.p, data.n - 1 }, &said));
    data.p[0] = 0;
    assert_false(tempo_transfer_read((struct slice){ data.p, data.n }, &said));
}

static void test_nonce_keys(void **state)
{
    (void)state;
    struct hash32 h = { { 0 } };
    uint8_t be[32];
    memset(h.b, 0xff, sizeof h.b);
    amount_to_be(tempo_expiring_key(), be);
    assert_memory_equal(be, h.b, 32);
    amount_to_be(tempo_key_of(&h), be);
    assert_int_equal(be[0], 1);
    assert_memory_equal(be + 1, h.b + 1, 31);
}

static void test_nonce_call(void **state)
{
    (void)state;
    BUF call = { 0 };
    BUF text = { 0 };
    const struct address who = { { 0x11 } };
    tempo_nonce_call(&call, &who, amount_of(0xabcd));
    buf_hex(&text, call.p, call.n);
    assert_string_equal(text.p, "0x895358030000000000000000000000001100000000000000000000000000000000000000"
                                "000000000000000000000000000000000000000000000000000000000000abcd");
    assert_string_equal(address_lower(&tempo_nonces).s, "0x4e4f4e4345000000000000000000000000000000");
}

/* ---- other spellings ---- */

/* A list of what was added, as a transaction. */
static enum tempo_rc read_items(const struct buf *items)
{
    BUF raw = { 0 };
    struct tempo_signed t;
    const size_t n = items->n; /* between 256 and 65,535 in these tests, or short */
    buf_puts(&raw, "\x76");
    if (n <= 55)
        buf_add(&raw, (const char[]){ (char)(0xc0 + n) }, 1);
    else if (n < 256)
        buf_add(&raw, (const char[]){ '\xf8', (char)n }, 2);
    else
        buf_add(&raw, (const char[]){ '\xf9', (char)(n >> 8), (char)n }, 3);
    buf_add(&raw, items->p, items->n);
    return read_buf(&raw, &t);
}

/* The items of a good one, apart. */
enum { GOOD_ITEMS = 14 };
static const char *const good_items[GOOD_ITEMS] = {
    "82a5bf",
    "01",
    "02",
    "830c0a08",
    "d8d7"
    "9420c0000000000000000000000000000000000000"
    "80"
    "80",
    "c0",
    "80",
    "80",
    "80",
    "80",
    "80",
    "80",
    "c0",
    NULL,
};

static void add_hex(struct buf *b, const char *digits)
{
    OWNED char *hex = str_format("0x%s", digits);
    uint8_t bytes[512];
    size_t n;
    assert_true(hex_read_any(hex, strlen(hex), bytes, sizeof bytes, &n));
    buf_add(b, bytes, n);
}

/* With one item spelled otherwise, and more behind the last but the signature. */
static enum tempo_rc read_with(size_t which, const char *digits, const char *more)
{
    BUF items = { 0 };
    BUF raw = { 0 };
    struct tempo_signed t;
    bytes_of(vector("sequential_nonce_no_valid_before"), "raw", &raw);
    assert_int_equal(read_buf(&raw, &t), TEMPO_OK);
    for (size_t i = 0; i + 1 < GOOD_ITEMS; i++)
        add_hex(&items, i == which ? digits : good_items[i]);
    add_hex(&items, more);
    if (which == GOOD_ITEMS - 1)
        add_hex(&items, digits);
    else
        buf_add(&items, raw.p + raw.n - 67, 67); /* a signature, of whatever key it is now */
    return read_items(&items);
}

static void test_spellings(void **state)
{
    (void)state;
    static const struct {
        size_t item;
        const char *digits;
        enum tempo_rc rc;
    } other[] = {
        { 0, "82a5bf", TEMPO_OK },
        { 0, "80", TEMPO_OK },                            /* zero; which chain is asked elsewhere */
        { 0, "00", TEMPO_FIELD },                         /* zero has no byte */
        { 0, "8200bf", TEMPO_FIELD },                     /* a zero in front */
        { 0, "8105", TEMPO_RLP },                         /* a small byte is its own spelling */
        { 0, "b802a5bf", TEMPO_RLP },                     /* a long head for a short string */
        { 0, "89010000000000000000", TEMPO_FIELD },       /* over 64 bits */
        { 0, "c20102", TEMPO_FIELD },
        { 1, "91" "0100000000000000" "0000000000000000" "00", TEMPO_FIELD }, /* over 128 bits */
        { 4, "c0", TEMPO_NO_CALL },
        { 4, "80", TEMPO_FIELD },
        { 4, "c180", TEMPO_FIELD },
        { 4, "d7d6" "9420c0000000000000000000000000000000000000" "80", TEMPO_FIELD },     /* no input */
        { 4, "d9d8" "9420c0000000000000000000000000000000000000" "808080", TEMPO_FIELD }, /* one more */
        { 4, "d7d6" "9320c00000000000000000000000000000000000" "8080", TEMPO_FIELD },     /* 19 bytes */
        { 4, "c4c3808080", TEMPO_OK },                    /* creates a contract: read, and refused elsewhere */
        { 4, "d8d7" "9420c0000000000000000000000000000000000000" "80" "c0", TEMPO_FIELD },
        { 5, "80", TEMPO_FIELD },
        { 5, "c180", TEMPO_FIELD },
        { 5, "c1c0", TEMPO_OK },
        { 5, "c1b8", TEMPO_FIELD },
        { 10, "9420c0000000000000000000000000000000000000", TEMPO_OK },
        { 10, "9320c00000000000000000000000000000000000", TEMPO_FIELD },
        { 11, "00", TEMPO_OK },                           /* a sponsor is to sign */
        { 11, "01", TEMPO_FIELD },
        { 11, "c3010203", TEMPO_OK },
        { 11, "c20102", TEMPO_FIELD },
        { 11, "c401020304", TEMPO_FIELD },
        { 11, "9420c0000000000000000000000000000000000000", TEMPO_FIELD },
        { 12, "80", TEMPO_FIELD },
        { 13, "80", TEMPO_SIGNATURE },
        { 13, "820506", TEMPO_OK },                       /* a configurable account: its form is the chain's matter */
        { 13, "820606", TEMPO_SIGNATURE },
        { 13, "c0", TEMPO_ITEMS },
    };
    for (size_t i = 0; i < COUNT(other); i++) {
        const enum tempo_rc rc = read_with(other[i].item, other[i].digits, "");
        if (rc != other[i].rc)
            fail_msg("item %zu as %s: %d", other[i].item, other[i].digits, (int)rc);
    }
    assert_int_equal(read_with(99, "", "c20102"), TEMPO_OK);    /* a key authorization */
    assert_int_equal(read_with(99, "", "80"), TEMPO_ITEMS);     /* none, and an item all the same */
    assert_int_equal(read_with(99, "", "c0c0"), TEMPO_ITEMS);
    assert_int_equal(read_with(99, "", "c041"), TEMPO_ITEMS);
    assert_int_equal(read_with(12, "", ""), TEMPO_ITEMS);
}

static void test_signatures(void **state)
{
    (void)state;
    char digits[2 * 3000 + 1];
    static const struct {
        const char *head;
        size_t bytes;
        enum tempo_rc rc;
    } kinds[] = {
        { "01", 130, TEMPO_OK },       { "01", 129, TEMPO_SIGNATURE }, { "01", 131, TEMPO_SIGNATURE },
        { "02", 129, TEMPO_OK },       { "02", 128, TEMPO_SIGNATURE }, { "02", 2049, TEMPO_OK },
        { "02", 2050, TEMPO_SIGNATURE },
        { "03", 1 + 20 + 65, TEMPO_OK }, { "04", 1 + 20 + 65, TEMPO_OK }, { "03", 1 + 20 + 64, TEMPO_SIGNATURE },
        { "07", 130, TEMPO_SIGNATURE }, { "00", 65, TEMPO_SIGNATURE } /* r is zero */,
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const size_t n = kinds[i].bytes;
        const int head = snprintf(digits, sizeof digits, n < 256 ? "b8%02zx" : "b9%04zx", n);
        memset(digits + head, '0', 2 * n);
        memcpy(digits + head, kinds[i].head, 2);
        digits[(size_t)head + 2 * n] = 0;
        BUF items = { 0 };
        for (size_t k = 0; k + 1 < GOOD_ITEMS; k++)
            add_hex(&items, good_items[k]);
        OWNED char *hex = str_format("0x%s", digits);
        OWNED uint8_t *bytes = mem_new(n + 8);
        size_t got;
        assert_true(hex_read_any(hex, strlen(hex), bytes, n + 8, &got));
        buf_add(&items, bytes, got);
        const enum tempo_rc rc = read_items(&items);
        if (rc != kinds[i].rc)
            fail_msg("%s, %zu bytes: %d", kinds[i].head, n, (int)rc);
    }
}

static void test_ends(void **state)
{
    (void)state;
    BUF raw = { 0 };
    struct tempo_signed t;
    bytes_of(vector("pull_secp256k1_expiring_nonce"), "raw", &raw);
    const size_t n = raw.n;
    for (raw.n = 0; raw.n < n; raw.n++)
        assert_int_not_equal(read_buf(&raw, &t), TEMPO_OK);
    buf_add(&raw, "", 1);
    assert_int_equal(read_buf(&raw, &t), TEMPO_RLP);
}

/* ---- whatever comes: it is refused or read, and what is read names its sender ---- */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static size_t below(size_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % n);
}

static void mutate(struct buf *b)
{
    for (size_t changes = 1 + below(3); changes > 0 && b->n > 0; changes--) {
        const size_t at = below(b->n);
        switch (below(4)) {
        case 0:
            b->p[at] = (char)below(256);
            break;
        case 1:
            b->p[at] = (char)(b->p[at] ^ 1 << below(8));
            break;
        case 2:
            b->n = at;
            break;
        default:
            memmove(b->p + at, b->p + below(at + 1), b->n - at > 8 ? 8 : 0);
            break;
        }
    }
}

static void test_mutations(void **state)
{
    (void)state;
    static const char *const names[] = { "pull_secp256k1_expiring_nonce", "pull_sponsored_final_broadcast_0x76",
                                         "p256_signature" };
    size_t good = 0;
    for (int i = 0; i < 20000; i++) {
        BUF raw = { 0 };
        struct tempo_signed t;
        struct tempo_transfer transfer;
        bytes_of(vector(names[i % 3]), "raw", &raw);
        mutate(&raw);
        if (read_buf(&raw, &t) != TEMPO_OK)
            continue;
        good++;
        assert_true(t.tx.call_count > 0);
        assert_true(t.has_sender || t.kind > TEMPO_P256);
        (void)!tempo_transfer_read(t.tx.call.input, &transfer);
    }
    assert_true(good > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),    cmocka_unit_test(test_v),          cmocka_unit_test(test_sign),
        cmocka_unit_test(test_refund),     cmocka_unit_test(test_nonce_keys), cmocka_unit_test(test_nonce_call),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_signatures), cmocka_unit_test(test_ends),       cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
