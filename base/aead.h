/* Bytes sealed under a key: AES-256-GCM with a nonce at random. A key may seal 2^32 messages. */
#ifndef BASE_AEAD_H
#define BASE_AEAD_H

#include "base/bytes.h"

enum { AEAD_EXTRA = 12 + 16 };                           /* bytes that sealing adds: nonce in front, tag behind */
void aead_seal(const struct hash32 *key, struct slice plain, struct buf *ret); /* appends */
/* False, nothing appended: altered, or sealed under another key. */
bool aead_open(const struct hash32 *key, struct slice sealed, struct buf *ret) MUST_CHECK;

#endif
