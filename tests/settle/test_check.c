/* The verdicts on a payment that was read: by our terms, and by one block of the chain. */
#include "sale.h"

#include <string.h>

enum { NEED_S = 8 };
static const char max_text[] = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

static struct payment good(void)
{
    struct payment p = { .version = 2, .price = prices[PRICE_SEPOLIA], .signer_proven = true };
    p.auth.to = p.price.pay_to;
    p.auth.value = amount_of(10000);
    p.auth.valid_before = amount_of((uint64_t)now + 60);
    p.auth.signature_n = 65;
    return p;
}

static struct amount big(const char *s)
{
    struct amount a;
    assert_true(amount_read(s, strlen(s), &a));
    return a;
}

static struct amount from_now(int64_t s)
{
    return amount_of((uint64_t)(now + s));
}

static void test_value(void **state)
{
    (void)state;
    struct payment p = good();
    assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_NONE);
    const struct amount bad[] = { amount_of(9999), amount_of(10001), AMOUNT_ZERO, big(max_text),
                                  big("18446744073709561616") };
    for (size_t i = 0; i < COUNT(bad); i++) { /* the last is 2^64 + 10000 */
        p.auth.value = bad[i];
        assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_VALUE);
    }
    p.price.amount = big(max_text);
    p.auth.value = big(max_text);
    assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_NONE);
}

static void test_recipient(void **state)
{
    (void)state;
    for (size_t i = 0; i < 20; i++) {
        struct payment p = good();
        p.auth.to.b[i] ^= 0x10;
        assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_RECIPIENT);
    }
}

static void test_times(void **state)
{
    (void)state;
    const struct {
        struct amount before, after;
        enum reason reason;
    } table[] = {
        { from_now(NEED_S), AMOUNT_ZERO, REASON_NONE },
        { from_now(NEED_S - 1), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { from_now(5), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { from_now(0), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { from_now(-1), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { AMOUNT_ZERO, AMOUNT_ZERO, REASON_VALID_BEFORE },
        { from_now(60 + 600), AMOUNT_ZERO, REASON_NONE },
        { from_now(60 + 601), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { from_now(365 * 86400), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { amount_of(UINT64_MAX), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { amount_of(INT64_MAX), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { big("18446744073709551616"), AMOUNT_ZERO, REASON_VALID_BEFORE }, /* 2^64: wraps to 0 */
        { big("18446744075509551676"), AMOUNT_ZERO, REASON_VALID_BEFORE }, /* 2^64 + now + 60: wraps to a good one */
        { big(max_text), AMOUNT_ZERO, REASON_VALID_BEFORE },
        { from_now(60), from_now(0), REASON_NONE },
        { from_now(60), from_now(1), REASON_VALID_AFTER },
        { from_now(60), from_now(3600), REASON_VALID_AFTER },
        { from_now(60), big("18446744073709551616"), REASON_VALID_AFTER }, /* 2^64: wraps to 0 */
        { from_now(60), big(max_text), REASON_VALID_AFTER },
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct payment p = good();
        p.auth.valid_before = table[i].before;
        p.auth.valid_after = table[i].after;
        if (x402_check(&p, &terms, now, NEED_S) != table[i].reason)
            fail_msg("row %zu", i);
    }
}

/* Several faults at once: the reference's order decides which is named. */
static void test_order(void **state)
{
    (void)state;
    struct payment p = good();
    p.auth.value = amount_of(1);
    assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_VALUE);
    p.auth.valid_after = from_now(5);
    assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_VALID_AFTER);
    p.auth.valid_before = from_now(-5);
    assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_VALID_BEFORE);
    p.auth.to.b[0] ^= 1;
    assert_int_equal(x402_check(&p, &terms, now, NEED_S), REASON_RECIPIENT);
}

/* ---- the chain ---- */

#define NO .transfer_ok = false
static const struct {
    const char *name;
    bool proven;
    struct auth_facts facts;
    enum reason reason;
} judged[] = {
    { "all is well", true, { .transfer_ok = true }, REASON_NONE },
    { "no key, no code", false, { .transfer_ok = true }, REASON_SIGNATURE },
    { "a contract says yes", false, { .transfer_ok = true, .has_code = true }, REASON_NONE },
    { "a contract says no", false, { NO, .has_code = true, .why = REVERT_SIGNATURE }, REASON_SIGNATURE },
    { "used", true, { .transfer_ok = true, .nonce_used = true }, REASON_NONCE_USED },
    { "used, by the flag first",
      true,
      { NO, .nonce_used = true, .why = REVERT_EXPIRED, .balance_known = true },
      REASON_NONCE_USED },
    { "no signature, used", false, { NO, .nonce_used = true }, REASON_SIGNATURE },
    { "used, by the revert", true, { NO, .why = REVERT_USED }, REASON_NONCE_USED },
    { "poor", true, { NO, .balance_known = true, .why = REVERT_OTHER }, REASON_BALANCE },
    { "poor, by the revert", true, { NO, .why = REVERT_BALANCE }, REASON_BALANCE },
    { "balance not known", true, { NO, .balance_known = false, .why = REVERT_OTHER }, REASON_SIMULATION },
    { "expired there", true, { NO, .why = REVERT_EXPIRED }, REASON_VALID_BEFORE },
    { "not yet valid there", true, { NO, .why = REVERT_NOT_YET_VALID }, REASON_VALID_AFTER },
    { "signature", true, { NO, .why = REVERT_SIGNATURE }, REASON_SIGNATURE },
    { "blacklisted", true, { NO, .why = REVERT_BLACKLISTED }, REASON_SIMULATION },
    { "paused", true, { NO, .why = REVERT_PAUSED }, REASON_SIMULATION },
    { "other", true, { NO, .why = REVERT_OTHER }, REASON_SIMULATION },
    { "no reason", true, { NO, .why = REVERT_NONE }, REASON_SIMULATION },
};

static void test_judge(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(judged); i++) {
        struct payment p = good();
        struct auth_facts facts = judged[i].facts;
        facts.known = true;
        p.signer_proven = judged[i].proven;
        if (x402_judge(&p, &facts) != judged[i].reason)
            fail_msg("%s", judged[i].name);
    }
}

static void test_balance(void **state)
{
    (void)state;
    struct payment p = good();
    struct auth_facts facts = { .known = true, .balance_known = true, .why = REVERT_OTHER };
    facts.balance = amount_of(9999);
    assert_int_equal(x402_judge(&p, &facts), REASON_BALANCE);
    facts.balance = amount_of(10000);
    assert_int_equal(x402_judge(&p, &facts), REASON_SIMULATION);
    facts.balance = big("18446744073709551616");
    assert_int_equal(x402_judge(&p, &facts), REASON_SIMULATION);
}

/* Every reason has a code in both vocabularies and words for people. */
static void test_reasons(void **state)
{
    (void)state;
    for (int r = REASON_NONE + 1; r <= REASON_EXPIRED; r++)
        for (int version = 1; version <= 2; version++) {
            assert_true(strlen(reason_code((enum reason)r, version)) > 0);
            assert_true(strlen(reason_text((enum reason)r)) > 0);
        }
    assert_string_equal(reason_code(REASON_BALANCE, 1), "insufficient_funds");
    assert_string_equal(reason_code(REASON_BALANCE, 2), "invalid_exact_evm_insufficient_balance");
    assert_string_equal(reason_code(REASON_VALUE, 1), "invalid_exact_evm_payload_authorization_value");
    assert_string_equal(reason_code(REASON_VALUE, 2), "invalid_exact_evm_payload_authorization_value_mismatch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value),   cmocka_unit_test(test_recipient), cmocka_unit_test(test_times),
        cmocka_unit_test(test_order),   cmocka_unit_test(test_judge),     cmocka_unit_test(test_balance),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, sale_start, sale_stop);
}
