#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

static void slices(void **state)
{
    (void)state;
    assert_true(slice_is(SLICE("abc"), "abc"));
    assert_false(slice_is(SLICE("abc"), "abcd"));
    assert_false(slice_is(SLICE("abc\0d"), "abc"));
    assert_true(slice_is(slice_of(NULL), ""));
    assert_int_equal(slice_of("xyz").n, 3);
}

static void buffer_grows(void **state)
{
    (void)state;
    BUF b = { 0 };
    BUF expected = { 0 };
    buf_add(&b, NULL, 0);
    assert_string_equal(b.p, "");
    for (int i = 0; i < 1000; i++) {
        buf_printf(&b, "%d,", i);
        char text[16];
        snprintf(text, sizeof text, "%d,", i);
        buf_puts(&expected, text);
    }
    assert_int_equal(b.n, strlen(b.p));
    assert_string_equal(b.p, expected.p);
    buf_printf(&b, "%0500d", 7); /* longer than the room left */
    assert_int_equal(b.n, expected.n + 500);
    assert_int_equal(b.p[b.n - 1], '7');
    assert_int_equal(b.p[b.n], '\0');
    buf_done(&b);
    assert_null(b.p);
    buf_hex(&b, "\x00\xff", 2);
    assert_string_equal(b.p, "0x00ff");
}

static void hex_is_exact(void **state)
{
    (void)state;
    uint8_t b[4] = { 9, 9, 9, 9 };
    assert_true(hex_read("0x00aBfF10", 10, b, 4));
    assert_memory_equal(b, "\x00\xab\xff\x10", 4);
    static const char *const bad[] = {
        "",         "0",          "0x",          "00aBfF10",   "0x00aBfF1",  "0x00aBfF100", "0x00aBfF1000",
        "0x00aBfF", "0X00aBfF10", " 0x00aBfF10", "0x00aBfF1g", "0x00aBfF1 ", "0x00aBfF1:",  "0x00aBfF1@",
        "0x-1aBfF", "0x00aBfF\n", "1x00aBfF10",  "0x0x00aBfF", "00x0aBfF10", "0x00aBfF1`",  "0x00aBfF1/",
    };
    const uint8_t before[4] = { 9, 9, 9, 9 };
    memcpy(b, before, 4);
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (hex_read(bad[i], strlen(bad[i]), b, 4))
            fail_msg("taken: '%s'", bad[i]);
        assert_memory_equal(b, before, 4);
    }
    assert_false(hex_read("0x00aB\0F10", 10, b, 4));
}

static void hex_of_any_length(void **state)
{
    (void)state;
    uint8_t b[3];
    size_t n = 99;
    assert_true(hex_read_any("0x", 2, b, 3, &n));
    assert_int_equal(n, 0);
    assert_true(hex_read_any("0x010203", 8, b, 3, &n));
    assert_int_equal(n, 3);
    assert_memory_equal(b, "\1\2\3", 3);
    assert_false(hex_read_any("0x01020304", 10, b, 3, &n));
    assert_false(hex_read_any("0x1", 3, b, 3, &n));
    assert_int_equal(n, 3);
    char text[9];
    hex_write(text, "\xde\xad\x0f", 3);
    assert_string_equal(text, "0xdead0f");
    hex_write_bare(text, "\xde\xad\x0f", 3);
    assert_string_equal(text, "dead0f");
}

static void addresses(void **state)
{
    (void)state;
    const char *mixed = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    struct address a, b;
    assert_true(address_read(mixed, 42, &a));
    assert_string_equal(address_lower(&a).s, "0x70997970c51812dc3a010c7d01b50e0d17dc79c8");
    assert_true(address_read(address_lower(&a).s, 42, &b));
    assert_true(address_eq(&a, &b));
    b.b[19] ^= 1;
    assert_false(address_eq(&a, &b));
    assert_false(address_read(mixed, 41, &a));

    const char *hash = "0x4242424242424242424242424242424242424242424242424242424242424201";
    struct hash32 h, k;
    assert_true(hash_read(hash, 66, &h));
    assert_string_equal(hash_text(&h).s, hash);
    assert_false(hash_read(hash, 64, &h));
    k = h;
    assert_true(hash_eq(&h, &k));
    k.b[31] = 0;
    assert_false(hash_eq(&h, &k));
}

static void digests(void **state)
{
    (void)state;
    char text[65];
    hex_write_bare(text, sha256("abc", 3).b, 32);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hex_write_bare(text, sha256(NULL, 0).b, 32);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    /* RFC 4231, case 2 */
    hex_write_bare(text, hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28).b, 32);
    assert_string_equal(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void secrets(void **state)
{
    (void)state;
    assert_true(bytes_equal_ct("abcd", "abcd", 4));
    assert_false(bytes_equal_ct("abcd", "abcx", 4));
    assert_true(bytes_equal_ct("a", "b", 0));
    uint8_t a[32] = { 0 }, b[32] = { 0 };
    const uint8_t zeros[32] = { 0 };
    bytes_random(a, sizeof a);
    bytes_random(b, sizeof b);
    assert_memory_not_equal(a, b, 32);
    assert_memory_not_equal(a, zeros, 32);
    bytes_wipe(a, sizeof a);
    assert_memory_equal(a, zeros, 32);
}

static void memory(void **state)
{
    (void)state;
    OWNED char *a = str_format("%s-%d", "x", 7);
    assert_string_equal(a, "x-7");
    OWNED char *b = mem_copy("abc", 2);
    assert_string_equal(b, "ab");
    OWNED char *moved = MOVE(b);
    assert_null(b);
    assert_string_equal(moved, "ab");
    assert_null(str_copy(NULL));
    OWNED int *ints = mem_resize(NULL, 4, sizeof *ints);
    ints = mem_resize(ints, 0, sizeof *ints);
    assert_non_null(ints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),       cmocka_unit_test(buffer_grows),
        cmocka_unit_test(hex_is_exact), cmocka_unit_test(hex_of_any_length),
        cmocka_unit_test(addresses),    cmocka_unit_test(digests),
        cmocka_unit_test(secrets),      cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
