/* Migrations, with tables of files of the test's own. Each test has a database of its own in the one cluster. */
#include "scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sql/internal.h"

static PGconn *server;
static char conninfo[400]; /* of the current test's database, as its owner */
static PGconn *side;
static char why[400];

static const struct sql_file one_file[] = { { "0001-base.sql", "CREATE TABLE a (n int); INSERT INTO a VALUES (1);" } };
static const struct sql_file whole[] = {
    { "0001-base.sql", "CREATE TABLE a (n int); INSERT INTO a VALUES (1);" },
    { "0002-more.sql", "CREATE TABLE b (n int); INSERT INTO a VALUES (2);" },
    { "functions.sql", "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';" },
    { "grants.sql", "GRANT USAGE ON SCHEMA payonce TO payonce_gateway; INSERT INTO b VALUES (1);" },
};

static enum migrate_rc migrate(const struct sql_file *files, size_t n, int *version)
{
    why[0] = '\0';
    return migrate_with(conninfo, files, n, version, why, sizeof why);
}

static void migrates(const struct sql_file *files, size_t n, int expected)
{
    int version = -1;
    if (migrate(files, n, &version) != MIGRATE_OK)
        fail_msg("%s", why);
    assert_int_equal(version, expected);
}

static void refused(enum migrate_rc expected, const struct sql_file *files, size_t n, const char *in_why)
{
    int version = -1;
    assert_int_equal(migrate(files, n, &version), expected);
    assert_int_equal(version, -1);
    if (!strstr(why, in_why))
        fail_msg("'%s' does not say %s", why, in_why);
}

static int group_start(void **state)
{
    scratch_start(state);
    server = sql_open(scratch.server.conninfo);
    return 0;
}

static int group_stop(void **state)
{
    PQfinish(server);
    return scratch_stop(state);
}

static int new_database(void **state)
{
    (void)state;
    static int n;
    char text[100];
    snprintf(text, sizeof text, "CREATE DATABASE test%d", ++n);
    sql_run(server, text);
    snprintf(conninfo, sizeof conninfo, "%s dbname=test%d", scratch.server.conninfo, n);
    side = sql_open(conninfo);
    sql_run(side, "SET search_path = payonce");
    return 0;
}

static int leave_database(void **state)
{
    (void)state;
    PQfinish(side);
    return 0;
}

static void test_fresh_then_nothing(void **state)
{
    (void)state;
    migrates(whole, COUNT(whole), 2);
    sql_is(side, "SELECT string_agg(version || ' ' || name, ', ' ORDER BY version) FROM migrations",
           "0 functions, views, grants, 1 0001-base.sql, 2 0002-more.sql");
    sql_is(side, "SELECT f()", "1");
    sql_is(side, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'payonce\\_%' AND rolcanlogin AND NOT rolsuper",
           "4");
    OWNED char *rows = sql_one(side, "SELECT string_agg(xmin::text, ',' ORDER BY version) FROM migrations");
    migrates(whole, COUNT(whole), 2);
    sql_is(side, "SELECT string_agg(xmin::text, ',' ORDER BY version) FROM migrations", rows);
    sql_is(side, "SELECT count(*) FROM b", "1");
}

static void test_step_by_step(void **state)
{
    (void)state;
    migrates(one_file, COUNT(one_file), 1);
    migrates(whole, COUNT(whole), 2);
    sql_is(side, "SELECT sum(n) FROM a", "3");
}

static void test_always_runs_when_changed(void **state)
{
    (void)state;
    struct sql_file changed[COUNT(whole)];
    memcpy(changed, whole, sizeof whole);
    migrates(whole, COUNT(whole), 2);
    changed[2].text = "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 2';";
    migrates(changed, COUNT(changed), 2);
    sql_is(side, "SELECT f()", "2");
    sql_is(side, "SELECT count(*) FROM b", "2"); /* grants too: all of them or none */
}

/* An upgrade whose functions differ: what hangs on each other goes at once, in whatever order the catalogue has it. */
static void test_ours_are_made_anew(void **state)
{
    (void)state;
    int version, again;
    if (db_migrate(conninfo, &version, why, sizeof why) != MIGRATE_OK)
        fail_msg("%s", why);
    OWNED char *functions = sql_one(side, "SELECT count(*)::text FROM pg_proc WHERE pronamespace = 'payonce'::regnamespace");
    for (int i = 0; i < 3; i++) {
        sql_run(side, "UPDATE migrations SET sha256 = 'another' WHERE version = 0");
        if (db_migrate(conninfo, &again, why, sizeof why) != MIGRATE_OK)
            fail_msg("%s", why);
        assert_int_equal(again, version);
        sql_is(side, "SELECT count(*)::text FROM pg_proc WHERE pronamespace = 'payonce'::regnamespace", functions);
    }
}

static void test_newer_is_refused(void **state)
{
    (void)state;
    migrates(whole, COUNT(whole), 2);
    refused(MIGRATE_NEWER, one_file, COUNT(one_file), "version 2");
}

static void test_changed_file_is_refused(void **state)
{
    (void)state;
    struct sql_file changed[COUNT(whole)];
    memcpy(changed, whole, sizeof whole);
    migrates(one_file, COUNT(one_file), 1);
    changed[0].text = "CREATE TABLE a (n int);";
    refused(MIGRATE_FAILED, changed, COUNT(changed), "0001-base.sql");
    sql_is(side, "SELECT to_regclass('b') IS NULL", "t");
}

static void test_gap_is_refused(void **state)
{
    (void)state;
    migrates(&whole[1], 0, 0);
    sql_run(side, "INSERT INTO migrations VALUES (2, '0002-more.sql', 'x')");
    refused(MIGRATE_FAILED, whole, COUNT(whole), "0001-base.sql was never applied");
}

static void test_failure_leaves_nothing(void **state)
{
    (void)state;
    const struct sql_file bad[] = { one_file[0], { "0002-bad.sql", "CREATE TABLE c (n int); SELECT 1/0;" } };
    refused(MIGRATE_FAILED, bad, COUNT(bad), "0002-bad.sql");
    sql_is(side, "SELECT to_regclass('c') IS NULL", "t");
    sql_is(side, "SELECT max(version) FROM migrations", "1");
    const struct sql_file commits[] = { one_file[0], { "0002-commit.sql", "CREATE TABLE c (n int); COMMIT;" } };
    refused(MIGRATE_FAILED, commits, COUNT(commits), "0002-commit.sql ends the transaction");
}

/* The error comes with the commit. */
static void test_failing_commit(void **state)
{
    (void)state;
    const struct sql_file bad[] = { { "0001-base.sql",
                                      "CREATE TABLE p (n int PRIMARY KEY);"
                                      "CREATE TABLE c (n int REFERENCES p DEFERRABLE INITIALLY DEFERRED);"
                                      "INSERT INTO c VALUES (1);" } };
    refused(MIGRATE_FAILED, bad, COUNT(bad), "0001-base.sql");
    sql_is(side, "SELECT to_regclass('c') IS NULL", "t");
}

static void test_roles_need_permission(void **state)
{
    (void)state;
    migrates(whole, COUNT(whole), 2);
    sql_run(side, "DROP OWNED BY payonce_gateway; DROP OWNED BY payonce_settler");
    for (int i = 1; i < 20; i++) { /* what other tests granted in their databases */
        char there[500];
        snprintf(there, sizeof there, "%s dbname=test%d", scratch.server.conninfo, i);
        PGconn *pg = PQconnectdb(there);
        if (PQstatus(pg) == CONNECTION_OK)
            sql_run(pg, "DROP OWNED BY payonce_gateway");
        PQfinish(pg);
    }
    sql_run(side, "DROP ROLE payonce_gateway; CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA payonce TO plain;"
                  "GRANT ALL ON ALL TABLES IN SCHEMA payonce TO plain");
    char as_owner[400];
    snprintf(as_owner, sizeof as_owner, "%s", conninfo);
    snprintf(conninfo, sizeof conninfo, "%.380s user=plain", as_owner);
    refused(MIGRATE_FAILED, whole, COUNT(whole), "run: CREATE ROLE payonce_gateway LOGIN;");
    snprintf(conninfo, sizeof conninfo, "%s", as_owner);
    migrates(whole, COUNT(whole), 2);
    sql_is(side, "SELECT has_schema_privilege('payonce_gateway', 'payonce', 'USAGE')", "t"); /* granted anew */
}

static pid_t migrate_in_child(void)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        int version;
        _exit(migrate(whole, COUNT(whole), &version) == MIGRATE_OK && version == 2 ? 0 : 1);
    }
    return pid;
}

static void test_two_at_once(void **state)
{
    (void)state;
    pid_t child[3];
    for (size_t i = 0; i < COUNT(child); i++)
        child[i] = migrate_in_child();
    for (size_t i = 0; i < COUNT(child); i++) {
        int status = -1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    sql_is(side, "SELECT sum(n) FROM a", "3");
    sql_is(side, "SELECT count(*) FROM b", "1");
}

static void test_unreachable(void **state)
{
    (void)state;
    int version;
    assert_int_equal(migrate_with("host=/nowhere", whole, COUNT(whole), &version, why, sizeof why), MIGRATE_FAILED);
    assert_non_null(strstr(why, "/nowhere"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, new_database, leave_database)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fresh_then_nothing),
        TEST(step_by_step),
        TEST(always_runs_when_changed),
        TEST(ours_are_made_anew),
        TEST(newer_is_refused),
        TEST(changed_file_is_refused),
        TEST(gap_is_refused),
        TEST(failure_leaves_nothing),
        TEST(failing_commit),
        TEST(roles_need_permission),
        TEST(two_at_once),
        TEST(unreachable),
    };
    return cmocka_run_group_tests(tests, group_start, group_stop);
}
