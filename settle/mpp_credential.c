#include "settle/mpp_credential.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"

enum { CREDENTIAL_MAX = 16384, TX_MAX = 8192 };

static const struct { const char *problem, *text; } faults[] = {
    { "", "" },
#define FAULT(name, problem, text) { problem, text },
#include "settle/mpp_fault.def"
#undef FAULT
};

const char *mpp_fault_problem(enum mpp_fault f)
{
    return faults[f].problem;
}

const char *mpp_fault_text(enum mpp_fault f)
{
    return faults[f].text;
}

void mpp_credential_done(struct mpp_credential *c)
{
    json_decref(c->root);
    free(c->raw);
    *c = (struct mpp_credential){ .root = NULL };
}

/* ---- in the header ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* The next credential or parameter: up to a comma that stands in no quoted string. */
static struct slice next_piece(struct slice *rest)
{
    bool quoted = false;
    size_t n = 0;
    for (; n < rest->n && (quoted || rest->p[n] != ','); n++) {
        if (rest->p[n] == '"')
            quoted = !quoted;
        else if (quoted && rest->p[n] == '\\' && n + 1 < rest->n)
            n++;
    }
    struct slice piece = { rest->p, n };
    const size_t gone = n < rest->n ? n + 1 : n;
    *rest = (struct slice){ rest->p + gone, rest->n - gone };
    for (; piece.n > 0 && is_space(piece.p[0]); piece.n--)
        piece.p++;
    while (piece.n > 0 && is_space(piece.p[piece.n - 1]))
        piece.n--;
    return piece;
}

/* What stands behind the scheme's name. False: another scheme, or another's parameter. */
static bool is_payment(struct slice piece, struct slice *ret)
{
    static const char scheme[] = "Payment";
    const size_t n = sizeof scheme - 1;
    if (piece.n < n || strncasecmp(piece.p, scheme, n) != 0 || (piece.n > n && !is_space(piece.p[n])))
        return false;
    size_t from = n;
    while (from < piece.n && is_space(piece.p[from]))
        from++;
    *ret = (struct slice){ piece.p + from, piece.n - from };
    return true;
}

enum mpp_fault mpp_credential_find(struct slice authorization, struct slice *ret)
{
    struct slice found = { NULL, 0 }, token;
    while (authorization.n > 0) {
        if (!is_payment(next_piece(&authorization), &token))
            continue;
        if (found.p)
            return MPP_FAULT_SEVERAL;
        found = token;
    }
    *ret = found;
    return MPP_FAULT_NONE;
}

/* ---- its form ---- */

/* A parameter that may be absent. */
static bool read_optional(const json_t *o, const char *key, struct slice *ret)
{
    *ret = json_slice(o, key);
    return ret->p || !json_object_get(o, key);
}

/* NULL: all of them are there. */
static const char *read_challenge(const json_t *o, struct mpp_challenge *c)
{
    c->id = json_slice(o, "id");
    c->realm = json_slice(o, "realm");
    c->method = json_slice(o, "method");
    c->intent = json_slice(o, "intent");
    c->request = json_slice(o, "request");
    if (!json_is_object(o))
        return "challenge must be an object";
    if (c->id.n == 0 || !c->realm.p || !c->method.p || !c->intent.p || !c->request.p)
        return "challenge.id, realm, method, intent and request must be strings";
    if (!read_optional(o, "expires", &c->expires) || !read_optional(o, "digest", &c->digest) ||
        !read_optional(o, "opaque", &c->opaque) || !read_optional(o, "description", &c->description))
        return "challenge.expires, digest, opaque and description must be strings";
    return NULL;
}

static enum mpp_fault fault_of(enum tempo_rc rc)
{
    switch (rc) {
    case TEMPO_OK:
        return MPP_FAULT_NONE;
    case TEMPO_TYPE:
        return MPP_FAULT_TX_TYPE;
    case TEMPO_RLP:
        return MPP_FAULT_TX_RLP;
    case TEMPO_ITEMS:
        return MPP_FAULT_TX_ITEMS;
    case TEMPO_FIELD:
        return MPP_FAULT_TX_FIELD;
    case TEMPO_NO_CALL:
        return MPP_FAULT_TX_CALLS;
    case TEMPO_SIGNATURE:
        return MPP_FAULT_TX_SIGNATURE;
    }
    return MPP_FAULT_TX_RLP;
}

static enum mpp_fault read_transaction(struct slice hex, struct mpp_credential *c)
{
    if (!hex.p || hex.n < 4 || hex.n > 2 + 2 * TX_MAX)
        return MPP_FAULT_PAYLOAD_SIGNATURE;
    c->raw = mem_new(hex.n / 2);
    if (!hex_read_any(hex.p, hex.n, c->raw, hex.n / 2, &c->raw_n))
        return MPP_FAULT_PAYLOAD_SIGNATURE;
    const enum tempo_rc rc = tempo_read(c->raw, c->raw_n, &c->tx);
    if (rc == TEMPO_OK)
        c->hash = c->tx.hash;
    return fault_of(rc);
}

static enum mpp_fault read_payload(const json_t *payload, struct mpp_credential *c)
{
    const struct slice type = json_slice(payload, "type"), hash = json_slice(payload, "hash");
    if (slice_is(type, "hash")) {
        c->mode = MPP_PUSH;
        return hash.p && hash_read(hash.p, hash.n, &c->hash) ? MPP_FAULT_NONE : MPP_FAULT_PAYLOAD_HASH;
    }
    if (!slice_is(type, "transaction"))
        return MPP_FAULT_PAYLOAD_TYPE;
    c->mode = MPP_PULL;
    return read_transaction(json_slice(payload, "signature"), c);
}

static enum mpp_fault read_root(struct mpp_credential *c, const char **ret_detail)
{
    const json_t *payload = json_object_get(c->root, "payload"), *source = json_object_get(c->root, "source");
    *ret_detail = read_challenge(json_object_get(c->root, "challenge"), &c->challenge);
    if (!*ret_detail && !json_is_object(payload))
        *ret_detail = "payload must be an object";
    if (*ret_detail)
        return MPP_FAULT_FIELD;
    if (!slice_is(c->challenge.method, MPP_METHOD) || !slice_is(c->challenge.intent, MPP_INTENT))
        return MPP_FAULT_METHOD;
    /* A source of another form is not a malformed credential: it may have paid, and says that somebody else did. */
    if (source)
        mpp_source_read((struct slice){ json_string_value(source), json_string_length(source) }, &c->source);
    return read_payload(payload, c);
}

enum mpp_fault mpp_credential_read(struct slice token, struct mpp_credential *ret, const char **ret_detail)
{
    MPP_CREDENTIAL c = { .root = NULL };
    OWNED uint8_t *text = NULL;
    size_t n;
    struct json_why why;
    *ret_detail = NULL;
    if (token.n > CREDENTIAL_MAX)
        return MPP_FAULT_TOO_LARGE;
    if (token.n == 0 || !base64url_read_any(token.p, token.n, &text, &n))
        return MPP_FAULT_ENCODING;
    c.root = json_read((const char *)text, n, &why);
    if (!json_is_object(c.root))
        return MPP_FAULT_JSON;
    const enum mpp_fault fault = read_root(&c, ret_detail);
    if (fault != MPP_FAULT_NONE)
        return fault;
    *ret = c;
    c = (struct mpp_credential){ .root = NULL };
    return MPP_FAULT_NONE;
}

/* ---- is it ours ---- */

enum mpp_fault mpp_credential_check(const struct mpp_credential *c, const struct mpp_in *in,
                                    struct mpp_charge *ret_charge, bool *ret_late)
{
    const struct mpp_challenge *said = &c->challenge;
    const struct mpp_id id = mpp_id_of(in->key, said);
    const char *detail;
    int64_t expires;
    if (said->id.n != sizeof id.s - 1 || !bytes_equal_ct(said->id.p, id.s, sizeof id.s - 1) ||
        !slice_is(said->realm, in->realm))
        return MPP_FAULT_NOT_OURS;
    /* Under our own MAC both can be read, unless another program makes challenges with the same key. */
    if (!said->expires.p || !time_read(said->expires.p, &expires) ||
        !mpp_charge_read(said->request, ret_charge, &detail))
        return MPP_FAULT_NOT_OURS;
    if (c->mode == MPP_PULL ? !ret_charge->pull : !ret_charge->push)
        return MPP_FAULT_MODE;
    *ret_late = in->now_ms > expires;
    return MPP_FAULT_NONE;
}
