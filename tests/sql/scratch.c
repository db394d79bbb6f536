#include "scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct scratch scratch;

void scratch_new_dir(char ret[128])
{
    snprintf(ret, 128, "/tmp/payonce-test-XXXXXX");
    assert_non_null(mkdtemp(ret));
    chmod(ret, 0711); /* as root the server runs as another user */
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void scratch_remove(const char *dir)
{
    char why[300];
    if (!embedded_stop(dir, why, sizeof why))
        print_error("%s\n", why);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void scratch_restart(void)
{
    char why[300] = "";
    embedded_done(&scratch.server);
    if (!embedded_start(scratch.dir, &scratch.server, why, sizeof why))
        fail_msg("%s", why);
}

int scratch_start(void **state)
{
    (void)state;
    scratch_new_dir(scratch.dir);
    scratch_restart();
    return 0;
}

int scratch_start_copy(void **state)
{
    (void)state;
    const char *cluster = getenv("PAYONCE_TEST_CLUSTER");
    scratch_new_dir(scratch.dir);
    OWNED char *copy = str_format("cp -a --reflink=auto '%s' '%s/postgres'", cluster ? cluster : "", scratch.dir);
    if (cluster && system(copy) != 0)
        fail_msg("%s", copy);
    scratch_restart();
    return 0;
}

int scratch_stop(void **state)
{
    (void)state;
    scratch_remove(scratch.dir);
    embedded_done(&scratch.server);
    return 0;
}

PGconn *sql_open(const char *conninfo)
{
    PGconn *pg = PQconnectdb(conninfo);
    if (PQstatus(pg) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(pg));
    sql_run(pg, "SET client_min_messages = warning");
    return pg;
}

void sql_run(PGconn *pg, const char *text)
{
    PGresult *r = PQexec(pg, text);
    const ExecStatusType status = PQresultStatus(r);
    PQclear(r);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", text, PQerrorMessage(pg));
}

char *sql_one(PGconn *pg, const char *text)
{
    PGresult *r = PQexec(pg, text);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", text, PQerrorMessage(pg));
    char *value = str_copy(PQntuples(r) ? PQgetvalue(r, 0, 0) : "no row");
    PQclear(r);
    return value;
}

void sql_is(PGconn *pg, const char *text, const char *expected)
{
    OWNED char *value = sql_one(pg, text);
    assert_string_equal(value, expected);
}

void sql_wait(PGconn *pg, const char *text, const char *expected)
{
    const int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    for (;;) {
        OWNED char *value = sql_one(pg, text);
        if (strcmp(value, expected) == 0)
            return;
        if (clock_mono_ms() > deadline_ms)
            fail_msg("%s stays %s, not %s", text, value, expected);
        clock_sleep_ms(5);
    }
}
