/* Inside refunds/: the books' round of one network, and what its files share. */
#ifndef REFUNDS_INTERNAL_H
#define REFUNDS_INTERNAL_H

#include "base/clock.h"
#include "base/json.h"
#include "refunds/refunds.h"

enum { BOOKS_DB_MS = 20000 };

/* Whose movements are booked. */
struct book_wallet {
    struct address address;
    bool refund;   /* it pays refunds, or did */
    uint64_t span; /* blocks of one range */
};

struct refunds {
    const struct net *net;
    const struct refund_policy *policies;
    size_t policy_count;
    const struct key *wallet; /* NULL: none */
    struct address relayer;
    struct book_wallet
        *wallets; /* what money is paid to, the refund wallet, and those that were either before */
    size_t wallet_count;
    bool pinned, refused;
    int64_t *pay_at_ms;  /* a policy */
    uint64_t *look_span; /* a policy: blocks of one range of paid_elsewhere */
    int64_t pin_at_ms, scan_at_ms, gas_at_ms, balance_at_ms, check_at_ms, report_at_ms, own_at_ms;
    struct checker *checker;
};

void movements_turn(struct refunds *r, const struct settler_turn *t);
void gas_turn(struct refunds *r, const struct settler_turn *t);
void payout_turn(struct refunds *r, const struct settler_turn *t);
/* It cannot be paid now: it stays open with the reason, and is tried less and less often. */
void debt_put_off(const struct refunds *r, const struct settler_turn *t, struct slice debt, const char *why);
/* Where the refund wallet sends the transactions itself (settle/keyed.h): what became of them; due ones are sent; what
 * one costs at most of its own token; whether there is something for fees in another. */
void own_turn(struct refunds *r, const struct settler_turn *t);
void own_pay(struct refunds *r, const struct settler_turn *t, const struct refund_policy *p, const struct db_rows *due);
struct amount own_cost(const struct refunds *r, const struct settler_turn *t, const struct refund_policy *p);
bool own_fees_there(const struct refunds *r, const struct settler_turn *t, const struct refund_policy *p) MUST_CHECK;
/* Whether debts that are signed for the first time are owed still, as far as the chain tells: a database that was
 * restored has forgotten what was paid, and from which wallet. LOOK_ON: not all of it was read yet, or one was paid:
 * not now. */
enum look { LOOK_CLEAR, LOOK_ON };
enum look paid_elsewhere(struct refunds *r, const struct settler_turn *t, size_t policy,
                         const struct db_rows *due) MUST_CHECK;
void check_turn(struct refunds *r, const struct settler_turn *t); /* balances against accounts, and the daily report */

/* balanceOf(wallet) at the block. */
struct rpc_item balance_item(const struct address *token, const struct address *wallet, uint64_t block);
bool balance_read(const struct rpc_answer *a, struct amount *ret) MUST_CHECK;
/* An address in a topic. */
json_t *topic_of_address(const struct address *a) MUST_CHECK;

#endif
