/* What a payment gets from an order that is known already: the free repeat, the takeover, the replay, and never a second charge. */
#include "money.h"

#include <stdio.h>
#include <string.h>

#define ID "the-payment-id-1"

static struct ask with_id(void)
{
    struct ask a = ask();
    a.payment_id = ID;
    a.quote = 3;
    return a;
}

/* The same call, signed anew: another nonce under the same payment id. */
static struct ask fresh(int nonce)
{
    struct ask a = ask();
    a.payment_id = ID;
    a.attempt = a.nonce = nonce;
    return a;
}

static struct ask again(int attempt)
{
    struct ask a = ask();
    a.attempt = attempt;
    return a;
}

static void current_is(int nonce)
{
    OWNED char *q = str_format("SELECT authorization_id = auth(%d) FROM orders", nonce);
    sql_is(pg, q, "t");
}

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
    accept_is(&b, "accepted", 1, 2);                     /* its reply was lost */
    finish_is(1, 1, "done", "late");                     /* the first attempt, after all */
    finish_is(1, 1, "failed", "late");
    same_as(before);
    accept_is(&a, "in_flight", 1, 2);                    /* the first attempt's accept, very late: nothing for it to run */
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
    accept_is(&c, "accepted", 1, 3);                     /* the first one again: it is good still */
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
    state_is(3, "released");                             /* signed, so watched */
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
    sql_is(pg, "SELECT work = 'failed' OR valid_before >= extract(epoch FROM now()) + 60 FROM orders JOIN authorizations a ON a.id = authorization_id",
           "t");
}

static void test_failed_same_nonce_other_amount(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2);
    a.amount = "1";                                      /* the price when it was first asked */
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    b.signature = 2;
    b.amount = "10000";                                  /* the price that the gateway has just checked */
    assert_int_equal(accept_rc(&b), DB_OK);
    sql_is(pg, "SELECT work = 'failed' OR a.amount = 10000 FROM orders JOIN authorizations a ON a.id = authorization_id", "t");
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
    settles(1, 1, 0);                                    /* a third party submitted what was released */
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
    find_is(&b, "in_review", 1, false);                  /* also when it is dead: no new payment */
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
    find_is(&b, "again", 1, false);
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
    find_is(&b, "again", 1, false);
    b.valid_in_s = 5;                                    /* with too little time it waits to be proven dead */
    find_is(&b, "in_flight", 1, false);
    accept_is(&b, "in_flight", 1, 1);
    sql_run(pg, "SELECT instance_end(b(1, 16)); UPDATE orders SET work_until = now() + interval '60 s'");
    b.valid_in_s = 120;
    find_is(&b, "again", 1, false);                      /* ended in order: its leases are over, too */
}

static void test_dead_write(void **state)
{
    (void)state;
    static const char *const effects[] = { "write", "irreversible" };
    for (int i = 0; i < 2; i++) {
        struct ask a = ask(), b = ask();
        a.attempt = a.nonce = b.nonce = i + 1;
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
        finish_is(i + 1, 1, "done", "late");
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
    find_is(&b, "again", 1, false);
    accept_is(&b, "accepted", 1, 2);
}

static void test_sweep(void **state)
{
    (void)state;
    static const char *const effects[] = { "none", "read", "write", "irreversible", "write" };
    for (int i = 0; i < 5; i++) {
        struct ask a = ask();
        a.attempt = a.nonce = i + 1;
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
    sql_is(pg, "SELECT string_agg(state, ' ' ORDER BY id) FROM authorizations", "released released released released held");
    finish_is(1, 1, "done", "late");
    finish_is(3, 1, "done", "late");
    state_is(3, "released");
}

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
    find_is(&a, "replay", 1, false);                     /* the payment id alone */
    a.quote = 3;
    a.payment_id = NULL;
    find_is(&a, "replay", 1, false);                     /* the quote alone */
    a.quote = 0;
    find_is(&a, "not_proven", 1, false);                 /* the nonce alone */
    a.quote = 5;
    find_is(&a, "not_proven", 1, false);                 /* a quote of another offer is no secret of this one */
    a.attempt = 2;
    OWNED char *before = dump();
    accept_is(&a, "not_proven", 1, 1);
    a.payment_id = ID;
    accept_is(&a, "replay", 1, 1);
    a.valid_in_s = -500;                                 /* its time matters no more */
    find_is(&a, "replay", 1, false);
    same_as(before);
}

static void test_replay_cacheable(void **state)
{
    (void)state;
    static const struct { int age_s; const char *verdict; } table[] = { { 0, "replay" }, { 100, "replay" }, { 125, "not_proven" } };
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
    accept_is(&b, "replay", 1, 1);                       /* the quote is taken by this wallet */
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
        OWNED char *set = str_format("UPDATE authorizations SET state = '%s', valid_before = valid_before - 500 WHERE id = auth(1)", states[i]);
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
        find_is(&c, "pay_again", 1, true);               /* too little time: set aside */
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
    static const char *const asking[] = { "new", "again", "resend", "pay_again" };
    for (size_t i = 0; i < COUNT(asking); i++) {
        OWNED char *q = str_format("SELECT verdict FROM order_find('%s', NULL, b(1, 20), 'eip155:1', b(7, 20), b(%d, 32), b(1, 32),"
                                   " extract(epoch FROM now())::bigint + %d, 8, NULL)", ID, a->nonce, a->valid_in_s);
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
    b.signature = 2;                                     /* anybody can write this: nothing is told */
    find_is(&b, "new", 0, false);
    b.request = 2;
    find_is(&b, "new", 0, false);
    b.payer = 2;
    find_is(&b, "new", 0, true);
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
        TEST(test_replay),
        TEST(test_replay_cacheable),
        TEST(test_gone),
        TEST(test_fresh_for_paid),
        TEST(test_landed_while_running),
        TEST(test_on_its_way),
        TEST(test_resend),
        TEST(test_resend_lost_reply),
        TEST(test_resend_released),
        TEST(test_landed_done),
        TEST(test_landed_failed),
        TEST(test_contract_signature),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
