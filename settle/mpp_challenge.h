/* MPP's challenge (HTTP scheme `Payment`, method tempo, intent charge): what a 402 offers, and what comes back of it.
 *
 * Stateless as a quote is: the id is a MAC over the raw strings of the challenge, so that what is echoed under a good
 * id is what we offered, at the price of then. The request's externalId is a quote's text: one purchase on both rails
 * is one quote. */
#ifndef SETTLE_MPP_CHALLENGE_H
#define SETTLE_MPP_CHALLENGE_H

#include "settle/terms.h"

#define MPP_METHOD "tempo"
#define MPP_INTENT "charge"

/* The parameters as they stand on the wire; p NULL: not there. */
struct mpp_challenge { struct slice id, realm, method, intent, request, expires, digest, opaque, description; };

struct mpp_id { char s[44]; };       /* base64url of a MAC: 43 characters */
/* The MAC over realm, method, intent, request, expires, digest and opaque, as they were spelled. */
struct mpp_id mpp_id_of(struct slice key, const struct mpp_challenge *c);

/* ---- out ---- */

struct mpp_offer {
    struct slice key;                /* at least 32 bytes */
    const char *realm;               /* mpp_realm_ok */
    const struct price *price;
    struct slice external_id;        /* printable ASCII without quotes and backslashes: a quote's text */
    int64_t expires;                 /* unix seconds */
    bool push_only;                  /* else pull and push */
    const char *description;         /* NULL: none; for people, not under the MAC */
};
bool mpp_realm_ok(const char *realm);                    /* printable ASCII without | " and backslash, not empty */
/* The value of WWW-Authenticate. */
void mpp_challenge_write(const struct mpp_offer *o, struct buf *ret);

/* ---- what the client would rather pay with ---- */

/* Accept-Payment's weight for a method and an intent, in thousandths; 0: it would not take it. The most exact of its
 * ranges decides; what is not well-formed is passed over. A header that is absent or says nothing takes everything:
 * 1000. */
int mpp_accept(struct slice header, const char *method, const char *intent);

/* ---- in ---- */

/* The Payment challenges of one WWW-Authenticate value, which may hold other schemes' too; what comes behind something
 * malformed is not read. Texts point into b, which must be empty and holds them without their quotes, each ended by a
 * NUL. Returns how many there are; up to max of them are written. */
size_t mpp_challenges_read(struct slice header, struct buf *b, struct mpp_challenge *ret, size_t max);

/* What a request asks for, from its base64url JSON. */
struct mpp_charge {
    uint64_t chain_id;
    struct address currency, recipient;
    struct amount amount;
    char external_id[129];           /* empty: none */
    bool pull, push;                 /* the modes that are taken */
    bool plain; /* no sponsor, no splits, no memo of the server's, not zero: what is served, and paid, here */
};
bool mpp_charge_read(struct slice request, struct mpp_charge *ret,
                     const char **ret_detail) MUST_CHECK;                /* false: detail names the field */
bool mpp_charge_is(const struct mpp_charge *c, const struct price *p);   /* exactly this price */

/* ---- the memo that binds a transfer to its challenge ---- */

struct hash32 mpp_memo(struct slice realm, struct slice id);             /* no client named */
bool mpp_memo_is(const struct hash32 *memo, struct slice realm, struct slice id); /* whichever client it names */
bool mpp_memo_of_realm(const struct hash32 *memo, struct slice realm);   /* of some challenge of ours */

/* ---- who paid, as the presenter says it: did:pkh:eip155:<chain>:<address> ---- */

struct mpp_source {
    enum { MPP_SOURCE_NONE, MPP_SOURCE_ACCOUNT, MPP_SOURCE_OTHER /* in any other form */ } kind;
    uint64_t chain_id;
    struct address address;
};
void mpp_source_read(struct slice s, struct mpp_source *ret);           /* s is there: an account, or anything else */
bool mpp_source_is(const struct mpp_source *s, uint64_t chain_id,
                   const struct address *who); /* also where nothing is said */

#endif
