#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/pay_agent.h"
#include "base/clock.h"

enum { LONGEST_EXCHANGE_MS = 90000, SHORTEST_EXCHANGE_MS = 10000, LARGEST_ANSWER = 64 * 1024 * 1024, RPC_MS = 10000 };

/* ---- what the parts share ---- */

void step(const struct agent *a, const char *label, const char *fmt, ...)
{
    if (a->o->json)
        return;
    fprintf(stderr, "  %-10s ", label);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

enum pay_exit end(struct agent *a, enum pay_exit e, const char *fmt, ...)
{
    char *said = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&said, fmt, args) < 0)
        abort();
    va_end(args);
    free(a->said);
    a->said = said;
    return e;
}

void remember(struct agent *a, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    if (!a->intent.result)
        a->intent.result = json_object();
    json_object_set_new(a->intent.result, key, json_of_slice(slice_of(value)));
}

const char *remembered(const struct agent *a, const char *key)
{
    return a->intent.result ? json_str(a->intent.result, key) : NULL;
}

bool sleep_within(const struct agent *a, int64_t seconds)
{
    const int64_t until = clock_mono_ms() + seconds * 1000;
    if (until >= a->deadline_ms)
        return false;
    clock_sleep_ms(seconds * 1000);
    return true;
}

static int64_t exchange_deadline(const struct agent *a)
{
    const int64_t now = clock_mono_ms();
    int64_t left = a->deadline_ms - now;
    if (left > LONGEST_EXCHANGE_MS)
        left = LONGEST_EXCHANGE_MS;
    return now + (left < SHORTEST_EXCHANGE_MS ? SHORTEST_EXCHANGE_MS : left);
}

struct fetch_request request_of(const struct agent *a)
{
    return (struct fetch_request){
        .method = a->o->method,
        .url = a->o->url,
        .headers = a->o->headers,
        .header_count = a->o->header_count,
        .body = { a->o->body.p, a->o->body.n },
        .deadline_ms = exchange_deadline(a),
        .max_answer = LARGEST_ANSWER,
    };
}

struct price_words price_words(const struct agent *a)
{
    const struct intent *i = &a->intent;
    const struct token *t;
    for (size_t n = 0; (t = token_built_in(i->chain_id, n)); n++) {
        if (address_eq(&t->address, &i->asset))
            return (struct price_words){ amount_human(i->auth.value, t->decimals), t->symbol };
    }
    return (struct price_words){ amount_text(i->auth.value), i->token_name };
}

void agent_rpc(struct agent *a, uint64_t chain_id)
{
    if (!a->o->rpc || (a->rpc && rpc_chain_id(a->rpc) == chain_id))
        return;
    if (a->rpc)
        rpc_free(a->rpc);
    a->rpc = rpc_new(a->http.fetcher, a->http.loop, chain_id, &a->o->rpc, 1, RPC_MS);
}

/* ---- the program ---- */

static bool load_key(const struct pay_options *o, struct key *ret)
{
    switch (key_load(o->key_file, ret)) {
    case KEY_OK:
        return true;
    case KEY_NO_FILE:
        fprintf(stderr, "payonce pay: the key file %s cannot be read\n", o->key_file);
        return false;
    case KEY_LOOSE_FILE:
        fprintf(stderr, "payonce pay: the key file %s is readable by others: chmod 600 it\n", o->key_file);
        return false;
    case KEY_BAD:
        fprintf(stderr, "payonce pay: the key file %s does not hold a key of 64 hex digits\n", o->key_file);
        return false;
    }
    abort();
}

static void agent_done(struct agent *a)
{
    if (a->rpc)
        rpc_free(a->rpc);
    if (a->http.loop)
        http_close(&a->http);
    if (a->lock >= 0)
        close(a->lock);
    intent_done(&a->intent);
    answer_done(&a->answer);
    store_done(&a->store);
    key_wipe(&a->key);
    free(a->path);
    free(a->said);
}

static enum pay_exit buy(struct agent *a)
{
    a->deadline_ms = clock_mono_ms() + a->o->wait_s * 1000;
    a->http = http_open();
    char *why = store_open(a->o->store, &a->store);
    enum pay_exit e = why ? end(a, PAY_FAILED, "%s: without a store nothing is sent", why) : agent_begin(a);
    free(why);
    if (e == PAY_DONE && a->path)
        e = agent_send(a);
    return agent_report(a, e) || e != PAY_DONE ? e : PAY_FAILED;
}

int pay_main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(pay_help, stdout);
            return PAY_DONE;
        }
    }
    SCOPE(pay_options_done) struct pay_options o = { 0 };
    const enum pay_exit e = pay_options_read(argc, argv, &o);
    if (e != PAY_DONE)
        return (int)e;
    SCOPE(agent_done) struct agent a = { .o = &o, .lock = -1 };
    return (int)(load_key(&o, &a.key) ? buy(&a) : PAY_USAGE);
}
