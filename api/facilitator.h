/* POST /verify, POST /settle, GET /supported, GET /settlements/{network}/{payer}/{nonce}: what a seller's own x402 server asks of
 * a facilitator. A settlement is an order whose work is `none`; what keeps paid calls from being paid twice keeps it too.
 *
 *   facilitator.c          routes, the body, whose payee is it            -> refused, or judged
 *   facilitator_check.c    limits, terms, one block of the chain
 *   facilitator_settle.c   is it known? stored and due, then the wait for its proof
 *   facilitator_reply.c    every answer, in the words of the asker's version
 *   facilitator_status.c   what became of a settlement, for its seller
 *   facilitator_sellers.c  keys, limits, counts
 *   facilitator_notices.c  a seller's webhook is told how a settlement ended */
#ifndef API_FACILITATOR_H
#define API_FACILITATOR_H

#include "api/gateway.h"
#include "api/spent.h"
#include "settle/settlements.h"
#include "settle/x402.h"

enum asked_call { ASKED_VERIFY, ASKED_SETTLE, ASKED_CALLS };
enum asked_outcome {
    ASKED_VALID, ASKED_SETTLED, ASKED_REPLAYED, ASKED_PENDING, ASKED_REFUSED, ASKED_MALFORMED, ASKED_UNAVAILABLE, ASKED_OUTCOMES
};

/* One /verify or /settle, from its body to its answer. */
struct asked {
    struct gateway *g;
    enum asked_call call;
    json_t *body;
    struct x402_asked ask;
    const struct seller *seller;     /* NULL until it is known whose it is */
    const struct price *serve;       /* his entry that was asked for */
    struct seat *seat;
    struct terms terms;
    int need_s;
    int64_t began_ms, give_up_ms;    /* then settlement_pending is said */
    enum reason reason;
    uint64_t block;                  /* the facts' */
    bool has_code;
    bool mine;                       /* this request made the settlement: its success is the first, and not a repeat's */
    struct settlement_found found;
    phase *then, *down;              /* once it is looked up, and where the database does not answer */
    struct outcome outcome;
    struct spent spent;
};
struct asked *asked_of(struct request *rq);

phase facilitator_check;             /* facts, then facilitator_checked */
phase facilitator_settle;            /* identity first */
phase facilitator_take;              /* verified: durable before act */
phase facilitator_refuse_settle;     /* asked->reason, unless the nonce is known by now */

struct step facilitator_valid(struct request *rq) MUST_CHECK;
struct step facilitator_refuse(struct request *rq, enum reason why) MUST_CHECK;
struct step facilitator_settled(struct request *rq, const struct hash32 *tx) MUST_CHECK;
struct step facilitator_pending(struct request *rq) MUST_CHECK;
struct step facilitator_spent(struct request *rq) MUST_CHECK;
phase facilitator_unknown;           /* 503: nobody knows just now */

struct step facilitator_status(struct request *rq, struct slice path) MUST_CHECK;
/* One row of order_wire as its seller may see it. */
json_t *settlement_json(const struct gateway *g, const struct db_rows *rows, int row) MUST_CHECK;

/* ---- sellers ---- */

/* Who asks, by his key. False: there is a key, and it is nobody's. ret NULL: no key was sent. */
bool seller_of_key(const struct config *c, const struct request *rq, const struct seller **ret) MUST_CHECK;
/* His entry for what is required; NULL: he has none. */
const struct price *seller_serves(const struct seller *s, const struct x402_asked *a) MUST_CHECK;
bool seller_over_limit(const struct facilitator *f, const struct asked *a) MUST_CHECK;
/* What the database must hold him to by an exact count; 0: he is far from his limit, or has none. */
int64_t seller_most(const struct facilitator *f, const struct seller *s) MUST_CHECK;
void seller_takes(struct facilitator *f, const struct seller *s);              /* one more is on its way into the database, */
void seller_took(struct facilitator *f, const struct seller *s, bool taken);  /* and was taken, or may have been */
void facilitator_count(struct facilitator *f, const struct asked *a, enum asked_outcome o);

/* ---- webhooks ---- */

struct notices;
/* why is set when a key's file is wrong. */
struct notices *notices_new(struct gateway *g, char *why, size_t why_size) MUST_CHECK;
void notices_stop(struct notices *n);                    /* before the fetcher and the database go, and */
void notices_free(struct notices *n);                    /* after them */
void notices_print(const struct notices *n, struct buf *b);

#endif
