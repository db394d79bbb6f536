/* Sign-in with a wallet (x402's SIGN-IN-WITH-X): who reads this header is the wallet that signed its text (EIP-4361), by an ECDSA
 * signature (EIP-191) or by its contract's word (EIP-1271). What is asked for is never taken from it: domain, uri and nonce must be
 * what we expect, and the nonce is one that we made, good for five minutes. That it is used once is the database's to say. */
#ifndef SETTLE_SIWX_H
#define SETTLE_SIWX_H

#include <jansson.h>

#include "base/err.h"
#include "chain/chain.h"
#include "settle/quote.h"

enum { SIWX_NONCE_S = 300, SIWX_NONCE_TEXT = 64 };

struct siwx {
    json_t *fields;                  /* owned: what was sent, all of it printable text */
    struct address address;
    uint64_t chain_id;
    uint8_t signature[4096];
    size_t signature_n;
};
void siwx_done(struct siwx *s);
#define SIWX SCOPE(siwx_done) struct siwx

/* False: detail names what is malformed. */
bool siwx_read(struct slice header, struct siwx *ret, const char **ret_detail) MUST_CHECK;
/* The text that is signed, from "domain", "address", "statement"? and so on of an object. */
void siwx_text(const json_t *fields, struct buf *ret);
struct hash32 siwx_digest(struct slice text);            /* EIP-191 */

struct siwx_want { const struct quote_key *key; const char *domain, *uri; int64_t now; };
/* ERR_NONE: domain, uri, times and nonce are right; whether it is signed is asked apart. */
enum err siwx_check(const struct siwx *s, const struct siwx_want *w, struct hash32 *ret_nonce) MUST_CHECK;
bool siwx_signed(const struct siwx *s) MUST_CHECK;       /* by the address's own key; false: perhaps by a contract */
/* eth_call's data of isValidSignature(digest, signature), and whether its reply says yes. */
void siwx_contract_call(const struct siwx *s, struct buf *ret);
bool siwx_contract_says_yes(const uint8_t *reply, size_t n) MUST_CHECK;

/* A new sign-in to be offered: {domain, uri, version, nonce, issuedAt, expirationTime, statement, resources}. */
json_t *siwx_offer(const struct siwx_want *w, const char *statement) MUST_CHECK;
/* The value of SIGN-IN-WITH-X for an offer, signed by k on a chain. NULL: the offer is not one, or cannot be signed. */
char *siwx_answer(json_t *offer, const char *chain, const struct key *k) MUST_CHECK;
char *url_host(const char *url) MUST_CHECK;              /* host[:port] of scheme://host[:port]/... */

#endif
