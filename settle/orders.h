/* Orders: one intended call and everything known of it, on two axes that never share a state, work and money.
 *
 * Each function here is one SQL function, one commit, one named verdict; what a verdict means on the wire is the
 * gateway's business. All work on the loop, call back once, never from inside. */
#ifndef SETTLE_ORDERS_H
#define SETTLE_ORDERS_H

#include "settle/payment.h"
#include "sql/sql.h"

struct order_id { uint8_t b[16]; };
struct id_text { char s[40]; };
struct id_text order_id_text(const struct order_id *id);         /* "ord_" + 32 hex digits */
struct id_text receipt_id_text(const struct order_id *id);       /* "rcp_" + 32 hex digits */
bool order_id_read(struct slice s, struct order_id *ret) MUST_CHECK;
bool receipt_id_read(struct slice s, struct order_id *ret) MUST_CHECK;

enum verdict {
    VERDICT_NEW,              /* nothing here knows this payment */
    VERDICT_ACCEPTED,         /* stored; this caller runs the work, under `epoch` */
    VERDICT_TO_SETTLE,        /* stored and due; the work waits until the money is proven */
    VERDICT_BEGIN,            /* the money is proven, the work waits: orders_begin may take it */
    VERDICT_RESENT,           /* the answer is kept, and this authorization is now to pay it */
    VERDICT_AGAIN,            /* the work failed: accept may run it again */
    VERDICT_TAKEOVER,         /* the work's lease seems dead: accept may run it again, but its first run may still count */
    VERDICT_RESEND,           /* the answer is kept, its payment is proven dead: accept may take this one */
    VERDICT_REPLAY,           /* paid, answer stored */
    VERDICT_REPEAT,           /* asked and paid for before: the answer once more, this authorization is set aside */
    VERDICT_REPEAT_WAIT,      /* the same, and the first is not through yet */
    VERDICT_REPEAT_LIMIT,     /* answered too often already; its authorization is watched, if there is room for that */
    VERDICT_NOT_PROVEN,       /* paid, but only the public nonce was shown */
    VERDICT_GONE,             /* paid, answer no longer kept */
    VERDICT_IN_FLIGHT,        /* undecided */
    VERDICT_IN_REVIEW,        /* the work's outcome is lost */
    VERDICT_WORK_FAILED_PAID, /* money came in for work that failed */
    VERDICT_PAY_AGAIN,        /* its payment is dead, or too short of time: a new one is right */
    VERDICT_SIMILAR,          /* a write without an id, like one of this wallet that is not finished: it is asked, not merged */
    VERDICT_CONFLICT_PAYER,
    VERDICT_CONFLICT_REQUEST,
};

enum known { KNOWN_NONE, KNOWN_NONCE /* stored, with other terms */, KNOWN_ALL };
struct order_found { enum verdict verdict; struct order_id order; enum known known; /* how much of the authorization is stored */ };
typedef void order_found_fn(void *arg, enum db_rc rc, const struct order_found *found);
/* The first look, read-only. manner: as in order_call. need_s: seconds an authorization must still have to be worth taking. */
void orders_find(struct db *db, const struct payment *p, const struct hash32 *request, const struct hash32 *manner, int need_s, int64_t now_ms,
                 int64_t deadline_ms, order_found_fn *fn, void *arg);

/* What may be a free repeat: the question's key, how long its answer is good and how often it is given, and the chain's time now. */
struct order_repeat { bool asked; struct hash32 key; unsigned window_s, max; };

/* A payment that is a transaction of the payer's own: raw is for us to send, or empty where the payer did. */
struct order_charge { struct hash32 challenge, tx, memo; struct slice raw; };

struct order_call {                  /* what the payment is for */
    const char *rail;
    const struct order_charge *charge; /* NULL: an authorization that we submit */
    const char *tool, *side_effect, *method;
    struct slice target;
    struct hash32 request;
    const struct hash32 *manner;     /* digest of what else the answer may depend on: credentials, headers; NULL: none was sent */
    bool cacheable, idempotent, pay_first;
    bool is_new;                     /* as far as is known, no order has to do with the payment yet */
    struct order_repeat repeat;
    int64_t now_ms;                  /* by the chain's clock */
};
struct order_accepted {
    enum verdict verdict;
    struct order_id order, receipt;
    int epoch;
    bool is_similar;                 /* to one that was delivered a little while ago, a write without an id */
    struct order_id similar;

    const char *miss;                /* why a question that might have been a free repeat is none; NULL: it was not asked */
    int64_t retry_after_s;           /* VERDICT_REPEAT_LIMIT */
    struct slice network;            /* of the original, and of VERDICT_REPEAT what follows; all of it lives during the call */
    struct hash32 tx;
    int64_t block_time;
    int status;
    struct slice headers, body;      /* sealed */
};
typedef void order_accepted_fn(void *arg, enum db_rc rc, const struct order_accepted *accepted);
/* verified: the chain was asked; else the authorization is only stored beside an order that needs none.
 * by: who asks and why, for the order's story: JSON {"actor", "request", "traceparent", "retry"}.
 * Durable before act: after VERDICT_ACCEPTED the authorization is committed and the work's lease is this instance's. */
void orders_accept(struct db *db, const struct order_id *instance, int lease_s, const struct payment *p, bool has_code, bool verified,
                   const struct order_call *call, int need_s, const char *by, int64_t deadline_ms, order_accepted_fn *fn, void *arg);

/* The work of VERDICT_BEGIN: VERDICT_ACCEPTED with a new epoch, or how the order stands now. Of what is found, only verdict, receipt and
 * epoch are set. */
void orders_begin(struct db *db, const struct order_id *order, const struct order_id *instance, int lease_s, int64_t now_ms, const char *by,
                  int64_t deadline_ms, order_accepted_fn *fn, void *arg);

enum work_axis { WORK_AXIS_DONE, WORK_AXIS_FAILED, WORK_AXIS_LOST };
/* headers and body as they are to be kept, sealed; digest and size are the body's own. */
struct order_answer { int status; const char *headers; struct slice body; struct hash32 digest; size_t size; bool repeatable; };
/* landed: the work failed, and its money came in all the same (somebody else submitted it). */
typedef void order_finished_fn(void *arg, enum db_rc rc, bool late, bool landed);
/* answer is NULL unless the work is done. late: another epoch has the lease, nothing was changed.
 * theirs: what the answer to a lost write named itself by, or NULL. */
void orders_finish(struct db *db, const struct order_id *order, int epoch, enum work_axis end, const char *note, const char *theirs,
                   const struct order_answer *answer, const char *by, int64_t deadline_ms, order_finished_fn *fn, void *arg);

#endif
