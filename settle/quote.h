/* A quote: what a 402 offers for one request. Stateless: 128 random bits, an expiry and a MAC over everything that
 * was offered, so that a gateway honours what any gateway with the same key offered, and nothing else. */
#ifndef SETTLE_QUOTE_H
#define SETTLE_QUOTE_H

#include "settle/terms.h"

/* The first makes quotes, sign-in nonces and seals; all of them are honoured. So a key is changed without a loss: behind the one before
 * at every gateway, then in front of it, and the old one goes when nothing of its time is kept any more. */
enum { QUOTE_KEYS = 4 };
struct quote_key { uint8_t b[QUOTE_KEYS][32]; size_t n; };
struct quote_id { uint8_t b[16]; };
struct quote_text { char s[64]; };   /* base64url of id, expiry and MAC: 54 characters */

/* 64 hex digits a line, in a file of mode 0600. */
bool quote_key_load(const char *path, struct quote_key *ret) MUST_CHECK;
void quote_key_wipe(struct quote_key *k);
struct quote_id quote_fresh(void);
/* The offer of `price` for one request (its digest), to be taken until `expires` (unix seconds). */
void quote_write(const struct quote_key *k, const struct quote_id *id, int64_t expires, const char *tool, const struct hash32 *request,
                 const struct price *price, struct quote_text *ret);

enum quote_rc { QUOTE_OK, QUOTE_EXPIRED, QUOTE_OTHER /* altered, or made for another request or other terms */ };
/* price is what the payment says it accepted. ret_id is set for OK and EXPIRED. */
enum quote_rc quote_read(const struct quote_key *k, struct slice text, const char *tool, const struct hash32 *request,
                         const struct price *price, int64_t now, struct quote_id *ret_id) MUST_CHECK;
/* The id alone, whatever it was made for: it proves nothing, but an order that was made with it is known by it. */
bool quote_named(struct slice text, struct quote_id *ret_id) MUST_CHECK;

#endif
