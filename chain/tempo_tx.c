#include "chain/tempo_tx.h"

#include <string.h>

#include "chain/internal.h"

#define TEMPO_TYPE_BYTE "\x76"

enum { KEYED_FIRST = 0x01 }; /* of a nonce key that tempo_key_of makes */

/* The items in their order; a key authorization stands between the last of them and the signature. */
enum item {
    CHAIN_ID, MAX_TIP, MAX_FEE, GAS, CALLS, ACCESS_LIST, NONCE_KEY, NONCE, VALID_BEFORE, VALID_AFTER, FEE_TOKEN,
    FEE_PAYER, AUTHORIZATIONS, ITEMS,
};

/* ---- in ---- */

/* How many items a list has. False: not a list of lists. */
static bool count_lists(const struct rlp_item *list, size_t *ret)
{
    struct slice rest = list->body;
    struct rlp_item one;
    size_t n = 0;
    if (!list->is_list)
        return false;
    for (; rest.n > 0; n++)
        if (!rlp_next(&rest, &one) || !one.is_list)
            return false;
    *ret = n;
    return true;
}

/* Empty, or 20 bytes. */
static bool read_address(const struct rlp_item *i, bool *ret_has, struct address *ret)
{
    if (i->is_list || (i->body.n != 0 && i->body.n != sizeof ret->b))
        return false;
    *ret_has = i->body.n != 0;
    memcpy(ret->b, i->body.p, i->body.n);
    return true;
}

static bool read_call(const struct rlp_item *call, struct tempo_call *ret)
{
    struct slice rest = call->body;
    struct rlp_item to, value, input;
    bool has_to;
    if (!call->is_list || !rlp_next(&rest, &to) || !rlp_next(&rest, &value) || !rlp_next(&rest, &input) || rest.n != 0)
        return false;
    if (!read_address(&to, &has_to, &ret->to) || !rlp_read_amount(&value, 32, &ret->value) || input.is_list)
        return false;
    ret->creates = !has_to;
    ret->input = input.body;
    return true;
}

static enum tempo_rc read_calls(const struct rlp_item *list, struct tempo_tx *tx)
{
    struct slice rest = list->body;
    struct rlp_item one;
    if (!list->is_list)
        return TEMPO_FIELD;
    for (; rest.n > 0; tx->call_count++) {
        struct tempo_call call = { .creates = false };
        if (!rlp_next(&rest, &one))
            return TEMPO_RLP;
        if (!read_call(&one, &call))
            return TEMPO_FIELD;
        if (tx->call_count == 0)
            tx->call = call;
    }
    return tx->call_count > 0 ? TEMPO_OK : TEMPO_NO_CALL;
}

static bool read_fees(const struct rlp_item *slot, enum tempo_fees *ret)
{
    struct slice rest = slot->body;
    struct rlp_item v, r, s;
    struct amount word;
    if (!slot->is_list) {
        *ret = slot->body.n == 0 ? TEMPO_FEES_SENDER : TEMPO_FEES_OPEN;
        return slot->body.n == 0 || (slot->body.n == 1 && slot->body.p[0] == 0);
    }
    *ret = TEMPO_FEES_SPONSORED;
    return rlp_next(&rest, &v) && rlp_next(&rest, &r) && rlp_next(&rest, &s) && rest.n == 0 &&
           rlp_read_amount(&v, 1, &word) && rlp_read_amount(&r, 32, &word) && rlp_read_amount(&s, 32, &word);
}

static enum tempo_rc read_fields(const struct rlp_item item[ITEMS], struct tempo_tx *tx)
{
    if (!rlp_read_u64(&item[CHAIN_ID], &tx->chain_id) || !rlp_read_amount(&item[MAX_TIP], 16, &tx->max_tip) ||
        !rlp_read_amount(&item[MAX_FEE], 16, &tx->max_fee) || !rlp_read_u64(&item[GAS], &tx->gas))
        return TEMPO_FIELD;
    if (!rlp_read_amount(&item[NONCE_KEY], 32, &tx->nonce_key) || !rlp_read_u64(&item[NONCE], &tx->nonce) ||
        !rlp_read_u64(&item[VALID_BEFORE], &tx->valid_before) || !rlp_read_u64(&item[VALID_AFTER], &tx->valid_after))
        return TEMPO_FIELD;
    if (!count_lists(&item[ACCESS_LIST], &tx->access_count) ||
        !count_lists(&item[AUTHORIZATIONS], &tx->authorization_count))
        return TEMPO_FIELD;
    if (!read_address(&item[FEE_TOKEN], &tx->has_fee_token, &tx->fee_token) || !read_fees(&item[FEE_PAYER], &tx->fees))
        return TEMPO_FIELD;
    return read_calls(&item[CALLS], tx);
}

/* What the sender signs. Where another pays the fees, which token they are paid in is that other's to choose. */
static struct hash32 digest_of(const struct rlp_item item[ITEMS], const struct rlp_item *key_authorization,
                               enum tempo_fees fees)
{
    BUF fields = { 0 };
    BUF text = { 0 };
    for (size_t i = 0; i < ITEMS; i++) {
        if (fees == TEMPO_FEES_SENDER || (i != FEE_TOKEN && i != FEE_PAYER))
            buf_add(&fields, item[i].whole.p, item[i].whole.n);
        else
            rlp_bytes(&fields, "", i == FEE_PAYER);
    }
    if (key_authorization)
        buf_add(&fields, key_authorization->whole.p, key_authorization->whole.n);
    buf_puts(&text, TEMPO_TYPE_BYTE);
    rlp_list(&text, &fields);
    return keccak256(text.p, text.n);
}

/* ---- signatures ---- */

enum {
    P256_SIZE = 130 /* 01, r, s, x, y, whether the digest was hashed once more */,
    WEBAUTHN_MAX = 2049,
    KEYCHAIN_HEAD = 1 + 20
};

/* False: none of the kinds. */
static bool kind_of(struct slice s, enum tempo_signature *ret)
{
    enum tempo_signature inner;
    const uint8_t first = s.n > 0 ? (uint8_t)s.p[0] : 0;
    *ret = TEMPO_SECP256K1;
    if (s.n == 65)
        return true;
    switch (first) {
    case 1:
        *ret = TEMPO_P256;
        return s.n == P256_SIZE && (uint8_t)s.p[P256_SIZE - 1] <= 1;
    case 2:
        *ret = TEMPO_WEBAUTHN;
        return s.n >= P256_SIZE - 1 && s.n <= WEBAUTHN_MAX;
    case 3:
    case 4:
        *ret = TEMPO_KEYCHAIN;
        return s.n > KEYCHAIN_HEAD && kind_of((struct slice){ s.p + KEYCHAIN_HEAD, s.n - KEYCHAIN_HEAD }, &inner) &&
               inner < TEMPO_KEYCHAIN;
    case 5:
        *ret = TEMPO_CONFIGURED;
        return s.n > 1;
    default:
        return false;
    }
}

/* The sender of a P256 signature is the address of the key that it shows; whether it signed, only the chain says. */
static void read_p256(struct slice s, struct tempo_signed *t)
{
    const struct hash32 h = keccak256(s.p + 65, 64);
    memcpy(t->sender.b, h.b + 12, sizeof t->sender.b);
    t->has_sender = true;
}

static bool recover(struct slice s, struct tempo_signed *t, struct signature *ret)
{
    t->has_sender = true;
    return signature_read((const uint8_t *)s.p, s.n, ret) && signature_recover(ret, &t->digest, &t->sender);
}

/* The chain names a transaction by the hash of its bytes with v, the last of them, spelled 27 or 28, and takes it with
 * 0 and 1 as well. */
static struct hash32 hash_of(const uint8_t *raw, size_t n, uint8_t v)
{
    BUF named = { 0 };
    buf_add(&named, raw, n - 1);
    buf_add(&named, &v, 1);
    return keccak256(named.p, named.n);
}

enum tempo_rc tempo_read(const uint8_t *raw, size_t n, struct tempo_signed *ret)
{
    struct tempo_signed t = { .has_sender = false };
    struct rlp_item list, item[ITEMS], more[2];
    size_t extra = 0;
    if (n == 0 || raw[0] != TEMPO_TYPE_BYTE[0])
        return TEMPO_TYPE;
    struct slice rest = { (const char *)raw + 1, n - 1 };
    if (!rlp_next(&rest, &list) || !list.is_list || rest.n != 0)
        return TEMPO_RLP;
    rest = list.body;
    for (size_t i = 0; i < ITEMS; i++)
        if (!rlp_next(&rest, &item[i]))
            return rest.n == 0 ? TEMPO_ITEMS : TEMPO_RLP;
    for (; rest.n > 0 && extra < COUNT(more); extra++)
        if (!rlp_next(&rest, &more[extra]))
            return TEMPO_RLP;
    if (rest.n != 0 || extra == 0 || more[extra - 1].is_list || (extra == 2 && !more[0].is_list))
        return TEMPO_ITEMS;
    enum tempo_rc rc = read_fields(item, &t.tx);
    if (rc != TEMPO_OK)
        return rc;
    t.tx.has_key_authorization = extra == 2;
    t.digest = digest_of(item, extra == 2 ? &more[0] : NULL, t.tx.fees);

    const struct slice signature = more[extra - 1].body;
    struct signature s = { .v = 0 };
    if (!kind_of(signature, &t.kind) || (t.kind == TEMPO_SECP256K1 && !recover(signature, &t, &s)))
        return TEMPO_SIGNATURE;
    if (t.kind == TEMPO_P256)
        read_p256(signature, &t);
    t.hash = t.kind == TEMPO_SECP256K1 ? hash_of(raw, n, s.v) : keccak256(raw, n);
    *ret = t;
    return TEMPO_OK;
}

/* ---- out ---- */

static void add_call(struct buf *b, const struct tempo_call *c)
{
    BUF call = { 0 };
    BUF calls = { 0 };
    rlp_bytes(&call, c->to.b, c->creates ? 0 : sizeof c->to.b);
    rlp_amount(&call, c->value);
    rlp_bytes(&call, c->input.p, c->input.n);
    rlp_list(&calls, &call);
    rlp_list(b, &calls);
}

static void add_fields(struct buf *b, const struct tempo_tx *tx)
{
    const struct buf none = { 0 };
    rlp_u64(b, tx->chain_id);
    rlp_amount(b, tx->max_tip);
    rlp_amount(b, tx->max_fee);
    rlp_u64(b, tx->gas);
    add_call(b, &tx->call);
    rlp_list(b, &none);                                  /* access list */
    rlp_amount(b, tx->nonce_key);
    rlp_u64(b, tx->nonce);
    rlp_u64(b, tx->valid_before);
    rlp_u64(b, tx->valid_after);
    rlp_bytes(b, tx->fee_token.b, tx->has_fee_token ? sizeof tx->fee_token.b : 0);
    rlp_bytes(b, "", 0);                                 /* the sender pays the fees */
    rlp_list(b, &none);                                  /* authorizations */
}

bool tempo_sign(const struct tempo_tx *tx, const struct key *k, struct buf *ret_raw, struct hash32 *ret_hash)
{
    BUF fields = { 0 };
    BUF text = { 0 };
    BUF raw = { 0 };
    add_fields(&fields, tx);
    buf_puts(&text, TEMPO_TYPE_BYTE);
    rlp_list(&text, &fields);

    struct signature s;
    uint8_t signature[65];
    const struct hash32 digest = keccak256(text.p, text.n);
    if (!key_sign(k, &digest, &s))
        return false;
    signature_write(&s, signature);
    rlp_bytes(&fields, signature, sizeof signature);
    buf_puts(&raw, TEMPO_TYPE_BYTE);
    rlp_list(&raw, &fields);
    *ret_hash = keccak256(raw.p, raw.n);
    buf_add(ret_raw, raw.p, raw.n);
    return true;
}

struct amount tempo_expiring_key(void)
{
    uint8_t be[32];
    memset(be, 0xff, sizeof be);
    return amount_from_be(be);
}

struct amount tempo_key_of(const struct hash32 *h)
{
    struct hash32 key = *h;
    key.b[0] = KEYED_FIRST;
    return amount_from_be(key.b);
}

const struct address tempo_nonces = { { 'N', 'O', 'N', 'C', 'E' } };

void tempo_nonce_call(struct buf *b, const struct address *account, struct amount key)
{
    static const uint8_t get_nonce[4] = { 0x89, 0x53, 0x58, 0x03 };
    uint8_t word[WORD];
    buf_add(b, get_nonce, sizeof get_nonce);
    word_address(word, account);
    buf_add(b, word, WORD);
    amount_to_be(key, word);
    buf_add(b, word, WORD);
}
