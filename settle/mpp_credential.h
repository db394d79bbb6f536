/* MPP's credential (`Authorization: Payment ...`): read strictly, then held against the challenge that it echoes.
 * Nothing here asks the chain. A push credential names a transaction that its client sent; a pull credential brings
 * one, signed, for us to send. */
#ifndef SETTLE_MPP_CREDENTIAL_H
#define SETTLE_MPP_CREDENTIAL_H

#include <jansson.h>

#include "chain/tempo_tx.h"
#include "settle/mpp_challenge.h"

/* Why a credential is refused (mpp_fault.def): MPP_FAULT_ENCODING, MPP_FAULT_TX_AMOUNT, ... */
enum mpp_fault {
    MPP_FAULT_NONE = 0,
#define FAULT(name, problem, text) MPP_FAULT_##name,
#include "settle/mpp_fault.def"
#undef FAULT
};
const char *mpp_fault_problem(enum mpp_fault f);         /* the protocol's code; f must not be MPP_FAULT_NONE */
const char *mpp_fault_text(enum mpp_fault f);

enum mpp_mode { MPP_PUSH, MPP_PULL };

struct mpp_credential {
    json_t *root;                    /* owned; challenge points into it */
    struct mpp_challenge challenge;
    enum mpp_mode mode;
    struct hash32 hash;              /* of the transaction; pull: as the chain will name it */
    uint8_t *raw;                    /* pull: the signed transaction, owned */
    size_t raw_n;
    struct tempo_signed tx;          /* pull: what it says; points into raw */
    struct mpp_source source;
};
void mpp_credential_done(struct mpp_credential *c);
#define MPP_CREDENTIAL SCOPE(mpp_credential_done) struct mpp_credential

/* The token68 of the one Payment credential in an Authorization value, among other schemes'. *ret is empty and
 * MPP_FAULT_NONE is returned where there is none: a call without payment. */
enum mpp_fault mpp_credential_find(struct slice authorization, struct slice *ret) MUST_CHECK;
/* Its form. ret is filled only on MPP_FAULT_NONE; *ret_detail names the field, or is NULL. */
enum mpp_fault mpp_credential_read(struct slice token, struct mpp_credential *ret, const char **ret_detail) MUST_CHECK;

struct mpp_in { struct slice key; const char *realm; int64_t now_ms; };
/* Is the challenge that it echoes one of ours? Its charge is then what we offered. *ret_late: presented after it
 * expired, which refuses no money that moved in time and is no fault here. */
enum mpp_fault mpp_credential_check(const struct mpp_credential *c, const struct mpp_in *in,
                                    struct mpp_charge *ret_charge, bool *ret_late) MUST_CHECK;
/* May we send this transaction for it? Each field that could make it do anything but pay exactly this charge, or do it
 * after its deadline, refuses it; so does an expired challenge. now_s: the chain's time, or ours. */
enum mpp_fault mpp_pull_check(const struct mpp_credential *c, const struct mpp_charge *charge,
                              int64_t now_s) MUST_CHECK;

/* ---- out: the agent's side ---- */

/* Its parameters as a credential echoes them, those that it has. */
json_t *mpp_challenge_json(const struct mpp_challenge *c) MUST_CHECK;
/* The value of Authorization for a challenge that was read: with hash for push, or the signed bytes for pull (hash
 * NULL). */
void mpp_credential_write(const struct mpp_challenge *c, uint64_t chain_id, const struct address *source,
                          const struct hash32 *hash, struct slice raw, struct buf *ret);

/* ---- the receipt ---- */

/* The value of Payment-Receipt. The same arguments give the same text: a replayed answer has the receipt that it had.
 */
void mpp_receipt_write(const struct hash32 *tx, int64_t paid_at, struct slice external_id, struct buf *ret);
/* What a server's says. False: it is not one that reports success. */
bool mpp_receipt_read(struct slice header, struct hash32 *ret_tx) MUST_CHECK;

#endif
