#include "test.h"

#include "chain/internal.h"

static void assert_hex(const struct buf *b, const char *hex)
{
    BUF text = { 0 };
    buf_hex(&text, b->p, b->n);
    assert_string_equal(text.p, hex);
}

static void strings(void **state)
{
    (void)state;
    static const struct {
        struct slice in;
        const char *out;
    } rows[] = {
        { SLICE_INIT(""), "0x80" },       { SLICE_INIT("\x00"), "0x00" },      { SLICE_INIT("\x7f"), "0x7f" },
        { SLICE_INIT("\x80"), "0x8180" }, { SLICE_INIT("dog"), "0x83646f67" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        BUF b = { 0 };
        rlp_bytes(&b, rows[i].in.p, rows[i].in.n);
        assert_hex(&b, rows[i].out);
    }
}

/* The heads around each length at which they grow. */
static void lengths(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        const char *string_head, *list_head;
    } rows[] = {
        { 54, "0xb6", "0xf6" },
        { 55, "0xb7", "0xf7" },
        { 56, "0xb838", "0xf838" },
        { 255, "0xb8ff", "0xf8ff" },
        { 256, "0xb90100", "0xf90100" },
        { 65535, "0xb9ffff", "0xf9ffff" },
        { 65536, "0xba010000", "0xfa010000" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        BUF items = { 0 };
        BUF string = { 0 };
        BUF list = { 0 };
        OWNED uint8_t *zeros = mem_new(rows[i].n);
        buf_add(&items, zeros, rows[i].n);
        rlp_bytes(&string, zeros, rows[i].n);
        rlp_list(&list, &items);
        const struct buf string_head = { string.p, string.n - rows[i].n, 0 };
        const struct buf list_head = { list.p, list.n - rows[i].n, 0 };
        assert_hex(&string_head, rows[i].string_head);
        assert_hex(&list_head, rows[i].list_head);
        assert_memory_equal(list.p + list_head.n, zeros, rows[i].n);
    }
}

static void integers(void **state)
{
    (void)state;
    BUF b = { 0 };
    rlp_u64(&b, 0);
    rlp_u64(&b, 127);
    rlp_u64(&b, 128);
    rlp_u64(&b, 256);
    rlp_u64(&b, UINT64_MAX);
    rlp_integer(&b, (const uint8_t *)"\x00\x00\x01\x00", 4);
    rlp_integer(&b, (const uint8_t *)"\x00\x00", 2);
    assert_hex(&b, "0x807f818082010088ffffffffffffffff82010080");
}

/* One signature in about 85 has an r or an s that begins with a zero byte; nodes refuse it unless it is left out. */
static void short_signatures(void **state)
{
    (void)state;
    const size_t r_at = 1 + 2 + 36 + 1; /* behind the type, the list's head, the fields below, and the parity */
    struct key k;
    assert_true(key_from_secret((const uint8_t *)"a secret of thirty-two bytes....", &k));
    size_t short_r = 0, short_s = 0;
    for (uint64_t nonce = 1000; nonce < 3000; nonce++) {
        const struct transaction tx = { .chain_id = 84532, .nonce = nonce, .gas = 21000 };
        BUF raw = { 0 };
        struct hash32 hash;
        assert_true(transaction_sign(&tx, &k, &raw, &hash));
        const uint8_t *r = (const uint8_t *)raw.p + r_at, *s = r + 1 + (r[0] - 0x80);
        assert_true(r[0] > 0x80 && r[0] <= 0xa0 && r[1] != 0);
        assert_true(s[0] > 0x80 && s[0] <= 0xa0 && s[1] != 0);
        assert_ptr_equal(s + 1 + (s[0] - 0x80), raw.p + raw.n);
        short_r += r[0] < 0xa0;
        short_s += s[0] < 0xa0;
    }
    assert_true(short_r > 0 && short_s > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),
        cmocka_unit_test(lengths),
        cmocka_unit_test(integers),
        cmocka_unit_test(short_signatures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
