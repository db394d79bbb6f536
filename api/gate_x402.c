/* The rail x402: an authorization in a header, judged by our terms and one block of the chain, submitted by us. */
#include "api/gate.h"
#include "base/clock.h"
#include "receipts/receipts.h"

struct step gate_x402(struct request *rq, struct slice header, int version)
{
    struct call *c = gate_call(rq);
    struct x402_in in = { c->terms, &c->g->quote_key, &c->request, clock_wall_s() };
    const char *detail = NULL;
    bool readable;
    enum err e = x402_payment(&in, header, version, &c->payment, &c->reason, &readable, &detail);
    if (e == ERR_PAYMENT_REFUSED && !readable)
        return gate_challenge(rq, c->reason);
    if (e == ERR_NONE || e == ERR_PAYMENT_REFUSED)
        e = gate_payment_id(rq, &c->payment);
    if (e != ERR_NONE)
        return gate_problem(rq, e, detail);
    c->seat = gateway_seat(c->g, c->payment.price.net);
    c->need_s = terms_settle_s(c->payment.price.net) + 2;
    return gate_presented(rq);
}

/* One on our terms; and other terms over a nonce that is watched already. */
static bool worth_keeping(const struct call *c)
{
    enum reason r = x402_check(&c->payment, c->terms, clock_wall_s(), c->need_s);
    switch (c->known) {
    case KNOWN_ALL:
        return false;
    case KNOWN_NONE:
        return r == REASON_NONE;
    case KNOWN_NONCE:
        return r != REASON_VALID_BEFORE && r != REASON_VALID_AFTER;
    }
    return false;
}

/* Only a contract can tell its own signatures, so such payers are first asked of the chain. */
static bool may_repeat(const struct call *c)
{
    return c->payment.signer_proven && x402_check(&c->payment, c->terms, gate_chain_ms(c) / 1000, 0) == REASON_NONE;
}

static const char *header_name(const struct call *c)
{
    return c->payment.version == 1 ? "X-PAYMENT-RESPONSE" : "PAYMENT-RESPONSE";
}

/* x402's offer-receipt, where it is configured; NULL: it is not. */
static json_t *signed_receipt(struct request *rq, const struct net *net)
{
    const struct call *c = gate_call(rq);
    const struct slice target = request_target(rq);
    if (!c->g->config->offer_receipt)
        return NULL;
    OWNED char *url = str_format("%s%.*s", c->g->config->public_url, (int)target.n, target.p);
    json_t *receipt = x402_receipt(&c->g->receipt_key, net->id, url, address_checksum(&c->payment.auth.from).s,
                                   clock_wall_s(), hash_text(&c->outcome.tx).s);
    return json_pack("{s:o}", "offer-receipt", x402_offer_receipt("receipt", receipt));
}

static void settled(struct request *rq, struct reply *r, json_t *extra)
{
    const struct call *c = gate_call(rq);
    const struct net *net = c->outcome.net ? c->outcome.net : c->seat->net;
    BUF value = { 0 };
    x402_response(c->payment.version, net, &c->payment.auth.from, &c->outcome.tx, NULL, extra, extra ? signed_receipt(rq, net) : NULL, &value);
    reply_header(r, header_name(c), value.p);
}

/* settlement_pending with the hash, where there is one. */
static void pending(const struct call *c, struct reply *r)
{
    BUF value = { 0 };
    x402_response(c->payment.version, c->seat->net, &c->payment.auth.from, c->outcome.has_hash ? &c->outcome.last_hash : NULL,
                  "settlement_pending", NULL, NULL, &value);
    reply_header(r, header_name(c), value.p);
}

const struct rail rail_x402 = { "x402", NULL, gate_verify, worth_keeping, may_repeat, settled, pending, ERR_PAYMENT_IN_FLIGHT, ERR_ANSWER_GONE };
