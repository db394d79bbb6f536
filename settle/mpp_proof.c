#include "settle/mpp_proof.h"

static const char *const part_names[] = {
    [MPP_PART_SALE] = "sale",
    [MPP_PART_CLAIMABLE] = "claimable",
    [MPP_PART_WRONG_TOKEN] = "wrong_token",
    [MPP_PART_WRONG_AMOUNT] = "wrong_amount",
    [MPP_PART_ONE_OF_MANY] = "one_of_many",
    [MPP_PART_OTHER] = "other_challenge",
    [MPP_PART_SURPLUS] = "surplus",
};

const char *mpp_part_name(enum mpp_part p)
{
    return part_names[p];
}

void mpp_proof_done(struct mpp_proof *p)
{
    free(p->transfers);
    *p = (struct mpp_proof){ .verdict = MPP_PROOF_UNKNOWN };
}

/* ---- which transfers, and whose ---- */

struct gathering {
    const struct mpp_want *want;
    struct mpp_proof *proof;
    size_t bound; /* transfers that are bound to this challenge; they are ONE_OF_MANY until they are judged */
};

static void gather(void *arg, const struct tempo_moved *m)
{
    struct gathering *g = arg;
    struct mpp_proof *p = g->proof;
    enum mpp_part part = MPP_PART_SURPLUS;
    if (m->has_memo && mpp_memo_is(&m->memo, g->want->realm, g->want->id))
        part = MPP_PART_ONE_OF_MANY;
    else if (m->has_memo && mpp_memo_of_realm(&m->memo, g->want->realm))
        part = MPP_PART_OTHER;
    g->bound += part == MPP_PART_ONE_OF_MANY;
    p->transfers = mem_resize(p->transfers, p->n + 1, sizeof *p->transfers);
    p->transfers[p->n++] = (struct mpp_transfer){ *m, part };
}

/* ---- the verdict ---- */

/* Who sent the transaction paid, and says so: not a contract that moved somebody's tokens, not somebody who saw the
 * hash. */
static bool is_presenters(const struct receipt *r, const struct mpp_want *want, const struct mpp_transfer *t)
{
    return address_eq(&t->moved.from, &r->from) && mpp_source_is(&want->source, want->charge.chain_id, &r->from);
}

static enum mpp_part judge_one(const struct mpp_charge *charge, const struct tempo_moved *m)
{
    if (!address_eq(&m->token, &charge->currency))
        return MPP_PART_WRONG_TOKEN;
    return amount_cmp(m->amount, charge->amount) == 0 ? MPP_PART_SALE : MPP_PART_WRONG_AMOUNT;
}

static enum mpp_verdict judge(const struct receipt *r, const struct mpp_want *want, struct mpp_proof *p, size_t bound)
{
    bool presenters = true;
    for (size_t i = 0; i < p->n; i++)
        if (p->transfers[i].part == MPP_PART_ONE_OF_MANY)
            presenters = presenters && is_presenters(r, want, &p->transfers[i]);
    for (size_t i = 0; i < p->n; i++) {
        struct mpp_transfer *t = &p->transfers[i];
        if (t->part != MPP_PART_ONE_OF_MANY)
            continue;
        if (!presenters)
            t->part = MPP_PART_CLAIMABLE;
        else if (bound == 1 || !address_eq(&t->moved.token, &want->charge.currency))
            t->part = judge_one(&want->charge, &t->moved);
        if (t->part == MPP_PART_SALE)
            p->sale = t;
    }
    if (bound == 0)
        return MPP_PROOF_UNBOUND;
    if (!presenters)
        return MPP_PROOF_PRESENTER;
    return p->sale ? MPP_PROOF_PAID : MPP_PROOF_MISPAID;
}

void mpp_prove(const struct receipt *r, const struct mpp_want *want, struct mpp_proof *ret)
{
    MPP_PROOF p = { .verdict = MPP_PROOF_UNKNOWN };
    struct gathering g = { .want = want, .proof = &p };
    if (!r->found || !r->has_from)
        p.verdict = MPP_PROOF_UNKNOWN;
    else if (!r->success)
        p.verdict = MPP_PROOF_REVERTED;
    else if (tempo_each_transfer(r, &want->charge.recipient, gather, &g))
        p.verdict = judge(r, want, &p, g.bound);
    else
        mpp_proof_done(&p); /* what was gathered before the bad log proves nothing either */
    *ret = p;
    p = (struct mpp_proof){ .verdict = MPP_PROOF_UNKNOWN };
}
