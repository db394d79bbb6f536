/* Every answer to /verify and /settle, as the official servers and clients read it: in the request's own version and spelling,
 * `transaction` and `network` always there, texts short and fixed. */
#include "api/facilitator.h"
#include "api/gate.h"
#include "base/clock.h"
#include "base/json.h"

enum { RETRY_S = 2 };

/* Whatever is not here is a judgement, and goes with 200. */
static const struct { enum reason reason; int http; } statuses[] = {
    { REASON_JSON, 400 },         { REASON_MISSING, 400 },        { REASON_PAYLOAD, 400 },
    { REASON_VERSION, 400 },      { REASON_SCHEME, 400 },         { REASON_NETWORK, 400 },
    { REASON_BAD_REQUIREMENTS, 400 }, { REASON_API_KEY, 401 },
    { REASON_VERIFY_UNKNOWN, 503 }, { REASON_SETTLE_UNKNOWN, 503 },
};

static int status_of(enum reason why)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].reason == why)
            return statuses[i].http;
    return 200;
}

static struct step answer(struct request *rq, int status, const json_t *body, enum asked_outcome o)
{
    struct asked *a = asked_of(rq);
    facilitator_count(a->g->facilitator, a, o);
    struct reply *r = reply_new(status);
    reply_json(r, NULL, body);
    reply_header(r, "Cache-Control", "no-store");
    if (status == 401)
        reply_header(r, "WWW-Authenticate", "Bearer");
    if (status == 503)
        reply_header(r, "Retry-After", "2");
    return request_reply(rq, r);
}

static void set_payer(json_t *o, const struct asked *a)
{
    if (a->ask.payer[0])
        json_object_set_new(o, "payer", json_of_slice(slice_of(a->ask.payer)));
}

/* A settlement's members behind the reason; tx NULL: none is known. */
static json_t *settle_body(const struct asked *a, bool success, enum reason why, const char *text, const struct hash32 *tx)
{
    json_t *o = json_pack("{s:b}", "success", success);
    if (!success) {
        json_object_set_new(o, "errorReason", json_string(reason_code(why, a->ask.version)));
        json_object_set_new(o, "errorMessage", json_of_slice(slice_of(text)));
    }
    json_object_set_new(o, "transaction", json_string(tx ? hash_text(tx).s : ""));
    json_object_set_new(o, "network", a->ask.network[0] ? json_of_slice(slice_of(a->ask.network)) : json_string("unknown:unknown"));
    set_payer(o, a);
    return o;
}

static json_t *verify_body(const struct asked *a, enum reason why, const char *text)
{
    json_t *o = json_pack("{s:b, s:s}", "isValid", 0, "invalidReason", reason_code(why, a->ask.version));
    set_payer(o, a);
    json_object_set_new(o, "invalidMessage", json_of_slice(slice_of(text)));
    return o;
}

struct step facilitator_valid(struct request *rq)
{
    JSON *body = json_pack("{s:b}", "isValid", 1);
    set_payer(body, asked_of(rq));
    return answer(rq, 200, body, ASKED_VALID);
}

struct step facilitator_refuse(struct request *rq, enum reason why)
{
    struct asked *a = asked_of(rq);
    int status = status_of(why);
    const char *text = status == 400 && a->ask.detail ? a->ask.detail : reason_text(why);
    JSON *body = a->call == ASKED_VERIFY ? verify_body(a, why, text) : settle_body(a, false, why, text, NULL);
    if (status != 200)
        json_object_set_new(body, "error", json_of_slice(slice_of(text)));
    return answer(rq, status, body, status == 503 ? ASKED_UNAVAILABLE : status == 400 ? ASKED_MALFORMED : ASKED_REFUSED);
}

struct step facilitator_unknown(struct request *rq)
{
    return facilitator_refuse(rq, asked_of(rq)->call == ASKED_VERIFY ? REASON_VERIFY_UNKNOWN : REASON_SETTLE_UNKNOWN);
}

/* A success that was told before, or is told to somebody else, is marked: nobody is to do the work a second time for it. */
struct step facilitator_settled(struct request *rq, const struct hash32 *tx)
{
    struct asked *a = asked_of(rq);
    JSON *body = settle_body(a, true, REASON_NONE, NULL, tx);
    if (!a->mine) {
        json_object_set_new(body, "extra", json_pack("{s:b}", "replayed", 1));
        outcome_note(a->g, &a->found.order, "replayed", gate_by(rq));
    }
    return answer(rq, 200, body, a->mine ? ASKED_SETTLED : ASKED_REPLAYED);
}

static int64_t dead_after(const struct asked *a)
{
    return a->outcome.known ? a->outcome.dead_after : (int64_t)amount_u64_cap(a->ask.payment.auth.valid_before);
}

/* There is a row, so it may land. With its hash where something was broadcast. */
struct step facilitator_pending(struct request *rq)
{
    struct asked *a = asked_of(rq);
    const struct hash32 *tx = a->outcome.known && a->outcome.has_hash ? &a->outcome.last_hash : NULL;
    enum reason why = tx ? REASON_PENDING : REASON_QUEUED;
    JSON *body = settle_body(a, false, why, reason_text(why), tx);
    json_t *extra = json_object();
    seat_set_known_by(a->seat, dead_after(a), extra);
    json_object_set_new(body, "extra", extra);
    outcome_note(a->g, &a->found.order, "told_pending", gate_by(rq));
    return answer(rq, 200, body, ASKED_PENDING);
}

/* The facts of a nonce that was used before we had a row. Anybody can read such a nonce off the chain, so it buys nothing. */
struct step facilitator_spent(struct request *rq)
{
    struct asked *a = asked_of(rq);
    const struct auth_event *e = &a->spent.event;
    JSON *body = settle_body(a, false, REASON_SPENT, reason_text(REASON_SPENT), a->spent.known ? &e->tx : NULL);
    if (a->spent.known) {
        json_t *facts = json_pack("{s:I, s:s}", "block", (json_int_t)e->block, "event",
                                  e->kind == AUTH_EVENT_CANCELED ? "canceled" : "used");
        if (e->kind == AUTH_EVENT_TRANSFER) {
            json_object_set_new(facts, "payTo", json_string(address_checksum(&e->to).s));
            json_object_set_new(facts, "amount", json_string(amount_text(e->value).s));
        }
        json_object_set_new(body, "extra", facts);
    }
    return answer(rq, 200, body, ASKED_REFUSED);
}
