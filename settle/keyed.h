/* A refund that is a transaction of the refund wallet's own, on networks where an account has nonces in two dimensions.
 * Its nonce key is made of the hash that names the refund, and its transfer carries that hash. Under one count of the
 * key the chain mines one transaction, whatever was signed for it and by whoever has the key; one that was mined and
 * reverted has used its count up (measured), so the next count is signed when the chain shows that at a final block,
 * and not before. */
#ifndef SETTLE_KEYED_H
#define SETTLE_KEYED_H

#include "settle/settler.h"

/* Are refunds such transactions there? Elsewhere they are authorizations, which anybody may carry. */
bool keyed_network(const struct net *n);
bool keyed_token(const struct address *a); /* could such a network's token live there? */

struct keyed_refund {
    struct address wallet, payer, token, fee_token;
    struct amount amount;
    struct hash32 name;   /* what its transfer carries, and what its key is made of */
    uint64_t count;       /* under the key */
    uint64_t gas;         /* of keyed_ask */
    int64_t valid_before; /* from here on it is never mined */
};
struct hash32 keyed_key(const struct hash32 *name);
struct amount keyed_cost(const struct desk *d); /* the most that one costs beside its amount, in the fee token */

enum keyed_now {
    KEYED_PAYABLE,
    KEYED_REFUSED, /* the token says why */
    KEYED_UNANSWERED,
};
struct keyed_answer {
    enum keyed_now now;
    enum revert why;
};
/* Would the token carry them out now? Sets their gas. */
void keyed_ask(struct desk *d, struct keyed_refund *r, size_t n, struct keyed_answer *ret);
/* False: fees are above the network's limit now. */
bool keyed_sign(struct desk *d, const struct keyed_refund *r, const struct key *wallet, struct buf *ret_raw,
                struct hash32 *ret_hash) MUST_CHECK;
/* To every endpoint, once more or for the first time. What they say of it is logged and decides nothing. */
void keyed_send(struct desk *d, const struct hash32 *hash, struct slice raw);

/* What the final block and receipts at or below it say of a signed one. */
enum keyed_fate {
    KEYED_UNKNOWN, /* nothing yet, or no answer */
    KEYED_WAITING, /* not mined, and may be yet */
    KEYED_DEAD,    /* its deadline has passed, and its count is not used */
    KEYED_TAKEN,   /* its count is used, and not by it as far as the nodes tell */
    KEYED_PAID,    /* the payer has it, by its own log */
    KEYED_REVERTED,
    KEYED_ASTRAY, /* it succeeded, and the money went to somebody else */
};
struct keyed_sent {
    struct keyed_refund refund;
    struct hash32 hash;
    enum keyed_fate fate;
    struct address went_to;
};
void keyed_look(struct desk *d, struct keyed_sent *s, size_t n); /* sets fate, and went_to of KEYED_ASTRAY */

#endif
