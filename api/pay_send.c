#include <string.h>
#include <strings.h>

#include "api/pay_agent.h"
#include "base/clock.h"
#include "base/failpoint.h"

enum { LONGEST_PAUSE_S = 15 };

/* ---- sending the one payment ---- */

/* On MPP the payment stands in Authorization, behind what the caller has there for the call itself. */
static char *authorization_of(const struct agent *a, struct fetch_request *rq, struct header *headers)
{
    OWNED char *payment = intent_header(&a->intent);
    size_t kept = 0;
    char *all = NULL;
    for (size_t i = 0; i < rq->header_count; i++) {
        const struct header *h = &headers[i];
        if (h->name.n == 13 && strncasecmp(h->name.p, "Authorization", 13) == 0 && !all)
            all = str_format("%.*s, %s", (int)h->value.n, h->value.p, payment);
        else
            headers[kept++] = *h;
    }
    rq->header_count = kept;
    return all ? all : MOVE(payment);
}

static void send_once(struct agent *a)
{
    struct fetch_request rq = request_of(a);
    OWNED struct header *headers = mem_resize(NULL, rq.header_count + 2, sizeof *headers);
    if (rq.header_count)
        memcpy(headers, rq.headers, rq.header_count * sizeof *headers);
    const bool mpp = a->intent.mpp.challenge != NULL;
    OWNED char *payment = mpp ? authorization_of(a, &rq, headers) : intent_header(&a->intent);
    headers[rq.header_count++] =
        (struct header){ mpp ? SLICE("Authorization") : SLICE("PAYMENT-SIGNATURE"), slice_of(payment) };
    headers[rq.header_count++] = (struct header){ SLICE("Idempotency-Key"), slice_of(a->intent.payment_id) };
    rq.headers = headers;
    FAILPOINT("pay_stored");
    http_exchange(&a->http, &rq, &a->answer);
    FAILPOINT("pay_answered");
}

/* The settlement header is the server's word; it is kept for people and scripts, not believed for more. */
static void note_settlement(struct agent *a)
{
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    const char *header = a->answer.payment_response;
    if (!header || !base64_read(header, strlen(header), &text, &n))
        return;
    JSON *settled = json_read((const char *)text, n, &why);
    const char *tx = settled ? json_str(settled, "transaction") : NULL;
    if (tx && *tx)
        remember(a, "transaction", tx);
}

static void note_mpp_receipt(struct agent *a)
{
    struct hash32 tx;
    const char *header = a->answer.payment_receipt;
    if (header && mpp_receipt_read(slice_of(header), &tx))
        remember(a, "transaction", hash_text(&tx).s);
}

static void note(struct agent *a)
{
    note_settlement(a);
    note_mpp_receipt(a);
    remember(a, "receipt", a->answer.receipt);
    remember(a, "charged", a->answer.charged);
    remember(a, "order_id", a->answer.order);
    if (a->answer.status >= 400) { /* a problem document; other bodies are the seller's */
        remember(a, "order_id", answer_text(&a->answer, "order_id"));
        remember(a, "order", answer_text(&a->answer, "poll"));
        remember(a, "known_by", answer_text(&a->answer, "known_by"));
    }
}

/* ---- what an answer means ---- */

enum next { NEXT_END, NEXT_REFUSED, NEXT_SAME, NEXT_POLL };

static bool charged_is(const struct agent *a, const char *text)
{
    return a->answer.charged && strcmp(a->answer.charged, text) == 0;
}

static enum next judge_error(struct agent *a, enum pay_exit *ret)
{
    const struct answer *x = &a->answer;
    const char *title = answer_text(x, "title");
    if (!title)
        title = "no title";
    if (x->status == 429 || x->status == 503 || answer_is(x, "retry", "same_payment")) {
        *ret = end(a, charged_is(a, "false") ? PAY_REFUSED : PAY_NOT_FINAL, "status %d (%s)", x->status, title);
        return NEXT_SAME;
    }
    if ((x->status == 410 && !charged_is(a, "false")) || charged_is(a, "true") || answer_is(x, "money", "moved")) {
        a->intent.state = INTENT_GONE;
        *ret = end(a, PAY_ANSWER_GONE, "status %d (%s): paid, and the answer is not served; the receipt remains",
                   x->status, title);
    } else if (charged_is(a, "false") || answer_is(x, "money", "not_moved")) {
        a->intent.state = INTENT_NOT_CHARGED;
        *ret = end(a, PAY_REFUSED, "status %d: not charged", x->status);
    } else {
        *ret = end(a, PAY_FAILED, "status %d (%s)", x->status, title);
    }
    return NEXT_END;
}

static enum next judge(struct agent *a, enum pay_exit *ret)
{
    const struct answer *x = &a->answer;
    if (x->end != FETCH_ANSWERED) {
        *ret = end(a, PAY_NOT_FINAL, "no answer (%s)", x->why);
        return NEXT_SAME;
    }
    if (x->status < 400) {
        a->intent.state = INTENT_DONE;
        *ret = end(a, PAY_DONE, "%s",
                   x->replayed              ? "the answer to a payment made before: not charged again"
                   : charged_is(a, "false") ? "answered, not charged"
                                            : "paid and answered");
        return NEXT_END;
    }
    if (x->status == 402)
        return NEXT_REFUSED;
    if (answer_is(x, "code", "payment_in_flight")) {
        *ret = end(a, PAY_NOT_FINAL, "the payment is not final");
        return NEXT_POLL;
    }
    if (answer_is(x, "code", "in_review")) {
        a->intent.state = INTENT_REVIEW;
        *ret = end(a, PAY_REVIEW, "in review: the call may have been carried out; a person decides");
        return NEXT_END;
    }
    return judge_error(a, ret);
}

/* ---- waiting ---- */

static bool undecided(const struct answer *x)
{
    return answer_is(x, "status", "processing") || answer_is(x, "status", "settling");
}

/* Asks the order's address until it is decided. What it says only tells when to send the payment again. */
static bool poll_order(struct agent *a)
{
    OWNED char *url = str_copy(answer_text(&a->answer, "poll"));
    int64_t pause = a->answer.retry_after_s ? a->answer.retry_after_s : 5;
    for (;;) {
        if (!sleep_within(a, pause))
            return false;
        if (!url)
            return true;
        ANSWER x = { 0 };
        struct fetch_request rq = request_of(a);
        rq =
            (struct fetch_request){ .method = "GET", .url = url, .deadline_ms = rq.deadline_ms, .max_answer = 1 << 20 };
        http_exchange(&a->http, &rq, &x);
        if (x.end != FETCH_ANSWERED || x.status != 200 || !undecided(&x))
            return true;
        pause = x.retry_after_s ? x.retry_after_s : pause;
    }
}

static bool pause_before_same(struct agent *a, int64_t *pause)
{
    const int64_t asked = a->answer.retry_after_s;
    const bool slept = sleep_within(a, asked ? asked : *pause);
    *pause = *pause * 2 < LONGEST_PAUSE_S ? *pause * 2 : LONGEST_PAUSE_S;
    return slept;
}

/* On Tempo the chain is asked first. A transaction that can never be mined is followed by another, for a fresh challenge. */
static enum pay_exit chain_first(struct agent *a)
{
    while (a->intent.mpp.challenge) {
        bool again = false, dead = false;
        enum pay_exit e = agent_ready(a, &dead);
        if (!dead)
            return e;
        agent_ask(a);
        if (a->answer.end != FETCH_ANSWERED || a->answer.status != 402)
            return end(a, PAY_NOT_FINAL, "the transaction can never be mined, and no fresh challenge was to be had");
        e = agent_refused(a, &again);
        if (!again)
            return e;
    }
    return PAY_DONE;
}

/* Whatever comes, it is this one payment that is sent again, until an end or the wait is over. */
static enum pay_exit until_end(struct agent *a)
{
    int64_t pause = 1;
    for (;;) {
        bool again;
        enum pay_exit e = chain_first(a);
        if (e != PAY_DONE)
            return e;
        step(a, "sent", "%s %s with the payment", a->intent.method, a->intent.url);
        send_once(a);
        note(a);
        switch (judge(a, &e)) {
        case NEXT_END:
            return e;
        case NEXT_REFUSED:
            e = agent_refused(a, &again);
            if (!again)
                return e;
            break;
        case NEXT_SAME:
            step(a, "waiting", "%s; the same payment will be sent again", a->said);
            if (!pause_before_same(a, &pause))
                return e;
            break;
        case NEXT_POLL:
            step(a, "waiting", "%s", a->said);
            if (!poll_order(a))
                return e;
            break;
        }
    }
}

enum pay_exit agent_send(struct agent *a)
{
    const enum pay_exit e = until_end(a);
    if (!a->intent.signed_at)
        return e;
    OWNED char *why = store_write(a->path, &a->intent); /* the money's part was stored before; this is how it ended */
    if (why)
        step(a, "warning", "%s", why);
    return e;
}
