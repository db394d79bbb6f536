/* An order's birth, its work's end, and what holds both: order_find, order_accept, order_finish, the views, the
 * constraints. */
#include "money.h"

#include <string.h>

#define MAX_AMOUNT "115792089237316195423570985008687907853269984665640564039457584007913129639935"
#define FIRST_ID "first-payment-id"
#define SECOND_ID "second-payment-id"

/* ---- birth ---- */

static void test_new(void **state)
{
    (void)state;
    struct ask a = ask();
    a.payment_id = FIRST_ID;
    a.quote = 3;
    find_is(&a, "new", 0, true);
    accept_is(&a, "accepted", 1, 1);
    state_is(1, "held");
    work_is(1, "running");
    sql_is(
        pg,
        "SELECT concat_ws(' ', o.payer = b(1, 20), o.payee = b(9, 20), o.amount, o.payment_id, o.quote = b(3, 16), "
        "o.work_by = b(1, 16),"
        " o.work_until > now() + interval '90 s', a.amount, a.signature = b(1, 32), a.attempt = b(1, 16), a.dead_after "
        "= a.valid_before,"
        " a.next_look = to_timestamp(a.valid_before)) FROM orders o JOIN authorizations a ON a.id = o.authorization_id",
        "t t 10000 " FIRST_ID " t t t 10000 t t t t");
    find_is(&a, "in_flight", 1, false);
}

/* The commit's reply was lost: the same call says the same, and does nothing more. */
static void test_lost_reply(void **state)
{
    (void)state;
    struct ask a = ask();
    a.payment_id = FIRST_ID;
    accept_is(&a, "accepted", 1, 1);
    OWNED char *before = dump();
    accept_is(&a, "accepted", 1, 1);
    same_as(before);
}

static void test_in_flight(void **state)
{
    (void)state;
    struct ask a = ask(), again = ask();
    a.payment_id = FIRST_ID;
    accept_is(&a, "accepted", 1, 1);
    OWNED char *before = dump();
    again.attempt = 2;
    again.instance = 2;
    accept_is(&again, "in_flight", 1, 1); /* by its nonce alone */
    again.payment_id = FIRST_ID;
    accept_is(&again, "in_flight", 1, 1);
    same_as(before);
}

/* A fresh authorization that is not needed was signed all the same: stored, never to be sent. */
static void test_fresh_is_kept(void **state)
{
    (void)state;
    struct ask a = ask(), fresh = ask();
    a.payment_id = fresh.payment_id = FIRST_ID;
    accept_is(&a, "accepted", 1, 1);
    fresh.attempt = fresh.nonce = 2;
    find_is(&fresh, "in_flight", 1, true);
    accept_is(&fresh, "in_flight", 1, 1);
    state_is(1, "held");
    state_is(2, "released");
    accept_is(&fresh, "in_flight", 1, 1);
    sql_is(pg, "SELECT count(*) FROM orders", "1");
    sql_is(pg, "SELECT authorization_id = auth(1) FROM orders", "t");
}

/* The same quote or nonce in another wallet's hands is another order. */
static void test_others(void **state)
{
    (void)state;
    struct ask a = ask(), other = ask();
    a.quote = other.quote = 3;
    accept_is(&a, "accepted", 1, 1);
    other.attempt = other.payer = 2;
    accept_is(&other, "accepted", 2, 1);
    other.attempt = 3;
    other.quote = 0;
    other.request = 2;
    other.network = 2; /* the same nonce on another network */
    accept_is(&other, "accepted", 3, 1);
    sql_is(pg, "SELECT count(*) FROM authorizations", "3");
}

static void test_amounts(void **state)
{
    (void)state;
    struct ask a = ask();
    a.amount = MAX_AMOUNT;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    sql_is(pg, "SELECT concat_ws(' ', o.amount, a.amount) FROM orders o JOIN authorizations a ON a.order_id = o.id",
           MAX_AMOUNT " " MAX_AMOUNT);
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    args_id(&d, 1, 16);
    assert_int_equal(call(gateway, "order_by_id", &d, &r), DB_OK);
    assert_string_equal(amount_text(row_amount(r, 0, "amount")).s, MAX_AMOUNT);

    static const char *const bad[] = { "115792089237316195423570985008687907853269984665640564039457584007913129639936",
                                       "-1", "NaN", "1e78" };
    OWNED char *before = dump();
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct ask no = ask();
        no.attempt = no.nonce = no.request = 2;
        no.amount = bad[i];
        assert_int_equal(accept_rc(&no), DB_REFUSED);
    }
    same_as(before);
}

/* ---- conflicts change nothing ---- */

struct meeting {
    const char *name;
    int payer, nonce, request, quote;
    const char *payment_id, *verdict;
};
static const struct meeting conflicts[] = {
    { "id, another payer", 2, 5, 1, 0, FIRST_ID, "conflict_payer" },
    { "id, another payer and request", 2, 5, 2, 0, FIRST_ID, "conflict_payer" },
    { "id, another request", 1, 5, 2, 0, FIRST_ID, "conflict_request" },
    { "id, another request, its own nonce", 1, 1, 2, 3, FIRST_ID, "conflict_request" },
    { "quote, another request", 1, 5, 2, 3, NULL, "conflict_request" },
    { "nonce, another request", 1, 1, 2, 0, NULL, "conflict_request" },
    { "nonce of one, id of another", 1, 1, 1, 0, SECOND_ID, "conflict_request" },
    { "nonce of another, id of one", 1, 2, 1, 0, FIRST_ID, "conflict_request" },
    { "nonce of one, quote of another", 1, 1, 1, 4, NULL, "conflict_request" },
    { "quote of one, id of another", 1, 5, 1, 3, SECOND_ID, "conflict_request" },
    { "quote of one, nonce of another, its request", 1, 2, 2, 3, NULL, "conflict_request" },
    { "all three of three", 1, 8, 1, 3, SECOND_ID, "conflict_request" },
    { "nonce of one, quote of a third", 1, 1, 1, 6, NULL, "conflict_request" },
    { "nonce of a third, quote of one", 1, 8, 1, 3, NULL, "conflict_request" },
    { "nonce of a third, id of one", 1, 8, 1, 0, FIRST_ID, "conflict_request" },
    { "quote of a third, id of one", 1, 5, 1, 6, FIRST_ID, "conflict_request" },
    { "nonce, an unknown id", 1, 1, 1, 0, "unknown-payment-id", "conflict_request" },
    { "quote, an unknown id", 1, 5, 1, 3, "unknown-payment-id", "conflict_request" },
};

static void test_conflicts(void **state)
{
    (void)state;
    struct ask one = ask(), two = ask(), three = ask();
    one.payment_id = FIRST_ID;
    one.quote = 3;
    two.attempt = two.nonce = two.request = 2;
    two.payment_id = SECOND_ID;
    two.quote = 4;
    three.attempt = three.nonce = 8;
    three.quote = 6;
    accept_is(&one, "accepted", 1, 1);
    accept_is(&two, "accepted", 2, 1);
    sql_run(pg, "UPDATE orders SET created_at = now() - interval '181 s'"); /* else the third is taken for a retry */
    accept_is(&three, "accepted", 8, 1);
    OWNED char *before = dump();
    for (size_t i = 0; i < COUNT(conflicts); i++) {
        const struct meeting *m = &conflicts[i];
        struct ask a = ask();
        a.attempt = 20;
        a.payer = m->payer;
        a.nonce = m->nonce;
        a.request = m->request;
        a.quote = m->quote;
        a.payment_id = m->payment_id;
        print_message("%s\n", m->name);
        find_is(&a, m->verdict, 0, m->nonce == 5);
        accept_is(&a, m->verdict, 0, 0);
        same_as(before);
    }
}

/* A signature over a known nonce with other terms can be submitted by anybody: kept, whatever else is said. */
static void test_signature_keep(void **state)
{
    (void)state;
    struct ask a = ask(), later = ask();
    accept_is(&a, "accepted", 1, 1);
    later.attempt = 2;
    later.signature = 2;
    OWNED char *before = dump();
    accept_is(&later, "in_flight", 1, 1); /* the same terms: nothing new can happen with it */
    same_as(before);
    later.valid_in_s = 500;
    accept_is(&later, "in_flight", 1, 1);
    accept_is(&later, "in_flight", 1, 1);
    sql_is(pg,
           "SELECT concat_ws(' ', dead_after - valid_before, signature = b(1, 32), valid_before - extract(epoch FROM "
           "now())::bigint <= 120)"
           " FROM authorizations",
           "380 t t");
    later.signature = 3;
    later.payee = 8;
    later.valid_in_s = 50; /* an earlier deadline lowers nothing */
    accept_is(&later, "in_flight", 1, 1);
    later.signature = 4;
    later.valid_in_s = 600;
    later.request = 2; /* a conflict keeps it, too */
    accept_is(&later, "conflict_request", 0, 0);
    sql_is(pg, "SELECT dead_after - valid_before FROM authorizations", "480");
    sql_is(pg,
           "SELECT string_agg(encode(substr(signature, 1, 1), 'hex'), ' ' ORDER BY signature) FROM other_signatures",
           "02 03 04");
    sql_is(pg, "SELECT status || ' ' || dead_after - valid_before FROM order_status", "processing 480");
    ends(1, "expired");
    later.valid_in_s = 900;
    later.signature = 5;
    accept_is(&later, "conflict_request", 0, 0);
    sql_is(pg, "SELECT dead_after - valid_before FROM authorizations", "780"); /* it can land again: watched, never sent */
    state_is(1, "released");
}

/* ---- the work's end ---- */

static void test_done(void **state)
{
    (void)state;
    struct ask a = ask();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    work_is(1, "done");
    state_is(1, "due");
    sql_is(pg, "SELECT concat_ws(' ', status, headers, encode(body, 'hex'), digest = b(1, 32)) FROM answers",
           "200 [] 610062 t");
    OWNED char *before = dump();
    finish_is(1, 1, "done", "ok");     /* the reply was lost */
    finish_is(1, 1, "failed", "late"); /* another end is not the same */
    finish_is(1, 1, "lost", "late");
    finish_is(1, 2, "done", "late");
    finish_is(1, 0, "done", "late");
    struct ask again = ask();
    again.attempt = 2;
    accept_is(&again, "in_flight", 1, 1);
    same_as(before);
}

static void test_not_done(void **state)
{
    (void)state;
    static const char *const work[] = { "failed", "lost" };
    for (int i = 0; i < 2; i++) {
        struct ask a = ask();
        a.attempt = a.nonce = a.request = i + 1;
        accept_is(&a, "accepted", i + 1, 1);
        finish_is(i + 1, 1, work[i], "ok");
        work_is(i + 1, work[i]);
        state_is(i + 1, "released");
        OWNED char *before = dump();
        finish_is(i + 1, 1, work[i], "ok");
        finish_is(i + 1, 1, work[1 - i], "late");
        finish_is(i + 1, 0, "done", "late");
        finish_is(i + 1, 2, "done", "late");
        same_as(before);
    }
    sql_is(pg, "SELECT count(*) FROM answers", "0");
    sql_is(pg, "SELECT string_agg(work_note, ',') FROM orders", "a note,a note");
}

/* It landed, or died, while the work ran: what the chain said stays said. */
static void test_done_after_the_end(void **state)
{
    (void)state;
    struct ask a = ask(), b = ask();
    accept_is(&a, "accepted", 1, 1);
    settles(1, 1, 0);
    finish_is(1, 1, "done", "ok");
    state_is(1, "settled");
    b.attempt = b.nonce = b.request = 2;
    accept_is(&b, "accepted", 2, 1);
    ends(2, "void");
    finish_is(2, 1, "failed", "ok");
    state_is(2, "void");
    sql_is(pg, "SELECT string_agg(status, ' ' ORDER BY id) FROM order_status", "paid not_charged");
}

static void test_unknown_order(void **state)
{
    (void)state;
    DB_ARGS d = { 0 };
    args_id(&d, 1, 16);
    arg_int(&d, 1);
    arg_text(&d, "failed");
    for (int i = 0; i < 5; i++)
        arg_null(&d);
    assert_int_equal(call(gateway, "order_finish", &d, NULL), DB_REFUSED);
}

static void test_notify(void **state)
{
    (void)state;
    struct ask a = ask();
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "LISTEN payonce_order");
    finish_is(1, 1, "failed", "ok");
    sql_run(pg, "SELECT 1");
    PGnotify *n = PQnotifies(pg);
    assert_non_null(n);
    assert_string_equal(n->extra, "01010101010101010101010101010101");
    PQfreemem(n);
    sql_run(pg, "UNLISTEN payonce_order");
}

/* ---- what is told ---- */

static void test_status(void **state)
{
    (void)state;
    static const char *const works[] = { "none", "waiting", "running", "done", "failed", "lost" };
    static const char *const moneys[] = { "held", "due", "sent", "released", "settled", "expired", "void" };
    static const char *const told[COUNT(works)][COUNT(moneys)] = {
        { "settling", "settling", "settling", "not_charged", "paid", "unpaid", "unpaid" },
        { "processing", "processing", "processing", "processing", "processing", "processing", "processing" },
        { "processing", "processing", "processing", "processing", "processing", "processing", "processing" },
        { "settling", "settling", "settling", "not_charged", "paid", "unpaid", "unpaid" },
        { "not_charged", "not_charged", "not_charged", "not_charged", "refund_due", "not_charged", "not_charged" },
        { "in_review", "in_review", "in_review", "in_review", "in_review", "in_review", "in_review" },
    };
    struct ask a = ask();
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "UPDATE orders SET work = 'done'"); /* found done by a person, so there is no answer that could be paid for */
    sql_is(pg, "SELECT status FROM order_status", "not_charged");
    sql_run(pg, "INSERT INTO answers (order_id, status, headers, body, digest) VALUES (b(1, 16), 200, '[]', '', b(1, 32))");
    sql_run(pg, "UPDATE orders SET answer_status = 200");
    for (size_t w = 0; w < COUNT(works); w++)
        for (size_t m = 0; m < COUNT(moneys); m++) {
            OWNED char *set =
                str_format("UPDATE orders SET work = '%s'; UPDATE authorizations SET state = '%s', ended_at ="
                           " CASE WHEN '%s' IN ('settled', 'expired', 'void') THEN now() END",
                           works[w], moneys[m], moneys[m]);
            sql_run(pg, set);
            OWNED char *status = sql_one(pg, "SELECT status FROM order_status");
            if (strcmp(status, told[w][m]) != 0)
                fail_msg("%s and %s: %s", works[w], moneys[m], status);
        }
}

/* ---- constraints: a bug of ours is refused ---- */

static void is_refused(const char *text, const char *sqlstate)
{
    PGresult *r = PQexec(pg, text);
    const char *got = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    if (!got || strcmp(got, sqlstate) != 0)
        fail_msg("%s: %s", text, got ? PQresultErrorMessage(r) : "was taken");
    PQclear(r);
}

static void test_constraints(void **state)
{
    (void)state;
    struct ask a = ask(), b = ask();
    a.payment_id = FIRST_ID;
    a.quote = 3;
    b.attempt = b.nonce = b.request = 2;
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "accepted", 2, 1);
    static const char check[] = "23514", unique[] = "23505", foreign[] = "23503", missing[] = "23502";
    is_refused("UPDATE authorizations SET state = 'settled'", check); /* without its time */
    is_refused("UPDATE authorizations SET state = 'expired'", check);
    is_refused("UPDATE authorizations SET state = 'void'", check);
    is_refused("UPDATE authorizations SET ended_at = now()", check);
    is_refused("UPDATE authorizations SET state = 'paid'", check);
    is_refused("UPDATE authorizations SET dead_after = valid_before - 1", check);
    is_refused("UPDATE authorizations SET next_look = NULL", missing);
    is_refused("UPDATE authorizations SET nonce = b(1, 32)", unique);
    is_refused("UPDATE authorizations SET nonce = b(1, 31)", check);
    is_refused("UPDATE authorizations SET payer = b(1, 21)", check);
    is_refused("UPDATE orders SET work = 'maybe'", check);
    is_refused("UPDATE orders SET side_effect = 'some'", check);
    is_refused("UPDATE orders SET payment_id = 'fifteen_chars__'", check);
    is_refused("UPDATE orders SET payment_id = 'sixteen chars___'", check);
    is_refused("UPDATE orders SET payment_id = '" FIRST_ID "'", unique);
    is_refused("UPDATE orders SET quote = b(3, 16)", unique);
    is_refused("UPDATE orders SET receipt = b(1, 16)", unique);
    is_refused("UPDATE orders SET authorization_id = 999", foreign);
    is_refused("DELETE FROM orders", "0A000");
    sql_run(pg, "INSERT INTO proofs VALUES (auth(1), 'eip155:1', b(5, 32), 1, 1, b(5, 32), 1)");
    is_refused("INSERT INTO proofs VALUES (auth(2), 'eip155:1', b(5, 32), 1, 1, b(5, 32), 1)", unique);
    is_refused("INSERT INTO proofs VALUES (auth(1), 'eip155:1', b(5, 32), 2, 1, b(5, 32), 1)", unique);
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_new),    TEST(test_lost_reply), TEST(test_in_flight),          TEST(test_fresh_is_kept),
        TEST(test_others), TEST(test_amounts),    TEST(test_conflicts),          TEST(test_signature_keep),
        TEST(test_done),   TEST(test_not_done),   TEST(test_done_after_the_end), TEST(test_unknown_order),
        TEST(test_notify), TEST(test_status),     TEST(test_constraints),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
