/* payonce doctor: the configuration against the world. One line a check: fine, worth a look, or broken and
 * what to do. */
#ifndef API_DOCTOR_H
#define API_DOCTOR_H

#include "api/config.h"
#include "base/json.h"

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL };

struct doctor {
    const struct config *c;
    struct loop *loop;
    struct fetcher *fetcher;
    json_t *lines;                   /* --json: collected here; NULL: printed as they come */
    bool failed;
    bool has_relayer, has_refund;
    struct address relayer, refund;
};
void doctor_say(struct doctor *d, enum finding f, const char *what, const char *fmt, ...) PRINTF(4, 5);

void doctor_keys(struct doctor *d);                      /* also finds the relayer's address */
bool doctor_key(struct doctor *d, const char *variable, const char *what, struct key *ret) MUST_CHECK; /* says what is wrong */
void doctor_paid_back(struct doctor *d);                 /* the refund wallet's key, and the receipts' */
void doctor_refunds(struct doctor *d, struct rpc *r, const struct net *n, const char *at); /* what the refund wallet holds */
void doctor_sellers(struct doctor *d);                   /* who may settle here, and their webhooks' keys */
void doctor_pay_first(struct doctor *d);                 /* who pays back what a failed call left */
void doctor_database(struct doctor *d);
void doctor_chain(struct doctor *d, const struct net *n);
void doctor_token(struct doctor *d, struct rpc *r, const struct token *t, const char *at);
void doctor_http(struct doctor *d);                      /* our addresses and the upstreams */

/* One eth_call at the latest block. False: no answer. */
bool doctor_ask(struct rpc *r, const struct address *to, const char *data, struct buf *ret) MUST_CHECK;

#endif
