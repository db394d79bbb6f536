/* Answers at rest: AES-256-GCM, a key of its own an order, made from the key file. What was sealed for one order opens for no other. */
#ifndef SETTLE_SEAL_H
#define SETTLE_SEAL_H

#include "settle/orders.h"
#include "settle/quote.h"

enum { SEAL_EXTRA = 1 + 12 + 16 };       /* bytes that sealing adds: version, nonce, tag */
/* what: 'h' headers, 'b' body. Appends. */
void seal(const struct quote_key *k, const struct order_id *order, char what, struct slice plain, struct buf *ret);
/* False, nothing appended: altered, of another order, or sealed under a key that the file does not have. A first byte of 0 stands before plain text
 * that was stored by a version that did not seal. */
bool seal_open(const struct quote_key *k, const struct order_id *order, char what, struct slice sealed, struct buf *ret) MUST_CHECK;

#endif
