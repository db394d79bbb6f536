/* Settlements for sellers who run a server of their own: orders whose work is `none`. The payer's nonce finds them; the rest of
 * what was asked only has to be the same. From the commit on they are sent, proven and resolved like every other authorization.
 *
 * Each function here is one SQL function, one commit, one verdict. All work on the loop, call back once, never from inside. */
#ifndef SETTLE_SETTLEMENTS_H
#define SETTLE_SETTLEMENTS_H

#include "settle/orders.h"

enum settling {
    SETTLING_NEW,             /* nothing here knows this nonce */
    SETTLING_ACCEPTED,        /* stored and due, by this very call */
    SETTLING_UNDECIDED,
    SETTLING_SETTLED,
    SETTLING_EXPIRED,         /* proven dead */
    SETTLING_VOID,
    SETTLING_AGAIN,           /* dead, and this is another signature over the same nonce, with time left: accept may take it */
    SETTLING_OTHER,           /* not this seller's: nothing of it is told */
    SETTLING_OTHER_PAYEE,     /* this seller's, presented before with other requirements */
    SETTLING_OTHER_AMOUNT,
    SETTLING_LIMIT,           /* it would be one too many for this seller today: nothing is stored */
};

/* Who asks for what: the payment, and what the seller's server requires for it. */
struct settlement {
    const char *seller;
    const struct payment *payment;
    const struct hash32 *terms;      /* digest of what is required */
    const struct address *pay_to;    /* required */
    int need_s;                      /* seconds that an authorization must still have to be worth taking */
};
struct settlement_found {
    enum settling is;
    struct order_id order;
    enum known known;                /* how much of the authorization is stored */
    bool has_tx;
    struct hash32 tx;                /* proven by it */
};
typedef void settlement_fn(void *arg, enum db_rc rc, const struct settlement_found *found);
void settlement_find(struct db *db, const struct settlement *s, int64_t deadline_ms, settlement_fn *fn, void *arg);

struct settlement_take {
    bool verified;                   /* by one block of the chain; else the signature is only kept beside a row that is there */
    bool has_code;                   /* the payer's signature is checked by its code */
    bool tell;                       /* the seller wants to hear how it ends */
    int64_t most;                    /* of his settlements in 24 hours, counted exactly; 0: far from any such number */
    const char *by;                  /* who asks, for the story: JSON, as orders_accept has it */
};
/* Durable before act: after SETTLING_ACCEPTED the authorization is committed, and will be sent. */
void settlement_accept(struct db *db, const struct settlement *s, const struct settlement_take *t, int64_t deadline_ms,
                       settlement_fn *fn, void *arg);

#endif
