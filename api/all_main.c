#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/commands.h"
#include "api/roles.h"
#include "base/clock.h"
#include "base/log.h"
#include "sql/sql.h"

enum { FIRST_PAUSE_MS = 500, LONGEST_PAUSE_MS = 30000, LIVED_WELL_MS = 60000 };

struct child {
    const char *role;
    pid_t pid; /* 0: not running */
    int64_t started_ms, start_at_ms, pause_ms;
};

/* ---- one child ---- */

/* The child goes when we are killed. There is one thread, so memory may be taken between fork and exec. */
static void become(const char *role, const char *path, const sigset_t *mask)
{
    char program[] = "payonce", config[] = "--config";
    OWNED char *file = str_copy(path), *name = str_copy(role);
    char *argv[] = { program, config, file, name, NULL };
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv("/proc/self/exe", argv);
    _exit(EXIT_FAILED);
}

static void start_child(struct child *k, const char *path, const sigset_t *mask)
{
    k->started_ms = clock_mono_ms();
    const pid_t pid = fork();
    if (pid == 0)
        become(k->role, path, mask);
    if (pid < 0) {
        log_error("fork", "role=%s why=%s", k->role, strerror(errno));
        k->start_at_ms = k->started_ms + LONGEST_PAUSE_MS;
        return;
    }
    k->pid = pid;
    log_info("started", "role=%s pid=%d", k->role, (int)pid);
}

static void child_ended(struct child *k, int status)
{
    const int64_t now = clock_mono_ms();
    if (now - k->started_ms > LIVED_WELL_MS)
        k->pause_ms = FIRST_PAUSE_MS;
    log_warn("ended", "role=%s pid=%d %s=%d again_in_ms=%lld", k->role, (int)k->pid,
             WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
             (long long)k->pause_ms);
    k->pid = 0;
    k->start_at_ms = now + k->pause_ms;
    k->pause_ms = k->pause_ms * 2 < LONGEST_PAUSE_MS ? k->pause_ms * 2 : LONGEST_PAUSE_MS;
}

/* ---- the family ---- */

struct family {
    struct child child[3];
    size_t n;
    const char *path;
    sigset_t before, ours;
};

/* True: a child says that the configuration is wrong; starting it again would not help. */
static bool reap(struct family *f)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (size_t i = 0; i < f->n; i++) {
            if (f->child[i].pid != pid)
                continue;
            child_ended(&f->child[i], status);
            if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE)
                return true;
        }
    }
    return false;
}

static int64_t start_due(struct family *f)
{
    int64_t wait_ms = LONGEST_PAUSE_MS;
    for (size_t i = 0; i < f->n; i++) {
        struct child *k = &f->child[i];
        const int64_t left = k->start_at_ms - clock_mono_ms();
        if (k->pid == 0 && left <= 0)
            start_child(k, f->path, &f->before);
        else if (k->pid == 0 && left < wait_ms)
            wait_ms = left;
    }
    return wait_ms;
}

static int wait_signal(const struct family *f, int64_t wait_ms)
{
    const struct timespec t = { wait_ms / 1000, (wait_ms % 1000) * 1000000 };
    return sigtimedwait(&f->ours, NULL, &t);
}

static void stop_children(struct family *f)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->child[i].pid > 0)
            kill(f->child[i].pid, SIGTERM);
    }
    for (size_t i = 0; i < f->n; i++) {
        if (f->child[i].pid > 0)
            waitpid(f->child[i].pid, NULL, 0); /* each drains within a time of its own */
    }
}

static int watch_over(struct family *f)
{
    for (;;) {
        const int signal = wait_signal(f, start_due(f));
        if (signal == SIGTERM || signal == SIGINT)
            return EXIT_OK;
        if (signal == SIGCHLD && reap(f))
            return EXIT_USAGE;
    }
}

/* ---- the database ---- */

static bool migrate(const char *conninfo)
{
    int version;
    char why[400];
    if (db_migrate(conninfo, &version, why, sizeof why) == MIGRATE_OK)
        return true;
    log_error("migrate", "why=%s", why);
    return false;
}

static bool embedded_ready(const struct config *c, bool *ret_ours)
{
    char why[400];
    SCOPE(embedded_done) struct embedded e = { 0 };
    *ret_ours = !embedded_status(c->state_dir, &e);
    embedded_done(&e);
    if (embedded_start(c->state_dir, &e, why, sizeof why))
        return migrate(e.conninfo);
    log_error("database", "why=%s", why);
    return false;
}

static void embedded_end(const struct config *c)
{
    char why[400];
    if (!embedded_stop(c->state_dir, why, sizeof why))
        log_error("database", "why=%s", why);
}

int all_main(const struct config *c)
{
    log_open("all", LOG_INFO);
    struct family f = {
        .child = { { .role = "settler", .pause_ms = FIRST_PAUSE_MS },
                   { .role = "gateway", .pause_ms = FIRST_PAUSE_MS },
                   { .role = "auditor", .pause_ms = FIRST_PAUSE_MS } },
        .n = 3,
        .path = c->path,
    };
    sigemptyset(&f.ours);
    sigaddset(&f.ours, SIGCHLD);
    sigaddset(&f.ours, SIGTERM);
    sigaddset(&f.ours, SIGINT);
    sigprocmask(SIG_BLOCK, &f.ours, &f.before);
    bool ours = false;
    if (!c->database && !embedded_ready(c, &ours))
        return EXIT_FAILED;
    const int status = watch_over(&f);
    stop_children(&f);
    if (ours)
        embedded_end(c);
    return status;
}
