/* The settler of one network: the only holder of the relayer's key. It submits what is due, proves what was mined,
 * resolves what is unknown, and frees what a dead gateway left. It never tells an order anything but what the chain proved. */
#ifndef SETTLE_SETTLER_H
#define SETTLE_SETTLER_H

#include "settle/terms.h"
#include "sql/sql.h"

struct desk;                         /* the settler's own */

/* What stands above settling and works at the same desk, once a turn: final facts are booked, debts are paid. */
struct settler_turn {
    struct desk *desk;
    struct loop *loop;
    struct db *db;
    struct rpc *rpc;
    const struct net *net;
    struct block head, final;
    bool owner;                      /* this settler has the relayer's lease */
    const char *by;                  /* {"actor": "settler:..."} */
};
typedef void settler_beside_fn(void *arg, const struct settler_turn *t);

/* What proves something: answers that the network's quorum of endpoints gives. */
struct rpc_answers settler_ask(struct desk *d, struct rpc_item *items, size_t n) MUST_CHECK;
/* A transaction of the relayer's that carries no payment of ours but a call: signed with the next account nonce and committed by
 * `function`(network, relayer, owner, epoch, nonce, hash, raw, gas, fees, to, data, what, by), which answers "verdict", "id", "hash",
 * "raw", "next_nonce"; then broadcast, repeated and replaced like any other. False: not now. */
struct settler_call { struct address to; struct slice data; uint64_t gas; const char *function, *what; };
bool settler_carry(struct desk *d, const struct settler_call *call) MUST_CHECK;

struct settler_options {
    struct loop *loop;
    struct db *db;
    struct fetcher *fetcher;
    const struct net *net;
    const struct key *relayer;
    settler_beside_fn *beside;       /* may be NULL */
    void *beside_arg;
    const bool *stop;                /* becomes true on SIGTERM: finish the step under way, then return */
};
/* Returns when told to stop (true), or when a chain was replaced (false, said in the log). */
bool settler_run(const struct settler_options *o) MUST_CHECK;

#endif
