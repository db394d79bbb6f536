/* The embedded cluster: made, found, killed, started again. */
#include "scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char why[400];

static struct embedded started(const char *dir)
{
    struct embedded e;
    if (!embedded_start(dir, &e, why, sizeof why))
        fail_msg("%s", why);
    return e;
}

static void stopped(const char *dir)
{
    struct embedded e;
    if (!embedded_stop(dir, why, sizeof why))
        fail_msg("%s", why);
    assert_false(embedded_status(dir, &e));
}

static void answers(const struct embedded *e, const char *text, const char *expected)
{
    PGconn *pg = sql_open(e->conninfo);
    sql_is(pg, text, expected);
    PQfinish(pg);
}

static void test_life(void **state)
{
    (void)state;
    char dir[128];
    scratch_new_dir(dir);
    struct embedded none;
    assert_false(embedded_status(dir, &none));
    stopped(dir);

    struct embedded a = started(dir);
    answers(&a, "SELECT current_user || ' ' || current_database()", "payonce_owner payonce");
    answers(&a,
            "SELECT string_agg(setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN"
            " ('fsync', 'full_page_writes', 'listen_addresses', 'synchronous_commit', 'data_checksums')",
            "on on on  on");
    struct embedded b = started(dir), c = { 0 };
    assert_int_equal(a.pid, b.pid);
    assert_true(embedded_status(dir, &c));
    assert_int_equal(c.pid, a.pid);
    assert_string_equal(c.conninfo, a.conninfo);
    struct stat st;
    BUF data = { 0 };
    buf_printf(&data, "%s/postgres", dir);
    assert_int_equal(stat(data.p, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    stopped(dir);
    stopped(dir);
    embedded_done(&a);
    embedded_done(&b);
    embedded_done(&c);
    scratch_remove(dir);
}

static void kill_server(void)
{
    assert_true(scratch.server.pid > 1);
    assert_int_equal(kill(scratch.server.pid, SIGKILL), 0);
}

/* Its children notice that it is gone a moment later; nobody may start beside them. */
static void test_killed(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        kill_server();
        const int before = scratch.server.pid;
        scratch_restart();
        assert_int_not_equal(scratch.server.pid, before);
        answers(&scratch.server, "SELECT 1", "1");
    }
}

/* A stale file may name a process that lives and is something else: this test. */
static void test_stale_pid_reused(void **state)
{
    (void)state;
    BUF path = { 0 }, first = { 0 };
    buf_printf(&path, "%s/postgres/postmaster.pid", scratch.dir);
    kill_server();
    buf_printf(&first, "%-*d", snprintf(NULL, 0, "%d", scratch.server.pid), getpid());
    const int fd = open(path.p, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, first.p, first.n), (ssize_t)first.n);
    close(fd);
    struct embedded e;
    assert_false(embedded_status(scratch.dir, &e));
    scratch_restart();
    answers(&scratch.server, "SELECT 1", "1");
}

static pid_t start_in_child(const char *dir)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        struct embedded e;
        _exit(embedded_start(dir, &e, why, sizeof why) ? 0 : 1);
    }
    return pid;
}

static void test_two_at_once(void **state)
{
    (void)state;
    char dir[128];
    scratch_new_dir(dir);
    pid_t child[3];
    for (size_t i = 0; i < COUNT(child); i++)
        child[i] = start_in_child(dir);
    for (size_t i = 0; i < COUNT(child); i++) {
        int status = -1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    struct embedded e;
    assert_true(embedded_status(dir, &e));
    answers(&e, "SELECT 1", "1");
    embedded_done(&e);
    scratch_remove(dir);
}

/* Half a cluster is left under its other name, and made anew. The path has what conninfo and settings must quote. */
static void test_interrupted_and_odd_path(void **state)
{
    (void)state;
    char dir[128];
    scratch_new_dir(dir);
    BUF odd = { 0 }, half = { 0 };
    buf_printf(&odd, "%s/it's \"odd\\", dir);
    buf_printf(&half, "%s/postgres.new", odd.p);
    assert_int_equal(mkdir(odd.p, 0711), 0);
    chmod(odd.p, 0711);
    assert_int_equal(mkdir(half.p, 0700), 0);
    buf_puts(&half, "/junk");
    assert_int_equal(mkdir(half.p, 0700), 0);
    struct embedded e = started(odd.p);
    answers(&e, "SELECT 1", "1");
    embedded_done(&e);
    stopped(odd.p);
    scratch_remove(odd.p);
    scratch_remove(dir);
}

/* A socket's name has room for 107 bytes, and a comma separates hosts: then the socket lies elsewhere. */
static void sockets_elsewhere(const char *name)
{
    char dir[128], path[64];
    scratch_new_dir(dir);
    BUF state_dir = { 0 };
    buf_printf(&state_dir, "%s/%s", dir, name);
    struct embedded e = started(state_dir.p);
    const char *sockets = strstr(e.conninfo, "/tmp/payonce-");
    assert_non_null(sockets);
    snprintf(path, sizeof path, "%.29s", sockets);
    answers(&e, "SELECT 1", "1");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    embedded_done(&e);
    stopped(state_dir.p);
    chmod(path, 0755); /* anybody could have made this one */
    assert_false(embedded_start(state_dir.p, &e, why, sizeof why));
    assert_non_null(strstr(why, path));
    rmdir(path);
    scratch_remove(state_dir.p);
    scratch_remove(dir);
}

static void test_sockets_elsewhere(void **state)
{
    (void)state;
    char zeros[101];
    snprintf(zeros, sizeof zeros, "%0100d", 0);
    sockets_elsewhere(zeros);
    sockets_elsewhere("a,b");
}

static void test_closed_directory(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    char dir[128];
    scratch_new_dir(dir);
    chmod(dir, 0700);
    BUF inner = { 0 };
    buf_printf(&inner, "%s/state", dir);
    struct embedded e;
    assert_false(embedded_start(inner.p, &e, why, sizeof why));
    assert_non_null(strstr(why, dir));
    assert_null(strstr(why, inner.p));
    scratch_remove(inner.p);
    scratch_remove(dir);
}

/* One that cannot start says why at once, and not after a minute. */
static void test_broken_settings(void **state)
{
    (void)state;
    BUF conf = { 0 };
    buf_printf(&conf, "%s/postgres/postgresql.conf", scratch.dir);
    stopped(scratch.dir);
    FILE *f = fopen(conf.p, "ae");
    assert_non_null(f);
    fputs("max_connections = many\n", f);
    fclose(f);
    struct embedded e;
    assert_false(embedded_start(scratch.dir, &e, why, sizeof why));
    if (!strstr(why, "configuration file"))
        fail_msg("%s", why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stale_pid_reused),
        cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_interrupted_and_odd_path),
        cmocka_unit_test(test_sockets_elsewhere),
        cmocka_unit_test(test_closed_directory),
        cmocka_unit_test(test_broken_settings),
    };
    return cmocka_run_group_tests(tests, scratch_start, scratch_stop);
}
