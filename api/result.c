/* GET /receipts/{id}/result: the answer that was paid for, for the wallet that paid, by a sign-in. Without one: what to sign. What a
 * stranger is told does not depend on whether there is such a receipt, or an answer. */
#include <string.h>

#include "api/answers.h"
#include "base/clock.h"
#include "base/json.h"
#include "settle/siwx.h"
#include "settle/x402.h"

enum { READ_MS = 5000 };

static const char statement[] = "Sign in to fetch the answer that this wallet has paid for.";

struct result {
    struct order_id receipt, order, attempt;
    struct siwx sign_in;
    struct hash32 nonce;
    struct seat *seat;               /* of the chain that the sign-in names */
    bool is_payer;                   /* what the sign-in claims is the wallet that paid; it is not proven yet */
    enum err err;
    const struct net *net;           /* where it was paid */
    struct hash32 tx;
    struct work work;
    bool has_work, told;
};

static struct result *result_of(struct request *rq)
{
    return request_memory(rq, sizeof(struct result));
}

static char *own_url(const struct gateway *g, const struct order_id *receipt)
{
    return str_format("%s/receipts/%s/result", g->config->public_url, receipt_id_text(receipt).s);
}

/* ---- replies ---- */

static struct step problem(struct request *rq, enum err e, const char *detail, json_t *more)
{
    struct reply *r = reply_problem(rq, e, detail, more);
    reply_header(r, "Vary", "SIGN-IN-WITH-X");
    return request_reply(rq, r);
}

static struct step ask_to_sign(struct request *rq, const struct siwx_want *w)
{
    const struct gateway *g = request_app(rq);
    json_t *chains = json_array();
    for (size_t i = 0; i < g->config->net_count; i++)
        json_array_append_new(chains, json_pack("{s:s, s:s}", "chainId", g->config->nets[i].id, "type", "eip191"));
    json_t *more = json_pack("{s:{s:{s:o, s:o}}}", "extensions", "sign-in-with-x", "info", siwx_offer(w, statement), "supportedChains", chains);
    struct reply *r = reply_problem(rq, ERR_SIGN_IN_REQUIRED, NULL, more);
    reply_header(r, "WWW-Authenticate", "SIGN-IN-WITH-X");
    reply_header(r, "Vary", "SIGN-IN-WITH-X");
    return request_reply(rq, r);
}

static struct step refuse(struct request *rq)
{
    const struct result *c = result_of(rq);
    const struct gateway *g = request_app(rq);
    const struct id_text order = order_id_text(&c->order);
    json_t *more = NULL;
    if (c->err == ERR_PAYMENT_IN_FLIGHT)
        more = json_pack("{s:s, s:o, s:i}", "order_id", order.s, "poll", json_sprintf("%s/orders/%s", g->config->public_url, order.s),
                         "retry_after", 5);
    else if (c->err == ERR_STORE_UNAVAILABLE || c->err == ERR_CHAIN_UNAVAILABLE)
        more = json_pack("{s:i}", "retry_after", 2);
    return problem(rq, c->err, NULL, more);
}

static struct step answer(struct request *rq)
{
    struct result *c = result_of(rq);
    const struct gateway *g = request_app(rq);
    struct reply *r = reply_new(c->work.status);
    OWNED char *receipt = str_format("%s/receipts/%s", g->config->public_url, receipt_id_text(&c->receipt).s);
    BUF settled = { 0 };
    size_t i;
    json_t *h;
    json_array_foreach(c->work.headers, i, h)
        if (strcasecmp(json_string_value(json_array_get(h, 0)), "cache-control") != 0)
            reply_header(r, json_string_value(json_array_get(h, 0)), json_string_value(json_array_get(h, 1)));
    if (c->net) {
        x402_response(2, c->net, &c->sign_in.address, &c->tx, NULL, json_pack("{s:s, s:b}", "receipt", receipt, "replayed", 1), NULL,
                      &settled);
        reply_header(r, "PAYMENT-RESPONSE", settled.p);
    }
    reply_header(r, "Cache-Control", "private, no-store");
    reply_header(r, "Vary", "SIGN-IN-WITH-X");
    reply_header(r, "Payonce-Order", order_id_text(&c->order).s);
    reply_header(r, "Payonce-Receipt", receipt);
    reply_header(r, "Payonce-Receipt-Id", receipt_id_text(&c->receipt).s);
    reply_header(r, "Payonce-Charged", "false");
    reply_header(r, "Payonce-Replayed", "true");
    reply_body_take(r, NULL, &c->work.body);
    c->told = true;
    return request_reply(rq, r);
}

/* ---- the sign-in is proven ---- */

static const struct { const char *verdict; enum err err; } verdicts[] = {
    { "used", ERR_SIGN_IN_USED },
    { "wallet", ERR_SIGN_IN_WALLET },
    { "in_flight", ERR_PAYMENT_IN_FLIGHT },
    { "gone", ERR_ANSWER_GONE },
};

static void have_result(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct result *c = result_of(arg);
    const struct gateway *g = request_app(arg);
    c->err = ERR_STORE_UNAVAILABLE;
    for (size_t i = 0; rc == DB_OK && i < COUNT(verdicts); i++)
        if (row_is(rows, 0, "verdict", verdicts[i].verdict))
            c->err = verdicts[i].err;
    if (rc == DB_OK)
        (void)row_copy(rows, 0, "order_id", c->order.b, sizeof c->order.b);
    if (rc == DB_OK && row_is(rows, 0, "verdict", "result")) {
        (void)row_copy(rows, 0, "answer_tx", c->tx.b, sizeof c->tx.b);
        for (size_t i = 0; i < g->config->net_count; i++)
            if (row_is(rows, 0, "network", g->config->nets[i].id))
                c->net = &g->config->nets[i];
        c->has_work = answer_open(g, &c->order, (int)row_int(rows, 0, "answer_status"), row_text(rows, 0, "answer_headers"),
                                  row_bytes(rows, 0, "answer_body"), &c->work);
    }
    request_go(arg, c->has_work ? answer : refuse);
}

static struct step read_result(struct request *rq)
{
    struct result *c = result_of(rq);
    const struct gateway *g = request_app(rq);
    char instance[9];
    DB_ARGS a = { 0 };
    hex_write_bare(instance, g->instance.b, 4);
    OWNED char *by = str_format("{\"actor\":\"gateway:%s\",\"request\":\"%s\"}", instance, request_id(rq));
    bytes_random(&c->attempt, sizeof c->attempt);
    arg_bytes(&a, c->receipt.b, sizeof c->receipt.b);
    arg_bytes(&a, c->sign_in.address.b, sizeof c->sign_in.address.b);
    arg_bytes(&a, c->nonce.b, sizeof c->nonce.b);
    arg_bytes(&a, c->attempt.b, sizeof c->attempt.b);
    arg_int(&a, g->config->result_retention_s);
    arg_text(&a, by);
    db_call(g->db, "result_read", &a, clock_mono_ms() + READ_MS, have_result, rq);
    return request_wait(rq);
}

/* ---- a contract's signature: only its code can tell, and it is asked only where it claims to be the wallet that paid ---- */

static void have_word(void *arg, const struct rpc_answer *a, size_t n)
{
    struct result *c = result_of(arg);
    size_t size = 0;
    OWNED uint8_t *reply = n == 1 && a->rc == RPC_OK ? rpc_read_data(a->result, &size) : NULL;
    const bool yes = reply && siwx_contract_says_yes(reply, size);
    c->err = n == 1 && a->rc != RPC_UNAVAILABLE ? ERR_SIGN_IN_SIGNATURE : ERR_CHAIN_UNAVAILABLE;
    request_go(arg, yes ? read_result : refuse);
}

static struct step ask_contract(struct request *rq)
{
    struct result *c = result_of(rq);
    BUF data = { 0 };
    if (!c->is_payer)
        return refuse(rq);
    siwx_contract_call(&c->sign_in, &data);
    struct rpc_item item = { "eth_call", json_pack("[{s:s, s:o}, s]", "to", address_lower(&c->sign_in.address).s, "data",
                                                   rpc_hex(data.p, data.n), "latest") };
    rpc_start(c->seat->rpc, &item, 1, have_word, rq);
    return request_wait(rq);
}

static void have_payer(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct result *c = result_of(arg);
    struct address payer;
    c->err = rc == DB_OK ? ERR_SIGN_IN_WALLET : ERR_STORE_UNAVAILABLE;
    c->is_payer = rc == DB_OK && row_copy(rows, 0, "payer", payer.b, sizeof payer.b) && address_eq(&payer, &c->sign_in.address);
    request_go(arg, ask_contract);
}

static struct step find_payer(struct request *rq)
{
    struct result *c = result_of(rq);
    const struct gateway *g = request_app(rq);
    DB_ARGS a = { 0 };
    arg_bytes(&a, c->receipt.b, sizeof c->receipt.b);
    db_call(g->db, "receipt_payer", &a, clock_mono_ms() + READ_MS, have_payer, rq);
    return request_wait(rq);
}

/* ---- the request ---- */

static void ended(struct request *rq, bool delivered)
{
    struct result *c = result_of(rq);
    if (delivered && c->told)
        outcome_delivered(request_app(rq), &c->order);
    if (c->has_work)
        work_done(&c->work);
    siwx_done(&c->sign_in);
}

static bool find_seat(const struct gateway *g, struct result *c)
{
    for (size_t i = 0; i < g->config->net_count; i++)
        if (g->config->nets[i].chain_id == c->sign_in.chain_id)
            c->seat = &g->seats[i];
    return c->seat != NULL;
}

struct step result_begin(struct request *rq, const struct order_id *receipt)
{
    struct result *c = result_of(rq);
    const struct gateway *g = request_app(rq);
    OWNED char *uri = own_url(g, receipt), *domain = url_host(g->config->public_url);
    const struct siwx_want want = { &g->quote_key, domain, uri, clock_wall_s() };
    struct slice header;
    const char *detail;
    c->receipt = *receipt;
    request_on_end(rq, ended);
    const size_t n = request_header(rq, "SIGN-IN-WITH-X", &header);
    if (n == 0)
        return ask_to_sign(rq, &want);
    if (n > 1 || !siwx_read(header, &c->sign_in, &detail))
        return problem(rq, ERR_SIGN_IN_FORM, n > 1 ? "SIGN-IN-WITH-X was sent more than once." : detail, NULL);
    if (!find_seat(g, c))
        return problem(rq, ERR_SIGN_IN_FORM, "chainId", NULL);
    const enum err e = siwx_check(&c->sign_in, &want, &c->nonce);
    if (e != ERR_NONE)
        return problem(rq, e, NULL, NULL);
    return siwx_signed(&c->sign_in) ? read_result(rq) : find_payer(rq);
}
