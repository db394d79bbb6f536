#include <string.h>

#include "base/json.h"
#include "chain/check_read.h"
#include "chain/internal.h"

/* Of Multicall3 itself getBlockNumber() and getCurrentBlockTimestamp(), so that the block is the one that all the rest is from. */
static const char number_call[4] = { 0x42, (char)0xcb, (char)0xb1, 0x5c };
static const char time_call[4] = { 0x0f, 0x28, (char)0xc9, 0x7d };

static struct slice slice_of_bytes(const uint8_t *p, size_t n)
{
    return (struct slice){ (const char *)p, n };
}

static struct slice transfer_of(const struct ask *a)
{
    return (struct slice){ a->transfer.p, a->transfer.n };
}

static bool flag_of(struct slice word, bool *ret)
{
    uint64_t v;
    if (word.n != WORD || !amount_u64(amount_from_be((const uint8_t *)word.p), &v) || v > 1)
        return false;
    *ret = v == 1;
    return true;
}

static bool balance_of(struct slice word, struct auth_facts *f)
{
    if (word.n != WORD)
        return false;
    f->balance = amount_from_be((const uint8_t *)word.p);
    f->balance_known = true;
    return true;
}

/* ---- through Multicall3 -------------------------------------------------------------------------- */

/* All the looking comes before the first transfer, so that no transfer of the batch can change what is seen. */
json_t *shared_params(struct ask *const *asks, size_t n)
{
    struct call3 calls[2 + 3 * SHARE_MAX] = {
        { multicall3_address, { number_call, sizeof number_call } },
        { multicall3_address, { time_call, sizeof time_call } },
    };
    struct state_call state[SHARE_MAX];
    struct balance_call balance[SHARE_MAX];
    BUF data = { 0 };
    for (size_t i = 0; i < n; i++) {
        state[i] = state_call(&asks[i]->payer, &asks[i]->nonce);
        balance[i] = balance_call(&asks[i]->payer);
        calls[2 + 2 * i] = (struct call3){ asks[i]->token, slice_of_bytes(state[i].b, sizeof state[i].b) };
        calls[3 + 2 * i] = (struct call3){ asks[i]->token, slice_of_bytes(balance[i].b, sizeof balance[i].b) };
        calls[2 + 2 * n + i] = (struct call3){ asks[i]->token, transfer_of(asks[i]) };
    }
    multicall_call(&data, calls, 2 + 3 * n);
    return call_params(&multicall3_address, (struct slice){ data.p, data.n }, n == 1 ? LONE_GAS : CALL_GAS, NULL);
}

/* A token may answer false instead of reverting; FiatTokenV2_2 answers nothing. */
static bool says_no(struct slice answer)
{
    static const char zero[32];
    return answer.n >= sizeof zero && memcmp(answer.p, zero, sizeof zero) == 0;
}

static bool item_facts(const struct call3_result *state, const struct call3_result *balance,
                       const struct call3_result *transfer, struct auth_facts *f)
{
    if (!state->ok || !flag_of(state->data, &f->nonce_used))
        return false; /* not an EIP-3009 token: nothing to be said */
    if (balance->ok && !balance_of(balance->data, f))
        return false;
    f->transfer_ok = transfer->ok && !says_no(transfer->data);
    f->why = f->transfer_ok ? REVERT_NONE : transfer->ok ? REVERT_OTHER : revert_read(transfer->data);
    f->known = true;
    return true;
}

bool shared_read(struct slice reply, size_t n, struct auth_facts *ret)
{
    struct call3_result r[2 + 3 * SHARE_MAX];
    struct auth_facts block = { 0 };
    if (!multicall_read(reply, r, 2 + 3 * n) || !r[0].ok || !r[1].ok || r[0].data.n != WORD || r[1].data.n != WORD)
        return false;
    if (!amount_u64(amount_from_be((const uint8_t *)r[0].data.p), &block.block) ||
        !amount_u64(amount_from_be((const uint8_t *)r[1].data.p), &block.block_time))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct auth_facts f = block;
        ret[i] = item_facts(&r[2 + 2 * i], &r[3 + 2 * i], &r[2 + 2 * n + i], &f) ? f : (struct auth_facts){ 0 };
    }
    return true;
}

/* ---- call by call, at a block's number ----------------------------------------------------------- */

void plain_items(const struct ask *a, uint64_t block, struct rpc_item ret[PLAIN_ITEMS])
{
    const struct state_call state = state_call(&a->payer, &a->nonce);
    const struct balance_call balance = balance_call(&a->payer);
    json_t *code = json_array();
    json_array_append_new(code, rpc_hex(a->payer.b, sizeof a->payer.b));
    json_array_append_new(code, rpc_u64(block));
    ret[0] = (struct rpc_item){ "eth_getCode", code };
    ret[1] = (struct rpc_item){ "eth_call", call_params(&a->token, slice_of_bytes(state.b, sizeof state.b), LONE_GAS, &block) };
    ret[2] =
        (struct rpc_item){ "eth_call", call_params(&a->token, slice_of_bytes(balance.b, sizeof balance.b), LONE_GAS, &block) };
    ret[3] = (struct rpc_item){ "eth_call", call_params(&a->token, transfer_of(a), LONE_GAS, &block) };
}

/* Anything but a revert (no such block, out of gas) tells nothing of the transfer. */
static bool transfer_facts(const struct rpc_answer *a, struct auth_facts *f)
{
    size_t n = 0;
    if (a->rc == RPC_OK) {
        OWNED uint8_t *answer = rpc_read_data(a->result, &n);
        f->transfer_ok = answer && !says_no(slice_of_bytes(answer, n));
        f->why = f->transfer_ok ? REVERT_NONE : REVERT_OTHER;
        return true;
    }
    if (!a->data && a->code != 3)
        return false;
    JSON *text = json_string(a->data ? a->data : "0x");
    OWNED uint8_t *data = rpc_read_data(text, &n);
    f->why = data ? revert_read(slice_of_bytes(data, n)) : REVERT_OTHER;
    return true;
}

bool plain_read(const struct rpc_answer answers[PLAIN_ITEMS], struct auth_facts *f)
{
    size_t code_n, state_n, balance_n;
    for (size_t i = 0; i < PLAIN_ITEMS; i++)
        if (answers[i].rc == RPC_UNAVAILABLE || (answers[i].rc == RPC_ERROR && i < 3))
            return false;
    OWNED uint8_t *code = rpc_read_data(answers[0].result, &code_n);
    OWNED uint8_t *state = rpc_read_data(answers[1].result, &state_n);
    OWNED uint8_t *balance = rpc_read_data(answers[2].result, &balance_n);
    if (!code || !state || !balance || !flag_of(slice_of_bytes(state, state_n), &f->nonce_used))
        return false;
    if (!balance_of(slice_of_bytes(balance, balance_n), f) || !transfer_facts(&answers[3], f))
        return false;
    f->has_code = code_n > 0;
    f->known = true;
    return true;
}
