/* The x402 wire, versions 1 and 2, scheme `exact` on EVM with EIP-3009: challenge out, payment in, settlement out.
 *
 * One 402 serves both versions: the PAYMENT-REQUIRED header for v2 clients, the body for v1 clients. Nothing that a
 * client sends back as "requirements" is believed: what it says it accepted is compared with our own terms, and an older
 * price counts only under the MAC of a quote. */
#ifndef SETTLE_X402_H
#define SETTLE_X402_H

#include <jansson.h>

#include "base/err.h"
#include "settle/payment.h"
#include "settle/reason.h"

/* ---- out: the challenge ---- */

/* Everything of a tool's 402 that does not change from request to request, made once. signer: offers are signed with it (extension
 * offer-receipt); NULL: they are not. */
struct challenge;
struct challenge *challenge_new(const struct terms *t, const char *public_url, const char *description, const char *mime_type,
                                const struct key *signer) MUST_CHECK;
void challenge_free(struct challenge *c);

struct challenge_for { const struct quote_key *key; struct quote_id quote; const struct hash32 *request; struct slice target; int64_t quote_expires; enum reason why; };
/* The value of PAYMENT-REQUIRED (base64), and for v1 clients the members "x402Version", "error" and "accepts" of a JSON
 * object, without its braces (empty when no offer has a v1 name). Each has the quote. */
void challenge_write(const struct challenge *c, const struct challenge_for *f, struct buf *ret_header, struct buf *ret_v1);

/* ---- in: the payment ---- */

struct x402_in { const struct terms *terms; const struct quote_key *key; const struct hash32 *request; int64_t now; };
/* ERR_NONE with *ret_reason REASON_NONE: a payment on our terms, its form checked and its signer recovered.
 * ERR_PAYMENT_REFUSED: well-formed, and as a new payment refused for *ret_reason. *ret_readable: all of it was read nevertheless (the
 * quote is too old or of another request, or the offer is none of ours now), so that what it was presented for before can be found.
 * Else malformed: ret_detail names the field. */
enum err x402_payment(const struct x402_in *in, struct slice header, int version, struct payment *ret, enum reason *ret_reason,
                      bool *ret_readable, const char **ret_detail) MUST_CHECK;
/* The checks that need no chain, in the reference's order after the signature: recipient, times, value. */
enum reason x402_check(const struct payment *p, const struct terms *t, int64_t now, int need_s);
/* What one block said, as a reason to refuse; REASON_NONE: good. facts->known must be true. */
enum reason x402_judge(const struct payment *p, const struct auth_facts *facts);

/* The signed authorization in a payment's `payload`: its form only. False: ret_detail names the field. */
bool x402_authorization(const json_t *payload, struct authorization *ret, const char **ret_detail) MUST_CHECK;
void x402_prove_signer(struct payment *p);               /* signer_proven, from auth and price.token; makes v what the token wants */

/* ---- in: what a facilitator is asked (POST /verify, POST /settle) ---- */

struct x402_asked {
    int version;                     /* of the payment: answers are in its words. 2 while it is unknown */
    char network[64], payer[64];     /* as the request spells them; empty: it does not say */
    const struct net *net;
    struct address asset, pay_to;    /* required */
    struct amount amount;
    unsigned max_timeout_s;
    const json_t *extra;             /* the token's name and version; the request's own */
    struct hash32 terms;             /* digest over network, asset, payee and price that are required */
    struct payment payment;
    const char *detail;              /* of a malformed request: which field; else NULL */
};
/* Its form, and whether payment and requirements speak of the same network and scheme. REASON_NONE: whoever serves `asset` for
 * `pay_to` may go on with x402_serve. ret is filled as far as the request could be read. */
enum reason x402_asked(const json_t *root, const struct net *nets, size_t net_count, struct x402_asked *ret) MUST_CHECK;
/* On these terms: fills payment.price and terms, and recovers the signer. The reason is about the token's name and version. */
enum reason x402_serve(struct x402_asked *a, const struct token *token) MUST_CHECK;

/* ---- out: the settlement ---- */

/* The base64 value of PAYMENT-RESPONSE (v2) or X-PAYMENT-RESPONSE (v1). tx NULL: not settled (error names why). Steals extra and
 * extensions; both may be NULL. */
void x402_response(int version, const struct net *net, const struct address *payer, const struct hash32 *tx, const char *error,
                   json_t *extra, json_t *extensions, struct buf *ret);

#endif
