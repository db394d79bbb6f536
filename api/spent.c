#include "api/spent.h"

#include <string.h>

enum { SPENT_BLOCKS = 9000 };

struct search {
    struct rpc *rpc;
    struct address token, payer;
    struct hash32 nonce;
    struct log_place place;          /* of its event */
    spent_fn *fn;
    void *arg;
};

static void tell(struct search *s, const struct spent *found)
{
    s->fn(s->arg, found);
    free(s);
}

static bool find(const struct search *s, const struct receipt *r, struct spent *ret)
{
    ret->known = r->found && receipt_find(r, &s->token, &s->payer, &s->nonce, &ret->event);
    return ret->known;
}

/* Nodes have been seen to deny a receipt for hours; all logs of the block prove the same. */
static void have_block_logs(void *arg, const struct rpc_answer *a, size_t n)
{
    struct search *s = arg;
    struct spent found = { .known = false };
    SCOPE(receipt_done) struct receipt r = { .found = false };
    if (n == 1 && a->rc == RPC_OK && receipt_of_logs(a->result, &s->place.tx, &s->place.block_hash, s->place.block, &r))
        (void)find(s, &r, &found);
    tell(s, &found);
}

static void have_receipt(void *arg, const struct rpc_answer *a, size_t n)
{
    struct search *s = arg;
    struct spent found = { .known = false };
    SCOPE(receipt_done) struct receipt r = { .found = false };
    if (n == 1 && a->rc == RPC_OK && receipt_read(a->result, &r) && find(s, &r, &found)) {
        tell(s, &found);
        return;
    }
    struct rpc_item item = { "eth_getLogs", json_pack("[{s:s}]", "blockHash", hash_text(&s->place.block_hash).s) };
    rpc_start(s->rpc, &item, 1, have_block_logs, s);
}

static void have_logs(void *arg, const struct rpc_answer *a, size_t n)
{
    struct search *s = arg;
    (void)n;
    if (a->rc != RPC_OK || !log_place_read(json_array_get(a->result, 0), &s->place)) {
        tell(s, &(struct spent){ .known = false });
        return;
    }
    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&s->place.tx).s) };
    rpc_start(s->rpc, &item, 1, have_receipt, s);
}

void spent_start(struct rpc *rpc, const struct token *t, const struct authorization *a, uint64_t head, spent_fn *fn, void *arg)
{
    struct search *s = mem_new(sizeof *s);
    uint64_t from = head > SPENT_BLOCKS ? head - SPENT_BLOCKS : 0;
    struct rpc_item item = { "eth_getLogs", logs_of_nonce(&t->address, &a->from, &a->nonce, from, head) };
    *s = (struct search){ .rpc = rpc, .token = t->address, .payer = a->from, .nonce = a->nonce, .fn = fn, .arg = arg };
    rpc_start(rpc, &item, 1, have_logs, s);
}
