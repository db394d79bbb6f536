#include "api/upstream.h"

#include <stdlib.h>
#include <string.h>

#include "api/upstream_headers.h"

struct call {
    work_fn *fn;
    void *arg;
    bool write, head;
};

void work_done(struct work *w)
{
    json_decref(w->headers);
    w->headers = NULL;
    free(w->why);
    w->why = NULL;
    buf_done(&w->body);
}

/* What may have been carried out already, and must not be again. */
static bool is_write(enum side_effect e)
{
    switch (e) {
    case EFFECT_NONE:
    case EFFECT_READ:
        return false;
    case EFFECT_WRITE:
    case EFFECT_IRREVERSIBLE:
        return true;
    }
    abort();
}

static enum work_end end_of_answer(int status, bool write)
{
    if (status < 400)
        return WORK_DONE;
    if (status < 500)
        return WORK_REFUSED;
    return write ? WORK_LOST : WORK_FAILED;
}

static enum work_end end_of(const struct fetch_answer *a, bool write)
{
    switch (a->end) {
    case FETCH_ANSWERED:
        return end_of_answer(a->status, write);
    case FETCH_NOT_SENT:
        return WORK_UNREACHED;
    case FETCH_LOST:
        return write ? WORK_LOST : WORK_TIMEOUT;
    case FETCH_TOO_LARGE:
        return write ? WORK_LOST : WORK_TOO_LARGE;
    }
    abort();
}

static void answered(void *arg, const struct fetch_answer *a)
{
    OWNED struct call *c = arg;
    struct work w = { .end = end_of(a, c->write), .why = a->why ? str_copy(a->why) : NULL };
    if (a->end == FETCH_ANSWERED) {
        w.status = a->status;
        w.headers = incoming_headers(a, c->head);
        buf_add(&w.body, a->body.p, a->body.n);
    } else {
        w.headers = json_array();
    }
    c->fn(c->arg, &w);
}

void upstream_start(struct fetcher *f, const struct upstream_call *u, work_fn *fn, void *arg)
{
    const struct slice target = request_target(u->rq);
    OWNED char *url = str_format("%s%.*s", u->tool->upstream, (int)target.n, target.p);
    struct outgoing headers;
    outgoing_make(&headers, u);

    struct call *c = mem_new(sizeof *c);
    *c = (struct call){ .fn = fn, .arg = arg, .write = is_write(u->tool->side_effect) };
    c->head = strcmp(request_method(u->rq), "HEAD") == 0;
    const struct fetch_request rq = {
        .method = request_method(u->rq),
        .url = url,
        .headers = headers.list,
        .header_count = headers.count,
        .body = request_body(u->rq),
        .deadline_ms = u->deadline_ms,
        .max_answer = u->tool->max_answer,
        .once = c->write,
    };
    fetch_start(f, &rq, answered, c);
    outgoing_done(&headers);
}
