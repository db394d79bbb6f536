/* What a seller's server asks of a facilitator: its own requirements, and the payment that its client sent for them. */
#include <string.h>

#include "base/json.h"
#include "settle/x402.h"

enum { TIMEOUT_V1 = 60, TIMEOUT_V2 = 300, TIMEOUT_MAX = 31536000 };

static enum reason malformed(struct x402_asked *a, enum reason why, const char *detail)
{
    a->detail = detail;
    return why;
}

/* A text of the request's own that goes back in the answer as it was spelled. */
static void keep(char *ret, size_t size, struct slice s)
{
    if (s.p && s.n < size && !memchr(s.p, 0, s.n))
        memcpy(ret, s.p, s.n);
}

static bool read_int(const json_t *j, unsigned *ret)
{
    double v = json_number_value(j);
    if (!json_is_number(j) || v < 1 || v > TIMEOUT_MAX || v != (double)(unsigned)v)
        return false;
    *ret = (unsigned)v;
    return true;
}

/* ---- whom to answer in which words, before anything is judged ---- */

static void read_names(struct x402_asked *a, const json_t *payment, const json_t *required)
{
    const json_t *payload = json_object_get(payment, "payload");
    keep(a->payer, sizeof a->payer, json_slice(json_object_get(payload, "authorization"), "from"));
    keep(a->network, sizeof a->network, json_slice(required, "network"));
}

static bool read_version(const json_t *payment, struct x402_asked *a)
{
    const json_t *v = json_object_get(payment, "x402Version");
    double version = json_number_value(v);
    if (!json_is_number(v) || (version != 1 && version != 2))
        return false;
    a->version = a->payment.version = (int)version;
    return true;
}

/* ---- the requirements ---- */

static const struct net *find_net(const struct x402_asked *a, const struct net *nets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = a->version == 1 ? nets[i].v1_name : nets[i].id;
        if (name && strcmp(a->network, name) == 0)
            return &nets[i];
    }
    return NULL;
}

static enum reason read_requirements(struct x402_asked *a, const json_t *required)
{
    struct slice asset = json_slice(required, "asset"), pay_to = json_slice(required, "payTo");
    struct slice amount = json_slice(required, a->version == 1 ? "maxAmountRequired" : "amount");
    const json_t *timeout = json_object_get(required, "maxTimeoutSeconds");
    a->max_timeout_s = a->version == 1 ? TIMEOUT_V1 : TIMEOUT_V2;
    if (!asset.p || !address_read(asset.p, asset.n, &a->asset))
        return malformed(a, REASON_BAD_REQUIREMENTS, "paymentRequirements.asset must be 0x and 40 hex digits");
    if (!pay_to.p || !address_read(pay_to.p, pay_to.n, &a->pay_to))
        return malformed(a, REASON_BAD_REQUIREMENTS, "paymentRequirements.payTo must be 0x and 40 hex digits");
    if (!amount.p || !amount_read(amount.p, amount.n, &a->amount))
        return malformed(a, REASON_BAD_REQUIREMENTS, "the amount in paymentRequirements must be a decimal string");
    if (timeout && !read_int(timeout, &a->max_timeout_s))
        return malformed(a, REASON_BAD_REQUIREMENTS, "paymentRequirements.maxTimeoutSeconds must be a whole number above 0");
    a->extra = json_object_get(required, "extra");
    return REASON_NONE;
}

/* v2 repeats the whole offer in `accepted`, v1 names scheme and network. Of both only these two count: what is required is what
 * the seller's server says. */
static enum reason compare_accepted(const struct x402_asked *a, const json_t *payment)
{
    const json_t *said = a->version == 1 ? payment : json_object_get(payment, "accepted");
    if (!slice_is(json_slice(said, "scheme"), "exact"))
        return REASON_SCHEME_MISMATCH;
    return slice_is(json_slice(said, "network"), a->network) ? REASON_NONE : REASON_NETWORK_MISMATCH;
}

enum reason x402_asked(const json_t *root, const struct net *nets, size_t net_count, struct x402_asked *ret)
{
    const json_t *payment = json_object_get(root, "paymentPayload"), *required = json_object_get(root, "paymentRequirements");
    memset(ret, 0, sizeof *ret);
    ret->version = ret->payment.version = 2;
    read_names(ret, payment, required);
    if (!json_is_object(payment) || !json_is_object(required))
        return malformed(ret, REASON_MISSING, "paymentPayload and paymentRequirements must be objects");
    if (!read_version(payment, ret))
        return REASON_VERSION;
    if (!slice_is(json_slice(required, "scheme"), "exact"))
        return REASON_SCHEME;
    ret->net = find_net(ret, nets, net_count);
    if (!ret->net)
        return REASON_NETWORK;
    if (!x402_authorization(json_object_get(payment, "payload"), &ret->payment.auth, &ret->detail))
        return REASON_PAYLOAD;
    enum reason why = read_requirements(ret, required);
    return why == REASON_NONE ? compare_accepted(ret, payment) : why;
}

/* ---- on whose terms ---- */

/* What was asked for, without what may change from one copy to the next. */
static struct hash32 requirements_digest(const struct x402_asked *a)
{
    BUF b = { 0 };
    buf_printf(&b, "settlement\n%s\n%s\n%s\n%s\n", a->net->id, address_lower(&a->asset).s, address_lower(&a->pay_to).s,
               amount_text(a->amount).s);
    return sha256(b.p, b.n);
}

static enum reason check_domain(const json_t *extra, const struct token *t)
{
    struct slice name = json_slice(extra, "name"), version = json_slice(extra, "version");
    if (name.n == 0 || version.n == 0)
        return REASON_MISSING_DOMAIN;
    if (!slice_is(name, t->name))
        return REASON_TOKEN_NAME;
    return slice_is(version, t->version) ? REASON_NONE : REASON_TOKEN_VERSION;
}

/* v1's price is a least one, as its own facilitator reads it: what was signed is what is settled. */
static struct amount price_of(const struct x402_asked *a)
{
    const struct amount signed_for = a->payment.auth.value;
    return a->version == 1 && amount_cmp(signed_for, a->amount) > 0 ? signed_for : a->amount;
}

enum reason x402_serve(struct x402_asked *a, const struct token *token)
{
    a->payment.price = (struct price){ a->net, token, price_of(a), a->pay_to };
    a->terms = requirements_digest(a);
    enum reason why = check_domain(a->extra, token);
    x402_prove_signer(&a->payment);
    return why;
}
