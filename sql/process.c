#include "sql/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { KEPT_FD = 3, POLL_MS = 20 };

bool fail_why(const struct why *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(w->text, w->size, fmt, args);
    va_end(args);
    return false;
}

/* ---- whose ---- */

bool account_find(const char *path, struct account *ret, const struct why *w)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        if (geteuid() != 0 && st.st_uid != geteuid())
            return fail_why(w, "%s belongs to another user", path);
        *ret = (struct account){ st.st_uid, st.st_gid };
        return true;
    }
    if (geteuid() != 0) {
        *ret = (struct account){ geteuid(), getegid() };
        return true;
    }
    const struct passwd *p = getpwnam("postgres");
    if (!p)
        return fail_why(w, "as root the embedded database runs as the user postgres, and there is none");
    *ret = (struct account){ p->pw_uid, p->pw_gid };
    return true;
}

static bool become(const struct account *a)
{
    if (geteuid() != 0)
        return true;
    return setgroups(0, NULL) == 0 && setgid(a->gid) == 0 && setuid(a->uid) == 0;
}

static pid_t fork_or_die(void)
{
    const pid_t pid = fork();
    if (pid < 0)
        abort();
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The prefix of dir with `depth` names: "/", "/a", "/a/b"; false: there are fewer. */
static bool prefix_of(const char *dir, int depth, char *ret, size_t size)
{
    const char *end = dir;
    for (int i = 0; i < depth; i++) {
        if (end[0] == '\0' || end[1] == '\0')
            return false;
        end = strchrnul(end + 1, '/');
    }
    snprintf(ret, size, "%.*s", depth ? (int)(end - dir) : 1, dir);
    return true;
}

static int first_closed(const char *dir)
{
    char prefix[4096];
    for (int depth = 0; prefix_of(dir, depth, prefix, sizeof prefix); depth++)
        if (access(prefix, X_OK) != 0)
            return depth + 1;
    return 0;
}

bool account_reaches(const struct account *a, const char *dir, const struct why *w)
{
    const pid_t pid = fork_or_die();
    if (pid == 0)
        _exit(become(a) ? first_closed(dir) : 0);
    const int closed = wait_for(pid);
    char prefix[4096];
    if (closed <= 0 || !prefix_of(dir, closed - 1, prefix, sizeof prefix))
        return true;
    return fail_why(w,
                    "the user that runs the database (uid %u) cannot pass through %s: chmod o+x it, or choose another"
                    " state directory",
                    (unsigned)a->uid, prefix);
}

/* ---- processes ---- */

/* Between fork and exec. The signals that our loop blocks must not stay blocked in it. */
static bool prepare(const struct account *a)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    umask(077);
    return become(a) && chdir("/") == 0;
}

static _Noreturn void execute(char *const argv[], int out, int keep_fd)
{
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    if (keep_fd == KEPT_FD)
        fcntl(KEPT_FD, F_SETFD, 0);
    else if (keep_fd >= 0 && dup2(keep_fd, KEPT_FD) < 0)
        _exit(126);
    close_range(keep_fd >= 0 ? KEPT_FD + 1 : KEPT_FD, ~0u, 0);
    execv(argv[0], argv);
    _exit(127);
}

static char *complaint_in(int fd)
{
    char end[4001] = "";
    const off_t size = lseek(fd, 0, SEEK_END), most = sizeof end - 1;
    ssize_t n = pread(fd, end, sizeof end - 1, size > most ? size - most : 0);
    while (n > 0 && end[n - 1] == '\n')
        end[--n] = '\0';
    const char *last = end, *complaint = NULL;
    for (char *rest = end, *line; (line = strsep(&rest, "\n")) != NULL; last = line)
        if (strstr(line, "FATAL:") || strstr(line, "error:"))
            complaint = line;
    return str_copy(complaint ? complaint : last);
}

char *last_complaint(const char *log)
{
    const int fd = open(log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return str_copy(strerror(errno));
    char *line = complaint_in(fd);
    close(fd);
    return line;
}

bool process_run(const struct account *a, char *const argv[], const struct why *w)
{
    const int out = memfd_create("output", MFD_CLOEXEC);
    const pid_t pid = fork_or_die();
    if (pid == 0) {
        if (prepare(a))
            execute(argv, out, -1);
        _exit(126);
    }
    const int status = wait_for(pid);
    OWNED char *line = complaint_in(out);
    close(out);
    return status == 0 || fail_why(w, "%s failed (%d): %s", argv[0], status, line);
}

/* By way of a child that ends at once, so that it is nobody's child and no zombie of ours. */
void process_start(const struct account *a, char *const argv[], const char *log, int keep_fd)
{
    const pid_t pid = fork_or_die();
    if (pid > 0) {
        wait_for(pid);
        return;
    }
    setsid();
    if (fork() == 0 && prepare(a))
        execute(argv, open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600), keep_fd);
    _exit(0);
}

/* ---- locks ---- */

int lock_try(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
        lock_done(&fd);
    return fd;
}

int lock_wait(const char *path, int64_t deadline_ms)
{
    for (;;) {
        const int fd = lock_try(path);
        if (fd >= 0 || clock_mono_ms() >= deadline_ms)
            return fd;
        clock_sleep_ms(POLL_MS);
    }
}

void lock_done(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
