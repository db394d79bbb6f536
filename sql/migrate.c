#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sql/internal.h"

/* What runs always has one row together, so that it is skipped while its text stays the same. */
enum { ALWAYS = 0 };
static const char always_name[] = "functions, views, grants";

struct migration {
    PGconn *pg;
    const struct sql_file *files;
    size_t n;
    bool rerun; /* a role or a table is new: grants and views must run again */
    char *why;
    size_t why_size;
};

struct hex {
    char s[65];
};

static int version_of(const struct sql_file *f)
{
    return isdigit((unsigned char)f->name[0]) ? (int)strtol(f->name, NULL, 10) : ALWAYS;
}

static int newest_version(const struct sql_file *files, size_t n)
{
    int newest = 0;
    for (size_t i = 0; i < n; i++)
        if (version_of(&files[i]) > newest)
            newest = version_of(&files[i]);
    return newest;
}

int db_schema_version(void)
{
    return newest_version(sql_files, sql_file_count);
}

static struct hex digest(const char *p, size_t n)
{
    const struct hash32 h = sha256(p, n);
    struct hex x;
    hex_write_bare(x.s, h.b, sizeof h.b);
    return x;
}

/* ---- small steps; each says why it failed ---- */

/* At the end of a line the message would be cut badly by a log; libpq ends it with one. */
static bool failed(const struct migration *m, const char *what)
{
    const char *text = PQerrorMessage(m->pg);
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    snprintf(m->why, m->why_size, "%s: %.*s", what, (int)n, text);
    return false;
}

static bool run(const struct migration *m, const char *what, const char *sql)
{
    RESULT *r = PQexec(m->pg, sql);
    return PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK || failed(m, what);
}

/* COMMIT of a transaction that was aborted answers OK too, with the tag ROLLBACK. */
static bool commit(const struct migration *m, const char *what)
{
    RESULT *r = PQexec(m->pg, "COMMIT");
    return (PQresultStatus(r) == PGRES_COMMAND_OK && strcmp(PQcmdStatus(r), "COMMIT") == 0) || failed(m, what);
}

static bool record(const struct migration *m, int version, const char *name, const struct hex *sum)
{
    char number[16];
    snprintf(number, sizeof number, "%d", version);
    const char *values[] = { number, name, sum->s };
    RESULT *r = PQexecParams(m->pg,
                             "INSERT INTO payonce.migrations (version, name, sha256) VALUES ($1, $2, $3)"
                             " ON CONFLICT (version) DO UPDATE SET sha256 = excluded.sha256, applied_at = now()"
                             " WHERE migrations.version = 0",
                             3, NULL, values, NULL, NULL, 0);
    return PQresultStatus(r) == PGRES_COMMAND_OK || failed(m, name);
}

static bool run_file(const struct migration *m, const struct sql_file *f)
{
    if (!run(m, f->name, f->text))
        return false;
    if (PQtransactionStatus(m->pg) == PQTRANS_INTRANS)
        return true;
    snprintf(m->why, m->why_size, "%s ends the transaction that it runs in", f->name);
    return false;
}

/* ---- the steps of a migration ---- */

/* Only one at a time; the others wait here, as long as it takes, and then find the work done. */
static bool lock(const struct migration *m)
{
    return run(m, "session",
               "SET client_min_messages = warning; SET lock_timeout = 0; SET statement_timeout = 0;"
               "SELECT pg_advisory_lock(7020310938);"
               "SET lock_timeout = '30s'; SET search_path = payonce, pg_temp");
}

static bool make_table(const struct migration *m)
{
    RESULT *r = PQexec(m->pg, "SELECT to_regclass('payonce.migrations') IS NOT NULL");
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        return failed(m, "migrations");
    if (strcmp(PQgetvalue(r, 0, 0), "t") == 0)
        return true;
    return run(m, "migrations",
               "BEGIN;"
               "CREATE SCHEMA IF NOT EXISTS payonce;"
               "CREATE TABLE payonce.migrations (version integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL,"
               " applied_at timestamptz NOT NULL DEFAULT now());"
               "COMMENT ON TABLE payonce.migrations IS"
               " 'Which SQL files were run; version 0 stands for those that run whenever they change';") &&
           commit(m, "migrations");
}

/* What was applied before: the row's index, or -1. */
static int find_row(const PGresult *applied, int version)
{
    for (int i = 0; i < PQntuples(applied); i++)
        if (strtol(PQgetvalue(applied, i, 0), NULL, 10) == version)
            return i;
    return -1;
}

static int highest(const PGresult *applied)
{
    return PQntuples(applied) ? (int)strtol(PQgetvalue(applied, PQntuples(applied) - 1, 0), NULL, 10) : 0;
}

static bool apply(struct migration *m, const struct sql_file *f, const struct hex *sum)
{
    m->rerun = true;
    return run(m, f->name, "BEGIN") && run_file(m, f) && record(m, version_of(f), f->name, sum) && commit(m, f->name);
}

static bool apply_or_check(struct migration *m, const struct sql_file *f, const PGresult *applied)
{
    const struct hex sum = digest(f->text, strlen(f->text));
    const int row = find_row(applied, version_of(f));
    if (row < 0 && version_of(f) > highest(applied))
        return apply(m, f, &sum);
    if (row < 0) {
        snprintf(m->why, m->why_size, "%s was never applied, though a later file was", f->name);
        return false;
    }
    if (strcmp(PQgetvalue(applied, row, 1), sum.s) == 0)
        return true;
    snprintf(m->why, m->why_size, "%s is not the file that was applied to this database", f->name);
    return false;
}

static struct hex digest_always(const struct migration *m)
{
    BUF all = { 0 };
    for (size_t i = 0; i < m->n; i++)
        if (version_of(&m->files[i]) == ALWAYS)
            buf_printf(&all, "%s\n%s", m->files[i].name, m->files[i].text);
    return digest(all.p, all.n);
}

static bool run_always(const struct migration *m, const PGresult *applied)
{
    const struct hex sum = digest_always(m);
    const int row = find_row(applied, ALWAYS);
    if (row >= 0 && !m->rerun && strcmp(PQgetvalue(applied, row, 1), sum.s) == 0)
        return true;
    if (!run(m, always_name, "BEGIN"))
        return false;
    for (size_t i = 0; i < m->n; i++)
        if (version_of(&m->files[i]) == ALWAYS && !run_file(m, &m->files[i]))
            return false;
    return record(m, ALWAYS, always_name, &sum) && commit(m, always_name);
}

static enum migrate_rc migrate(struct migration *m)
{
    if (!lock(m) || !make_table(m))
        return MIGRATE_FAILED;
    RESULT *applied = PQexec(m->pg, "SELECT version, sha256 FROM payonce.migrations ORDER BY version");
    if (PQresultStatus(applied) != PGRES_TUPLES_OK) {
        failed(m, "migrations");
        return MIGRATE_FAILED;
    }
    if (highest(applied) > newest_version(m->files, m->n)) {
        snprintf(m->why, m->why_size, "the database is at version %d, this program knows %d", highest(applied),
                 newest_version(m->files, m->n));
        return MIGRATE_NEWER;
    }
    if (!roles_make(m->pg, &m->rerun, m->why, m->why_size))
        return MIGRATE_FAILED;
    for (size_t i = 0; i < m->n; i++)
        if (version_of(&m->files[i]) != ALWAYS && !apply_or_check(m, &m->files[i], applied))
            return MIGRATE_FAILED;
    return run_always(m, applied) ? MIGRATE_OK : MIGRATE_FAILED;
}

static void pg_done(PGconn **pg)
{
    PQfinish(*pg);
}

enum migrate_rc migrate_with(const char *conninfo, const struct sql_file *files, size_t n, int *ret_version, char *why,
                             size_t why_size)
{
    const char *words[] = { "connect_timeout", "dbname", "client_encoding", "application_name", NULL };
    const char *values[] = { "10", conninfo, "UTF8", "payonce-migrate", NULL };
    SCOPE(pg_done) PGconn *pg = PQconnectdbParams(words, values, 1);
    struct migration m = { .pg = pg, .files = files, .n = n, .why = why, .why_size = why_size };
    if (PQstatus(pg) != CONNECTION_OK) {
        failed(&m, "connect");
        return MIGRATE_FAILED;
    }
    const enum migrate_rc rc = migrate(&m);
    if (rc == MIGRATE_OK)
        *ret_version = newest_version(files, n);
    return rc;
}

enum migrate_rc db_migrate(const char *conninfo, int *ret_version, char *why, size_t why_size)
{
    return migrate_with(conninfo, sql_files, sql_file_count, ret_version, why, why_size);
}
