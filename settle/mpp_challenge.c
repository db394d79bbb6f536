#include "settle/mpp_challenge.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"

enum { REQUEST_MAX = 16384 };

/* ---- the id ---- */

struct mpp_id mpp_id_of(struct slice key, const struct mpp_challenge *c)
{
    const struct slice slots[] = { c->realm, c->method, c->intent, c->request, c->expires, c->digest, c->opaque };
    BUF text = { 0 };
    BUF id = { 0 };
    size_t all = COUNT(slots);
    for (size_t i = 0; i < COUNT(slots); i++)
        all += slots[i].n;
    buf_reserve(&text, all);
    for (size_t i = 0; i < COUNT(slots); i++) {
        buf_add(&text, "|", i > 0);
        buf_add(&text, slots[i].p, slots[i].n);
    }
    const struct hash32 mac = hmac_sha256(key.p, key.n, text.p, text.n);
    base64url_add(&id, mac.b, sizeof mac.b);
    struct mpp_id ret;
    memcpy(ret.s, id.p, sizeof ret.s);
    return ret;
}

/* ---- out ---- */

static bool is_quotable(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] > 0x7e || s.p[i] == '"' || s.p[i] == '\\')
            return false;
    return true;
}

bool mpp_realm_ok(const char *realm)
{
    return realm[0] && is_quotable(slice_of(realm)) && !strchr(realm, '|');
}

/* All that a 402 needs is joined here, without printf: a busy gateway gives many thousands a second. */
static void add(struct buf *b, const char *before, struct slice s)
{
    buf_puts(b, before);
    buf_add(b, s.p, s.n);
}

/* JCS (RFC 8785): the keys in order, no spaces, nothing in it that needs an escape. */
static void add_request(struct buf *b, const struct mpp_offer *o)
{
    const struct price *p = o->price;
    const struct amount_text amount = amount_text(p->amount), chain = amount_text(amount_of(p->net->chain_id));
    const struct address_text currency = address_lower(&p->token->address), recipient = address_lower(&p->pay_to);
    BUF json = { 0 };
    buf_reserve(&json, 384 + o->external_id.n);
    add(&json, "{\"amount\":\"", slice_of(amount.s));
    add(&json, "\",\"currency\":\"", slice_of(currency.s));
    add(&json, "\",\"externalId\":\"", o->external_id);
    add(&json, "\",\"methodDetails\":{\"chainId\":", slice_of(chain.s));
    add(&json, ",\"supportedModes\":[", o->push_only ? SLICE("\"push\"") : SLICE("\"pull\",\"push\""));
    add(&json, "]},\"recipient\":\"", slice_of(recipient.s));
    buf_puts(&json, "\"}");
    base64url_add(b, json.p, json.n);
}

/* The challenges of one second expire together. */
static struct slice expires_text(int64_t at)
{
    static struct time_text text;
    static int64_t of = -1;
    if (of != at)
        text = time_iso(at);
    of = at;
    return slice_of(text.s);
}

void mpp_challenge_write(const struct mpp_offer *o, struct buf *ret)
{
    BUF request = { 0 };
    add_request(&request, o);
    const struct mpp_challenge c = {
        .realm = slice_of(o->realm), .method = SLICE_INIT(MPP_METHOD), .intent = SLICE_INIT(MPP_INTENT),
        .request = { request.p, request.n }, .expires = expires_text(o->expires),
    };
    const struct mpp_id id = mpp_id_of(o->key, &c);
    buf_reserve(ret, c.realm.n + c.request.n + 256);
    add(ret, "Payment id=\"", slice_of(id.s));
    add(ret, "\", realm=\"", c.realm);
    add(ret, "\", method=\"" MPP_METHOD "\", intent=\"" MPP_INTENT "\", request=\"", c.request);
    add(ret, "\", expires=\"", c.expires);
    buf_puts(ret, "\"");
    if (o->description && is_quotable(slice_of(o->description))) {
        add(ret, ", description=\"", slice_of(o->description));
        buf_puts(ret, "\"");
    }
}

/* ---- in ---- */

static bool no(const char **ret_detail, const char *detail)
{
    *ret_detail = detail;
    return false;
}

/* Both where nothing is said of modes. */
static bool read_modes(const json_t *details, struct mpp_charge *c)
{
    const json_t *modes = json_object_get(details, "supportedModes");
    size_t i;
    json_t *mode;
    c->pull = c->push = !modes;
    if (modes && !json_is_array(modes))
        return false;
    json_array_foreach(modes, i, mode) {
        const struct slice name = { json_string_value(mode), json_string_length(mode) };
        c->pull = c->pull || slice_is(name, "pull");
        c->push = c->push || slice_is(name, "push");
    }
    return true;
}

static bool read_details(const json_t *root, struct mpp_charge *c, const char **ret_detail)
{
    const json_t *details = json_object_get(root, "methodDetails"), *chain = json_object_get(details, "chainId");
    if (!json_is_object(details))
        return no(ret_detail, "request.methodDetails must be an object");
    if (!json_is_integer(chain) || json_integer_value(chain) <= 0)
        return no(ret_detail, "request.methodDetails.chainId must be a whole number");
    c->chain_id = (uint64_t)json_integer_value(chain);
    if (!read_modes(details, c))
        return no(ret_detail, "request.methodDetails.supportedModes must be an array");
    const json_t *sponsor = json_object_get(details, "feePayer");
    c->plain = !amount_is_zero(c->amount) && (!sponsor || json_is_false(sponsor)) &&
               !json_object_get(details, "splits") && !json_object_get(details, "memo");
    return true;
}

static bool read_request(const json_t *root, struct mpp_charge *c, const char **ret_detail)
{
    const struct slice amount = json_slice(root, "amount"), currency = json_slice(root, "currency"),
                       recipient = json_slice(root, "recipient"), external = json_slice(root, "externalId");
    if (!amount.p || !amount_read(amount.p, amount.n, &c->amount))
        return no(ret_detail, "request.amount must be a decimal string below 2^256");
    if (!currency.p || !address_read(currency.p, currency.n, &c->currency))
        return no(ret_detail, "request.currency must be 0x and 40 hex digits");
    if (!recipient.p || !address_read(recipient.p, recipient.n, &c->recipient))
        return no(ret_detail, "request.recipient must be 0x and 40 hex digits");
    if ((json_object_get(root, "externalId") && !external.p) || external.n >= sizeof c->external_id)
        return no(ret_detail, "request.externalId must be a string of at most 128 bytes");
    if (external.p)
        memcpy(c->external_id, external.p, external.n);
    return read_details(root, c, ret_detail);
}

bool mpp_charge_read(struct slice request, struct mpp_charge *ret, const char **ret_detail)
{
    struct mpp_charge c = { .plain = false };
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    if (request.n > REQUEST_MAX || !base64url_read_any(request.p, request.n, &text, &n))
        return no(ret_detail, "request must be base64url without padding, at most 16 KiB");
    JSON *root = json_read((const char *)text, n, &why);
    if (!json_is_object(root))
        return no(ret_detail, "request must be one strict JSON object");
    if (!read_request(root, &c, ret_detail))
        return false;
    *ret = c;
    return true;
}

bool mpp_charge_is(const struct mpp_charge *c, const struct price *p)
{
    return c->chain_id == p->net->chain_id && address_eq(&c->currency, &p->token->address) &&
           address_eq(&c->recipient, &p->pay_to) && amount_cmp(c->amount, p->amount) == 0;
}

/* ---- the memo: tag, version, who sells, who buys, which challenge ---- */

enum { TAG = 4, REALM_AT = 5, CLIENT_AT = 15, ID_AT = 25, PART = 10 };
static const uint8_t memo_head[TAG + 1] = { 0xef, 0x1e, 0xd7, 0x12, 1 }; /* keccak256("mpp"), and version 1 */

struct hash32 mpp_memo(struct slice realm, struct slice id)
{
    const struct hash32 r = keccak256(realm.p, realm.n), i = keccak256(id.p, id.n);
    struct hash32 memo = { { 0 } };
    memcpy(memo.b, memo_head, sizeof memo_head);
    memcpy(memo.b + REALM_AT, r.b, PART);
    memcpy(memo.b + ID_AT, i.b, sizeof memo.b - ID_AT);
    return memo;
}

static bool same_part(const struct hash32 *a, const struct hash32 *b, size_t from, size_t to)
{
    return memcmp(a->b + from, b->b + from, to - from) == 0;
}

bool mpp_memo_is(const struct hash32 *memo, struct slice realm, struct slice id)
{
    const struct hash32 want = mpp_memo(realm, id);
    return same_part(memo, &want, 0, CLIENT_AT) && same_part(memo, &want, ID_AT, sizeof want.b);
}

bool mpp_memo_of_realm(const struct hash32 *memo, struct slice realm)
{
    const struct hash32 want = mpp_memo(realm, SLICE(""));
    return same_part(memo, &want, 0, CLIENT_AT);
}

/* ---- who paid ---- */

void mpp_source_read(struct slice s, struct mpp_source *ret)
{
    static const char prefix[] = "did:pkh:eip155:";
    const size_t head = sizeof prefix - 1;
    *ret = (struct mpp_source){ .kind = MPP_SOURCE_OTHER };
    if (s.n < head || memcmp(s.p, prefix, head) != 0)
        return;
    const char *chain = s.p + head, *colon = memchr(chain, ':', s.n - head);
    struct amount id;
    if (!colon || !amount_read(chain, (size_t)(colon - chain), &id) || !amount_u64(id, &ret->chain_id))
        return;
    if (address_read(colon + 1, (size_t)(s.p + s.n - colon - 1), &ret->address))
        ret->kind = MPP_SOURCE_ACCOUNT;
}

bool mpp_source_is(const struct mpp_source *s, uint64_t chain_id, const struct address *who)
{
    if (s->kind == MPP_SOURCE_NONE)
        return true;
    return s->kind == MPP_SOURCE_ACCOUNT && s->chain_id == chain_id && address_eq(&s->address, who);
}
