#include "chain/rpc_internal.h"

static struct rpc_answers answers_new(size_t n)
{
    return (struct rpc_answers){ .a = mem_new(n * sizeof(struct rpc_answer)), .n = n };
}

static void answer_keep(struct rpc_answer *ret, const struct rpc_answer *a)
{
    *ret = *a;
    json_incref(ret->object); /* result, message and data live in it */
}

void rpc_answers_done(struct rpc_answers *a)
{
    for (size_t i = 0; i < a->n; i++)
        json_decref(a->a[i].object);
    free(a->a);
    *a = (struct rpc_answers){ 0 };
}

/* ---- to every endpoint --------------------------------------------------------------------------- */

struct fold {
    struct rpc_answers all;
    size_t left;
    rpc_done_fn *fn;
    void *arg;
};

struct part {
    struct fold *fold;
    size_t endpoint;
};

static void part_done(void *arg, const struct rpc_answer *answers, size_t n)
{
    (void)n;
    OWNED struct part *part = arg;
    struct fold *fold = part->fold;
    answer_keep(&fold->all.a[part->endpoint], &answers[0]);
    if (--fold->left > 0)
        return;
    fold->fn(fold->arg, fold->all.a, fold->all.n);
    rpc_answers_done(&fold->all);
    free(fold);
}

void rpc_start_everywhere(struct rpc *r, struct rpc_item item, rpc_done_fn *fn, void *arg)
{
    struct fold *fold = mem_new(sizeof *fold);
    size_t n = rpc_endpoints(r);
    *fold = (struct fold){ .all = answers_new(n), .left = n, .fn = fn, .arg = arg };
    for (size_t i = 0; i < n; i++) {
        struct part *part = mem_new(sizeof *part);
        *part = (struct part){ fold, i };
        struct rpc_item copy = { item.method, json_incref(item.params) };
        rpc_start_at(r, i, &copy, 1, part_done, part);
    }
    json_decref(item.params);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

struct wait {
    bool done;
    struct rpc_answers kept;
};

static void wait_done(void *arg, const struct rpc_answer *answers, size_t n)
{
    struct wait *w = arg;
    w->kept = answers_new(n);
    for (size_t i = 0; i < n; i++)
        answer_keep(&w->kept.a[i], &answers[i]);
    w->done = true;
}

static struct rpc_answers wait_for(struct rpc *r, struct wait *w)
{
    while (!w->done) /* bounded: each call has a deadline */
        loop_turn(rpc_loop(r), -1);
    return w->kept;
}

struct rpc_answers rpc_wait(struct rpc *r, struct rpc_item *items, size_t n)
{
    struct wait w = { 0 };
    rpc_start(r, items, n, wait_done, &w);
    return wait_for(r, &w);
}

struct rpc_answers rpc_wait_everywhere(struct rpc *r, struct rpc_item item)
{
    struct wait w = { 0 };
    rpc_start_everywhere(r, item, wait_done, &w);
    return wait_for(r, &w);
}
