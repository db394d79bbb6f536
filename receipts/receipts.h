/* The public face of an order: built from one SQL view, by field, with digests and never a body; signed, and laid out
 * as a page. */
#ifndef RECEIPTS_RECEIPTS_H
#define RECEIPTS_RECEIPTS_H

#include <jansson.h>

#include "chain/chain.h"
#include "sql/sql.h"

struct receipt_links {
    const char *public_url;
    int64_t known_by;          /* 0: nothing is unknown */
    const char *known_by_note; /* NULL: that stands; else why it moves on */
    const char *symbol;        /* of the asset; NULL: it is not configured any more */
    unsigned decimals;
    const char *explorer; /* "" or NULL: none */
    const char *seller;
    const struct key *signer; /* NULL: receipts are not signed */
};

/* GET /orders/{id}: status on both axes, when to ask again, where the receipt is. */
json_t *order_json(const struct db_rows *rows, int row, const struct receipt_links *l) MUST_CHECK;
/* GET /receipts/{id}: what was asked for, what was paid, by whom, to whom, where on the chain, how deep, what went
 * back. Signed. */
json_t *receipt_json(const struct db_rows *rows, int row, const struct receipt_links *l) MUST_CHECK;
/* The same as a page: complete without a script, nothing loaded from elsewhere. */
void receipt_page(struct buf *b, const json_t *receipt);
/* Its Content-Security-Policy, owned: the one style sheet inside, by its hash, and nothing else. */
char *receipt_page_policy(void) MUST_CHECK;

/* A document is signed as a whole: EIP-712 domain "payonce receipt", Record(string json), over all members but
 * `signature`, as RFC 8785 writes them. Adds `signature`. */
void record_sign(json_t *document, const struct key *signer);
/* The x402 offer-receipt extension's signed receipt: {"format", "payload", "signature"}. */
json_t *x402_receipt(const struct key *signer, const char *network, const char *url, const char *payer,
                     int64_t issued_at, const char *transaction) MUST_CHECK;

/* The same extension's signed offer, which one of "accepts" it is: {"format", "acceptIndex", "payload", "signature"}.
 */
struct x402_offer_terms {
    const char *url, *network, *asset, *pay_to, *amount;
    int64_t valid_until;
};
json_t *x402_offer(const struct key *signer, size_t accept_index, const struct x402_offer_terms *t) MUST_CHECK;
/* What stands under "offer-receipt" in the 402's extensions (key "offers") and in the settlement's ("receipt"):
 * {"info", "schema"}. Steals what. */
json_t *x402_offer_receipt(const char *key, json_t *what) MUST_CHECK;

/* ---- verifying, by anybody ---- */

enum receipt_check { RECEIPT_OK, RECEIPT_UNSIGNED, RECEIPT_CHANGED };
/* Who signed the document as it is now, and the x402 receipt inside of it. */
enum receipt_check receipt_check(const json_t *document, struct address *ret_signer) MUST_CHECK;
/* What the chain says of it: every transfer that the receipt speaks of, by its own log. Adds one line a fact to
 * ret_facts; false: something is not as it says, or the chain did not answer. */
bool receipt_check_chain(const json_t *document, struct rpc *rpc, json_t *ret_facts) MUST_CHECK;

#endif
