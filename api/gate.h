/* One paid call, from its payment header to its answer: what its phases keep, and the phases that name each other.
 *
 *   gate.c         route, payment header, who is it                  -> challenge, or look it up
 *   gate_repeat.c  a cacheable question: asked and paid for before?  -> the answer, not charged, or go on as if new
 *   gate_verify.c  our terms, then the chain, then accept            -> refused, or run the work
 *   gate_work.c    the upstream, then finish, then wait for proof    -> the answer
 *   gate_key.c     no payment, but a payment id                   -> challenge, or the state of its order
 *   gate_reply.c   every reply that is not the answer itself, and the answer of an order that is known */
#ifndef API_GATE_H
#define API_GATE_H

#include "api/gateway.h"
#include "settle/canonical.h"

struct call {
    struct gateway *g;
    const struct tool *tool;
    const struct terms *terms;
    const struct challenge *challenge;
    struct hash32 request;           /* digest over method, raw target and body */
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
    bool told;                       /* the answer is being delivered: note it when the last byte is out */
};

struct call *gate_call(struct request *rq);
/* Who asks, for the order's story: instance, request, traceparent and the retry source that the client told. */
char *gate_by(struct request *rq) MUST_CHECK;

void gate_repeat_key(struct request *rq);
bool gate_may_repeat(const struct call *c) MUST_CHECK;
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
phase gate_wait;                     /* parked until the proof */
phase gate_replay;                   /* the stored answer of call->order */
struct step gate_key(struct request *rq, struct slice payment_id) MUST_CHECK; /* a payment id, and no payment */

struct step gate_free(struct request *rq, struct gateway *g, const struct tool *tool) MUST_CHECK; /* a route without a price */
/* The one way out of a priced route: counts the request as what it ended as. */
struct step gate_send(struct request *rq, struct reply *r, enum outcome_kind kind) MUST_CHECK;
struct step gate_challenge(struct request *rq, enum reason why) MUST_CHECK;
struct step gate_say(struct request *rq) MUST_CHECK;                     /* call->verdict, when it only needs saying */
struct step gate_in_flight(struct request *rq) MUST_CHECK;               /* 409 from call->outcome */
struct step gate_problem(struct request *rq, enum err e, const char *detail) MUST_CHECK;
phase gate_store_down;                                                   /* 503: send the same payment again */
void gate_not_final(struct request *rq, struct reply *r);                /* headers beside "not charged": until when it may land */
/* The headers of a delivered answer: settlement, receipt, charged, caching. */
struct reply *gate_answer(struct request *rq, int status, const json_t *headers, bool charged, bool replayed) MUST_CHECK;

#endif
