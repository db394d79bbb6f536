/* What is sold for what, on which network: the part of the configuration that settling knows.
 * The configuration (api/config.h) fills these; nothing here changes while running. */
#ifndef SETTLE_TERMS_H
#define SETTLE_TERMS_H

#include "chain/chain.h"

struct net {
    const char *id;                  /* "eip155:84532" */
    const char *v1_name;             /* NULL: x402 v1 clients cannot name it */
    uint64_t chain_id;
    const char *realm;               /* of our challenges: public_url's host */
    bool tempo;                      /* its payers send transactions of their own: MPP, and no x402 */
    const char **rpc;                /* endpoints, at least one */
    size_t rpc_count;
    int64_t rpc_timeout_ms;          /* 5,000 */
    unsigned depth;                  /* blocks on top of and with the payment's own before it is paid; at least 1 */
    unsigned quorum;                 /* endpoints that must agree on what proves a payment: 1 */
    unsigned finality_blocks;        /* 0: the node's `finalized` tag; else that many blocks behind latest */
    int64_t block_time_ms;           /* 2,000: what to expect, for waiting and margins */
    struct address pay_to;
    struct address *wallets;         /* pay_to, and whatever else a price of this network is paid to */
    size_t wallet_count;
    struct address *served;          /* of sellers who settle through us, and none of the above: only what we settled is booked */
    size_t served_count;
    struct token *tokens;
    size_t token_count;
    unsigned batch_max;              /* authorizations in one transaction: 100 */
    uint64_t batch_gas_max;          /* 0: half of the block's gas limit */
    const char *explorer;            /* of receipts' links: https://basescan.org; empty: none */
    struct amount tip_min;           /* wei per gas: 1,000,000 */
    struct amount fee_max;           /* wei per gas; above it authorizations wait: 500 gwei */
};

struct price {
    const struct net *net;
    const struct token *token;
    struct amount amount;
    struct address pay_to;
};

/* What one call costs and how long its payment must stay good. */
struct terms {
    const char *tool;
    const struct price *prices;      /* in order of preference */
    size_t price_count;
    unsigned max_timeout_s;          /* maxTimeoutSeconds of the offers */
    bool pay_first;                  /* the money is settled and proven before the work begins */
};

/* Seconds that an authorization must still have when it is to be sent: to be mined at depth with some blocks missed. */
static inline int terms_settle_s(const struct net *n)
{
    return 4 + (int)((n->block_time_ms * (n->depth + 2) + 999) / 1000);
}

/* How far behind the final block is, in seconds. */
struct finality {
    int64_t usual;                   /* behind the head, the most that was seen lately; 0: not seen yet */
    int64_t now;                     /* behind the clock */
};

struct known_by {
    int64_t at;
    const char *note;                /* NULL: it stands; else why it moves on */
};

/* The time by which an unknown is known: its last deadline, passed by a final block, and the look behind that, which may be a quarter
 * as late again, at most a minute, and once more where one look gets no answer; and half a minute in which a settler or its database
 * starts again, or looks at many. Where the chain stands still, or nobody can read it, that time moves on, and says so; it is never
 * in the past. */
static inline struct known_by terms_known_by(const struct net *n, const struct finality *f, int64_t dead_after, int64_t now)
{
    enum { FINALITY_UNSEEN_S = 1800, LOOK_S = 60, SLACK_S = 30, LATE_S = 30 };
    int64_t block_s = (n->block_time_ms + 999) / 1000;
    int64_t configured = ((int64_t)n->finality_blocks * n->block_time_ms + 999) / 1000;
    int64_t behind = f->usual > configured ? f->usual : configured > 0 ? configured : FINALITY_UNSEEN_S;
    struct known_by k = { .note = NULL };
    if (f->now > behind + 2 * block_s + LATE_S) {
        behind = f->now;
        k.note = "the newest final block is older than it should be: the chain stands still or cannot be read, and this moves on until it can";
    }
    behind += 2 * block_s;
    k.at = dead_after + behind + (behind / 2 < 2 * LOOK_S ? behind / 2 : 2 * LOOK_S) + SLACK_S;
    if (k.at <= now) {
        k.at = now + LOOK_S;
        k.note = "its time has passed, and the chain has not proved it yet: it is asked again each minute";
    }
    return k;
}

#endif
