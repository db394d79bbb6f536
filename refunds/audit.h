/* Inside the auditor: what the chain says, read by code of its own, and what the journal says of it. */
#ifndef REFUNDS_AUDIT_H
#define REFUNDS_AUDIT_H

#include "refunds/internal.h"

/* One Transfer that touches a wallet of ours. */
struct seen {
    struct hash32 tx, nonce;
    uint64_t log_index, block;
    struct address asset, from, to;
    struct amount amount;
    bool has_nonce, receipt, movement; /* the journal has its entry as what came in; as what went out */
    bool optional;                     /* the journal need not have one */
};
struct seen_list {
    struct seen *of;
    size_t n, room;
    size_t *slot;
    size_t slots;
}; /* slot: by (tx, log), 0 free, else place + 1 */

struct audit_wallet {
    struct address address;
    bool refund;
    uint64_t start, block;
};

/* Every Transfer of the network's tokens from or to the wallet in its booked blocks, in order, and those of other
 * tokens that name us. False: the chain cannot be read. */
bool audit_chain(struct rpc *rpc, const struct net *n, const struct audit_wallet *w, struct seen_list *ret) MUST_CHECK;
void seen_done(struct seen_list *l);
struct seen *audit_find(struct seen_list *l, const struct hash32 *tx, uint64_t log_index);

#endif
