#include "base/clock.h"
#include "base/json.h"
#include "chain/check_read.h"

enum {
    GATHER_MS = 1,
    SHARED_READS = 2, /* under way at once */
    LONE_READS = 8,
    PLAIN_MS = 60000, /* how long a node counts as one without Multicall3 */
    NEWEST_MS = 60000, /* how long a block counts as seen: after a reorganisation, or a lie, there may be none so new */
};

struct queue {
    struct ask *first, *last;
    size_t n;
};

struct read {
    struct checker *checker; /* NULL: it is gone, only the reply is still to come */
    struct read *next, *prev;
    struct ask *asks[SHARE_MAX];
    size_t n;
    bool shared;
    struct auth_facts plain; /* block and time, when read call by call */
};

struct checker {
    struct loop *loop;
    struct rpc *rpc;
    struct queue fresh, lone; /* lone: to be read without company */
    struct read *reads;
    size_t shared_reads, lone_reads;
    struct timer gather;
    size_t company; /* how many the shared read before had */
    int64_t plain_until_ms;
    uint64_t newest; /* block */
    int64_t newest_ms;
};

static void queue_push(struct queue *q, struct ask *a)
{
    a->next = NULL;
    if (q->last)
        q->last->next = a;
    else
        q->first = a;
    q->last = a;
    q->n++;
}

static struct ask *queue_pull(struct queue *q)
{
    struct ask *a = q->first;
    q->first = a->next;
    if (!q->first)
        q->last = NULL;
    q->n--;
    return a;
}

static void answer(struct ask *a, const struct auth_facts *facts)
{
    a->fn(a->arg, facts);
    buf_done(&a->transfer);
    free(a);
}

static const struct auth_facts nothing = { .known = false };

static void saw_block(struct checker *c, const struct auth_facts *f)
{
    const int64_t now = clock_mono_ms();
    if (!f->known || (f->block < c->newest && now - c->newest_ms < NEWEST_MS))
        return;
    c->newest = f->block;
    c->newest_ms = now;
}

/* A nonce that is used stays used; anything else may be what a node says that has not seen the last blocks. */
static bool is_no(const struct auth_facts *f)
{
    return f->known && !f->transfer_ok && !f->nonce_used;
}

static void ask_alone(struct checker *c, struct ask *a, const struct auth_facts *f, size_t endpoint)
{
    a->doubted = a->doubted || is_no(f);
    a->by = endpoint;
    queue_push(&c->lone, a);
}

static void answer_alone(struct checker *c, struct ask *a, const struct auth_facts *f, size_t endpoint)
{
    saw_block(c, f);
    if (is_no(f) && !a->doubted)
        ask_alone(c, a, f, endpoint);
    else
        answer(a, is_no(f) && f->block < c->newest ? &nothing : f);
}

/* The endpoint that this read had rather not ask. */
static size_t read_avoids(const struct read *r)
{
    return r->n == 1 && r->asks[0]->doubted ? r->asks[0]->by : SIZE_MAX;
}

/* ---- reads under way ----------------------------------------------------------------------------- */

static struct read *read_new(struct checker *c, struct queue *from, size_t max, bool shared)
{
    struct read *r = mem_new(sizeof *r);
    *r = (struct read){ .checker = c, .next = c->reads, .shared = shared };
    while (from->first && r->n < max)
        r->asks[r->n++] = queue_pull(from);
    if (c->reads)
        c->reads->prev = r;
    c->reads = r;
    *(shared ? &c->shared_reads : &c->lone_reads) += 1;
    return r;
}

static void read_detach(struct read *r)
{
    struct checker *c = r->checker;
    if (r->prev)
        r->prev->next = r->next;
    else
        c->reads = r->next;
    if (r->next)
        r->next->prev = r->prev;
    *(r->shared ? &c->shared_reads : &c->lone_reads) -= 1;
}

static void read_start(struct read *r);
static void plain_start(struct read *r);

static void pump(void *arg)
{
    struct checker *c = arg;
    bool plain = clock_mono_ms() < c->plain_until_ms;
    while (plain && c->fresh.first)
        queue_push(&c->lone, queue_pull(&c->fresh));
    while (c->fresh.first && c->shared_reads < SHARED_READS) {
        struct read *r = read_new(c, &c->fresh, SHARE_MAX, true);
        c->company = r->n;
        read_start(r);
    }
    while (c->lone.first && c->lone_reads < LONE_READS) {
        struct read *r = read_new(c, &c->lone, 1, false);
        if (plain)
            plain_start(r);
        else
            read_start(r);
    }
}

/* All that goes on after a read has its place below, in this order: detach, answer or queue again, then this. */
static void read_over(struct checker *c, struct read *r)
{
    free(r);
    pump(c);
}

static void read_failed(struct read *r)
{
    struct checker *c = r->checker;
    read_detach(r);
    for (size_t i = 0; i < r->n; i++)
        answer(r->asks[i], &nothing);
    read_over(c, r);
}

static void read_again(struct read *r, const bool *lone)
{
    struct checker *c = r->checker;
    read_detach(r);
    for (size_t i = 0; i < r->n; i++)
        queue_push(lone[i] ? &c->lone : &c->fresh, r->asks[i]);
    read_over(c, r);
}

/* ---- call by call -------------------------------------------------------------------------------- */

static void plain_done(void *arg, const struct rpc_answer *answers, size_t n)
{
    (void)n;
    struct read *r = arg;
    struct checker *c = r->checker;
    if (!c) {
        free(r);
        return;
    }
    read_detach(r);
    answer_alone(c, r->asks[0], plain_read(answers, &r->plain) ? &r->plain : &nothing, answers[0].endpoint);
    read_over(c, r);
}

static void plain_block(void *arg, const struct rpc_answer *answers, size_t n)
{
    (void)n;
    struct read *r = arg;
    struct block b;
    struct rpc_item items[PLAIN_ITEMS];
    if (!r->checker) {
        free(r);
        return;
    }
    if (answers[0].rc != RPC_OK || !block_read(answers[0].result, &b)) {
        read_failed(r);
        return;
    }
    r->plain = (struct auth_facts){ .block = b.number, .block_time = b.time };
    plain_items(r->asks[0], b.number, items);
    rpc_start_elsewhere(r->checker->rpc, read_avoids(r), items, PLAIN_ITEMS, plain_done, r);
}

static void plain_start(struct read *r)
{
    json_t *params = json_array();
    json_array_append_new(params, json_string("latest"));
    json_array_append_new(params, json_false());
    struct rpc_item item = { "eth_getBlockByNumber", params };
    rpc_start_elsewhere(r->checker->rpc, read_avoids(r), &item, 1, plain_block, r);
}

/* ---- through Multicall3 -------------------------------------------------------------------------- */

/* A shared yes is final when the balance alone, seen before any transfer, covers it. */
static bool is_final(const struct read *r, size_t i, const struct auth_facts *f)
{
    return f->known && !f->has_code && f->transfer_ok && !f->nonce_used && f->balance_known &&
           amount_cmp(f->balance, r->asks[i]->value) >= 0;
}

static void read_answered(struct read *r, struct slice reply, const bool *has_code, size_t endpoint)
{
    struct checker *c = r->checker;
    struct auth_facts facts[SHARE_MAX];
    if (!shared_read(reply, r->n, facts)) {
        read_failed(r);
        return;
    }
    read_detach(r);
    for (size_t i = 0; i < r->n; i++) {
        facts[i].has_code = facts[i].known && has_code[i];
        saw_block(c, &facts[i]);
        if (r->n == 1)
            answer_alone(c, r->asks[i], &facts[i], endpoint);
        else if (is_final(r, i, &facts[i]))
            answer(r->asks[i], &facts[i]);
        else
            ask_alone(c, r->asks[i], &facts[i], endpoint);
    }
    read_over(c, r);
}

/* The call as a whole was refused: a payer's code may have eaten its gas. Those with code go alone, and the others
 * share again; if nobody has code, each goes alone. */
static void read_refused(struct read *r, const bool *has_code)
{
    bool lone[SHARE_MAX], any = false;
    if (r->n == 1) {
        read_failed(r);
        return;
    }
    for (size_t i = 0; i < r->n; i++)
        any = any || has_code[i];
    for (size_t i = 0; i < r->n; i++)
        lone[i] = !any || has_code[i];
    read_again(r, lone);
}

/* No Multicall3, or a node that runs no init code: from now on call by call. */
static void read_plainly(struct read *r)
{
    static const bool lone[SHARE_MAX] = { false };
    r->checker->plain_until_ms = clock_mono_ms() + PLAIN_MS;
    read_again(r, lone);
}

static void read_done(void *arg, const struct rpc_answer *answers, size_t n)
{
    (void)n;
    struct read *r = arg;
    bool has_code[SHARE_MAX];
    size_t size;
    if (!r->checker) {
        free(r);
        return;
    }
    if (answers[0].rc == RPC_UNAVAILABLE) {
        read_failed(r);
        return;
    }
    if (!code_read(&answers[0], r->n, has_code)) {
        read_plainly(r);
        return;
    }
    if (answers[1].rc == RPC_ERROR) {
        read_refused(r, has_code);
        return;
    }
    OWNED uint8_t *reply = rpc_read_data(answers[1].result, &size);
    if (reply && size == 0)
        read_plainly(r);
    else if (reply)
        read_answered(r, (struct slice){ (const char *)reply, size }, has_code, answers[1].endpoint);
    else
        read_failed(r);
}

static void read_start(struct read *r)
{
    struct address payers[SHARE_MAX];
    for (size_t i = 0; i < r->n; i++)
        payers[i] = r->asks[i]->payer;
    struct rpc_item items[] = {
        { "eth_call", code_params(payers, r->n, NULL) },
        { "eth_call", shared_params(r->asks, r->n) },
    };
    rpc_start_elsewhere(r->checker->rpc, read_avoids(r), items, COUNT(items), read_done, r);
}

/* ---- the checker --------------------------------------------------------------------------------- */

struct checker *checker_new(struct loop *l, struct rpc *r)
{
    struct checker *c = mem_new(sizeof *c);
    c->loop = l;
    c->rpc = r;
    return c;
}

static void queue_fail(struct queue *q)
{
    while (q->first)
        answer(queue_pull(q), &nothing);
}

void checker_free(struct checker *c)
{
    if (!c)
        return;
    while (c->reads) {
        struct read *r = c->reads;
        read_detach(r);
        for (size_t i = 0; i < r->n; i++)
            answer(r->asks[i], &nothing);
        r->checker = NULL;
    }
    queue_fail(&c->fresh);
    queue_fail(&c->lone);
    timer_clear(c->loop, &c->gather);
    free(c);
}

/* Who got their answers together ask again together: a read waits for as many as the one before it had, and not long; when none is
 * under way, for half of them, so that the other half is gathered meanwhile. A lone caller waits for nobody. */
static void gather(struct checker *c)
{
    const size_t want = c->shared_reads > 0 ? c->company : (c->company + 1) / 2;
    const bool all = c->fresh.n >= SHARE_MAX || c->fresh.n >= want;
    if (c->shared_reads == SHARED_READS)
        return; /* the end of one of them takes it along */
    if (all || !timer_is_set(&c->gather))
        timer_set(c->loop, &c->gather, clock_mono_ms() + (all ? 0 : GATHER_MS), pump, c);
}

void checker_start(struct checker *c, const struct token *t, const struct authorization *a, auth_facts_fn *fn,
                   void *arg)
{
    struct ask *ask = mem_new(sizeof *ask);
    *ask = (struct ask){
        .token = t->address, .payer = a->from, .nonce = a->nonce, .value = a->value, .fn = fn, .arg = arg
    };
    authorization_call(&ask->transfer, a);
    queue_push(&c->fresh, ask);
    gather(c);
}

struct wait {
    bool done;
    struct auth_facts facts;
};

static void wait_done(void *arg, const struct auth_facts *facts)
{
    struct wait *w = arg;
    w->facts = *facts;
    w->done = true;
}

struct auth_facts checker_wait(struct checker *c, const struct token *t, const struct authorization *a)
{
    struct wait w = { 0 };
    checker_start(c, t, a, wait_done, &w);
    while (!w.done) /* bounded: each read has a deadline */
        loop_turn(c->loop, -1);
    return w.facts;
}
