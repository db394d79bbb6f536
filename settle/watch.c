/* What the chain looks like now: one batch of reads. */
#include <string.h>

#include "base/log.h"
#include "settle/desk.h"

static bool store_seen(struct desk *d)
{
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_int(&a, (int64_t)d->head.number);
    arg_bytes(&a, d->head.hash.b, 32);
    arg_int(&a, (int64_t)d->head.time);
    arg_int(&a, (int64_t)d->final.number);
    arg_bytes(&a, d->final.hash.b, 32);
    arg_int(&a, (int64_t)d->final.time);
    return db_wait(d->db, "network_seen", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK;
}

/* With a fixed distance the final block is only known once the head is. */
static bool final_by_distance(struct desk *d, struct block *ret)
{
    uint64_t number = d->head.number > d->net->finality_blocks ? d->head.number - d->net->finality_blocks : 0;
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(number), 0) };
    struct rpc_answers r = rpc_wait(d->rpc, &item, 1);
    bool ok = r.a[0].rc == RPC_OK && block_read(r.a[0].result, ret);
    rpc_answers_done(&r);
    return ok;
}

bool desk_watch(struct desk *d)
{
    struct address_text me = address_lower(&d->relayer->address);
    struct rpc_item items[] = {
        { "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0) },
        { "eth_getBlockByNumber", json_pack("[s, b]", "finalized", 0) },
        { "eth_getBalance", json_pack("[s, s]", me.s, "latest") },
        { "eth_getTransactionCount", json_pack("[s, s]", me.s, "latest") },
        { "eth_maxPriorityFeePerGas", json_array() },
    };
    struct rpc_answers r = rpc_wait(d->rpc, items, COUNT(items));
    struct block head, final = d->final, newer;
    struct amount balance, tip;
    uint64_t nonce;
    bool ok = r.a[0].rc == RPC_OK && block_read(r.a[0].result, &head) && r.a[2].rc == RPC_OK &&
              rpc_read_amount(r.a[2].result, &balance) && r.a[3].rc == RPC_OK && rpc_read_u64(r.a[3].result, &nonce);
    if (r.a[1].rc == RPC_OK && block_read(r.a[1].result, &newer))
        final = newer;
    if (r.a[4].rc != RPC_OK || !rpc_read_amount(r.a[4].result, &tip) || amount_cmp(tip, d->net->tip_min) < 0)
        tip = d->net->tip_min;
    rpc_answers_done(&r);
    if (!ok) {
        d->seen = false;
        return false;
    }
    d->new_head = !d->seen || !hash_eq(&head.hash, &d->head.hash);
    d->head = head;
    d->tip = tip;
    d->balance = balance;
    d->chain_nonce = nonce;
    if (d->net->finality_blocks && d->new_head && !final_by_distance(d, &final))
        return false;
    d->final = final;
    d->seen = true;
    return !d->new_head || store_seen(d);
}

bool desk_deep(const struct desk *d, uint64_t block)
{
    return d->head.number + 1 >= block + d->net->depth;
}
