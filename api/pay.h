/* payonce pay: the paying agent, and a model for agents.
 *
 * What it promises: the intent - payment id, offer, request, signed authorization - is on disk, fsynced, before a byte
 * of the payment is sent. While it is there the same authorization is sent again and no other is signed for it. The
 * EIP-3009 nonce is derived from payment id, request and attempt, so an agent that lost its store and kept its payment id
 * signs the same nonce, which the token takes once. The attempt rises only when the chain itself, read over the agent's
 * own RPC, shows that the last authorization can never be used again.
 * On MPP the same holds of a transaction on Tempo. One that the agent sends itself (push) has a nonce key of its own,
 * derived as the nonce is, under which the chain takes one transaction, and a deadline after which it takes none. One
 * that the server is to send (pull) is bound by its deadline alone. */
#ifndef API_PAY_H
#define API_PAY_H

#include "base/json.h"
#include "settle/mpp_credential.h"
#include "settle/x402.h"

enum pay_exit {
    PAY_DONE = 0,
    PAY_FAILED = 1,
    PAY_USAGE = 2,
    PAY_REFUSED = 3,     /* nothing moved */
    PAY_NOT_FINAL = 4,   /* run again with the same payment id */
    PAY_CAP = 5,
    PAY_REVIEW = 6,
    PAY_ANSWER_GONE = 7, /* paid, but the answer is not served; the receipt is */
    PAY_BAD_REQUEST = 8, /* the call itself was refused before any payment; nothing was signed */
};
int pay_main(int argc, char **argv) MUST_CHECK;          /* argv[0] is "pay" */
extern const char pay_help[];

/* ---- what was asked for (pay_options.c) ---- */

enum { PAYMENT_ID_MAX = 128 };
struct pay_options {
    const char *url, *method, *key_file, *id, *store, *rpc, *network, *asset, *mode;
    struct buf body;
    struct header *headers;
    size_t header_count;
    struct amount max_call, max_day;
    int64_t wait_s;
    bool json, fresh;                /* fresh: --new */
    char *default_store;
};
/* PAY_DONE, or PAY_USAGE and why on standard error. */
enum pay_exit pay_options_read(int argc, char **argv, struct pay_options *ret) MUST_CHECK;
void pay_options_done(struct pay_options *o);

/* ---- what is offered (pay_offer.c) ---- */

/* One entry of accepts that this agent can sign: exact over EIP-3009. */
struct offer {
    json_t *accepted;                /* borrowed from the challenge, verbatim */
    struct token token;              /* its texts are borrowed too */
    struct address pay_to;
    struct amount amount;
    int64_t max_timeout_s;
};
struct offer_filter { const char *network, *asset; struct amount max_call; };
enum offer_rc { OFFER_OK, OFFER_NONE, OFFER_OVER_CAP };
json_t *challenge_read(struct slice header, const char **ret_why) MUST_CHECK; /* PAYMENT-REQUIRED; owned; NULL: why */
enum offer_rc offer_choose(const json_t *challenge, const struct offer_filter *f, struct offer *ret) MUST_CHECK;

/* One Payment challenge of WWW-Authenticate that this agent can pay: a plain charge on Tempo. */
struct mpp_choice {
    struct mpp_challenge challenge;  /* its texts are the caller's buffer's */
    struct mpp_charge charge;
    enum mpp_mode mode;
    int64_t expires_s;               /* INT64_MAX: not said */
};
/* mode: "push" or "pull"; NULL: push where it is taken, since it cannot pay twice even if the store is lost. */
enum offer_rc mpp_choose(struct slice header, const struct offer_filter *f, const char *mode, struct buf *texts,
                         struct mpp_choice *ret) MUST_CHECK;

/* ---- intents and their nonces (pay_intent.c) ---- */

enum intent_state {
    INTENT_OPEN,         /* signed; may or may not have arrived */
    INTENT_NOT_CHARGED,  /* told so; the authorization could still be used until it is proven dead */
    INTENT_REVIEW,
    INTENT_DONE,         /* paid and answered */
    INTENT_GONE,         /* paid, the answer is not served */
};
/* What an intent on Tempo has: the challenge, and the one transaction that pays it. auth has payer, payee, value, nonce
 * and deadline; the nonce is the transaction's nonce key (push), and no signature. */
struct mpp_intent {
    json_t *challenge;               /* the parameters as they stood on the wire; NULL: the intent is x402's */
    enum mpp_mode mode;
    struct hash32 tx;
    struct buf raw;
};
struct intent {
    char payment_id[PAYMENT_ID_MAX + 1];
    char *method, *url;
    struct hash32 request;           /* request_digest */
    uint64_t chain_id;
    struct address asset;
    char *token_name, *token_version;
    unsigned attempt;
    struct authorization auth;
    int64_t signed_at;               /* 0: nothing is signed yet */
    struct mpp_intent mpp;
    enum intent_state state;
    json_t *accepted, *resource, *extensions; /* to be echoed; NULL where the challenge had none */
    json_t *past;                    /* authorizations that were proven dead, with how */
    json_t *result;                  /* order_id, transaction, receipt, known_by: what is known so far */
};
void intent_done(struct intent *i);
#define INTENT SCOPE(intent_done) struct intent
void payment_id_random(char ret[PAYMENT_ID_MAX + 1]);
struct hash32 request_digest(const char *method, const char *url, struct slice body);
struct hash32 intent_nonce(const char *payment_id, const struct hash32 *request, uint32_t attempt);
json_t *intent_json(const struct intent *i) MUST_CHECK;
bool intent_read(const json_t *j, struct intent *ret) MUST_CHECK;
struct token intent_token(const struct intent *i);       /* its texts are the intent's */
/* Takes the offer and the challenge's echoes, derives the nonce of i->attempt and signs. */
bool intent_sign(struct intent *i, const json_t *challenge, const struct offer *o, const struct key *k, int64_t now_s)
    MUST_CHECK;
/* The same with a transaction of one transfer: tx has what the chain was asked for, fees and gas. */
bool intent_sign_mpp(struct intent *i, const struct mpp_choice *c, struct tempo_tx *tx, const struct key *k,
                     int64_t now_s) MUST_CHECK;
/* The value of PAYMENT-SIGNATURE, or of Authorization on MPP; the same each time. */
char *intent_header(const struct intent *i) MUST_CHECK;
struct mpp_challenge intent_challenge(const struct intent *i); /* its texts are the intent's */

/* ---- the store (pay_store.c) ---- */

/* A directory of intents, one file each. A function that returns a text failed: the text says why, owned. */
struct store { char *dir; };
char *store_open(const char *dir, struct store *ret) MUST_CHECK; /* makes it, mode 0700 */
void store_done(struct store *s);
char *store_path(const struct store *s, const struct address *payer, const char *payment_id) MUST_CHECK;
/* An exclusive lock that goes with the process: -1: held by another (*ret_why NULL) or failed. */
int store_lock(const struct store *s, const char *name, bool wait, char **ret_why) MUST_CHECK;
/* Temporary file, fsync, rename, fsync of the directory: when NULL comes back it is durable. */
char *store_write(const char *path, const struct intent *i) MUST_CHECK;
enum store_rc { STORE_FOUND, STORE_NONE, STORE_BAD };
enum store_rc store_read(const char *path, struct intent *ret) MUST_CHECK;
/* An unfinished intent of this wallet for this request. STORE_BAD: a file cannot be read, its path in ret_path. */
enum store_rc store_find(const struct store *s, const struct address *payer, const struct hash32 *request,
                         char **ret_path) MUST_CHECK;
/* What the wallet has signed since, past attempts less. False: a file cannot be read; it could be anything. */
bool store_spent(const struct store *s, const struct address *payer, int64_t since_s, const char *but,
                 struct amount *ret) MUST_CHECK;

/* ---- what the chain says (pay_chain.c) ---- */

enum fate {
    FATE_UNKNOWN,        /* could not be read, or contradictory */
    FATE_OPEN,           /* can still be used */
    FATE_EXPIRED,        /* unused at a final block at or past validBefore: dead */
    FATE_VOID,           /* spent elsewhere or cancelled, by a final log: dead */
    FATE_PAID,           /* its own Transfer reached the payee */
};
const char *fate_name(enum fate f);
enum fate intent_fate(struct rpc *r, const struct intent *i) MUST_CHECK;
enum fate mpp_fate(struct rpc *r, const struct intent *i) MUST_CHECK;    /* intent_fate's, on Tempo */
/* Fees and gas of a transfer like c's under ret's nonce key and deadline, and whether nonce 0 of that key is free. False:
 * the chain could not be read. */
bool mpp_prepare(struct rpc *r, const struct mpp_choice *c, const struct address *payer, struct tempo_tx *ret,
                 bool *ret_free) MUST_CHECK;
void mpp_send(struct rpc *r, const struct intent *i);    /* to the node; whether it is mined, mpp_fate says */
bool nonce_used(struct rpc *r, const struct address *token, const struct address *payer, const struct hash32 *nonce,
                bool *ret) MUST_CHECK;

#endif
