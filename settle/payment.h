/* A payment as orders know it, whichever wire it came by: who pays what to whom, by what name the chain knows it, and which offer it
 * takes. */
#ifndef SETTLE_PAYMENT_H
#define SETTLE_PAYMENT_H

#include "settle/quote.h"
#include "settle/terms.h"

struct payment {
    int version;                     /* of its wire: answers are in the same one */
    struct authorization auth;       /* what its payer signed; of a transaction of his own, its terms, under the challenge as nonce */
    struct price price;              /* the offer that it takes: network, token, amount, payee */
    bool has_quote;
    struct quote_id quote;
    char payment_id[129];            /* empty: none */
    bool signer_proven;              /* by the payer, for certain. False: only a contract's own code can tell */
};

bool payment_id_ok(struct slice s);                      /* 16 to 128 of A-Z a-z 0-9 _ - */

#endif
