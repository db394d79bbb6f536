#include "test.h"

#include <string.h>

#include "base/bytes.h"

/* RFC 4648 section 10, and each character of both alphabets' ends. */
static const struct pair {
    const char *plain, *text;
} pairs[] = {
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
    { "\xfb\xff\xbf", "+/+/" },
};

static void both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        const size_t n = strlen(pairs[i].plain), bare = strcspn(pairs[i].text, "=");
        BUF b = { 0 };
        buf_puts(&b, ">");
        base64_add(&b, pairs[i].plain, n);
        assert_string_equal(b.p + 1, pairs[i].text);

        OWNED uint8_t *padded = NULL;
        OWNED uint8_t *unpadded = NULL;
        size_t got = 99;
        assert_true(base64_read(pairs[i].text, strlen(pairs[i].text), &padded, &got));
        assert_int_equal(got, n);
        assert_string_equal((char *)padded, pairs[i].plain);
        assert_true(base64_read(pairs[i].text, bare, &unpadded, &got));
        assert_int_equal(got, n);
        assert_string_equal((char *)unpadded, pairs[i].plain);
    }
}

static void all_bytes_and_lengths(void **state)
{
    (void)state;
    uint8_t bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 167);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        BUF b = { 0 };
        BUF url = { 0 };
        OWNED uint8_t *back = NULL;
        size_t got = 0;
        uint8_t url_back[256] = { 0 };
        base64_add(&b, bytes, n);
        base64url_add(&url, bytes, n);
        assert_true(base64_read(b.p, b.n, &back, &got));
        assert_int_equal(got, n);
        assert_memory_equal(back, bytes, n);
        assert_true(base64url_read(url.p, url.n, url_back, n));
        assert_memory_equal(url_back, bytes, n);
        assert_false(base64url_read(url.p, url.n, url_back, n + 1));
    }
}

static void junk(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "=",          "==",         "===",    "====",     "Z",    "Z=",        "Z==",  "Z===",    "Zg=",   "Zg===",
        "Zm8==",      "Zm9v=",      "Zm9v==", "Zm9v====", "Zh==", "Zh",        "Zm9=", "Zm9",     "Zm9vY", "Zm9v Yg==",
        "Zm9v\nYg==", "Zm9vYg==\n", " Zm9v",  "Zg==Zm9v", "Z=g=", "Zm=v",      "-A-A", "A_A_",    "-_-_",  "Zm9\xc3",
        "Zm9.",       "Zm9v,,,,",   "=Zm9",   "Zg=A",     "A=Zg", "Zm9v\rYg=", "~~~~", "Zm9\x80",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint8_t *bytes = NULL;
        size_t n = 99;
        if (base64_read(bad[i], strlen(bad[i]), &bytes, &n))
            fail_msg("taken: '%s'", bad[i]);
        assert_null(bytes);
        assert_int_equal(n, 99);
    }
    uint8_t *bytes = NULL;
    size_t n;
    assert_false(base64_read("Zm9\0", 4, &bytes, &n));
}

static void url_form(void **state)
{
    (void)state;
    uint8_t b[3] = { 0 };
    assert_true(base64url_read("-_-_", 4, b, 3));
    assert_memory_equal(b, "\xfb\xff\xbf", 3);
    assert_false(base64url_read("+/+/", 4, b, 3));
    assert_false(base64url_read("Zg==", 4, b, 1));
    assert_true(base64url_read("Zg", 2, b, 1));
    assert_false(base64url_read("Zh", 2, b, 1));
    assert_false(base64url_read("ZgA", 3, b, 1));
    assert_false(base64url_read("Z", 1, b, 0));
    assert_true(base64url_read("", 0, b, 0));
}

static void url_any(void **state)
{
    (void)state;
    static const char *const bad[] = { "+/+/", "Zg==", "Zh", "Z", "Zg ", "Zg\n" };
    OWNED uint8_t *p = NULL;
    size_t n = 9;
    assert_true(base64url_read_any("-_-_Zg", 6, &p, &n));
    assert_int_equal(n, 4);
    assert_memory_equal(p, "\xfb\xff\xbf" "f", 5); /* and the NUL */
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint8_t *none = NULL;
        assert_false(base64url_read_any(bad[i], strlen(bad[i]), &none, &n));
        assert_null(none);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(all_bytes_and_lengths),
        cmocka_unit_test(junk),
        cmocka_unit_test(url_form),
        cmocka_unit_test(url_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
