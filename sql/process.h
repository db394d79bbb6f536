/* Child processes and file locks for the embedded cluster. PostgreSQL refuses to run as root, so as root its programs
 * run as another user. */
#ifndef SQL_PROCESS_H
#define SQL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/scope.h"

struct why {
    char *text;
    size_t size;
};                                                                     /* where a failure is explained */
bool fail_why(const struct why *w, const char *fmt, ...) PRINTF(2, 3); /* always false */

struct account {
    uid_t uid;
    gid_t gid;
};
/* Who owns `path` if it is there, else who is to: ourselves, or `postgres` if we are root. */
bool account_find(const char *path, struct account *ret, const struct why *w) MUST_CHECK;
/* Whether that user gets to the directory; names the first one in the way that is closed. */
bool account_reaches(const struct account *a, const char *dir, const struct why *w) MUST_CHECK;

/* Runs a program as `a`, with no descriptor of ours but its output, and waits; what it complained of is the why. */
bool process_run(const struct account *a, char *const argv[], const struct why *w) MUST_CHECK;
/* The same in a session of its own, its output added to the file `log`, not waited for. It keeps keep_fd open. */
void process_start(const struct account *a, char *const argv[], const char *log, int keep_fd);
/* The last complaint in what a program of PostgreSQL's wrote, else its last line; for people. */
char *last_complaint(const char *log) MUST_CHECK;

/* flock: -1 if somebody has it. It is let go when the last copy of the descriptor is closed, by kill -9 too. */
int lock_try(const char *path);
int lock_wait(const char *path, int64_t deadline_ms);
void lock_done(int *fd);

#endif
