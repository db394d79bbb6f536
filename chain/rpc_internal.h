/* What the files of the JSON-RPC client and the readers share among themselves. */
#ifndef CHAIN_RPC_INTERNAL_H
#define CHAIN_RPC_INTERNAL_H

#include "chain/chain.h"

enum {
    /* 2^24: below the gas cap of a call on every node that we know of (50 million on most), and below the cap of a
     * single transaction (EIP-7825), should a node apply that. */
    CALL_GAS = 0xffffff,
    CODE_MAX = 400,                                      /* addresses in one code call */
};

/* Appends {"jsonrpc":"2.0","id":...,"method":...,"params":...}; NULL params are []. */
void request_add(struct buf *b, uint64_t id, const char *method, const json_t *params);

enum reply_worth {
    REPLY_GOOD,
    REPLY_JUNK,      /* not an answer to what was asked */
    REPLY_TROUBLE,   /* the whole request was refused */
    REPLY_LIMIT,     /* an item was refused for the provider's own reasons */
};
/* Fits the reply to items with the ids first, first + 1, ...; the answers point into root. */
enum reply_worth reply_read(json_t *root, uint64_t first, size_t n, bool sends, struct rpc_answer *ret);
bool method_sends(const char *method);                   /* not a read: its internal errors are answers too */

/* One endpoint only, whatever its record. */
void rpc_start_at(struct rpc *r, size_t endpoint, struct rpc_item *items, size_t n, rpc_done_fn *fn, void *arg);
/* Any endpoint in good standing rather than this one (SIZE_MAX: none is avoided). */
void rpc_start_elsewhere(struct rpc *r, size_t but, struct rpc_item *items, size_t n, rpc_done_fn *fn, void *arg);
size_t rpc_endpoints(const struct rpc *r);
struct loop *rpc_loop(const struct rpc *r);

/* Params of an eth_call. to NULL: data is init code that is run and not kept. block NULL: latest. */
json_t *call_params(const struct address *to, struct slice data, uint64_t gas, const uint64_t *block) MUST_CHECK;

/* Which addresses have code: one eth_call that needs no contract on the chain. At most CODE_MAX. */
json_t *code_params(const struct address *who, size_t n, const uint64_t *block) MUST_CHECK;
bool code_read(const struct rpc_answer *a, size_t n, bool *ret) MUST_CHECK;

#endif
