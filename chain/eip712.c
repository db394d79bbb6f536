#include <string.h>

#include "chain/internal.h"

/* keccak256 of "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)" */
static const struct hash32 domain_type = { {
    0x8b, 0x73, 0xc3, 0xc6, 0x9b, 0xb8, 0xfe, 0x3d, 0x51, 0x2e, 0xcc, 0x4c, 0xf7, 0x59, 0xcc, 0x79,
    0x23, 0x9f, 0x7b, 0x17, 0x9b, 0x0f, 0xfa, 0xca, 0xa9, 0xa7, 0x5d, 0x52, 0x2b, 0x39, 0x40, 0x0f,
} };

/* keccak256 of "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,
 * uint256 validBefore,bytes32 nonce)" */
static const struct hash32 transfer_type = { {
    0x7c, 0x7c, 0x6c, 0xdb, 0x67, 0xa1, 0x87, 0x43, 0xf4, 0x9e, 0xc6, 0xfa, 0x9b, 0x35, 0xf5, 0x0d,
    0x52, 0xed, 0x05, 0xcb, 0xed, 0x4c, 0xc5, 0x92, 0xe1, 0x3b, 0x44, 0x50, 0x1c, 0x1a, 0x22, 0x67,
} };

void token_domain(struct token *t)
{
    const struct hash32 name = keccak256(t->name, strlen(t->name));
    const struct hash32 version = keccak256(t->version, strlen(t->version));
    uint8_t words[5][WORD];
    memcpy(words[0], domain_type.b, WORD);
    memcpy(words[1], name.b, WORD);
    memcpy(words[2], version.b, WORD);
    word_u64(words[3], t->chain_id);
    word_address(words[4], &t->address);
    t->domain = keccak256(words, sizeof words);
}

static struct hash32 struct_hash(const struct authorization *a)
{
    uint8_t words[7][WORD];
    memcpy(words[0], transfer_type.b, WORD);
    word_address(words[1], &a->from);
    word_address(words[2], &a->to);
    amount_to_be(a->value, words[3]);
    amount_to_be(a->valid_after, words[4]);
    amount_to_be(a->valid_before, words[5]);
    memcpy(words[6], a->nonce.b, WORD);
    return keccak256(words, sizeof words);
}

struct hash32 authorization_digest(const struct authorization *a, const struct token *t)
{
    const struct hash32 message = struct_hash(a);
    uint8_t text[2 + 2 * WORD] = { 0x19, 0x01 };
    memcpy(text + 2, t->domain.b, WORD);
    memcpy(text + 2 + WORD, message.b, WORD);
    return keccak256(text, sizeof text);
}

bool authorization_sign(struct authorization *a, const struct token *t, const struct key *k)
{
    const struct hash32 digest = authorization_digest(a, t);
    struct signature s;
    if (!address_eq(&a->from, &k->address) || !key_sign(k, &digest, &s))
        return false;
    signature_write(&s, a->signature);
    a->signature_n = 65;
    return true;
}

struct hash32 typed_text(struct slice s)
{
    return keccak256(s.p, s.n);
}

struct hash32 typed_u64(uint64_t v)
{
    struct hash32 h;
    word_u64(h.b, v);
    return h;
}

struct hash32 typed_digest(const char *domain_name, const char *type, const struct hash32 *words, size_t n)
{
    static const char domain_text[] = "EIP712Domain(string name,string version,uint256 chainId)";
    const struct hash32 domain_words[] = { typed_text(SLICE(domain_text)), typed_text(slice_of(domain_name)), typed_text(SLICE("1")), typed_u64(1) };
    const struct hash32 domain = keccak256(domain_words, sizeof domain_words), kind = typed_text(slice_of(type));
    BUF message = { 0 };
    buf_add(&message, kind.b, sizeof kind.b);
    for (size_t i = 0; i < n; i++)
        buf_add(&message, words[i].b, sizeof words[i].b);
    const struct hash32 body = keccak256(message.p, message.n);
    uint8_t text[2 + 2 * WORD] = { 0x19, 0x01 };
    memcpy(text + 2, domain.b, WORD);
    memcpy(text + 2 + WORD, body.b, WORD);
    return keccak256(text, sizeof text);
}
