#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/chain.h"

#define SECRET "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80" /* anvil's account 0 */
#define ADDRESS "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
#define ORDER "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
#define ORDER_MINUS_1 "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140"
#define HALF "0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0"
#define HALF_PLUS_1 "0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a1"

static void from_secret(void **state)
{
    (void)state;
    struct key k = { { 0 }, { { 0 } } };
    uint8_t secret[32] = { 0 };
    assert_false(key_from_secret(secret, &k));
    assert_true(hex_read(ORDER, 66, secret, 32));
    assert_false(key_from_secret(secret, &k));
    assert_true(hex_read(ORDER_MINUS_1, 66, secret, 32));
    assert_true(key_from_secret(secret, &k));
    assert_true(hex_read("0x" SECRET, 66, secret, 32));
    assert_true(key_from_secret(secret, &k));
    assert_string_equal(address_checksum(&k.address).s, ADDRESS);
    key_wipe(&k);
    const uint8_t zeros[32] = { 0 };
    assert_memory_equal(k.secret, zeros, 32);
}

static enum key_rc load(const char *text, mode_t mode, struct key *ret)
{
    char path[] = "/tmp/payonce-key-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    const enum key_rc rc = key_load(path, ret);
    unlink(path);
    return rc;
}

static void from_file(void **state)
{
    (void)state;
    static const char *const good[] = { SECRET, SECRET "\n", "0x" SECRET, "0x" SECRET " \r\n" };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct key k;
        assert_int_equal(load(good[i], 0600, &k), KEY_OK);
        assert_string_equal(address_checksum(&k.address).s, ADDRESS);
    }
    struct key k = { { 7 }, { { 7 } } };
    assert_int_equal(load(SECRET, 0400, &k), KEY_OK);
    k = (struct key){ { 7 }, { { 7 } } };
    static const mode_t loose[] = { 0640, 0604, 0610, 0601, 0620, 0602, 0644 };
    for (size_t i = 0; i < COUNT(loose); i++)
        assert_int_equal(load(SECRET, loose[i], &k), KEY_LOOSE_FILE);
    static const char *const bad[] = {
        "",
        "\n",
        "0x",
        " " SECRET,
        SECRET "0",
        "0X" SECRET,
        SECRET SECRET,
        "x" SECRET,
        SECRET "\n" SECRET,
        "0x0x" SECRET,
        "0000000000000000000000000000000000000000000000000000000000000000",
        ORDER,
        "zc0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (load(bad[i], 0600, &k) != KEY_BAD)
            fail_msg("not refused: '%s'", bad[i]);
    }
    assert_int_equal(key_load("/nonexistent/key", &k), KEY_NO_FILE);
    assert_int_equal(key_load("/tmp", &k), KEY_NO_FILE);
    assert_int_equal(k.secret[0], 7);
}

static struct signature sign(struct hash32 *ret_digest)
{
    struct key k;
    struct signature s;
    uint8_t secret[32];
    assert_true(hex_read("0x" SECRET, 66, secret, 32));
    assert_true(key_from_secret(secret, &k));
    *ret_digest = keccak256("payonce", 7);
    assert_true(key_sign(&k, ret_digest, &s));
    return s;
}

static void round_trip(void **state)
{
    (void)state;
    struct hash32 digest;
    const struct signature s = sign(&digest), again = sign(&digest);
    uint8_t p[65], q[65];
    signature_write(&s, p);
    signature_write(&again, q);
    assert_memory_equal(p, q, 65);
    struct signature back;
    struct address who;
    assert_true(signature_read(p, 65, &back));
    assert_true(signature_recover(&back, &digest, &who));
    assert_string_equal(address_checksum(&who).s, ADDRESS);
    digest.b[0] ^= 1;
    assert_true(!signature_recover(&back, &digest, &who) || strcmp(address_checksum(&who).s, ADDRESS) != 0);
}

static bool takes(const uint8_t valid[65], const char *r, const char *s)
{
    uint8_t p[65];
    struct signature ret;
    memcpy(p, valid, 65);
    assert_true(!r || hex_read(r, 66, p, 32));
    assert_true(!s || hex_read(s, 66, p + 32, 32));
    return signature_read(p, 65, &ret);
}

static void edges(void **state)
{
    (void)state;
    const char *zero = "0x0000000000000000000000000000000000000000000000000000000000000000";
    const char *one = "0x0000000000000000000000000000000000000000000000000000000000000001";
    const char *ones = "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
    struct hash32 digest;
    const struct signature valid = sign(&digest);
    uint8_t p[65];
    signature_write(&valid, p);
    assert_true(takes(p, one, one));
    assert_true(takes(p, ORDER_MINUS_1, HALF));
    assert_false(takes(p, zero, NULL));
    assert_false(takes(p, NULL, zero));
    assert_false(takes(p, ORDER, NULL));
    assert_false(takes(p, ones, NULL));
    assert_false(takes(p, NULL, HALF_PLUS_1));
    assert_false(takes(p, NULL, ORDER_MINUS_1));
    assert_false(takes(p, NULL, ones));
    struct signature s;
    assert_false(signature_read(p, 64, &s));
    assert_false(signature_read(p, 0, &s));
    for (unsigned v = 0; v < 256; v++) {
        p[64] = (uint8_t)v;
        const bool good = v == 0 || v == 1 || v == 27 || v == 28;
        assert_int_equal(signature_read(p, 65, &s), good);
        if (good)
            assert_int_equal(s.v, v < 2 ? v + 27 : v);
    }
}

/* A client may choose any r below the order; for half of them there is no point on the curve. */
static void r_without_a_point(void **state)
{
    (void)state;
    struct hash32 digest = keccak256("x", 1);
    int none = 0;
    for (uint8_t i = 1; i <= 40; i++) {
        struct signature s = { { 0 }, { 0 }, 27 };
        struct address who;
        s.r[31] = i;
        s.s[31] = 1;
        none += !signature_recover(&s, &digest, &who);
    }
    assert_in_range(none, 5, 35);
}

static void checksums(void **state)
{
    (void)state;
    static const char *const eip55[] = {
        "0x52908400098527886E0F7030069857D2E4169EE7", "0xde709f2102306220921060314715629080e2fb77",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    };
    for (size_t i = 0; i < COUNT(eip55); i++) {
        struct address a;
        assert_true(address_read(eip55[i], 42, &a));
        assert_string_equal(address_checksum(&a).s, eip55[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_secret), cmocka_unit_test(from_file),         cmocka_unit_test(round_trip),
        cmocka_unit_test(edges),       cmocka_unit_test(r_without_a_point), cmocka_unit_test(checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
