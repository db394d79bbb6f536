/* A node with one token and a Multicall3, small enough to be read: accounts are told apart by their last byte. */
#ifndef TESTS_UNIT_FAKE_TOKEN_H
#define TESTS_UNIT_FAKE_TOKEN_H

#include <inttypes.h>

#include "base/json.h"
#include "chain/chain.h"
#include "fake_server.h"

enum { CHAIN = 84532, ACCOUNTS = 256, BLOCK = 77, TIME = 1700000000 };

struct account {
    uint64_t balance;
    bool has_code, used, refuses; /* refuses: its code says no to every signature */
};

struct world {
    struct account account[ACCOUNTS];
    bool no_multicall, no_init_code, no_token, burns_gas, silent;
    unsigned shared, lone, plain, most; /* calls, and the most questions in one */
    unsigned stale;                     /* so many requests are answered of two blocks ago: nobody had a balance */
    uint64_t behind;
};

static uint64_t word_at(const uint8_t *p, size_t at)
{
    uint64_t v = 0;
    for (size_t i = 24; i < 32; i++)
        v = v << 8 | p[at + i];
    return v;
}

static void add_word(struct buf *b, uint64_t v)
{
    uint8_t w[32] = { 0 };
    for (size_t i = 0; i < 8; i++)
        w[31 - i] = (uint8_t)(v >> (8 * i));
    buf_add(b, w, sizeof w);
}

static bool reverts(struct buf *ret, const char *why)
{
    static const char padding[32];
    buf_add(ret, "\x08\xc3\x79\xa0", 4);
    add_word(ret, 32);
    add_word(ret, strlen(why));
    buf_puts(ret, why);
    buf_add(ret, padding, 31 - (strlen(why) + 31) % 32);
    return false;
}

static bool token_call(struct world *w, const uint8_t *p, struct buf *ret)
{
    struct account *a = &w->account[p[35]];
    if (memcmp(p, "\xe9\x4a\x01\x02", 4) == 0) {
        if (w->no_token)
            return reverts(ret, "what");
        add_word(ret, a->used);
        return true;
    }
    if (memcmp(p, "\x70\xa0\x82\x31", 4) == 0) {
        add_word(ret, a->balance);
        return true;
    }
    assert_memory_equal(p, "\xe3\xee\x16\x0e", 4);
    uint64_t value = word_at(p, 4 + 64);
    if (a->used)
        return reverts(ret, "FiatTokenV2: authorization is used or canceled");
    if (a->refuses)
        return reverts(ret, "FiatTokenV2: invalid signature");
    if (a->balance < value)
        return reverts(ret, "ERC20: transfer amount exceeds balance");
    a->used = true;
    a->balance -= value;
    w->account[p[67]].balance += value;
    return true;
}

/* aggregate3: the calls one after the other, on a state that is dropped afterwards. */
static bool multicall(struct world *w, const uint8_t *p, struct buf *ret)
{
    struct world after = *w;
    const uint8_t *list = p + 4 + 32;
    uint64_t n = word_at(list, 0), questions = (n - 2) / 3;
    BUF tuples = { 0 }, offsets = { 0 };
    *(questions > 1 ? &w->shared : &w->lone) += 1;
    if (questions > w->most)
        w->most = (unsigned)questions;
    for (size_t i = 0; i < n; i++) {
        BUF out = { 0 };
        const uint8_t *tuple = list + 32 + word_at(list, 32 + 32 * i);
        const uint8_t *data = tuple + word_at(tuple, 64) + 32;
        bool ok = true;
        if (memcmp(data, "\x42\xcb\xb1\x5c", 4) == 0)
            add_word(&out, BLOCK - w->behind);
        else if (memcmp(data, "\x0f\x28\xc9\x7d", 4) == 0)
            add_word(&out, TIME);
        else if (w->burns_gas && after.account[data[35]].has_code && questions > 1)
            return false;
        else
            ok = token_call(&after, data, &out);
        add_word(&offsets, 32 * n + tuples.n);
        add_word(&tuples, ok);
        add_word(&tuples, 64);
        add_word(&tuples, out.n);
        buf_add(&tuples, out.p, out.n);
        static const char padding[32];
        buf_add(&tuples, padding, 31 - (out.n + 31) % 32);
    }
    add_word(ret, 32);
    add_word(ret, n);
    buf_add(ret, offsets.p, offsets.n);
    buf_add(ret, tuples.p, tuples.n);
    return true;
}

static bool call(struct world *w, const json_t *tx, struct buf *ret)
{
    struct address to;
    size_t n;
    OWNED uint8_t *data = rpc_read_data(json_object_get(tx, "data"), &n);
    if (!json_object_get(tx, "to")) {
        for (size_t at = 35; at < n; at += 32)
            add_word(ret, w->account[data[at + 31]].has_code ? 23 : 0);
        return !w->no_init_code;
    }
    assert_true(rpc_read_address(json_object_get(tx, "to"), &to));
    if (address_eq(&to, &multicall3_address))
        return w->no_multicall || multicall(w, data, ret);
    struct world after = *w;
    w->plain++;
    return token_call(&after, data, ret);
}

static json_t *error_of(const struct buf *revert)
{
    if (revert->n == 0)
        return json_pack("{s:i,s:s}", "code", -32603, "message", "EVM error OutOfGas");
    return json_pack("{s:i,s:s,s:o}", "code", 3, "message", "execution reverted", "data",
                     rpc_hex(revert->p, revert->n));
}

static json_t *item_answer(struct world *w, const json_t *rq)
{
    const char *method = json_str(rq, "method");
    const json_t *first = json_array_get(json_object_get(rq, "params"), 0);
    json_t *reply = json_pack("{s:O}", "id", json_object_get(rq, "id"));
    struct address who;
    BUF out = { 0 };
    if (!strcmp(method, "eth_chainId"))
        json_object_set_new(reply, "result", json_string("0x14a34"));
    else if (!strcmp(method, "eth_getBlockByNumber"))
        json_object_set_new(reply, "result",
                            json_pack("{s:o,s:o,s:o,s:o}", "number", rpc_u64(BLOCK - w->behind), "timestamp", rpc_u64(TIME), "hash",
                                      rpc_hex(topic_transfer.b, 32), "parentHash", rpc_hex(topic_transfer.b, 32)));
    else if (!strcmp(method, "eth_getCode") && rpc_read_address(first, &who))
        json_object_set_new(reply, "result", json_string(w->account[who.b[19]].has_code ? "0xef" : "0x"));
    else if (call(w, first, &out))
        json_object_set_new(reply, "result", rpc_hex(out.p, out.n));
    else
        json_object_set_new(reply, "error", error_of(&out));
    return reply;
}

static enum fake_then serve(void *arg, struct slice request, struct buf *reply)
{
    struct world *w = arg;
    struct json_why why;
    const char *body = strstr(request.p, "\r\n\r\n") + 4;
    JSON *rq = json_read(body, request.n - (size_t)(body - request.p), &why);
    if (w->silent)
        return FAKE_HANG;
    struct world old = { .behind = 2, .no_multicall = w->no_multicall };
    if (w->stale > 0) {
        w->stale--;
        w = &old;
    }
    JSON *all = json_is_array(rq) ? json_array() : item_answer(w, rq);
    for (size_t i = 0; i < json_array_size(rq); i++)
        json_array_append_new(all, item_answer(w, json_array_get(rq, i)));
    OWNED char *text = json_write(all);
    fake_reply(reply, 200, "application/json", slice_of(text));
    return FAKE_KEEP;
}

#endif
