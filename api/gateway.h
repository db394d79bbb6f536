/* The gateway: what its requests share. Private to the gateway's own files (gate*.c, facilitator*.c,
 * lookups.c, admin.c, outcomes.c). */
#ifndef API_GATEWAY_H
#define API_GATEWAY_H

#include "api/config.h"
#include "api/metrics.h"
#include "api/repeat_counts.h"
#include "api/server.h"
#include "api/upstream.h"
#include "settle/chain_clock.h"
#include "settle/orders.h"

/* One network as this process sees it. No payment on it is taken before its chain was compared with the database's. */
struct seat {
    const struct net *net;
    struct rpc *rpc;
    struct checker *checker;
    bool pinned, asked;              /* asked: there was a first answer to that */
    struct finality finality;        /* as the settlers measured it */
    struct chain_clock clock;
    struct timer retry;
    struct gateway *gateway;
};

/* How requests ended, for the metrics page. */
enum outcome_kind {
    COUNT_CHALLENGED, COUNT_PAID, COUNT_REPLAYED, COUNT_IN_FLIGHT, COUNT_CONFLICT, COUNT_REFUSED, COUNT_NOT_CHARGED, COUNT_IN_REVIEW,
    COUNT_UNAVAILABLE, COUNT_MALFORMED, COUNT_ALREADY_PAID, COUNT_SIMILAR, COUNT_GONE, COUNT_OWED, COUNT_FREE_REPEAT, COUNT_KINDS
};
enum outcome_kind outcome_of(enum err e) MUST_CHECK; /* of a request that is told this */

struct gateway {
    const struct config *config;
    struct loop *loop;
    struct db *db;
    struct fetcher *fetcher;
    struct server *server, *admin;
    struct quote_key quote_key;
    struct order_id instance;
    struct seat *seats;              /* one a configured network, in its order */
    struct price *prices;            /* of all tools, by rail */
    struct terms *terms, *mpp_terms; /* one a tool, in its order: what it costs on each rail */
    uint8_t mpp_key[QUOTE_KEYS][32]; /* of each quote key: the first makes the ids of MPP's challenges, all are honoured */
    struct challenge **challenges;   /* likewise; NULL where x402 has no price */
    struct outcomes *outcomes;
    struct metrics *metrics;
    struct facilitator *facilitator; /* NULL: no sellers */
    struct repeat_counts repeats;
    struct timer heads, rings;
    struct key receipt_key;          /* signs receipts; moves no money */
    bool has_receipt_key;
    char *admin_token;               /* NULL: none is asked for */
    struct timer beat;
    uint64_t counts[COUNT_KINDS];
    bool failed;                     /* a chain was replaced: stop with an error */
};

struct seat *gateway_seat(const struct gateway *g, const struct net *n);
/* By when it is known what became of an authorization of that deadline; and the same as members `known_by` and `known_by_note`. */
struct known_by seat_known_by(const struct seat *s, int64_t dead_after);
void seat_set_known_by(const struct seat *s, int64_t dead_after, json_t *o);

/* The first phase of every request at the public address, and at the admin address. */
struct step gate_begin(struct request *rq) MUST_CHECK;
size_t gate_body_limit(const struct request *rq);
struct step lookup_begin(struct request *rq, struct slice path) MUST_CHECK;
struct step result_begin(struct request *rq, const struct order_id *receipt) MUST_CHECK; /* GET /receipts/{id}/result */
bool lookup_is_ours(struct slice path);
struct step facilitator_begin(struct request *rq, struct slice path) MUST_CHECK;
bool facilitator_is_ours(struct slice path);
/* What anybody may ask besides orders: GET /authorizations/{network}/{payer}/{nonce}, and the keys that receipts are signed with. */
struct step authorization_begin(struct request *rq, struct slice path) MUST_CHECK;
struct step keys_begin(struct request *rq) MUST_CHECK;
const struct net *gateway_net(const struct gateway *g, struct slice id); /* NULL: not configured */
struct step guide_begin(struct request *rq) MUST_CHECK;
/* The chain's time, read before anybody is served and then each second; and what is kept for a while, looked through each minute. */
void upkeep_start(struct gateway *g);
void upkeep_stop(struct gateway *g);
struct step admin_begin(struct request *rq) MUST_CHECK;
/* GET /reconciliation: the newest report of each network, as JSON, ?format=csv, or a page for a browser. */
struct step reconciliation_begin(struct request *rq) MUST_CHECK;
/* The operator's token, which an admin address that others can reach must have: PAYONCE_ADMIN_TOKEN_FILE. */
bool admin_token_load(struct gateway *g, char *why, size_t why_size) MUST_CHECK;

/* Sellers' limits, counts and webhooks. False: a webhook's key is missing, why says which. */
bool facilitator_start(struct gateway *g, char *why, size_t why_size) MUST_CHECK;
void facilitator_stop(struct gateway *g);                /* before its fetcher and database go, and */
void facilitator_free(struct gateway *g);                /* after them */
void facilitator_print(const struct facilitator *f, struct buf *b); /* for the metrics page */

/* ---- what became of an order: reads of many requests shared in one call ---- */

struct outcome {
    bool known;                      /* false: the database did not answer */
    char status[16];                 /* as order_status has it */
    struct order_id receipt;
    const struct net *net;           /* where it was paid; NULL: no network of the configuration */
    bool has_tx;                     /* proven by tx */
    struct hash32 tx;
    bool has_hash;                   /* broadcast, not proven yet */
    struct hash32 last_hash;
    int64_t dead_after, block_time;
};
struct outcomes *outcomes_new(struct gateway *g) MUST_CHECK;
void outcomes_free(struct outcomes *o);
/* Reads the order (with whoever else asks in this turn), then goes on with `next`; ret is filled before. */
struct step outcome_read(struct request *rq, const struct order_id *order, struct outcome *ret, phase *next) MUST_CHECK;
void outcome_delivered(struct gateway *g, const struct order_id *order); /* noted in the database soon */
/* Into the order's story, soon: what a repeat was told. by: who asked, as gate_by has it; taken. */
void outcome_note(struct gateway *g, const struct order_id *order, const char *event, char *by);

#endif
