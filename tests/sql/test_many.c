/* Many at once: one payment in many hands runs once. Through settle/orders.h, as the gateway does it. */
#include "money.h"

#include <string.h>

#include "settle/orders.h"

enum { MANY = 32 };
static struct {
    int ended, wrong, accepted, in_flight, order_known;
    struct order_accepted first;
} many;

static struct db *pool;

static int start(void **state)
{
    money_start(state);
    pool = db_open(loop, scratch.server.conninfo, "payonce_gateway", MANY);
    return 0;
}

static int stop(void **state)
{
    db_free(pool);
    return money_stop(state);
}

static void on_accepted(void *arg, enum db_rc rc, const struct order_accepted *a)
{
    (void)arg;
    many.ended++;
    many.wrong += rc != DB_OK || a->epoch != 1;
    many.accepted += a->verdict == VERDICT_ACCEPTED;
    many.in_flight += a->verdict == VERDICT_IN_FLIGHT;
    if (many.ended == 1)
        many.first = *a;
    many.order_known += memcmp(&a->order, &many.first.order, sizeof a->order) == 0;
}

static void on_found(void *arg, enum db_rc rc, const struct order_found *f)
{
    many.wrong += rc != DB_OK || memcmp(&f->order, &many.first.order, sizeof f->order) != 0;
    *(enum verdict *)arg = f->verdict;
    many.ended++;
}

static void on_finished(void *arg, enum db_rc rc, bool late, bool landed)
{
    (void)landed;
    many.wrong += rc != DB_OK;
    *(bool *)arg = late;
    many.ended++;
}

static void turn_until(int ended)
{
    const int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    while (many.ended < ended) {
        if (clock_mono_ms() > deadline_ms)
            fail_msg("only %d of %d", many.ended, ended);
        loop_turn(loop, 50);
    }
}

static void test_many_at_once(void **state)
{
    (void)state;
    const int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    while (db_stats(pool).connected < MANY && clock_mono_ms() < deadline_ms)
        loop_turn(loop, 50);
    assert_int_equal(db_stats(pool).connected, MANY);
    const struct net net = { .id = "eip155:1" };
    const struct token token = { .address = { { 7 } } };
    const struct hash32 request = { { 1 } };
    struct payment p = { .version = 2,
                         .price = { .net = &net, .token = &token },
                         .has_quote = true,
                         .payment_id = ID,
                         .signer_proven = true };
    const struct order_call what = {
        .rail = "x402", .tool = "t", .side_effect = "write", .method = "POST", .target = SLICE("/t"), .request = request
    };
    struct order_id instance;
    memset(&instance, 1, sizeof instance);
    p.auth.value = amount_of(5);
    p.auth.valid_before = amount_of((uint64_t)clock_wall_s() + 120);
    p.auth.signature_n = 65;
    memset(&many, 0, sizeof many);
    for (int i = 0; i < MANY; i++)
        orders_accept(pool, &instance, 100, &p, false, true, &what, 8, NULL, deadline_ms, on_accepted, NULL);
    turn_until(MANY);
    assert_int_equal(many.wrong, 0);
    assert_int_equal(many.accepted, 1);
    assert_int_equal(many.in_flight, MANY - 1);
    assert_int_equal(many.order_known, MANY);
    sql_is(pg, "SELECT count(*) || ' ' || (SELECT count(*) FROM authorizations) FROM orders", "1 1");

    enum verdict verdict = VERDICT_NEW;
    bool late = true;
    const struct order_answer answer = { .status = 200, .headers = "[]", .digest = sha256("", 0) };
    orders_finish(pool, &many.first.order, 1, WORK_AXIS_DONE, NULL, NULL, &answer, NULL, deadline_ms, on_finished, &late);
    turn_until(MANY + 1);
    assert_false(late);
    orders_find(pool, &p, &request, NULL, 8, 0, deadline_ms, on_found, &verdict);
    turn_until(MANY + 2);
    assert_int_equal(many.wrong, 0);
    assert_int_equal(verdict, VERDICT_IN_FLIGHT);
    sql_is(pg, "SELECT octet_length(body) || ' ' || (digest = sha256('')) FROM answers", "0 true");
}

/* Two fresh authorizations for one failed order, at once: one runs, the other is set aside. */
static void test_many_fresh(void **state)
{
    (void)state;
    enum { FRESH = 6 };
    PGconn *side[FRESH];
    struct ask a = ask();
    a.payment_id = ID;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    for (int i = 0; i < FRESH; i++) {
        OWNED char *q = str_format("SELECT verdict FROM order_accept(b(%d, 16), b(1, 16), 100, b(%d, 16), b(%d, 16), "
                                   "'x402', 2, 't', 'read', false,"
                                   " false, 'GET', '/', b(1, 32), '" ID
                                   "', NULL, 'eip155:1', b(7, 20), b(1, 20), b(%d, 32), b(9, 20), 10000,"
                                   " 0, extract(epoch FROM now())::bigint + 120, b(1, 32), false, 8, true)",
                                   i + 10, i + 10, i + 10, i + 10);
        side[i] = sql_open(scratch.server.conninfo);
        sql_run(side[i], "SET search_path = payonce, t");
        assert_true(PQsendQuery(side[i], q));
    }
    int accepted = 0;
    for (int i = 0; i < FRESH; i++) {
        PGresult *r = PQgetResult(side[i]);
        assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
        accepted += strcmp(PQgetvalue(r, 0, 0), "accepted") == 0;
        PQclear(r);
        PQfinish(side[i]);
    }
    assert_int_equal(accepted, 1);
    sql_is(pg, "SELECT work || work_epoch FROM orders", "running2");
    sql_is(pg,
           "SELECT count(*) FILTER (WHERE state = 'held') || ' ' || count(*) FILTER (WHERE state = 'released') FROM "
           "authorizations",
           "1 6");
}

/* The same question by an authorization of its own, as an instance of another gateway would ask it. */
static void question(char *ret, size_t size, int n)
{
    snprintf(ret, size, "SELECT verdict FROM order_accept(b(%d, 16), b(1, 16), 100, b(%d, 16), b(%d, 16), 'x402', 2, 't', 'read', true, false, 'GET',"
             " '/', b(%d, 32), NULL, NULL, 'eip155:1', b(7, 20), b(1, 20), b(%d, 32), b(9, 20), 10000, 0,"
             " extract(epoch FROM now())::bigint + 120, b(1, 32), false, 8, true, '{}', b(5, 32), 120, 9, 1)", n, n, n, n, n);
}

static bool is_blocked(PGconn *c)
{
    OWNED char *q = str_format("SELECT count(*) FROM pg_locks WHERE pid = %d AND NOT granted", PQbackendPID(c));
    OWNED char *n = sql_one(pg, q);
    assert_int_equal(PQconsumeInput(c), 1);
    return strcmp(n, "0") != 0 || !PQisBusy(c);
}

/* One question asked twice at once of two gateways: whoever is second waits for the first one's commit, and then for its answer. */
static void test_one_question(void **state)
{
    (void)state;
    PGconn *first = sql_open(scratch.server.conninfo), *second = sql_open(scratch.server.conninfo);
    const int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    char q[700];
    sql_run(first, "SET search_path = payonce, t; BEGIN");
    sql_run(second, "SET search_path = payonce, t");
    question(q, sizeof q, 10);
    sql_is(first, q, "accepted");
    question(q, sizeof q, 11);
    assert_true(PQsendQuery(second, q));
    while (!is_blocked(second))
        assert_true(clock_mono_ms() < deadline_ms);
    sql_run(first, "COMMIT");
    PGresult *r = PQgetResult(second);
    assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
    assert_string_equal(PQgetvalue(r, 0, 0), "repeat_wait");
    PQclear(r);
    PQfinish(first);
    PQfinish(second);
    sql_is(pg, "SELECT count(*) FROM orders", "1");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_many_at_once),
        TEST(test_many_fresh),
        TEST(test_one_question),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
