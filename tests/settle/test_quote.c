/* A quote is good for what it was made for, until it ends, and for nothing else. */
#include "sale.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct quote_id id = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };
static struct price price;
static struct token token;
static struct net net;

static int start(void **state)
{
    sale_start(state);
    price = prices[PRICE_SEPOLIA];
    token = *price.token;
    net = *price.net;
    price.token = &token;
    price.net = &net;
    return 0;
}

static struct quote_text made(int64_t expires)
{
    struct quote_text t;
    quote_write(&quote_key, &id, expires, "countries", &request, &price, &t);
    return t;
}

static enum quote_rc read_at(const char *text, int64_t at)
{
    struct quote_id got;
    return quote_read(&quote_key, slice_of(text), "countries", &request, &price, at, &got);
}

static void test_round_trip(void **state)
{
    (void)state;
    const struct quote_text t = made(now + 60);
    struct quote_id got = { { 0 } };
    assert_int_equal(strlen(t.s), 54);
    assert_int_equal(quote_read(&quote_key, slice_of(t.s), "countries", &request, &price, now, &got), QUOTE_OK);
    assert_memory_equal(&got, &id, sizeof id);
    assert_string_equal(t.s, made(now + 60).s); /* any gateway with the key makes and reads the same */
}

static void test_expiry(void **state)
{
    (void)state;
    const struct quote_text t = made(now + 60);
    struct quote_id got = { { 0 } };
    assert_int_equal(read_at(t.s, now + 60), QUOTE_OK);
    assert_int_equal(quote_read(&quote_key, slice_of(t.s), "countries", &request, &price, now + 61, &got),
                     QUOTE_EXPIRED);
    assert_memory_equal(&got, &id, sizeof id); /* so that a known payment is found again */
}

static void test_altered(void **state)
{
    (void)state;
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const struct quote_text t = made(now + 60);
    for (size_t i = 0; i < strlen(t.s); i++)
        for (const char *c = letters; *c; c++) {
            struct quote_text other = t;
            other.s[i] = *c;
            assert_int_equal(read_at(other.s, now), *c == t.s[i] ? QUOTE_OK : QUOTE_OTHER);
        }
}

static void test_form(void **state)
{
    (void)state;
    struct quote_id got;
    const struct quote_text t = made(now + 60);
    for (size_t n = 0; n < strlen(t.s); n++)
        assert_int_equal(quote_read(&quote_key, (struct slice){ t.s, n }, "countries", &request, &price, now, &got),
                         QUOTE_OTHER);
    OWNED char *longer = str_format("%sA", t.s), *padded = str_format("%s==", t.s), *broken = str_format("%s\n", t.s);
    assert_int_equal(read_at(longer, now), QUOTE_OTHER);
    assert_int_equal(read_at(padded, now), QUOTE_OTHER);
    assert_int_equal(read_at(broken, now), QUOTE_OTHER);
}

static void is_other(const char *text)
{
    assert_int_equal(read_at(text, now), QUOTE_OTHER);
}

static void test_other_terms(void **state)
{
    (void)state;
    const struct quote_text t = made(now + 60);
    const struct price price_was = price;
    const struct token token_was = token;
    struct quote_id got;
    price.amount = amount_of(10001);
    is_other(t.s);
    assert_true(amount_read("115792089237316195423570985008687907853269984665640564039457584007913129639935", 78,
                            &price.amount));
    is_other(t.s);
    price = price_was;
    price.pay_to.b[19] ^= 1;
    is_other(t.s);
    price = price_was;
    token.address.b[0] ^= 1;
    is_other(t.s);
    token = token_was;
    net.chain_id = 8453;
    is_other(t.s);
    net.chain_id = 84532;
    assert_int_equal(read_at(t.s, now), QUOTE_OK);

    struct hash32 other = request;
    other.b[31] ^= 1;
    assert_int_equal(quote_read(&quote_key, slice_of(t.s), "countries", &other, &price, now, &got), QUOTE_OTHER);
    assert_int_equal(quote_read(&quote_key, slice_of(t.s), "countrie", &request, &price, now, &got), QUOTE_OTHER);
    assert_int_equal(quote_read(&quote_key, slice_of(t.s), "countriesx", &request, &price, now, &got), QUOTE_OTHER);
    struct quote_key key = quote_key;
    key.b[0][31] ^= 1;
    assert_int_equal(quote_read(&key, slice_of(t.s), "countries", &request, &price, now, &got), QUOTE_OTHER);
    memcpy(key.b[key.n++], quote_key.b[0], 32); /* the one before is honoured still */
    assert_int_equal(quote_read(&key, slice_of(t.s), "countries", &request, &price, now, &got), QUOTE_OK);
}

/* ---- the key's file ---- */

static void key_file(const char *text, mode_t mode, bool good)
{
    char path[] = "/tmp/payonce-quote-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    struct quote_key k = { .n = 0 };
    const bool loaded = quote_key_load(path, &k);
    unlink(path);
    assert_true(loaded == good);
    if (good)
        assert_int_equal(k.b[0][31], 0xab);
}

#define HEX62 "00000000000000000000000000000000000000000000000000000000000000"
static void test_key_file(void **state)
{
    (void)state;
    struct quote_key k;
    key_file(HEX62 "ab", 0600, true);
    key_file(HEX62 "AB\n", 0400, true);
    key_file(HEX62 "ab\r\n", 0600, true);
    key_file(HEX62 "ab", 0640, false);
    key_file(HEX62 "ab", 0604, false);
    key_file(HEX62 "a", 0600, false);
    key_file(HEX62 "abab", 0600, false);
    key_file(HEX62 "xy", 0600, false);
    key_file("", 0600, false);
    key_file("\n", 0600, false);
    key_file(HEX62 "ab\n" HEX62 "cd\r\n", 0600, true);
    key_file(HEX62 "ab\n\n" HEX62 "cd\n", 0600, false);
    key_file(HEX62 "ab\n" HEX62 "c\n", 0600, false);
    key_file(HEX62 "ab\n" HEX62 "cd\n" HEX62 "ef\n" HEX62 "01\n", 0600, true);
    key_file(HEX62 "ab\n" HEX62 "cd\n" HEX62 "ef\n" HEX62 "01\n" HEX62 "02\n", 0600, false);
    assert_false(quote_key_load("/nowhere/quote.key", &k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_expiry),      cmocka_unit_test(test_altered),
        cmocka_unit_test(test_form),       cmocka_unit_test(test_other_terms), cmocka_unit_test(test_key_file),
    };
    return cmocka_run_group_tests(tests, start, sale_stop);
}
