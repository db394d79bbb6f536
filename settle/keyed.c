#include "settle/keyed.h"

#include <string.h>

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "chain/tempo_tx.h"
#include "settle/desk.h"

/* The first transfer to a new holder, under a new key, was measured at 560,000; the estimate does not know the key. */
enum { GAS_MOST = 1200000, GAS_KEY = 300000 };
/* A million million of the gas price are one unit of a token with six decimals, as fees are counted. */
#define FEE_UNIT 1000000000000u

bool keyed_network(const struct net *n)
{
    return n->tempo;
}

bool keyed_token(const struct address *a)
{
    return tempo_is_token(a);
}

struct hash32 keyed_key(const struct hash32 *name)
{
    struct hash32 key;
    amount_to_be(tempo_key_of(name), key.b);
    return key;
}

struct amount keyed_cost(const struct desk *d)
{
    const struct amount fee = desk_fee(d), most = d->net->fee_max;
    const uint64_t price = amount_u64_cap(amount_cmp(fee, most) < 0 ? fee : most);
    return amount_of(price / FEE_UNIT * GAS_MOST + price % FEE_UNIT * GAS_MOST / FEE_UNIT + 1);
}

static void call_of(const struct keyed_refund *r, struct buf *ret)
{
    const struct tempo_transfer t = { r->payer, r->amount, r->name };
    tempo_transfer_call(ret, &t);
}

/* ---- before ---- */

static void read_estimate(const struct rpc_answer *a, struct keyed_refund *r, struct keyed_answer *ret)
{
    size_t n = 0;
    uint64_t gas;
    *ret = (struct keyed_answer){ .now = KEYED_UNANSWERED };
    if (a->rc == RPC_OK && rpc_read_u64(a->result, &gas)) {
        r->gas = gas + gas / 4 + GAS_KEY;
        ret->now = KEYED_PAYABLE;
    } else if (a->rc == RPC_ERROR && a->data) {
        JSON *hex = json_string(a->data);
        OWNED uint8_t *data = rpc_read_data(hex, &n);
        ret->now = KEYED_REFUSED;
        ret->why = data ? revert_read((struct slice){ (const char *)data, n }) : REVERT_OTHER;
    }
}

void keyed_ask(struct desk *d, struct keyed_refund *r, size_t n, struct keyed_answer *ret)
{
    OWNED struct rpc_item *items = mem_new(n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        BUF call = { 0 };
        call_of(&r[i], &call);
        items[i] = (struct rpc_item){ "eth_estimateGas",
                                      json_pack("[{s:s, s:s, s:o}]", "from", address_lower(&r[i].wallet).s, "to",
                                                address_lower(&r[i].token).s, "data", rpc_hex(call.p, call.n)) };
    }
    struct rpc_answers a = rpc_wait(d->rpc, items, n);
    for (size_t i = 0; i < n; i++)
        read_estimate(&a.a[i], &r[i], &ret[i]);
    rpc_answers_done(&a);
}

bool keyed_sign(struct desk *d, const struct keyed_refund *r, const struct key *wallet, struct buf *ret_raw,
                struct hash32 *ret_hash)
{
    BUF call = { 0 };
    struct tempo_tx tx = { .chain_id = d->net->chain_id,
                           .gas = r->gas,
                           .nonce = r->count,
                           .max_tip = d->tip,
                           .max_fee = desk_fee(d),
                           .nonce_key = tempo_key_of(&r->name),
                           .valid_before = (uint64_t)r->valid_before,
                           .has_fee_token = true,
                           .fee_token = r->fee_token };
    if (amount_cmp(tx.max_fee, d->net->fee_max) > 0) {
        log_warn("settler.fees_high", "network=%s fee_wei=%s", d->net->id, amount_text(tx.max_fee).s);
        return false;
    }
    call_of(r, &call);
    tx.call = (struct tempo_call){ .to = r->token, .input = { call.p, call.n } };
    return tempo_sign(&tx, wallet, ret_raw, ret_hash);
}

void keyed_send(struct desk *d, const struct hash32 *hash, struct slice raw)
{
    struct rpc_item item = { "eth_sendRawTransaction", json_pack("[o]", rpc_hex(raw.p, raw.n)) };
    FAILPOINT("settler-before-broadcast");
    struct rpc_answers r = rpc_wait_everywhere(d->rpc, item);
    FAILPOINT("settler-after-broadcast");
    for (size_t i = 0; i < r.n; i++)
        if (r.a[i].rc == RPC_ERROR)
            log_info("settler.node_says", "network=%s tx=%s says=%.200s", d->net->id, hash_text(hash).s,
                     r.a[i].message ? r.a[i].message : "");
    rpc_answers_done(&r);
}

/* ---- after ---- */

struct search {
    struct keyed_sent *s;
    bool paid, astray;
};

static void found(void *arg, const struct tempo_moved *m)
{
    struct search *x = arg;
    const struct keyed_refund *r = &x->s->refund;
    if (!m->has_memo || !hash_eq(&m->memo, &r->name) || !address_eq(&m->token, &r->token) ||
        !address_eq(&m->from, &r->wallet))
        return;
    if (address_eq(&m->to, &r->payer)) {
        x->paid = x->paid || amount_cmp(m->amount, r->amount) == 0;
    } else {
        x->astray = true;
        x->s->went_to = m->to;
    }
}

static enum keyed_fate judge(struct desk *d, struct keyed_sent *s, const struct receipt *seen)
{
    SCOPE(receipt_done) struct receipt r = { .found = false };
    const struct log_place place = { seen->tx, seen->block_hash, seen->block };
    struct search x = { .s = s };
    uint64_t time;
    if (seen->block > d->final.number || !desk_landed(d, &place, &r, &time) || r.block > d->final.number)
        return KEYED_UNKNOWN;
    if (!r.success)
        return KEYED_REVERTED;
    if (!tempo_each_transfer(&r, NULL, found, &x))
        return KEYED_UNKNOWN;
    return x.paid ? KEYED_PAID : x.astray ? KEYED_ASTRAY : KEYED_UNKNOWN;
}

static enum keyed_fate absent(const struct desk *d, const struct keyed_sent *s, const struct rpc_answer *counted)
{
    size_t n = 0;
    uint64_t count;
    OWNED uint8_t *word = counted->rc == RPC_OK ? rpc_read_data(counted->result, &n) : NULL;
    if (!word || n != 32 || !amount_u64(amount_from_be(word), &count))
        return KEYED_UNKNOWN;
    if (count > s->refund.count)
        return KEYED_TAKEN;
    return (int64_t)d->final.time >= s->refund.valid_before ? KEYED_DEAD : KEYED_WAITING;
}

static struct rpc_item count_item(const struct desk *d, const struct keyed_refund *r)
{
    BUF call = { 0 };
    tempo_nonce_call(&call, &r->wallet, tempo_key_of(&r->name));
    return (struct rpc_item){ "eth_call", json_pack("[{s:s, s:o}, o]", "to", address_lower(&tempo_nonces).s, "data",
                                                    rpc_hex(call.p, call.n), rpc_u64(d->final.number)) };
}

void keyed_look(struct desk *d, struct keyed_sent *s, size_t n)
{
    OWNED struct rpc_item *items = mem_new(2 * n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        items[2 * i] = (struct rpc_item){ "eth_getTransactionReceipt", json_pack("[s]", hash_text(&s[i].hash).s) };
        items[2 * i + 1] = count_item(d, &s[i].refund);
    }
    struct rpc_answers a = quorum_wait(d, items, 2 * n);
    for (size_t i = 0; i < n; i++) {
        SCOPE(receipt_done) struct receipt r = { .found = false };
        s[i].fate = KEYED_UNKNOWN;
        if (a.a[2 * i].rc == RPC_OK && receipt_read(a.a[2 * i].result, &r))
            s[i].fate = r.found ? judge(d, &s[i], &r) : absent(d, &s[i], &a.a[2 * i + 1]);
    }
    rpc_answers_done(&a);
}
