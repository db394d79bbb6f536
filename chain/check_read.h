/* One question of the checker, and how it is put to a node and read back. Pure. */
#ifndef CHAIN_CHECK_READ_H
#define CHAIN_CHECK_READ_H

#include "chain/rpc_internal.h"

enum {
    SHARE_MAX = 100,                                     /* questions in one call: CALL_GAS is over twice their need */
    LONE_GAS = 3000000,                                  /* also for a payer whose code checks the signature */
    PLAIN_ITEMS = 4,
};

struct ask {
    struct ask *next;
    struct address token, payer;
    struct hash32 nonce;
    struct amount value;
    struct buf transfer;                                 /* calldata of the simulation */
    bool doubted;                                        /* it was answered no, by endpoint `by` */
    size_t by;
    auth_facts_fn *fn;
    void *arg;
};

/* One aggregate3 for n questions. What cannot be read of one is known = false there; has_code is not set. */
json_t *shared_params(struct ask *const *asks, size_t n) MUST_CHECK;
bool shared_read(struct slice reply, size_t n, struct auth_facts *ret) MUST_CHECK;

/* Without Multicall3: code, flag, balance and simulation of one question at one block's number. */
void plain_items(const struct ask *a, uint64_t block, struct rpc_item ret[PLAIN_ITEMS]);
bool plain_read(const struct rpc_answer answers[PLAIN_ITEMS], struct auth_facts *ret) MUST_CHECK;

#endif
