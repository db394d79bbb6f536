/* Payments that tests of the money functions present. Every id, address and hash is one byte repeated, so that a number
 * names it: in C the fields of struct ask, in SQL b(number, size). */
#ifndef TESTS_SQL_MONEY_H
#define TESTS_SQL_MONEY_H

#include "scratch.h"

extern PGconn *pg; /* the owner's own connection, search_path payonce */
extern struct loop *loop;
extern struct db *gateway, *settler; /* pools in these roles */

int money_start(void **state); /* cmocka group setup: a migrated cluster */
int money_stop(void **state);
int money_clear(void **state); /* test setup: empty tables, network eip155:1, instance 1 alive */

struct ask {
    int attempt; /* names the order and receipt that a new one gets, too */
    int instance, request, payer, nonce, payee, signature, network;
    int quote; /* 0: none */
    const char *payment_id, *side_effect, *amount, *by;
    bool cacheable, idempotent, has_code, unverified, pay_first;
    int key, window_s, repeat_max; /* of a question that may be a free repeat; key 0: none */
    int64_t now_ms;                /* the chain's time; 0: ours */
    int manner;                    /* 0: no credentials and the like */
    int valid_in_s, need_s; /* validBefore: from the test's beginning */
};
struct ask ask(void); /* attempt, instance, request, payer and nonce 1, a read, 120 s */

#define ID "the-payment-id-1"
#define BY_GATEWAY "{\"actor\":\"gateway 1\",\"request\":\"req-1\",\"retry\":\"http\"}"
#define BY_SETTLER "{\"actor\":\"settler 1\"}"
struct ask with_id(void);      /* the same with ID and quote 3 */
struct ask fresh(int nonce);   /* the same call signed anew, under ID; its attempt is the nonce */
struct ask again(int attempt); /* the same payment, by its nonce alone */

/* Each calls the function once as the gateway and compares what it says. order 0: none; epoch 0: no receipt either. */
void find_is(const struct ask *a, const char *verdict, int order, bool fresh);
void accept_is(const struct ask *a, const char *verdict, int order, int epoch);
void begin_is(int order, int attempt, int instance, const char *verdict, int epoch);
void finish_is(int order, int epoch, const char *work, const char *verdict);
void accept_warns(const struct ask *a, int similar); /* accepted, and similar_order is told */
enum db_rc accept_rc(const struct ask *a);
enum db_rc accept_rows(const struct ask *a, struct db_rows **ret);
int id_in(const struct db_rows *r, const char *column); /* which byte the 16 of the column repeat; 0: null */

void state_is(int nonce, const char *state); /* of payer 1's authorization */
void current_is(int nonce);                  /* pays the only order now */
void work_is(int order, const char *work);
void make_due(int nonce, int valid_in_s);            /* an order of its own, its work done */
void ends(int nonce, const char *state);           /* authorization_end, which must take it */
void settles(int nonce, int log_index, int age_s); /* proofs_record: a block age_s old */
void instance_dies(int instance);                  /* and is known to be dead */

char *dump(void) MUST_CHECK;      /* every row of every table, as text */
void same_as(const char *before); /* nothing was changed since */

void args_id(struct db_args *a, int n, size_t size); /* bytea of n repeated */
enum db_rc call(struct db *db, const char *function, struct db_args *a, struct db_rows **ret);

#endif
