#include "settle/siwx.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"

enum { HEADER_MAX = 16384, FIELD_MAX = 2048, RESOURCES_MAX = 8, RAW_NONCE = 32 };

void siwx_done(struct siwx *s)
{
    json_decref(s->fields);
    s->fields = NULL;
}

/* ---- in ---- */

static bool plain(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return s.p && s.n > 0 && s.n <= FIELD_MAX;
}

static bool resources_ok(const json_t *list)
{
    size_t i;
    json_t *r;
    if (!list)
        return true;
    if (!json_is_array(list) || json_array_size(list) > RESOURCES_MAX)
        return false;
    json_array_foreach(list, i, r)
        if (!plain((struct slice){ json_string_value(r), json_string_length(r) }))
            return false;
    return true;
}

/* The first field that is missing or has a wrong form; NULL: all are right. */
static const char *bad_field(const json_t *o)
{
    static const char *const needed[] = { "domain", "address", "uri", "version", "chainId", "type", "nonce", "issuedAt", "signature" };
    static const char *const known[] = { "statement", "expirationTime", "notBefore", "requestId" };
    for (size_t i = 0; i < COUNT(needed); i++)
        if (strcmp(needed[i], "signature") != 0 ? !plain(json_slice(o, needed[i])) : !json_str(o, needed[i]))
            return needed[i];
    for (size_t i = 0; i < COUNT(known); i++)
        if (json_object_get(o, known[i]) && !plain(json_slice(o, known[i])))
            return known[i];
    return resources_ok(json_object_get(o, "resources")) ? NULL : "resources";
}

bool siwx_read(struct slice header, struct siwx *ret, const char **ret_detail)
{
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    *ret_detail = "SIGN-IN-WITH-X must be base64 of a JSON object.";
    if (header.n > HEADER_MAX || !base64_read(header.p, header.n, &text, &n))
        return false;
    JSON *o = json_read((const char *)text, n, &why);
    if (!json_is_object(o))
        return false;
    *ret_detail = bad_field(o);
    if (*ret_detail)
        return false;
    struct slice address = json_slice(o, "address"), signature = json_slice(o, "signature");
    *ret_detail = "address";
    if (!address_read(address.p, address.n, &ret->address))
        return false;
    *ret_detail = "chainId";
    if (!network_id_read(json_str(o, "chainId"), &ret->chain_id))
        return false;
    *ret_detail = "type";
    if (strcmp(json_str(o, "type"), "eip191") != 0 || strcmp(json_str(o, "version"), "1") != 0)
        return false;
    *ret_detail = "signature";
    if (!hex_read_any(signature.p, signature.n, ret->signature, sizeof ret->signature, &ret->signature_n))
        return false;
    ret->fields = MOVE(o);
    return true;
}

/* ---- the text ---- */

static void add_line(struct buf *b, const json_t *fields, const char *label, const char *key)
{
    const char *value = json_str(fields, key);
    if (value)
        buf_printf(b, "\n%s: %s", label, value);
}

void siwx_text(const json_t *fields, struct buf *ret)
{
    const char *statement = json_str(fields, "statement"), *chain = strrchr(json_str(fields, "chainId"), ':');
    const json_t *resources = json_object_get(fields, "resources");
    size_t i;
    json_t *r;
    buf_printf(ret, "%s wants you to sign in with your Ethereum account:\n%s\n\n", json_str(fields, "domain"), json_str(fields, "address"));
    if (statement)
        buf_printf(ret, "%s\n", statement);
    add_line(ret, fields, "URI", "uri");
    add_line(ret, fields, "Version", "version");
    buf_printf(ret, "\nChain ID: %s", chain ? chain + 1 : "");
    add_line(ret, fields, "Nonce", "nonce");
    add_line(ret, fields, "Issued At", "issuedAt");
    add_line(ret, fields, "Expiration Time", "expirationTime");
    add_line(ret, fields, "Not Before", "notBefore");
    add_line(ret, fields, "Request ID", "requestId");
    if (json_is_array(resources))
        buf_puts(ret, "\nResources:");
    json_array_foreach(resources, i, r)
        buf_printf(ret, "\n- %s", json_string_value(r));
}

struct hash32 siwx_digest(struct slice text)
{
    BUF b = { 0 };
    buf_printf(&b, "\x19" "Ethereum Signed Message:\n%zu", text.n);
    buf_add(&b, text.p, text.n);
    return keccak256(b.p, b.n);
}

static struct hash32 digest_of(const json_t *fields)
{
    BUF text = { 0 };
    siwx_text(fields, &text);
    return siwx_digest((struct slice){ text.p, text.n });
}

/* ---- times ---- */

static bool read_time(const char *s, int64_t *ret)
{
    int64_t ms;
    if (!time_read(s, &ms))
        return false;
    *ret = ms / 1000;
    return true;
}

static bool times_ok(const json_t *o, int64_t now)
{
    enum { AHEAD_S = 30 };               /* a client's clock need not be ours */
    int64_t issued, until = now + 1, from = now;
    const char *expires = json_str(o, "expirationTime"), *not_before = json_str(o, "notBefore");
    if (!read_time(json_str(o, "issuedAt"), &issued) || (expires && !read_time(expires, &until)) || (not_before && !read_time(not_before, &from)))
        return false;
    return issued > now - SIWX_NONCE_S && issued <= now + AHEAD_S && until > now && from <= now + AHEAD_S;
}

/* ---- nonces: twelve bytes at random, the time when they end, and our MAC over both ---- */

static void nonce_mac(const uint8_t key[32], const uint8_t head[16], uint8_t ret[16])
{
    static const char label[] = "payonce sign-in ";
    uint8_t text[sizeof label - 1 + 16];
    memcpy(text, label, sizeof label - 1);
    memcpy(text + sizeof label - 1, head, 16);
    struct hash32 mac = hmac_sha256(key, 32, text, sizeof text);
    memcpy(ret, mac.b, 16);
}

static void nonce_make(const struct quote_key *k, int64_t until, char ret[SIWX_NONCE_TEXT + 1])
{
    uint8_t raw[RAW_NONCE];
    bytes_random(raw, 12);
    for (unsigned i = 0; i < 4; i++)
        raw[12 + i] = (uint8_t)((uint64_t)until >> (24 - 8 * i));
    nonce_mac(k->b[0], raw, raw + 16);
    hex_write_bare(ret, raw, sizeof raw);
}

static enum err nonce_check(const struct quote_key *k, struct slice text, int64_t now, struct hash32 *ret)
{
    char hex[2 + SIWX_NONCE_TEXT + 1] = "0x";
    uint8_t mac[16];
    bool ours = false;
    if (text.n != SIWX_NONCE_TEXT)
        return ERR_SIGN_IN_NONCE;
    memcpy(hex + 2, text.p, text.n);
    if (!hex_read(hex, 2 + SIWX_NONCE_TEXT, ret->b, sizeof ret->b))
        return ERR_SIGN_IN_NONCE;
    for (size_t i = 0; i < k->n && !ours; i++) {
        nonce_mac(k->b[i], ret->b, mac);
        ours = bytes_equal_ct(mac, ret->b + 16, sizeof mac);
    }
    if (!ours)
        return ERR_SIGN_IN_NONCE;
    int64_t until = 0;
    for (unsigned i = 0; i < 4; i++)
        until = until << 8 | ret->b[12 + i];
    return now < until ? ERR_NONE : ERR_SIGN_IN_EXPIRED;
}

/* ---- checks ---- */

enum err siwx_check(const struct siwx *s, const struct siwx_want *w, struct hash32 *ret_nonce)
{
    if (!slice_is(json_slice(s->fields, "domain"), w->domain))
        return ERR_SIGN_IN_DOMAIN;
    if (!slice_is(json_slice(s->fields, "uri"), w->uri))
        return ERR_SIGN_IN_URI;
    if (!times_ok(s->fields, w->now))
        return ERR_SIGN_IN_EXPIRED;
    return nonce_check(w->key, json_slice(s->fields, "nonce"), w->now, ret_nonce);
}

bool siwx_signed(const struct siwx *s)
{
    struct signature signature;
    struct address who;
    const struct hash32 digest = digest_of(s->fields);
    return signature_read(s->signature, s->signature_n, &signature) && signature_recover(&signature, &digest, &who) &&
           address_eq(&who, &s->address);
}

void siwx_contract_call(const struct siwx *s, struct buf *ret)
{
    static const uint8_t selector[] = { 0x16, 0x26, 0xba, 0x7e }, zero[32];
    const struct hash32 digest = digest_of(s->fields);
    uint8_t word[32] = { 0 };
    buf_add(ret, selector, sizeof selector);
    buf_add(ret, digest.b, sizeof digest.b);
    word[31] = 0x40;
    buf_add(ret, word, sizeof word);
    word[30] = (uint8_t)(s->signature_n >> 8);
    word[31] = (uint8_t)s->signature_n;
    buf_add(ret, word, sizeof word);
    buf_add(ret, s->signature, s->signature_n);
    buf_add(ret, zero, (32 - s->signature_n % 32) % 32);
}

bool siwx_contract_says_yes(const uint8_t *reply, size_t n)
{
    static const uint8_t yes[32] = { 0x16, 0x26, 0xba, 0x7e };
    return n == sizeof yes && memcmp(reply, yes, sizeof yes) == 0;
}

/* ---- out ---- */

json_t *siwx_offer(const struct siwx_want *w, const char *statement)
{
    char nonce[SIWX_NONCE_TEXT + 1];
    nonce_make(w->key, w->now + SIWX_NONCE_S, nonce);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:[s]}", "domain", w->domain, "uri", w->uri, "version", "1", "nonce", nonce,
                     "issuedAt", time_iso(w->now).s, "expirationTime", time_iso(w->now + SIWX_NONCE_S).s, "statement", statement,
                     "resources", w->uri);
}

char *siwx_answer(json_t *offer, const char *chain, const struct key *k)
{
    JSON *o = json_copy(offer);
    struct signature signature;
    uint8_t raw[65];
    char hex[2 * 65 + 3];
    if (!json_is_object(o))
        return NULL;
    json_object_set_new(o, "address", json_string(address_checksum(&k->address).s));
    json_object_set_new(o, "chainId", json_string(chain));
    json_object_set_new(o, "type", json_string("eip191"));
    json_object_set_new(o, "signature", json_string("0x"));
    if (bad_field(o))
        return NULL;
    const struct hash32 digest = digest_of(o);
    if (!key_sign(k, &digest, &signature))
        return NULL;
    signature_write(&signature, raw);
    hex_write(hex, raw, sizeof raw);
    json_object_set_new(o, "signature", json_string(hex));
    OWNED char *text = json_write(o);
    BUF value = { 0 };
    base64_add(&value, text, strlen(text));
    return str_copy(value.p);
}

char *url_host(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    return mem_copy(host, strcspn(host, "/?#"));
}
