/* A call whose money comes first: proven, its work is begun by whoever may have the answer; failed, what was paid is owed back and
 * the caller is told so. */
#include <string.h>

#include "api/gate.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/json.h"

enum { BEGIN_MS = 10000, READ_MS = 5000 };

/* ---- the work's lease ---- */

static struct step begun(struct request *rq)
{
    FAILPOINT("gateway-after-begin");
    return gate_call(rq)->verdict == VERDICT_ACCEPTED ? gate_work(rq) : gate_say(rq);
}

static void have_begun(void *arg, enum db_rc rc, const struct order_accepted *a)
{
    struct call *c = gate_call(arg);
    metrics_span(c->g->metrics, SPAN_ACCEPT, c->asked_ms);
    c->verdict = a->verdict;
    c->receipt = a->receipt;
    c->epoch = a->epoch;
    request_go(arg, rc == DB_OK ? begun : gate_store_down);
}

struct step gate_begin_work(struct request *rq)
{
    struct call *c = gate_call(rq);
    OWNED char *by = gate_by(rq);
    FAILPOINT("gateway-before-begin");
    c->asked_ms = clock_mono_ms();
    orders_begin(c->g->db, &c->order, &c->g->instance, gate_lease_s(c), gate_chain_ms(c), by, clock_mono_ms() + BEGIN_MS, have_begun, rq);
    return request_wait(rq);
}

/* ---- paid, and the work failed ---- */

/* What the row says is owed back, as receipts say it, and of which token. */
static json_t *owed_members(const struct call *c, const struct db_rows *rows)
{
    struct json_why why;
    struct slice text = row_text(rows, 0, "refunds"), asset = row_bytes(rows, 0, "asset");
    struct address a;
    memcpy(a.b, asset.p, sizeof a.b);
    json_t *o = gate_order_members(c);
    json_object_set_new(o, "receipt", json_sprintf("%s/receipts/%s", c->g->config->public_url, receipt_id_text(&c->receipt).s));
    json_object_set_new(o, "network", json_of_slice(row_text(rows, 0, "network")));
    json_object_set_new(o, "asset", json_string(address_checksum(&a).s));
    json_t *refunds = text.p ? json_read(text.p, text.n, &why) : NULL;
    if (refunds)
        json_object_set_new(o, "refunds", refunds);
    if (c->has_work && c->work.status > 0)
        json_object_set_new(o, "upstream_status", json_integer(c->work.status));
    return o;
}

static struct step tell(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct reply *r = reply_problem(rq, ERR_WORK_FAILED_PAID, NULL, MOVE(c->more));
    reply_header(r, "Payonce-Charged", "true");
    if (c->outcome.has_tx)
        c->rail->settled(rq, r, NULL);
    return gate_send(rq, r, COUNT_OWED);
}

static void have_owed(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct call *c = gate_call(arg);
    if (rc != DB_OK || db_count(rows) == 0) {
        request_go(arg, gate_store_down);
        return;
    }
    (void)row_copy(rows, 0, "receipt", c->receipt.b, sizeof c->receipt.b);
    c->outcome = (struct outcome){ .net = gateway_net(c->g, row_text(rows, 0, "network")) };
    c->outcome.has_tx = row_copy(rows, 0, "tx", c->outcome.tx.b, sizeof c->outcome.tx.b);
    c->more = owed_members(c, rows);
    request_go(arg, tell);
}

struct step gate_owed(struct request *rq)
{
    struct call *c = gate_call(rq);
    DB_ARGS a = { 0 };
    arg_bytes(&a, c->order.b, sizeof c->order.b);
    db_call(c->g->db, "order_by_id", &a, clock_mono_ms() + READ_MS, have_owed, rq);
    return request_wait(rq);
}
