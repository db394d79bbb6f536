/* Exports: fields that a spreadsheet would run, and sums of signed decimals of any size. */
#include "tests/unit/test.h"

#include "refunds/refunds.h"
#include "refunds/signed.h"

static void field_is(const char *text, const char *expected)
{
    BUF b = { 0 };
    csv_field(&b, slice_of(text));
    assert_string_equal(b.n ? b.p : "", expected);
}

static void test_fields(void **state)
{
    (void)state;
    field_is("", "");
    field_is("plain", "plain");
    field_is("a,b", "\"a,b\"");
    field_is("say \"yes\"", "\"say \"\"yes\"\"\"");
    field_is("two\r\nlines", "\"two\r\nlines\"");
    field_is("=1+1", "\"'=1+1\"");
    field_is("+cmd", "\"'+cmd\"");
    field_is("@SUM(A1)", "\"'@SUM(A1)\"");
    field_is("-2+3", "\"'-2+3\"");
    field_is("\t=1", "\"'\t=1\"");
    field_is("-1000", "-1000");
    field_is("-", "\"'-\"");
}

static void test_sums(void **state)
{
    (void)state;
    struct sum s = { 0 };
    assert_true(sum_is_zero(&s));
    assert_true(sum_add(&s, SLICE("1500000")));
    assert_true(sum_take(&s, SLICE("2000000")));
    assert_string_equal(sum_text(&s).s, "-500000");
    assert_string_equal(sum_human(&s, 6).s, "-0.5");
    assert_true(sum_add(&s, SLICE("500000")));
    assert_true(sum_is_zero(&s));
    s = (struct sum){ 0 };
    assert_true(sum_add(&s, SLICE("-115792089237316195423570985008687907853269984665640564039457584007913129639935")));
    assert_false(sum_add(&s, SLICE("-1")));
    assert_false(sum_add(&s, SLICE("1.5")));
    assert_false(sum_add(&s, SLICE("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_fields), cmocka_unit_test(test_sums) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
