#include "test.h"

#include <string.h>

#include "base/json.h"

static bool taken(const char *p, size_t n)
{
    struct json_why why = { "" };
    JSON *j = json_read(p, n, &why);
    assert_int_equal(j == NULL, why.text[0] != '\0');
    for (const char *c = why.text; *c; c++)
        assert_true(*c >= ' ' && *c <= '~');
    return j != NULL;
}

static void strict(void **state)
{
    (void)state;
    static const struct slice good[] = {
        SLICE_INIT("{}"),
        SLICE_INIT(" [1, -2, 3.5, true, null, \"\\ud83d\\ude00\"]\r\n\t"),
        SLICE_INIT("{\"a\":{\"a\":1},\"b\":[{\"a\":1}]}"),
        SLICE_INIT("{\"n\":9223372036854775807}"),
        SLICE_INIT("[\"\xe2\x82\xae\"]"),
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        if (!taken(good[i].p, good[i].n))
            fail_msg("not taken: %s", good[i].p);
    }
    static const struct slice bad[] = {
        SLICE_INIT(""),
        SLICE_INIT(" "),
        SLICE_INIT("{"),
        SLICE_INIT("{}{}"),
        SLICE_INIT("{} x"),
        SLICE_INIT("{}\0"),
        SLICE_INIT("\0{}"),
        SLICE_INIT("[1,\0 2]"),
        SLICE_INIT("{\"a\":1,\"a\":1}"),
        SLICE_INIT("{\"x\":{\"a\":1,\"b\":2,\"a\":3}}"),
        SLICE_INIT("{\"a\":1,\"\\u0061\":1}"),
        SLICE_INIT("{\"a\":\"\\u0000\"}"),
        SLICE_INIT("{\"\\u0000\":1}"),
        SLICE_INIT("{\"a\":\"x\0y\"}"),
        SLICE_INIT("[\"\xff\"]"),
        SLICE_INIT("[\"\xc0\x80\"]"),
        SLICE_INIT("[\"\xed\xa0\x80\"]"),
        SLICE_INIT("[\"\\ud800\"]"),
        SLICE_INIT("\xef\xbb\xbf{}"),
        SLICE_INIT("[1,]"),
        SLICE_INIT("{'a':1}"),
        SLICE_INIT("[01]"),
        SLICE_INIT("[0x1]"),
        SLICE_INIT("[NaN]"),
        SLICE_INIT("[1e999]"),
        SLICE_INIT("[9223372036854775808]"),
        SLICE_INIT("1"),
        SLICE_INIT("\"a\""),
        SLICE_INIT("null"),
        SLICE_INIT("[\"\n\"]"),
        SLICE_INIT("{a:1}"),
        SLICE_INIT("[+1]"),
        SLICE_INIT("[.5]"),
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (taken(bad[i].p, bad[i].n))
            fail_msg("taken: case %zu, %s", i, bad[i].p);
    }
}

static void deep(void **state)
{
    (void)state;
    BUF b = { 0 };
    for (int i = 0; i < 10000; i++)
        buf_puts(&b, "[");
    assert_false(taken(b.p, b.n));
    for (int i = 0; i < 10000; i++)
        buf_puts(&b, "]");
    assert_false(taken(b.p, b.n));
    assert_true(taken(b.p + 9000, 2000)); /* 1,000 of them */
}

static void reason_names_the_place(void **state)
{
    (void)state;
    struct json_why why;
    assert_null(json_read("{\"a\":1,\"a\":2}", 13, &why));
    assert_non_null(strstr(why.text, "duplicate"));
    BUF b = { 0 }; /* a quotation of thousands of bytes */
    buf_puts(&b, "{\"");
    for (int i = 0; i < 3000; i++)
        buf_puts(&b, "\xe2\x82\xae");
    buf_puts(&b, "\" 1}");
    assert_false(taken(b.p, b.n));
}

static void writing(void **state)
{
    (void)state;
    struct json_why why;
    const struct slice in = SLICE("{ \"z\": 1, \"a\": [\"\xe2\x82\xae\", \"\\u007f/\\\"\"] }");
    JSON *j = json_read(in.p, in.n, &why);
    assert_non_null(j);
    OWNED char *text = json_write(j);
    assert_string_equal(text, "{\"z\":1,\"a\":[\"\\u20AE\",\"\x7f/\\\"\"]}");
}

static void fields(void **state)
{
    (void)state;
    struct json_why why;
    const struct slice text = SLICE("{\"s\":\"x\",\"n\":1,\"e\":\"\"}");
    JSON *j = json_read(text.p, text.n, &why);
    assert_string_equal(json_str(j, "s"), "x");
    assert_null(json_str(j, "n"));
    assert_null(json_str(j, "none"));
    assert_null(json_str(NULL, "s"));
    assert_true(slice_is(json_slice(j, "s"), "x"));
    assert_null(json_slice(j, "n").p);
    assert_int_equal(json_slice(j, "n").n, 0);
    assert_non_null(json_slice(j, "e").p);
    JSON *good = json_of_slice(SLICE("a\"b"));
    assert_string_equal(json_string_value(good), "a\"b");
    JSON *bad = json_of_slice(SLICE("\xff"));
    assert_true(json_is_null(bad));
    JSON *none = json_of_slice(slice_of(NULL));
    assert_string_equal(json_string_value(none), "");
}

static void hex(void **state)
{
    (void)state;
    JSON *o = json_object();
    json_set_bare(o, "bare", "\x00\xff", 2);
    json_set_hex(o, "hex", SLICE("\x0a\xff"));
    json_set_hex(o, "none", (struct slice){ NULL, 0 });
    OWNED char *text = json_write(o);
    assert_string_equal(text, "{\"bare\":\"00ff\",\"hex\":\"0x0aff\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict),  cmocka_unit_test(deep),   cmocka_unit_test(reason_names_the_place),
        cmocka_unit_test(writing), cmocka_unit_test(fields), cmocka_unit_test(hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
