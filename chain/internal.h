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

/* RLP in. Strict: only the spelling that the above have. Takes the first item off the front of *rest; false: there is
 * none. */
struct rlp_item { bool is_list; struct slice body, whole; };
bool rlp_next(struct slice *rest, struct rlp_item *ret) MUST_CHECK;
bool rlp_read_amount(const struct rlp_item *i, size_t max_bytes, struct amount *ret) MUST_CHECK;
bool rlp_read_u64(const struct rlp_item *i, uint64_t *ret) MUST_CHECK;

/* A receipt's log. One that does not say that it stands in this receipt's transaction and block proves nothing. */
struct log {
    struct address address;
    struct hash32 topic[4];
    size_t topics;
    const json_t *data;
    uint64_t index;
};
bool log_read(const json_t *j, const struct receipt *r, struct log *ret) MUST_CHECK;
bool log_is(const struct log *log, const struct hash32 *event);
bool log_amount(const struct log *log, struct amount *ret) MUST_CHECK;   /* data of one word */
struct hash32 topic_of(const struct address *a);
bool topic_address(const struct hash32 *h, struct address *ret) MUST_CHECK;

#endif
