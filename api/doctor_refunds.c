/* The keys behind what goes back and behind what is signed: the refund wallet, and the receipts' key. */
#include <string.h>

#include "api/doctor.h"
#include "api/pay_http.h"
#include "base/clock.h"

enum { ANSWER_MS = 5000, MOST = 65536 };

/* ---- the refund wallet ---- */

static bool policy_pays(const struct config *c)
{
    for (size_t i = 0; i < c->refund_count; i++)
        if (c->refunds[i].mode != REFUNDS_OFF)
            return true;
    return false;
}

static const char *whose(const struct doctor *d, const struct address *a)
{
    if (d->has_relayer && address_eq(a, &d->relayer))
        return "the relayer's";
    for (size_t i = 0; i < d->c->net_count; i++) {
        const struct net *n = &d->c->nets[i];
        for (size_t k = 0; k < n->wallet_count; k++)
            if (address_eq(a, &n->wallets[k]))
                return "a seller's (pay_to)";
        for (size_t k = 0; k < n->served_count; k++)
            if (address_eq(a, &n->served[k]))
                return "a seller's (pay_to)";
    }
    return NULL;
}

static void refund_wallet(struct doctor *d)
{
    static const char what[] = "refund wallet", variable[] = "PAYONCE_REFUND_KEY_FILE";
    SCOPE(key_wipe) struct key k = { 0 };
    const bool pays = policy_pays(d->c), named = getenv(variable) && *getenv(variable);
    if (!named && !pays) {
        doctor_say(d, FINDING_OK, what, "none: debts are booked, and nothing is paid back");
        return;
    }
    if (!doctor_key(d, variable, what, &k))
        return;
    const char *owner = whose(d, &k.address);
    const struct address_text who = address_checksum(&k.address);
    if (owner) {
        doctor_say(d, FINDING_FAIL, what, "%s is %s wallet: set one apart that does nothing but pay refunds", who.s, owner);
        return;
    }
    d->has_refund = true;
    d->refund = k.address;
    if (pays)
        doctor_say(d, FINDING_OK, what, "%s", who.s);
    else
        doctor_say(d, FINDING_WARN, what, "%s, but `refunds` of the configuration pays nothing", who.s);
}

static void wallet_has(struct doctor *d, struct rpc *r, const struct token *t, const char *at, const char *what_for)
{
    char call[75] = "0x70a08231000000000000000000000000"; /* balanceOf(wallet) */
    BUF b = { 0 };
    hex_write_bare(call + 34, d->refund.b, 20);
    if (!doctor_ask(r, &t->address, call, &b) || b.n != 32) {
        doctor_say(d, FINDING_FAIL, at, "the refund wallet's %s cannot be read", t->symbol);
        return;
    }
    const struct amount has = amount_from_be((const uint8_t *)b.p);
    doctor_say(d, amount_is_zero(has) ? FINDING_WARN : FINDING_OK, at, "refund wallet %s has %s %s%s%s",
               address_checksum(&d->refund).s, amount_human(has, t->decimals).s, t->symbol, what_for,
               amount_is_zero(has) ? ": send it some, or debts wait" : "");
}

void doctor_refunds(struct doctor *d, struct rpc *r, const struct net *n, const char *at)
{
    for (size_t i = 0; d->has_refund && i < d->c->refund_count; i++) {
        const struct refund_policy *p = &d->c->refunds[i];
        if (p->net != n || p->mode == REFUNDS_OFF)
            continue;
        const bool pays_fees = n->tempo && p->fee_token == p->token;
        wallet_has(d, r, p->token, at, pays_fees ? ", for refunds and their fees" : "");
        if (p->fee_token != p->token)
            wallet_has(d, r, p->fee_token, at, ", for the fees of refunds");
    }
}

/* ---- the receipts' key ---- */

static bool is_current(const json_t *keys, const struct address *a)
{
    size_t i;
    json_t *k;
    json_array_foreach(json_object_get(keys, "keys"), i, k)
    {
        const char *address = json_str(k, "address"), *status = json_str(k, "status");
        struct address published;
        if (address && status && strcmp(status, "current") == 0 &&
            address_read(address, strlen(address), &published) && address_eq(&published, a))
            return true;
    }
    return false;
}

static void published(struct doctor *d, const struct address *a)
{
    static const char what[] = "receipt key";
    struct http h = { d->loop, d->fetcher };
    OWNED char *url = str_format("%s/.well-known/payonce-keys.json", d->c->public_url);
    const struct fetch_request rq = {
        .method = "GET", .url = url, .deadline_ms = clock_mono_ms() + ANSWER_MS, .max_answer = MOST
    };
    ANSWER x = { 0 };
    http_exchange(&h, &rq, &x);
    if (x.end != FETCH_ANSWERED)
        doctor_say(d, FINDING_OK, what, "%s; to be published at %s, which does not answer now", address_checksum(a).s, url);
    else if (x.status == 200 && is_current(x.json, a))
        doctor_say(d, FINDING_OK, what, "%s, published at %s", address_checksum(a).s, url);
    else
        doctor_say(d, FINDING_FAIL, what,
                   "%s is not the current key at %s: restart the gateway with this key, or have public_url lead to it",
                   address_checksum(a).s, url);
}

static void receipt_key(struct doctor *d)
{
    static const char what[] = "receipt key", variable[] = "PAYONCE_RECEIPT_KEY_FILE";
    SCOPE(key_wipe) struct key k = { 0 };
    if ((!getenv(variable) || !*getenv(variable)) && !d->c->offer_receipt) {
        doctor_say(d, FINDING_WARN, what, "%s is not set: receipts are not signed, so nobody can check them", variable);
        return;
    }
    if (!doctor_key(d, variable, what, &k))
        return;
    if ((d->has_relayer && address_eq(&k.address, &d->relayer)) ||
        (d->has_refund && address_eq(&k.address, &d->refund)))
        doctor_say(d, FINDING_FAIL, what, "%s moves money, too: a key that the gateway holds must not",
                   address_checksum(&k.address).s);
    else
        published(d, &k.address);
}

void doctor_paid_back(struct doctor *d)
{
    refund_wallet(d);
    receipt_key(d);
}
