/* Blocks that left the chain. When the head of the last look is gone, every block above the final one that a proof or a transaction
 * of ours stands in is asked for again; what stood in one that is gone returns to what it was. */
#include <inttypes.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "settle/desk.h"

static bool undo(struct desk *d, const struct db_rows *blocks, int i)
{
    struct slice hash = row_bytes(blocks, i, "block_hash");
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_int(&a, row_int(blocks, i, "block"));
    arg_bytes(&a, hash.p, hash.n);
    arg_text(&a, d->by);
    log_warn("settler.reorganised", "network=%s block=%" PRId64, d->net->id, row_int(blocks, i, "block"));
    FAILPOINT("settler-before-undo");
    d->open = true;
    return db_wait(d->db, "block_undone", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK;
}

/* Another block at its height is proof that it left; no answer, or none there yet, says nothing. ret_sure: all were told apart. */
static bool check(struct desk *d, const struct db_rows *blocks, bool *ret_sure)
{
    size_t n = (size_t)db_count(blocks);
    OWNED struct rpc_item *items = mem_new(n * sizeof *items);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rpc_item){ "eth_getBlockByNumber",
                                      json_pack("[o, b]", rpc_u64((uint64_t)row_int(blocks, (int)i, "block")), 0) };
    struct rpc_answers r = quorum_wait(d, items, n);
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        struct block now;
        struct hash32 was;
        if (r.a[i].rc != RPC_OK || !block_read(r.a[i].result, &now) || !row_copy(blocks, (int)i, "block_hash", was.b, 32))
            *ret_sure = false;
        else if (!hash_eq(&now.hash, &was))
            ok = undo(d, blocks, (int)i) && ok;
    }
    rpc_answers_done(&r);
    return ok;
}

bool desk_reorg(struct desk *d)
{
    if (!d->reorg || !d->new_head)
        return true;
    DB_ARGS a = { 0 };
    DB_ROWS *blocks = NULL;
    bool sure = true;
    arg_text(&a, d->net->id);
    if (db_wait(d->db, "blocks_to_check", &a, clock_mono_ms() + DESK_DB_MS, &blocks) != DB_OK)
        return false;
    bool ok = db_count(blocks) == 0 || check(d, blocks, &sure);
    d->reorg = !ok || !sure;
    return ok;
}
