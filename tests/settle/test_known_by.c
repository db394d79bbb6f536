/* By when is an unknown known? Tight while the chain goes on, moving while it does not, never in the past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "settle/terms.h"

enum { DEAD = 1000 };

static const struct net base = { .id = "eip155:84532", .block_time_ms = 2000, .finality_blocks = 10 };

static void test_usual(void **state)
{
    (void)state;
    const struct finality f = { .usual = 20, .now = 22 };
    struct known_by k = terms_known_by(&base, &f, DEAD, 900);
    assert_null(k.note);
    assert_int_equal(k.at, DEAD + 24 + 12 + 30);
}

static void test_unseen(void **state)
{
    (void)state;
    const struct net tagged = { .id = "eip155:1", .block_time_ms = 12000 };
    struct known_by k = terms_known_by(&tagged, &(struct finality){ 0, 0 }, DEAD, 900);
    assert_null(k.note);
    assert_int_equal(k.at, DEAD + 1824 + 120 + 30);
}

/* The final block gets older: the time moves on with it, and is told why. */
static void test_moves(void **state)
{
    (void)state;
    const struct finality f = { .usual = 20, .now = 400 }, later = { .usual = 20, .now = 500 };
    struct known_by k = terms_known_by(&base, &f, DEAD, 1200), l = terms_known_by(&base, &later, DEAD, 1300);
    assert_non_null(strstr(k.note, "cannot be read"));
    assert_int_equal(k.at, DEAD + 404 + 120 + 30);
    assert_int_equal(l.at - k.at, 100);
}

static void test_not_past(void **state)
{
    (void)state;
    const struct finality f = { .usual = 20, .now = 20 };
    struct known_by k = terms_known_by(&base, &f, DEAD, DEAD + 66);
    assert_int_equal(k.at, DEAD + 66 + 60);
    assert_non_null(k.note);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_not_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
