#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/pay_agent.h"
#include "base/clock.h"

enum { DAY_S = 86400, ATTEMPTS_SEEN = 8 };

/* A store that was lost cannot tell the attempt. A nonce that is used cannot pay twice, so the used one is taken. */
static void attempt_from_chain(struct agent *a, const struct token *t)
{
    agent_rpc(a, t->chain_id);
    if (!a->rpc || !a->o->id || a->intent.attempt > 0)
        return;
    for (uint32_t n = 0; n < ATTEMPTS_SEEN; n++) {
        bool used = false;
        const struct hash32 nonce = intent_nonce(a->intent.payment_id, &a->intent.request, n);
        if (!nonce_used(a->rpc, &t->address, &a->key.address, &nonce, &used))
            return;
        if (used) {
            a->intent.attempt = n;
            step(a, "found", "attempt %u of this payment id on the chain: it is signed again and cannot pay twice", n);
            return;
        }
    }
}

/* ---- the caps, and the one place where an authorization comes into being ---- */

/* A lock over the whole store: what another run signs meanwhile must be in the day's sum. */
static void lock_done(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static enum pay_exit check_day(struct agent *a, struct amount more)
{
    struct amount spent, sum;
    if (!store_spent(&a->store, &a->key.address, clock_wall_s() - DAY_S, a->path, &spent))
        return end(a, PAY_FAILED, "an intent in %s cannot be read, so the day's sum is unknown: nothing was signed",
                   a->store.dir);
    if (!amount_add(spent, more, &sum) || amount_cmp(sum, a->o->max_day) > 0)
        return end(a, PAY_CAP, "%s units in 24 hours and %s more would be over --max-day %s: nothing was signed",
                   amount_text(spent).s, amount_text(more).s, amount_text(a->o->max_day).s);
    return PAY_DONE;
}

/* Between the search for an unfinished purchase and now another run may have signed one. */
static enum pay_exit check_twin(struct agent *a)
{
    if (a->o->id || a->o->fresh || a->intent.attempt > 0)
        return PAY_DONE;
    OWNED char *path = NULL;
    switch (store_find(&a->store, &a->key.address, &a->intent.request, &path)) {
    case STORE_NONE:
        return PAY_DONE;
    case STORE_FOUND:
        return end(a, PAY_NOT_FINAL, "another run is buying this very call (%s); --new buys a second one", path);
    case STORE_BAD:
        return end(a, PAY_FAILED, "%s cannot be read: nothing was signed", path);
    }
    abort();
}

enum pay_exit agent_sign(struct agent *a, struct amount amount, sign_fn *sign, void *arg)
{
    OWNED char *why = NULL;
    SCOPE(lock_done) int lock = store_lock(&a->store, "store", true, &why);
    if (lock < 0)
        return end(a, PAY_FAILED, "%s: nothing was signed", why ? why : "the store is locked");
    enum pay_exit e = check_twin(a);
    if (e == PAY_DONE)
        e = check_day(a, amount);
    if (e != PAY_DONE)
        return e;
    if (!sign(a, arg))
        return end(a, PAY_FAILED, "the authorization could not be signed");
    why = store_write(a->path, &a->intent);
    return why ? end(a, PAY_FAILED, "%s: nothing was sent", why) : PAY_DONE;
}

struct x402_choice { const json_t *challenge; struct offer offer; };

static bool sign_x402(struct agent *a, void *arg)
{
    const struct x402_choice *c = arg;
    return intent_sign(&a->intent, c->challenge, &c->offer, &a->key, clock_wall_s());
}

static enum pay_exit commit_x402(struct agent *a, struct x402_choice *c)
{
    attempt_from_chain(a, &c->offer.token);
    return agent_sign(a, c->offer.amount, sign_x402, c);
}

static enum pay_exit no_offer(struct agent *a, bool over_cap)
{
    if (over_cap)
        return end(a, PAY_CAP, "every offer is over --max %s: nothing was signed", amount_text(a->o->max_call).s);
    return end(a, PAY_REFUSED, "no offer can be paid with an EIP-3009 authorization, or on Tempo%s",
               a->o->network || a->o->asset || a->o->mode ? ", within --network, --asset and --mode" : "");
}

static enum pay_exit commit_any(struct agent *a)
{
    const struct offer_filter f = { a->o->network, a->o->asset, a->o->max_call };
    enum offer_rc x402 = OFFER_NONE, mpp = OFFER_NONE;
    const char *why = "";
    JSON *challenge = NULL;
    if (a->answer.challenge && !a->o->mode) {
        challenge = challenge_read(slice_of(a->answer.challenge), &why);
        if (!challenge)
            return end(a, PAY_FAILED, "%s", why);
        struct x402_choice c = { .challenge = challenge };
        x402 = offer_choose(challenge, &f, &c.offer);
        if (x402 == OFFER_OK)
            return commit_x402(a, &c);
    }
    BUF texts = { 0 };
    struct mpp_choice c;
    mpp = mpp_choose(slice_of(a->answer.authenticate), &f, a->o->mode, &texts, &c);
    return mpp == OFFER_OK ? agent_commit_mpp(a, &c) : no_offer(a, x402 == OFFER_OVER_CAP || mpp == OFFER_OVER_CAP);
}

enum pay_exit agent_commit(struct agent *a)
{
    const enum pay_exit e = commit_any(a);
    if (e != PAY_DONE)
        return e;
    const struct price_words words = price_words(a);
    step(a, "price", "%s %s (%s units) on eip155:%llu to %s", words.amount.s, words.unit,
         amount_text(a->intent.auth.value).s, (unsigned long long)a->intent.chain_id,
         address_checksum(&a->intent.auth.to).s);
    step(a, "stored", "%s in %s", a->intent.mpp.challenge ? "transaction" : "authorization", a->path);
    return PAY_DONE;
}

/* ---- taking up what is there ---- */

static enum pay_exit lock_intent(struct agent *a)
{
    OWNED char *why = NULL;
    a->lock = store_lock(&a->store, a->path, false, &why);
    if (a->lock >= 0)
        return PAY_DONE;
    if (why)
        return end(a, PAY_FAILED, "%s: nothing was sent", why);
    return end(a, PAY_NOT_FINAL, "another run of this purchase is under way (%s)", a->path);
}

static enum pay_exit load_intent(struct agent *a, const struct hash32 *request, bool *ret_found)
{
    *ret_found = false;
    const enum pay_exit e = lock_intent(a);
    if (e != PAY_DONE)
        return e;
    switch (store_read(a->path, &a->intent)) {
    case STORE_NONE:
        return PAY_DONE;
    case STORE_BAD:
        return end(a, PAY_FAILED, "%s cannot be read: nothing was sent", a->path);
    case STORE_FOUND:
        break;
    }
    if (!hash_eq(&a->intent.request, request))
        return end(a, PAY_USAGE, "payment id %s belongs to another call (%s)", a->intent.payment_id, a->path);
    *ret_found = true;
    step(a, "resuming", "%s: the same authorization is sent again", a->intent.payment_id);
    return PAY_DONE;
}

/* ---- the first request, without payment ---- */

static bool worth_repeating(const struct answer *x)
{
    return x->end == FETCH_NOT_SENT || (x->end == FETCH_ANSWERED && (x->status == 429 || x->status == 503));
}

void agent_ask(struct agent *a)
{
    int64_t pause = 1;
    for (;;) {
        const struct fetch_request rq = request_of(a);
        http_exchange(&a->http, &rq, &a->answer);
        if (!worth_repeating(&a->answer))
            return;
        if (!sleep_within(a, a->answer.retry_after_s ? a->answer.retry_after_s : pause))
            return;
        pause = pause < 8 ? pause * 2 : pause;
    }
}

static enum pay_exit judge_unpaid(struct agent *a)
{
    const struct answer *x = &a->answer;
    if (x->end != FETCH_ANSWERED)
        return end(a, PAY_FAILED, "no answer (%s); nothing was signed", x->why);
    if (x->status != 402 && x->status < 400) {
        free_mem(&a->path);
        *a->intent.payment_id = '\0';
        return end(a, PAY_DONE, "answered without payment");
    }
    if (x->status != 402)
        return end(a, x->status < 500 && x->status != 429 ? PAY_BAD_REQUEST : PAY_FAILED,
                   "status %d to the request without payment; nothing was signed", x->status);
    if (!x->challenge && !x->authenticate)
        return end(a, PAY_REFUSED, "a 402 that asks neither as x402 version 2 nor as MPP does; nothing was signed");
    return PAY_DONE;
}

static enum pay_exit sign_first(struct agent *a)
{
    agent_ask(a);
    enum pay_exit e = judge_unpaid(a);
    if (e != PAY_DONE || !a->path)
        return e;
    step(a, "402", "%s %s has a price", a->o->method, a->o->url);
    return agent_commit(a);
}

enum pay_exit agent_begin(struct agent *a)
{
    const struct pay_options *o = a->o;
    const struct hash32 request = request_digest(o->method, o->url, (struct slice){ o->body.p, o->body.n });
    char id[PAYMENT_ID_MAX + 1] = "";
    if (o->id)
        memcpy(id, o->id, strlen(o->id) + 1);
    else
        payment_id_random(id);

    const enum store_rc rc =
        o->id || o->fresh ? STORE_NONE : store_find(&a->store, &a->key.address, &request, &a->path);
    if (rc == STORE_BAD)
        return end(a, PAY_FAILED, "%s cannot be read: nothing was signed", a->path);
    if (rc == STORE_NONE)
        a->path = store_path(&a->store, &a->key.address, id);
    bool found;
    const enum pay_exit e = load_intent(a, &request, &found);
    if (e != PAY_DONE || found)
        return e;
    memcpy(a->intent.payment_id, id, sizeof id);
    a->intent.method = str_copy(o->method);
    a->intent.url = str_copy(o->url);
    a->intent.request = request;
    step(a, "id", "%s", id);
    return sign_first(a);
}
