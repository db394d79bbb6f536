/* The story of an order as text. The database tells it as JSON; here it is only laid out. */
#include <string.h>

#include "api/operator.h"

static bool has(const json_t *o, const char *key)
{
    return json_object_get(o, key) != NULL;
}

static json_int_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

void story_head(const json_t *s)
{
    say("order %s   %s   (work %s, money %s)\n", member(s, "order_id"), member(s, "status"), member(s, "work"),
        member(s, "money"));
    if (has(s, "seller"))
        say("  call        a settlement for %s\n", member(s, "seller"));
    else
        say("  call        %s (%s): %s %s\n", member(s, "tool"), member(s, "side_effect"), member(s, "method"),
            member(s, "target"));
    if (has(s, "payment_id"))
        say("  payment id  %s\n", member(s, "payment_id"));
    say("  price       %s of %s on %s\n", member(s, "amount"), member(s, "asset"), member(s, "network"));
    say("  payer       %s, to %s\n", member(s, "payer"), member(s, "payee"));
    say("  receipt     %s\n", member(s, "receipt_id"));
    if (has(s, "work_note"))
        say("  note        %s\n", member(s, "work_note"));
}

/* ---- events ---- */

/* Hashes are stored bare and shown as everybody else shows them. */
static void print_fact(const char *key, const json_t *value)
{
    const char *s = json_string_value(value);
    const bool is_hash = s && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
    if (s)
        say(" %s=%s%s", key, is_hash ? "0x" : "", s);
    else if (json_is_integer(value))
        say(" %s=%" JSON_INTEGER_FORMAT, key, json_integer_value(value));
    else if (json_is_boolean(value))
        say(" %s=%s", key, json_is_true(value) ? "yes" : "no");
}

static void print_event(const json_t *e)
{
    static const char *const by[][2] = { { "request_id", "request" },
                                         { "retry_source", "retry" },
                                         { "traceparent", "traceparent" },
                                         { "attempt", "attempt" } };
    say("  %s  %-18s %-16s", member(e, "at"), member(e, "actor"), member(e, "event"));
    if (has(e, "before") && has(e, "after"))
        say(" %s -> %s", member(e, "before"), member(e, "after"));
    else if (has(e, "after"))
        say(" -> %s", member(e, "after"));
    say("\n");
    json_t *facts = json_object_get(e, "facts"), *value;
    const char *key;
    bool any = json_object_size(facts) > 0;
    for (size_t i = 0; i < COUNT(by); i++)
        any = any || has(e, by[i][0]);
    if (!any)
        return;
    say("      ");
    for (size_t i = 0; i < COUNT(by); i++)
        if (has(e, by[i][0]))
            say(" %s=%s", by[i][1], member(e, by[i][0]));
    json_object_foreach(facts, key, value) print_fact(key, value);
    say("\n");
}

void story_events(const json_t *s)
{
    size_t i;
    json_t *e;
    say("\n");
    json_array_foreach(json_object_get(s, "events"), i, e) print_event(e);
}

/* ---- money ---- */

static void print_transaction(const json_t *t)
{
    say("      transaction %s  %s\n", member(t, "hash"), member(t, "state"));
    say("        account nonce %" JSON_INTEGER_FORMAT " of %s, signed %s, broadcast %s", number(t, "account_nonce"),
        member(t, "relayer"), member(t, "signed_at"), member(t, "broadcast_at"));
    if (has(t, "block"))
        say(", in block %" JSON_INTEGER_FORMAT " %s", number(t, "block"), member(t, "block_hash"));
    say("\n");
}

static void print_proof(const json_t *p)
{
    say("      %s log %" JSON_INTEGER_FORMAT " of %s in block %" JSON_INTEGER_FORMAT ", %s\n",
        has(p, "undone_at") ? "a proof that left the chain:" : "proof:", number(p, "log_index"), member(p, "tx"),
        number(p, "block"), member(p, has(p, "undone_at") ? "undone_at" : "recorded_at"));
}

static void print_authorization(const json_t *a)
{
    size_t i;
    json_t *x;
    say("    nonce %s  %s%s\n", member(a, "nonce"), member(a, "state"),
        json_is_true(json_object_get(a, "pays_the_order")) ? "" : "  (set aside)");
    say("      %s of %s to %s, valid before %s, stored %s\n", member(a, "amount"), member(a, "asset"),
        member(a, "payee"), member(a, "valid_before"), member(a, "stored_at"));
    if (has(a, "other_signatures"))
        say("      %" JSON_INTEGER_FORMAT " more signatures over this nonce; dead after %s\n",
            number(a, "other_signatures"), member(a, "dead_after"));
    if (has(a, "ended_at"))
        say("      ended %s%s%s\n", member(a, "ended_at"), has(a, "why") ? ": " : "",
            has(a, "why") ? member(a, "why") : "");
    else
        say("      looked at %" JSON_INTEGER_FORMAT " times, next %s\n", number(a, "looks"), member(a, "next_look"));
    json_array_foreach(json_object_get(a, "transactions"), i, x) print_transaction(x);
    json_array_foreach(json_object_get(a, "proofs"), i, x) print_proof(x);
}

void story_money(const json_t *s)
{
    size_t i;
    json_t *x;
    say("\n  authorizations\n");
    json_array_foreach(json_object_get(s, "authorizations"), i, x) print_authorization(x);
    json_array_foreach(json_object_get(s, "debts"), i, x)
        say("\n  debt %s  %s\n    %s owed to %s: %s, for log %" JSON_INTEGER_FORMAT " of %s\n", member(x, "debt"),
            member(x, "state"), member(x, "amount"), member(x, "payer"), member(x, "cause"), number(x, "log_index"),
            member(x, "tx"));
}

void story_told(const json_t *s)
{
    const json_t *t = json_object_get(s, "webhook");
    if (!t)
        return;
    say("\n  webhook %s, %" JSON_INTEGER_FORMAT " tries%s%s\n", member(t, "state"), number(t, "tries"),
        has(t, "last_answer") ? ": " : "", has(t, "last_answer") ? member(t, "last_answer") : "");
}

void story_review(const json_t *s)
{
    const json_t *r = json_object_get(s, "review");
    if (!r)
        return;
    say("\n  review, since %s\n    fact        %s\n", member(r, "opened_at"), member(r, "fact"));
    if (has(r, "theirs"))
        say("    its answer  named %s\n", member(r, "theirs"));
    if (!has(r, "resolution"))
        return;
    say("    decided     %s, %s by %s\n", member(r, "resolution"), member(r, "resolved_at"), member(r, "resolved_by"));
    say("    because     %s\n", member(r, "note"));
    if (has(r, "external_id"))
        say("    external id %s\n", member(r, "external_id"));
}

void story_chain(const json_t *s)
{
    const size_t events = json_array_size(json_object_get(s, "events"));
    const json_int_t broken = number(s, "events_broken");
    if (broken == 0)
        say("\n  the chain of %zu events is whole\n", events);
    else
        say("\n  THE CHAIN OF EVENTS IS BROKEN: %" JSON_INTEGER_FORMAT
            " of %zu were changed, or follow on one that is missing\n",
            broken, events);
}
