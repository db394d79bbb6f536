/* What follows from money that arrived: which authorization pays, what is owed back, and that both together are what
 * came in. */
#include "money.h"

#include <string.h>

/* Transfers in = paid orders + debts, to the unit; and each transfer is told as what it is. */
static void books_balance(void)
{
    sql_is(
        pg,
        "SELECT (SELECT sum(amount) FROM transfers) - (SELECT coalesce(sum(amount), 0) FROM order_books WHERE status "
        "= 'paid') - (SELECT coalesce(sum(amount), 0) FROM debts WHERE state = 'owed')",
        "0");
    sql_is(pg, "SELECT (SELECT count(*) FROM transfers) - (SELECT count(*) FROM proofs)", "0");
    sql_is(
        pg,
        "SELECT count(*) FROM transfers t LEFT JOIN debts d ON d.authorization_id = t.authorization_id AND d.state = "
        "'owed' WHERE t.class <> CASE WHEN d.id IS NULL THEN 'sale' ELSE 'debt' END",
        "0");
}

/* As "nonce cause state amount, ..."; empty: none. */
static void debts_are(const char *expected)
{
    sql_is(pg,
           "SELECT coalesce(string_agg(concat_ws(' ', get_byte(a.nonce, 0), d.cause, d.state, d.amount), ', ' ORDER BY "
           "a.nonce), '') FROM debts d JOIN authorizations a ON a.id = d.authorization_id",
           expected);
}

static void status_is(const char *status)
{
    sql_is(pg, "SELECT status FROM order_status", status);
}

static struct ask cheaper(int nonce)
{
    struct ask a = fresh(nonce);
    a.amount = "7000";
    return a;
}

/* Work done and due; a second authorization, of another amount, was set aside. */
static void done_with_two(void)
{
    struct ask a = with_id(), b = cheaper(2);
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "in_flight", 1, 1);
    finish_is(1, 1, "done", "ok");
}

/* ---- a second one for one order ---- */

static void test_duplicate(void **state)
{
    (void)state;
    done_with_two();
    settles(1, 1, 0);
    debts_are("");
    books_balance();
    settles(2, 2, 0);
    current_is(1);
    debts_are("2 duplicate owed 7000");
    status_is("paid");
    books_balance();
    sql_is(pg,
           "SELECT concat_ws(' ', order_id = b(1, 16), network, asset = b(7, 20), payer = b(1, 20), tx = b(5, 32), "
           "log_index) FROM debts",
           "t eip155:1 t t t 2");
    struct ask a = with_id();
    a.attempt = 9;
    find_is(&a, "replay", 1, false); /* a duplicate blocks no delivery */
}

/* Whichever lands first pays, also one that was set aside; the one that was to pay is then not sent. */
static void test_first_pays(void **state)
{
    (void)state;
    done_with_two();
    settles(2, 2, 0);
    current_is(2);
    state_is(1, "released");
    debts_are("");
    status_is("paid");
    sql_is(pg, "SELECT amount FROM order_books", "7000");
    books_balance();
    settles(1, 1, 0); /* somebody else submitted it */
    current_is(2);
    debts_are("1 duplicate owed 10000");
    books_balance();
}

static void test_first_pays_sent(void **state)
{
    (void)state;
    done_with_two();
    sql_run(pg, "UPDATE authorizations SET state = 'sent' WHERE id = auth(1)");
    settles(2, 2, 0);
    state_is(1, "sent"); /* what is under way is under way */
    settles(1, 1, 0);
    debts_are("1 duplicate owed 10000");
    books_balance();
}

static void test_both_at_once(void **state)
{
    (void)state;
    for (int current = 1; current <= 2; current++) {
        money_clear(NULL);
        done_with_two();
        if (current == 2) {
            ends(1, "void");
            struct ask b = cheaper(2), c = fresh(3);
            b.attempt = 9;
            accept_is(&b, "resent", 1, 1);
            accept_is(&c, "in_flight", 1, 1);
        }
        OWNED char *q = str_format(
            "SELECT proofs_record(json_build_object('network', 'eip155:1', 'by', '%s'::json, 'proofs', json_agg("
            "json_build_object('id', id, 'tx', encode(b(5, 32), 'hex'), 'log_index', id, 'block', 1, 'block_hash',"
            " encode(b(6, 32), 'hex'), 'block_time', 1)))::text) FROM authorizations WHERE ended_at IS NULL",
            BY_SETTLER);
        sql_is(pg, q, "2");
        sql_is(pg, "SELECT count(*) FROM debts", "1");
        status_is("paid");
        books_balance();
    }
}

/* ---- for work that failed ---- */

static void test_late(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    settles(1, 1, 0);
    debts_are("1 late owed 10000");
    status_is("refund_due");
    books_balance();
    accept_is(&b, "work_failed_paid", 1, 1); /* no more of it */
    settles(2, 2, 0);                        /* landed all the same */
    debts_are("1 late owed 10000, 2 duplicate owed 10000");
    books_balance();
}

static void test_late_lost(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "lost", "ok");
    settles(1, 1, 0);
    debts_are("1 late owed 10000");
    status_is("in_review");
    books_balance();
}

/* It landed while the work ran, and the work failed. */
static void test_work_failed(void **state)
{
    (void)state;
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    settles(1, 1, 0);
    debts_are("");
    finish_is(1, 1, "failed", "ok");
    status_is("refund_due");
    debts_are("1 work_failed owed 10000");
    books_balance();
}

static void test_work_failed_swept(void **state)
{
    (void)state;
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    settles(1, 1, 0);
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s'");
    sql_is(pg, "SELECT orders_sweep(10)", "1");
    debts_are("1 work_failed owed 10000");
    books_balance();
}

/* Failed once, run again on a fresh one: the first, landing now, pays, and the fresh one is not sent. */
static void test_replaced_lands(void **state)
{
    (void)state;
    struct ask a = with_id(), b = cheaper(2);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    accept_is(&b, "accepted", 1, 2);
    settles(1, 1, 0);
    current_is(1);
    state_is(2, "released");
    finish_is(1, 2, "done", "ok");
    state_is(2, "released");
    status_is("paid");
    debts_are("");
    books_balance();
}

/* The answer came after its payment was owed back as late: it is a sale now, or stays a debt, never both. */
static void test_late_then_done(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s'");
    sql_is(pg, "SELECT orders_sweep(10)", "1");
    settles(1, 1, 0);
    debts_are("1 late owed 10000");
    finish_is(1, 1, "done", "ok");
    debts_are("1 late earned 10000");
    status_is("paid");
    books_balance();
}

/* ---- one debt a source ---- */

/* SHA-256 over "payonce debt", the network, asset, payer and nonce. */
static const char id_of_2[] = "bd1014c68ee404a6a203c7f25db63180a3a4a8d3c9e82760070bb9dd4f1febe9";

static void test_id(void **state)
{
    (void)state;
    done_with_two();
    settles(1, 1, 0);
    settles(2, 2, 0);
    sql_is(pg, "SELECT encode(id, 'hex') FROM debts", id_of_2);
    sql_run(pg, "DELETE FROM debts; DELETE FROM transfers WHERE authorization_id = auth(2);"
                "DELETE FROM proofs WHERE authorization_id = auth(2);"
                "UPDATE authorizations SET state = 'released', ended_at = NULL WHERE id = auth(2)");
    settles(2, 2, 0);
    sql_is(pg, "SELECT encode(id, 'hex') FROM debts", id_of_2);
    books_balance();
    OWNED char *before = dump();
    OWNED char *again = str_format(
        "SELECT proofs_record(json_build_object('network', 'eip155:1', 'by', '%s'::json, 'proofs', json_build_array("
        "json_build_object('id', auth(2), 'tx', encode(b(8, 32), 'hex'), 'log_index', 7, 'block', 1, 'block_hash',"
        " encode(b(6, 32), 'hex'), 'block_time', 1)))::text)",
        BY_SETTLER);
    sql_is(pg, again, "0");
    same_as(before);
}

/* A reorganisation takes the money away again, and its debt with it; landing once more, it is the same debt. */
static void test_undone(void **state)
{
    (void)state;
    done_with_two();
    settles(1, 1, 0);
    settles(2, 2, 0);
    sql_run(pg, "SELECT block_undone('eip155:1', 10, b(6, 32), '" BY_SETTLER "')");
    state_is(1, "due");
    state_is(2, "released");
    debts_are("2 duplicate cancelled 7000");
    sql_is(pg, "SELECT count(*) FROM transfers", "0");
    sql_is(pg, "SELECT count(*) FROM undone_proofs", "2");
    settles(1, 3, 0);
    settles(2, 4, 0);
    debts_are("2 duplicate owed 7000");
    sql_is(pg, "SELECT encode(id, 'hex') || ' ' || log_index FROM debts",
           "bd1014c68ee404a6a203c7f25db63180a3a4a8d3c9e82760070bb9dd4f1febe9 4");
    books_balance();
}

/* The one that was set aside landed first, and its block is undone: the one that was sent is what is awaited. */
static void test_undone_first(void **state)
{
    (void)state;
    done_with_two();
    sql_run(pg, "UPDATE authorizations SET state = 'sent' WHERE id = auth(1)");
    settles(2, 2, 0);
    status_is("paid");
    sql_run(pg, "SELECT block_undone('eip155:1', 10, b(6, 32), '" BY_SETTLER "')");
    state_is(1, "sent");
    state_is(2, "released");
    status_is("settling");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_duplicate),
        TEST(test_first_pays),
        TEST(test_first_pays_sent),
        TEST(test_both_at_once),
        TEST(test_late),
        TEST(test_late_lost),
        TEST(test_work_failed),
        TEST(test_work_failed_swept),
        TEST(test_replaced_lands),
        TEST(test_late_then_done),
        TEST(test_id),
        TEST(test_undone),
        TEST(test_undone_first),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
