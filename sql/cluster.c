#include "sql/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"

/* The whole of postgresql.conf; an operator may add to it. What our promises hang on is given on the command line. */
static const char settings[] = "max_connections = 100\n"
                               "shared_buffers = 64MB\n"
                               "wal_level = replica\n"
                               "jit = off\n"
                               "max_parallel_workers_per_gather = 0\n"
                               "log_timezone = UTC\n"
                               "timezone = UTC\n"
                               "log_line_prefix = '%m [%p] %u '\n"
                               "log_min_messages = warning\n"
                               "# Neither statements nor values reach the log.\n"
                               "log_min_error_statement = panic\n"
                               "log_error_verbosity = terse\n"
                               "log_statement = none\n"
                               "log_min_duration_statement = -1\n";

/* ---- where ---- */

static char *short_directory(const char *data)
{
    const struct hash32 h = sha256(data, strlen(data));
    char digits[17];
    hex_write_bare(digits, h.b, 8);
    return str_format("/tmp/payonce-%s", digits);
}

/* Short enough for a socket's address, and one host to libpq. */
static bool socket_fits(const char *dir)
{
    const struct sockaddr_un a;
    return strlen(dir) + sizeof "/.s.PGSQL.65535" <= sizeof a.sun_path && !strchr(dir, ',');
}

bool cluster_find(const char *state_dir, struct cluster *ret, const struct why *w)
{
    const mode_t mode = geteuid() == 0 ? 0711 : 0700;
    if (mkdir(state_dir, mode) == 0)
        chmod(state_dir, mode); /* whatever the umask */
    OWNED char *dir = realpath(state_dir, NULL);
    if (!dir)
        return fail_why(w, "%s: %s", state_dir, strerror(errno));
    struct cluster c = { .data = str_format("%s/postgres", dir) };
    if (!account_find(c.data, &c.account, w)) {
        free(c.data);
        return false;
    }
    c.being_made = str_format("%s/postgres.new", dir);
    c.sockets = socket_fits(c.data) ? str_copy(c.data) : short_directory(c.data);
    c.log = str_format("%s/postgres.log", c.data);
    c.turn = str_format("%s/postgres.lock", dir);
    c.alive = str_format("%s/postgres.alive", dir);
    *ret = c;
    return true;
}

void cluster_done(struct cluster *c)
{
    free(c->data);
    free(c->being_made);
    free(c->sockets);
    free(c->log);
    free(c->turn);
    free(c->alive);
    *c = (struct cluster){ 0 };
}

bool cluster_exists(const struct cluster *c)
{
    return access(c->data, F_OK) == 0;
}

/* ---- PostgreSQL's programs ---- */

static const char *const majors[] = { "15", "16", "17", "18" };

static char *in_major(const char *major, const char *name)
{
    OWNED char *debian = str_format("/usr/lib/postgresql/%s/bin/%s", major, name);
    OWNED char *red_hat = str_format("/usr/pgsql-%s/bin/%s", major, name);
    if (access(debian, X_OK) == 0)
        return MOVE(debian);
    return access(red_hat, X_OK) == 0 ? MOVE(red_hat) : NULL;
}

static bool read_first_line(FILE *f, char *ret, int size)
{
    if (!f || !fgets(ret, size, f))
        return false;
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

static char *in_pg_config(const char *name)
{
    char dir[3000];
    FILE *f = popen("pg_config --bindir 2>/dev/null", "re");
    const bool told = read_first_line(f, dir, sizeof dir);
    if (f)
        pclose(f);
    OWNED char *path = told ? str_format("%s/%s", dir, name) : NULL;
    return path && access(path, X_OK) == 0 ? MOVE(path) : NULL;
}

/* A cluster runs only under the major version that made it. */
char *cluster_program(const struct cluster *c, const char *name)
{
    OWNED char *version_file = str_format("%s/PG_VERSION", c->data);
    char major[16];
    FILE *f = fopen(version_file, "re");
    const bool made = read_first_line(f, major, sizeof major);
    if (f)
        fclose(f);
    char *path = made ? in_major(major, name) : NULL;
    for (size_t i = 0; !made && !path && i < COUNT(majors); i++)
        path = in_major(majors[i], name);
    return path ? path : in_pg_config(name);
}

/* ---- making it ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static bool make_empty(const struct cluster *c, const struct why *w)
{
    if (nftw(c->being_made, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        return fail_why(w, "%s: %s", c->being_made, strerror(errno));
    if (mkdir(c->being_made, 0700) != 0 || chown(c->being_made, c->account.uid, c->account.gid) != 0)
        return fail_why(w, "%s: %s", c->being_made, strerror(errno));
    return true;
}

static bool run_initdb(const struct cluster *c, const struct why *w)
{
    OWNED char *program = cluster_program(c, "initdb");
    if (!program)
        return fail_why(w, "PostgreSQL's initdb is not installed (Debian: apt install postgresql)");
    OWNED char *data = str_format("--pgdata=%s", c->being_made);
    char user[] = "--username=" CLUSTER_OWNER, local[] = "--auth-local=trust", host[] = "--auth-host=reject",
         encoding[] = "--encoding=UTF8", locale[] = "--locale=C", sums[] = "--data-checksums",
         quiet[] = "--no-instructions";
    char *argv[] = { program, data, user, local, host, encoding, locale, sums, quiet, NULL };
    return process_run(&c->account, argv, w);
}

/* By a child of the right user: the directory is that user's, and root follows no path in it. */
static bool write_settings(const struct cluster *c, const struct why *w)
{
    OWNED char *path = str_format("%s/postgresql.conf", c->being_made);
    char sh[] = "/bin/sh", flag[] = "-c", script[] = "printf %s \"$1\" >\"$2\" && sync \"$2\"";
    OWNED char *text = str_copy(settings);
    char *argv[] = { sh, flag, script, sh, text, path, NULL };
    return process_run(&c->account, argv, w);
}

static bool sync_directory_of(const char *path)
{
    OWNED char *dir = str_copy(path);
    *strrchr(dir, '/') = '\0';
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

bool cluster_make(const struct cluster *c, const struct why *w)
{
    if (!make_empty(c, w) || !run_initdb(c, w) || !write_settings(c, w))
        return false;
    if (rename(c->being_made, c->data) != 0 || !sync_directory_of(c->data))
        return fail_why(w, "%s: %s", c->data, strerror(errno));
    return true;
}

/* /tmp is everybody's: only a directory that is ours alone will do. */
bool cluster_make_sockets(const struct cluster *c, const struct why *w)
{
    struct stat st;
    if (strcmp(c->sockets, c->data) == 0)
        return true;
    if (mkdir(c->sockets, 0700) == 0 && chown(c->sockets, c->account.uid, c->account.gid) != 0)
        return fail_why(w, "%s: %s", c->sockets, strerror(errno));
    if (lstat(c->sockets, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != c->account.uid || (st.st_mode & 077) != 0)
        return fail_why(w, "%s is not a directory of ours alone", c->sockets);
    return true;
}
