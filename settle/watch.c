/* What the chain looks like now. Between blocks it is one read. */
#include <string.h>

#include "base/log.h"
#include "settle/desk.h"

/* Told to the others only when no block below the new final one is in doubt: what is final is not asked for again. */
bool desk_seen(struct desk *d)
{
    if (!d->new_head || d->reorg)
        return true;
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_int(&a, (int64_t)d->head.number);
    arg_bytes(&a, d->head.hash.b, 32);
    arg_int(&a, (int64_t)d->head.time);
    arg_int(&a, (int64_t)d->final.number);
    arg_bytes(&a, d->final.hash.b, 32);
    arg_int(&a, (int64_t)d->final.time);
    arg_amount(&a, d->balance);
    return db_wait(d->db, "network_seen", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK;
}

/* The final block: as the nodes tell it, or at a fixed distance behind the head. */
static bool read_final(struct desk *d, const struct block *head, struct block *ret)
{
    if (d->net->finality_blocks == 0)
        return quorum_block(d, "finalized", ret);
    uint64_t number = head->number > d->net->finality_blocks ? head->number - d->net->finality_blocks : 0;
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(number), 0) };
    struct rpc_answers r = quorum_wait(d, &item, 1);
    bool ok = r.a[0].rc == RPC_OK && block_read(r.a[0].result, ret);
    rpc_answers_done(&r);
    return ok;
}

static struct amount read_tip(struct desk *d)
{
    struct rpc_item item = { "eth_maxPriorityFeePerGas", json_array() };
    struct rpc_answers r = rpc_wait(d->rpc, &item, 1);
    struct amount tip;
    bool ok = r.a[0].rc == RPC_OK && rpc_read_amount(r.a[0].result, &tip) && amount_cmp(tip, d->net->tip_min) > 0;
    rpc_answers_done(&r);
    return ok ? tip : d->net->tip_min;
}

/* The relayer's balance and next account nonce at the head, and whether the head of the last look still stands. */
static bool read_account(struct desk *d, const struct block *head, bool *ret_stands)
{
    struct address_text me = address_lower(&d->relayer->address);
    struct rpc_item items[] = {
        { "eth_getBalance", json_pack("[s, o]", me.s, rpc_u64(head->number)) },
        { "eth_getTransactionCount", json_pack("[s, o]", me.s, rpc_u64(head->number)) },
        { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(d->head.number), 0) },
    };
    struct rpc_answers r = quorum_wait(d, items, COUNT(items));
    struct amount balance;
    struct block before;
    uint64_t nonce;
    bool ok = r.a[0].rc == RPC_OK && rpc_read_amount(r.a[0].result, &balance) && r.a[1].rc == RPC_OK &&
              rpc_read_u64(r.a[1].result, &nonce);
    *ret_stands = r.a[2].rc == RPC_OK && block_read(r.a[2].result, &before) && hash_eq(&before.hash, &d->head.hash);
    rpc_answers_done(&r);
    if (ok) {
        d->balance = balance;
        d->chain_nonce = nonce;
        d->tip = read_tip(d);
    }
    return ok;
}

bool desk_watch(struct desk *d)
{
    struct block head, final;
    bool stands = true;
    if (!quorum_block(d, "latest", &head)) {
        d->seen = false;
        return false;
    }
    d->new_head = !d->seen || !hash_eq(&head.hash, &d->head.hash);
    if (!d->new_head)
        return true;
    if (!read_account(d, &head, &stands) || !read_final(d, &head, &final)) {
        d->seen = false;
        return false;
    }
    /* after a blind time it is not known what left the chain, so all of it is checked again */
    d->reorg = d->reorg || !d->seen || !stands;
    d->open = d->open || d->reorg;
    d->head = head;
    d->final = final;
    d->seen = true;
    return true;
}

bool desk_deep(const struct desk *d, uint64_t block)
{
    return d->head.number + 1 >= block + d->net->depth;
}
