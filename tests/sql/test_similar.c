/* A client that lost a reply signs anew and has no id: a read is the same question again, a write is asked about, and
 * what the chain did not verify makes nothing. */
#include "money.h"

#include <string.h>

/* The same call signed anew, without any id; its attempt is the nonce. */
static struct ask anew(int nonce)
{
    struct ask a = ask();
    a.attempt = a.nonce = nonce;
    return a;
}

static void orders_are(const char *n)
{
    sql_is(pg, "SELECT count(*) FROM orders", n);
}

static void delivered(int order, int ago_s)
{
    OWNED char *q = str_format("SELECT orders_delivered('[\"' || encode(b(%d, 16), 'hex') || '\"]'); UPDATE orders SET "
                               "delivered_at = now() - interval '%d s' WHERE id = b(%d, 16)",
                               order, ago_s, order);
    sql_run(pg, q);
}

/* ---- reads ---- */

/* What depends on who asks the upstream is not given to who asks otherwise. */
static void test_read_of_others(void **state)
{
    (void)state;
    struct ask a = anew(1), b = anew(2), c = anew(3), d = anew(4), e = anew(5);
    a.manner = c.manner = 8;
    d.manner = 9;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    settles(1, 1, 0);
    find_is(&b, "new", 0, true);
    accept_is(&b, "accepted", 2, 1);
    find_is(&c, "replay", 1, true);
    accept_is(&c, "replay", 1, 1);
    find_is(&d, "new", 0, true);
    accept_is(&d, "accepted", 4, 1);
    find_is(&e, "in_flight", 2, true);
    orders_are("3");
}

/* The chain shows the nonce to everybody, and with it alone a cacheable answer, but not who had asked for it. */
static void test_nonce_of_others(void **state)
{
    (void)state;
    struct ask a = anew(1), b = anew(1), c = anew(1);
    a.manner = c.manner = 8;
    a.cacheable = b.cacheable = c.cacheable = true;
    b.attempt = 2;
    c.attempt = 3;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    settles(1, 1, 0);
    find_is(&b, "not_proven", 1, false);
    accept_is(&b, "not_proven", 1, 1);
    find_is(&c, "replay", 1, false);
}

static void is_found(int nonce, const char *verdict)
{
    struct ask b = anew(nonce);
    find_is(&b, verdict, 1, true);
    accept_is(&b, verdict, 1, 1);
    state_is(nonce, "released");
    current_is(1);
    find_is(&b, verdict, 1, false); /* presented again, it is the same question: it never reached the chain */
    accept_is(&b, verdict, 1, 1);
    orders_are("1");
}

static void test_read(void **state)
{
    (void)state;
    static const char *const effects[] = { "none", "read" };
    for (int i = 0; i < 2; i++) {
        struct ask a = anew(1);
        money_clear(NULL);
        a.side_effect = effects[i];
        accept_is(&a, "accepted", 1, 1);
        is_found(2, "in_flight");
        finish_is(1, 1, "done", "ok");
        is_found(3, "in_flight");
        sql_run(pg, "UPDATE authorizations SET state = 'sent' WHERE id = auth(1)");
        is_found(4, "in_flight");
        settles(1, 1, 0);
        is_found(5, "replay");
        struct ask b = anew(6);
        delivered(1, 0);
        find_is(&b, "new", 0, true);
        b.side_effect = effects[i];
        accept_warns(&b, 0);
        orders_are("2");
    }
}

/* What is not the same question, or not open. */
static void is_new(struct ask b)
{
    find_is(&b, "new", 0, true);
    accept_is(&b, "accepted", b.attempt, 1);
}

static void test_not_similar(void **state)
{
    (void)state;
    struct ask a = anew(1), other_payer = anew(2), other_request = anew(3), id = anew(4);
    accept_is(&a, "accepted", 1, 1);
    other_payer.payer = 2;
    other_request.request = 2;
    id.payment_id = ID;
    is_new(other_payer);
    is_new(other_request);
    is_new(id);
    sql_run(pg, "UPDATE orders SET created_at = now() - interval '181 s'");
    is_new(anew(5));
    orders_are("5");
}

static void test_decided(void **state)
{
    (void)state;
    struct ask a = anew(1);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    is_new(anew(2)); /* nothing was charged: a new order is as good */
    finish_is(2, 1, "done", "ok");
    ends(2, "expired");
    is_new(anew(3));
}

static void test_newest(void **state)
{
    (void)state;
    struct ask a = anew(1), id = anew(2), b = anew(3);
    accept_is(&a, "accepted", 1, 1);
    id.payment_id = ID;
    accept_is(&id, "accepted", 2, 1);
    find_is(&b, "in_flight", 2, true);
    delivered(2, 0);
    find_is(&b, "in_flight", 1, true);
}

/* ---- writes ---- */

static void is_similar(int nonce)
{
    struct ask b = anew(nonce);
    OWNED char *before = dump();
    b.side_effect = "write";
    find_is(&b, "similar", 1, true);
    accept_is(&b, "similar", 1, 0);
    same_as(before); /* asked, not taken: nothing is kept of it */
}

static void test_write(void **state)
{
    (void)state;
    static const char *const effects[] = { "write", "irreversible" };
    for (int i = 0; i < 2; i++) {
        struct ask a = anew(1), id = anew(2);
        money_clear(NULL);
        a.side_effect = effects[i];
        accept_is(&a, "accepted", 1, 1);
        is_similar(2);
        finish_is(1, 1, "done", "ok");
        is_similar(2);
        settles(1, 1, 0);
        is_similar(2);
        id.side_effect = effects[i];
        id.payment_id = ID; /* meant as another one */
        is_new(id);
    }
}

/* The reply to a write was lost with its gateway: signed anew, the write must not run a second time unasked. */
static void test_write_lost(void **state)
{
    (void)state;
    struct ask a = anew(1);
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "lost", "ok");
    is_similar(2);
}

static void test_write_lease_over(void **state)
{
    (void)state;
    struct ask a = anew(1);
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s'");
    is_similar(2);
}

/* However long it takes: what is undecided is not made a second time unasked; what was paid for and not delivered, not for a day. */
static void test_write_open_long(void **state)
{
    (void)state;
    struct ask a = anew(1);
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "UPDATE orders SET created_at = now() - interval '181 s'");
    is_similar(2);
    finish_is(1, 1, "lost", "ok");
    sql_run(pg, "UPDATE orders SET created_at = now() - interval '9 days'");
    is_similar(2);
    finish_is(1, 1, "done", "ok");
    is_similar(2);
    sql_run(pg, "UPDATE orders SET created_at = now() - interval '23 h'");
    settles(1, 1, 0);
    is_similar(2);
    sql_run(pg, "UPDATE orders SET created_at = now() - interval '25 h'");
    struct ask b = anew(2);
    b.side_effect = "write";
    is_new(b);
}

/* Two equal orders may be meant: the second is taken, and the first is named. */
static void test_warning(void **state)
{
    (void)state;
    struct ask a = anew(1), b = anew(2), c = anew(3), payer = anew(4), request = anew(5), d = anew(6);
    a.side_effect = b.side_effect = c.side_effect = payer.side_effect = request.side_effect = d.side_effect = "write";
    accept_warns(&a, 0);
    delivered(1, 290);
    c.payment_id = ID;
    payer.payer = request.request = 2;
    accept_warns(&c, 0);
    accept_warns(&payer, 0);
    accept_warns(&request, 0);
    finish_is(c.attempt, 1, "failed", "ok");
    accept_warns(&b, 1);
    finish_is(b.attempt, 1, "failed", "ok");
    delivered(1, 301);
    accept_warns(&d, 0);
}

/* ---- not verified on the chain ---- */

static void takes_nothing(struct ask b, const char *verdict, int order, int epoch)
{
    OWNED char *before = dump();
    b.unverified = true;
    accept_is(&b, verdict, order, epoch);
    same_as(before);
}

static void test_unverified(void **state)
{
    (void)state;
    struct ask a = with_id();
    takes_nothing(with_id(), "new", 0, 0);
    accept_is(&a, "accepted", 1, 1);
    struct ask aside = fresh(2); /* beside an order that needs none it is stored */
    aside.unverified = true;
    accept_is(&aside, "in_flight", 1, 1);
    state_is(2, "released");
    finish_is(1, 1, "failed", "ok");
    takes_nothing(fresh(3), "again", 1, 1);
    takes_nothing(again(4), "again", 1, 1);
    takes_nothing(fresh(2), "again", 1, 1); /* what was set aside so */
    state_is(1, "released");
    struct ask b = again(5);
    accept_is(&b, "accepted", 1, 2);
    finish_is(1, 2, "done", "ok");
    ends(1, "expired");
    takes_nothing(fresh(6), "resend", 1, 2);
    takes_nothing(fresh(2), "resend", 1, 2);
}

static void test_unverified_dead_lease(void **state)
{
    (void)state;
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s'");
    takes_nothing(again(2), "takeover", 1, 1);
    takes_nothing(fresh(3), "takeover", 1, 1);
}

static void test_unverified_write(void **state)
{
    (void)state;
    struct ask a = anew(1);
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    takes_nothing(anew(2), "similar", 1, 0);
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_read),
        TEST(test_read_of_others),
        TEST(test_nonce_of_others),
        TEST(test_not_similar),
        TEST(test_decided),
        TEST(test_newest),
        TEST(test_write),
        TEST(test_write_lost),
        TEST(test_write_lease_over),
        TEST(test_write_open_long),
        TEST(test_warning),
        TEST(test_unverified),
        TEST(test_unverified_dead_lease),
        TEST(test_unverified_write),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
