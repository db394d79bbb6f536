/* A transaction that is for us to send: whether it may be, before anything of it is stored or sent. */
#include <string.h>

#include "api/gate.h"

enum { NEEDS_S = 3 };

/* Its terms stand in the challenge, which is ours; what is left is the one call that it may make. */
struct step gate_mpp_pull(struct request *rq)
{
    struct call *c = gate_call(rq);
    struct mpp_call *m = &c->mpp;
    struct tempo_transfer t;
    const struct tempo_signed *tx = &m->credential.tx;
    const enum mpp_fault f = mpp_pull_check(&m->credential, &m->asked, gate_chain_ms(c) / 1000);
    if (f != MPP_FAULT_NONE)
        return gate_mpp_fault(rq, f, NULL);
    if (!tempo_transfer_read(tx->tx.call.input, &t))
        return gate_mpp_fault(rq, MPP_FAULT_TX_CALLDATA, NULL);
    m->charge.memo = t.memo;
    m->charge.raw = (struct slice){ (const char *)m->credential.raw, m->credential.raw_n };
    c->need_s = NEEDS_S;
    gate_mpp_payment(c, &tx->sender, (int64_t)tx->tx.valid_before);
    return gate_presented(rq);
}

/* ---- can it pay? ---- */

/* Sent by somebody else already, it is why the balance is low. */
static bool is_mined(const struct rpc_answer *a)
{
    SCOPE(receipt_done) struct receipt r = { .found = false };
    return receipt_read(a->result, &r) && r.found;
}

static struct step chain_down(struct request *rq)
{
    return gate_problem(rq, ERR_CHAIN_UNAVAILABLE, NULL);
}

static void have_balance(void *arg, const struct rpc_answer *a, size_t n)
{
    struct call *c = gate_call(arg);
    size_t size = 0;
    OWNED uint8_t *word = n == 2 && a[0].rc == RPC_OK ? rpc_read_data(a[0].result, &size) : NULL;
    if (!word || size != 32 || a[1].rc != RPC_OK) {
        request_go(arg, chain_down);
    } else if (amount_cmp(amount_from_be(word), c->mpp.asked.amount) >= 0 || is_mined(&a[1])) {
        request_go(arg, gate_accept);
    } else {
        c->fault = MPP_FAULT_TX_BALANCE;
        c->reason = REASON_BALANCE;
        request_go(arg, gate_refuse);
    }
}

struct step gate_mpp_balance(struct request *rq)
{
    struct call *c = gate_call(rq);
    const struct balance_call call = balance_call(&c->payment.auth.from);
    struct rpc_item items[] = {
        { "eth_call", json_pack("[{s:s, s:o}, s]", "to", address_lower(&c->mpp.asked.currency).s, "data", rpc_hex(call.b, sizeof call.b), "latest") },
        { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&c->mpp.tx).s) },
    };
    rpc_start(c->seat->rpc, items, COUNT(items), have_balance, rq);
    return request_wait(rq);
}
