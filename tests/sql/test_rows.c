/* Values out as text, back in binary. */
#include "scratch.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char fixtures[] =
    "CREATE SCHEMA payonce; SET search_path = payonce;"
    "CREATE FUNCTION echo(bool, int8, text, bytea, numeric) RETURNS TABLE (b bool, i2 int2, i4 int4, i8 int8,"
    " t text, v varchar, y bytea, n text, d double precision)"
    " LANGUAGE sql AS 'SELECT $1, -2::int2, -70000, $2, $3, $3::varchar, $4, $5::text, 1.5::float8';";

static struct loop *loop;

static int group_start(void **state)
{
    scratch_start(state);
    PGconn *pg = sql_open(scratch.server.conninfo);
    sql_run(pg, fixtures);
    PQfinish(pg);
    loop = loop_new();
    return 0;
}

static int group_stop(void **state)
{
    loop_free(loop);
    return scratch_stop(state);
}

static int64_t soon(void)
{
    return clock_mono_ms() + PATIENCE_MS;
}

static void test_values(void **state)
{
    (void)state;
    struct db *db = db_open(loop, scratch.server.conninfo, NULL, 1);
    struct amount n;
    assert_true(amount_read("115792089237316195423570985008687907853269984665640564039457584007913129639935", 78, &n));
    DB_ARGS a = { 0 };
    arg_bool(&a, true);
    arg_int(&a, INT64_MIN);
    arg_text(&a, "gr\xc3\xbc\xc3\x9f' \"\\");
    arg_bytes(&a, "a\0\xff", 3);
    arg_amount(&a, n);
    DB_ROWS *r = NULL;
    assert_int_equal(db_wait(db, "echo", &a, soon(), &r), DB_OK);
    assert_int_equal(db_count(r), 1);
    assert_true(row_bool(r, 0, "b"));
    assert_int_equal(row_int(r, 0, "i2"), -2);
    assert_int_equal(row_int(r, 0, "i4"), -70000);
    assert_true(row_int(r, 0, "i8") == INT64_MIN);
    assert_true(row_is(r, 0, "t", "gr\xc3\xbc\xc3\x9f' \"\\"));
    assert_string_equal(row_text(r, 0, "v").p, "gr\xc3\xbc\xc3\x9f' \"\\");
    assert_int_equal(row_bytes(r, 0, "y").n, 3);
    char y[3];
    assert_true(row_copy(r, 0, "y", y, 3));
    assert_memory_equal(y, "a\0\xff", 3);
    assert_int_equal(amount_cmp(row_amount(r, 0, "n"), n), 0);
    db_free(db);
}

static void test_nulls(void **state)
{
    (void)state;
    struct db *db = db_open(loop, scratch.server.conninfo, NULL, 1);
    DB_ARGS a = { 0 };
    arg_null(&a);
    arg_null(&a);
    arg_text(&a, NULL);
    arg_bytes(&a, NULL, 0);
    arg_null(&a);
    DB_ROWS *r = NULL;
    assert_int_equal(db_wait(db, "echo", &a, soon(), &r), DB_OK);
    char y[3];
    assert_true(row_null(r, 0, "b") && !row_bool(r, 0, "b"));
    assert_int_equal(row_int(r, 0, "i8"), 0);
    assert_null(row_text(r, 0, "t").p);
    assert_false(row_is(r, 0, "t", ""));
    assert_null(row_bytes(r, 0, "y").p);
    assert_false(row_copy(r, 0, "y", y, 3));
    assert_false(row_null(r, 0, "i2"));

    arg_null(&a);
    arg_null(&a);
    arg_text(&a, "");
    arg_bytes(&a, "", 0);
    arg_null(&a);
    DB_ROWS *empty = NULL;
    assert_int_equal(db_wait(db, "echo", &a, soon(), &empty), DB_OK);
    assert_true(row_is(empty, 0, "t", ""));
    assert_non_null(row_bytes(empty, 0, "y").p);
    db_free(db);
}

/* Reading a column that is not there or has no type of ours ends the process. */
static void aborts(const struct db_rows *r, const char *column)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        (void)row_int(r, 0, column);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_wrong_columns(void **state)
{
    (void)state;
    struct db *db = db_open(loop, scratch.server.conninfo, NULL, 1);
    DB_ARGS a = { 0 };
    for (int i = 0; i < 5; i++)
        arg_null(&a);
    DB_ROWS *r = NULL;
    assert_int_equal(db_wait(db, "echo", &a, soon(), &r), DB_OK);
    aborts(r, "absent");
    aborts(r, "d");
    aborts(r, "t");
    db_free(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_wrong_columns),
    };
    return cmocka_run_group_tests(tests, group_start, group_stop);
}
