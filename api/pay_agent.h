/* The agent at work: one purchase from its first request to its end. */
#ifndef API_PAY_AGENT_H
#define API_PAY_AGENT_H

#include "api/pay_http.h"

struct agent {
    const struct pay_options *o;
    struct key key;
    struct store store;
    struct http http;
    struct rpc *rpc;                 /* NULL: none was given */
    struct intent intent;
    char *path;                      /* the intent's file */
    int lock;                        /* the intent's, -1 before */
    int64_t deadline_ms;             /* of --wait */
    struct answer answer;            /* the last one */
    char *said;                      /* the end in words */
};

/* One line on standard error for people; nothing with --json. */
void step(const struct agent *a, const char *label, const char *fmt, ...) PRINTF(3, 4);
/* Keeps the end in words and gives the exit status back. */
enum pay_exit end(struct agent *a, enum pay_exit e, const char *fmt, ...) PRINTF(3, 4);
void remember(struct agent *a, const char *key, const char *value); /* in the intent's result; NULL value: nothing */
const char *remembered(const struct agent *a, const char *key);
bool sleep_within(const struct agent *a, int64_t seconds);          /* false: the wait is over */
struct fetch_request request_of(const struct agent *a);             /* method, URL, body and deadline */
struct price_words { struct amount_text amount; const char *unit; };
struct price_words price_words(const struct agent *a);              /* for people, as far as the token is known */
void agent_rpc(struct agent *a, uint64_t chain_id);                 /* opens a->rpc on --rpc for this chain, if given */

/* Takes up the intent that the options mean, or asks for the price, signs one and stores it. PAY_DONE with a->path NULL:
 * the call was free and is answered; with it set: the payment is to be sent. */
enum pay_exit agent_begin(struct agent *a) MUST_CHECK;
/* Signs for one offer of the last answer, a 402, under the caps and stores it, before anything is sent. */
enum pay_exit agent_commit(struct agent *a) MUST_CHECK;
void agent_ask(struct agent *a);     /* the request without payment, again while the server is busy */
/* The lock over the store, the caps and the signing; nothing is sent. */
typedef bool sign_fn(struct agent *a, void *arg);
enum pay_exit agent_sign(struct agent *a, struct amount amount, sign_fn *sign, void *arg) MUST_CHECK;
enum pay_exit agent_commit_mpp(struct agent *a, const struct mpp_choice *c) MUST_CHECK;
/* Before an intent on Tempo is presented: what we send ourselves is sent until it is mined. PAY_DONE: present it.
 * *ret_dead: it can never be mined. */
enum pay_exit agent_ready(struct agent *a, bool *ret_dead) MUST_CHECK;
enum pay_exit agent_send(struct agent *a) MUST_CHECK;                        /* until an end or the wait is over */
enum pay_exit agent_refused(struct agent *a, bool *ret_again) MUST_CHECK;    /* a 402 was the answer to a payment */
bool agent_report(struct agent *a, enum pay_exit e) MUST_CHECK;              /* false: not written out */

#endif
