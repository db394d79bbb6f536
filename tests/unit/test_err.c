#include "test.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"

static const enum err all[] = {
#define ERR(name, code, http, retry, money, title, detail) ERR_##name,
#include "base/err.def"
#undef ERR
};

static bool is_one_of(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(s, list[i]) == 0)
            return true;
    }
    return false;
}

static void every_entry_is_whole(void **state)
{
    (void)state;
    static const char *const retries[] = { "same_payment", "new_payment", "poll", "fix_request", "stop" };
    static const char *const moneys[] = { "not_moved", "unknown", "moved" };
    for (size_t i = 0; i < COUNT(all); i++) {
        const struct err_info *e = err_info(all[i]);
        assert_true(e->http >= 400 && e->http <= 599);
        assert_true(is_one_of(e->retry, retries, COUNT(retries)));
        assert_true(is_one_of(e->money, moneys, COUNT(moneys)));
        assert_true(e->title[0] && e->detail[0] && e->code[0]);
        for (const char *c = e->code; *c; c++)
            assert_true(islower(*c) || *c == '_');
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(e->code, err_info(all[j])->code);
    }
}

/* Whoever is asked for a new payment must not have paid. */
static void new_payment_only_when_nothing_moved(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        const struct err_info *e = err_info(all[i]);
        assert_int_equal(e->http == 402, strcmp(e->retry, "new_payment") == 0);
        if (e->http == 402)
            assert_string_equal(e->money, "not_moved");
    }
}

static void known_ones(void **state)
{
    (void)state;
    const struct err_info *e = err_info(ERR_PAYMENT_IN_FLIGHT);
    assert_string_equal(e->code, "payment_in_flight");
    assert_int_equal(e->http, 409);
    assert_string_equal(e->retry, "poll");
    assert_string_equal(e->money, "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_is_whole),
        cmocka_unit_test(new_payment_only_when_nothing_moved),
        cmocka_unit_test(known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
