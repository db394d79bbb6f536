#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/pay.h"

enum { LARGEST_INTENT = 1024 * 1024 };

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static char *failed(const char *path, const char *what)
{
    return str_format("%s: cannot %s: %s", path, what, strerror(errno));
}

/* ---- the directory ---- */

static bool make_dirs(const char *dir)
{
    OWNED char *path = str_copy(dir);
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return false;
        *p = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

char *store_open(const char *dir, struct store *ret)
{
    if (!make_dirs(dir))
        return failed(dir, "be made");
    if (access(dir, W_OK | X_OK) != 0)
        return failed(dir, "be written to");
    ret->dir = str_copy(dir);
    return NULL;
}

void store_done(struct store *s)
{
    free(s->dir);
    s->dir = NULL;
}

char *store_path(const struct store *s, const struct address *payer, const char *payment_id)
{
    BUF name = { 0 };
    buf_printf(&name, "%s\n%s", address_lower(payer).s, payment_id);
    const struct hash32 h = sha256(name.p, name.n);
    return str_format("%s/%s.json", s->dir, hash_text(&h).s + 2);
}

int store_lock(const struct store *s, const char *name, bool wait, char **ret_why)
{
    const char *slash = strrchr(name, '/');
    OWNED char *path = str_format("%s/%s.lock", s->dir, slash ? slash + 1 : name);
    *ret_why = NULL;
    SCOPE(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        *ret_why = failed(path, "be opened");
        return -1;
    }
    if (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
        if (errno != EWOULDBLOCK)
            *ret_why = failed(path, "be locked");
        return -1;
    }
    const int locked = fd;
    fd = -1;
    return locked;
}

/* ---- writing ---- */

static bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

static bool write_durably(const char *path, const char *text, size_t n)
{
    SCOPE(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 && write_all(fd, text, n) && fsync(fd) == 0;
}

static bool sync_dir_of(const char *path)
{
    OWNED char *dir = str_copy(path);
    *strrchr(dir, '/') = '\0';
    SCOPE(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0;
}

char *store_write(const char *path, const struct intent *i)
{
    JSON *j = intent_json(i);
    OWNED char *text = json_dumps(j, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    if (!text)
        abort();
    OWNED char *temporary = str_format("%s.tmp", path);
    if (!write_durably(temporary, text, strlen(text)))
        return failed(temporary, "be written");
    if (rename(temporary, path) != 0)
        return failed(path, "be renamed into place");
    return sync_dir_of(path) ? NULL : failed(path, "be made durable");
}

/* ---- reading ---- */

static bool read_all(int fd, struct buf *ret)
{
    char part[16384];
    for (;;) {
        const ssize_t n = read(fd, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        buf_add(ret, part, (size_t)n);
        if (ret->n > LARGEST_INTENT)
            return false;
    }
}

enum store_rc store_read(const char *path, struct intent *ret)
{
    SCOPE(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? STORE_NONE : STORE_BAD;
    BUF text = { 0 };
    struct json_why why;
    if (!read_all(fd, &text))
        return STORE_BAD;
    JSON *j = json_read(text.p, text.n, &why);
    return j && intent_read(j, ret) ? STORE_FOUND : STORE_BAD;
}

/* Calls fn with each intent of the wallet; false from it, or a file that cannot be read, ends the walk. */
typedef void intent_fn(void *arg, const char *path, const struct intent *i);

static void dir_close(DIR **d)
{
    if (*d)
        closedir(*d);
}

static bool is_intent_name(const char *name)
{
    const size_t n = strlen(name);
    return n == 64 + 5 && strcmp(name + 64, ".json") == 0;
}

static bool each_intent(const struct store *s, const struct address *payer, intent_fn *fn, void *arg, char **ret_bad)
{
    SCOPE(dir_close) DIR *d = opendir(s->dir);
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));) {
        if (!is_intent_name(e->d_name))
            continue;
        OWNED char *path = str_format("%s/%s", s->dir, e->d_name);
        INTENT i = { 0 };
        if (store_read(path, &i) != STORE_FOUND) {
            *ret_bad = MOVE(path);
            return false;
        }
        if (address_eq(&i.auth.from, payer))
            fn(arg, path, &i);
    }
    return true;
}

/* ---- questions ---- */

struct finding {
    const struct hash32 *request;
    char *path;
    int64_t signed_at;
};

static void find_unfinished(void *arg, const char *path, const struct intent *i)
{
    struct finding *f = arg;
    const bool finished = i->state == INTENT_DONE || i->state == INTENT_GONE;
    if (finished || !hash_eq(&i->request, f->request) || i->signed_at < f->signed_at)
        return;
    free(f->path);
    f->path = str_copy(path);
    f->signed_at = i->signed_at;
}

enum store_rc store_find(const struct store *s, const struct address *payer, const struct hash32 *request,
                         char **ret_path)
{
    struct finding f = { request, NULL, 0 };
    OWNED char *bad = NULL;
    if (!each_intent(s, payer, find_unfinished, &f, &bad)) {
        free(f.path);
        *ret_path = bad ? MOVE(bad) : str_copy(s->dir);
        return STORE_BAD;
    }
    if (!f.path)
        return STORE_NONE;
    *ret_path = f.path;
    return STORE_FOUND;
}

struct spending {
    int64_t since_s;
    const char *but;
    struct amount sum;
    bool overflow;
};

static void add_spending(void *arg, const char *path, const struct intent *i)
{
    struct spending *s = arg;
    if (i->signed_at < s->since_s || (s->but && strcmp(path, s->but) == 0))
        return;
    if (!amount_add(s->sum, i->auth.value, &s->sum))
        s->overflow = true;
}

bool store_spent(const struct store *s, const struct address *payer, int64_t since_s, const char *but,
                 struct amount *ret)
{
    struct spending sum = { since_s, but, AMOUNT_ZERO, false };
    OWNED char *bad = NULL;
    if (!each_intent(s, payer, add_spending, &sum, &bad) || sum.overflow)
        return false;
    *ret = sum.sum;
    return true;
}
