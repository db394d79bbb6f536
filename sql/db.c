#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "sql/internal.h"

enum {
    STATEMENTS_MAX = 256,
    REST_MS = 5,
    REST_MAX_MS = 500,
    GROUPS_MAX = 2, /* of one statement under way at once */
};

enum call_state { CALL_QUEUED, CALL_RESTING, CALL_RUNNING };

struct call {
    TAILQ_ENTRY(call) entry; /* in queue, resting, or running */
    struct db *db;
    enum call_state state;
    struct connection *on; /* CALL_RUNNING */
    size_t statement;
    struct db_args args;
    int64_t deadline_ms;
    struct timer timer; /* its deadline, or the end of its rest */
    unsigned repeats;
    bool grouped;
    uint64_t rank;
    db_done_fn *fn;
    void *arg;
};
TAILQ_HEAD(calls, call);

struct connection {
    struct link link;
    struct db *db;
    struct calls running; /* one, or a group of one statement */
    size_t n;
    bool preparing, fresh; /* fresh: the statement under way was prepared for this very call */
    bool prepared[STATEMENTS_MAX];
};

struct statement {
    char *name, *sql;
    unsigned groups; /* under way */
};

struct db {
    struct server server;
    struct connection *connections;
    unsigned connection_count;
    struct statement statements[STATEMENTS_MAX];
    size_t statement_count;
    struct calls queue, resting;
    struct listener **listeners;
    size_t listener_count;
    struct db_stats stats; /* its counters; the rest is counted when asked for */
};

/* ---- statements: one a function and number of arguments; a connection prepares it at its first use ---- */

static const char identifier[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

static char *select_text(const char *function, int args)
{
    BUF sql = { 0 };
    buf_printf(&sql, "SELECT * FROM payonce.%s(", function);
    for (int i = 1; i <= args; i++)
        buf_printf(&sql, i == 1 ? "$%d" : ",$%d", i);
    buf_puts(&sql, ")");
    return MOVE(sql.p);
}

static size_t find_statement(struct db *db, const char *function, int args)
{
    char name[80];
    const int n = snprintf(name, sizeof name, "%s/%d", function, args);
    if (n >= (int)sizeof name || function[strspn(function, identifier)] != '\0')
        abort();
    for (size_t i = 0; i < db->statement_count; i++)
        if (strcmp(db->statements[i].name, name) == 0)
            return i;
    if (db->statement_count == STATEMENTS_MAX)
        abort();
    db->statements[db->statement_count] = (struct statement){ .name = str_copy(name), .sql = select_text(function, args) };
    return db->statement_count++;
}

/* ---- calls ---- */

static void on_call_timer(void *arg);

static struct calls *list_of(struct call *c)
{
    return c->state == CALL_QUEUED ? &c->db->queue : c->state == CALL_RESTING ? &c->db->resting : &c->on->running;
}

static void leave(struct call *c)
{
    timer_clear(c->db->server.loop, &c->timer);
    TAILQ_REMOVE(list_of(c), c, entry);
    if (c->state == CALL_RUNNING && --c->on->n == 0 && c->grouped)
        c->db->statements[c->statement].groups--;
}

static void end(struct call *c, enum db_rc rc, PGresult *r)
{
    db_done_fn *fn = c->fn;
    void *arg = c->arg;
    const struct db_rows rows = { r };
    switch (rc) {
    case DB_OK:
        break;
    case DB_UNAVAILABLE:
        c->db->stats.unavailable++;
        break;
    case DB_REFUSED:
        c->db->stats.refused++;
        break;
    }
    db_args_done(&c->args);
    free(c);
    fn(arg, rc, rc == DB_OK ? &rows : NULL);
}

static void set_deadline(struct call *c)
{
    timer_set(c->db->server.loop, &c->timer, c->deadline_ms, on_call_timer, c);
}

/* To the front, after a short rest: whatever made it fail may need a moment, and others may go first. */
static void repeat(struct call *c)
{
    const int64_t rest_ms = c->repeats > 6 ? REST_MAX_MS : (int64_t)REST_MS << c->repeats;
    const int64_t at_ms = clock_mono_ms() + rest_ms;
    leave(c);
    c->repeats++;
    c->db->stats.repeats++;
    c->state = CALL_RESTING;
    TAILQ_INSERT_TAIL(&c->db->resting, c, entry);
    timer_set(c->db->server.loop, &c->timer, at_ms < c->deadline_ms ? at_ms : c->deadline_ms, on_call_timer, c);
}

static bool execute(PGconn *pg, const char *name, const struct db_args *a)
{
    const char *values[DB_ARGS_MAX];
    int lengths[DB_ARGS_MAX], formats[DB_ARGS_MAX];
    for (int i = 0; i < a->count; i++) {
        values[i] = a->arg[i].kind == DB_ARG_NULL ? NULL : a->text.p + a->arg[i].at;
        lengths[i] = (int)a->arg[i].n;
        formats[i] = a->arg[i].kind == DB_ARG_BYTES;
    }
    return PQsendQueryPrepared(pg, name, a->count, values, lengths, formats, 1);
}

static void send_call(struct connection *k)
{
    const struct call *c = TAILQ_FIRST(&k->running);
    const struct statement *s = &k->db->statements[c->statement];
    const bool known = k->prepared[c->statement];
    k->preparing = !known;
    k->fresh = k->fresh || !known;
    link_asked(&k->link, known ? execute(k->link.pg, s->name, &c->args) : PQsendPrepare(k->link.pg, s->name, s->sql, 0, NULL));
}

static void send_group(struct connection *k)
{
    const struct call *c;
    bool sent = link_group_begin(&k->link);
    k->preparing = false;
    TAILQ_FOREACH(c, &k->running, entry)
    sent = sent && execute(k->link.pg, k->db->statements[c->statement].name, &c->args);
    link_group_asked(&k->link, k->n, sent);
}

static void run_on(struct connection *k, struct call *c)
{
    struct call *after = TAILQ_FIRST(&k->running);
    TAILQ_REMOVE(&k->db->queue, c, entry);
    c->state = CALL_RUNNING;
    c->on = k;
    k->n++;
    while (after && after->rank <= c->rank)
        after = TAILQ_NEXT(after, entry);
    if (after)
        TAILQ_INSERT_BEFORE(after, c, entry);
    else
        TAILQ_INSERT_TAIL(&k->running, c, entry);
}

/* Those that wait for the same, with it. */
static void gather(struct connection *k, const struct call *first)
{
    struct call *c, *next;
    k->db->statements[first->statement].groups++;
    if (!k->prepared[first->statement])
        return;
    for (c = TAILQ_FIRST(&k->db->queue); c && k->n < LINK_GROUP_MAX; c = next) {
        next = TAILQ_NEXT(c, entry);
        if (c->grouped && c->statement == first->statement)
            run_on(k, c);
    }
}

static struct connection *idle_connection(struct db *db)
{
    for (unsigned i = 0; i < db->connection_count; i++)
        if (db->connections[i].link.state == LINK_UP && db->connections[i].n == 0)
            return &db->connections[i];
    return NULL;
}

static struct call *next_call(struct db *db)
{
    struct call *c;
    TAILQ_FOREACH(c, &db->queue, entry)
    if (!c->grouped || db->statements[c->statement].groups < GROUPS_MAX)
        return c;
    return NULL;
}

static void dispatch(struct db *db)
{
    struct connection *k;
    struct call *c;
    while ((c = next_call(db)) != NULL && (k = idle_connection(db)) != NULL) {
        k->fresh = false;
        run_on(k, c);
        if (c->grouped)
            gather(k, c);
        if (k->n > 1)
            send_group(k);
        else
            send_call(k);
    }
}

/* Nothing of what runs there was done, or nobody knows. A group is not formed again: one of it may be why. */
static void repeat_all(struct connection *k)
{
    const bool alone = k->n > 1;
    for (struct call *c; (c = TAILQ_FIRST(&k->running)) != NULL;) {
        repeat(c);
        c->grouped = c->grouped && !alone;
    }
}

static void on_call_timer(void *arg)
{
    struct call *c = arg;
    struct db *db = c->db;
    if (c->args.bad) {
        leave(c);
        end(c, DB_REFUSED, NULL);
        return;
    }
    if (clock_mono_ms() < c->deadline_ms) { /* rested */
        leave(c);
        c->state = CALL_QUEUED;
        TAILQ_INSERT_HEAD(&db->queue, c, entry);
        set_deadline(c);
        dispatch(db);
        return;
    }
    struct connection *k = c->state == CALL_RUNNING ? c->on : NULL;
    leave(c);
    if (k) {
        repeat_all(k);
        link_drop(&k->link); /* its answer would come to nobody */
    }
    end(c, DB_UNAVAILABLE, NULL);
}

/* ---- what the connections say ---- */

static void on_up(void *owner)
{
    struct connection *k = owner;
    memset(k->prepared, 0, sizeof k->prepared);
    dispatch(k->db);
}

static void on_lost(void *owner)
{
    repeat_all(owner);
}

/* Never a parameter: class 22 (data exception) quotes them in its message, the rest keep values to the detail. */
static void log_refused(const char *name, const PGresult *r)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *constraint = PQresultErrorField(r, PG_DIAG_CONSTRAINT_NAME);
    const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    const bool quotes = !state || strncmp(state, "22", 2) == 0;
    log_error("db_refused", "call=%s sqlstate=%s constraint=%s message=%s", name, state ? state : "-",
              constraint ? constraint : "-", quotes || !message ? "-" : message);
}

static void finish(struct connection *k, enum db_rc rc, PGresult *r)
{
    struct call *c = TAILQ_FIRST(&k->running);
    leave(c);
    dispatch(c->db); /* the connection works on while the caller does */
    end(c, rc, r);
}

static void on_answer(void *owner, PGresult *r)
{
    struct connection *k = owner;
    enum verdict verdict = judge(r);
    if (verdict == VERDICT_STALE)
        verdict = k->fresh ? VERDICT_REFUSED : VERDICT_RECONNECT;
    switch (verdict) {
    case VERDICT_OK:
        if (!k->preparing) {
            finish(k, DB_OK, r);
            return;
        }
        k->prepared[TAILQ_FIRST(&k->running)->statement] = true;
        send_call(k);
        return;
    case VERDICT_RECONNECT:
        repeat_all(k);
        link_drop(&k->link);
        return;
    case VERDICT_REPEAT:
        repeat_all(k);
        dispatch(k->db);
        return;
    case VERDICT_STALE:
    case VERDICT_REFUSED:
        log_refused(k->db->statements[TAILQ_FIRST(&k->running)->statement].name, r);
        finish(k, DB_REFUSED, NULL);
        return;
    }
}

static void on_answers(void *owner, PGresult *const *r, size_t n)
{
    struct connection *k = owner;
    struct call *calls[LINK_GROUP_MAX];
    if (n == 0)
        repeat_all(k);
    for (size_t i = 0; i < n; i++) {
        calls[i] = TAILQ_FIRST(&k->running);
        leave(calls[i]);
    }
    dispatch(k->db);
    for (size_t i = 0; i < n; i++)
        end(calls[i], DB_OK, r[i]);
}

static const struct link_uses pool_uses = { .up = on_up, .answer = on_answer, .answers = on_answers, .lost = on_lost };

/* ---- the public face ---- */

struct loop *db_loop(const struct db *db)
{
    return db->server.loop;
}

struct db *db_open(struct loop *l, const char *conninfo, const char *user, unsigned connections)
{
    struct db *db = mem_new(sizeof *db);
    server_open(&db->server, l, conninfo, user);
    TAILQ_INIT(&db->queue);
    TAILQ_INIT(&db->resting);
    db->connections = mem_resize(NULL, connections, sizeof *db->connections);
    db->connection_count = connections;
    for (unsigned i = 0; i < connections; i++) {
        struct connection *k = &db->connections[i];
        *k = (struct connection){ .db = db };
        TAILQ_INIT(&k->running);
        link_open(&k->link, &db->server, &pool_uses, k, LINK_SETTINGS);
    }
    return db;
}

static struct call *any_call(struct db *db)
{
    for (unsigned i = 0; i < db->connection_count; i++)
        if (db->connections[i].n > 0)
            return TAILQ_FIRST(&db->connections[i].running);
    return TAILQ_EMPTY(&db->resting) ? TAILQ_FIRST(&db->queue) : TAILQ_FIRST(&db->resting);
}

void db_free(struct db *db)
{
    if (!db)
        return;
    for (unsigned i = 0; i < db->connection_count; i++)
        link_close(&db->connections[i].link);
    for (size_t i = 0; i < db->listener_count; i++)
        listener_close(db->listeners[i]);
    for (struct call *c; (c = any_call(db)) != NULL;) {
        leave(c);
        end(c, DB_UNAVAILABLE, NULL);
    }
    for (size_t i = 0; i < db->statement_count; i++) {
        free(db->statements[i].name);
        free(db->statements[i].sql);
    }
    server_done(&db->server);
    free(db->listeners);
    free(db->connections);
    free(db);
}

static void call(struct db *db, const char *function, struct db_args *args, bool grouped, uint64_t rank, int64_t deadline_ms,
                 db_done_fn *fn, void *arg)
{
    struct call *c = mem_new(sizeof *c);
    *c = (struct call){
        .db = db,
        .state = CALL_QUEUED,
        .statement = find_statement(db, function, args->count),
        .args = *args,
        .deadline_ms = args->bad ? 0 : deadline_ms,
        .grouped = grouped,
        .rank = rank,
        .fn = fn,
        .arg = arg,
    };
    *args = (struct db_args){ 0 };
    db->stats.calls++;
    set_deadline(c);
    if (c->args.bad) {
        c->state = CALL_RESTING;
        TAILQ_INSERT_TAIL(&db->resting, c, entry);
        return;
    }
    TAILQ_INSERT_TAIL(&db->queue, c, entry);
    dispatch(db);
}

void db_call(struct db *db, const char *function, struct db_args *args, int64_t deadline_ms, db_done_fn *fn, void *arg)
{
    call(db, function, args, false, 0, deadline_ms, fn, arg);
}

void db_call_grouped(struct db *db, const char *function, struct db_args *args, uint64_t rank, int64_t deadline_ms, db_done_fn *fn,
                     void *arg)
{
    call(db, function, args, true, rank, deadline_ms, fn, arg);
}

void db_listen(struct db *db, const char *const *channels, size_t n, db_heard_fn *fn, void *arg)
{
    db->listeners = mem_resize(db->listeners, db->listener_count + 1, sizeof *db->listeners);
    db->listeners[db->listener_count++] = listener_open(&db->server, channels, n, fn, arg);
}

struct db_stats db_stats(const struct db *db)
{
    struct db_stats s = db->stats;
    const struct call *c;
    for (unsigned i = 0; i < db->connection_count; i++) {
        s.connected += db->connections[i].link.state == LINK_UP;
        s.busy += db->connections[i].n > 0;
    }
    TAILQ_FOREACH(c, &db->queue, entry)
    s.queued++;
    TAILQ_FOREACH(c, &db->resting, entry)
    s.queued++;
    return s;
}
