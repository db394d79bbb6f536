/* sql: PostgreSQL, and the only caller of libpq.
 *
 * The rest of the program talks to the database in one way: it calls a function of the schema `payonce`
 * by name and reads the rows it returns. A function is one transaction, one round trip, one commit, and each
 * is written so that it may be called again with the same arguments and give the same answer: when a
 * connection is lost, or the database is restarting, the call is repeated until its deadline. So there are
 * only three ends, and none of them is "perhaps":
 *
 *   DB_OK           it ran and is committed (for a read: was read)
 *   DB_UNAVAILABLE  no answer before the deadline; it may have run, and calling it again will tell
 *   DB_REFUSED      the database said no (constraint, missing function, wrong argument): a fault of ours
 *
 * Nothing here knows a chain. Values travel as text in, binary out. */
#ifndef SQL_SQL_H
#define SQL_SQL_H

#include "base/amount.h"
#include "base/bytes.h"
#include "base/loop.h"

struct db;
struct db_rows;                                          /* the rows of one answer */

enum db_rc { DB_OK, DB_UNAVAILABLE, DB_REFUSED };

/* Arguments of one call, in order. Zero-initialise; what is added is copied; db_call empties it. */
enum { DB_ARGS_MAX = 40 };
enum db_arg_kind { DB_ARG_NULL, DB_ARG_TEXT, DB_ARG_BYTES };
struct db_args {
    struct buf text;
    struct { size_t at, n; enum db_arg_kind kind; } arg[DB_ARGS_MAX];
    int count;
    bool bad;                                            /* a text with a NUL was added: the call is refused */
};
void arg_null(struct db_args *a);
void arg_text(struct db_args *a, const char *s);         /* NULL is null */
void arg_slice(struct db_args *a, struct slice s);       /* p NULL is null; a NUL inside, or no UTF-8: DB_REFUSED */
void arg_bytes(struct db_args *a, const void *p, size_t n); /* bytea; p NULL is null */
void arg_int(struct db_args *a, int64_t v);
void arg_bool(struct db_args *a, bool v);
void arg_amount(struct db_args *a, struct amount v);     /* numeric */
void db_args_done(struct db_args *a);
#define DB_ARGS SCOPE(db_args_done) struct db_args

/* Columns by name; asking for one that the function does not return aborts (our bug, found by the first test). */
int db_count(const struct db_rows *r);
bool row_null(const struct db_rows *r, int row, const char *column);
int64_t row_int(const struct db_rows *r, int row, const char *column);       /* int8, int4, int2; null gives 0 */
bool row_bool(const struct db_rows *r, int row, const char *column);         /* null gives false */
struct slice row_text(const struct db_rows *r, int row, const char *column); /* text; NUL-terminated; null: p NULL */
struct slice row_bytes(const struct db_rows *r, int row, const char *column); /* bytea; null: p NULL */
bool row_is(const struct db_rows *r, int row, const char *column, const char *text);
struct amount row_amount(const struct db_rows *r, int row, const char *column); /* a text column of digits */
/* bytea of exactly n bytes (another length aborts); false: null */
bool row_copy(const struct db_rows *r, int row, const char *column, void *ret, size_t n);

/* A pool of connections on the loop: each carries one call at a time, a queue stands in front. Connecting
 * happens in the background with back-off; calls wait for it until their deadline. `conninfo` is libpq's;
 * user names the database role to use instead of the one in it (NULL: as it is). A host *name* in it makes each
 * connection start wait for the resolver, and the loop with it: give hostaddr too. With several hosts, say
 * target_session_attrs=read-write. */
struct db *db_open(struct loop *l, const char *conninfo, const char *user, unsigned connections) MUST_CHECK;
/* Every call that is not finished ends here as DB_UNAVAILABLE, callbacks included. Not from inside a callback of it. */
void db_free(struct db *db);
/* Once a call. rows: DB_OK only; they live during the callback. */
typedef void db_done_fn(void *arg, enum db_rc rc, const struct db_rows *rows);
/* SELECT * FROM payonce.<function>(args), committed. Never calls back from inside. Two calls made one after the other
 * may run in either order, or at once. `function` is a constant of the program: small letters, digits and _. */
void db_call(struct db *db, const char *function, struct db_args *args, int64_t deadline_ms, db_done_fn *fn, void *arg);
/* The same for calls that come many at a time: while a few are under way the others wait, and then travel together, one commit for
 * up to 16. One that fails takes nobody with it: then each is called alone. `rank` is the order in which they run in there: by
 * what they lock, so that two groups never wait for each other. */
void db_call_grouped(struct db *db, const char *function, struct db_args *args, uint64_t rank, int64_t deadline_ms, db_done_fn *fn,
                     void *arg);
/* The same for programs that wait: turns the loop (so not from inside a callback). On DB_OK, and if ret is not NULL,
 * the rows are the caller's. */
enum db_rc db_wait(struct db *db, const char *function, struct db_args *args, int64_t deadline_ms,
                   struct db_rows **ret) MUST_CHECK;
void db_rows_free(struct db_rows *r);
static inline void db_rows_done(struct db_rows **r)
{
    db_rows_free(*r);
    *r = NULL;
}
#define DB_ROWS SCOPE(db_rows_done) struct db_rows

/* LISTEN on a connection of its own, until db_free. channel and payload NULL: the connection was (re)made, and anything
 * may have been missed; this comes once when it is first made, too. */
typedef void db_heard_fn(void *arg, const char *channel, const char *payload);
void db_listen(struct db *db, const char *const *channels, size_t n, db_heard_fn *fn, void *arg);

struct db_stats {
    uint64_t calls, repeats, unavailable, refused;
    unsigned connected, busy, queued;                    /* connections; connections in use; calls waiting for one */
};
struct db_stats db_stats(const struct db *db);

/* Migrations: NNNN-*.sql once each in order under an advisory lock, each in one transaction with its row in
 * payonce.migrations; then, in one transaction, functions, views and grants whenever their text differs from what was
 * run last. They are compiled into the program. Runs as the schema's owner with search_path payonce; makes the schema,
 * and the roles payonce_gateway, payonce_settler, payonce_auditor, payonce_operator if they are missing and it may.
 * It waits (programs only, never on the loop). A released file is never edited: a changed one is refused by name. */
enum migrate_rc { MIGRATE_OK, MIGRATE_NEWER /* the database was made by a newer Payonce */, MIGRATE_FAILED };
enum migrate_rc db_migrate(const char *conninfo, int *ret_version, char *why, size_t why_size) MUST_CHECK;
int db_schema_version(void);                             /* what this build carries */

/* The embedded cluster: PostgreSQL made and run by us in <state_dir>/postgres, unix socket only, fsync on. As root it
 * runs as the user `postgres`, who must be able to pass through state_dir (0711). start makes it if needed, starts it
 * if needed and waits until it answers; it outlives the caller. Everyone who reaches the socket is trusted: the
 * directory's mode decides, so root or the user that made it. These wait, and may fork: not from inside the loop. */
struct embedded { char *conninfo; int pid; };            /* conninfo: the owner's */
bool embedded_start(const char *state_dir, struct embedded *ret, char *why, size_t why_size) MUST_CHECK;
bool embedded_stop(const char *state_dir, char *why, size_t why_size) MUST_CHECK;
bool embedded_status(const char *state_dir, struct embedded *ret);       /* false: not running */
void embedded_done(struct embedded *e);

#endif
