/* Tempo's own transaction, type 0x76, and the token calls and logs of its TIP-20 tokens. Pure: no node is asked here.
 *
 * Against an EIP-1559 transaction it has several calls that succeed or fail together, fees in a token, nonces in two
 * dimensions (a 256-bit key and a count under that key), a deadline, a sponsor's signature, and keys other than
 * secp256k1. Reading is strict: what is not the one spelling that the encoder has is refused. */
#ifndef CHAIN_TEMPO_TX_H
#define CHAIN_TEMPO_TX_H

#include "chain/chain.h"

/* ---- the token: transferWithMemo and what it leaves in the logs ---- */

struct tempo_transfer { struct address to; struct amount amount; struct hash32 memo; };
void tempo_transfer_call(struct buf *b, const struct tempo_transfer *t);   /* calldata: 100 bytes */
bool tempo_transfer_read(struct slice calldata, struct tempo_transfer *ret) MUST_CHECK; /* false: any other calldata */

bool tempo_is_token(const struct address *a); /* every TIP-20 token's address begins with 20c0, and nobody else's */

/* ---- the transaction ---- */

struct tempo_call { bool creates; struct address to; struct amount value; struct slice input; };

/* Who pays the fees. */
enum tempo_fees {
    TEMPO_FEES_SENDER,
    TEMPO_FEES_OPEN,                 /* somebody who has not signed yet */
    TEMPO_FEES_SPONSORED,            /* somebody whose signature is in it */
};

enum tempo_signature {
    TEMPO_SECP256K1,                 /* 65 bytes */
    TEMPO_P256,                      /* 01, 130 bytes */
    TEMPO_WEBAUTHN,                  /* 02, at most 2,049 bytes */
    TEMPO_KEYCHAIN,                  /* 03 or 04: a user, and a signature by one of its keys */
    TEMPO_CONFIGURED,                /* 05: a configurable or multi-party account */
};

struct tempo_tx {
    uint64_t chain_id, gas, nonce;
    struct amount max_tip, max_fee, nonce_key;
    uint64_t valid_before, valid_after;                  /* unix seconds; 0: not bounded */
    struct tempo_call call;                              /* the first of call_count, which is at least 1 */
    size_t call_count, access_count, authorization_count;
    bool has_fee_token, has_key_authorization;
    struct address fee_token;
    enum tempo_fees fees;
};

/* A signed one, as it was read. call.input points into the bytes that were read. */
struct tempo_signed {
    struct tempo_tx tx;
    enum tempo_signature kind;
    struct hash32 digest;            /* what the sender signed */
    struct hash32 hash;              /* as the chain names it, however v was spelled */
    bool has_sender; /* recovered: TEMPO_SECP256K1; of the key that it shows: TEMPO_P256 (not verified) */
    struct address sender;
};

/* What is wrong with the bytes. */
enum tempo_rc {
    TEMPO_OK,
    TEMPO_TYPE,                      /* another type byte than 76: 78 asks for a sponsor */
    TEMPO_RLP,                       /* not RLP, not its one spelling, or bytes left over */
    TEMPO_ITEMS,                     /* not 14 items, nor 15 with a key authorization */
    TEMPO_FIELD,                     /* an item has the wrong form or size */
    TEMPO_NO_CALL,
    TEMPO_SIGNATURE,                 /* no kind that is known, or secp256k1 out of range, high s, of no key */
};
enum tempo_rc tempo_read(const uint8_t *raw, size_t n, struct tempo_signed *ret) MUST_CHECK;

/* Signs a transaction of one call whose sender pays its fees; call_count, the other counts, fees and
 * has_key_authorization are not looked at. Appends the raw transaction to ret_raw. */
bool tempo_sign(const struct tempo_tx *tx, const struct key *k, struct buf *ret_raw,
                struct hash32 *ret_hash) MUST_CHECK;

/* ---- nonces ---- */

/* The key whose nonces expire instead of being counted, with a valid_before at most TEMPO_EXPIRY_S ahead of the chain's
 * time. Before Tempo's T12 the nonce must be 0; since then it only tells equal transactions apart. */
struct amount tempo_expiring_key(void);
enum { TEMPO_EXPIRY_S = 30 };
/* getNonce(account, key) of the precompile that counts them: the next nonce under the key. */
extern const struct address tempo_nonces;
void tempo_nonce_call(struct buf *b, const struct address *account, struct amount key);
/* A key of its own for one payment out, from a hash that stands for it: under it nonce 0 is mined once, whatever is
 * signed. Its first byte is fixed, so that it is neither the expiring key, nor key 0, nor of those that the chain keeps
 * for itself. */
struct amount tempo_key_of(const struct hash32 *h);

/* ---- transfers in a receipt ---- */

/* A Transfer log of a TIP-20 token, with the memo of the TransferWithMemo log right behind it that says the same. */
struct tempo_moved {
    struct address token, from, to;
    struct amount amount;
    uint64_t log_index;              /* of the Transfer, in the block */
    bool has_memo;
    struct hash32 memo;
};
/* Each transfer to `to` (NULL: to anybody; the fee is one too, to the fee manager). A memo without its Transfer moves
 * nothing and is passed over. False: a log is malformed or out of order, and nothing is proven; or the transaction is
 * not found or failed. */
typedef void tempo_moved_fn(void *arg, const struct tempo_moved *m);
bool tempo_each_transfer(const struct receipt *r, const struct address *to, tempo_moved_fn *fn, void *arg) MUST_CHECK;
/* What the transaction moved, whether it succeeded or not: a failed one has paid its fee all the same. */
bool tempo_each_moved(const struct receipt *r, tempo_moved_fn *fn, void *arg) MUST_CHECK;
bool tempo_is_fee(const struct tempo_moved *m);

#endif
