#include <stdio.h>
#include <string.h>

#include "api/pay_agent.h"
#include "base/clock.h"

/* Payonce-Receipt is an address or an id. */
static char *receipt_url(const struct agent *a)
{
    const char *receipt = remembered(a, "receipt");
    if (!receipt || strncmp(receipt, "http", 4) == 0)
        return str_copy(receipt);
    const char *host = strstr(a->o->url, "://") + 3;
    const int origin_n = (int)(host - a->o->url) + (int)strcspn(host, "/?");
    return str_format("%.*s%s%s", origin_n, a->o->url, *receipt == '/' ? "" : "/receipts/", receipt);
}

/* The receipt says in which block; when it cannot be read there is one line less. */
static void show_block(struct agent *a, const char *url)
{
    ANSWER x = { 0 };
    const struct fetch_request rq = {
        .method = "GET", .url = url, .deadline_ms = clock_mono_ms() + 5000, .max_answer = 1 << 20
    };
    http_exchange(&a->http, &rq, &x);
    const json_t *block = json_object_get(json_object_get(x.json, "payment"), "block");
    if (json_is_integer(block))
        step(a, "block", "%lld", (long long)json_integer_value(block));
}

static void add_text(json_t *j, const char *key, const char *value)
{
    json_object_set_new(j, key, value && *value ? json_string(value) : json_null());
}

static void add_body(json_t *j, const struct answer *x)
{
    if (x->end != FETCH_ANSWERED || !x->body.n)
        return;
    const bool has_nul = memchr(x->body.p, '\0', x->body.n) != NULL;
    json_t *text = has_nul ? NULL : json_stringn(x->body.p, x->body.n);
    if (text) {
        json_object_set_new(j, "body", text);
        return;
    }
    BUF base64 = { 0 };
    base64_add(&base64, x->body.p, x->body.n);
    json_object_set_new(j, "body_base64", json_string(base64.p));
}

static void print_json(const struct agent *a, enum pay_exit e, const char *receipt)
{
    JSON *j = json_object();
    json_object_set_new(j, "success", json_boolean(e == PAY_DONE));
    json_object_set_new(j, "exit", json_integer(e));
    json_object_set_new(j, "status", json_integer(a->answer.status));
    add_text(j, "message", a->said);
    add_text(j, "payment_id", a->intent.payment_id);
    add_text(j, "payer", address_checksum(&a->key.address).s);
    if (a->path && a->intent.signed_at) {
        OWNED char *network = str_format("eip155:%llu", (unsigned long long)a->intent.chain_id);
        add_text(j, "network", network);
        add_text(j, "asset", address_checksum(&a->intent.asset).s);
        add_text(j, "amount", amount_text(a->intent.auth.value).s);
        json_object_set_new(j, "attempt", json_integer(a->intent.attempt));
        add_text(j, "intent", a->path);
        if (a->intent.mpp.challenge)
            add_text(j, "mode", a->intent.mpp.mode == MPP_PUSH ? "push" : "pull");
    }
    add_text(j, "order_id", remembered(a, "order_id"));
    add_text(j, "transaction", remembered(a, "transaction"));
    add_text(j, "receipt", receipt);
    add_text(j, "order", remembered(a, "order"));
    add_text(j, "known_by", remembered(a, "known_by"));
    const char *charged = remembered(a, "charged");
    json_object_set_new(j, "charged", charged ? json_boolean(strcmp(charged, "true") == 0) : json_null());
    json_object_set_new(j, "replayed", json_boolean(a->answer.replayed != NULL));
    add_body(j, &a->answer);
    OWNED char *text = json_write(j);
    puts(text);
}

/* An answer is the caller's, on standard output; a problem is for people. */
static void print_body(const struct agent *a, enum pay_exit e)
{
    const struct answer *x = &a->answer;
    if (x->end == FETCH_ANSWERED && x->body.n)
        fwrite(x->body.p, 1, x->body.n, e == PAY_DONE ? stdout : stderr);
}

bool agent_report(struct agent *a, enum pay_exit e)
{
    OWNED char *receipt = receipt_url(a);
    const char *tx = remembered(a, "transaction");
    if (tx)
        step(a, "tx", "%s", tx);
    if (receipt) {
        show_block(a, receipt);
        step(a, "receipt", "%s", receipt);
    } else if (remembered(a, "order")) {
        step(a, "order", "%s", remembered(a, "order"));
    }
    step(a, e == PAY_DONE ? "done" : "end", "%s", a->said ? a->said : "");
    if (e == PAY_NOT_FINAL && *a->intent.payment_id)
        step(a, "next", "run again with --id %s", a->intent.payment_id);
    if (a->o->json)
        print_json(a, e, receipt);
    else
        print_body(a, e);
    return fflush(stdout) == 0;
}
