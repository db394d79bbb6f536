/* The payment header's own form: strict base64 of one strict JSON object. */
#include "sale.h"

#include <string.h>

static void test_encoding(void **state)
{
    (void)state;
    OWNED char *plain = payment_text(V2);
    OWNED char *text = replaced(plain, "\"Premium data\"", "\"\x3f\x3f\x3f>>>~~~\x3f\x3f\x3f>>>~~~\"");
    BUF b = { 0 };
    base64_add(&b, text, strlen(text));
    assert_non_null(strpbrk(b.p, "+/"));
    assert_int_equal(read_raw((struct slice){ b.p, b.n }, 2), ERR_NONE);
    size_t bare = strcspn(b.p, "=");
    assert_int_equal(read_raw((struct slice){ b.p, bare }, 2), ERR_NONE); /* unpadded is as good */

    OWNED char *url = str_copy(b.p);
    for (char *c; (c = strpbrk(url, "+/"));)
        *c = *c == '+' ? '-' : '_';
    OWNED char *broken = str_format("%.76s\n%s", b.p, b.p + 76), *crlf = str_format("%s\r\n", b.p),
               *spaced = str_format(" %s", b.p), *more = str_format("%s====", b.p);
    const char *const bad[] = { url, broken, crlf, spaced, more, "x", "=", "====", "!!!!", text, "e30=e30=", "e31=" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(read_raw(slice_of(bad[i]), 2), ERR_PAYMENT_ENCODING);
        assert_int_equal(reason, REASON_NONE);
    }
    assert_int_equal(read_raw((struct slice){ "e30=\0", 5 }, 2), ERR_PAYMENT_ENCODING);
    assert_int_equal(read_raw(slice_of(""), 2), ERR_PAYMENT_ENCODING);
}

static void is_not_json(const char *p, size_t n)
{
    assert_int_equal(read_bytes(p, n, 2), ERR_PAYMENT_JSON);
    assert_int_equal(read_bytes(p, n, 1), ERR_PAYMENT_JSON);
    assert_int_equal(reason, REASON_NONE);
}

static void test_json(void **state)
{
    (void)state;
    OWNED char *good = payment_text(V2);
    static const char *const bad[] = {
        " ",
        "{",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{}{}",
        "{} x",
        "{'a':1}",
        "{\"a\":1,}",
        "{\"a\":NaN}",
        "{\"a\":1}\xff",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\\u0000b\":1}",
        "\xef\xbb\xbf{}",
        "{\"a\":1e999}",
        "{\"a\":99999999999999999999}",
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        is_not_json(bad[i], strlen(bad[i]));
    is_not_json(good, strlen(good) - 1);
    is_not_json(good, strlen(good) + 1); /* a NUL behind it */
    OWNED char *tail = str_format("%s]", good);
    is_not_json(tail, strlen(tail));
}

static void test_deep(void **state)
{
    (void)state;
    OWNED char *good = payment_text(V2);
    static const char *const open[] = { "[", "{\"a\":" };
    for (size_t kind = 0; kind < COUNT(open); kind++) {
        BUF b = { 0 };
        buf_puts(&b, "{\"deep\":");
        for (int i = 0; i < 10000; i++)
            buf_puts(&b, open[kind]);
        is_not_json(b.p, b.n); /* cut off */
        if (kind == 1)
            buf_puts(&b, "1");
        for (int i = 0; i < 10000; i++)
            buf_puts(&b, kind ? "}" : "]");
        buf_puts(&b, ",");
        buf_puts(&b, good + 1);
        is_not_json(b.p, b.n); /* and whole, in a payment that is good otherwise */
    }
}

static void test_duplicates(void **state)
{
    (void)state;
    static const struct {
        const char *find, *put;
    } twice[] = {
        { "{\"x402Version\":2", "{\"x402Version\":2,\"x402Version\":2" },
        { "\"accepted\":{", "\"accepted\":{},\"accepted\":{" },
        { "\"signature\":", "\"signature\":\"0x\",\"signature\":" },
        { "\"value\":\"10000\"", "\"value\":\"10000\",\"value\":\"10000\"" },
        { "\"nonce\":", "\"nonce\":\"0x\",\"nonce\":" },
        { "\"amount\":\"10000\"", "\"amount\":\"10000\",\"amo\\u0075nt\":\"10000\"" },
        { "\"version\":\"2\"", "\"version\":\"2\",\"version\":\"2\"" },
    };
    for (size_t i = 0; i < COUNT(twice); i++) {
        OWNED char *good = payment_text(V2), *bad = replaced(good, twice[i].find, twice[i].put);
        is_not_json(bad, strlen(bad));
    }
}

/* What does not fit a JSON reader's integer is not even JSON to us. */
static void test_numbers_too_large(void **state)
{
    (void)state;
    OWNED char *good = payment_text(V2),
               *bad = replaced(good, "\"value\":\"10000\"",
                               "\"value\":"
                               "115792089237316195423570985008687907853269984665640564039457584007913129639936");
    is_not_json(bad, strlen(bad));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_numbers_too_large),
    };
    return cmocka_run_group_tests(tests, sale_start, sale_stop);
}
