/* A payment header, read strictly and compared with our own terms. */
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "settle/x402.h"

/* What reading has come to: where we are, and the first thing that was wrong. */
struct reading {
    const struct x402_in *in;
    struct payment *p;
    enum err err;
    enum reason reason;
    const char *detail;
};

static bool malformed(struct reading *r, const char *detail)
{
    r->err = ERR_PAYMENT_FIELD;
    r->detail = detail;
    return false;
}

static bool refused(struct reading *r, enum reason why)
{
    r->err = ERR_PAYMENT_REFUSED;
    r->reason = why;
    return false;
}

bool payment_id_ok(struct slice s)
{
    if (!s.p || s.n < 16 || s.n > 128)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", s.p[i]) || s.p[i] == 0)
            return false;
    return true;
}

static bool same_number(const json_t *j, unsigned v)
{
    return json_is_integer(j) ? json_integer_value(j) == v : json_is_real(j) && json_real_value(j) == (double)v;
}

static bool same_text(const json_t *o, const char *key, const char *want)
{
    return slice_is(json_slice(o, key), want);
}

static bool same_address(const json_t *o, const char *key, const struct address *want)
{
    struct address a;
    struct slice s = json_slice(o, key);
    return s.p && address_read(s.p, s.n, &a) && address_eq(&a, want);
}

/* Money before or after the work: what was accepted is what the tool does now. */
static bool same_flow(const struct terms *t, const json_t *extra)
{
    return t->pay_first ? same_text(extra, "paymentFlow", "upfront") : !json_object_get(extra, "paymentFlow");
}

/* Is `accepted` this offer, but for the amount, which a quote may have fixed at an older price? */
static bool is_offer(const struct reading *r, const json_t *accepted, const struct price *p)
{
    const json_t *extra = json_object_get(accepted, "extra");
    return json_object_size(accepted) == 7 && same_text(accepted, "scheme", "exact") &&
           same_text(accepted, "network", p->net->id) && same_address(accepted, "asset", &p->token->address) &&
           same_address(accepted, "payTo", &p->pay_to) &&
           same_number(json_object_get(accepted, "maxTimeoutSeconds"), r->in->terms->max_timeout_s) &&
           same_text(extra, "name", p->token->name) && same_text(extra, "version", p->token->version) &&
           same_flow(r->in->terms, extra) && json_is_string(json_object_get(extra, "quote"));
}

static bool knows_network(const struct terms *t, struct slice id, bool v1)
{
    for (size_t i = 0; i < t->price_count; i++) {
        const char *name = v1 ? t->prices[i].net->v1_name : t->prices[i].net->id;
        if (name && slice_is(id, name))
            return true;
    }
    return false;
}

/* The quote makes the offer's amount ours, also an older one. Where it does not, our own price stands, and the payment is only
 * good for finding what it was presented for before. */
static bool take_quote(struct reading *r, struct slice text, const struct price *offer, struct amount amount)
{
    const struct x402_in *in = r->in;
    struct price quoted = *offer;
    quoted.amount = amount;
    r->p->price = *offer;
    switch (quote_read(in->key, text, in->terms->tool, in->request, &quoted, in->now, &r->p->quote)) {
    case QUOTE_OK:
        break;
    case QUOTE_EXPIRED:
        r->reason = REASON_QUOTE_EXPIRED;
        break;
    case QUOTE_OTHER:                            /* taken for another request, perhaps, which is a conflict and no new price */
        r->reason = amount_cmp(amount, offer->amount) == 0 ? REASON_QUOTE_OTHER : REASON_REQUIREMENTS;
        r->p->has_quote = quote_named(text, &r->p->quote);
        return true;
    }
    r->p->price = quoted;
    r->p->has_quote = true;
    return true;
}

/* None of our offers, but a token of ours: likewise, it may be known. */
static bool no_offer(struct reading *r, const json_t *accepted)
{
    for (size_t i = 0; i < r->in->terms->price_count; i++) {
        const struct price *p = &r->in->terms->prices[i];
        if (!same_text(accepted, "network", p->net->id) || !same_address(accepted, "asset", &p->token->address))
            continue;
        r->p->price = *p;
        r->reason = REASON_REQUIREMENTS;
        r->p->has_quote = quote_named(json_slice(json_object_get(accepted, "extra"), "quote"), &r->p->quote);
        return true;
    }
    return refused(r, REASON_REQUIREMENTS);
}

/* v2: the offer is named by `accepted`, and its quote must be ours for this very request. */
static bool match_v2(struct reading *r, const json_t *root)
{
    const struct x402_in *in = r->in;
    const json_t *accepted = json_object_get(root, "accepted");
    struct slice scheme = json_slice(accepted, "scheme"), network = json_slice(accepted, "network");
    struct amount amount;
    if (!json_is_object(accepted) || !scheme.p || !network.p)
        return malformed(r, "accepted must be one of the offers");
    if (!slice_is(scheme, "exact"))
        return refused(r, REASON_SCHEME);
    if (!knows_network(in->terms, network, false))
        return refused(r, REASON_NETWORK);
    struct slice price = json_slice(accepted, "amount");
    if (!price.p || !amount_read(price.p, price.n, &amount))
        return malformed(r, "accepted.amount must be a decimal string below 2^256");
    for (size_t i = 0; i < in->terms->price_count; i++) {
        if (!is_offer(r, accepted, &in->terms->prices[i]))
            continue;
        return take_quote(r, json_slice(json_object_get(accepted, "extra"), "quote"), &in->terms->prices[i], amount);
    }
    return no_offer(r, accepted);
}

/* v1 names only scheme and network: the first offer there. */
static bool match_v1(struct reading *r, const json_t *root)
{
    struct slice scheme = json_slice(root, "scheme"), network = json_slice(root, "network");
    if (!scheme.p || !network.p)
        return malformed(r, "scheme and network must be strings");
    if (!slice_is(scheme, "exact"))
        return refused(r, REASON_SCHEME);
    for (size_t i = 0; i < r->in->terms->price_count; i++) {
        const struct price *p = &r->in->terms->prices[i];
        if (p->net->v1_name && slice_is(network, p->net->v1_name)) {
            r->p->price = *p;
            return true;
        }
    }
    return refused(r, REASON_NETWORK);
}

/* The one extension that is offered: its echo must hold what was offered, and may add the id. */
static bool read_extensions(struct reading *r, const json_t *root)
{
    const json_t *extensions = json_object_get(root, "extensions");
    if (!extensions || json_is_null(extensions))
        return true;
    if (!json_is_object(extensions))
        return malformed(r, "extensions must be an object");
    const json_t *identifier = json_object_get(extensions, "payment-identifier");
    if (!identifier)
        return true;
    const json_t *info = json_object_get(identifier, "info"), *id = json_object_get(info, "id");
    if (!json_is_object(info) || !json_is_false(json_object_get(info, "required")))
        return refused(r, REASON_EXTENSION_ECHO);
    if (!id)
        return true;
    struct slice text = json_slice(info, "id");
    if (!payment_id_ok(text)) {
        r->err = ERR_PAYMENT_ID_FORM;
        return false;
    }
    memcpy(r->p->payment_id, text.p, text.n);
    return true;
}

static json_t *decode(struct reading *r, struct slice header)
{
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    if (header.n == 0)
        r->detail = "The payment header is empty.";
    if (header.n == 0 || !base64_read(header.p, header.n, &text, &n)) {
        r->err = ERR_PAYMENT_ENCODING;
        return NULL;
    }
    json_t *root = json_read((const char *)text, n, &why);
    if (root && json_is_object(root))
        return root;
    json_decref(root);
    r->err = ERR_PAYMENT_JSON;
    return NULL;
}

static bool read_payment(struct reading *r, const json_t *root, int version)
{
    const json_t *v = json_object_get(root, "x402Version");
    if (!json_is_number(v))
        return malformed(r, "x402Version must be a number");
    r->p->version = same_number(v, 1) ? 1 : 2;
    if (!same_number(v, 1) && !same_number(v, 2))
        return refused(r, REASON_VERSION);
    if (version == 2 && r->p->version == 1)
        return refused(r, REASON_VERSION);
    if (!x402_authorization(json_object_get(root, "payload"), &r->p->auth, &r->detail)) {
        r->err = ERR_PAYMENT_FIELD;
        return false;
    }
    return read_extensions(r, root) && (r->p->version == 2 ? match_v2(r, root) : match_v1(r, root));
}

enum err x402_payment(const struct x402_in *in, struct slice header, int version, struct payment *ret, enum reason *ret_reason,
                      bool *ret_readable, const char **ret_detail)
{
    struct reading r = { .in = in, .p = ret };
    memset(ret, 0, sizeof *ret);
    ret->version = version;
    JSON *root = decode(&r, header);
    if (root && read_payment(&r, root, version))
        x402_prove_signer(ret);
    *ret_reason = r.reason;
    *ret_readable = r.err == ERR_NONE;
    *ret_detail = r.detail;
    return r.reason != REASON_NONE ? ERR_PAYMENT_REFUSED : r.err;
}
