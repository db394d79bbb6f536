/* refunds: the ledger. What came in late or twice is owed back, paid at most once, and closes in the books to zero.
 *
 * settle/ writes facts (orders, authorizations, proofs, transfers to us); here they become entries of a double-entry
 * journal, debts are paid from a wallet set apart, and books and chain are compared. No rail is known here: a debt has
 * a source transfer, a payer, an asset and an amount, whatever brought the money.
 *
 *   1 the settler's round     2 reconciliation     3 exports     4 the auditor */
#ifndef REFUNDS_REFUNDS_H
#define REFUNDS_REFUNDS_H

#include "settle/settler.h"

/* ---- 1. the settler's round ---------------------------------------------------------------------- */

enum refund_mode { REFUNDS_OFF, REFUNDS_MANUAL, REFUNDS_AUTOMATIC };
struct refund_policy { /* of one token on one network */
    const struct net *net;
    const struct token *token;
    enum refund_mode mode;
    int64_t after_s; /* a debt is that old before policy approves it */
    int64_t every_s; /* between two batches */
    unsigned batch_max;
    struct amount minimum;          /* below it a debt waits for a person */
    struct amount run_max, day_max; /* caps of newly paid debts, in minor units */
    struct amount approve_above;    /* more than this needs a person */
    const struct token *fee_token;  /* pays for sending, where tokens do; the token itself where none is named */
};

/* The books and payouts of one network, beside its settler. */
struct refunds;
struct refunds *refunds_new(const struct net *n, const struct refund_policy *policies, size_t count,
                            const struct key *wallet,
                            const struct address *relayer) MUST_CHECK; /* wallet NULL: nothing is paid, all is booked */
void refunds_free(struct refunds *r);
void refunds_turn(void *refunds, const struct settler_turn *t); /* a settler_beside_fn */

/* ---- 2. reconciliation --------------------------------------------------------------------------- */

/* Per wallet and asset: opening + entries = closing, closing = balance at the block, open debts = liability; the list
 * of differences, each with who must look and why. db: a role that may call books_at. NULL: chain or database did not
 * answer. */
json_t *books_report(struct db *db, struct rpc *rpc, const struct net *n, uint64_t block) MUST_CHECK;
size_t books_differences(const json_t *report);
bool books_block(struct db *db, const struct net *n,
                 uint64_t *ret) MUST_CHECK;       /* up to which block everything is booked */
char *books_csv(const json_t *report) MUST_CHECK; /* owned */

/* ---- 3. exports ---------------------------------------------------------------------------------- */

enum export_format { EXPORT_HLEDGER, EXPORT_CSV, EXPORT_JSONL };
struct export_source {
    const struct db_rows *rows;    /* of export_rows, the period's */
    const struct db_rows *opening; /* of ledger_balance, where the period begins */
    const struct net *nets;
    size_t net_count;
    int64_t from, until; /* unix seconds */
    const char *public_url;
};
void export_write(struct buf *b, enum export_format f, const struct export_source *s);
void csv_field(struct buf *b, struct slice text); /* RFC 4180, and no spreadsheet takes it for a formula */
/* The token of an asset as the journal names it ("0x..." or "native"). Its decimals; 18 for native, 0 if it is not
 * configured. */
unsigned asset_decimals(const struct net *nets, size_t n, const char *network, const char *asset,
                        const char **ret_symbol);

/* ---- 4. the auditor ------------------------------------------------------------------------------ */

/* Rebuilds the books from the chain's own logs and the journal, by code of its own, and tells what differs; mends
 * nothing. Each difference: {"kind", "what", "expected", "found", "tx"?, "log"?, "entry"?, "debt"?}. NULL: it could not
 * be done now. */
json_t *audit_network(struct db *db, struct rpc *rpc, const struct net *n) MUST_CHECK;

#endif
