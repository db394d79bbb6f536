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
/* Every Transfer of the network's tokens that is `wanted`, in the transactions of `logs` (as eth_getLogs has them), read
 * from their receipts at or below the final block: [{"tx", "log_index", "block", "block_hash", "block_time", "asset",
 * "sender", "receiver", "amount", "nonce"?, "memo"?, "mark"?, "fee"?}], "nonce" of the authorization that it belongs to, "memo" where
 * it names a challenge of ours, "mark" where it carries anything else, "fee": its transaction's. NULL: not all could be read. */
typedef bool transfer_wanted_fn(const void *arg, const struct address *from, const struct address *to);
json_t *settler_transfers(struct desk *d, const json_t *logs, transfer_wanted_fn *wanted, const void *arg) MUST_CHECK;
/* How many blocks to scan next. Providers refuse ranges that are too long, each in words of its own, and what a range holds
 * is in memory at once: one that fails, or has more logs than the most, is halved; one that has few grows. span 0: the first. */
enum { SETTLER_LOGS_MOST = 2000 };
uint64_t settler_span(uint64_t span, bool ok, size_t logs) MUST_CHECK;
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
