#include "api/pay_agent.h"
#include "base/clock.h"

static int64_t valid_until(const struct agent *a)
{
    const uint64_t t = amount_u64_cap(a->intent.auth.valid_before);
    return t < INT64_MAX ? (int64_t)t : INT64_MAX;
}

/* The reason as an x402 server gives it in the challenge, else as the problem document does. */
static char *reason(const struct agent *a)
{
    const char *why = NULL;
    JSON *challenge = a->answer.challenge ? challenge_read(slice_of(a->answer.challenge), &why) : NULL;
    const char *error = challenge ? json_str(challenge, "error") : NULL;
    if (!error)
        error = answer_text(&a->answer, "error");
    if (!error)
        error = answer_text(&a->answer, "detail");
    return str_copy(error ? error : "no reason given");
}

static enum pay_exit not_charged(struct agent *a)
{
    OWNED char *why = reason(a);
    const int64_t until = valid_until(a);
    a->intent.state = INTENT_NOT_CHARGED;
    if (clock_wall_s() < until)
        return end(a, PAY_REFUSED, "refused: %s. Nothing moved; run again, this authorization is the only one until %s",
                   why, time_iso(until).s);
    if (a->rpc)
        return end(a, PAY_NOT_FINAL,
                   "refused: %s. The authorization lapsed at %s, but no final block shows it yet: run again", why,
                   time_iso(until).s);
    return end(a, PAY_REFUSED,
               "refused: %s. The authorization lapsed at %s. With --rpc URL the chain can prove it dead and a new one "
               "is signed; --new would be a second purchase",
               why, time_iso(until).s);
}

/* What is on the disk holds: the last authorization, not one that was not stored. */
static void take_back(struct agent *a)
{
    intent_done(&a->intent);
    if (store_read(a->path, &a->intent) != STORE_FOUND)
        step(a, "warning", "%s cannot be read", a->path);
}

/* The dead one is kept beside its successor, with what proved it dead. */
static void bury(struct agent *a, enum fate f)
{
    JSON *whole = intent_json(&a->intent);
    const char *what = a->intent.mpp.challenge ? "transaction" : "signature";
    json_t *dead =
        json_pack("{s:i, s:O, s:O, s:s}", "attempt", (int)a->intent.attempt, "authorization",
                  json_object_get(whole, "authorization"), what, json_object_get(whole, what), "fate", fate_name(f));
    if (!a->intent.past)
        a->intent.past = json_array();
    json_array_append_new(a->intent.past, dead);
    a->intent.attempt++;
}

enum pay_exit agent_refused(struct agent *a, bool *ret_again)
{
    *ret_again = false;
    agent_rpc(a, a->intent.chain_id);
    const enum fate f = a->rpc ? intent_fate(a->rpc, &a->intent) : FATE_OPEN;
    switch (f) {
    case FATE_OPEN:
        return not_charged(a);
    case FATE_UNKNOWN:
        return end(a, PAY_NOT_FINAL,
                   "a new payment is asked for, but what became of the last one cannot be read from --rpc: "
                   "nothing new was signed");
    case FATE_PAID:
        a->intent.state = INTENT_GONE;
        return end(a, PAY_ANSWER_GONE,
                   "a new payment is asked for, but the chain shows that this one was paid: nothing new "
                   "was signed");
    case FATE_EXPIRED:
    case FATE_VOID:
        break;
    }
    if (!a->answer.challenge && !a->answer.authenticate)
        return end(a, PAY_REFUSED, "a 402 that asks for nothing; the last payment is %s", fate_name(f));
    step(a, "dead", "the chain shows attempt %u %s: it can never be used", a->intent.attempt, fate_name(f));
    bury(a, f);
    const enum pay_exit e = agent_commit(a);
    *ret_again = e == PAY_DONE;
    if (e != PAY_DONE)
        take_back(a);
    return e;
}
