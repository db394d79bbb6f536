/* What a payment gets from an order whose work failed, was lost or lost its instance: the free repeat, the takeover,
 * the review. */
#include "money.h"

#include <string.h>

/* ---- work failed, nothing charged ---- */

static void test_failed_same(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2);
    b.instance = 2;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    find_is(&b, "again", 1, false);
    accept_is(&b, "accepted", 1, 2);
    state_is(1, "held");
    sql_is(pg, "SELECT concat_ws(' ', work, work_by = b(2, 16), work_note, work_ended_at) FROM orders", "running t");
    OWNED char *before = dump();
    accept_is(&b, "accepted", 1, 2); /* its reply was lost */
    finish_is(1, 1, "done", "late"); /* the first attempt, after all */
    finish_is(1, 1, "failed", "late");
    same_as(before);
    accept_is(&a, "in_flight", 1, 2); /* the first attempt's accept, very late: nothing for it to run */
    same_as(before);
    finish_is(1, 2, "done", "ok");
    state_is(1, "due");
    sql_is(pg, "SELECT count(*) FROM authorizations", "1");
}

static void test_failed_fresh(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2), c = again(3);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    find_is(&b, "again", 1, true);
    accept_is(&b, "accepted", 1, 2);
    current_is(2);
    state_is(1, "released");
    state_is(2, "held");
    find_is(&c, "in_flight", 1, false);
    finish_is(1, 2, "failed", "ok");
    accept_is(&c, "accepted", 1, 3); /* the first one again: it is good still */
    current_is(1);
    state_is(1, "held");
    state_is(2, "released");
    finish_is(1, 3, "done", "ok");
    state_is(1, "due");
    state_is(2, "released");
}

static void test_failed_too_late(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2), c = fresh(3);
    a.valid_in_s = b.valid_in_s = 20;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    b.need_s = 60;
    find_is(&b, "pay_again", 1, false);
    accept_is(&b, "pay_again", 1, 1);
    c.valid_in_s = 7;
    find_is(&c, "pay_again", 1, true);
    accept_is(&c, "pay_again", 1, 1);
    work_is(1, "failed");
    current_is(1);
    state_is(1, "released");
    state_is(3, "released"); /* signed, so watched */
}

/* What is armed is what was judged: another signature over the same nonce must not arm the one that is stored. */
static void test_failed_same_nonce_other_deadline(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2);
    a.valid_in_s = 10;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    b.signature = 2;
    b.valid_in_s = 120;
    b.need_s = 60;
    assert_int_equal(accept_rc(&b), DB_OK);
    sql_is(pg,
           "SELECT work = 'failed' OR valid_before >= extract(epoch FROM now()) + 60 FROM orders JOIN authorizations a "
           "ON a.id = authorization_id",
           "t");
}

static void test_failed_same_nonce_other_amount(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2);
    a.amount = "1"; /* the price when it was first asked */
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    b.signature = 2;
    b.amount = "10000"; /* the price that the gateway has just checked */
    assert_int_equal(accept_rc(&b), DB_OK);
    sql_is(pg,
           "SELECT work = 'failed' OR a.amount = 10000 FROM orders JOIN authorizations a ON a.id = authorization_id",
           "t");
}

/* An order is told as what paid it, also when the price or the network was another the second time. */
static void test_failed_other_price(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    b.amount = "9000";
    b.network = 2;
    accept_is(&b, "accepted", 1, 2);
    finish_is(1, 2, "done", "ok");
    sql_is(pg, "SELECT network || ' ' || amount FROM order_books", "eip155:2 9000");
}

static void test_failed_but_it_landed(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2), c = fresh(3);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    settles(1, 1, 0); /* a third party submitted what was released */
    find_is(&b, "work_failed_paid", 1, false);
    accept_is(&b, "work_failed_paid", 1, 1);
    find_is(&c, "work_failed_paid", 1, true);
    accept_is(&c, "work_failed_paid", 1, 1);
    state_is(1, "settled");
    state_is(3, "released");
    sql_is(pg, "SELECT status FROM order_status", "refund_due");
}

/* ---- work lost: never again, by nobody ---- */

static void test_lost(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2), c = fresh(3);
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "lost", "ok");
    find_is(&b, "in_review", 1, false);
    accept_is(&b, "in_review", 1, 1);
    find_is(&c, "in_review", 1, true);
    accept_is(&c, "in_review", 1, 1);
    state_is(1, "released");
    state_is(3, "released");
    work_is(1, "lost");
    ends(1, "expired");
    find_is(&b, "in_review", 1, false); /* also when it is dead: no new payment */
    find_is(&c, "in_review", 1, false);
    sql_is(pg, "SELECT status FROM order_status", "in_review");
}

/* ---- the instance died ---- */

static void test_dead_read(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2);
    accept_is(&a, "accepted", 1, 1);
    find_is(&b, "in_flight", 1, false);
    instance_dies(1);
    b.instance = 2;
    find_is(&b, "takeover", 1, false);
    accept_is(&b, "accepted", 1, 2);
    finish_is(1, 1, "done", "late");
    state_is(1, "held");
    sql_is(pg, "SELECT count(*) FROM answers", "0");
    finish_is(1, 2, "done", "ok");
    sql_is(pg, "SELECT digest = b(2, 32) FROM answers", "t");
}

static void test_dead_read_fresh(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    instance_dies(1);
    b.instance = 2;
    accept_is(&b, "accepted", 1, 2);
    current_is(2);
    state_is(1, "released");
    state_is(2, "held");
}

/* The lease itself may run out under a living instance. */
static void test_lease_over(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2);
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s'");
    find_is(&b, "takeover", 1, false);
    b.valid_in_s = 5; /* with too little time it waits to be proven dead */
    find_is(&b, "in_flight", 1, false);
    accept_is(&b, "in_flight", 1, 1);
    sql_run(pg, "SELECT instance_end(b(1, 16)); UPDATE orders SET work_until = now() + interval '60 s'");
    b.valid_in_s = 120;
    find_is(&b, "takeover", 1, false); /* ended in order: its leases are over, too */
}

static void test_dead_write(void **state)
{
    (void)state;
    static const char *const effects[] = { "write", "irreversible" };
    for (int i = 0; i < 2; i++) {
        struct ask a = ask(), b = ask();
        a.attempt = a.nonce = b.nonce = a.request = b.request = i + 1;
        a.side_effect = effects[i];
        a.instance = i + 1;
        b.attempt = 9;
        accept_is(&a, "accepted", i + 1, 1);
        instance_dies(i + 1);
        find_is(&b, "in_review", i + 1, false);
        work_is(i + 1, "running");
        accept_is(&b, "in_review", i + 1, 1);
        work_is(i + 1, "lost");
        state_is(i + 1, "released");
        finish_is(i + 1, 1, "failed", "late");
        state_is(i + 1, "released");
    }
}

/* A fresh authorization is stored whatever the answer is: whoever saw it can submit it. */
static void test_dead_write_fresh(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    instance_dies(1);
    accept_is(&b, "in_review", 1, 1);
    work_is(1, "lost");
    state_is(2, "released");
}

static void test_dead_idempotent_write(void **state)
{
    (void)state;
    struct ask a = ask(), b = again(2);
    a.side_effect = "write";
    a.idempotent = true;
    accept_is(&a, "accepted", 1, 1);
    instance_dies(1);
    b.instance = 2;
    find_is(&b, "takeover", 1, false);
    accept_is(&b, "accepted", 1, 2);
}

static void test_sweep(void **state)
{
    (void)state;
    static const char *const effects[] = { "none", "read", "write", "irreversible", "write" };
    for (int i = 0; i < 5; i++) {
        struct ask a = ask();
        a.attempt = a.nonce = a.request = i + 1;
        a.side_effect = effects[i];
        a.instance = i == 4 ? 2 : 1;
        accept_is(&a, "accepted", i + 1, 1);
    }
    OWNED char *before = dump();
    sql_is(pg, "SELECT orders_sweep(10)", "0");
    same_as(before);
    instance_dies(1);
    sql_is(pg, "SELECT orders_sweep(1)", "1");
    sql_is(pg, "SELECT orders_sweep(10)", "3");
    sql_is(pg, "SELECT orders_sweep(10)", "0");
    sql_is(pg, "SELECT string_agg(work, ' ' ORDER BY id) FROM orders", "failed failed lost lost running");
    sql_is(pg, "SELECT string_agg(state, ' ' ORDER BY id) FROM authorizations",
           "released released released released held");
    finish_is(1, 1, "lost", "late");
    finish_is(3, 1, "failed", "late");
    state_is(3, "released");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_failed_same),
        TEST(test_failed_fresh),
        TEST(test_failed_too_late),
        TEST(test_failed_same_nonce_other_deadline),
        TEST(test_failed_same_nonce_other_amount),
        TEST(test_failed_other_price),
        TEST(test_failed_but_it_landed),
        TEST(test_lost),
        TEST(test_dead_read),
        TEST(test_dead_read_fresh),
        TEST(test_lease_over),
        TEST(test_dead_write),
        TEST(test_dead_write_fresh),
        TEST(test_dead_idempotent_write),
        TEST(test_sweep),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
