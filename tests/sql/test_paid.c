/* What a payment gets from an order whose work is done or whose money has landed: the replay, the wait, the new payment
 * for a kept answer, and never a second charge. */
#include "money.h"

#include <string.h>

/* ---- paid ---- */

static void paid(bool cacheable, int age_s)
{
    struct ask a = with_id();
    a.cacheable = cacheable;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    settles(1, 1, age_s);
}

/* What is on the chain is public: only a secret that never reached it serves a stored answer. */
static void test_replay(void **state)
{
    (void)state;
    struct ask a = with_id();
    paid(false, 500);
    find_is(&a, "replay", 1, false);
    a.quote = 0;
    find_is(&a, "replay", 1, false); /* the payment id alone */
    a.quote = 3;
    a.payment_id = NULL;
    find_is(&a, "replay", 1, false); /* the quote alone */
    a.quote = 0;
    find_is(&a, "not_proven", 1, false); /* the nonce alone */
    a.quote = 5;
    find_is(&a, "not_proven", 1, false); /* a quote of another offer is no secret of this one */
    a.attempt = 2;
    OWNED char *before = dump();
    accept_is(&a, "not_proven", 1, 1);
    a.payment_id = ID;
    accept_is(&a, "replay", 1, 1);
    a.valid_in_s = -500; /* its time matters no more */
    find_is(&a, "replay", 1, false);
    same_as(before);
}

static void test_replay_cacheable(void **state)
{
    (void)state;
    static const struct {
        int age_s;
        const char *verdict;
    } table[] = { { 0, "replay" }, { 100, "replay" }, { 125, "not_proven" } };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct ask a = ask();
        money_clear(NULL);
        paid(true, table[i].age_s);
        find_is(&a, table[i].verdict, 1, false);
        a.attempt = 2;
        accept_is(&a, table[i].verdict, 1, 1);
    }
}

static void test_gone(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    paid(false, 0);
    sql_run(pg, "DELETE FROM answers");
    find_is(&a, "gone", 1, false);
    find_is(&b, "gone", 1, true);
    accept_is(&b, "gone", 1, 1);
    state_is(2, "released");
}

/* A fresh signature for what is paid: never sent, watched. */
static void test_fresh_for_paid(void **state)
{
    (void)state;
    struct ask b = fresh(2);
    paid(false, 0);
    find_is(&b, "replay", 1, true);
    accept_is(&b, "replay", 1, 1);
    state_is(1, "settled");
    state_is(2, "released");
    current_is(1);
    b.quote = 3;
    b.payment_id = NULL;
    b.nonce = b.attempt = 4;
    accept_is(&b, "replay", 1, 1); /* the quote is taken by this wallet */
    state_is(4, "released");
    sql_is(pg, "SELECT count(*) FROM orders", "1");
}

static void test_landed_while_running(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    settles(1, 1, 0);
    a.attempt = 3;
    find_is(&a, "in_flight", 1, false);
    accept_is(&b, "in_flight", 1, 1);
    state_is(2, "released");
}

/* ---- on its way: no new payment, whatever its time ---- */

static void test_on_its_way(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    static const char *const states[] = { "due", "sent" };
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    a.attempt = 3;
    a.valid_in_s = -10;
    for (int i = 0; i < 2; i++) {
        OWNED char *set = str_format(
            "UPDATE authorizations SET state = '%s', valid_before = valid_before - 500 WHERE id = auth(1)", states[i]);
        sql_run(pg, set);
        find_is(&a, "in_flight", 1, false);
        b.nonce = b.attempt = 10 + i;
        find_is(&b, "in_flight", 1, true);
        accept_is(&b, "in_flight", 1, 1);
        state_is(10 + i, "released");
        state_is(1, states[i]);
    }
}

/* ---- proven dead, answer kept ---- */

static void dead(const char *end)
{
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    ends(1, end);
}

static void test_resend(void **state)
{
    (void)state;
    static const char *const ended[] = { "expired", "void" };
    for (size_t i = 0; i < COUNT(ended); i++) {
        struct ask a = with_id(), b = fresh(2), c = fresh(4);
        money_clear(NULL);
        dead(ended[i]);
        sql_is(pg, "SELECT status FROM order_status", "unpaid");
        a.attempt = 3;
        find_is(&a, "pay_again", 1, false);
        accept_is(&a, "pay_again", 1, 1);
        state_is(1, ended[i]);
        c.valid_in_s = 5;
        find_is(&c, "pay_again", 1, true); /* too little time: set aside */
        accept_is(&c, "pay_again", 1, 1);
        state_is(4, "released");
        find_is(&b, "resend", 1, true);
        accept_is(&b, "resent", 1, 1);
        current_is(2);
        state_is(2, "due");
        work_is(1, "done");
        sql_is(pg, "SELECT status FROM order_status", "settling");
        sql_is(pg, "SELECT due_at IS NOT NULL FROM authorizations WHERE id = auth(2)", "t");
        settles(2, 1, 0);
        b.attempt = 5;
        find_is(&b, "replay", 1, false);
    }
}

/* The commit's reply was lost: the answer must not become "run the work". */
static void test_resend_lost_reply(void **state)
{
    (void)state;
    struct ask b = fresh(2);
    dead("expired");
    accept_is(&b, "resent", 1, 1);
    OWNED char *before = dump();
    accept_is(&b, "resent", 1, 1);
    same_as(before);
}

/* What was set aside may pay after all. */
static void test_resend_released(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "in_flight", 1, 1);
    state_is(2, "released");
    finish_is(1, 1, "done", "ok");
    ends(1, "expired");
    b.attempt = 3;
    find_is(&b, "resend", 1, false);
    accept_is(&b, "resent", 1, 1);
    state_is(2, "due");
}

/* ---- an earlier authorization of the order landed, submitted by somebody else: no more money is asked for ---- */

static void asks_for_no_money(const struct ask *a)
{
    static const char *const asking[] = { "new", "again", "takeover", "resend", "pay_again" };
    for (size_t i = 0; i < COUNT(asking); i++) {
        OWNED char *q =
            str_format("SELECT verdict FROM order_find('%s', NULL, b(1, 20), 'eip155:1', b(7, 20), b(%d, 32), b(1, 32),"
                       " b(8, 20), 1000, 0, extract(epoch FROM now())::bigint + %d, b(1, 32), true, 8)",
                       ID, a->nonce, a->valid_in_s);
        OWNED char *verdict = sql_one(pg, q);
        if (strcmp(verdict, asking[i]) == 0)
            fail_msg("nonce %d, %d s left: %s", a->nonce, a->valid_in_s, verdict);
    }
}

static void replaced_and_landed(const char *work)
{
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    accept_is(&b, "accepted", 1, 2);
    finish_is(1, 2, work, "ok");
    settles(1, 1, 0);
}

static void test_landed_done(void **state)
{
    (void)state;
    struct ask b = fresh(2), c = fresh(3);
    replaced_and_landed("done");
    asks_for_no_money(&b);
    ends(2, "expired");
    sql_is(pg, "SELECT status <> 'unpaid' FROM order_status", "t");
    asks_for_no_money(&b);
    asks_for_no_money(&c);
}

static void test_landed_failed(void **state)
{
    (void)state;
    struct ask b = fresh(2), c = fresh(3);
    replaced_and_landed("failed");
    b.valid_in_s = c.valid_in_s = 5;
    asks_for_no_money(&b);
    asks_for_no_money(&c);
}

/* ---- a signature that only a contract can judge ---- */

static void test_contract_signature(void **state)
{
    (void)state;
    struct ask a = with_id(), b = with_id();
    a.has_code = true;
    accept_is(&a, "accepted", 1, 1);
    find_is(&a, "in_flight", 1, false);
    b.has_code = true;
    b.signature = 2; /* anybody can write this: nothing is told */
    find_is(&b, "new", 0, true);
    b.request = 2;
    find_is(&b, "new", 0, true);
    b.payer = 2;
    find_is(&b, "new", 0, true);
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_replay),         TEST(test_replay_cacheable),     TEST(test_gone),
        TEST(test_fresh_for_paid), TEST(test_landed_while_running), TEST(test_on_its_way),
        TEST(test_resend),         TEST(test_resend_lost_reply),    TEST(test_resend_released),
        TEST(test_landed_done),    TEST(test_landed_failed),        TEST(test_contract_signature),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
