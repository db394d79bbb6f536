/* What the files of chain/ share and nobody else sees. */
#ifndef CHAIN_INTERNAL_H
#define CHAIN_INTERNAL_H

#include "chain/chain.h"

/* The ABI's unit: 32 bytes, big-endian. */
#define WORD 32
void word_address(uint8_t ret[WORD], const struct address *a);
void word_u64(uint8_t ret[WORD], uint64_t v);

/* RLP: each appends one item. Integers are written without leading zero bytes, zero as the empty string. */
void rlp_bytes(struct buf *b, const void *p, size_t n);
void rlp_integer(struct buf *b, const uint8_t *big_endian, size_t n);
void rlp_amount(struct buf *b, struct amount a);
void rlp_u64(struct buf *b, uint64_t v);
void rlp_list(struct buf *b, const struct buf *items);   /* the list of the items that were written into `items` */

#endif
