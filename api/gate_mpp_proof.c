/* What a transaction that its payer sent did, before anything is stored of it: the receipt's memo says whose it is. */
#include <string.h>

#include "api/gate.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

enum { AGAIN_MS = 300, NOTE_MS = 5000, PUSH_KEEPS_S = 3600 };

/* ---- it moved money, and buys nothing ---- */

static struct step tell_owed(struct request *rq)
{
    struct call *c = gate_call(rq);
    json_t *more = json_pack("{s:s, s:s, s:o}", "network", c->payment.price.net->id, "transaction", hash_text(&c->mpp.tx).s, "refunds",
                             c->mpp.debts ? MOVE(c->mpp.debts) : json_array());
    struct reply *r = reply_problem(rq, ERR_PAYMENT_OWED, NULL, more);
    reply_header(r, "Payonce-Charged", "true");
    return gate_send(rq, r, COUNT_OWED);
}

static void have_debts(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct call *c = gate_call(arg);
    struct slice text = rc == DB_OK ? row_text(rows, 0, "debts") : (struct slice){ NULL, 0 };
    struct json_why why;
    if (text.p) {
        json_decref(c->mpp.debts);
        c->mpp.debts = json_read(text.p, text.n, &why);
    }
    request_go(arg, rc == DB_OK ? tell_owed : gate_store_down);
}

struct step gate_owed_back(struct request *rq)
{
    struct call *c = gate_call(rq);
    DB_ARGS a = { 0 };
    arg_text(&a, c->payment.price.net->id);
    arg_bytes(&a, c->mpp.tx.b, 32);
    db_call(c->g->db, "charge_debts", &a, clock_mono_ms() + NOTE_MS, have_debts, rq);
    return request_wait(rq);
}

static void noted(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    (void)rows;
    request_go(arg, rc == DB_OK ? gate_owed_back : gate_store_down);
}

/* The settler books it once it is final; its debts have these ids. */
static json_t *debts_to_be(const struct call *c, const struct mpp_proof *p)
{
    json_t *list = json_array();
    const char *network = c->payment.price.net->id;
    for (size_t i = 0; i < p->n; i++) {
        const struct tempo_moved *m = &p->transfers[i].moved;
        BUF text = { 0 };
        buf_puts(&text, "payonce debt");
        buf_puts(&text, network);
        buf_add(&text, c->mpp.tx.b, 32);
        for (int shift = 56; shift >= 0; shift -= 8)
            buf_add(&text, &(uint8_t){ (uint8_t)(m->log_index >> shift) }, 1);
        const struct hash32 id = sha256(text.p, text.n);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "debt", hash_text(&id).s, "state", "not final yet", "cause",
                                              mpp_part_name(p->transfers[i].part), "asset", address_checksum(&m->token).s, "amount",
                                              amount_text(m->amount).s, "to", address_checksum(&m->from).s));
    }
    return list;
}

static struct step refuse(struct request *rq)
{
    struct call *c = gate_call(rq);
    DB_ARGS a = { 0 };
    arg_text(&a, c->payment.price.net->id);
    arg_bytes(&a, c->mpp.tx.b, 32);
    log_warn("gateway.mispaid", "tx=%s tool=%s request=%s", hash_text(&c->mpp.tx).s, c->tool->name, request_id(rq));
    db_call(c->g->db, "charge_refuse", &a, clock_mono_ms() + NOTE_MS, noted, rq);
    return request_wait(rq);
}

/* ---- the receipt ---- */

static struct step unseen(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct topic t;
    const int64_t now = clock_mono_ms();
    memcpy(t.b, c->mpp.tx.b, sizeof t.b);
    if (now < c->mpp.give_up_ms && !server_draining(c->g->server))
        return request_park(rq, t, now + AGAIN_MS, gate_mpp_push);
    return gate_send(rq, reply_problem(rq, ERR_PAYMENT_UNSEEN, NULL, json_pack("{s:i}", "retry_after", 2)), COUNT_IN_FLIGHT);
}

static struct step unbound(struct request *rq)
{
    struct call *c = gate_call(rq);
    c->reason = REASON_NO_TRANSFER;
    return gate_challenge(rq, REASON_NO_TRANSFER);
}

/* This one moved nothing for the challenge, but another did: that is no time to name a price. */
static struct step another_pays(struct request *rq)
{
    return gate_send(rq, reply_problem(rq, ERR_PAYMENT_CONFLICT, NULL, json_pack("{s:s}", "reason", "transaction")), COUNT_CONFLICT);
}

static struct step not_yours(struct request *rq)
{
    return gate_problem(rq, ERR_PAYMENT_NOT_YOURS, NULL);
}

/* Its time to land is over: it has landed. What must be long past before it may be called dead is not known, so never soon. */
static void take(struct call *c, const struct mpp_transfer *sale)
{
    c->mpp.charge.memo = sale->moved.memo;
    c->moved = true;
    gate_mpp_payment(c, &sale->moved.from, clock_wall_s() + PUSH_KEEPS_S);
}

static phase *judge(struct call *c, const struct receipt *r)
{
    struct mpp_call *m = &c->mpp;
    const struct mpp_want want = { m->credential.challenge.realm, m->credential.challenge.id, m->asked, m->credential.source };
    MPP_PROOF proof = { 0 };
    mpp_prove(r, &want, &proof);
    switch (proof.verdict) {
    case MPP_PROOF_UNKNOWN:
        return unseen;
    case MPP_PROOF_REVERTED:
    case MPP_PROOF_UNBOUND:
        return m->is_second ? another_pays : unbound;
    case MPP_PROOF_PRESENTER:
        return not_yours;
    case MPP_PROOF_PAID:
        if (!m->is_taken && !m->is_second) {
            take(c, proof.sale);
            return gate_presented; /* also late: it is the price, and it was paid */
        }
        c->moved = true;
        m->debts = debts_to_be(c, &proof);
        return gate_owed_back;
    case MPP_PROOF_MISPAID:
        c->moved = true;
        m->debts = debts_to_be(c, &proof);
        return refuse;
    }
    return unseen;
}

static void have_receipt(void *arg, const struct rpc_answer *a, size_t n)
{
    struct call *c = gate_call(arg);
    SCOPE(receipt_done) struct receipt r = { .found = false };
    const bool read = n == 1 && a->rc == RPC_OK && receipt_read(a->result, &r);
    request_go(arg, read ? judge(c, &r) : unseen);
}

struct step gate_mpp_push(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&c->mpp.tx).s) };
    rpc_start(c->seat->rpc, &item, 1, have_receipt, rq);
    return request_wait(rq);
}
