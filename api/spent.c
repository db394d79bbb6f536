#include "api/spent.h"

#include <string.h>

enum { SPENT_BLOCKS = 9000 };

struct search {
    struct rpc *rpc;
    struct address token, payer;
    struct hash32 nonce;
    spent_fn *fn;
    void *arg;
};

static void tell(struct search *s, const struct spent *found)
{
    s->fn(s->arg, found);
    free(s);
}

static void have_receipt(void *arg, const struct rpc_answer *a, size_t n)
{
    struct search *s = arg;
    struct spent found = { .known = false };
    struct receipt receipt = { 0 };
    found.known = n == 1 && a->rc == RPC_OK && receipt_read(a->result, &receipt) && receipt.found &&
                  receipt_find(&receipt, &s->token, &s->payer, &s->nonce, &found.event);
    receipt_done(&receipt);
    tell(s, &found);
}

static void have_logs(void *arg, const struct rpc_answer *a, size_t n)
{
    struct search *s = arg;
    struct hash32 tx;
    (void)n;
    if (a->rc != RPC_OK || !rpc_read_hash(json_object_get(json_array_get(a->result, 0), "transactionHash"), &tx)) {
        tell(s, &(struct spent){ .known = false });
        return;
    }
    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&tx).s) };
    rpc_start(s->rpc, &item, 1, have_receipt, s);
}

void spent_start(struct rpc *rpc, const struct token *t, const struct authorization *a, uint64_t head, spent_fn *fn, void *arg)
{
    struct search *s = mem_new(sizeof *s);
    uint64_t from = head > SPENT_BLOCKS ? head - SPENT_BLOCKS : 0;
    struct rpc_item item = { "eth_getLogs", logs_of_nonce(&t->address, &a->from, &a->nonce, from, head) };
    *s = (struct search){ rpc, t->address, a->from, a->nonce, fn, arg };
    rpc_start(rpc, &item, 1, have_logs, s);
}
