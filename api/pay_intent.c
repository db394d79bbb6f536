#include <string.h>

#include "api/pay.h"
#include "base/clock.h"

static const char *const state_names[] = { "open", "not_charged", "review", "done", "gone" };
static const char *const mode_names[] = { [MPP_PUSH] = "push", [MPP_PULL] = "pull" };
enum { LONGEST_VALIDITY_S = 3600 };

void intent_done(struct intent *i)
{
    free(i->method);
    free(i->url);
    free(i->token_name);
    free(i->token_version);
    json_decref(i->mpp.challenge);
    buf_done(&i->mpp.raw);
    json_decref(i->accepted);
    json_decref(i->resource);
    json_decref(i->extensions);
    json_decref(i->past);
    json_decref(i->result);
    *i = (struct intent){ 0 };
}

/* ---- identity ---- */

void payment_id_random(char ret[PAYMENT_ID_MAX + 1])
{
    uint8_t random[16];
    bytes_random(random, sizeof random);
    memcpy(ret, "pay_", 4);
    hex_write_bare(ret + 4, random, sizeof random);
}

struct hash32 request_digest(const char *method, const char *url, struct slice body)
{
    const struct hash32 of_body = sha256(body.p, body.n);
    BUF all = { 0 };
    buf_printf(&all, "%s\n%s\n", method, url);
    buf_add(&all, of_body.b, sizeof of_body.b);
    return sha256(all.p, all.n);
}

struct hash32 intent_nonce(const char *payment_id, const struct hash32 *request, uint32_t attempt)
{
    static const char tag[] = "payonce agent nonce 1"; /* with its NUL */
    const struct hash32 id = keccak256(payment_id, strlen(payment_id));
    const uint8_t be[4] = { (uint8_t)(attempt >> 24), (uint8_t)(attempt >> 16), (uint8_t)(attempt >> 8),
                            (uint8_t)attempt };
    BUF all = { 0 };
    buf_add(&all, tag, sizeof tag);
    buf_add(&all, id.b, sizeof id.b);
    buf_add(&all, request->b, sizeof request->b);
    buf_add(&all, be, sizeof be);
    return keccak256(all.p, all.n);
}

struct token intent_token(const struct intent *i)
{
    struct token t = { .chain_id = i->chain_id,
                       .address = i->asset,
                       .name = i->token_name,
                       .version = i->token_version,
                       .symbol = i->token_name };
    token_domain(&t);
    return t;
}

/* ---- signing ---- */

/* The extensions are sent back as they came, with our payment id where the server knows that extension. */
static json_t *echo_extensions(const json_t *challenge, const char *payment_id)
{
    json_t *echo = json_deep_copy(json_object_get(challenge, "extensions"));
    json_t *info = json_object_get(json_object_get(echo, "payment-identifier"), "info");
    if (json_is_object(info))
        json_object_set_new(info, "id", json_string(payment_id));
    return echo;
}

static void replace_json(json_t **at, json_t *by)
{
    json_decref(*at);
    *at = by;
}

static void replace_text(char **at, const char *by)
{
    free(*at);
    *at = str_copy(by);
}

bool intent_sign(struct intent *i, const json_t *challenge, const struct offer *o, const struct key *k, int64_t now_s)
{
    const int64_t validity = o->max_timeout_s < LONGEST_VALIDITY_S ? o->max_timeout_s : LONGEST_VALIDITY_S;
    struct authorization auth = {
        .from = k->address,
        .to = o->pay_to,
        .value = o->amount,
        .valid_after = AMOUNT_ZERO,
        .valid_before = amount_of((uint64_t)(now_s + validity)),
        .nonce = intent_nonce(i->payment_id, &i->request, i->attempt),
    };
    if (!authorization_sign(&auth, &o->token, k))
        return false;
    i->chain_id = o->token.chain_id;
    i->asset = o->token.address;
    replace_text(&i->token_name, o->token.name);
    replace_text(&i->token_version, o->token.version);
    i->auth = auth;
    i->signed_at = now_s;
    i->state = INTENT_OPEN;
    replace_json(&i->mpp.challenge, NULL);
    replace_json(&i->accepted, json_deep_copy(o->accepted));
    replace_json(&i->resource, json_deep_copy(json_object_get(challenge, "resource")));
    replace_json(&i->extensions, echo_extensions(challenge, i->payment_id));
    return true;
}

struct mpp_challenge intent_challenge(const struct intent *i)
{
    const json_t *j = i->mpp.challenge;
    return (struct mpp_challenge){
        .id = json_slice(j, "id"), .realm = json_slice(j, "realm"), .method = json_slice(j, "method"),
        .intent = json_slice(j, "intent"), .request = json_slice(j, "request"), .expires = json_slice(j, "expires"),
        .digest = json_slice(j, "digest"), .opaque = json_slice(j, "opaque"),
        .description = json_slice(j, "description"),
    };
}

bool intent_sign_mpp(struct intent *i, const struct mpp_choice *c, struct tempo_tx *tx, const struct key *k,
                     int64_t now_s)
{
    const struct hash32 nonce = intent_nonce(i->payment_id, &i->request, i->attempt);
    const struct tempo_transfer transfer = { c->charge.recipient, c->charge.amount,
                                             mpp_memo(c->challenge.realm, c->challenge.id) };
    BUF data = { 0 };
    struct buf raw = { 0 };
    struct hash32 hash;
    tempo_transfer_call(&data, &transfer);
    tx->call = (struct tempo_call){ .to = c->charge.currency, .input = { data.p, data.n } };
    if (!tempo_sign(tx, k, &raw, &hash))
        return false;
    i->chain_id = c->charge.chain_id;
    i->asset = c->charge.currency;
    replace_text(&i->token_name, address_checksum(&c->charge.currency).s);
    replace_text(&i->token_version, "");
    i->auth = (struct authorization){ .from = k->address, .to = c->charge.recipient, .value = c->charge.amount,
                                      .valid_before = amount_of(tx->valid_before), .nonce = nonce };
    i->signed_at = now_s;
    i->state = INTENT_OPEN;
    i->mpp.mode = c->mode;
    i->mpp.tx = hash;
    buf_done(&i->mpp.raw);
    i->mpp.raw = raw;
    replace_json(&i->mpp.challenge, mpp_challenge_json(&c->challenge));
    replace_json(&i->accepted, NULL);
    replace_json(&i->resource, NULL);
    replace_json(&i->extensions, NULL);
    return true;
}

static json_t *authorization_json(const struct authorization *a)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "from", address_checksum(&a->from).s, "to",
                     address_checksum(&a->to).s, "value", amount_text(a->value).s, "validAfter",
                     amount_text(a->valid_after).s, "validBefore", amount_text(a->valid_before).s, "nonce",
                     hash_text(&a->nonce).s);
}

static json_t *signature_json(const struct authorization *a)
{
    BUF hex = { 0 };
    buf_hex(&hex, a->signature, a->signature_n);
    return json_string(hex.p);
}

static char *mpp_header(const struct intent *i)
{
    const struct mpp_challenge c = intent_challenge(i);
    struct buf header = { 0 };
    mpp_credential_write(&c, i->chain_id, &i->auth.from, i->mpp.mode == MPP_PUSH ? &i->mpp.tx : NULL,
                         (struct slice){ i->mpp.raw.p, i->mpp.raw.n }, &header);
    return header.p;
}

char *intent_header(const struct intent *i)
{
    if (i->mpp.challenge)
        return mpp_header(i);
    JSON *payment =
        json_pack("{s:i, s:{s:o, s:o}, s:O}", "x402Version", 2, "payload", "authorization",
                  authorization_json(&i->auth), "signature", signature_json(&i->auth), "accepted", i->accepted);
    if (i->extensions)
        json_object_set(payment, "extensions", i->extensions);
    if (i->resource)
        json_object_set(payment, "resource", i->resource);
    OWNED char *text = json_write(payment);
    struct buf header = { 0 };
    base64_add(&header, text, strlen(text));
    return header.p;
}

/* ---- on disk ---- */

json_t *intent_json(const struct intent *i)
{
    OWNED char *network = str_format("eip155:%llu", (unsigned long long)i->chain_id);
    json_t *j =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "version", 1, "payment_id", i->payment_id, "state",
                  state_names[i->state], "method", i->method, "url", i->url, "request_digest", hash_text(&i->request).s,
                  "network", network, "asset", address_checksum(&i->asset).s, "token_name", i->token_name);
    json_object_set_new(j, "token_version", json_string(i->token_version));
    json_object_set_new(j, "attempt", json_integer(i->attempt));
    json_object_set_new(j, "signed_at", json_integer(i->signed_at));
    json_object_set_new(j, "authorization", authorization_json(&i->auth));
    if (i->mpp.challenge) {
        BUF raw = { 0 };
        buf_hex(&raw, i->mpp.raw.p, i->mpp.raw.n);
        json_object_set_new(j, "mode", json_string(mode_names[i->mpp.mode]));
        json_object_set(j, "challenge", i->mpp.challenge);
        json_object_set_new(j, "transaction", json_string(raw.p));
    } else {
        json_object_set_new(j, "signature", signature_json(&i->auth));
        json_object_set(j, "accepted", i->accepted);
    }
    if (i->resource)
        json_object_set(j, "resource", i->resource);
    if (i->extensions)
        json_object_set(j, "extensions", i->extensions);
    if (i->past)
        json_object_set(j, "past", i->past);
    if (i->result)
        json_object_set(j, "result", i->result);
    return j;
}

static bool read_amount(const json_t *j, const char *key, struct amount *ret)
{
    const struct slice s = json_slice(j, key);
    return s.p && amount_read(s.p, s.n, ret);
}

static bool read_address(const json_t *j, const char *key, struct address *ret)
{
    const struct slice s = json_slice(j, key);
    return s.p && address_read(s.p, s.n, ret);
}

static bool read_hash(const json_t *j, const char *key, struct hash32 *ret)
{
    const struct slice s = json_slice(j, key);
    return s.p && hash_read(s.p, s.n, ret);
}

static bool read_authorization(const json_t *j, struct authorization *ret)
{
    const json_t *a = json_object_get(j, "authorization");
    return read_address(a, "from", &ret->from) && read_address(a, "to", &ret->to) &&
           read_amount(a, "value", &ret->value) && read_amount(a, "validAfter", &ret->valid_after) &&
           read_amount(a, "validBefore", &ret->valid_before) && read_hash(a, "nonce", &ret->nonce);
}

static bool read_x402(const json_t *j, struct intent *i)
{
    const struct slice signature = json_slice(j, "signature");
    return i->accepted && signature.p &&
           hex_read_any(signature.p, signature.n, i->auth.signature, sizeof i->auth.signature, &i->auth.signature_n);
}

/* The transaction names itself: what it says is what was signed. */
static bool read_mpp(const json_t *j, struct intent *i)
{
    const struct slice raw = json_slice(j, "transaction"), mode = json_slice(j, "mode");
    struct tempo_signed tx;
    size_t n;
    if (!json_is_object(i->mpp.challenge) || !raw.p || !mode.p)
        return false;
    OWNED uint8_t *bytes = mem_new(raw.n / 2 + 1);
    if (!hex_read_any(raw.p, raw.n, bytes, raw.n / 2, &n) || tempo_read(bytes, n, &tx) != TEMPO_OK)
        return false;
    i->mpp.mode = slice_is(mode, mode_names[MPP_PUSH]) ? MPP_PUSH : MPP_PULL;
    i->mpp.tx = tx.hash;
    buf_add(&i->mpp.raw, bytes, n);
    return address_eq(&tx.sender, &i->auth.from);
}

static bool read_state(const json_t *j, enum intent_state *ret)
{
    const struct slice s = json_slice(j, "state");
    for (size_t i = 0; s.p && i < COUNT(state_names); i++) {
        if (slice_is(s, state_names[i])) {
            *ret = (enum intent_state)i;
            return true;
        }
    }
    return false;
}

static bool read_texts(const json_t *j, struct intent *i)
{
    const char *id = json_str(j, "payment_id"), *network = json_str(j, "network");
    if (!id || !payment_id_ok(slice_of(id)) || !network || !network_id_read(network, &i->chain_id))
        return false;
    memcpy(i->payment_id, id, strlen(id) + 1);
    i->method = str_copy(json_str(j, "method"));
    i->url = str_copy(json_str(j, "url"));
    i->token_name = str_copy(json_str(j, "token_name"));
    i->token_version = str_copy(json_str(j, "token_version"));
    return i->method && i->url && i->token_name && i->token_version;
}

bool intent_read(const json_t *j, struct intent *ret)
{
    INTENT i = { 0 };
    const json_int_t attempt = json_integer_value(json_object_get(j, "attempt"));
    i.signed_at = json_integer_value(json_object_get(j, "signed_at"));
    i.accepted = json_incref(json_object_get(j, "accepted"));
    i.resource = json_incref(json_object_get(j, "resource"));
    i.extensions = json_incref(json_object_get(j, "extensions"));
    i.past = json_incref(json_object_get(j, "past"));
    i.result = json_incref(json_object_get(j, "result"));
    i.mpp.challenge = json_incref(json_object_get(j, "challenge"));
    if (json_integer_value(json_object_get(j, "version")) != 1 || attempt < 0 || attempt > UINT32_MAX ||
        !read_texts(j, &i) || !read_hash(j, "request_digest", &i.request) || !read_address(j, "asset", &i.asset) ||
        !read_authorization(j, &i.auth) || !read_state(j, &i.state))
        return false;
    if (i.mpp.challenge ? !read_mpp(j, &i) : !read_x402(j, &i))
        return false;
    i.attempt = (uint32_t)attempt;
    const struct hash32 nonce = intent_nonce(i.payment_id, &i.request, i.attempt);
    if (!hash_eq(&nonce, &i.auth.nonce))
        return false;
    *ret = i;
    i = (struct intent){ 0 };
    return true;
}
