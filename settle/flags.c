/* Is a nonce used? authorizationState of many in one eth_call through Multicall3, at one block's number; alone where the node, or the
 * chain, has no answer for them together. */
#include <string.h>

#include "base/json.h"
#include "settle/desk.h"

enum { TOGETHER = 200 };                       /* under 15,000 gas each */

struct chunk { const size_t *row; size_t n; };  /* rows that are asked together: of one block */

static struct address call_of(const struct db_rows *rows, size_t i, struct state_call *ret)
{
    struct auth_key key = { 0 };
    desk_key(rows, (int)i, &key);
    *ret = state_call(&key.payer, &key.nonce);
    return key.asset;
}

static struct rpc_item call_at(const struct address *to, const void *data, size_t n, uint64_t block)
{
    return (struct rpc_item){ "eth_call", json_pack("[{s:s, s:o}, o]", "to", address_lower(to).s, "data", rpc_hex(data, n),
                                                    rpc_u64(block)) };
}

static enum flag flag_of(struct slice word)
{
    return word.n != 32 ? FLAG_NO_ANSWER : word.p[31] ? FLAG_USED : FLAG_UNUSED;
}

/* ---- alone ---- */

static void alone(struct desk *d, const struct db_rows *rows, const uint64_t *at, const struct chunk *c, enum flag *ret)
{
    struct rpc_item items[TOGETHER];
    for (size_t i = 0; i < c->n; i++) {
        struct state_call call;
        struct address token = call_of(rows, c->row[i], &call);
        items[i] = call_at(&token, call.b, sizeof call.b, at[c->row[i]]);
    }
    struct rpc_answers r = quorum_wait(d, items, c->n);
    for (size_t i = 0; i < c->n; i++) {
        size_t n = 0;
        OWNED uint8_t *word = r.a[i].rc == RPC_OK ? rpc_read_data(r.a[i].result, &n) : NULL;
        ret[c->row[i]] = word ? flag_of((struct slice){ (const char *)word, n }) : FLAG_NO_ANSWER;
    }
    rpc_answers_done(&r);
}

/* ---- together ---- */

static struct rpc_item shared_call(const struct db_rows *rows, const uint64_t *at, const struct chunk *c)
{
    struct state_call one[TOGETHER];
    struct call3 calls[TOGETHER];
    BUF data = { 0 };
    for (size_t i = 0; i < c->n; i++)
        calls[i] = (struct call3){ call_of(rows, c->row[i], &one[i]), { (const char *)one[i].b, sizeof one[i].b } };
    multicall_call(&data, calls, c->n);
    return call_at(&multicall3_address, data.p, data.n, at[c->row[0]]);
}

/* What the answer leaves open stays without one. */
static void shared_answer(const struct rpc_answer *a, const struct chunk *c, enum flag *ret)
{
    struct call3_result results[TOGETHER];
    size_t n = 0;
    OWNED uint8_t *reply = a->rc == RPC_OK ? rpc_read_data(a->result, &n) : NULL;
    bool ok = reply && multicall_read((struct slice){ (const char *)reply, n }, results, c->n);
    for (size_t i = 0; i < c->n; i++)
        ret[c->row[i]] = ok && results[i].ok ? flag_of(results[i].data) : FLAG_NO_ANSWER;
}

static void ask(struct desk *d, const struct db_rows *rows, const uint64_t *at, const struct chunk *c, enum flag *ret)
{
    struct chunk rest = { .n = 0 };
    OWNED size_t *open = mem_new(c->n * sizeof *open);
    if (c->n > 1) {
        struct rpc_item item = shared_call(rows, at, c);
        struct rpc_answers r = quorum_wait(d, &item, 1);
        shared_answer(&r.a[0], c, ret);
        rpc_answers_done(&r);
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->n == 1 || ret[c->row[i]] == FLAG_NO_ANSWER)
            open[rest.n++] = c->row[i];
    rest.row = open;
    if (rest.n > 0)
        alone(d, rows, at, &rest, ret);
}

void desk_flags(struct desk *d, const struct db_rows *rows, const uint64_t *at, enum flag *ret)
{
    const size_t n = (size_t)db_count(rows);
    OWNED bool *asked = mem_new((n + 1) * sizeof *asked);
    size_t row[TOGETHER];
    for (size_t first = 0; first < n; first++) {
        struct chunk c = { .row = row };
        if (asked[first])
            continue;
        for (size_t i = first; i < n && c.n < TOGETHER; i++)
            if (!asked[i] && at[i] == at[first]) {
                asked[i] = true;
                row[c.n++] = i;
            }
        ask(d, rows, at, &c, ret);
    }
}
