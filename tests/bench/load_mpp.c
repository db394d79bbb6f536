/* Paying a challenge of MPP's on Tempo. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chain/tempo_tx.h"
#include "load_pay.h"
#include "settle/mpp_credential.h"

enum { GAS = 1000000, DEADLINE_S = 25, PAST_S = 1 << 20 };

static const uint64_t max_tip = 1000000000, max_fee = 100000000000;

static void fail(const char *what)
{
    (void)fprintf(stderr, "load: %s\n", what);
    exit(1);
}

/* A payer's equal transactions in one second are told apart by when they would have been valid from. */
static uint64_t some_past(uint64_t now)
{
    uint32_t salt;
    bytes_random(&salt, sizeof salt);
    return now - 1 - salt % PAST_S;
}

static void sign(const struct mpp_challenge *c, const struct mpp_charge *charge, const struct key *k, struct buf *ret_raw)
{
    const uint64_t now = (uint64_t)clock_wall_s();
    const struct tempo_transfer transfer = { charge->recipient, charge->amount, mpp_memo(c->realm, c->id) };
    BUF data = { 0 };
    struct hash32 hash;
    tempo_transfer_call(&data, &transfer);
    const struct tempo_tx tx = {
        .chain_id = charge->chain_id, .gas = GAS, .max_tip = amount_of(max_tip), .max_fee = amount_of(max_fee),
        .nonce_key = tempo_expiring_key(), .valid_before = now + DEADLINE_S, .valid_after = some_past(now),
        .call = { .to = charge->currency, .value = AMOUNT_ZERO, .input = { data.p, data.n } },
    };
    if (!tempo_sign(&tx, k, ret_raw, &hash))
        fail("a transaction that cannot be signed");
}

void mpp_payment(const char *www_authenticate, const struct key *k, struct buf *ret)
{
    BUF texts = { 0 };
    BUF raw = { 0 };
    struct mpp_challenge c;
    struct mpp_charge charge;
    const char *detail;
    if (mpp_challenges_read(slice_of(www_authenticate), &texts, &c, 1) == 0 || !mpp_charge_read(c.request, &charge, &detail))
        fail("no challenge that can be paid");
    sign(&c, &charge, k, &raw);
    mpp_credential_write(&c, charge.chain_id, &k->address, NULL, (struct slice){ raw.p, raw.n }, ret);
}
