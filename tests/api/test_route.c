#include "api/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void patterns(void **state)
{
    (void)state;
    static const char *const good[] = { "/", "/a", "/a/b.c", "/v1/{id}", "/{a}/x/{b}", "/m:generate" };
    static const char *const bad[] = { "", "a", "//", "/a/", "/a//b", "/./a", "/a/..", "/{}", "/{a", "/a{b}", "/%61",
                                       "/a b", "/a?b", "/a#", "/{a}b", "/\xc3\xa9", "/{a/b}" };
    const char *why = NULL;
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(route_pattern_ok(good[i], &why));
    for (size_t i = 0; i < COUNT(bad); i++) {
        why = NULL;
        if (route_pattern_ok(bad[i], &why) || !why)
            fail_msg("took %s", bad[i]);
    }
}

static void matching(void **state)
{
    (void)state;
    static const struct { const char *pattern, *path; bool yes; } cases[] = {
        { "/", "/", true },           { "/", "", false },           { "/", "//", false },
        { "/a", "/a", true },         { "/a", "/A", false },        { "/a", "/a/", false },
        { "/a", "//a", false },       { "/a", "/a//", false },      { "/a", "/./a", false },
        { "/a", "/%61", false },      { "/a", "/a%2f", false },     { "/a", "/x/../a", false },
        { "/a", "/a;b", false },      { "/a", "/ab", false },       { "/a/b", "/a", false },
        { "/a/{x}", "/a/b", true },   { "/a/{x}", "/a/B-1._~", true }, { "/a/{x}", "/a/", false },
        { "/a/{x}", "/a", false },    { "/a/{x}", "/a/.", false },  { "/a/{x}", "/a/..", false },
        { "/a/{x}", "/a/...", true }, { "/a/{x}", "/a/b/", false }, { "/a/{x}", "/a/b/c", false },
        { "/a/{x}", "/a/b%20", false }, { "/a/{x}", "/a/b:c", false }, { "/{x}/b", "/a/b", true },
        { "/{x}/b", "//b", false },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (route_matches(cases[i].pattern, slice_of(cases[i].path)) != cases[i].yes)
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
    assert_false(route_matches("/a", (struct slice){ "/a\0b", 4 }));
}

static void reserved(void **state)
{
    (void)state;
    assert_true(route_reserved("/orders/{id}"));
    assert_true(route_reserved("/verify"));
    assert_true(route_reserved("/.well-known/x402"));
    assert_false(route_reserved("/orders-of-magnitude"));
    assert_false(route_reserved("/v1/orders"));
}

static void finding(void **state)
{
    (void)state;
    struct tool tools[] = {
        { .name = "any", .method = "GET", .path = "/c/{x}" },
        { .name = "new", .method = "POST", .path = "/c/{x}" },
        { .name = "one", .method = "GET", .path = "/c/one" },
        { .name = "put", .method = "PUT", .path = "/d" },
    };
    const struct config c = { .tools = tools, .tool_count = COUNT(tools) };
    BUF allow = { 0 };
    assert_string_equal(route_find(&c, "GET", SLICE("/c/two"), &allow)->name, "any");
    assert_string_equal(route_find(&c, "HEAD", SLICE("/c/two"), &allow)->name, "any");
    assert_string_equal(route_find(&c, "GET", SLICE("/c/one"), &allow)->name, "one");
    assert_string_equal(route_find(&c, "POST", SLICE("/c/one"), &allow)->name, "new");
    assert_null(route_find(&c, "GET", SLICE("/e"), &allow));
    assert_int_equal(allow.n, 0);
    assert_null(route_find(&c, "get", SLICE("/c/one"), &allow));
    assert_string_equal(allow.p, "GET, HEAD, POST, OPTIONS");
    BUF put = { 0 };
    assert_null(route_find(&c, "GET", SLICE("/d"), &put));
    assert_string_equal(put.p, "PUT, OPTIONS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(matching),
        cmocka_unit_test(reserved),
        cmocka_unit_test(finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
