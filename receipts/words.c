#include "receipts/words.h"

#include <inttypes.h>
#include <string.h>

struct word {
    const char *key, *text;
};

static const char *find(const struct word *list, size_t n, const char *key)
{
    for (size_t i = 0; key && i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return list[i].text;
    return key ? key : "";
}

const char *words_event(const char *event)
{
    static const struct word events[] = {
        { "accepted", "Payment accepted, the call begins" },
        { "accepted_again", "The call begins once more" },
        { "accepted_first", "Payment accepted; it is settled before the call begins" },
        { "work_begun", "The payment is proven, the call begins" },
        { "work_put_back", "The call was interrupted and is to begin again" },
        { "work_done", "The call was answered" },
        { "work_failed", "The call failed" },
        { "work_lost", "The call's outcome is unknown" },
        { "sent", "The payment was sent to the chain" },
        { "settled", "The payment is on the chain" },
        { "replayed", "The answer was given again, free of charge" },
        { "set_aside", "Another signed payment for this call was set aside: it is not needed" },
        { "account_nonce_taken", "The transaction was replaced; the payment is sent again" },
        { "fee_raised", "The transaction's fee was raised" },
        { "resent", "Another authorization pays this call" },
        { "released", "The signed payment was set aside: it will not be sent" },
        { "expired", "The signed payment can no longer be used" },
        { "void", "The signed payment was cancelled or used elsewhere" },
        { "not_carried_out", "A transaction was mined without the payment; it is sent again" },
        { "proof_undone", "The block of the payment left the chain" },
        { "review_opened", "A person looks at this call" },
        { "review_resolved", "A person decided" },
        { "debt_owed", "Money is owed back" },
        { "debt_approved", "The refund was approved" },
        { "debt_held", "The refund is held for a person to look at" },
        { "debt_earned", "The call was answered after all: nothing is owed back" },
        { "refund_signed", "The refund was signed" },
        { "refund_sent", "The refund was sent to the chain" },
        { "refund_put_off", "The refund cannot be carried out now and is tried again" },
        { "refund_lost", "The refund needs a person" },
        { "refund_astray", "The refund needs a person" },
        { "refund_reverted", "The refund failed on the chain, and is made again" },
        { "refund_expired", "The refund was not mined in time, and is made again" },
        { "refund_foreign", "The refund needs a person" },
        { "debt_refunded", "The refund is final" },
    };
    return find(events, COUNT(events), event);
}

const char *words_money(const char *state)
{
    static const struct word states[] = {
        { "held", "signed and kept, not sent" },
        { "due", "about to be sent to the chain" },
        { "sent", "sent, not on the chain yet" },
        { "settled", "paid" },
        { "released", "signed and set aside, not sent" },
        { "expired", "not paid: it can no longer be used" },
        { "void", "not paid: it was cancelled or used elsewhere" },
    };
    return state ? find(states, COUNT(states), state) : NULL;
}

const char *words_cause(const char *cause)
{
    static const struct word causes[] = {
        { "late", "the payment arrived after the call had ended" },
        { "duplicate", "it was a second payment for the same call" },
        { "work_failed", "the call failed after the payment" },
        { "overpaid", "more was paid than the price" },
        { "unclaimed", "it belonged to no call" },
    };
    return find(causes, COUNT(causes), cause);
}

const char *words_debt(const char *state)
{
    static const struct word states[] = {
        { "owed", "owed, not approved yet" },
        { "approved", "approved, with the next batch" },
        { "paying", "signed and on its way, not final yet" },
        { "refunded", "refunded, final" },
        { "held", "held for a person to look at" },
        { "earned", "not owed any more: the call was answered" },
        { "cancelled", "not owed any more: the payment left the chain" },
    };
    return find(states, COUNT(states), state);
}

char *words_amount(const char *minor, const struct receipt_links *l)
{
    struct amount a;
    if (!minor || !amount_read(minor, strlen(minor), &a))
        return str_copy("?");
    if (!l->symbol)
        return str_format("%s minor units", minor);
    return str_format("%s %s", amount_human(a, l->decimals).s, l->symbol);
}

char *words_finality(const json_t *payment)
{
    const json_int_t block = json_integer_value(json_object_get(payment, "block")),
                     depth = json_integer_value(json_object_get(payment, "depth"));
    if (!json_object_get(payment, "block"))
        return str_copy("Not on the chain.");
    if (json_is_true(json_object_get(payment, "final")))
        return str_format("Final at block %" JSON_INTEGER_FORMAT ".", block);
    return str_format("In block %" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " block%s deep, not final yet.", block,
                      depth, depth == 1 ? "" : "s");
}

/* What has gone back, and what is still owed, in minor units. */
static void refund_sums(const json_t *receipt, struct amount *ret_back, struct amount *ret_owed)
{
    size_t i;
    json_t *d;
    *ret_back = *ret_owed = AMOUNT_ZERO;
    json_array_foreach(json_object_get(receipt, "refunds"), i, d)
    {
        const char *state = json_str(d, "state"), *text = json_str(d, "amount");
        struct amount a;
        if (!state || !text || !amount_read(text, strlen(text), &a) || strcmp(state, "earned") == 0 ||
            strcmp(state, "cancelled") == 0)
            continue;
        struct amount *sum = strcmp(state, "refunded") == 0 ? ret_back : ret_owed;
        (void)!amount_add(*sum, a, sum);
    }
}

static const char *status_words(const char *status)
{
    static const struct word all[] = {
        { "paid", "Paid once." },
        { "refunded", "Refunded in full: nothing was charged." },
        { "refund_due", "Paid, and owed back." },
        { "processing", "Under way." },
        { "settling", "The payment is on its way." },
        { "in_review", "A person looks at this call." },
        { "not_charged", "Not charged." },
        { "unpaid", "Not charged: the payment can no longer be used." },
    };
    return find(all, COUNT(all), status);
}

char *words_headline(const json_t *receipt, const struct receipt_links *l)
{
    struct amount back, owed;
    BUF b = { 0 };
    const char *known_by = json_str(receipt, "known_by");
    refund_sums(receipt, &back, &owed);
    buf_puts(&b, status_words(json_str(receipt, "status")));
    if (!amount_is_zero(back)) {
        OWNED char *text = words_amount(amount_text(back).s, l);
        buf_printf(&b, " %s refunded.", text);
    }
    if (!amount_is_zero(owed)) {
        OWNED char *text = words_amount(amount_text(owed).s, l);
        buf_printf(&b, " %s is owed back.", text);
    }
    const json_t *payment = json_object_get(receipt, "payment");
    if (json_object_get(payment, "depth")) {
        OWNED char *text = words_finality(payment);
        buf_printf(&b, " %s", text);
    } else if (known_by) {
        buf_printf(&b, " Not final: it will be known by %s.", known_by);
    }
    return str_copy(b.p);
}
