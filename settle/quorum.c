/* What proves something is believed when enough endpoints say the same. With a quorum of 1 the first usable answer counts; above that
 * every endpoint is asked, and what fewer than the quorum agree on is unknown. */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "settle/desk.h"

enum { FAR_MS = 4000 };

/* The members that a proof is made of. Clients differ in the others (fees of a layer below, missing or added fields). */
static const char *const telling[] = {
    "hash", "parentHash", "number", "timestamp", "transactionHash", "blockHash", "blockNumber", "logIndex", "status", "address",
    "topics", "data", "removed",
};

static json_t *reduced(const json_t *j)
{
    size_t i;
    json_t *x, *ret;
    if (json_is_array(j)) {
        ret = json_array();
        json_array_foreach(j, i, x)
            json_array_append_new(ret, reduced(x));
        return ret;
    }
    if (!json_is_object(j))
        return json_deep_copy(j);
    ret = json_object();
    for (i = 0; i < COUNT(telling); i++)
        if ((x = json_object_get(j, telling[i])))
            json_object_set(ret, telling[i], x);
    if ((x = json_object_get(j, "logs")))
        json_object_set_new(ret, "logs", reduced(x));
    return ret;
}

/* ---- asking everybody ---- */

struct asked { struct quorum_round *round; json_t **result; bool *answered, *refused; };
struct quorum_round { size_t n, waiting; struct asked *of; };

static void have_answers(void *arg, const struct rpc_answer *answers, size_t n)
{
    struct asked *a = arg;
    for (size_t i = 0; i < n; i++) {
        a->answered[i] = answers[i].rc == RPC_OK;
        a->refused[i] = answers[i].rc == RPC_ERROR;
        a->result[i] = a->answered[i] ? json_incref(answers[i].result) : NULL;
    }
    a->round->waiting--;
}

static void ask_all(struct desk *d, struct rpc_item *items, size_t n, struct quorum_round *round)
{
    size_t endpoints = d->net->rpc_count;
    *round = (struct quorum_round){ .n = n, .waiting = endpoints, .of = mem_new(endpoints * sizeof *round->of) };
    for (size_t e = 0; e < endpoints; e++) {
        OWNED struct rpc_item *copy = mem_new(n * sizeof *copy);
        for (size_t i = 0; i < n; i++)
            copy[i] = (struct rpc_item){ items[i].method, json_incref(items[i].params) };
        round->of[e] = (struct asked){ round, mem_new(n * sizeof(json_t *)), mem_new(n * sizeof(bool)), mem_new(n * sizeof(bool)) };
        rpc_start(d->each[e], copy, n, have_answers, &round->of[e]);
    }
    for (size_t i = 0; i < n; i++)
        json_decref(items[i].params);
    while (round->waiting > 0)
        loop_turn(d->loop, -1);
}

static void round_done(struct desk *d, struct quorum_round *round)
{
    for (size_t e = 0; e < d->net->rpc_count; e++) {
        for (size_t i = 0; i < round->n; i++)
            json_decref(round->of[e].result[i]);
        free(round->of[e].result);
        free(round->of[e].answered);
        free(round->of[e].refused);
    }
    free(round->of);
}

/* Where enough agree, whoever says otherwise is set aside; where they do not, nobody knows who is right. */
static void blame_others(struct desk *d, const struct quorum_round *round, size_t i, const json_t *best)
{
    JSON *right = reduced(best);
    for (size_t e = 0; e < d->net->rpc_count; e++) {
        JSON *mine = round->of[e].answered[i] ? reduced(round->of[e].result[i]) : NULL;
        if (round->of[e].refused[i])
            rpc_blame(d->rpc, e, RPC_REFUSED);
        else if (mine && !json_equal(mine, right))
            rpc_blame(d->rpc, e, json_is_null(mine) ? RPC_LACKING : RPC_DIFFERS);
    }
}

/* The answer to item i that at least the quorum gives; NULL: there is none. */
static json_t *agreed(struct desk *d, const struct quorum_round *round, size_t i, const char *method)
{
    json_t *best = NULL;
    unsigned most = 0, answered = 0;
    for (size_t e = 0; e < d->net->rpc_count; e++) {
        if (!round->of[e].answered[i])
            continue;
        answered++;
        JSON *mine = reduced(round->of[e].result[i]);
        unsigned same = 0;
        for (size_t o = 0; o < d->net->rpc_count; o++) {
            JSON *other = round->of[o].answered[i] ? reduced(round->of[o].result[i]) : NULL;
            same += other && json_equal(mine, other);
        }
        if (same > most) {
            most = same;
            best = round->of[e].result[i];
        }
    }
    if (answered > most)
        log_warn("settler.disagreement", "network=%s method=%s answers=%u agree=%u", d->net->id, method, answered, most);
    if (most < d->net->quorum)
        return NULL;
    if (most < d->net->rpc_count)
        blame_others(d, round, i, best);
    return best;
}

struct rpc_answers quorum_wait(struct desk *d, struct rpc_item *items, size_t n)
{
    struct quorum_round round;
    struct rpc_answers ret;
    if (d->net->quorum <= 1)
        return rpc_wait(d->rpc, items, n);
    OWNED const char **methods = mem_new(n * sizeof *methods);
    for (size_t i = 0; i < n; i++)
        methods[i] = items[i].method;
    ask_all(d, items, n, &round);
    ret = (struct rpc_answers){ .a = mem_new(n * sizeof *ret.a), .n = n };
    for (size_t i = 0; i < n; i++) {
        json_t *result = agreed(d, &round, i, methods[i]);
        ret.a[i].rc = result ? RPC_OK : RPC_UNAVAILABLE;
        ret.a[i].object = result ? json_pack("{s:O}", "result", result) : NULL;
        ret.a[i].result = result ? json_object_get(ret.a[i].object, "result") : NULL;
    }
    round_done(d, &round);
    return ret;
}

/* Endpoints are a block or two apart at any time; more than that for some seconds is late, or nobody's block. */
static void blame_far(struct desk *d, const struct quorum_round *round, uint64_t number)
{
    const uint64_t near = 2 + FAR_MS / (uint64_t)d->net->block_time_ms;
    for (size_t e = 0; e < d->net->rpc_count; e++) {
        struct block b;
        if (!round->of[e].answered[0] || !block_read(round->of[e].result[0], &b))
            continue;
        if (b.number + near < number || b.number > number + near)
            rpc_blame(d->rpc, e, b.number < number ? RPC_BEHIND : RPC_AHEAD);
    }
}

/* The newest block under a tag that the quorum has: no single endpoint that runs ahead, or lies, moves it. */
bool quorum_block(struct desk *d, const char *tag, struct block *ret)
{
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[s, b]", tag, 0) };
    struct quorum_round round;
    uint64_t numbers[16];
    size_t n = 0;
    if (d->net->quorum <= 1 || d->net->rpc_count > COUNT(numbers)) {
        struct rpc_answers one = rpc_wait(d->rpc, &item, 1);
        bool ok = one.a[0].rc == RPC_OK && block_read(one.a[0].result, ret);
        rpc_answers_done(&one);
        return ok;
    }
    ask_all(d, &item, 1, &round);
    for (size_t e = 0; e < d->net->rpc_count; e++) {
        struct block b;
        if (!round.of[e].answered[0] || !block_read(round.of[e].result[0], &b))
            continue;
        size_t at = n++;
        for (; at > 0 && numbers[at - 1] < b.number; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = b.number;
    }
    if (n >= d->net->quorum && strcmp(tag, "latest") == 0)
        blame_far(d, &round, numbers[d->net->quorum - 1]);
    round_done(d, &round);
    if (n < d->net->quorum)
        return false;
    struct rpc_item by_number = { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(numbers[d->net->quorum - 1]), 0) };
    struct rpc_answers r = quorum_wait(d, &by_number, 1);
    bool ok = r.a[0].rc == RPC_OK && block_read(r.a[0].result, ret);
    rpc_answers_done(&r);
    return ok;
}
