/* The clock of the windows: the chain's own, moved on by the monotonic clock. */
#include "tests/unit/test.h"

#include "settle/chain_clock.h"

enum { T = 1800000000 };

/* Seen at mono 1,000 with its block's time, and a second one: from then on it is live. */
static struct chain_clock live(void)
{
    struct chain_clock c = { 0 };
    chain_clock_saw(&c, 10, T, 1000, (int64_t)T * 1000);
    chain_clock_saw(&c, 11, T + 2, 3000, (int64_t)T * 1000);
    return c;
}

static void test_edges(void **state)
{
    (void)state;
    const struct chain_clock c = live();
    assert_int_equal(chain_clock_ms(&c, 3000), (T + 2) * INT64_C(1000));
    /* a proof at T: 119.9 s and 120.1 s later, though no block came meanwhile */
    assert_int_equal(chain_clock_ms(&c, 3000 + 117900) - T * INT64_C(1000), 119900);
    assert_int_equal(chain_clock_ms(&c, 3000 + 118100) - T * INT64_C(1000), 120100);
}

static void test_wall_steps(void **state)
{
    (void)state;
    struct chain_clock c = live();
    static const int64_t steps[] = { -3600000, 3600000, 0, -86400000 };
    for (int i = 0; i < 4; i++) {
        chain_clock_saw(&c, 12 + (unsigned)i, T + 4 + 2 * i, 5000 + 2000 * i, (int64_t)T * 1000 + steps[i]);
        assert_int_equal(chain_clock_ms(&c, 5000 + 2000 * i), (T + 4 + 2 * i) * INT64_C(1000));
    }
}

/* Just started, with a head of unknown age: the wall clock is not behind it. */
static void test_start(void **state)
{
    (void)state;
    struct chain_clock c = { 0 };
    assert_false(c.known);
    chain_clock_saw(&c, 10, T, 1000, (T + 3600) * INT64_C(1000));
    assert_true(c.known);
    assert_int_equal(chain_clock_ms(&c, 2000), (T + 3601) * INT64_C(1000));
    chain_clock_saw(&c, 10, T, 3000, T * INT64_C(1000));
    assert_int_equal(chain_clock_ms(&c, 3000), (T + 3602) * INT64_C(1000));
    chain_clock_saw(&c, 11, T + 2, 4000, (T + 3600) * INT64_C(1000)); /* the first that is seen to come: the chain's clock counts */
    assert_int_equal(chain_clock_ms(&c, 4000), (T + 2) * INT64_C(1000));
}

/* A head is seen late by this much or that: the least lateness counts. One that lies is forgotten. */
static void test_late_and_lying(void **state)
{
    (void)state;
    struct chain_clock c = live();
    chain_clock_saw(&c, 12, T + 4, 5900, 0);
    assert_int_equal(chain_clock_ms(&c, 5900), T * INT64_C(1000) + 4900);
    chain_clock_saw(&c, 13, T + 1000, 7000, 0);
    assert_int_equal(chain_clock_ms(&c, 7000), (T + 1000) * INT64_C(1000));
    for (int i = 0; i < 100; i++)
        chain_clock_saw(&c, 14 + (unsigned)i, T + 8 + 2 * i, 9000 + 2000 * i, 0);
    assert_int_equal(chain_clock_ms(&c, 207000), (T + 206) * INT64_C(1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges), cmocka_unit_test(test_wall_steps), cmocka_unit_test(test_start), cmocka_unit_test(test_late_and_lying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
