/* What the files of sql/ share. */
#ifndef SQL_INTERNAL_H
#define SQL_INTERNAL_H

#include <libpq-fe.h>

#include "sql/sql.h"

static inline void result_done(PGresult **r)
{
    PQclear(*r);
    *r = NULL;
}
#define RESULT SCOPE(result_done) PGresult

struct db_rows {
    PGresult *result;
};

/* What an answer means for the call that asked. */
enum verdict {
    VERDICT_OK,
    VERDICT_REPEAT,    /* rolled back by circumstance: the same call may succeed */
    VERDICT_RECONNECT, /* the same, but not on this connection */
    VERDICT_STALE,     /* refused, unless its statement was prepared before something changed under it */
    VERDICT_REFUSED,
};
enum verdict judge(const PGresult *r);

/* Where to connect to, and as whom. */
struct server {
    struct loop *loop;
    char *conninfo, *user, *application;
    int64_t quiet_until_ms;
};
void server_open(struct server *s, struct loop *l, const char *conninfo, const char *user);
void server_done(struct server *s);
PGconn *server_start_connect(const struct server *s) MUST_CHECK;

/* One connection's life: connect, greet, answer one question at a time, and connect again when it is lost.
 * Callbacks may ask the next question or drop the link, but not close it. */
struct link_uses {
    void (*up)(void *owner);                  /* greeted: ready for questions */
    void (*answer)(void *owner, PGresult *r); /* whole, and its transaction ended: ready for the next */
    /* Of a group, the same: one result each, committed together. n is 0: none of it was done, because one of them failed. */
    void (*answers)(void *owner, PGresult *const *r, size_t n);
    void (*heard)(void *owner, const char *channel, const char *payload);
    void (*lost)(void *owner); /* was up; what was asked may or may not have run */
};
enum { LINK_GROUP_MAX = 16 };
enum link_state { LINK_DOWN, LINK_CONNECTING, LINK_GREETING, LINK_UP };
struct link {
    struct server *server;
    const struct link_uses *uses;
    void *owner;
    const char *greeting; /* sent first on each connection */
    enum link_state state;
    PGconn *pg;
    int fd; /* our own name for libpq's socket, which it closes when it likes */
    struct watch *watch;
    struct timer timer; /* LINK_DOWN: when to connect; until LINK_UP: when to give up */
    unsigned failures;
    PGresult *answer; /* of the question under way: its first error, else its last result */
    size_t group, got; /* questions that were asked together; how many of them were answered */
    bool failed;       /* one of them */
    PGresult *answers[LINK_GROUP_MAX];
};
/* Every statement has its index: a plan that was made while a table was empty must not go on reading all of it, or all of an
 * index to merge or hash it. */
#define LINK_SETTINGS                                                                                                  \
    "SET search_path = payonce, pg_temp; SET statement_timeout = '20s'; SET lock_timeout = '10s';"                     \
    "SET jit = off; SET enable_seqscan = off; SET enable_mergejoin = off; SET enable_hashjoin = off;"                  \
    "SET plan_cache_mode = force_generic_plan;"                                                                        \
    "SET idle_in_transaction_session_timeout = '10s'; SET client_connection_check_interval = '2s';"                    \
    "SET default_transaction_isolation = 'read committed';"
void link_open(struct link *k, struct server *s, const struct link_uses *uses, void *owner, const char *greeting);
void link_asked(struct link *k, bool sent); /* after PQsend...: it says whether libpq took it; may call lost */
/* Several questions, asked as one transaction: begin, PQsend... each, asked. */
bool link_group_begin(struct link *k) MUST_CHECK;
void link_group_asked(struct link *k, size_t n, bool sent);
void link_drop(struct link *k);             /* forget what was asked, connect anew; calls nobody */
void link_close(struct link *k);

struct loop *db_loop(const struct db *db);

/* LISTEN connections of a db. */
struct listener;
struct listener *listener_open(struct server *s, const char *const *channels, size_t n, db_heard_fn *fn,
                               void *arg) MUST_CHECK;
void listener_close(struct listener *l);

/* The SQL text that this build carries, in the order in which it runs: NNNN-*.sql once, what has no number always. */
struct sql_file {
    const char *name, *text;
};
extern const struct sql_file sql_files[];
extern const size_t sql_file_count;
enum migrate_rc migrate_with(const char *conninfo, const struct sql_file *files, size_t n, int *ret_version, char *why,
                             size_t why_size) MUST_CHECK;

/* Makes the roles that are missing; ret_made says whether there were any. */
bool roles_make(PGconn *pg, bool *ret_made, char *why, size_t why_size) MUST_CHECK;

#endif
