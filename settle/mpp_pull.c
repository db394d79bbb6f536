/* A signed transaction that somebody hands us: what it may be, so that sending it pays this charge and does nothing
 * else, and so that after its deadline it is known never to land. */
#include "base/clock.h"
#include "settle/mpp_credential.h"

enum { SEND_S = 3 /* the pool refuses what has less time left */ };

/* Is it just one call of one token, by one key, at the sender's own cost? */
static enum mpp_fault check_shape(const struct tempo_signed *s, const struct mpp_charge *charge)
{
    const struct tempo_tx *tx = &s->tx;
    if (s->kind != TEMPO_SECP256K1)
        return MPP_FAULT_TX_SIGNATURE_KIND;
    if (tx->chain_id != charge->chain_id)
        return MPP_FAULT_TX_CHAIN;
    if (tx->fees != TEMPO_FEES_SENDER)
        return MPP_FAULT_TX_SPONSOR;
    if (tx->has_fee_token && !tempo_is_token(&tx->fee_token))
        return MPP_FAULT_TX_FEE_TOKEN;
    if (tx->access_count != 0)
        return MPP_FAULT_TX_ACCESS_LIST;
    if (tx->authorization_count != 0)
        return MPP_FAULT_TX_AUTHORIZATIONS;
    return tx->has_key_authorization ? MPP_FAULT_TX_KEY_AUTHORIZATION : MPP_FAULT_NONE;
}

static enum mpp_fault check_call(const struct mpp_credential *c, const struct mpp_charge *charge)
{
    const struct tempo_call *call = &c->tx.tx.call;
    struct tempo_transfer t;
    if (c->tx.tx.call_count != 1)
        return MPP_FAULT_TX_CALLS;
    if (call->creates || !address_eq(&call->to, &charge->currency))
        return MPP_FAULT_TX_TOKEN;
    if (!amount_is_zero(call->value))
        return MPP_FAULT_TX_VALUE;
    if (!tempo_transfer_read(call->input, &t))
        return MPP_FAULT_TX_CALLDATA;
    if (!address_eq(&t.to, &charge->recipient))
        return MPP_FAULT_TX_RECIPIENT;
    if (amount_cmp(t.amount, charge->amount) != 0)
        return MPP_FAULT_TX_AMOUNT;
    return mpp_memo_is(&t.memo, c->challenge.realm, c->challenge.id) ? MPP_FAULT_NONE : MPP_FAULT_TX_MEMO;
}

/* The nonce itself is free: under the expiring key it only tells equal transactions apart. */
static enum mpp_fault check_times(const struct tempo_tx *tx, int64_t expires_s, int64_t now_s)
{
    const uint64_t now = now_s < 0 ? 0 : (uint64_t)now_s, expires = expires_s < 0 ? 0 : (uint64_t)expires_s;
    if (amount_cmp(tx->nonce_key, tempo_expiring_key()) != 0)
        return MPP_FAULT_TX_NONCE_KEY;
    if (tx->valid_before == 0)
        return MPP_FAULT_TX_NO_DEADLINE;
    if (now > expires)
        return MPP_FAULT_EXPIRED;
    if (tx->valid_before <= now + SEND_S)
        return MPP_FAULT_TX_DEADLINE_PAST;
    if (tx->valid_before > expires || tx->valid_before > now + TEMPO_EXPIRY_S)
        return MPP_FAULT_TX_DEADLINE_FAR;
    return tx->valid_after > now ? MPP_FAULT_TX_NOT_YET : MPP_FAULT_NONE;
}

enum mpp_fault mpp_pull_check(const struct mpp_credential *c, const struct mpp_charge *charge, int64_t now_s)
{
    int64_t expires_ms;
    if (!c->challenge.expires.p || !time_read(c->challenge.expires.p, &expires_ms))
        return MPP_FAULT_NOT_OURS;
    enum mpp_fault fault = check_shape(&c->tx, charge);
    if (fault == MPP_FAULT_NONE)
        fault = check_call(c, charge);
    if (fault == MPP_FAULT_NONE && !mpp_source_is(&c->source, charge->chain_id, &c->tx.sender))
        fault = MPP_FAULT_TX_SENDER;
    return fault == MPP_FAULT_NONE ? check_times(&c->tx.tx, expires_ms / 1000, now_s) : fault;
}
