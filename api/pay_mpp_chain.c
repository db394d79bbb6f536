/* What Tempo says of a transaction of ours, and what it must be told. Its blocks are final when they are made: the latest one
 * is as good as any. */
#include <string.h>

#include "api/pay.h"

/* ---- reads ---- */

static bool read_latest(struct rpc *r, struct block *ret)
{
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0) };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    return got.a[0].rc == RPC_OK && block_read(got.a[0].result, ret);
}

static json_t *hex_of(struct amount a)
{
    uint8_t be[32];
    amount_to_be(a, be);
    return rpc_hex(be, sizeof be);
}

/* getNonce(address,uint256) of the chain's own nonce contract: how many transactions under this key were mined. */
static bool read_nonce(struct rpc *r, const struct address *payer, struct amount key, struct amount *ret)
{
    static const char nonces[] = "0x4e4f4e4345000000000000000000000000000000";
    uint8_t data[68] = { 0x89, 0x53, 0x58, 0x03 };
    struct hash32 word;
    memcpy(data + 16, payer->b, sizeof payer->b);
    amount_to_be(key, data + 36);
    struct rpc_item item = { "eth_call",
                             json_pack("[{s:s, s:o}, s]", "to", nonces, "data", rpc_hex(data, sizeof data), "latest") };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    if (got.a[0].rc != RPC_OK || !rpc_read_hash(got.a[0].result, &word))
        return false;
    *ret = amount_from_be(word.b);
    return true;
}

/* ---- before signing ---- */

/* A tenth more than what the node says, since others' transactions come between. */
static bool estimate(struct rpc *r, const struct mpp_choice *c, const struct address *payer, struct tempo_tx *tx)
{
    const struct tempo_transfer t = { c->charge.recipient, c->charge.amount,
                                      mpp_memo(c->challenge.realm, c->challenge.id) };
    BUF data = { 0 };
    uint64_t gas;
    tempo_transfer_call(&data, &t);
    json_t *call = json_pack("{s:s, s:s, s:o}", "to", address_lower(&c->charge.currency).s, "value", "0x0", "input",
                             rpc_hex(data.p, data.n));
    json_t *asked = json_pack("{s:s, s:s, s:[o], s:o, s:s, s:o}", "type", "0x76", "from", address_lower(payer).s, "calls",
                              call, "nonceKey", hex_of(tx->nonce_key), "nonce", "0x0", "validBefore",
                              rpc_u64(tx->valid_before));
    struct rpc_item item = { "eth_estimateGas", json_pack("[o]", asked) };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    if (got.a[0].rc != RPC_OK || !rpc_read_u64(got.a[0].result, &gas) || gas > UINT32_MAX)
        return false;
    tx->gas = gas + gas / 10;
    return true;
}

bool mpp_prepare(struct rpc *r, const struct mpp_choice *c, const struct address *payer, struct tempo_tx *tx,
                 bool *ret_free)
{
    struct block latest;
    struct amount nonce = AMOUNT_ZERO;
    if (!read_latest(r, &latest))
        return false;
    if (c->mode == MPP_PUSH && !read_nonce(r, payer, tx->nonce_key, &nonce))
        return false;
    *ret_free = amount_is_zero(nonce);
    if (!*ret_free)
        return true;
    tx->max_tip = amount_of(1000000000);
    return estimate(r, c, payer, tx) && amount_add(latest.base_fee, latest.base_fee, &tx->max_fee) &&
           amount_add(tx->max_fee, tx->max_tip, &tx->max_fee);
}

/* ---- after signing ---- */

void mpp_send(struct rpc *r, const struct intent *i)
{
    struct rpc_item item = { "eth_sendRawTransaction", json_pack("[o]", rpc_hex(i->mpp.raw.p, i->mpp.raw.n)) };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait_everywhere(r, item);
    (void)got; /* taken, known or refused: only the chain says what came of it */
}

struct search {
    const struct intent *i;
    struct hash32 memo;
    bool found;
};

static void look(void *arg, const struct tempo_moved *m)
{
    struct search *s = arg;
    s->found = s->found || (address_eq(&m->token, &s->i->asset) && address_eq(&m->from, &s->i->auth.from) &&
                            amount_cmp(m->amount, s->i->auth.value) == 0 && m->has_memo && hash_eq(&m->memo, &s->memo));
}

static enum fate fate_of_receipt(const struct receipt *r, const struct intent *i)
{
    const struct mpp_challenge c = intent_challenge(i);
    struct search s = { .i = i, .memo = mpp_memo(c.realm, c.id) };
    if (!r->success)
        return FATE_VOID;
    return tempo_each_transfer(r, &i->auth.to, look, &s) && s.found ? FATE_PAID : FATE_UNKNOWN;
}

/* The block is read before the receipt: what is not mined by a block at or past its deadline never is. */
enum fate mpp_fate(struct rpc *r, const struct intent *i)
{
    struct block latest;
    struct amount used = AMOUNT_ZERO;
    if (!read_latest(r, &latest))
        return FATE_UNKNOWN;
    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&i->mpp.tx).s) };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    SCOPE(receipt_done) struct receipt receipt = { 0 };
    if (got.a[0].rc != RPC_OK || !receipt_read(got.a[0].result, &receipt))
        return FATE_UNKNOWN;
    if (receipt.found)
        return fate_of_receipt(&receipt, i);
    if (amount_cmp(amount_of(latest.time), i->auth.valid_before) < 0)
        return FATE_OPEN;
    /* Another transaction may have been mined in its place, of the same purchase from another store. */
    if (i->mpp.mode == MPP_PUSH && !read_nonce(r, &i->auth.from, tempo_key_of(&i->auth.nonce), &used))
        return FATE_UNKNOWN;
    return amount_is_zero(used) ? FATE_EXPIRED : FATE_UNKNOWN;
}
