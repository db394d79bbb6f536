#include "test.h"

#include <string.h>

#include "base/amount.h"

#define MAX "115792089237316195423570985008687907853269984665640564039457584007913129639935"
#define MAX_PLUS_1 "115792089237316195423570985008687907853269984665640564039457584007913129639936"

static struct amount amount(const char *s)
{
    struct amount a;
    if (!amount_read(s, strlen(s), &a))
        fail_msg("not taken: '%s'", s);
    return a;
}

static void one_spelling(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",
        "1",
        "9",
        "10",
        "10000",
        "9999999999999999999",
        "10000000000000000000",
        "10000000000000000001",
        "18446744073709551615",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "99999999999999999999999999999999999999",
        "100000000000000000000000000000000000000000000000000000000000000000",
        MAX,
    };
    for (size_t i = 0; i < COUNT(good); i++)
        assert_string_equal(amount_text(amount(good[i])).s, good[i]);

    static const char *const bad[] = {
        "",         "00",      "01",
        "-1",       "+1",      " 1",
        "1 ",       "1e3",     "0x3e8",
        "1.0",      ".",       "1,000",
        "1\n",      "a",       "-0",
        "\xd9\xa1", "1_000",   MAX_PLUS_1,
        (MAX "0"),  ("1" MAX), "999999999999999999999999999999999999999999999999999999999999999999999999999999",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct amount a = amount_of(7);
        if (amount_read(bad[i], strlen(bad[i]), &a))
            fail_msg("taken: '%s'", bad[i]);
        assert_int_equal(amount_cmp(a, amount_of(7)), 0);
    }
    struct amount a;
    assert_false(amount_read("1\0x", 3, &a));
    assert_true(amount_read("123", 2, &a)); /* n decides, not the NUL */
    assert_int_equal(amount_cmp(a, amount_of(12)), 0);
}

static void arithmetic(void **state)
{
    (void)state;
    const struct amount max = amount(MAX), one = amount_of(1);
    struct amount a = amount_of(7);
    assert_false(amount_add(max, one, &a));
    assert_false(amount_sub(AMOUNT_ZERO, one, &a));
    assert_false(amount_sub(amount("18446744073709551616"), amount("18446744073709551617"), &a));
    assert_int_equal(amount_cmp(a, amount_of(7)), 0);
    assert_true(amount_add(max, AMOUNT_ZERO, &a));
    assert_int_equal(amount_cmp(a, max), 0);
    assert_true(amount_sub(max, max, &a));
    assert_true(amount_is_zero(a));

    assert_true(amount_add(amount("340282366920938463463374607431768211455"), one, &a)); /* carries over two limbs */
    assert_string_equal(amount_text(a).s, "340282366920938463463374607431768211456");
    assert_true(amount_sub(a, one, &a));
    assert_string_equal(amount_text(a).s, "340282366920938463463374607431768211455");
}

static void comparing(void **state)
{
    (void)state;
    static const char *const rising[] = {
        "0", "1", "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211456", MAX
    };
    for (size_t i = 0; i < COUNT(rising); i++)
        for (size_t j = 0; j < COUNT(rising); j++)
            assert_int_equal(amount_cmp(amount(rising[i]), amount(rising[j])), (i > j) - (i < j));
    assert_true(amount_is_zero(AMOUNT_ZERO));
    for (size_t i = 1; i < COUNT(rising); i++)
        assert_false(amount_is_zero(amount(rising[i])));
}

static void as_integer(void **state)
{
    (void)state;
    uint64_t v = 5;
    assert_false(amount_u64(amount("18446744073709551616"), &v));
    assert_false(amount_u64(amount(MAX), &v));
    assert_int_equal(v, 5);
    assert_true(amount_u64(amount("18446744073709551615"), &v));
    assert_true(v == UINT64_MAX);
    assert_true(amount_u64_cap(amount("18446744073709551616")) == UINT64_MAX);
    assert_int_equal(amount_u64_cap(amount_of(42)), 42);
}

static void as_bytes(void **state)
{
    (void)state;
    uint8_t be[32], expected[32] = { 0 };
    amount_to_be(amount_of(0x0102), be);
    expected[30] = 1;
    expected[31] = 2;
    assert_memory_equal(be, expected, 32);
    for (size_t i = 0; i < 32; i++)
        be[i] = (uint8_t)(i + 1);
    const struct amount a = amount_from_be(be);
    amount_to_be(a, expected);
    assert_memory_equal(be, expected, 32);
    assert_string_equal(amount_text(a).s,
                        "455867356320691211509944977504407603390036387149619137164185182714736811808");
    memset(be, 0xff, 32);
    assert_string_equal(amount_text(amount_from_be(be)).s, MAX);
}

static void for_people(void **state)
{
    (void)state;
    static const struct {
        const char *atoms;
        unsigned decimals;
        const char *text;
    } rows[] = {
        { "1500", 6, "0.0015" },
        { "0", 6, "0" },
        { "1", 6, "0.000001" },
        { "1000000", 6, "1" },
        { "1234567", 6, "1.234567" },
        { "10", 0, "10" },
        { "100000", 6, "0.1" },
        { "1200000000", 6, "1200" },
        { "1000001", 6, "1.000001" },
        { "1", 18, "0.000000000000000001" },
        { "1", AMOUNT_MAX_DECIMALS, "0.00000000000000000000000000000000000000000000000000000000000000000000000000001" },
        { MAX, AMOUNT_MAX_DECIMALS, "1.15792089237316195423570985008687907853269984665640564039457584007913129639935" },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(amount_human(amount(rows[i].atoms), rows[i].decimals).s, rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_spelling), cmocka_unit_test(arithmetic), cmocka_unit_test(comparing),
        cmocka_unit_test(as_integer),   cmocka_unit_test(as_bytes),   cmocka_unit_test(for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
