/* The rail MPP: a credential echoes a challenge of ours and brings a transaction on Tempo, sent by its payer (push) or signed for us to
 * send (pull). Its clients pay again on a 402, so none is given unless it is certain that nothing moved. */
#include <string.h>

#include "api/gate.h"
#include "base/clock.h"
#include "base/log.h"

enum { FIND_MS = 5000, UNSEEN_MS = 4000 };

static struct slice key_of(const struct gateway *g, size_t i)
{
    return (struct slice){ (const char *)g->mpp_key[i], sizeof g->mpp_key[i] };
}

/* ---- out ---- */

/* Accept-Payment may say that a client would not pay so; what it prefers among methods is its own choice then. Where there is no
 * other way to pay it is told all the same. */
static bool is_wanted(struct request *rq)
{
    struct slice accept;
    return !gate_call(rq)->challenge || request_header(rq, "Accept-Payment", &accept) != 1 ||
           mpp_accept(accept, MPP_METHOD, MPP_INTENT) > 0;
}

void gate_mpp_offers(struct request *rq, struct reply *r, const struct quote_id *quote)
{
    const struct call *c = gate_call(rq);
    const int64_t expires = clock_wall_s() + c->g->config->quote_ttl_s;
    if (!is_wanted(rq))
        return;
    for (size_t i = 0; i < c->mpp_terms->price_count; i++) {
        const struct price *p = &c->mpp_terms->prices[i];
        struct quote_text text;
        BUF value = { 0 };
        quote_write(&c->g->quote_key, quote, expires, c->tool->name, &c->request, p, &text);
        const struct mpp_offer offer = { .key = key_of(c->g, 0),
                                         .realm = p->net->realm,
                                         .price = p,
                                         .external_id = slice_of(text.s),
                                         .expires = expires };
        mpp_challenge_write(&offer, &value);
        reply_header(r, "WWW-Authenticate", value.p);
    }
}

struct step gate_mpp_fault(struct request *rq, enum mpp_fault f, const char *detail)
{
    struct call *c = gate_call(rq);
    const char *problem = mpp_fault_problem(f);
    c->fault = f;
    if (strcmp(problem, "bad-request") == 0 || strcmp(problem, "method-unsupported") == 0)
        return gate_problem(rq, ERR_PAYMENT_FIELD, detail ? detail : mpp_fault_text(f));
    return gate_challenge(rq, REASON_REQUIRED);
}

/* ---- what was presented before ---- */

/* All that orders know of a payment. */
void gate_mpp_payment(struct call *c, const struct address *payer, int64_t valid_before)
{
    struct mpp_call *m = &c->mpp;
    struct authorization *a = &c->payment.auth;
    c->payment.version = 1;
    c->payment.signer_proven = true;
    *a = (struct authorization){ .from = *payer, .to = m->asked.recipient, .value = m->asked.amount, .nonce = m->charge.challenge };
    a->valid_before = amount_of((uint64_t)valid_before);
    memcpy(a->signature, m->charge.tx.b, 32);
    a->signature_n = 32;
}

static struct step known(struct request *rq)
{
    struct call *c = gate_call(rq);
    c->known = KNOWN_ALL;
    return gate_find(rq);
}

static struct step fresh(struct request *rq)
{
    struct call *c = gate_call(rq);
    c->verified = true;
    if (!c->seat->pinned)
        return gate_problem(rq, ERR_CHAIN_UNAVAILABLE, NULL);
    c->mpp.give_up_ms = clock_mono_ms() + UNSEEN_MS;
    return c->mpp.credential.mode == MPP_PULL ? gate_mpp_pull(rq) : gate_mpp_push(rq);
}

/* One hash, one use: what this transaction did is said by the chain, and it is not this call's any more. */
static struct step taken(struct request *rq)
{
    struct call *c = gate_call(rq);
    c->mpp.is_taken = true;
    return c->mpp.credential.mode == MPP_PULL ? gate_mpp_fault(rq, MPP_FAULT_NOT_OURS, NULL) : fresh(rq);
}

static void have_charge(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct call *c = gate_call(arg);
    struct mpp_call *m = &c->mpp;
    struct address payer;
    if (rc != DB_OK) {
        request_go(arg, gate_store_down);
    } else if (row_is(rows, 0, "verdict", "known")) {
        (void)row_copy(rows, 0, "payer", payer.b, sizeof payer.b);
        (void)row_copy(rows, 0, "tx", m->charge.tx.b, sizeof m->charge.tx.b);
        gate_mpp_payment(c, &payer, row_int(rows, 0, "valid_before"));
        m->is_second = !hash_eq(&m->charge.tx, &m->tx) && m->credential.mode == MPP_PUSH;
        request_go(arg, m->is_second ? fresh : known);
    } else {
        request_go(arg, row_is(rows, 0, "verdict", "new") ? fresh : taken);
    }
}

static struct step find_charge(struct request *rq)
{
    struct call *c = gate_call(rq);
    DB_ARGS a = { 0 };
    arg_bytes(&a, c->mpp.charge.challenge.b, 32);
    arg_text(&a, c->payment.price.net->id);
    arg_bytes(&a, c->mpp.charge.tx.b, 32);
    db_call(c->g->db, "charge_find", &a, clock_mono_ms() + FIND_MS, have_charge, rq);
    return request_wait(rq);
}

/* ---- in ---- */

/* The price that was asked for, of a token of ours; its amount is the challenge's. */
static bool find_price(struct call *c)
{
    const struct mpp_charge *asked = &c->mpp.asked;
    for (size_t i = 0; i < c->g->config->net_count; i++) {
        const struct net *n = &c->g->config->nets[i];
        for (size_t k = 0; n->tempo && n->chain_id == asked->chain_id && k < n->token_count; k++)
            if (address_eq(&n->tokens[k].address, &asked->currency)) {
                c->payment.price = (struct price){ n, &n->tokens[k], asked->amount, asked->recipient };
                c->seat = gateway_seat(c->g, n);
                return true;
            }
    }
    return false;
}

/* The challenge is ours by its MAC; its quote says for which call. */
static bool for_this_call(struct call *c)
{
    const enum quote_rc rc = quote_read(&c->g->quote_key, slice_of(c->mpp.asked.external_id), c->tool->name, &c->request, &c->payment.price,
                                        clock_wall_s(), &c->payment.quote);
    c->payment.has_quote = rc != QUOTE_OTHER;
    return c->payment.has_quote;
}

static struct step another_call(struct request *rq)
{
    const struct call *c = gate_call(rq);
    log_warn("gateway.conflict", "reason=request tool=%s payer=unknown request=%s", c->tool->name, request_id(rq));
    return gate_send(rq, reply_problem(rq, ERR_PAYMENT_CONFLICT, NULL, json_pack("{s:s}", "reason", "request")), COUNT_CONFLICT);
}

/* Ours, by any of the keys that are honoured. Late or not: what was paid in time, or for the price, is served. */
static enum mpp_fault check_challenge(struct call *c)
{
    enum mpp_fault f = MPP_FAULT_NOT_OURS;
    for (size_t i = 0; f == MPP_FAULT_NOT_OURS && i < c->g->quote_key.n; i++) {
        const struct mpp_in in = { key_of(c->g, i), c->mpp_terms->prices[0].net->realm, clock_wall_ms() };
        bool late;
        f = mpp_credential_check(&c->mpp.credential, &in, &c->mpp.asked, &late);
    }
    return f;
}

struct step gate_mpp(struct request *rq, struct slice token)
{
    struct call *c = gate_call(rq);
    struct mpp_call *m = &c->mpp;
    const char *detail = NULL;
    c->rail = &rail_mpp;
    c->pay_first = true;
    if (c->g->config->net_count == 0 || c->mpp_terms->price_count == 0)
        return gate_mpp_fault(rq, MPP_FAULT_NOT_OURS, NULL);
    enum mpp_fault f = mpp_credential_read(token, &m->credential, &detail);
    if (f == MPP_FAULT_NONE)
        f = check_challenge(c);
    if (f != MPP_FAULT_NONE)
        return gate_mpp_fault(rq, f, detail);
    if (!find_price(c))
        return gate_mpp_fault(rq, MPP_FAULT_NOT_OURS, NULL);
    const enum err e = gate_payment_id(rq, &c->payment);
    if (e != ERR_NONE)
        return gate_problem(rq, e, NULL);
    if (!for_this_call(c))
        return another_call(rq);
    m->tx = m->charge.tx = m->credential.hash;
    m->charge.challenge = sha256(m->credential.challenge.id.p, m->credential.challenge.id.n);
    return find_charge(rq);
}

void gate_mpp_done(struct call *c)
{
    mpp_credential_done(&c->mpp.credential);
    json_decref(c->mpp.debts);
}

/* ---- as a rail ---- */

/* What its payer sent was proven before it was looked up. */
static struct step verify(struct request *rq)
{
    const struct call *c = gate_call(rq);
    return c->mpp.credential.mode == MPP_PULL ? gate_mpp_balance(rq) : gate_accept(rq);
}

/* What its payer sent is there; what is for us to send was signed all the same. */
static bool worth_keeping(const struct call *c)
{
    return c->known == KNOWN_NONE && c->verified;
}

static bool may_repeat(const struct call *c)
{
    return c->verified;
}

static void settled(struct request *rq, struct reply *r, json_t *extra)
{
    const struct call *c = gate_call(rq);
    BUF value = { 0 };
    json_decref(extra);
    if (!reply_is_success(r))
        return;
    mpp_receipt_write(&c->outcome.tx, c->outcome.block_time, slice_of(c->mpp.asked.external_id), &value);
    reply_header(r, "Payment-Receipt", value.p);
}

static void pending(const struct call *c, struct reply *r)
{
    (void)c, (void)r; /* Retry-After says it all */
}

const struct rail rail_mpp = { "mpp", "authorization", verify, worth_keeping, may_repeat, settled, pending, ERR_PAYMENT_PENDING, ERR_ANSWER_CLOSED };
