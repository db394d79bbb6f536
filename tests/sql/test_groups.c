/* Calls that travel together: each has its own row, one that fails takes nobody with it. */
#include <string.h>

#include "scratch.h"

static const char fixtures[] =
    "CREATE SCHEMA payonce; SET search_path = payonce;"
    "CREATE TABLE things (id bigint PRIMARY KEY);"
    "CREATE TABLE owners (id bigint PRIMARY KEY);"
    "CREATE TABLE owned (owner bigint REFERENCES owners DEFERRABLE INITIALLY DEFERRED);"
    "CREATE TABLE grouped (id bigint PRIMARY KEY, n serial, xid bigint NOT NULL DEFAULT txid_current(), CHECK (id <> 777));"
    "CREATE FUNCTION enter(int8) RETURNS TABLE (id int8) LANGUAGE sql AS"
    " 'INSERT INTO payonce.grouped (id) VALUES ($1) ON CONFLICT DO NOTHING; SELECT $1';"
    "CREATE FUNCTION put_slowly(int8, float8) RETURNS TABLE (id int8) LANGUAGE plpgsql AS"
    " 'BEGIN PERFORM pg_sleep($2); INSERT INTO payonce.things VALUES ($1) ON CONFLICT DO NOTHING;"
    " RETURN QUERY SELECT $1; END';"
    "CREATE FUNCTION own(int8) RETURNS TABLE (owner int8) LANGUAGE sql AS"
    " 'INSERT INTO payonce.owned VALUES ($1) RETURNING owner';";

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

struct entry {
    struct outcome *o;
    int64_t id;
};

static void entered(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    const struct entry *e = arg;
    if (rc == DB_OK)
        assert_int_equal(row_int(rows, 0, "id"), e->id); /* its own row */
    count(e->o, rc, rows);
}

static void enter_all(struct db *db, struct entry *e, int n, int64_t first, struct outcome *o)
{
    for (int i = 0; i < n; i++) {
        DB_ARGS a = { 0 };
        e[i] = (struct entry){ o, first + i };
        arg_int(&a, e[i].id);
        db_call_grouped(db, "enter", &a, (uint64_t)(n - i), soon(), entered, &e[i]);
    }
}

/* Many at once are few commits, of 16 at most, each in the order of its ranks. */
static void test_grouped(void **state)
{
    (void)state;
    struct db *db = open_pool(4);
    struct entry e[200];
    struct outcome o = { 0 };
    sql_run(side, "TRUNCATE payonce.grouped");
    enter_all(db, e, COUNT(e), 1000, &o);
    assert_int_equal(o.ended, 0);
    turn_until(&o.ended, COUNT(e));
    assert_int_equal(o.ok, COUNT(e));
    sql_is(side, "SELECT count(*) FROM payonce.grouped", "200");
    sql_is(side, "SELECT count(DISTINCT xid) BETWEEN 13 AND 40 FROM payonce.grouped", "t");
    sql_is(side, "SELECT max(n) FROM (SELECT count(*) AS n FROM payonce.grouped GROUP BY xid) x", "16");
    sql_is(side, "SELECT count(*) FROM payonce.grouped a JOIN payonce.grouped b ON b.xid = a.xid AND b.n > a.n AND b.id > a.id", "0");
    assert_int_equal(db_stats(db).busy + db_stats(db).queued, 0);
    db_free(db);
}

/* One that fails takes nobody with it. */
static void test_grouped_one_refused(void **state)
{
    (void)state;
    struct db *db = open_pool(2);
    struct entry e[64];
    struct outcome o = { 0 };
    sql_run(side, "TRUNCATE payonce.grouped");
    enter_all(db, e, COUNT(e), 740, &o);         /* 777 is among them */
    turn_until(&o.ended, COUNT(e));
    assert_int_equal(o.ok, COUNT(e) - 1);
    assert_int_equal(o.refused, 1);
    sql_is(side, "SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE id = 777)) FROM payonce.grouped", "63 0");
    db_free(db);
}

/* The rows come before the commit does, and it says no to all of them. */
static void test_grouped_commit_refused(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    struct outcome o = { 0 };
    sql_run(side, "INSERT INTO payonce.owners VALUES (1)");
    for (int i = 0; i < 40; i++) {
        DB_ARGS a = { 0 };
        arg_int(&a, i == 30 ? 404 : 1);
        db_call_grouped(db, "own", &a, 0, soon(), count, &o);
    }
    turn_until(&o.ended, 40);
    assert_int_equal(o.ok, 39);
    assert_int_equal(o.refused, 1);
    sql_is(side, "SELECT count(*) FROM payonce.owned", "39");
    db_free(db);
}

static void put_slowly_grouped(struct db *db, int64_t id, const char *seconds, int64_t deadline_ms, struct outcome *o)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, seconds);
    db_call_grouped(db, "put_slowly", &a, 0, deadline_ms, count, o);
}

/* A connection that is lost, and a call whose time is over, leave the others of their group to another try. */
static void test_grouped_lost(void **state)
{
    (void)state;
    struct db *db = open_pool(1);
    struct outcome o = { 0 }, late = { 0 };
    for (int i = 0; i < 6; i++)
        put_slowly_grouped(db, 800 + i, "0.3", soon(), &o);
    turn_until(&o.ended, 1);                     /* it went alone; the others are a group now */
    turn_until_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "1");
    sql_is(side, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'payonce'", "1");
    turn_until(&o.ended, 6);
    assert_int_equal(o.ok, 6);
    sql_is(side, "SELECT count(*) FROM payonce.things WHERE id BETWEEN 800 AND 805", "6");
    put_slowly_grouped(db, 810, "0", soon(), &o);
    put_slowly_grouped(db, 811, "0", soon(), &o);
    put_slowly_grouped(db, 812, "5", clock_mono_ms() + 500, &late);
    turn_until(&late.ended, 1);
    assert_int_equal(late.unavailable, 1);
    turn_until(&o.ended, 8);
    assert_int_equal(o.ok, 8);
    assert_int_equal(db_stats(db).busy + db_stats(db).queued, 0);
    db_free(db);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grouped),
        cmocka_unit_test(test_grouped_one_refused),
        cmocka_unit_test(test_grouped_commit_refused),
        cmocka_unit_test(test_grouped_lost),
    };
    return cmocka_run_group_tests(tests, group_start, group_stop);
}
