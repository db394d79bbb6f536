/* Orders whose money comes first: due at once, begun behind the proof, once; and what is owed back when the work fails with the
 * money in. */
#include "money.h"

static struct ask first(void)
{
    struct ask a = with_id();
    a.pay_first = true;
    return a;
}

static struct ask first_again(int attempt)
{
    struct ask a = first();
    a.attempt = attempt;
    return a;
}

static void debts_are(const char *expected)
{
    sql_is(pg,
           "SELECT coalesce(string_agg(concat_ws(' ', get_byte(a.nonce, 0), d.cause, d.state, d.amount), ', ' ORDER BY "
           "a.nonce), '') FROM debts d JOIN authorizations a ON a.id = d.authorization_id",
           expected);
}

static void sweeps(int unbegun_s, int expected)
{
    OWNED char *q = str_format("SELECT orders_sweep(100, '" BY_SETTLER "', %d)", unbegun_s);
    OWNED char *n = str_format("%d", expected);
    sql_is(pg, q, n);
}

static void status_is(const char *status)
{
    sql_is(pg, "SELECT status FROM order_status", status);
}

/* Accepted and proven; nobody has begun. */
static void paid(struct ask a)
{
    accept_is(&a, "to_settle", 1, 1);
    settles(1, 1, 0);
    work_is(1, "waiting");
}

/* ---- the order of events ---- */

static void test_due_before_work(void **state)
{
    (void)state;
    struct ask a = first(), b = first_again(2);
    accept_is(&a, "to_settle", 1, 1);
    state_is(1, "due");
    work_is(1, "waiting");
    sql_is(pg, "SELECT work_by IS NULL AND work_until IS NULL AND due_at IS NOT NULL FROM orders, authorizations", "t");
    OWNED char *before = dump();
    accept_is(&a, "to_settle", 1, 1); /* its reply was lost */
    find_is(&b, "in_flight", 1, false);
    accept_is(&b, "in_flight", 1, 1);
    begin_is(1, 7, 1, "in_flight", 1); /* not proven: nothing to begin */
    same_as(before);
    settles(1, 1, 0);
    status_is("processing");
    find_is(&b, "begin", 1, false);
    begin_is(1, 7, 1, "accepted", 2);
    work_is(1, "running");
    OWNED char *begun = dump();
    begin_is(1, 7, 1, "accepted", 2); /* its reply was lost */
    begin_is(1, 8, 2, "in_flight", 2);
    find_is(&b, "in_flight", 1, false);
    same_as(begun);
    finish_is(1, 1, "done", "late"); /* of the epoch before the work */
    finish_is(1, 2, "done", "ok");
    status_is("paid");
    begin_is(1, 9, 1, "replay", 2);
    find_is(&b, "replay", 1, false);
    debts_are("");
    sql_is(pg, "SELECT string_agg(event, ' ' ORDER BY seq) FROM events", "accepted_first settled work_begun work_done");
    sql_is(pg, "SELECT sum(events_broken(id)) FROM orders", "0");
}

/* The nonce is on the chain for everybody to see: it does not begin the work for whoever copies it. */
static void test_shown(void **state)
{
    (void)state;
    struct ask a = first(), copy = again(2);
    copy.pay_first = true;
    paid(a);
    find_is(&copy, "not_proven", 1, false);
    accept_is(&copy, "not_proven", 1, 1);
    a.payment_id = NULL;
    find_is(&a, "begin", 1, false); /* the quote */
    struct ask fresh_one = fresh(2);
    fresh_one.pay_first = true;
    accept_is(&fresh_one, "begin", 1, 1); /* a fresh signature of the wallet: set aside, and the work may begin */
    state_is(2, "released");
    current_is(1);
}

/* ---- the work fails behind the money ---- */

static void test_failed(void **state)
{
    (void)state;
    paid(first());
    begin_is(1, 7, 1, "accepted", 2);
    finish_is(1, 2, "failed", "ok");
    debts_are("1 work_failed owed 10000");
    status_is("refund_due");
    struct ask b = first_again(2), c = fresh(2);
    c.pay_first = true;
    find_is(&b, "work_failed_paid", 1, false);
    accept_is(&c, "work_failed_paid", 1, 2);
    state_is(2, "released");
    begin_is(1, 8, 1, "work_failed_paid", 2);
    debts_are("1 work_failed owed 10000");
}

static void test_lost(void **state)
{
    (void)state;
    struct ask a = first();
    a.side_effect = "write";
    paid(a);
    begin_is(1, 7, 1, "accepted", 2);
    finish_is(1, 2, "lost", "ok");
    status_is("in_review");
    begin_is(1, 8, 1, "in_review", 2);
    debts_are("");
    sql_run(pg, "SELECT review_resolve(b(1, 16), 'failed', 'a note', NULL, 'ann')");
    debts_are("1 work_failed owed 10000");
    begin_is(1, 8, 1, "work_failed_paid", 3);
}

/* ---- the money does not come ---- */

static void test_dead(void **state)
{
    (void)state;
    struct ask a = first(), b = first_again(2), c = fresh(2);
    c.pay_first = true;
    accept_is(&a, "to_settle", 1, 1);
    ends(1, "expired");
    work_is(1, "failed");
    status_is("not_charged");
    find_is(&b, "pay_again", 1, false);
    find_is(&c, "again", 1, true);
    accept_is(&c, "to_settle", 1, 1);
    work_is(1, "waiting");
    current_is(2);
    state_is(2, "due");
    begin_is(1, 7, 1, "in_flight", 2);
    settles(2, 1, 0);
    begin_is(1, 7, 1, "accepted", 3);
    finish_is(1, 3, "done", "ok");
    status_is("paid");
    debts_are("");
}

/* The proof leaves the chain while the work runs; it fails meanwhile: nothing may be asked for until the money is decided again. */
static void test_undone(void **state)
{
    (void)state;
    struct ask a = first(), c = first_again(3);
    accept_is(&a, "to_settle", 1, 1);
    sql_run(pg, "UPDATE authorizations SET state = 'sent'");
    settles(1, 1, 0);
    begin_is(1, 7, 1, "accepted", 2);
    sql_run(pg, "SELECT block_undone('eip155:1', 10, b(6, 32), '" BY_SETTLER "')");
    state_is(1, "sent");
    finish_is(1, 2, "failed", "ok");
    debts_are("");
    find_is(&c, "in_flight", 1, false);
    begin_is(1, 8, 1, "in_flight", 2);
    settles(1, 1, 0);
    debts_are("1 work_failed owed 10000");
    find_is(&c, "work_failed_paid", 1, false);
}

/* ---- whoever had it died ---- */

static void test_put_back(void **state)
{
    (void)state;
    struct ask b = first_again(2);
    paid(first());
    begin_is(1, 7, 1, "accepted", 2);
    instance_dies(1);
    find_is(&b, "begin", 1, false); /* also before anybody swept */
    sweeps(900, 1);
    work_is(1, "waiting");
    finish_is(1, 2, "done", "late");
    debts_are("");
    sweeps(900, 0);
    begin_is(1, 8, 2, "accepted", 4);
    finish_is(1, 4, "done", "ok");
    status_is("paid");
    sql_is(pg, "SELECT sum(events_broken(id)) FROM orders", "0");
}

static void test_write_is_not_put_back(void **state)
{
    (void)state;
    struct ask a = first(), b = first_again(2);
    a.side_effect = "write";
    paid(a);
    begin_is(1, 7, 1, "accepted", 2);
    instance_dies(1);
    find_is(&b, "in_review", 1, false);
    begin_is(1, 8, 2, "in_review", 2);
    sweeps(900, 1);
    work_is(1, "lost");
    debts_are("");
}

static void test_unbegun(void **state)
{
    (void)state;
    paid(first());
    sweeps(900, 0);
    sql_run(pg, "UPDATE orders SET created_at = now() - interval '20 minutes'");
    sweeps(900, 0); /* it is the proof that counts */
    sql_run(pg, "UPDATE proofs SET recorded_at = now() - interval '901 s'");
    sweeps(900, 1);
    sweeps(900, 0);
    work_is(1, "failed");
    debts_are("1 work_failed owed 10000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_due_before_work, money_clear), cmocka_unit_test_setup(test_shown, money_clear),
        cmocka_unit_test_setup(test_failed, money_clear),          cmocka_unit_test_setup(test_lost, money_clear),
        cmocka_unit_test_setup(test_dead, money_clear),            cmocka_unit_test_setup(test_undone, money_clear),
        cmocka_unit_test_setup(test_put_back, money_clear),        cmocka_unit_test_setup(test_write_is_not_put_back, money_clear),
        cmocka_unit_test_setup(test_unbegun, money_clear),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
