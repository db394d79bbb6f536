/* The load program's two ways to pay what a 402 asks for. Each ends the program where that cannot be paid. */
#ifndef BENCH_LOAD_PAY_H
#define BENCH_LOAD_PAY_H

#include "chain/chain.h"

/* The value of PAYMENT-SIGNATURE for a PAYMENT-REQUIRED: the offer is given back as it came. Or, without its quote, of
 * X-PAYMENT: a quote that was taken would find its own order, and that is a replay. */
void x402_payment(const char *required, const struct key *k, bool without_quote, struct buf *ret);

/* The value of Authorization for a WWW-Authenticate of MPP's, pull as the stock client does it with a key: a transaction
 * for the server to send, under the expiring nonce, so that one payer may have many in flight. */
void mpp_payment(const char *www_authenticate, const struct key *k, struct buf *ret);

#endif
