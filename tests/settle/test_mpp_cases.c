/* Each recorded presentation gets its verdict, in the order in which they came to a gateway that remembers hashes and
 * challenges. */
#include "mpp.h"

#include <string.h>

/* The ledger's part: which hash took which challenge. */
struct taken { struct mpp_id id; struct hash32 hash; };
static struct taken taken[64];
static size_t taken_n;

static bool is_taken_by(const char *id, const struct hash32 *hash)
{
    for (size_t i = 0; i < taken_n; i++)
        if (strcmp(taken[i].id.s, id) == 0 && hash_eq(&taken[i].hash, hash))
            return true;
    return false;
}

static bool is_taken(const char *id, const struct hash32 *hash)
{
    for (size_t i = 0; i < taken_n; i++)
        if (strcmp(taken[i].id.s, id) == 0 || hash_eq(&taken[i].hash, hash))
            return true;
    return false;
}

static void take(const char *id, const struct hash32 *hash)
{
    struct taken *t = &taken[taken_n++];
    memcpy(t->id.s, id, sizeof t->id.s);
    t->hash = *hash;
}

static const char *judge_receipt(const struct mpp_credential *c, const struct mpp_charge *charge, const json_t *receipt,
                                 bool late)
{
    const struct mpp_want want = {
        .realm = c->challenge.realm, .id = c->challenge.id, .charge = *charge, .source = c->source
    };
    struct receipt r;
    MPP_PROOF proof = { .verdict = MPP_PROOF_UNKNOWN };
    assert_true(receipt_read(receipt, &r));
    mpp_prove(&r, &want, &proof);
    receipt_done(&r);
    switch (proof.verdict) {
    case MPP_PROOF_UNKNOWN:
        return "undecided-poll";
    case MPP_PROOF_REVERTED:
    case MPP_PROOF_UNBOUND:
        return "reject-no-money";
    case MPP_PROOF_PRESENTER:
        return "reject-presenter, payment stays claimable by the payer";
    case MPP_PROOF_MISPAID:
        return "money-moved-refund-debt";
    case MPP_PROOF_PAID:
        break;
    }
    if (late || is_taken(c->challenge.id.p, &c->hash))
        return "money-moved-refund-debt";
    take(c->challenge.id.p, &c->hash);
    return "deliver";
}

static const char *judge(const json_t *v)
{
    const int64_t now_ms = json_integer_value(json_object_get(v, "now_ms"));
    const struct mpp_in in = { mpp_secret, mpp_realm, now_ms };
    MPP_CREDENTIAL c = { .root = NULL };
    struct slice token68;
    struct mpp_charge charge;
    const char *detail;
    bool late;
    if (mpp_credential_find(json_slice(v, "authorization"), &token68) != MPP_FAULT_NONE)
        return "reject-no-money";
    if (!token68.p)
        return "plain 402 challenge";
    if (mpp_credential_read(token68, &c, &detail) != MPP_FAULT_NONE ||
        mpp_credential_check(&c, &in, &charge, &late) != MPP_FAULT_NONE)
        return "reject-no-money";
    if (!mpp_charge_is(&charge, &mpp_price))
        return "reject-no-money";
    if (is_taken_by(c.challenge.id.p, &c.hash))
        return "replay-original-response";
    if (c.mode == MPP_PULL && mpp_pull_check(&c, &charge, now_ms / 1000) != MPP_FAULT_NONE)
        return "reject-no-money";
    return judge_receipt(&c, &charge, json_object_get(v, "receipt"), late);
}

static void test_cases(void **state)
{
    (void)state;
    const json_t *cases = json_object_get(vectors, "cases");
    size_t i;
    json_t *v;
    assert_int_equal(json_array_size(cases), 44);
    json_array_foreach(cases, i, v) {
        const char *got = judge(v), *want = json_str(v, "verdict");
        if (strcmp(got, want) != 0)
            fail_msg("%s: %s, not %s", json_str(v, "name"), got, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };
    return cmocka_run_group_tests(tests, mpp_start, mpp_stop);
}
