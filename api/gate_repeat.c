/* A question that its wallet has asked before and paid for: the answer once more, not charged. Asked before the chain is, since nothing
 * is sent: the signature proves the wallet, one commit sets its authorization aside and brings the answer. */
#include <string.h>
#include <strings.h>

#include "api/answers.h"
#include "api/gate.h"
#include "base/clock.h"

enum { ACCEPT_MS = 10000, VARY_MAX = 20 + 2 /* credentials */ };

/* ---- what the answer may depend on beside the request ---- */

struct named { const char *name; struct buf *b; };

static void add_named(void *arg, struct slice name, struct slice value)
{
    const struct named *n = arg;
    if (name.n != strlen(n->name) || strncasecmp(name.p, n->name, name.n) != 0)
        return;
    buf_printf(n->b, "%s %zu:", n->name, value.n);
    buf_add(n->b, value.p, value.n);
}

/* A payment is none of the question, and the upstream does not see it either. */
static bool brings_payment(const struct call *c, const char *name)
{
    return c->rail->credential && strcmp(name, c->rail->credential) == 0;
}

void gate_manner(struct request *rq)
{
    struct call *c = gate_call(rq);
    const struct tool *t = c->tool;
    BUF b = { 0 };
    for (size_t i = 0; i < t->vary_count; i++) {
        struct named n = { t->vary[i], &b };
        if (!brings_payment(c, n.name))
            request_each_header(rq, add_named, &n);
    }
    c->has_manner = b.n > 0;
    if (c->has_manner)
        c->manner = sha256(b.p, b.n);
}

const struct hash32 *gate_manner_of(const struct call *c)
{
    return c->has_manner ? &c->manner : NULL;
}

/* ---- the key ---- */

static struct slice header_once(struct request *rq, const char *name, bool *ret_twice)
{
    struct slice value = { NULL, 0 };
    const size_t n = request_header(rq, name, &value);
    *ret_twice = *ret_twice || n > 1;
    return n == 1 ? value : (struct slice){ NULL, 0 };
}

void gate_repeat_key(struct request *rq)
{
    struct call *c = gate_call(rq);
    const struct tool *t = c->tool;
    struct slice values[VARY_MAX];
    bool twice = false;
    if (!t->cacheable || t->repeat_max == 0 || (c->pay_first && !t->repeat_paid_first))
        return;
    for (size_t i = 0; i < t->vary_count; i++)
        values[i] = brings_payment(c, t->vary[i]) ? (struct slice){ NULL, 0 } : header_once(rq, t->vary[i], &twice);
    const struct question q = {
        .payer = &c->payment.auth.from,
        .tool = t->name,
        .method = request_method(rq),
        .path = request_path(rq),
        .query = request_query(rq),
        .body = request_body(rq),
        .content_type = header_once(rq, "Content-Type", &twice),
        .content_encoding = header_once(rq, "Content-Encoding", &twice),
        .vary = t->vary,
        .vary_values = values,
        .vary_count = t->vary_count,
        .volatiles = t->volatiles,
        .volatile_count = t->volatile_count,
    };
    c->repeat = (struct order_repeat){ .window_s = t->repeat_window_s, .max = t->repeat_max };
    c->repeat.asked = !twice && question_key(&q, &c->repeat.key);
    if (!c->repeat.asked)
        repeat_counts_missed(&c->g->repeats, "arguments");
}

int64_t gate_chain_ms(const struct call *c)
{
    return c->seat->clock.known ? chain_clock_ms(&c->seat->clock, clock_mono_ms()) : clock_wall_ms();
}

/* ---- what accept said ---- */

void gate_keep_accepted(struct call *c, const struct order_accepted *a)
{
    c->verdict = a->verdict;
    c->order = a->order;
    c->receipt = a->receipt;
    c->epoch = a->epoch;
    c->is_similar = a->is_similar;
    c->similar = a->similar;
    c->retry_after_s = a->retry_after_s;
    if (a->miss && a->verdict == VERDICT_ACCEPTED)
        repeat_counts_missed(&c->g->repeats, a->miss);
    if (a->verdict != VERDICT_REPEAT)
        return;
    c->outcome = (struct outcome){ .known = true, .has_tx = true, .tx = a->tx, .block_time = a->block_time, .receipt = a->receipt };
    for (size_t i = 0; i < c->g->config->net_count; i++)
        if (slice_is(a->network, c->g->config->nets[i].id))
            c->outcome.net = &c->g->config->nets[i];
    c->has_work = answer_open(c->g, &c->order, a->status, a->headers, a->body, &c->work);
}

static void have_repeat(void *arg, enum db_rc rc, const struct order_accepted *a)
{
    struct call *c = gate_call(arg);
    metrics_span(c->g->metrics, SPAN_ACCEPT, c->asked_ms);
    if (rc == DB_OK) {
        gate_keep_accepted(c, a);
        c->known = KNOWN_ALL;
        metrics_found(c->g->metrics, a->verdict != VERDICT_NEW);
    }
    request_go(arg, rc == DB_OK ? gate_decide : gate_store_down);
}

struct step gate_repeat(struct request *rq)
{
    struct call *c = gate_call(rq);
    const struct order_call call = gate_order_call(rq);
    OWNED char *by = gate_by(rq);
    c->asked_ms = clock_mono_ms();
    orders_accept(c->g->db, &c->g->instance, 0, &c->payment, false, false, &call, c->need_s, by, clock_mono_ms() + ACCEPT_MS, have_repeat,
                  rq);
    return request_wait(rq);
}

/* ---- what the caller gets ---- */

struct step gate_repeat_answer(struct request *rq)
{
    struct call *c = gate_call(rq);
    if (!c->has_work)
        return gate_store_down(rq);
    c->is_repeat = true;
    struct reply *r = gate_answer(rq, c->work.status, c->work.headers, false, true);
    reply_body_take(r, NULL, &c->work.body);
    repeat_counts_served(&c->g->repeats, &c->payment.price);
    c->told = true;
    return gate_send(rq, r, COUNT_FREE_REPEAT);
}

/* Beside an answer that is told as a free repeat. */
void gate_repeat_headers(struct request *rq, struct reply *r)
{
    const struct call *c = gate_call(rq);
    const int64_t age_s = gate_chain_ms(c) / 1000 - c->outcome.block_time;
    OWNED char *age = str_format("%lld", (long long)(age_s > 0 ? age_s : 0));
    reply_header(r, "Age", age);
    reply_header(r, "Payonce-Receipt-Id", receipt_id_text(&c->receipt).s);
}

struct step gate_repeat_wait(struct request *rq)
{
    struct call *c = gate_call(rq);
    if (!c->is_repeat)
        c->g->repeats.waits++;
    c->is_repeat = true;
    return gate_wait_in_flight(rq);
}

struct step gate_repeat_limit(struct request *rq)
{
    struct call *c = gate_call(rq);
    repeat_counts_missed(&c->g->repeats, "limit");
    struct reply *r = reply_problem(rq, ERR_REPEAT_LIMIT, NULL, json_pack("{s:I}", "retry_after", (json_int_t)c->retry_after_s));
    reply_header(r, "Payonce-Charged", "false");
    gate_not_final(rq, r);
    return gate_send(rq, r, COUNT_REFUSED);
}
