/* chain: what the rest may know of an EVM chain.
 *
 * Encoders and signatures are pure. The RPC client and the readers work on the loop. Nothing here knows a
 * database, an order or HTTP status codes.
 *
 *   1 hashing and keys      2 networks and tokens     3 EIP-3009 authorizations   4 transactions
 *   5 JSON-RPC              6 reading one block       7 proofs from logs                              */
#ifndef CHAIN_CHAIN_H
#define CHAIN_CHAIN_H

#include <jansson.h>

#include "base/amount.h"
#include "base/bytes.h"
#include "base/fetch.h"
#include "base/loop.h"

/* ---- 1. hashing and keys ------------------------------------------------------------------------- */

struct hash32 keccak256(const void *p, size_t n);

/* A secp256k1 secret key, valid by construction. Wipe with key_wipe. */
struct key { uint8_t secret[32]; struct address address; };
enum key_rc { KEY_OK, KEY_NO_FILE, KEY_LOOSE_FILE /* readable by group or others */, KEY_BAD };
enum key_rc key_load(const char *path, struct key *ret) MUST_CHECK;      /* 64 hex digits, 0x optional, in the file */
bool key_from_secret(const uint8_t secret[32], struct key *ret) MUST_CHECK;
void key_wipe(struct key *k);

struct signature { uint8_t r[32], s[32]; uint8_t v; };   /* v is 27 or 28 */
bool key_sign(const struct key *k, const struct hash32 *digest, struct signature *ret) MUST_CHECK; /* RFC 6979, low s */
/* 65 bytes r, s, v; v 0 and 1 are made 27 and 28. False: length, v, high s, r or s zero or out of range.
 * Nothing that a client sends reaches the library before this. */
bool signature_read(const uint8_t *p, size_t n, struct signature *ret) MUST_CHECK;
void signature_write(const struct signature *s, uint8_t ret[65]);
bool signature_recover(const struct signature *s, const struct hash32 *digest, struct address *ret) MUST_CHECK;

struct address_text address_checksum(const struct address *a);           /* EIP-55 */

/* ---- 2. networks and tokens ---------------------------------------------------------------------- */

struct token {
    uint64_t chain_id;
    struct address address;
    const char *name, *version, *symbol;                 /* name and version are the EIP-712 domain's */
    unsigned decimals;
    struct hash32 domain;                                /* its EIP-712 domain separator, from token_domain */
};
struct network {
    uint64_t chain_id;
    const char *id;                                      /* CAIP-2: "eip155:8453" */
    const char *v1_name;                                 /* "base"; NULL: none that x402 v1 clients know */
    bool tempo;                                          /* payers send their own transactions there: see tempo_tx.h */
};

const struct network *network_by_chain(uint64_t chain_id);   /* NULL: not built in */
const struct network *network_by_v1_name(const char *name);
const struct token *token_built_in(uint64_t chain_id, size_t i); /* i-th token that is paid with there, complete; else NULL */
bool network_id_read(const char *id, uint64_t *ret_chain) MUST_CHECK;    /* "eip155:<decimal>", not 0 */
void token_domain(struct token *t);                      /* fills t->domain from the other fields */

extern const struct address multicall3_address;          /* 0xcA11bde05977b3631167028862bE2a173976CA11 */
extern const struct hash32 topic_transfer, topic_authorization_used, topic_authorization_canceled, topic_transfer_with_memo;

/* ---- 3. EIP-3009 authorizations ------------------------------------------------------------------ */

struct authorization {
    struct address from, to;
    struct amount value, valid_after, valid_before;      /* times: unix seconds, whole uint256 range */
    struct hash32 nonce;
    uint8_t signature[4096];                             /* as it will be submitted; v normalised when 65 bytes */
    size_t signature_n;
};

struct hash32 authorization_digest(const struct authorization *a, const struct token *t);
/* False: k is not a->from's. */
bool authorization_sign(struct authorization *a, const struct token *t, const struct key *k) MUST_CHECK;
/* EIP-712 for messages that no contract reads: domain {name, version "1", chainId 1}; words are the struct's members, encoded. */
struct hash32 typed_digest(const char *domain_name, const char *type, const struct hash32 *words, size_t n);
struct hash32 typed_text(struct slice s);                /* a string member */
struct hash32 typed_u64(uint64_t v);
/* ABI calldata of transferWithAuthorization: the (v,r,s) overload for 65 bytes, else the bytes overload. */
void authorization_call(struct buf *b, const struct authorization *a);

/* ABI calldata of authorizationState(payer, nonce), and of balanceOf(holder). */
struct state_call { uint8_t b[4 + 64]; };
struct state_call state_call(const struct address *payer, const struct hash32 *nonce);
struct balance_call { uint8_t b[4 + 32]; };
struct balance_call balance_call(const struct address *holder);

struct call3 { struct address to; struct slice data; };
void multicall_call(struct buf *b, const struct call3 *calls, size_t n); /* aggregate3, failures allowed */
/* The reply of aggregate3: n results that point into reply. False: malformed. */
struct call3_result { bool ok; struct slice data; };
bool multicall_read(struct slice reply, struct call3_result *ret, size_t n) MUST_CHECK;

/* ---- 4. transactions ----------------------------------------------------------------------------- */

struct transaction {                                     /* EIP-1559, type 2, empty access list */
    uint64_t chain_id, nonce, gas;
    struct amount max_fee, max_tip, value;               /* wei */
    struct address to;
    struct slice data;
};
/* Appends the raw transaction to ret_raw. */
bool transaction_sign(const struct transaction *tx, const struct key *k, struct buf *ret_raw,
                      struct hash32 *ret_hash) MUST_CHECK;

/* ---- 5. JSON-RPC --------------------------------------------------------------------------------- */

/* A client for one network over one or more endpoints. An endpoint that is unreachable, answers junk or
 * serves another chain id is set aside for a while, counted, and the next is asked. chain id is asked of
 * each endpoint before its first use and every minute. */
struct rpc;
struct rpc *rpc_new(struct fetcher *f, struct loop *l, uint64_t chain_id, const char *const *urls, size_t n,
                    int64_t timeout_ms) MUST_CHECK;      /* 1 to 64 endpoints; timeout: of a call, over all of them */
void rpc_free(struct rpc *r);                            /* calls under way end as RPC_UNAVAILABLE, callbacks included */
uint64_t rpc_chain_id(const struct rpc *r);

enum rpc_rc {
    RPC_OK,
    RPC_ERROR,       /* the node understood and said no: code, message, data */
    RPC_UNAVAILABLE, /* no endpoint gave an answer of this chain that can be used: nothing is known */
};
struct rpc_answer {
    enum rpc_rc rc;
    json_t *result;                                      /* borrowed; RPC_OK only (may be JSON null) */
    int64_t code;                                        /* RPC_ERROR */
    const char *message;                                 /* RPC_ERROR: the node's; RPC_UNAVAILABLE: ours, a constant */
    const char *data;                                    /* RPC_ERROR: revert bytes as hex, or NULL */
    size_t endpoint;                                     /* which one answered (RPC_UNAVAILABLE: was asked last) */
    json_t *object;                                      /* what result, message and data live in, or NULL */
};
struct rpc_item { const char *method; json_t *params; }; /* params are stolen */
/* Called exactly once, never from inside the start. The answers, in the items' order, live only during the call. */
typedef void rpc_done_fn(void *arg, const struct rpc_answer *answers, size_t n);

/* One HTTP request for all items, from one endpoint: the answers agree on a node, not on a block. */
void rpc_start(struct rpc *r, struct rpc_item *items, size_t n, rpc_done_fn *fn, void *arg);
/* The same items to every endpoint at once; one call per endpoint's answer is folded: fn gets for each endpoint
 * one answer of item 0. For eth_sendRawTransaction. */
void rpc_start_everywhere(struct rpc *r, struct rpc_item item, rpc_done_fn *fn, void *arg);
/* Turns the loop until the answer is there. For programs without another loop (settler, pay, doctor). The
 * answers are the caller's until rpc_answers_done. */
struct rpc_answers { struct rpc_answer *a; size_t n; };
struct rpc_answers rpc_wait(struct rpc *r, struct rpc_item *items, size_t n) MUST_CHECK;
struct rpc_answers rpc_wait_everywhere(struct rpc *r, struct rpc_item item) MUST_CHECK;
void rpc_answers_done(struct rpc_answers *a);

/* What an endpoint was at fault for. The last four show only beside others, so whoever asks several says them. */
enum rpc_fault {
    RPC_UNREACHABLE, RPC_CUT, RPC_TOO_LARGE, RPC_RATE_LIMIT, RPC_HTTP_5XX, RPC_HTTP_STATUS, RPC_NOT_JSON, RPC_MISMATCH, RPC_NULL,
    RPC_NO_CHAIN, RPC_OTHER_CHAIN, RPC_REFUSED, RPC_LIMIT, RPC_LACKING, RPC_BEHIND, RPC_AHEAD, RPC_DIFFERS, RPC_FAULTS
};
const char *rpc_fault_word(enum rpc_fault f);            /* as metrics name it */
/* Counts what showed beside others, and sets the endpoint aside for what is asked of one alone. */
void rpc_blame(struct rpc *r, size_t endpoint, enum rpc_fault f);

struct rpc_stats {
    const char *url;                                     /* scheme, host and port; keys stand in the rest */
    uint64_t calls, requests, faults[RPC_FAULTS];
    const char *trouble;                                 /* what was last wrong, a constant; NULL: nothing yet */
    bool set_aside;
};
size_t rpc_stats(const struct rpc *r, struct rpc_stats *ret, size_t max);

/* Quantities and data as JSON-RPC spells them. */
bool rpc_read_u64(const json_t *j, uint64_t *ret) MUST_CHECK;            /* "0x..." */
bool rpc_read_amount(const json_t *j, struct amount *ret) MUST_CHECK;
bool rpc_read_hash(const json_t *j, struct hash32 *ret) MUST_CHECK;
bool rpc_read_address(const json_t *j, struct address *ret) MUST_CHECK;
uint8_t *rpc_read_data(const json_t *j, size_t *ret_n) MUST_CHECK;       /* allocated; NULL: malformed */
json_t *rpc_u64(uint64_t v) MUST_CHECK;
json_t *rpc_hex(const void *p, size_t n) MUST_CHECK;

/* ---- 6. reading one block ------------------------------------------------------------------------ */

struct block { uint64_t number, time; struct hash32 hash, parent; struct amount base_fee; };
bool block_read(const json_t *j, struct block *ret) MUST_CHECK;          /* of eth_getBlockByNumber/Hash */

/* Why the token would refuse the transfer, from its revert bytes. */
enum revert {
    REVERT_NONE, REVERT_USED, REVERT_EXPIRED, REVERT_NOT_YET_VALID, REVERT_SIGNATURE, REVERT_BALANCE,
    REVERT_BLACKLISTED, REVERT_PAUSED, REVERT_FORBIDDEN, REVERT_RECIPIENT, REVERT_OTHER,
};
enum revert revert_read(struct slice data); /* Error(string) as FiatTokenV2_2 spells it, TIP-20's errors; else OTHER */
const char *revert_name(enum revert r);

/* What one block says of one authorization. */
struct auth_facts {
    bool known;                      /* false: the chain could not be read, nothing below is set */
    uint64_t block, block_time;      /* all but has_code is from this block */
    bool has_code;                   /* the payer is a contract or a 7702 account: judged by the simulation */
    bool nonce_used;
    bool balance_known;
    struct amount balance;
    bool transfer_ok;                /* simulating the transfer succeeded */
    enum revert why;                 /* when it did not */
};
/* Reads for many at once: what is asked within a few milliseconds, or while a read is under way, shares one
 * eth_call (Multicall3), from one block. A payer with code is read alone, so that its code cannot spend the
 * others' gas. A "yes" that the balance before the call does not cover is asked again alone before it is given, and
 * so is every "no": it may be one by sharing (two payments from one balance), or by a node that is behind. The second
 * time another endpoint is asked, if there is one, and a "no" of a block older than what was seen in the last minute
 * is not known. Where Multicall3 is missing: call by call. */
struct checker;
struct checker *checker_new(struct loop *l, struct rpc *r) MUST_CHECK;
/* Before its rpc, and not from a callback. What is under way ends as not known. */
void checker_free(struct checker *c);
typedef void auth_facts_fn(void *arg, const struct auth_facts *facts);
/* Copies t and a. The callback is called once, never from inside the start. */
void checker_start(struct checker *c, const struct token *t, const struct authorization *a, auth_facts_fn *fn,
                   void *arg);
/* One-shot forms for programs that wait. */
struct auth_facts checker_wait(struct checker *c, const struct token *t, const struct authorization *a);

/* Which of n addresses have code, 400 in one eth_call at the latest block. False: the chain could not be read. */
bool code_wait(struct rpc *r, const struct address *who, size_t n, bool *ret) MUST_CHECK;

/* ---- 7. proofs from logs ------------------------------------------------------------------------- */

/* What one AuthorizationUsed or AuthorizationCanceled log says, with the Transfer that belongs to it: the
 * token's next log after the event in the same transaction. */
struct auth_event {
    enum { AUTH_EVENT_TRANSFER, AUTH_EVENT_CANCELED, AUTH_EVENT_NO_TRANSFER } kind;
    struct hash32 tx, block_hash;
    uint64_t block, log_index;       /* log_index: of the Transfer (of the event where there is none), in the block */
    uint64_t event_index;            /* of AuthorizationUsed or AuthorizationCanceled */
    struct address from, to;         /* of the Transfer */
    struct amount value;
};
struct receipt {
    bool found;                      /* false: null, the node does not know it (mined or not) */
    bool success;
    uint64_t block, tx_index, gas_used;
    struct hash32 tx, block_hash;
    bool has_from;
    struct address from;             /* the transaction's sender, where the node says it */
    struct amount gas_price;
    json_t *logs;                    /* owned */
    struct log *log;                 /* the same, read once; owned */
    size_t good, count;              /* of `count`, how many are well formed and in order, up to the first that is not */
};
bool receipt_read(const json_t *j, struct receipt *ret) MUST_CHECK;      /* false: malformed */
/* Where a log stands. */
struct log_place { struct hash32 tx, block_hash; uint64_t block; };
bool log_place_read(const json_t *log, struct log_place *ret) MUST_CHECK;
/* The same from all logs of a block, as eth_getLogs by its hash gives them, for nodes that do not find the receipt. A transaction
 * that has logs succeeded; gas and place are not known. False: a log is left out or malformed, or none is of this transaction. */
bool receipt_of_logs(const json_t *logs, const struct hash32 *tx, const struct hash32 *block_hash, uint64_t block,
                     struct receipt *ret) MUST_CHECK;
void receipt_done(struct receipt *r);
/* Looks in the receipt's logs for the end of (token, payer, nonce). False: no such event in it. */
bool receipt_find(const struct receipt *r, const struct address *token, const struct address *payer,
                  const struct hash32 *nonce, struct auth_event *ret) MUST_CHECK;
/* Each Transfer of the token to `to` (NULL: to anybody), with the nonce of the authorization that it belongs to (NULL: a plain transfer). False: malformed. */
typedef void transfer_fn(void *arg, const struct auth_event *transfer, const struct hash32 *nonce);
bool receipt_each_transfer(const struct receipt *r, const struct address *token, const struct address *to, transfer_fn *fn, void *arg) MUST_CHECK;
/* Params of eth_getLogs for the token's AuthorizationUsed and AuthorizationCanceled of (payer, nonce). */
json_t *logs_of_nonce(const struct address *token, const struct address *payer, const struct hash32 *nonce,
                      uint64_t from_block, uint64_t to_block) MUST_CHECK;

#endif
