/* What a transaction's receipt proves of a challenge: the memo decides whose transfer it is, and only then is the
 * amount looked at. Every transfer to the payee that the transaction made is told, so that each is booked once: as the
 * sale, or as money to give back. That the hash and the challenge are unused, and in time, is the ledger's to say. */
#ifndef SETTLE_MPP_PROOF_H
#define SETTLE_MPP_PROOF_H

#include "chain/tempo_tx.h"
#include "settle/mpp_challenge.h"

enum mpp_verdict {
    MPP_PROOF_UNKNOWN,     /* no receipt, or one that cannot be right: ask again; never "not paid" */
    MPP_PROOF_REVERTED,    /* mined and failed: it moved nothing but its fee */
    MPP_PROOF_UNBOUND,     /* no transfer to the payee carries this challenge's memo: no money for this challenge */
    MPP_PROOF_PRESENTER,   /* one does, but it is not the presenter's: it stays claimable by its payer */
    MPP_PROOF_PAID,        /* exactly one does, of the right token and amount */
    MPP_PROOF_MISPAID,     /* some do, and they are not the price: each is money to give back */
};

/* What one transfer to the payee is, seen from this challenge. */
enum mpp_part {
    MPP_PART_SALE,          /* MPP_PROOF_PAID: the one that pays */
    MPP_PART_CLAIMABLE,     /* MPP_PROOF_PRESENTER: bound to the challenge, whoever paid it may present it */
    MPP_PART_WRONG_TOKEN,   /* bound to the challenge, another token */
    MPP_PART_WRONG_AMOUNT,  /* bound to the challenge, the only one, not the price */
    MPP_PART_ONE_OF_MANY,   /* bound to the challenge, and so are others: halves, or paid twice */
    MPP_PART_OTHER,         /* bound to another challenge of ours: its own presentation decides */
    MPP_PART_SURPLUS,       /* bound to nothing of ours */
};
const char *mpp_part_name(enum mpp_part p);

struct mpp_transfer { struct tempo_moved moved; enum mpp_part part; };

struct mpp_proof {
    enum mpp_verdict verdict;
    struct mpp_transfer *transfers;  /* owned; to the payee, in the transaction's order */
    size_t n;
    const struct mpp_transfer *sale; /* MPP_PROOF_PAID: the one of them that pays; else NULL */
};
void mpp_proof_done(struct mpp_proof *p);
#define MPP_PROOF SCOPE(mpp_proof_done) struct mpp_proof

struct mpp_want {
    struct slice realm, id;          /* the challenge */
    struct mpp_charge charge;
    struct mpp_source source;        /* what the credential says of its payer */
};
void mpp_prove(const struct receipt *r, const struct mpp_want *want, struct mpp_proof *ret);

#endif
