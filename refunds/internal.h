/* Inside refunds/: the books' round of one network, and what its files share. */
#ifndef REFUNDS_INTERNAL_H
#define REFUNDS_INTERNAL_H

#include "base/clock.h"
#include "base/json.h"
#include "refunds/refunds.h"

enum { BOOKS_DB_MS = 20000 };

struct refunds {
    const struct net *net;
    const struct refund_policy *policies;
    size_t policy_count;
    const struct key *wallet; /* NULL: none */
    struct address relayer;
    struct address
        *wallets; /* whose movements are booked: what money is paid to, and the refund wallet last if there is one */
    size_t wallet_count;
    bool pinned, refused;
    uint64_t *span;     /* blocks of one range, a wallet */
    int64_t *pay_at_ms; /* a policy */
    int64_t scan_at_ms, gas_at_ms, balance_at_ms, check_at_ms, report_at_ms;
    bool low; /* said once */
    struct checker *checker;
};

bool refunds_wallet_is(const struct refunds *r, const struct address *a);
void movements_turn(struct refunds *r, const struct settler_turn *t);
void gas_turn(struct refunds *r, const struct settler_turn *t);
void payout_turn(struct refunds *r, const struct settler_turn *t);
void check_turn(struct refunds *r, const struct settler_turn *t); /* balances against accounts, and the daily report */

/* balanceOf(wallet) at the block. */
struct rpc_item balance_item(const struct address *token, const struct address *wallet, uint64_t block);
bool balance_read(const struct rpc_answer *a, struct amount *ret) MUST_CHECK;
/* An address in a topic. */
json_t *topic_of_address(const struct address *a) MUST_CHECK;
void set_bare(json_t *o, const char *key, const void *p, size_t n);

#endif
