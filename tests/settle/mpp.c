#include "mpp.h"

#include <string.h>

json_t *vectors;
struct slice mpp_secret;
const char *mpp_realm;

static struct net net = { .id = "eip155:42431", .chain_id = 42431, .depth = 1, .block_time_ms = 500 };
static struct token token = {
    .chain_id = 42431, .name = "pathUSD", .version = "1", .symbol = "pathUSD", .decimals = 6
};
struct price mpp_price = { .net = &net, .token = &token };

int mpp_start(void **state)
{
    (void)state;
    json_error_t e;
    vectors = json_load_file(MPP_VECTORS, JSON_REJECT_DUPLICATES, &e);
    assert_non_null(vectors);
    const json_t *setup = json_object_get(vectors, "setup");
    const struct slice currency = json_slice(setup, "currency"), amount = json_slice(setup, "amount_base_units"),
                       payee = json_slice(json_object_get(setup, "merchant"), "address");
    mpp_secret = json_slice(setup, "hmac_secret_utf8");
    mpp_realm = json_str(setup, "realm");
    assert_true(address_read(currency.p, currency.n, &token.address) &&
                address_read(payee.p, payee.n, &mpp_price.pay_to) &&
                amount_read(amount.p, amount.n, &mpp_price.amount));
    return 0;
}

int mpp_stop(void **state)
{
    (void)state;
    json_decref(vectors);
    return 0;
}

const json_t *mpp_case(const char *name)
{
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(vectors, "cases"), i, c)
        if (slice_is(json_slice(c, "name"), name))
            return c;
    fail_msg("no case %s", name);
    return NULL;
}

struct key mpp_key(const char *who)
{
    const struct slice s = json_slice(json_object_get(json_object_get(vectors, "setup"), who), "private_key");
    struct hash32 secret = { { 0 } };
    struct key k = { .secret = { 0 } };
    assert_true(s.p && hash_read(s.p, s.n, &secret) && key_from_secret(secret.b, &k));
    return k;
}

char *mpp_credential_text(const char *name)
{
    struct slice token68;
    uint8_t *text;
    size_t n;
    assert_int_equal(mpp_credential_find(json_slice(mpp_case(name), "authorization"), &token68), MPP_FAULT_NONE);
    assert_true(base64url_read_any(token68.p, token68.n, &text, &n));
    return (char *)text;
}

enum mpp_fault mpp_read_text(const char *json, struct mpp_credential *ret, const char **ret_detail)
{
    BUF token68 = { 0 };
    base64url_add(&token68, json, strlen(json));
    return mpp_credential_read((struct slice){ token68.p, token68.n }, ret, ret_detail);
}

char *mpp_replaced(const char *text, const char *find, const char *put)
{
    const char *at = strstr(text, find);
    if (!at || strstr(at + 1, find))
        fail_msg("%s is not in the text exactly once", find);
    BUF b = { 0 };
    buf_add(&b, text, (size_t)(at - text));
    buf_puts(&b, put);
    buf_puts(&b, at + strlen(find));
    return MOVE(b.p);
}

size_t mpp_below(size_t n)
{
    static uint64_t seed = 0x9e3779b97f4a7c15u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % n);
}

void mpp_mutate(struct buf *b)
{
    static const char marks[] = "{}[]\",:;=/*\\ \t0Aq";
    for (size_t changes = 1 + mpp_below(3); changes > 0 && b->n > 0; changes--) {
        const size_t at = mpp_below(b->n);
        switch (mpp_below(5)) {
        case 0:
            b->p[at] = (char)mpp_below(256);
            break;
        case 1:
            b->p[at] = marks[mpp_below(sizeof marks)];
            break;
        case 2:
            b->p[at] = (char)(b->p[at] ^ 1 << mpp_below(8));
            break;
        case 3:
            b->n = at;
            break;
        default:
            memmove(b->p + at, b->p + mpp_below(at + 1), b->n - at > 8 ? 8 : 0);
            break;
        }
    }
}
