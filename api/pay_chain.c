#include <string.h>

#include "api/pay.h"

enum { WINDOW = 2000, WINDOWS = 50, SLACK_S = 600 };

const char *fate_name(enum fate f)
{
    static const char *const names[] = { "unknown", "open", "expired", "void", "paid" };
    return names[f];
}

/* At a block or a tag (stolen). */
static bool state_at(struct rpc *r, const struct address *token, const struct address *payer,
                     const struct hash32 *nonce, json_t *block, bool *ret)
{
    const struct state_call call = state_call(payer, nonce);
    json_t *params =
        json_pack("[{s:s, s:o}, o]", "to", address_lower(token).s, "data", rpc_hex(call.b, sizeof call.b), block);
    struct rpc_item item = { "eth_call", params };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    struct hash32 word;
    if (got.a[0].rc != RPC_OK || !rpc_read_hash(got.a[0].result, &word))
        return false;
    static const uint8_t zeros[31];
    if (memcmp(word.b, zeros, sizeof zeros) != 0 || word.b[31] > 1)
        return false;
    *ret = word.b[31] == 1;
    return true;
}

bool nonce_used(struct rpc *r, const struct address *token, const struct address *payer, const struct hash32 *nonce,
                bool *ret)
{
    return state_at(r, token, payer, nonce, json_string("latest"), ret);
}

static bool read_block(struct rpc *r, json_t *which, struct block *ret)
{
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[o, b]", which, 0) };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    return got.a[0].rc == RPC_OK && block_read(got.a[0].result, ret);
}

/* ---- how a used nonce was used ---- */

static bool event_of(struct rpc *r, const struct intent *i, const json_t *log, struct auth_event *ret)
{
    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[O]", json_object_get(log, "transactionHash")) };
    if (!item.params)
        return false;
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    SCOPE(receipt_done) struct receipt receipt = { 0 };
    return got.a[0].rc == RPC_OK && receipt_read(got.a[0].result, &receipt) && receipt.found && receipt.success &&
           receipt_find(&receipt, &i->asset, &i->auth.from, &i->auth.nonce, ret);
}

static bool event_between(struct rpc *r, const struct intent *i, uint64_t from, uint64_t to, struct auth_event *ret)
{
    struct rpc_item item = { "eth_getLogs", logs_of_nonce(&i->asset, &i->auth.from, &i->auth.nonce, from, to) };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    const json_t *logs = got.a[0].rc == RPC_OK ? got.a[0].result : NULL;
    for (size_t k = 0; k < json_array_size(logs); k++) {
        if (event_of(r, i, json_array_get(logs, k), ret))
            return true;
    }
    return false;
}

/* Backwards from the final block, in steps that public nodes allow, to before the signing. */
static bool find_event(struct rpc *r, const struct intent *i, uint64_t final, struct auth_event *ret)
{
    uint64_t to = final;
    for (int n = 0; n < WINDOWS; n++) {
        const uint64_t from = to >= WINDOW ? to - WINDOW + 1 : 0;
        if (event_between(r, i, from, to, ret))
            return true;
        struct block b;
        if (from == 0 || !read_block(r, rpc_u64(from), &b) || (int64_t)b.time < i->signed_at - SLACK_S)
            return false;
        to = from - 1;
    }
    return false;
}

static enum fate fate_of_event(const struct intent *i, const struct auth_event *e)
{
    switch (e->kind) {
    case AUTH_EVENT_CANCELED:
        return FATE_VOID;
    case AUTH_EVENT_NO_TRANSFER:
        return FATE_UNKNOWN;
    case AUTH_EVENT_TRANSFER:
        return address_eq(&e->to, &i->auth.to) && amount_cmp(e->value, i->auth.value) == 0 ? FATE_PAID : FATE_VOID;
    }
    abort();
}

enum fate intent_fate(struct rpc *r, const struct intent *i)
{
    struct block final;
    bool used;
    if (i->mpp.challenge)
        return mpp_fate(r, i);
    if (!read_block(r, json_string("finalized"), &final) ||
        !state_at(r, &i->asset, &i->auth.from, &i->auth.nonce, rpc_u64(final.number), &used))
        return FATE_UNKNOWN;
    if (!used)
        return amount_cmp(amount_of(final.time), i->auth.valid_before) >= 0 ? FATE_EXPIRED : FATE_OPEN;
    struct auth_event e;
    return find_event(r, i, final.number, &e) ? fate_of_event(i, &e) : FATE_UNKNOWN;
}
