/* A request that names a payment id and brings no payment: it is told the price only when nothing that was signed for
 * that id can still land, or did. An id proves nothing about who asks: it finds a status, never an answer. */
#include <string.h>

#include "api/gate.h"
#include "base/clock.h"
#include "base/log.h"

enum { READ_MS = 5000 };

static const struct named {
    const char *verdict;
    enum err err;
    int retry_after_s;
} words[] = {
    { "in_flight", ERR_PAYMENT_IN_FLIGHT, 5 },
    { "in_review", ERR_IN_REVIEW, 60 },
    { "paid", ERR_ALREADY_PAID, 0 },
    { "done_uncharged", ERR_DONE_UNCHARGED, 0 },
    { "conflict", ERR_PAYMENT_CONFLICT, 0 },
};

static json_t *members(const struct call *c, const struct named *w)
{
    const char *url = c->g->config->public_url;
    const struct id_text order = order_id_text(&c->order), receipt = receipt_id_text(&c->receipt);
    if (w->err == ERR_PAYMENT_CONFLICT)
        return json_pack("{s:s}", "reason", "request");
    json_t *more = json_pack("{s:s, s:o}", "order_id", order.s, "poll", json_sprintf("%s/orders/%s", url, order.s));
    if (w->retry_after_s > 0)
        json_object_set_new(more, "retry_after", json_integer(w->retry_after_s));
    if (w->err == ERR_ALREADY_PAID)
        json_object_set_new(more, "receipt", json_sprintf("%s/receipts/%s", url, receipt.s));
    if (c->seat && c->outcome.dead_after > 0) {
        json_object_set_new(more, "final", json_false());
        seat_set_known_by(c->seat, c->outcome.dead_after, more);
    }
    return more;
}

static struct step tell(struct request *rq, const struct named *w)
{
    const struct call *c = gate_call(rq);
    if (w->err == ERR_PAYMENT_CONFLICT)
        log_warn("gateway.conflict", "reason=request tool=%s payer=none request=%s", c->tool->name, request_id(rq));
    return gate_send(rq, reply_problem(rq, w->err, NULL, members(c, w)), outcome_of(w->err));
}

static struct step named(struct request *rq)
{
    const struct call *c = gate_call(rq);
    if (!c->outcome.known) /* perhaps it is paid: that is no time to name a price */
        return gate_problem(rq, ERR_STORE_UNAVAILABLE, NULL);
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(c->outcome.status, words[i].verdict) == 0)
            return tell(rq, &words[i]);
    return gate_challenge(rq, REASON_REQUIRED);
}

static void have_named(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct call *c = gate_call(arg);
    c->outcome.known = rc == DB_OK;
    if (rc == DB_OK) {
        struct slice verdict = row_text(rows, 0, "verdict");
        memcpy(c->outcome.status, verdict.p,
               verdict.n < sizeof c->outcome.status ? verdict.n : sizeof c->outcome.status - 1);
        (void)row_copy(rows, 0, "order_id", c->order.b, sizeof c->order.b);
        (void)row_copy(rows, 0, "receipt", c->receipt.b, sizeof c->receipt.b);
        c->outcome.dead_after = row_int(rows, 0, "dead_after");
        for (size_t i = 0; i < c->g->config->net_count; i++)
            if (row_is(rows, 0, "network", c->g->config->nets[i].id))
                c->seat = &c->g->seats[i];
    }
    request_go(arg, named);
}

struct step gate_key(struct request *rq, struct slice payment_id)
{
    struct call *c = gate_call(rq);
    DB_ARGS a = { 0 };
    arg_slice(&a, payment_id);
    arg_bytes(&a, c->request.b, sizeof c->request.b);
    db_call(c->g->db, "order_named", &a, clock_mono_ms() + READ_MS, have_named, rq);
    return request_wait(rq);
}
