#include <assert.h>
#include <fcntl.h>
#include <secp256k1.h>
#include <secp256k1_recovery.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/chain.h"

static const uint8_t zero[32];
static const uint8_t order[32] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
};
static const uint8_t half_order[32] = {
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x5d, 0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
};

/* Made once, at the first use, and blinded against side channels; it costs more than a hundred signatures. */
static const secp256k1_context *context(void)
{
    static secp256k1_context *ctx;
    if (ctx)
        return ctx;
    uint8_t seed[32];
    bytes_random(seed, sizeof seed);
    ctx = secp256k1_context_create(SECP256K1_CONTEXT_NONE);
    if (!ctx || !secp256k1_context_randomize(ctx, seed))
        abort();
    bytes_wipe(seed, sizeof seed);
    return ctx;
}

static struct address address_of(const secp256k1_pubkey *pub)
{
    uint8_t point[65]; /* 0x04, x, y */
    size_t n = sizeof point;
    secp256k1_ec_pubkey_serialize(context(), point, &n, pub, SECP256K1_EC_UNCOMPRESSED);
    const struct hash32 h = keccak256(point + 1, sizeof point - 1);
    struct address a;
    memcpy(a.b, h.b + sizeof h.b - sizeof a.b, sizeof a.b);
    return a;
}

/* ---- keys ---- */

bool key_from_secret(const uint8_t secret[32], struct key *ret)
{
    secp256k1_pubkey pub;
    if (!secp256k1_ec_pubkey_create(context(), &pub, secret))
        return false; /* zero, or not below the group's order */
    memcpy(ret->secret, secret, sizeof ret->secret);
    ret->address = address_of(&pub);
    return true;
}

void key_wipe(struct key *k)
{
    bytes_wipe(k, sizeof *k);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static enum key_rc parse_key(const char *text, size_t n, struct key *ret)
{
    char hex[2 + 64] = "0x";
    uint8_t secret[32];
    while (n > 0 && is_space(text[n - 1]))
        n--;
    if (n == sizeof hex)
        memcpy(hex, text, sizeof hex);
    else if (n == sizeof hex - 2)
        memcpy(hex + 2, text, n);
    const bool ok = (n == sizeof hex || n == sizeof hex - 2) && hex_read(hex, sizeof hex, secret, sizeof secret) &&
                    key_from_secret(secret, ret);
    bytes_wipe(hex, sizeof hex);
    bytes_wipe(secret, sizeof secret);
    return ok ? KEY_OK : KEY_BAD;
}

static enum key_rc read_key(int fd, struct key *ret)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return KEY_NO_FILE;
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return KEY_LOOSE_FILE;
    char text[128];
    const ssize_t n = read(fd, text, sizeof text);
    const enum key_rc rc = n > 0 && n < (ssize_t)sizeof text ? parse_key(text, (size_t)n, ret) : KEY_BAD;
    bytes_wipe(text, sizeof text);
    return rc;
}

enum key_rc key_load(const char *path, struct key *ret)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe in its place must not hang us */
    if (fd < 0)
        return KEY_NO_FILE;
    const enum key_rc rc = read_key(fd, ret);
    close(fd);
    return rc;
}

/* ---- signatures ---- */

bool key_sign(const struct key *k, const struct hash32 *digest, struct signature *ret)
{
    secp256k1_ecdsa_recoverable_signature sig;
    uint8_t rs[64];
    int recid;
    if (!secp256k1_ecdsa_sign_recoverable(context(), &sig, digest->b, k->secret, NULL, NULL))
        return false;
    secp256k1_ecdsa_recoverable_signature_serialize_compact(context(), rs, &recid, &sig);
    if (recid > 1)
        return false; /* r was over the order: Ethereum cannot say so, and chance does not make one */
    memcpy(ret->r, rs, 32);
    memcpy(ret->s, rs + 32, 32);
    ret->v = (uint8_t)(27 + recid);
    return true;
}

bool signature_read(const uint8_t *p, size_t n, struct signature *ret)
{
    if (n != 65)
        return false;
    const uint8_t *r = p, *s = p + 32, v = p[64] < 2 ? (uint8_t)(p[64] + 27) : p[64];
    if (v != 27 && v != 28)
        return false;
    if (memcmp(r, zero, 32) == 0 || memcmp(r, order, 32) >= 0)
        return false;
    if (memcmp(s, zero, 32) == 0 || memcmp(s, half_order, 32) > 0)
        return false;
    memcpy(ret->r, r, 32);
    memcpy(ret->s, s, 32);
    ret->v = v;
    return true;
}

void signature_write(const struct signature *s, uint8_t ret[65])
{
    memcpy(ret, s->r, 32);
    memcpy(ret + 32, s->s, 32);
    ret[64] = s->v;
}

bool signature_recover(const struct signature *s, const struct hash32 *digest, struct address *ret)
{
    assert(s->v == 27 || s->v == 28); /* the library aborts the process on any other recovery id */
    secp256k1_ecdsa_recoverable_signature sig;
    secp256k1_pubkey pub;
    uint8_t rs[65];
    signature_write(s, rs);
    if (!secp256k1_ecdsa_recoverable_signature_parse_compact(context(), &sig, rs, s->v - 27) ||
        !secp256k1_ecdsa_recover(context(), &pub, &sig, digest->b))
        return false; /* no point of the curve has this r */
    *ret = address_of(&pub);
    return true;
}

struct address_text address_checksum(const struct address *a)
{
    struct address_text t = address_lower(a);
    const struct hash32 h = keccak256(t.s + 2, 40);
    for (size_t i = 0; i < 40; i++) {
        const unsigned nibble = i % 2 ? h.b[i / 2] & 15 : h.b[i / 2] >> 4;
        if (nibble >= 8 && t.s[2 + i] >= 'a')
            t.s[2 + i] = (char)(t.s[2 + i] - 'a' + 'A');
    }
    return t;
}
