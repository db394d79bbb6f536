/* Paying a challenge of MPP's: which one, and the transaction on Tempo that pays it. */
#include <string.h>

#include "api/pay_agent.h"
#include "base/clock.h"
#include "base/failpoint.h"

enum { CHALLENGES_MAX = 16, PULL_S = 25, PUSH_S = 60, ROOM_S = 5 /* before a challenge expires */ };

/* ---- which challenge ---- */

static bool wanted(const struct mpp_charge *c, const struct offer_filter *f)
{
    uint64_t chain_id;
    struct address asset;
    if (f->network && (!network_id_read(f->network, &chain_id) || chain_id != c->chain_id))
        return false;
    return !f->asset || (address_read(f->asset, strlen(f->asset), &asset) && address_eq(&asset, &c->currency));
}

static bool read_choice(const struct mpp_challenge *c, const char *mode, struct mpp_choice *ret)
{
    const char *detail;
    int64_t expires_ms;
    *ret = (struct mpp_choice){ .challenge = *c, .expires_s = INT64_MAX };
    if (!slice_is(c->method, MPP_METHOD) || !slice_is(c->intent, MPP_INTENT) ||
        !mpp_charge_read(c->request, &ret->charge, &detail) || !ret->charge.plain)
        return false;
    if (c->expires.p) {
        if (!time_read(c->expires.p, &expires_ms))
            return false;
        ret->expires_s = expires_ms / 1000;
    }
    const bool push = ret->charge.push && (!mode || strcmp(mode, "push") == 0);
    const bool pull = ret->charge.pull && (!mode || strcmp(mode, "pull") == 0);
    ret->mode = push ? MPP_PUSH : MPP_PULL;
    return push || pull;
}

enum offer_rc mpp_choose(struct slice header, const struct offer_filter *f, const char *mode, struct buf *texts,
                         struct mpp_choice *ret)
{
    struct mpp_challenge all[CHALLENGES_MAX];
    size_t n = mpp_challenges_read(header, texts, all, COUNT(all));
    enum offer_rc rc = OFFER_NONE;
    for (size_t i = 0; i < n && i < COUNT(all); i++) {
        struct mpp_choice c;
        if (!read_choice(&all[i], mode, &c) || !wanted(&c.charge, f))
            continue;
        if (amount_cmp(c.charge.amount, f->max_call) > 0) {
            rc = OFFER_OVER_CAP;
            continue;
        }
        *ret = c;
        return OFFER_OK;
    }
    return rc;
}

/* ---- the transaction ---- */

static uint64_t deadline_of(const struct mpp_choice *c, int64_t now_s)
{
    const int64_t until = now_s + (c->mode == MPP_PUSH ? PUSH_S : PULL_S);
    return (uint64_t)(until < c->expires_s ? until : c->expires_s);
}

struct signing { const struct mpp_choice *choice; struct tempo_tx tx; };

static bool sign_mpp(struct agent *a, void *arg)
{
    struct signing *s = arg;
    s->tx.valid_before = deadline_of(s->choice, clock_wall_s());
    return intent_sign_mpp(&a->intent, s->choice, &s->tx, &a->key, clock_wall_s());
}

enum pay_exit agent_commit_mpp(struct agent *a, const struct mpp_choice *c)
{
    struct signing s = { .choice = c, .tx = { .chain_id = c->charge.chain_id } };
    const struct hash32 nonce = intent_nonce(a->intent.payment_id, &a->intent.request, a->intent.attempt);
    bool is_free;
    agent_rpc(a, c->charge.chain_id);
    if (!a->rpc)
        return end(a, PAY_USAGE, "paying on Tempo needs a node: give --rpc URL. Nothing was signed");
    if (c->expires_s < clock_wall_s() + ROOM_S)
        return end(a, PAY_REFUSED, "the challenge expires too soon to be paid: nothing was signed");
    s.tx.nonce_key = c->mode == MPP_PUSH ? tempo_key_of(&nonce) : tempo_expiring_key();
    s.tx.valid_before = deadline_of(c, clock_wall_s());
    if (!mpp_prepare(a->rpc, c, &a->key.address, &s.tx, &is_free))
        return end(a, PAY_FAILED, "--rpc does not say what the transaction would cost, or the wallet cannot pay it: nothing was signed");
    if (!is_free)
        return end(a, PAY_ANSWER_GONE,
                   "the chain shows that this payment id has sent its transaction before, and its challenge is not in "
                   "this store: nothing was signed");
    return agent_sign(a, c->charge.amount, sign_mpp, &s);
}

/* ---- before it is presented ---- */

static enum pay_exit push(struct agent *a, bool *ret_dead)
{
    if (!a->rpc)
        return end(a, PAY_USAGE, "this purchase is paid on Tempo and needs a node: give --rpc URL");
    for (bool first = true;; first = false) {
        switch (intent_fate(a->rpc, &a->intent)) {
        case FATE_PAID:
            remember(a, "transaction", hash_text(&a->intent.mpp.tx).s);
            return PAY_DONE;
        case FATE_VOID:
            if (!first) { /* another one would most likely fail as well, and costs its fee */
                a->intent.state = INTENT_NOT_CHARGED;
                return end(a, PAY_REFUSED,
                           "the transaction was mined and failed: only its fee was paid. Run again to send another");
            }
            *ret_dead = true;
            return PAY_NOT_FINAL;
        case FATE_EXPIRED:
            *ret_dead = true;
            return PAY_NOT_FINAL;
        case FATE_OPEN:
            if (first)
                step(a, "pushing", "%s", hash_text(&a->intent.mpp.tx).s);
            FAILPOINT("pay_push");
            mpp_send(a->rpc, &a->intent);
            FAILPOINT("pay_pushed");
            break;
        case FATE_UNKNOWN:
            break;
        }
        if (!sleep_within(a, 1))
            return end(a, PAY_NOT_FINAL, "the chain does not show yet what became of the transaction");
    }
}

/* What the server is to send may be handed over again as long as it can be mined. */
static enum pay_exit pull(struct agent *a, bool *ret_dead)
{
    const enum fate f = a->rpc ? intent_fate(a->rpc, &a->intent) : FATE_OPEN;
    *ret_dead = f == FATE_EXPIRED || f == FATE_VOID;
    return PAY_DONE;
}

enum pay_exit agent_ready(struct agent *a, bool *ret_dead)
{
    *ret_dead = false;
    agent_rpc(a, a->intent.chain_id);
    return a->intent.mpp.mode == MPP_PUSH ? push(a, ret_dead) : pull(a, ret_dead);
}
