#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sql/cluster.h"
#include "sql/internal.h"

enum { START_MS = 60000, TURN_MS = 120000, STOP_MS = 60000, POLL_MS = 20 };

#define CLUSTER SCOPE(cluster_done) struct cluster
#define LOCK SCOPE(lock_done) int

/* ---- reaching it ---- */

/* A word of a conninfo: in quotes, with quotes and backslashes escaped. */
static void add_quoted(struct buf *b, const char *s)
{
    buf_puts(b, "'");
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\')
            buf_puts(b, "\\");
        buf_add(b, s, 1);
    }
    buf_puts(b, "'");
}

static char *conninfo_of(const struct cluster *c, const char *database)
{
    BUF b = { 0 };
    buf_puts(&b, "host=");
    add_quoted(&b, c->sockets);
    buf_printf(&b, " port=%d dbname=%s user=" CLUSTER_OWNER, CLUSTER_PORT, database);
    return MOVE(b.p);
}

static PGPing ping(const struct cluster *c)
{
    OWNED char *conninfo = conninfo_of(c, "postgres connect_timeout=3");
    return PQping(conninfo);
}

/* ---- its process ---- */

/* The server's process id as it wrote it down; 0: none. */
static pid_t read_pid(const struct cluster *c)
{
    OWNED char *path = str_format("%s/postmaster.pid", c->data);
    FILE *f = fopen(path, "re");
    int pid = 0;
    if (f && fscanf(f, "%d", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    return pid > 1 ? pid : 0;
}

/* A number left behind by kill -9 may be another process by now; a server's current directory is its data. */
static bool is_server(const struct cluster *c, pid_t pid)
{
    char link[64], dir[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    const ssize_t n = readlink(link, dir, sizeof dir - 1);
    if (pid == 0 || n < 0)
        return false;
    dir[n] = '\0';
    return strcmp(dir, c->data) == 0;
}

static bool is_running(const struct cluster *c)
{
    return is_server(c, read_pid(c)) && ping(c) == PQPING_OK;
}

/* With the `alive` lock in hand no process of a server that we started is left, so its files are stale. PostgreSQL
 * itself would keep them in honour when their process id has been given to somebody else. */
static void remove_stale(const struct cluster *c)
{
    if (is_server(c, read_pid(c)))
        return; /* started by somebody else's hand: PostgreSQL will refuse */
    OWNED char *pid_file = str_format("%s/postmaster.pid", c->data);
    OWNED char *socket_lock = str_format("%s/.s.PGSQL.%d.lock", c->sockets, CLUSTER_PORT);
    unlink(pid_file);
    unlink(socket_lock);
}

/* A list of directories in PostgreSQL's form. */
static char *socket_setting(const struct cluster *c)
{
    BUF b = { 0 };
    buf_puts(&b, "unix_socket_directories=\"");
    for (const char *s = c->sockets; *s; s++)
        buf_printf(&b, *s == '"' ? "\"\"" : "%c", *s);
    buf_puts(&b, "\"");
    return MOVE(b.p);
}

static bool start_server(const struct cluster *c, int alive, const struct why *w)
{
    OWNED char *program = cluster_program(c, "postgres");
    if (!program)
        return fail_why(w, "no PostgreSQL of the version that made %s is installed", c->data);
    OWNED char *sockets = socket_setting(c);
    OWNED char *port = str_format("port=%d", CLUSTER_PORT);
    char d[] = "-D", set[] = "-c", addresses[] = "listen_addresses=", fsync_on[] = "fsync=on",
         pages[] = "full_page_writes=on", durable[] = "synchronous_commit=on", mode[] = "unix_socket_permissions=0700";
    char *argv[] = { program, d,        c->data, set,   addresses, set,     sockets, set,  port,
                     set,     fsync_on, set,     pages, set,       durable, set,     mode, NULL };
    process_start(&c->account, argv, c->log, alive);
    return true;
}

static bool wait_until_up(const struct cluster *c, const struct why *w)
{
    const int64_t deadline_ms = clock_mono_ms() + START_MS;
    for (;;) {
        if (ping(c) == PQPING_OK)
            return true;
        LOCK gone = lock_try(c->alive);
        if (gone >= 0) {
            OWNED char *line = last_complaint(c->log);
            return fail_why(w, "the database ended: %s", line);
        }
        if (clock_mono_ms() >= deadline_ms)
            return fail_why(w, "the database is not ready yet; it may be recovering (see %s)", c->log);
        clock_sleep_ms(POLL_MS);
    }
}

/* It may be on its way up (a start that gave up waiting) or down (remains of a killed one). */
static bool start(const struct cluster *c, const struct why *w)
{
    const int64_t deadline_ms = clock_mono_ms() + START_MS;
    LOCK alive = -1;
    while ((alive = lock_try(c->alive)) < 0) {
        if (is_running(c))
            return true;
        if (clock_mono_ms() >= deadline_ms)
            return fail_why(w, "a database process is left that neither answers nor ends (see %s)", c->log);
        clock_sleep_ms(POLL_MS);
    }
    remove_stale(c);
    if (!cluster_make_sockets(c, w) || !start_server(c, alive, w))
        return false;
    lock_done(&alive); /* from here on it is the server's alone */
    return wait_until_up(c, w);
}

static void pg_done(PGconn **pg)
{
    PQfinish(*pg);
}

static bool make_database(const struct cluster *c, const struct why *w)
{
    OWNED char *conninfo = conninfo_of(c, "postgres");
    SCOPE(pg_done) PGconn *pg = PQconnectdb(conninfo);
    RESULT *there = PQexec(pg, "SELECT 1 FROM pg_database WHERE datname = 'payonce'");
    if (PQntuples(there) == 1)
        return true;
    RESULT *made = PQexec(pg, "CREATE DATABASE payonce");
    return PQresultStatus(made) == PGRES_COMMAND_OK || fail_why(w, "the embedded database: %s", PQerrorMessage(pg));
}

static bool make_and_start(const struct cluster *c, const struct why *w)
{
    if (is_running(c))
        return true;
    if (!cluster_exists(c) && !cluster_make(c, w))
        return false;
    return start(c, w);
}

/* ---- the public face ---- */

bool embedded_start(const char *state_dir, struct embedded *ret, char *why, size_t why_size)
{
    const struct why w = { why, why_size };
    CLUSTER c = { 0 };
    if (!cluster_find(state_dir, &c, &w))
        return false;
    LOCK turn = lock_wait(c.turn, clock_mono_ms() + TURN_MS);
    if (turn < 0)
        return fail_why(&w, "%s: %s", c.turn, strerror(errno));
    OWNED char *dir = str_copy(c.data);
    *strrchr(dir, '/') = '\0';
    if (!account_reaches(&c.account, dir, &w) || !make_and_start(&c, &w) || !make_database(&c, &w))
        return false;
    *ret = (struct embedded){ .conninfo = conninfo_of(&c, "payonce"), .pid = read_pid(&c) };
    return true;
}

bool embedded_stop(const char *state_dir, char *why, size_t why_size)
{
    const struct why w = { why, why_size };
    CLUSTER c = { 0 };
    if (!cluster_find(state_dir, &c, &w))
        return false;
    LOCK turn = lock_wait(c.turn, clock_mono_ms() + TURN_MS);
    if (turn < 0)
        return fail_why(&w, "%s: %s", c.turn, strerror(errno));
    const int64_t deadline_ms = clock_mono_ms() + STOP_MS;
    pid_t told = 0;
    for (;;) {
        LOCK gone = lock_try(c.alive);
        const pid_t pid = read_pid(&c);
        if (gone >= 0)
            return true;
        if (pid != told && is_server(&c, pid) && kill(pid, SIGINT) == 0)
            told = pid;
        if (clock_mono_ms() >= deadline_ms)
            return fail_why(&w, "the database does not stop (process %d)", (int)pid);
        clock_sleep_ms(POLL_MS);
    }
}

bool embedded_status(const char *state_dir, struct embedded *ret)
{
    char ignored[200];
    const struct why w = { ignored, sizeof ignored };
    CLUSTER c = { 0 };
    if (access(state_dir, F_OK) != 0 || !cluster_find(state_dir, &c, &w) || !is_running(&c))
        return false;
    *ret = (struct embedded){ .conninfo = conninfo_of(&c, "payonce"), .pid = read_pid(&c) };
    return true;
}

void embedded_done(struct embedded *e)
{
    free(e->conninfo);
    *e = (struct embedded){ 0 };
}
