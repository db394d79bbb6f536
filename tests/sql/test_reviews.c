/* Outcomes that nobody knows: late answers, work that is lost, nonces that puzzle; what a person must decide, and what
 * decides itself after all. */
#include "money.h"

#include <string.h>

static struct ask write_call(void)
{
    struct ask a = with_id();
    a.side_effect = "write";
    return a;
}

static struct ask idempotent_write(void)
{
    struct ask a = write_call();
    a.idempotent = true;
    return a;
}

static void lease_ends(void)
{
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s'");
    sql_is(pg, "SELECT orders_sweep(10, '" BY_SETTLER "')", "1");
}

static void review_is(const char *expected)
{
    sql_is(pg,
           "SELECT coalesce(string_agg(concat_ws(' ', fact, resolved_at IS NOT NULL, resolution, resolved_by, note), "
           "','), '') FROM reviews",
           expected);
}

static void status_is(const char *status)
{
    sql_is(pg, "SELECT status FROM order_status", status);
}

static void puzzles(int nonce)
{
    OWNED char *q = str_format("SELECT authorization_puzzles(auth(%d), 'used, no log', '" BY_SETTLER "')", nonce);
    sql_run(pg, q);
}

/* ---- lost, and late answers ---- */

static void test_lost_opens(void **state)
{
    (void)state;
    struct ask a = write_call();
    accept_is(&a, "accepted", 1, 1);
    review_is("");
    lease_ends();
    work_is(1, "lost");
    review_is("the instance that ran it ended f");
    status_is("in_review");
    struct ask b = again(2), c = fresh(3);
    find_is(&b, "in_review", 1, false);
    accept_is(&c, "in_review", 1, 1);
    state_is(3, "released");
}

/* The instance was not dead, and its answer is the outcome after all. */
static void test_late_answer(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    lease_ends();
    work_is(1, "lost");
    state_is(1, "released");
    finish_is(1, 1, "failed", "late"); /* that it failed changes nothing */
    work_is(1, "lost");
    finish_is(1, 1, "done", "ok");
    work_is(1, "done");
    state_is(1, "due");
    status_is("settling");
    review_is("the instance that ran it ended t done gateway 1 its answer came late");
    sql_is(pg, "SELECT concat_ws(' ', work_note, octet_length(body)) FROM orders, answers", "3");
    OWNED char *before = dump();
    finish_is(1, 1, "done", "ok");
    finish_is(1, 1, "lost", "late");
    same_as(before);
    settles(1, 1, 0);
    status_is("paid");
    find_is(&a, "replay", 1, false);
}

/* Others were told that the read failed and nothing is charged: an answer that comes now changes nothing. */
static void test_late_read(void **state)
{
    (void)state;
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    lease_ends();
    work_is(1, "failed");
    OWNED char *before = dump();
    finish_is(1, 1, "done", "late");
    same_as(before);
}

/* Its authorization is dead by now: the answer is kept for a fresh one. */
static void test_late_answer_dead(void **state)
{
    (void)state;
    struct ask a = write_call(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    lease_ends();
    ends(1, "expired");
    finish_is(1, 1, "done", "ok");
    state_is(1, "expired");
    status_is("unpaid");
    accept_is(&b, "resent", 1, 1);
    state_is(2, "due");
}

/* Somebody ran it again since: the old answer is of another epoch. */
static void test_late_epoch(void **state)
{
    (void)state;
    struct ask a = idempotent_write(), b = again(2);
    accept_is(&a, "accepted", 1, 1);
    lease_ends();
    accept_is(&b, "accepted", 1, 2);
    OWNED char *running = dump();
    finish_is(1, 1, "done", "late");
    same_as(running);
    finish_is(1, 2, "lost", "ok");
    OWNED char *lost = dump();
    finish_is(1, 1, "done", "late");
    same_as(lost);
    sql_is(pg, "SELECT count(*) FROM answers", "0");
}

/* ---- lost, but its upstream knows the order's key ---- */

static void test_lost_again(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct ask a = idempotent_write(), b = i ? fresh(2) : again(2), c = again(3);
        money_clear(NULL);
        accept_is(&a, "accepted", 1, 1);
        finish_is(1, 1, "lost", "ok");
        review_is("a note f");
        find_is(&b, "again", 1, i);
        b.valid_in_s = 5;
        find_is(&b, "in_review", 1, i);
        b.valid_in_s = 120;
        accept_is(&b, "accepted", 1, 2);
        review_is("a note t failed gateway 1 run again: its upstream is idempotent");
        status_is("processing");
        find_is(&c, "in_flight", 1, false);
        finish_is(1, 2, "done", "ok");
        state_is(i ? 2 : 1, "due");
        sql_is(pg, "SELECT count(*) FROM authorizations WHERE state = 'due'", "1");
    }
}

/* Opened anew, it says nothing of what was decided before. */
static void test_lost_twice(void **state)
{
    (void)state;
    struct ask a = idempotent_write(), b = again(2);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "lost", "ok");
    accept_is(&b, "accepted", 1, 2);
    finish_is(1, 2, "lost", "ok");
    status_is("in_review");
    review_is("a note f");
}

/* It landed while the work ran: there is nothing left to sign for. */
static void test_lost_but_landed(void **state)
{
    (void)state;
    struct ask a = idempotent_write(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    settles(1, 1, 0);
    finish_is(1, 1, "lost", "ok");
    assert_int_equal(accept_rc(&b), DB_OK);
    current_is(1);
    state_is(2, "released");
}

/* ---- used, but by no log ---- */

static void test_puzzles(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2), c = fresh(3);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    sql_run(pg, "UPDATE authorizations SET state = 'sent', next_look = now() - interval '1 s'; LISTEN payonce_order");
    puzzles(1);
    review_is("used, no log f");
    status_is("in_review");
    sql_run(pg, "SELECT 1");
    PGnotify *n = PQnotifies(pg);
    assert_non_null(n);
    PQfreemem(n);
    sql_run(pg, "UNLISTEN payonce_order");
    find_is(&b, "in_review", 1, false);
    accept_is(&c, "in_review", 1, 1);
    state_is(1, "sent");
    state_is(3, "released");
    OWNED char *before = dump();
    puzzles(1);
    same_as(before);                                                             /* said once */
    sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "1"); /* it is looked at on */
}

/* The log was found: nothing is left to decide. */
static void test_puzzle_solved(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct ask a = with_id();
        money_clear(NULL);
        accept_is(&a, "accepted", 1, 1);
        finish_is(1, 1, "done", "ok");
        puzzles(1);
        if (i == 0)
            settles(1, 1, 0);
        else
            ends(1, "void");
        status_is(i == 0 ? "paid" : "unpaid");
        find_is(&a, i == 0 ? "replay" : "pay_again", 1, false);
    }
}

/* Used by something that no log of ours explains, for ever: a person who has seen what it was ends it. */
static void test_puzzle_decided(void **state)
{
    (void)state;
    static const char decide[] = "SELECT concat_ws(' ', verdict, resolution, resolved_by) FROM review_resolve(b(1, 16), 'void', "
                                 "'paid for less', NULL, 'ann')";
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    sql_is(pg, decide, "no_review");
    puzzles(1);
    status_is("in_review");
    sql_is(pg, "SELECT verdict FROM review_resolve(b(1, 16), 'failed', 'no', NULL, 'ann')", "not_lost");
    sql_is(pg, decide, "resolved void operator:ann");
    sql_is(pg, "SELECT state || ': ' || end_note FROM authorizations", "void: operator:ann decided: paid for less");
    status_is("unpaid");
    OWNED char *before = dump();
    sql_is(pg, decide, "resolved void operator:ann"); /* its reply was lost */
    same_as(before);
    find_is(&a, "pay_again", 1, false);
}

/* A review of the work is not closed by what the money did. */
static void test_lost_stays(void **state)
{
    (void)state;
    struct ask a = write_call();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "lost", "ok");
    puzzles(1);
    settles(1, 1, 0);
    status_is("in_review");
    review_is("a note f");
}

/* The work runs, its instance lives: a repeat waits, and ends nothing. */
static void test_puzzle_while_running(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2);
    accept_is(&a, "accepted", 1, 1);
    puzzles(1);
    accept_is(&b, "in_review", 1, 1);
    work_is(1, "running");
    state_is(1, "held");
}

/* One that was set aside puzzles: the order that is paid stays paid, and its answer can be had. */
static void test_puzzle_set_aside(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "in_flight", 1, 1);
    finish_is(1, 1, "done", "ok");
    settles(1, 1, 0);
    puzzles(2);
    find_is(&a, "replay", 1, false);
    status_is("paid");
}

/* What was decided about the work says nothing about a nonce that puzzles later. */
static void test_puzzle_after_a_review(void **state)
{
    (void)state;
    struct ask a = idempotent_write(), b = again(2);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "lost", "ok");
    accept_is(&b, "accepted", 1, 2);
    finish_is(1, 2, "done", "ok");
    puzzles(1);
    status_is("in_review");
    review_is("used, no log f");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lost_opens),
        TEST(test_late_answer), TEST(test_late_read),
        TEST(test_late_answer_dead),
        TEST(test_late_epoch),
        TEST(test_lost_again),
        TEST(test_lost_twice),
        TEST(test_lost_but_landed),
        TEST(test_puzzles),
        TEST(test_puzzle_solved), TEST(test_puzzle_decided),
        TEST(test_lost_stays),
        TEST(test_puzzle_while_running),
        TEST(test_puzzle_set_aside),
        TEST(test_puzzle_after_a_review),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
