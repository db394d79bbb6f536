#include <fcntl.h>
#include <sys/epoll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "sql/internal.h"

enum { CONNECT_MS = 5000, BACKOFF_MS = 50, BACKOFF_MAX_MS = 2000, QUIET_MS = 5000 };

static void on_event(void *arg, uint32_t events);
static void start(void *arg);

/* Half of it is chance, so that the connections of several instances do not return in step. */
static int64_t backoff_ms(unsigned failures)
{
    const int64_t most = failures > 5 ? BACKOFF_MAX_MS : (int64_t)BACKOFF_MS << failures;
    uint16_t chance;
    bytes_random(&chance, sizeof chance);
    return most / 2 + most * chance / 2 / UINT16_MAX;
}

static void complain(struct server *s, const char *why)
{
    const int64_t now_ms = clock_mono_ms();
    if (now_ms < s->quiet_until_ms)
        return;
    s->quiet_until_ms = now_ms + QUIET_MS;
    log_warn("db_connection", "as=%s why=%s", s->application, why);
}

static void unwatch(struct link *k)
{
    if (!k->watch)
        return;
    watch_done(&k->watch);
    close(k->fd);
}

static void watch(struct link *k, uint32_t events)
{
    unwatch(k);
    k->fd = fcntl(PQsocket(k->pg), F_DUPFD_CLOEXEC, 3);
    if (k->fd < 0)
        abort();
    k->watch = loop_watch(k->server->loop, k->fd, events, on_event, k);
}

static void group_clear(struct link *k)
{
    for (size_t i = 0; i < COUNT(k->answers); i++) {
        PQclear(k->answers[i]);
        k->answers[i] = NULL;
    }
    k->group = k->got = 0;
    k->failed = false;
}

static void clear(struct link *k)
{
    group_clear(k);
    unwatch(k);
    timer_clear(k->server->loop, &k->timer);
    PQfinish(k->pg);
    k->pg = NULL;
    PQclear(k->answer);
    k->answer = NULL;
    k->state = LINK_DOWN;
}

void link_drop(struct link *k)
{
    clear(k);
    timer_set(k->server->loop, &k->timer, clock_mono_ms() + backoff_ms(k->failures++), start, k);
}

void link_close(struct link *k)
{
    clear(k);
}

static void lose(struct link *k, const char *why)
{
    const bool was_up = k->state == LINK_UP;
    complain(k->server, why);
    link_drop(k);
    if (was_up)
        k->uses->lost(k->owner);
}

static void took_too_long(void *arg)
{
    lose(arg, "no connection in time");
}

static void log_notice(void *arg, const PGresult *r)
{
    (void)arg;
    log_debug("db_notice", "sqlstate=%s", PQresultErrorField(r, PG_DIAG_SQLSTATE));
}

static void flush(struct link *k)
{
    const int left = PQflush(k->pg);
    if (left < 0)
        lose(k, PQerrorMessage(k->pg));
    else
        watch_events(k->watch, left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void link_asked(struct link *k, bool sent)
{
    if (sent)
        flush(k);
    else
        lose(k, PQerrorMessage(k->pg));
}

bool link_group_begin(struct link *k)
{
    return PQenterPipelineMode(k->pg) == 1;
}

/* The one synchronisation behind them makes them one transaction: the server commits there, or has undone all. */
void link_group_asked(struct link *k, size_t n, bool sent)
{
    k->group = n;
    link_asked(k, sent && PQpipelineSync(k->pg) == 1);
}

static void greet(struct link *k)
{
    PQsetNoticeReceiver(k->pg, log_notice, NULL);
    PQsetErrorVerbosity(k->pg, PQERRORS_TERSE); /* details quote values, and this goes to the log */
    k->state = LINK_GREETING;
    watch(k, EPOLLIN);
    link_asked(k, PQsetnonblocking(k->pg, 1) == 0 && PQsendQuery(k->pg, k->greeting));
}

static void go_on_connecting(struct link *k)
{
    unwatch(k); /* libpq may change to another socket here */
    switch (PQconnectPoll(k->pg)) {
    case PGRES_POLLING_READING:
        watch(k, EPOLLIN);
        return;
    case PGRES_POLLING_WRITING:
        watch(k, EPOLLOUT);
        return;
    case PGRES_POLLING_OK:
        greet(k);
        return;
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
        lose(k, PQerrorMessage(k->pg));
        return;
    }
}

static void start(void *arg)
{
    struct link *k = arg;
    k->pg = server_start_connect(k->server);
    k->state = LINK_CONNECTING;
    timer_set(k->server->loop, &k->timer, clock_mono_ms() + CONNECT_MS, took_too_long, k);
    if (PQstatus(k->pg) == CONNECTION_BAD)
        lose(k, PQerrorMessage(k->pg));
    else
        watch(k, EPOLLOUT);
}

static void greeted(struct link *k, const PGresult *r)
{
    if (judge(r) != VERDICT_OK) {
        lose(k, PQresultErrorMessage(r));
        return;
    }
    timer_clear(k->server->loop, &k->timer);
    k->failures = 0;
    k->state = LINK_UP;
    k->uses->up(k->owner);
}

/* The answer is whole. Its transaction ended before the server said that it is ready again, and only then: an error of
 * the commit itself comes after the rows, and a connection lost between the two leaves it open whether it committed. */
static void answered(struct link *k)
{
    if (PQtransactionStatus(k->pg) != PQTRANS_IDLE) {
        lose(k, PQerrorMessage(k->pg));
        return;
    }
    RESULT *r = MOVE(k->answer);
    if (k->state == LINK_GREETING)
        greeted(k, r);
    else if (r)
        k->uses->answer(k->owner, r);
}

static void keep(struct link *k, PGresult *r)
{
    if (k->answer && judge(k->answer) != VERDICT_OK) {
        PQclear(r);
        return;
    }
    PQclear(k->answer);
    k->answer = r;
}

static void tell_notifications(struct link *k)
{
    for (PGnotify *n; k->pg && (n = PQnotifies(k->pg)) != NULL; PQfreemem(n))
        if (k->uses->heard && k->state == LINK_UP)
            k->uses->heard(k->owner, n->relname, n->extra);
}

/* Each question's result, then a NULL; an error of the commit comes behind the last of them. True: the group is whole. */
static bool group_keep(struct link *k, PGresult *r)
{
    if (!r) {
        k->got++;
        return false;
    }
    const bool over = PQresultStatus(r) == PGRES_PIPELINE_SYNC || PQstatus(k->pg) == CONNECTION_BAD;
    if (over || judge(r) != VERDICT_OK || k->got >= k->group || k->answers[k->got]) {
        k->failed = k->failed || !over;
        PQclear(r);
    } else {
        k->answers[k->got] = r;
    }
    return over;
}

static void group_answered(struct link *k)
{
    if (PQstatus(k->pg) == CONNECTION_BAD || PQtransactionStatus(k->pg) != PQTRANS_IDLE || PQexitPipelineMode(k->pg) != 1) {
        lose(k, PQerrorMessage(k->pg));
        return;
    }
    PGresult *answers[LINK_GROUP_MAX];
    const size_t n = k->failed ? 0 : k->group;
    memcpy(answers, k->answers, sizeof answers);
    memset(k->answers, 0, sizeof k->answers);
    group_clear(k);
    k->uses->answers(k->owner, answers, n);
    for (size_t i = 0; i < COUNT(answers); i++)
        PQclear(answers[i]);
}

static void take_answer(struct link *k)
{
    while (!PQisBusy(k->pg)) {
        PGresult *r = PQgetResult(k->pg);
        if (k->group == 0 && !r) {
            answered(k);
            return;
        }
        if (k->group == 0)
            keep(k, r);
        else if (group_keep(k, r)) {
            group_answered(k);
            return;
        }
    }
}

static void on_event(void *arg, uint32_t events)
{
    struct link *k = arg;
    if (k->state == LINK_CONNECTING) {
        go_on_connecting(k);
        return;
    }
    if ((events & ~(uint32_t)EPOLLOUT) && !PQconsumeInput(k->pg)) {
        lose(k, PQerrorMessage(k->pg));
        return;
    }
    flush(k);
    if (k->state == LINK_DOWN)
        return;
    take_answer(k);
    tell_notifications(k);
}

void link_open(struct link *k, struct server *s, const struct link_uses *uses, void *owner, const char *greeting)
{
    *k = (struct link){ .server = s, .uses = uses, .owner = owner, .greeting = greeting };
    timer_set(s->loop, &k->timer, clock_mono_ms(), start, k);
}
