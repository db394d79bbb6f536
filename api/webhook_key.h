/* The key that signs what a seller's webhook is told: a file of mode 0600 with whsec_ and base64, as Standard Webhooks has it. */
#ifndef API_WEBHOOK_KEY_H
#define API_WEBHOOK_KEY_H

#include "base/bytes.h"

struct webhook_key { uint8_t *b; size_t n; };
bool webhook_key_read(const char *path, struct webhook_key *ret) MUST_CHECK; /* false: no file, others can read it, or no key */
void webhook_key_done(struct webhook_key *k);

#endif
