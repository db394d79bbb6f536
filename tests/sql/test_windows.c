/* Where a free repeat begins and ends: the window's edges, the cap, single flight, and whoever becomes the payer. */
#include "money.h"

#include <stdio.h>
#include <string.h>

enum { PROVEN_S = 1800000000 };
static const int64_t proven_ms = PROVEN_S * INT64_C(1000);

/* The same question signed anew; its key is the request's number. */
static struct ask question(int nonce)
{
    struct ask a = ask();
    a.attempt = a.nonce = nonce;
    a.request = 40 + nonce; /* spelled another way each time */
    a.cacheable = true;
    a.key = 1;
    a.now_ms = proven_ms + 1000;
    return a;
}

static void proven(int nonce)
{
    settles(nonce, nonce, 0);
    OWNED char *q = str_format("UPDATE proofs SET block_time = %d WHERE authorization_id = auth(%d)", PROVEN_S, nonce);
    sql_run(pg, q);
}

static void finish_repeatable(int order, int epoch, bool repeatable)
{
    OWNED char *q = str_format("SELECT (order_finish(b(%d, 16), %d, 'done', NULL, 200, '[]', 'an answer', b(1, 32), NULL, %s)).verdict", order, epoch,
                               repeatable ? "true" : "false");
    sql_is(pg, q, "ok");
}

static void paid(void)
{
    struct ask a = question(1);
    accept_is(&a, "accepted", 1, 1);
    finish_repeatable(1, 1, true);
    proven(1);
    sql_run(pg, "UPDATE orders SET delivered_at = now()");
}

static void looked_at(const struct ask *a, const char *verdict, int order)
{
    DB_ROWS *r = NULL;
    assert_int_equal(accept_rows(a, &r), DB_OK);
    assert_string_equal(row_text(r, 0, "verdict").p, verdict);
    if (strcmp(verdict, "repeat") == 0) {
        assert_int_equal(id_in(r, "order_id"), order);
        assert_int_equal(id_in(r, "receipt"), order);
        assert_int_equal(row_int(r, 0, "answer_status"), 200);
        assert_int_equal(row_int(r, 0, "answer_time"), PROVEN_S);
        assert_true(slice_is(row_bytes(r, 0, "answer_body"), "an answer"));
    }
}

static void looked(const struct ask *a, const char *verdict)
{
    looked_at(a, verdict, 1);
}

static void orders_are(const char *n)
{
    sql_is(pg, "SELECT count(*) FROM orders", n);
}

/* ---- the window ---- */

static void test_edges(void **state)
{
    (void)state;
    paid();
    static const struct { int64_t ms; const char *verdict; } edges[] = {
        { 0, "repeat" }, { 119900, "repeat" }, { 119999, "repeat" }, { 120000, "new" }, { 120100, "new" }, { -5000, "repeat" },
    };
    for (size_t i = 0; i < COUNT(edges); i++) {
        struct ask b = question(2 + (int)i);
        b.unverified = true;
        b.now_ms = proven_ms + edges[i].ms;
        looked(&b, edges[i].verdict);
    }
    struct ask late = question(20);
    late.now_ms = proven_ms + 120100;
    accept_is(&late, "accepted", 20, 1);
    orders_are("2");
}

/* The database's own clock has no say: what it calls an hour ago is as good as what it calls tomorrow. */
static void test_wall_steps(void **state)
{
    (void)state;
    paid();
    static const char *const steps[] = { "+ interval '1 hour'", "- interval '2 hours'", "- interval '3 days'", "+ interval '9 days'" };
    for (size_t i = 0; i < COUNT(steps); i++) {
        OWNED char *q = str_format("UPDATE orders SET created_at = created_at %s; UPDATE proofs SET recorded_at = recorded_at %s;"
                                   "UPDATE answers SET stored_at = stored_at %s", steps[i], steps[i], steps[i]);
        sql_run(pg, q);
        struct ask in = question(2 + (int)i), out = question(10 + (int)i);
        in.unverified = out.unverified = true;
        in.now_ms = proven_ms + 119900;
        out.now_ms = proven_ms + 120100;
        looked(&in, "repeat");
        looked(&out, "new");
    }
}

/* The shorter of what it was sold under and what is configured now. */
static void test_window_lengths(void **state)
{
    (void)state;
    paid();
    struct ask b = question(2), c = question(3);
    b.unverified = c.unverified = true;
    b.window_s = 10;
    b.now_ms = proven_ms + 10100;
    looked(&b, "new");
    c.window_s = 1000;
    c.now_ms = proven_ms + 120100;
    looked(&c, "new");
}

/* ---- whose, and what ---- */

static void test_never(void **state)
{
    (void)state;
    paid();
    struct ask none = question(2), other = question(3);
    none.unverified = other.unverified = true;
    none.key = 0; /* not cacheable: no key */
    other.key = 2;
    looked(&none, "new");
    looked(&other, "new");
    sql_run(pg, "DELETE FROM answers");
    struct ask gone = question(4);
    gone.unverified = true;
    looked(&gone, "new");
    orders_are("1");
}

static void test_not_repeatable(void **state)
{
    (void)state;
    struct ask a = question(1), b = question(2);
    accept_is(&a, "accepted", 1, 1);
    finish_repeatable(1, 1, false);
    proven(1);
    sql_run(pg, "UPDATE orders SET delivered_at = now()");
    accept_is(&b, "accepted", 2, 1);
}

/* ---- the cap ---- */

static void test_cap(void **state)
{
    (void)state;
    paid();
    for (int i = 2; i < 8; i++) {
        struct ask b = question(i);
        b.unverified = true;
        b.repeat_max = 3;
        b.now_ms = proven_ms + 19500;
        looked(&b, i < 5 ? "repeat" : "repeat_limit");
    }
    sql_is(pg, "SELECT count(*) FROM repeats WHERE NOT refused", "3");
    sql_is(pg, "SELECT repeats_of(b(1, 16))::json->>'count'", "3");
    struct ask last = question(9);
    DB_ROWS *r = NULL;
    last.repeat_max = 3;
    last.now_ms = proven_ms + 19500;
    assert_int_equal(accept_rows(&last, &r), DB_OK);
    assert_int_equal(row_int(r, 0, "retry_after"), 101);
    orders_are("1");
}

/* The answer is given twice, to 2 and 3; 4 is refused. */
static void fourth_refused(void)
{
    paid();
    for (int i = 2; i < 5; i++) {
        struct ask b = question(i);
        b.unverified = true;
        b.repeat_max = 2;
        looked(&b, i < 4 ? "repeat" : "repeat_limit");
    }
}

/* A refusal is no reason to lose money: what was refused is watched, and where it lands all the same it is owed back. */
static void test_refused_is_watched(void **state)
{
    (void)state;
    fourth_refused();
    state_is(4, "released");
    settles(4, 4, 0);
    sql_is(pg, "SELECT cause || ' ' || state FROM debts WHERE authorization_id = auth(4)", "duplicate owed");
}

/* As many refusals leave a row as answers do. */
static void test_refused_are_bounded(void **state)
{
    (void)state;
    paid();
    for (int i = 2; i < 12; i++) {
        struct ask b = question(i);
        b.unverified = true;
        b.repeat_max = 3;
        looked(&b, i < 5 ? "repeat" : "repeat_limit");
        looked(&b, i < 5 ? "repeat" : "repeat_limit"); /* its reply was lost */
    }
    sql_is(pg, "SELECT count(*) FROM authorizations WHERE state = 'released'", "6");
    sql_is(pg, "SELECT count(*) FROM repeats WHERE refused", "3");
    sql_is(pg, "SELECT n FROM repeat_counts", "6");
}

/* The same payment again: refused while there is no room, answered once there is, and a question of its own past the window. */
static void test_refused_again(void **state)
{
    (void)state;
    fourth_refused();
    struct ask b = question(4), c = question(4);
    b.attempt = 14;
    b.repeat_max = 2;
    find_is(&b, "new", 0, false);
    b.unverified = true;
    looked(&b, "repeat_limit");
    b.unverified = false;
    looked(&b, "repeat_limit"); /* never a charge */
    b.repeat_max = 9;
    looked(&b, "repeat");
    find_is(&b, "replay", 1, false);
    sql_is(pg, "SELECT string_agg(refused::text, ' ') FROM repeats WHERE authorization_id = auth(4)", "false");
    c.attempt = 15;
    c.now_ms = proven_ms + 120100;
    accept_is(&c, "replay", 1, 1); /* it was given its answer */
    orders_are("1");
}

static void test_refused_past_the_window(void **state)
{
    (void)state;
    fourth_refused();
    struct ask b = question(4);
    b.attempt = 14;
    b.payment_id = ID;
    b.now_ms = proven_ms + 120100;
    b.unverified = true;
    looked(&b, "new");
    b.unverified = false;
    accept_is(&b, "accepted", 14, 1);
    state_is(4, "held");
    sql_is(pg, "SELECT order_id = b(14, 16) FROM payment_ids", "t");
    sql_is(pg, "SELECT count(*) FROM authorizations WHERE order_id = b(14, 16)", "1");
    find_is(&b, "in_flight", 14, false);
}

/* Also what was signed to run an older order once more. */
static void test_refused_beside_a_failed_order(void **state)
{
    (void)state;
    struct ask a = question(1), b = question(2), c = question(3), d = question(4);
    a.payment_id = d.payment_id = ID;
    d.request = a.request;
    c.repeat_max = d.repeat_max = 1;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    accept_is(&b, "accepted", 2, 1);
    finish_repeatable(2, 1, true);
    proven(2);
    looked_at(&c, "repeat", 2);
    looked(&d, "repeat_limit");
    looked(&d, "repeat_limit");
    state_is(4, "released");
    sql_is(pg, "SELECT order_id = b(1, 16) FROM authorizations WHERE id = auth(4)", "t");
    work_is(1, "failed");
    d.attempt = 14;
    d.now_ms = proven_ms + 120100;
    accept_is(&d, "accepted", 1, 2); /* past the window it pays */
}

/* ---- single flight ---- */

static void waits(int nonce)
{
    struct ask b = question(nonce);
    b.unverified = true;
    looked(&b, "repeat_wait");
    state_is(nonce, "released");
}

static void test_waits_then_free(void **state)
{
    (void)state;
    struct ask a = question(1);
    accept_is(&a, "accepted", 1, 1);
    waits(2);
    finish_repeatable(1, 1, true);
    waits(3);
    proven(1);
    for (int i = 2; i <= 3; i++) {
        struct ask b = question(i);
        b.now_ms = proven_ms + 500000; /* it waited, and then it is given, however long that took */
        find_is(&b, "replay", 1, false);
        looked(&b, "repeat"); /* the same attempt */
        b.attempt = 30;
        accept_is(&b, "replay", 1, 1);
    }
    orders_are("1");
    sql_is(pg, "SELECT count(*) FROM repeats WHERE NOT pays", "2");
}

static void test_first_fails(void **state)
{
    (void)state;
    struct ask a = question(1), b = question(2), c = question(3);
    accept_is(&a, "accepted", 1, 1);
    waits(2);
    waits(3);
    finish_is(1, 1, "failed", "ok");
    find_is(&b, "again", 1, false);
    b.attempt = 22;
    accept_is(&b, "accepted", 1, 2);
    c.attempt = 23;
    accept_is(&c, "in_flight", 1, 2); /* exactly one of them */
    current_is(2);
    finish_repeatable(1, 2, true);
    proven(2);
    find_is(&c, "replay", 1, false);
    find_is(&b, "replay", 1, false); /* though it is spelled unlike the first */
    sql_is(pg, "SELECT string_agg(state, ' ' ORDER BY id) FROM authorizations", "released settled released");
    sql_is(pg, "SELECT count(*) FROM repeats WHERE NOT pays", "1");
}

static void test_first_is_not_charged(void **state)
{
    (void)state;
    struct ask a = question(1), b = question(2);
    accept_is(&a, "accepted", 1, 1);
    waits(2);
    finish_repeatable(1, 1, true);
    ends(1, "void");
    find_is(&b, "resend", 1, false); /* the answer is kept: the waiter's payment pays it, the work is not repeated */
    b.attempt = 22;
    accept_is(&b, "resent", 1, 1);
    state_is(2, "due");
}

static void test_waiter_leaves(void **state)
{
    (void)state;
    struct ask a = question(1), b = question(2), c = question(3);
    accept_is(&a, "accepted", 1, 1);
    b.payment_id = "the-payment-id-2";
    looked(&b, "repeat_wait");
    waits(3);
    finish_repeatable(1, 1, false);
    find_is(&b, "new", 0, false);
    b.attempt = 22;
    accept_is(&b, "accepted", 22, 1); /* on its own account */
    c.attempt = 23;
    accept_is(&c, "accepted", 23, 1);
    sql_is(pg, "SELECT bool_and(order_id = b(22, 16)) FROM payment_ids", "t");
    finish_repeatable(22, 1, false);
    find_is(&b, "in_flight", 22, false);
    orders_are("3");
    sql_is(pg, "SELECT string_agg(a.state, ' ' ORDER BY a.id) FROM authorizations a JOIN orders o ON o.authorization_id = a.id", "due due held");
}

/* An older order of the same question whose work failed is not run again while another was paid and is still good. */
static void test_no_second_charge(void **state)
{
    (void)state;
    struct ask a = question(1), b = question(2);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    accept_is(&b, "accepted", 2, 1);
    finish_repeatable(2, 1, true);
    proven(2);
    a.attempt = 11;
    looked_at(&a, "repeat", 2);
    state_is(1, "released");
    a.attempt = 12;
    a.now_ms = proven_ms + 120100;
    accept_is(&a, "accepted", 1, 2);
}

/* Nor while another is at work: one after the other, and each of them leaves its row. */
static void test_failed_waits_for_another(void **state)
{
    (void)state;
    struct ask a = question(1), b = question(2), c = question(3);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    accept_is(&b, "accepted", 2, 1);
    a.attempt = 11;
    a.repeat_max = 1;
    looked_at(&a, "repeat_wait", 2);
    work_is(1, "failed");
    finish_repeatable(2, 1, true);
    a.attempt = 12;
    looked_at(&a, "repeat_wait", 2); /* it is settling */
    proven(2);
    a.attempt = 13;
    looked_at(&a, "repeat", 2);
    sql_is(pg, "SELECT count(*) FROM repeats WHERE order_id = b(2, 16)", "1");
    c.attempt = 31;
    c.repeat_max = 1;
    looked(&c, "repeat_limit");
    orders_are("2");
}

/* An order that failed, and was paid when it was run again, is the newest of its question, whatever failed meanwhile. */
static void test_paid_at_last(void **state)
{
    (void)state;
    struct ask a = with_id(), z = question(9);
    a.cacheable = true;
    a.key = 1;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    for (int i = 2; i < 7; i++) {
        struct ask b = question(i);
        accept_is(&b, "accepted", i, 1);
        finish_is(i, 1, "failed", "ok");
    }
    a.attempt = 11;
    accept_is(&a, "accepted", 1, 2);
    finish_repeatable(1, 2, true);
    proven(1);
    sql_run(pg, "UPDATE orders SET delivered_at = now()");
    looked(&z, "repeat");
    orders_are("6");
}

/* A surplus is another matter: it is paid back, and the answer stays bought. */
static void test_overpaid(void **state)
{
    (void)state;
    paid();
    sql_run(pg, "UPDATE transfers SET amount = amount + 1; SELECT surplus_book(ARRAY[auth(1)], '" BY_SETTLER "')");
    sql_is(pg, "SELECT cause FROM debts", "overpaid");
    static const char *const states[] = { "'owed'", "'approved'", "'paying', wallet = b(8, 20), signature = b(8, 65)",
                                          "'refunded', refund_tx = b(8, 32)" };
    for (size_t i = 0; i < COUNT(states); i++) {
        struct ask b = question(2 + (int)i);
        OWNED char *q = str_format("UPDATE debts SET state = %s", states[i]);
        sql_run(pg, q);
        looked(&b, "repeat");
        OWNED char *fetched = str_format("SELECT verdict FROM result_read(b(1, 16), b(1, 20), b(%d, 32), b(1, 16), 1000, '" BY_GATEWAY "')", 2 + (int)i);
        sql_is(pg, fetched, "result");
    }
    orders_are("1");
}

static void test_ids_of_repeats(void **state)
{
    (void)state;
    paid();
    struct ask b = question(2), c = question(3), d = question(4);
    b.payment_id = c.payment_id = d.payment_id = ID;
    looked(&b, "repeat");
    c.request = b.request;
    c.now_ms = proven_ms + 500000;
    find_is(&c, "replay", 1, true); /* the id was given an answer: asked again with it, it is that answer, window or not */
    accept_is(&c, "replay", 1, 1);
    accept_is(&d, "conflict_request", 0, 0);
    b.attempt = 2;
    looked(&b, "repeat"); /* its reply was lost */
    orders_are("1");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_edges),         TEST(test_wall_steps),  TEST(test_window_lengths),       TEST(test_never),         TEST(test_not_repeatable),
        TEST(test_cap), TEST(test_refused_is_watched), TEST(test_refused_are_bounded), TEST(test_refused_again), TEST(test_refused_past_the_window),
        TEST(test_refused_beside_a_failed_order),                   TEST(test_waits_then_free), TEST(test_first_fails),      TEST(test_first_is_not_charged),
        TEST(test_waiter_leaves), TEST(test_no_second_charge), TEST(test_ids_of_repeats),
        TEST(test_failed_waits_for_another), TEST(test_paid_at_last), TEST(test_overpaid),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
