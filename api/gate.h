/* One paid call, from its payment header to its answer: what its phases keep, and the phases that name each other.
 *
 *   gate.c         route, payment header, who is it                  -> challenge, or look it up
 *   gate_x402.c, gate_mpp.c, gate_mpp_proof.c, gate_mpp_pull.c  the rails: how a payment is read and checked, and told of in its own headers
 *   gate_repeat.c  a cacheable question: asked and paid for before?  -> the answer, not charged, or go on as if new
 *   gate_verify.c  our terms, then the chain, then accept            -> refused, or run the work
 *   gate_work.c    the upstream, then finish, then wait for proof    -> the answer
 *   gate_pay_first.c  where the money comes first: its proof         -> run the work; failed: what is owed
 *   gate_key.c     no payment, but a payment id                   -> challenge, or the state of its order
 *   gate_reply.c   every reply that is not the answer itself, and the answer of an order that is known */
#ifndef API_GATE_H
#define API_GATE_H

#include "api/gateway.h"
#include "settle/canonical.h"
#include "settle/mpp_credential.h"
#include "settle/mpp_proof.h"
#include "settle/x402.h"

struct call;
/* How a payment of one kind is dealt with; everything else of a paid call knows no kind. */
struct rail {
    const char *name;                /* as orders have it */
    const char *credential;          /* the header that brings its payments, where callers have another use for it too; NULL: none is */
    phase *verify;                   /* new, or free to be taken again: its terms and the chain, then gate_accept */
    bool (*worth_keeping)(const struct call *c); /* nobody needs it, but whoever saw it can make it land: it is stored and watched */
    bool (*may_repeat)(const struct call *c);    /* may it be set aside for a free repeat, before the chain is asked? */
    void (*settled)(struct request *rq, struct reply *r, json_t *extra); /* headers of money that is in (call->outcome); extra is taken */
    void (*pending)(const struct call *c, struct reply *r);              /* headers of money that is on its way */
    enum err in_flight, gone;        /* how these are said: clients differ in what makes them pay again */
};
extern const struct rail rail_x402, rail_mpp;

/* Of a credential of MPP. */
struct mpp_call {
    struct mpp_credential credential;
    struct mpp_charge asked;
    struct hash32 tx;                /* presented; charge.tx is the one that is stored, where one is */
    struct order_charge charge;
    int64_t give_up_ms;              /* then a receipt that is not there is told to be */
    bool is_taken;                   /* the transaction serves another challenge, or is owed back */
    bool is_second;                  /* another transaction pays this challenge */
    json_t *debts;                   /* of its transaction, owned */
};

struct call {
    const struct rail *rail;
    bool pay_first;                  /* the money is proven before the work begins */
    bool moved;                      /* money has moved for certain: no 402 is given, whatever else */
    struct mpp_call mpp;
    struct gateway *g;
    const struct tool *tool;
    const struct terms *terms;
    const struct challenge *challenge; /* NULL: not sold on x402 */
    const struct terms *mpp_terms;   /* what it costs on MPP: no prices, and it is not */
    enum mpp_fault fault;            /* why a credential is refused */
    struct hash32 request;           /* digest over method, raw target and body */
    struct hash32 manner;            /* and over the headers that the answer may depend on, where any of them was sent */
    bool has_manner;
    int64_t give_up_ms;              /* then a waiting request is told 409 */

    struct payment payment;
    enum reason reason;              /* why it would be refused as a new payment; a known one is found all the same */
    struct seat *seat;
    int need_s;
    int64_t asked_ms;                /* when the database or the upstream was asked what it is asked now */
    bool verified, has_code;         /* by one block of the chain */
    bool paid_us;                    /* its nonce is used, by a transfer to us */

    struct order_repeat repeat;      /* of a cacheable tool: the question's key */
    bool is_repeat;                  /* it waits to be given the answer of another, or was */
    int64_t retry_after_s;

    enum verdict verdict;            /* the newest one, for order, once found or accepted */
    bool waited;                     /* for another copy of this call to end */
    enum known known;                /* how much of the authorization is stored */
    struct order_id order, receipt;
    bool is_similar;                 /* to a write delivered a little while ago: told, since two equal ones may be meant */
    struct order_id similar;
    int epoch;
    bool has_work, landed;           /* landed: money came in for work that failed */
    struct work work;
    struct outcome outcome;
    json_t *more;                    /* members of the problem that is told next */
    bool told;                       /* the answer is being delivered: note it when the last byte is out */
};

struct call *gate_call(struct request *rq);
/* Who asks, for the order's story: instance, request, traceparent and the retry source that the client told. */
char *gate_by(struct request *rq) MUST_CHECK;

void gate_manner(struct request *rq); /* credentials, and what the tool names in vary */
const struct hash32 *gate_manner_of(const struct call *c) MUST_CHECK; /* NULL: none was sent */
void gate_repeat_key(struct request *rq);
phase gate_repeat;                   /* identity and free repeat in one commit */
phase gate_repeat_answer, gate_repeat_wait, gate_repeat_limit;
void gate_repeat_headers(struct request *rq, struct reply *r); /* beside the answer, if it is one */
int64_t gate_chain_ms(const struct call *c);                   /* now by the chain's clock; before any head is known, by ours */
void gate_keep_accepted(struct call *c, const struct order_accepted *a);
struct order_call gate_order_call(struct request *rq) MUST_CHECK;
phase gate_decide;                   /* what the verdict asks for */
phase gate_wait_in_flight;           /* parked until something happens to the order, then found anew */

phase gate_find;                     /* identity first: what is known of this payment */
phase gate_refuse;                   /* 402 for call->reason, unless the order has moved on meanwhile */
phase gate_verify;                   /* new, or free to run again: terms, then the chain */
phase gate_accept;                   /* durable before act */
phase gate_work;
phase gate_begin_work;               /* where the money comes first, and is proven: the lease, then the work */
phase gate_owed_back;                /* MPP: its transaction moved money, and buys nothing: what of it is owed back */
phase gate_owed;                     /* paid, and the work failed: what is owed back */
phase gate_wait;                     /* parked until the proof */
phase gate_replay;                   /* the stored answer of call->order */
struct step gate_key(struct request *rq, struct slice payment_id) MUST_CHECK; /* a payment id, and no payment */

struct step gate_free(struct request *rq, struct gateway *g, const struct tool *tool) MUST_CHECK; /* a route without a price */
/* The one way out of a priced route: counts the request as what it ended as. */
/* The payment is read (call->payment, reason): who is it? */
phase gate_presented;
enum err gate_payment_id(struct request *rq, struct payment *p) MUST_CHECK; /* Idempotency-Key; both at once must agree */
struct step gate_x402(struct request *rq, struct slice header, int version) MUST_CHECK;
struct step gate_mpp(struct request *rq, struct slice credential) MUST_CHECK;
struct step gate_mpp_fault(struct request *rq, enum mpp_fault f, const char *detail) MUST_CHECK; /* refused: nothing moved for it */
phase gate_mpp_push;                 /* what did its transaction do? */
phase gate_mpp_pull;                 /* may we send it? */
phase gate_mpp_balance;              /* can its payer pay? then gate_accept */
void gate_mpp_done(struct call *c);
/* call->payment, as orders know one: the challenge is its nonce. */
void gate_mpp_payment(struct call *c, const struct address *payer, int64_t valid_before);
/* The value of each challenge of MPP for this call, into the reply. quote: as x402's offers have it. */
void gate_mpp_offers(struct request *rq, struct reply *r, const struct quote_id *quote);
struct step gate_send(struct request *rq, struct reply *r, enum outcome_kind kind) MUST_CHECK;
struct step gate_challenge(struct request *rq, enum reason why) MUST_CHECK;
struct step gate_say(struct request *rq) MUST_CHECK;                     /* call->verdict, when it only needs saying */
struct step gate_in_flight(struct request *rq) MUST_CHECK;               /* 409 from call->outcome */
struct step gate_problem(struct request *rq, enum err e, const char *detail) MUST_CHECK;
phase gate_store_down;                                                   /* 503: send the same payment again */
json_t *gate_order_members(const struct call *c) MUST_CHECK;              /* {order_id, poll} */
int gate_lease_s(const struct call *c) MUST_CHECK;
void gate_not_final(struct request *rq, struct reply *r);                /* headers beside "not charged": until when it may land */
/* The headers of a delivered answer: settlement, receipt, charged, caching. */
struct reply *gate_answer(struct request *rq, int status, const json_t *headers, bool charged, bool replayed) MUST_CHECK;

#endif
