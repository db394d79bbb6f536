#include "test.h"

#include <string.h>

#include "chain/chain.h"

/* A text of words: hex digits and spaces; a short word is filled with zeros from the left. */
static void add_words(struct buf *b, const char *text)
{
    while (*text) {
        char hex[67] = "0x0000000000000000000000000000000000000000000000000000000000000000";
        uint8_t word[32];
        const size_t n = strcspn(text, " ");
        assert_true(n <= 64);
        memcpy(hex + 66 - n, text, n);
        assert_true(hex_read(hex, 66, word, 32));
        buf_add(b, word, 32);
        text += n + (text[n] == ' ');
    }
}

static void assert_selector(const struct buf *b, const char *function)
{
    assert_memory_equal(b->p, keccak256(function, strlen(function)).b, 4);
}

static void selectors(void **state)
{
    (void)state;
    struct authorization a = { .signature_n = 65 };
    BUF vrs = { 0 };
    BUF bytes = { 0 };
    authorization_call(&vrs, &a);
    assert_selector(&vrs,
                    "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)");
    a.signature_n = 64;
    authorization_call(&bytes, &a);
    assert_selector(&bytes, "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)");
}

static void empty_and_long_signatures(void **state)
{
    (void)state;
    struct authorization a = { .signature_n = 0 };
    BUF none = { 0 };
    BUF expected = { 0 };
    authorization_call(&none, &a);
    buf_puts(&expected, "\xcf\x09\x29\x95");
    add_words(&expected, "0 0 0 0 0 0 e0 0");
    assert_int_equal(none.n, expected.n);
    assert_memory_equal(none.p, expected.p, expected.n);
    BUF full = { 0 };
    a.signature_n = sizeof a.signature;
    authorization_call(&full, &a);
    assert_int_equal(full.n, 4 + 8 * 32 + sizeof a.signature);
}

static void multicall(void **state)
{
    (void)state;
    const struct address to = { { 0xaa, [19] = 0xbb } };
    const struct call3 calls[] = { { to, SLICE("\x01\x02\x03\x04") }, { to, { NULL, 0 } } };
    BUF b = { 0 };
    BUF expected = { 0 };
    multicall_call(&b, calls, 2);
    assert_selector(&b, "aggregate3((address,bool,bytes)[])");
    buf_add(&expected, b.p, 4);
    add_words(&expected, "20 2 40 e0");
    add_words(&expected, "aa000000000000000000000000000000000000bb 1 60 4 "
                         "0102030400000000000000000000000000000000000000000000000000000000");
    add_words(&expected, "aa000000000000000000000000000000000000bb 1 60 0");
    assert_int_equal(b.n, expected.n);
    assert_memory_equal(b.p, expected.p, expected.n);
}

/* Read from a copy of exactly its size, so that a sanitizer sees any step outside. */
static bool reads(const void *p, size_t n, struct call3_result *ret, size_t count)
{
    OWNED char *copy = mem_resize(NULL, n, 1);
    if (n)
        memcpy(copy, p, n);
    const bool ok = multicall_read((struct slice){ copy, n }, ret, count);
    for (size_t i = 0; ok && i < count; i++)
        assert_true(ret[i].data.p >= copy && ret[i].data.n <= n && ret[i].data.p + ret[i].data.n <= copy + n);
    return ok;
}

#define ITEM_1 "1 40 20 2a"
#define ITEM_2 "0 40 4 08c379a000000000000000000000000000000000000000000000000000000000"
#define REPLY "20 2 40 c0 " ITEM_1 " " ITEM_2

static void replies(void **state)
{
    (void)state;
    struct call3_result r[3];
    BUF b = { 0 };
    add_words(&b, REPLY);
    assert_true(multicall_read((struct slice){ b.p, b.n }, r, 2));
    assert_true(r[0].ok);
    assert_int_equal(r[0].data.n, 32);
    assert_int_equal(r[0].data.p[31], 0x2a);
    assert_false(r[1].ok);
    assert_true(slice_is(r[1].data, "\x08\xc3\x79\xa0"));
    assert_false(reads(b.p, b.n, r, 1));
    assert_false(reads(b.p, b.n, r, 3));
    for (size_t n = 0; n < b.n - 28; n++) /* the last 28 bytes are padding */
        assert_false(reads(b.p, n, r, 2));
    assert_true(reads(b.p, b.n - 28, r, 2));

    BUF none = { 0 };
    add_words(&none, "20 0");
    assert_true(reads(none.p, none.n, r, 0));
    assert_false(reads(none.p, none.n, r, 1));
}

static void lying_replies(void **state)
{
    (void)state;
#define ONES "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    static const char *const bad[] = {
        "",
        "20",
        "20 2",
        "20 2 40",
        "21 2 40 c0 " ITEM_1 " " ITEM_2,
        ONES " 2 40 c0 " ITEM_1 " " ITEM_2,
        "20 " ONES " 40 c0 " ITEM_1 " " ITEM_2,
        "20 2 " ONES " c0 " ITEM_1 " " ITEM_2,
        "20 2 40 ffffffffffffffff " ITEM_1 " " ITEM_2,
        "20 2 40 ffffffffffffffe0 " ITEM_1 " " ITEM_2,
        "20 2 40 1a1 " ITEM_1 " " ITEM_2,
        "20 2 40 c0 2 40 20 2a " ITEM_2,
        "20 2 40 c0 " ONES " 40 20 2a " ITEM_2,
        "20 2 40 c0 1 ffffffffffffffc0 20 2a " ITEM_2,
        "20 2 40 c0 1 40 ffffffffffffffff 2a " ITEM_2,
        "20 2 40 c0 1 40 7fffffffffffffff 2a " ITEM_2,
        "20 2 40 c0 1 40 a1 2a " ITEM_2,
        "20 2 40 c0 1 10000000000000040 20 2a " ITEM_2,
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct call3_result r[2];
        BUF b = { 0 };
        add_words(&b, bad[i]);
        if (reads(b.p, b.n, r, 2))
            fail_msg("taken: %s", bad[i]);
    }
}

/* Whatever byte is changed, nothing outside is read; whether it is still a reply is the other tests' matter. */
static void any_byte_changed(void **state)
{
    (void)state;
    BUF b = { 0 };
    add_words(&b, REPLY);
    for (size_t i = 0; i < b.n; i++) {
        const char was = b.p[i];
        for (int v = 0; v < 256; v++) {
            struct call3_result r[2];
            b.p[i] = (char)v;
            (void)!reads(b.p, b.n, r, 2);
        }
        b.p[i] = was;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selectors),     cmocka_unit_test(empty_and_long_signatures),
        cmocka_unit_test(multicall),     cmocka_unit_test(replies),
        cmocka_unit_test(lying_replies), cmocka_unit_test(any_byte_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
