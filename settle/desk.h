/* Inside the settler: one network's desk, and the steps that it repeats. Private to settle/. */
#ifndef SETTLE_DESK_H
#define SETTLE_DESK_H

#include "base/clock.h"
#include "settle/orders.h"
#include "settle/settler.h"

struct desk {
    const struct net *net;
    const struct key *relayer;
    struct loop *loop;
    struct db *db;
    struct rpc *rpc;                 /* over all endpoints: the first that answers */
    struct rpc *each[8];             /* over one endpoint each, where a quorum must agree */
    uint64_t told[8][RPC_FAULTS];    /* of the endpoints' faults, what the database was told */
    struct heads {                   /* of each endpoint, where one alone is believed */
        uint64_t number[8], before[8];
        size_t waiting;              /* for so many */
        bool asked;
        int64_t at_ms;
    } heads;
    struct order_id instance;
    char by[64];                     /* {"actor": "settler:..."}: who writes into orders' stories */
    bool pinned;

    bool seen;                       /* head, final, tip and balance are of the last look at the chain */
    bool new_head;                   /* that look saw a block that the one before did not */
    bool reorg;                      /* blocks may have left the chain since proofs were taken from them */
    struct block head, final;
    struct amount tip, balance;
    uint64_t chain_nonce;            /* the relayer's next account nonce at head */
    int64_t look_at_ms;

    bool owner;                      /* the wallet's lease is ours, with this epoch */
    int64_t epoch, renew_at_ms;
    uint64_t next_nonce;

    bool poor, dear;                 /* said once: out of gas money, fees above the limit */
    bool open;                       /* something is on its way: look often */
    int64_t open_at_ms, resolve_at_ms, scan_at_ms, reconcile_at_ms, orphans_at_ms;
    uint64_t scan_span;              /* blocks of one range, as the provider takes them */
};

enum { DESK_DB_MS = 10000 };         /* deadline of one database call */

/* Each returns false when it could not do its work now; the next turn tries again. */
bool desk_watch(struct desk *d);     /* head, final block, fees, balance */
bool desk_lease(struct desk *d);     /* the relayer wallet's lease */
bool desk_submit(struct desk *d);    /* due -> signed, committed -> broadcast */
bool desk_prove(struct desk *d);     /* mined -> proofs; what never left us is broadcast again */
bool desk_resolve(struct desk *d);   /* unknowns whose next look has come */
bool desk_charges(struct desk *d);   /* on Tempo, instead of submit, prove and resolve: payers' transactions */
bool desk_orphans(struct desk *d);   /* and what of them nobody presented */
bool desk_seen(struct desk *d);      /* head and final block into the database, once reorganisations are dealt with */
bool desk_reorg(struct desk *d);     /* proofs whose block left the chain are undone */
bool desk_scan(struct desk *d);      /* every Transfer to our wallets, up to the final block */

/* Sends the stored bytes of row i of relay_open, once more or for the first time. */
void desk_broadcast(struct desk *d, const struct db_rows *open, int i);
/* Signs with the next account nonce, commits, sends. tx: gas, to and data; ids: the authorizations in it. False: the lease or
 * the nonce is no longer ours, or the database is away; the stored bytes, if they were stored, go out when the lease is taken again. */
bool desk_send(struct desk *d, struct transaction *tx, const json_t *ids);
/* What does not come into a block: the fee of the next nonce is raised, and nonces that others used are given up. */
struct mined {
    struct receipt receipt;
    uint64_t block_time;
    bool absent;                     /* the nodes say that there is no receipt */
    bool usable;                     /* deep enough, and its block is the chain's block of that number */
};
void desk_unstick(struct desk *d, const struct db_rows *open, const struct mined *m);
void desk_fill_gap(struct desk *d, const struct db_rows *open);

/* Where an authorization was used, and what the transaction there did. Rows that name an authorization have "asset", "payer" and "nonce". */
struct auth_key { struct address asset, payer; struct hash32 nonce; };
void desk_key(const struct db_rows *rows, int i, struct auth_key *ret);
/* Is the nonce of row i used, at block at[i]? Read together, many in one call of the same block; one that cannot be, alone. */
enum flag { FLAG_NO_ANSWER, FLAG_UNUSED, FLAG_USED };
void desk_flags(struct desk *d, const struct db_rows *rows, const uint64_t *at, enum flag *ret);
/* The transaction that used or cancelled the nonce of row i ("from_block" too), from the token's own indexed logs. */
enum seek { SEEK_FOUND, SEEK_NONE /* the nodes have no such log */, SEEK_FAILED };
enum seek desk_seek(struct desk *d, const struct db_rows *rows, int i, struct log_place *ret) MUST_CHECK;
/* Its receipt, or what all logs of its block say in its stead, in a block of the chain as it is now. Caller: receipt_done. */
bool desk_landed(struct desk *d, const struct log_place *p, struct receipt *ret, uint64_t *ret_time) MUST_CHECK;
/* If it is a transaction of our wallet's and deep: records all that it proves and its own end, as if desk_prove had found it. */
bool desk_mined(struct desk *d, const struct receipt *r, uint64_t block_time) MUST_CHECK;

/* Used, and no log shows our Transfer or says where it went: a person decides, and it is looked at on. */
void desk_puzzle(struct desk *d, int64_t id, const char *fact);

/* Like rpc_wait, but an answer counts only when the network's quorum of endpoints gives it. */
struct rpc_answers quorum_wait(struct desk *d, struct rpc_item *items, size_t n) MUST_CHECK;
bool quorum_block(struct desk *d, const char *tag, struct block *ret) MUST_CHECK; /* the newest under the tag that the quorum has */

void desk_heads(struct desk *d);     /* where one endpoint is believed, whichever lags far behind the others is not asked */
void desk_faults(struct desk *d);    /* what endpoints were at fault for since the last time, into the database */

struct amount desk_fee(const struct desk *d);            /* wei per gas to offer now */
/* The proof that `e` is of authorization row i of rows ("payer", "payee", "amount"): its own Transfer, exactly. */
bool desk_proves(const struct auth_event *e, const struct db_rows *rows, int i) MUST_CHECK;
/* Appends one proof to the array that proofs_record takes. */
void desk_add_proof(json_t *proofs, int64_t authorization, const struct auth_event *e, uint64_t block_time);
bool desk_record(struct desk *d, json_t *proofs, json_t *mined, json_t *unpaid); /* steals all three; NULL: none */
bool desk_deep(const struct desk *d, uint64_t block);    /* is it at the network's depth? */

#endif
