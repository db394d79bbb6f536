/* The pool: what comes back, what is repeated, and what each of the three ends means. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "scratch.h"

static const char fixtures[] =
    "CREATE SCHEMA payonce; SET search_path = payonce;"
    "CREATE TABLE things (id bigint PRIMARY KEY, n int NOT NULL CHECK (n > 0));"
    "CREATE TABLE owners (id bigint PRIMARY KEY);"
    "CREATE TABLE owned (owner bigint REFERENCES owners DEFERRABLE INITIALLY DEFERRED);"
    "CREATE SEQUENCE tries;"
    "CREATE FUNCTION rows(int8) RETURNS TABLE (i int8) LANGUAGE sql AS 'SELECT generate_series(1, $1)';"
    "CREATE FUNCTION one() RETURNS TABLE (i int) LANGUAGE sql AS 'SELECT 1';"
    "CREATE FUNCTION put(int8, int) RETURNS TABLE (id int8) LANGUAGE sql AS"
    " 'INSERT INTO payonce.things VALUES ($1, $2) ON CONFLICT (id) DO NOTHING; SELECT $1';"
    "CREATE FUNCTION put_slowly(int8, float8) RETURNS TABLE (id int8) LANGUAGE plpgsql AS"
    " 'BEGIN PERFORM pg_sleep($2); INSERT INTO payonce.things VALUES ($1, 1) ON CONFLICT DO NOTHING;"
    " RETURN QUERY SELECT $1; END';"
    "CREATE FUNCTION lock_thing(int8) RETURNS TABLE (n int) LANGUAGE sql SET lock_timeout = '100ms' AS"
    " 'SELECT n FROM payonce.things t WHERE t.id = $1 FOR UPDATE';"
    "CREATE FUNCTION wait_thing(int8) RETURNS TABLE (n int) LANGUAGE sql AS"
    " 'SELECT n FROM payonce.things t WHERE t.id = $1 FOR UPDATE';"
    "CREATE FUNCTION own(int8) RETURNS TABLE (owner int8) LANGUAGE sql AS"
    " 'INSERT INTO payonce.owned VALUES ($1) RETURNING owner';"
    "CREATE FUNCTION put_twice(int8) RETURNS TABLE (id int8) LANGUAGE sql AS"
    " 'INSERT INTO payonce.things VALUES ($1, 1), ($1, 1) RETURNING id';"
    "CREATE FUNCTION fail_twice(text) RETURNS TABLE (tries int8) LANGUAGE plpgsql AS"
    " 'DECLARE n int8 := nextval(''payonce.tries''); BEGIN IF n < 3 THEN RAISE ''no'' USING ERRCODE = $1; END IF;"
    " RETURN QUERY SELECT n; END';";

static struct loop *loop;
static PGconn *side; /* a connection of the test's own */

static int group_start(void **state)
{
    scratch_start(state);
    side = sql_open(scratch.server.conninfo);
    sql_run(side, fixtures);
    loop = loop_new();
    return 0;
}

static int group_stop(void **state)
{
    loop_free(loop);
    PQfinish(side);
    return scratch_stop(state);
}

static int64_t soon(void)
{
    return clock_mono_ms() + PATIENCE_MS;
}

/* With all its connections made, so that calls run side by side at once. */
static struct db *open_pool(unsigned n)
{
    struct db *db = db_open(loop, scratch.server.conninfo, NULL, n);
    const int64_t deadline_ms = soon();
    while (db_stats(db).connected < n) {
        assert_true(clock_mono_ms() < deadline_ms);
        loop_turn(loop, 50);
    }
    return db;
}

/* ---- calls under way, counted ---- */

struct outcome {
    int ended, ok, unavailable, refused;
};

static void count(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct outcome *o = arg;
    assert_true((rc == DB_OK) == (rows != NULL));
    o->ended++;
    o->ok += rc == DB_OK;
    o->unavailable += rc == DB_UNAVAILABLE;
    o->refused += rc == DB_REFUSED;
}

static void turn_until(const int *counter, int n)
{
    const int64_t deadline_ms = soon();
    while (*counter < n) {
        if (clock_mono_ms() > deadline_ms)
            fail_msg("only %d of %d", *counter, n);
        loop_turn(loop, 50);
    }
}

static void call_int(struct db *db, const char *function, int64_t v, int64_t deadline_ms, struct outcome *o)
{
    DB_ARGS a = { 0 };
    arg_int(&a, v);
    db_call(db, function, &a, deadline_ms, count, o);
    assert_int_equal(a.count, 0);
}

static void put_slowly(struct db *db, int64_t id, const char *seconds, struct outcome *o)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, seconds);
    db_call(db, "put_slowly", &a, soon(), count, o);
}

/* Turns the loop until a question put to the side connection has the answer. */
static void turn_until_sql(const char *text, const char *expected)
{
    const int64_t deadline_ms = soon();
    for (;;) {
        OWNED char *value = sql_one(side, text);
        if (strcmp(value, expected) == 0)
            return;
        if (clock_mono_ms() > deadline_ms)
            fail_msg("%s stays %s, not %s", text, value, expected);
        loop_turn(loop, 10);
    }
}

/* ---- the pool ---- */

static void test_many(void **state)
{
    (void)state;
    struct db *db = open_pool(4);
    struct outcome o = { 0 };
    for (int i = 0; i < 300; i++)
        call_int(db, "rows", i, soon(), &o);
    assert_int_equal(o.ended, 0); /* never from inside db_call */
    turn_until(&o.ended, 300);
    assert_int_equal(o.ok, 300);
    DB_ARGS a = { 0 };
    DB_ROWS *r = NULL;
    arg_int(&a, 20000); /* more than one read of a socket */
    assert_int_equal(db_wait(db, "rows", &a, soon(), &r), DB_OK);
    assert_int_equal(db_count(r), 20000);
    assert_int_equal(row_int(r, 19999, "i"), 20000);
    const struct db_stats s = db_stats(db);
    assert_int_equal(s.calls, 301);
    assert_int_equal(s.busy + s.queued, 0);
    assert_int_equal(s.connected, 4);
    sql_is(side, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'payonce'", "4");
    db_free(db);
}

static void test_uses_all_connections(void **state)
{
    (void)state;
    struct db *db = open_pool(3);
    struct outcome o = { 0 };
    for (int i = 0; i < 3; i++)
        put_slowly(db, 100 + i, "1", &o);
    turn_until_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "3");
    turn_until(&o.ended, 3);
    db_free(db);
}

static void test_user(void **state)
{
    (void)state;
    sql_run(side, "CREATE ROLE payonce_someone LOGIN; GRANT USAGE ON SCHEMA payonce TO payonce_someone");
    struct db *db = db_open(loop, scratch.server.conninfo, "payonce_someone", 1);
    DB_ARGS a = { 0 };
    assert_int_equal(db_wait(db, "one", &a, soon(), NULL), DB_OK);
    sql_is(side, "SELECT usename FROM pg_stat_activity WHERE application_name = 'payonce-someone'", "payonce_someone");
    db_free(db);
}

static void again(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct {
        struct db *db;
        struct outcome o;
    } *t = arg;
    (void)rows;
    assert_int_equal(rc, DB_UNAVAILABLE);
    DB_ARGS a = { 0 };
    db_call(t->db, "one", &a, soon(), count, &t->o);
}

static void test_free_ends_calls(void **state)
{
    (void)state;
    struct {
        struct db *db;
        struct outcome o;
    } t = { open_pool(1), { 0 } };
    put_slowly(t.db, 110, "10", &t.o);
    turn_until_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "1");
    call_int(t.db, "rows", 1, soon(), &t.o);
    DB_ARGS a = { 0 };
    db_call(t.db, "one", &a, soon(), again, &t);
    db_free(t.db);
    assert_int_equal(t.o.ended, 3);
    assert_int_equal(t.o.unavailable, 3);
    sql_run(side, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
}

static void test_nobody_there(void **state)
{
    (void)state;
    struct db *db = db_open(loop, "host=/nowhere dbname=x", NULL, 2);
    struct outcome o = { 0 };
    const int64_t began_ms = clock_mono_ms();
    call_int(db, "rows", 1, began_ms + 300, &o);
    turn_until(&o.ended, 1);
    assert_int_equal(o.unavailable, 1);
    assert_true(clock_mono_ms() - began_ms >= 300);
    db_free(db);
}

/* ---- refusals ---- */

static enum db_rc put(struct db *db, int64_t id, int64_t n)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_int(&a, n);
    return db_wait(db, "put", &a, soon(), NULL);
}

static void test_refused(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    DB_ARGS a = { 0 };
    assert_int_equal(put(db, 200, 0), DB_REFUSED); /* CHECK (n > 0) */
    sql_is(side, "SELECT count(*) FROM payonce.things WHERE id = 200", "0");
    assert_int_equal(db_wait(db, "missing", &a, soon(), NULL), DB_REFUSED);
    arg_text(&a, "no number");
    assert_int_equal(db_wait(db, "rows", &a, soon(), NULL), DB_REFUSED);
    arg_slice(&a, (struct slice){ "1\0", 2 });
    assert_int_equal(db_wait(db, "rows", &a, soon(), NULL), DB_REFUSED);
    assert_int_equal(put(db, 200, 1), DB_OK);
    assert_int_equal(db_stats(db).refused, 4);
    assert_int_equal(db_stats(db).repeats, 0);
    db_free(db);
}

/* The rows come before the commit does: a deferred constraint says no after them. */
static void test_commit_refused(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    DB_ARGS a = { 0 };
    arg_int(&a, 404);
    assert_int_equal(db_wait(db, "own", &a, soon(), NULL), DB_REFUSED);
    sql_is(side, "SELECT count(*) FROM payonce.owned", "0");
    db_free(db);
}

/* What was refused leaves nothing behind on its connection, which is the only one. */
static void test_h12_refused_then_good(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    for (int i = 0; i < 5; i++) {
        DB_ARGS a = { 0 };
        arg_int(&a, 300);
        assert_int_equal(db_wait(db, i % 2 ? "own" : "put_twice", &a, soon(), NULL), DB_REFUSED);
        for (int n = 0; n < 20; n++)
            assert_int_equal(put(db, 310 + 20 * i + n, 1), DB_OK);
    }
    sql_is(side, "SELECT count(*) FROM payonce.things WHERE id >= 310 AND id < 410", "100");
    sql_is(side, "SELECT count(*) FROM payonce.things WHERE id = 300", "0");
    assert_int_equal(db_stats(db).connected, 1);
    db_free(db);
}

/* ---- repeats ---- */

static void test_repeated_states(void **state)
{
    (void)state;
    static const char *const states[] = { "40001", "40P01", "55P03", "53300", "25006", "57P01", "57P03", "58030" };
    struct db *db = open_pool(1);
    for (size_t i = 0; i < COUNT(states); i++) {
        sql_run(side, "ALTER SEQUENCE payonce.tries RESTART");
        DB_ARGS a = { 0 };
        arg_text(&a, states[i]);
        assert_int_equal(db_wait(db, "fail_twice", &a, soon(), NULL), DB_OK);
        assert_int_equal(db_stats(db).repeats, 2 * (i + 1));
    }
    db_free(db);
}

static void test_backend_terminated(void **state)
{
    (void)state;
    struct db *db = open_pool(2);
    struct outcome o = { 0 };
    for (int i = 0; i < 4; i++)
        put_slowly(db, 300 + i, "1", &o);
    turn_until_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "2");
    sql_is(side, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'payonce'",
           "2");
    turn_until(&o.ended, 4);
    assert_int_equal(o.ok, 4);
    assert_int_equal(db_stats(db).repeats, 2);
    sql_is(side, "SELECT count(*) FROM payonce.things WHERE id BETWEEN 300 AND 303", "4");
    db_free(db);
}

static void test_lock_timeout_repeats(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    struct outcome o = { 0 };
    assert_int_equal(put(db, 400, 1), DB_OK);
    sql_run(side, "BEGIN; SELECT 1 FROM payonce.things WHERE id = 400 FOR UPDATE");
    call_int(db, "lock_thing", 400, soon(), &o);
    const int64_t deadline_ms = soon();
    while (db_stats(db).repeats < 2) {
        assert_true(clock_mono_ms() < deadline_ms);
        loop_turn(loop, 50);
    }
    assert_int_equal(o.ended, 0);
    sql_run(side, "COMMIT");
    turn_until(&o.ended, 1);
    assert_int_equal(o.ok, 1);
    db_free(db);
}

static void test_deadline_in_flight(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    struct outcome o = { 0 };
    assert_int_equal(put(db, 410, 1), DB_OK);
    sql_run(side, "BEGIN; SELECT 1 FROM payonce.things WHERE id = 410 FOR UPDATE");
    const int64_t began_ms = clock_mono_ms();
    call_int(db, "wait_thing", 410, began_ms + 300, &o);
    call_int(db, "rows", 1, soon(), &o); /* behind it, on the same connection */
    turn_until(&o.unavailable, 1);
    assert_in_range(clock_mono_ms() - began_ms, 300, 5000);
    turn_until(&o.ok, 1); /* and not kept by it: the connection is another */
    sql_run(side, "COMMIT");
    db_free(db);
}

/* A migration drops and makes functions under a running program. */
static void test_function_changed(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    DB_ARGS a = { 0 };
    DB_ROWS *r = NULL;
    assert_int_equal(db_wait(db, "one", &a, soon(), NULL), DB_OK);
    sql_run(side,
            "DROP FUNCTION payonce.one; CREATE FUNCTION payonce.one() RETURNS TABLE (i int, t text) LANGUAGE sql AS"
            " $$SELECT 1, 'new'$$");
    assert_int_equal(db_wait(db, "one", &a, soon(), &r), DB_OK);
    assert_true(row_is(r, 0, "t", "new"));
    db_free(db);
}

static void test_server_restart(void **state)
{
    (void)state;
    struct db *db = open_pool(3);
    struct outcome o = { 0 };
    for (int i = 0; i < 12; i++)
        put_slowly(db, 500 + i, "0.2", &o);
    turn_until(&o.ended, 2);
    assert_true(scratch.server.pid > 1);
    assert_int_equal(kill(scratch.server.pid, SIGQUIT), 0); /* immediate: as if it had crashed */
    for (int i = 12; i < 20; i++)
        put_slowly(db, 500 + i, "0", &o);
    const int64_t deadline_ms = soon();
    while (db_stats(db).connected > 0) {
        assert_true(clock_mono_ms() < deadline_ms);
        loop_turn(loop, 10);
    }
    PQfinish(side);
    scratch_restart();
    side = sql_open(scratch.server.conninfo);
    turn_until(&o.ended, 20);
    assert_int_equal(o.ok, 20);
    assert_true(db_stats(db).repeats >= 3);
    sql_is(side, "SELECT count(*) FROM payonce.things WHERE id BETWEEN 500 AND 519", "20");
    db_free(db);
}

/* ---- listening ---- */

struct heard {
    int made, told;
    char last[100];
};

static void on_heard(void *arg, const char *channel, const char *payload)
{
    struct heard *h = arg;
    if (!payload) {
        assert_null(channel);
        h->made++;
        return;
    }
    h->told++;
    snprintf(h->last, sizeof h->last, "%s:%s", channel, payload);
}

static void test_listen(void **state)
{
    (void)state;
    static const char *const channels[] = { "proofs", "orders" };
    struct db *db = open_pool(1);
    struct heard h = { 0 };
    db_listen(db, channels, 2, on_heard, &h);
    turn_until(&h.made, 1);
    sql_run(side, "NOTIFY orders, 'one'");
    turn_until(&h.told, 1);
    assert_string_equal(h.last, "orders:one");
    sql_run(side, "NOTIFY proofs");
    turn_until(&h.told, 2);
    assert_string_equal(h.last, "proofs:");
    /* waits until it is gone: else it may still hear what comes next */
    sql_run(side, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'payonce'");
    sql_run(side, "NOTIFY orders, 'missed'");
    turn_until(&h.made, 2);
    assert_int_equal(h.told, 2);
    sql_run(side, "NOTIFY orders, 'two'");
    turn_until(&h.told, 3);
    assert_string_equal(h.last, "orders:two");
    db_free(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_uses_all_connections),
        cmocka_unit_test(test_user),
        cmocka_unit_test(test_free_ends_calls),
        cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_commit_refused),
        cmocka_unit_test(test_h12_refused_then_good),
        cmocka_unit_test(test_repeated_states),
        cmocka_unit_test(test_backend_terminated),
        cmocka_unit_test(test_lock_timeout_repeats),
        cmocka_unit_test(test_deadline_in_flight),
        cmocka_unit_test(test_function_changed),
        cmocka_unit_test(test_server_restart),
        cmocka_unit_test(test_listen),
    };
    return cmocka_run_group_tests(tests, group_start, group_stop);
}
