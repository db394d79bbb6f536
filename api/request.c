/* Phases: how they are run, and what they may ask of their request. */
#include <stdlib.h>
#include <string.h>

#include "api/http.h"
#include "base/clock.h"

enum step_kind { STEP_NONE, STEP_REPLY, STEP_WAIT, STEP_PARK };

/* ---- running ---- */

/* One phase; the next one if it is known already. */
static phase *run_one(struct request *rq, phase *p)
{
    rq->stage = STAGE_RUNNING;
    rq->next = NULL;
    const enum step_kind kind = (enum step_kind)p(rq).kind;
    switch (kind) {
    case STEP_REPLY:
        rq->stage = STAGE_REPLIED;
        return NULL;
    case STEP_WAIT:
        if (rq->next)                                    /* request_go came before request_wait returned */
            return rq->next;
        rq->stage = STAGE_WAITING;
        rq->server->stats.waiting++;
        return NULL;
    case STEP_PARK:
        rq->stage = STAGE_PARKED;
        topics_park(rq);
        return NULL;
    case STEP_NONE:
        break;
    }
    abort();                                             /* a step that none of the three calls made */
}

void request_run(struct request *rq, phase *p)
{
    while (p)
        p = run_one(rq, p);
}

static void kicked(void *arg)
{
    (void)arg;
}

/* The timer, due at once, keeps the loop from sleeping, also when another hook than the server's is the caller. */
void request_ready(struct request *rq)
{
    struct server *s = rq->server;
    rq->stage = STAGE_READY;
    if (link_alone(&s->ready))
        timer_set(s->loop, &s->kick, rq->began_ms, kicked, s);
    link_append(&s->ready, &rq->place);
}

struct step request_reply(struct request *rq, struct reply *r)
{
    if (rq->reply)
        abort();
    rq->reply = r;
    return (struct step){ STEP_REPLY };
}

struct step request_wait(struct request *rq)
{
    (void)rq;
    return (struct step){ STEP_WAIT };
}

void request_go(struct request *rq, phase *next)
{
    if (rq->next || (rq->stage != STAGE_RUNNING && rq->stage != STAGE_WAITING))
        abort();                                         /* twice, or to nobody: the request may be gone next time */
    rq->next = next;
    if (rq->stage == STAGE_RUNNING)
        return;
    rq->server->stats.waiting--;
    request_ready(rq);
}

struct step request_park(struct request *rq, struct topic t, int64_t deadline_ms, phase *next)
{
    rq->topic = t;
    rq->deadline.at_ms = deadline_ms;
    rq->next = next;
    return (struct step){ STEP_PARK };
}

void request_free(struct request *rq)
{
    link_del(&rq->live);
    link_del(&rq->place);
    timer_clear(rq->server->loop, &rq->deadline);
    reply_free(rq->reply);
    buf_done(&rq->body);
    free(rq->headers);
    free(rq->memory);
    free(rq);
}

/* ---- what came in ---- */

const char *request_method(const struct request *rq)
{
    return rq->method;
}

struct slice request_target(const struct request *rq)
{
    return (struct slice){ rq->target, rq->target_n };
}

struct slice request_path(const struct request *rq)
{
    return (struct slice){ rq->target, rq->path_n };
}

struct slice request_query(const struct request *rq)
{
    if (rq->path_n == rq->target_n)
        return SLICE("");
    return (struct slice){ rq->target + rq->path_n + 1, rq->target_n - rq->path_n - 1 };
}

struct slice request_body(const struct request *rq)
{
    return rq->body.n ? (struct slice){ rq->body.p, rq->body.n } : SLICE("");
}

size_t request_header(const struct request *rq, const char *name, struct slice *ret_first)
{
    size_t count = 0;
    for (size_t i = 0; i < rq->header_count; i++)
        if (name_is(rq->headers[i].name, name) && count++ == 0)
            *ret_first = rq->headers[i].value;
    return count;
}

void request_each_header(const struct request *rq, header_fn *fn, void *arg)
{
    for (size_t i = 0; i < rq->header_count; i++)
        fn(arg, rq->headers[i].name, rq->headers[i].value);
}

const char *request_client(const struct request *rq)
{
    return rq->client;
}

const char *request_id(const struct request *rq)
{
    return rq->id;
}

int64_t request_began_ms(const struct request *rq)
{
    return rq->began_ms;
}

void *request_app(const struct request *rq)
{
    return rq->server->app.data;
}

void *request_memory(struct request *rq, size_t size)
{
    if (!rq->memory)
        rq->memory = mem_new(size);
    return rq->memory;
}

void request_on_end(struct request *rq, void (*fn)(struct request *rq, bool delivered))
{
    rq->on_end = fn;
}
