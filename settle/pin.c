#include "settle/pin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

struct pinning {
    struct db *db;
    struct rpc *rpc;
    const struct net *net;
    pin_fn *fn;
    void *arg;
    struct hash32 final_hash;
};

static void finish(struct pinning *p, enum pin result, const char *why)
{
    p->fn(p->arg, result, why);
    free(p);
}

static void ask_block(struct pinning *p, uint64_t number, rpc_done_fn *fn)
{
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(number), 0) };
    rpc_start(p->rpc, &item, 1, fn, p);
}

static void replaced(struct pinning *p, const char *what)
{
    char why[400];
    (void)snprintf(why, sizeof why,
                   "The chain behind the RPC of %s is not the one in this database: %s differs. Nothing was booked. If the chain "
                   "was replaced on purpose (a test node started anew), start with a new state directory or database; if not, "
                   "correct the RPC endpoint.", p->net->id, what);
    finish(p, PIN_REPLACED, why);
}

static void have_final(void *arg, const struct rpc_answer *a, size_t n)
{
    struct pinning *p = arg;
    struct block b;
    (void)n;
    if (a->rc != RPC_OK || !block_read(a->result, &b)) /* null: a node that is behind it, which says nothing */
        finish(p, PIN_UNAVAILABLE, "the RPC does not have our last final block (yet)");
    else if (!hash_eq(&b.hash, &p->final_hash))
        replaced(p, "the block at our last final height");
    else
        finish(p, PIN_OK, "");
}

static void have_row(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct pinning *p = arg;
    if (rc != DB_OK) {
        finish(p, PIN_UNAVAILABLE, "the database did not answer");
        return;
    }
    if (row_bool(rows, 0, "replaced"))
        replaced(p, "the genesis block");
    else if (row_copy(rows, 0, "final_hash", p->final_hash.b, 32))
        ask_block(p, (uint64_t)row_int(rows, 0, "final"), have_final);
    else
        finish(p, PIN_OK, "");
}

static void have_genesis(void *arg, const struct rpc_answer *a, size_t n)
{
    struct pinning *p = arg;
    struct block b;
    (void)n;
    if (a->rc != RPC_OK || !block_read(a->result, &b)) {
        finish(p, PIN_UNAVAILABLE, "no RPC endpoint of this chain answers");
        return;
    }
    DB_ARGS args = { 0 };
    arg_text(&args, p->net->id);
    arg_bytes(&args, b.hash.b, 32);
    db_call(p->db, "network_pin", &args, clock_mono_ms() + p->net->rpc_timeout_ms, have_row, p);
}

void pin_start(struct db *db, struct rpc *rpc, const struct net *net, pin_fn *fn, void *arg)
{
    struct pinning *p = mem_new(sizeof *p);
    *p = (struct pinning){ .db = db, .rpc = rpc, .net = net, .fn = fn, .arg = arg };
    ask_block(p, 0, have_genesis);
}

struct waiting { bool done; enum pin result; char *why; size_t why_size; };

static void waited(void *arg, enum pin result, const char *why)
{
    struct waiting *w = arg;
    w->done = true;
    w->result = result;
    (void)snprintf(w->why, w->why_size, "%s", why);
}

enum pin pin_wait(struct loop *l, struct db *db, struct rpc *rpc, const struct net *net, char *why, size_t why_size)
{
    struct waiting w = { .why = why, .why_size = why_size };
    pin_start(db, rpc, net, waited, &w);
    while (!w.done)
        loop_turn(l, -1);
    return w.result;
}
