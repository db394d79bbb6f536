/* What is kept for a while: dropped a part at a time, and nothing of it early. */
#include "money.h"

#include <stdio.h>
#include <string.h>

/* All that is written down is older by this. */
static void time_passes(int hours)
{
    OWNED char *q = str_format(
        "UPDATE rings SET began = ARRAY(SELECT v - interval '%d hours' FROM unnest(began) WITH ORDINALITY x (v, i) ORDER BY i);"
        "UPDATE orders SET work_ended_at = work_ended_at - interval '%d hours'; UPDATE authorizations SET ended_at = ended_at - interval '%d hours';"
        "UPDATE proofs SET recorded_at = recorded_at - interval '%d hours'",
        hours, hours, hours, hours);
    sql_run(pg, q);
}

static void turn(const char *ring, int emptied)
{
    DB_ARGS a = { 0 };
    DB_ROWS *r = NULL;
    arg_text(&a, ring);
    arg_int(&a, 24 * 3600);
    assert_int_equal(call(gateway, "ring_turn", &a, &r), DB_OK);
    assert_int_equal(row_int(r, 0, "emptied"), emptied);
}

static void sale(int n)
{
    struct ask a = ask();
    char id[32];
    snprintf(id, sizeof id, "the-payment-id-%d", n);
    a.attempt = a.nonce = a.request = n;
    a.payment_id = id;
    accept_is(&a, "accepted", n, 1);
    finish_is(n, 1, "done", "ok");
}

static void test_dropped_whole(void **state)
{
    (void)state;
    turn("answers", 0);
    sale(1);
    settles(1, 1, 0);
    OWNED char *file = sql_one(pg, "SELECT pg_relation_filenode('answers_0')");
    for (int i = 0; i < 4; i++) {
        time_passes(7);
        turn("answers", 0);
        sql_is(pg, "SELECT count(*) FROM answers", "1");
    }
    time_passes(7);
    turn("answers", 1);
    sql_is(pg, "SELECT count(*) FROM answers", "0");
    OWNED char *other = sql_one(pg, "SELECT pg_relation_filenode('answers_0')");
    assert_string_not_equal(file, other); /* emptied at once: not a row was deleted by itself */
    sql_is(pg, "SELECT concat_ws(' ', status, answer_status, answer_size, answer_kept) FROM order_status", "paid 200 3 f");
    struct ask again = ask();
    again.attempt = 2;
    again.payment_id = "the-payment-id-1";
    accept_is(&again, "gone", 1, 1);
}

/* One that is not decided, whose authorization is not dead, whose debt is owed or which is in review, stays; the part goes. */
static void test_nothing_early(void **state)
{
    (void)state;
    turn("answers", 0);
    for (int i = 1; i <= 5; i++)
        sale(i);
    settles(1, 1, 0); /* this one may go */
    settles(2, 2, 0);
    settles(3, 3, 0);
    settles(4, 4, 0);
    struct ask other = ask(); /* a second authorization of the second, released and watched */
    other.attempt = other.nonce = 12;
    other.request = 2;
    other.payment_id = "the-payment-id-2";
    accept_is(&other, "replay", 2, 1);
    sql_run(pg, "INSERT INTO debts (id, order_id, authorization_id, cause, network, asset, payer, amount, tx, log_index, refund_nonce)"
                " SELECT b(3, 32), order_id, id, 'duplicate', network, asset, payer, amount, b(3, 32), 9, b(3, 32) FROM authorizations WHERE id = auth(3)");
    sql_run(pg, "INSERT INTO reviews (order_id, fact) VALUES (b(4, 16), 'a fact')");
    for (int i = 0; i < 5; i++) {
        time_passes(7);
        turn("answers", i == 4);
    }
    sql_is(pg, "SELECT string_agg(get_byte(order_id, 0)::text, ' ' ORDER BY order_id) FROM answers", "2 3 4 5");
    sql_is(pg, "SELECT count(*) FROM answers_0", "0");
    /* decided now, they have their retention from now on */
    settles(5, 5, 0);
    for (int i = 0; i < 4; i++) {
        time_passes(7);
        turn("answers", 1);
    }
    sql_is(pg, "SELECT position('5' IN string_agg(get_byte(order_id, 0)::text, ' ')) > 0 FROM answers", "t");
}

static void test_ids_are_forgotten(void **state)
{
    (void)state;
    struct ask a = ask();
    turn("payment_ids", 0);
    sale(1);
    settles(1, 1, 0);
    for (int i = 0; i < 6; i++) {
        time_passes(7);
        turn("payment_ids", i >= 4);
    }
    a.attempt = a.nonce = a.request = 2;
    a.payment_id = "the-payment-id-1";
    accept_is(&a, "accepted", 2, 1); /* it names another call now; the old order and its receipt are there */
    sql_is(pg, "SELECT string_agg(concat_ws(' ', get_byte(id, 0), payment_id), ', ' ORDER BY id) FROM orders", "1, 2 the-payment-id-1");
}

/* Free repeats go with what is counted of them; those of an order that is not decided stay, and its count. */
static void test_repeats_go_with_their_count(void **state)
{
    (void)state;
    turn("repeats", 0);
    for (int i = 1; i <= 2; i++) {
        struct ask a = ask();
        a.attempt = a.nonce = a.request = a.key = i;
        a.cacheable = true;
        accept_is(&a, "accepted", i, 1);
        sql_run(pg, i == 1 ? "SELECT order_finish(b(1, 16), 1, 'done', NULL, 200, '[]', 'x', b(1, 32), NULL, true)" : "SELECT 1");
        struct ask b = a;
        b.attempt = b.nonce = b.request = 10 + i;
        b.unverified = true;
        DB_ROWS *r = NULL;
        assert_int_equal(accept_rows(&b, &r), DB_OK);
        assert_true(row_is(r, 0, "verdict", "repeat_wait"));
    }
    settles(1, 1, 0);
    ends(11, "expired");
    for (int i = 0; i < 5; i++) {
        sql_is(pg, "SELECT count(*) FROM repeat_counts", "2");
        time_passes(7);
        turn("repeats", i == 4);
    }
    sql_is(pg, "SELECT string_agg(get_byte(order_id, 0)::text, ' ') FROM repeats", "2");
    sql_is(pg, "SELECT string_agg(get_byte(order_id, 0)::text, ' ') FROM repeat_counts", "2");
}

static void test_full_ring(void **state)
{
    (void)state;
    turn("answers", 0);
    sale(1);
    for (int i = 0; i < 40; i++) {
        time_passes(7);
        DB_ARGS a = { 0 };
        arg_text(&a, "answers");
        arg_int(&a, 24 * 3600);
        assert_int_equal(call(gateway, "ring_turn", &a, NULL), DB_OK);
        sql_is(pg, "SELECT count(*) FROM answers", "1"); /* undecided, however often the ring turns */
    }
}

static void read_is(int wallet, int nonce, int attempt, const char *verdict)
{
    DB_ARGS a = { 0 };
    DB_ROWS *r = NULL;
    args_id(&a, 1, 16);
    args_id(&a, wallet, 20);
    args_id(&a, nonce, 32);
    args_id(&a, attempt, 16);
    arg_int(&a, 86400);
    arg_text(&a, BY_GATEWAY);
    assert_int_equal(call(gateway, "result_read", &a, &r), DB_OK);
    assert_string_equal(row_text(r, 0, "verdict").p, verdict);
    assert_int_equal(!row_null(r, 0, "answer_body"), strcmp(verdict, "result") == 0);
}

static void test_result(void **state)
{
    (void)state;
    read_is(1, 1, 1, "wallet"); /* no such receipt */
    sale(1);
    read_is(1, 2, 2, "in_flight");
    settles(1, 1, 0);
    read_is(1, 3, 3, "result");
    read_is(1, 3, 3, "result"); /* its reply was lost */
    read_is(1, 3, 4, "used");
    read_is(2, 3, 5, "used");
    read_is(2, 4, 6, "wallet");
    time_passes(23);
    read_is(1, 5, 7, "result");
    time_passes(2);
    read_is(1, 6, 8, "gone"); /* kept still, but its day is over */
    sql_is(pg, "SELECT count(*) FROM answers", "1");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_dropped_whole), TEST(test_nothing_early), TEST(test_ids_are_forgotten), TEST(test_repeats_go_with_their_count), TEST(test_full_ring), TEST(test_result),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
