/* The schema that this build carries: it applies, applies again, and its roles can do what they are for. Tests of the
 * functions themselves belong here, each calling them as the role that uses them. */
#include "scratch.h"

#include <stdio.h>

static int group_start(void **state)
{
    char why[400];
    int version = 0;
    scratch_start(state);
    if (db_migrate(scratch.server.conninfo, &version, why, sizeof why) != MIGRATE_OK)
        fail_msg("%s", why);
    assert_int_equal(version, db_schema_version());
    return 0;
}

static void test_again(void **state)
{
    (void)state;
    char why[400];
    int version = 0;
    assert_int_equal(db_migrate(scratch.server.conninfo, &version, why, sizeof why), MIGRATE_OK);
    assert_true(version > 0);
}

/* No role but the owner writes a table, and what a role may call runs as the owner. */
static void test_roles(void **state)
{
    (void)state;
    PGconn *pg = sql_open(scratch.server.conninfo);
    sql_is(
        pg,
        "SELECT count(*) FROM pg_class c, pg_roles r WHERE c.relnamespace = 'payonce'::regnamespace AND relkind = 'r'"
        " AND rolname IN ('payonce_gateway', 'payonce_settler', 'payonce_auditor', 'payonce_operator')"
        " AND has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')",
        "0");
    sql_is(pg,
           "SELECT count(*) FROM pg_proc p, pg_roles r WHERE pronamespace = 'payonce'::regnamespace"
           " AND rolname IN ('payonce_gateway', 'payonce_settler', 'payonce_auditor', 'payonce_operator')"
           " AND has_function_privilege(r.oid, p.oid, 'EXECUTE') AND NOT prosecdef",
           "0");
    PQfinish(pg);
}

static void test_call_as_gateway(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct db *db = db_open(loop, scratch.server.conninfo, "payonce_gateway", 1);
    DB_ARGS a = { 0 };
    assert_int_equal(db_wait(db, "money_counts", &a, clock_mono_ms() + PATIENCE_MS, NULL), DB_OK);
    db_free(db);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_call_as_gateway),
    };
    return cmocka_run_group_tests(tests, group_start, scratch_stop);
}
