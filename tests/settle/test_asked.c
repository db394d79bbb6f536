/* What a seller's server asks of a facilitator, read: the official packages' own payments are taken, each way to spoil the request
 * has its own reason, and what identifies a settlement does not hang on spelling. */
#include "sale.h"

#include <string.h>

static struct x402_asked asked;
static json_t *root;

/* {"paymentPayload": the vector's, "paymentRequirements": for its price} */
static char *text_of(const char *vector, const struct price *p)
{
    OWNED char *payment_json = payment_text(vector);
    const bool v1 = vector[1] == '1';
    return str_format("{\"x402Version\":%c,\"paymentPayload\":%s,\"paymentRequirements\":{\"scheme\":\"exact\",\"network\":\"%s\",\"%s\":\"%s\","
                      "\"asset\":\"%s\",\"payTo\":\"%s\",\"maxTimeoutSeconds\":60,\"extra\":{\"name\":\"%s\",\"version\":\"%s\"}}}",
                      vector[1], payment_json, v1 ? p->net->v1_name : p->net->id, v1 ? "maxAmountRequired" : "amount",
                      amount_text(p->amount).s, address_checksum(&p->token->address).s, address_checksum(&p->pay_to).s, p->token->name,
                      p->token->version);
}

static enum reason read_asked(const char *text, const struct token *token)
{
    struct json_why why;
    json_decref(root);
    root = json_read(text, strlen(text), &why);
    assert_non_null(root);
    enum reason r = x402_asked(root, nets, COUNT(nets), &asked);
    return r == REASON_NONE ? x402_serve(&asked, token) : r;
}

static void test_vectors(void **state)
{
    (void)state;
    static const struct { const char *vector; int price; } good[] = {
        { V2, PRICE_SEPOLIA },
        { "v2-exact-eip3009-31337", PRICE_LOCAL },
        { "v2-exact-eip3009-8453-usd-coin", PRICE_BASE },
        { V1, PRICE_SEPOLIA },
        { "v1-exact-8453", PRICE_BASE },
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        const struct price *p = &prices[good[i].price];
        OWNED char *text = text_of(good[i].vector, p);
        assert_int_equal(read_asked(text, p->token), REASON_NONE);
        assert_int_equal(asked.version, good[i].vector[1] - '0');
        assert_true(asked.payment.signer_proven);
        assert_ptr_equal(asked.net, p->net);
        assert_int_equal(asked.max_timeout_s, 60);
        assert_true(address_eq(&asked.pay_to, &p->pay_to));
        assert_string_equal(amount_text(asked.payment.price.amount).s, "10000");
        assert_string_equal(asked.payer, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
        assert_string_equal(asked.network, asked.version == 1 ? p->net->v1_name : p->net->id);
    }
}

static const struct spoilt {
    const char *vector, *find, *put;
    enum reason reason;
} spoilt[] = {
    { V2, "\"paymentPayload\":{", "\"paymentPayload\":[{}],\"other\":{", REASON_MISSING },
    { V2, "\"paymentRequirements\":{", "\"requirements\":{", REASON_MISSING },
    { V2, "\"paymentPayload\":{\"x402Version\":2", "\"paymentPayload\":{\"x402Version\":3", REASON_VERSION },
    { V2, "\"paymentPayload\":{\"x402Version\":2", "\"paymentPayload\":{\"x402Version\":\"2\"", REASON_VERSION },
    { V2, "\"paymentRequirements\":{\"scheme\":\"exact\"", "\"paymentRequirements\":{\"scheme\":\"upto\"", REASON_SCHEME },
    { V2, "\"exact\",\"network\":\"eip155:84532\",\"amount\":\"10000\",\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\",\"payTo\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"maxTimeoutSeconds\":60,\"extra\":{\"name\":\"USDC\",\"version\":\"2\"}}}",
      "\"exact\",\"network\":\"eip155:1\"}}", REASON_NETWORK },
    { V2, "\"validAfter\":\"0\"", "\"validAfter\":0", REASON_PAYLOAD },
    { V2, "\"amount\":\"10000\",\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\",\"payTo\":\"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\",\"maxTimeoutSeconds\":60,\"extra\":{\"name\":\"USDC\",\"version\":\"2\"}}}",
      "\"amount\":10000}}", REASON_BAD_REQUIREMENTS },
    { V1, "\"maxAmountRequired\":\"10000\"", "\"maxAmountRequired\":\"1e4\"", REASON_BAD_REQUIREMENTS },
    { V1, "\"maxTimeoutSeconds\":60", "\"maxTimeoutSeconds\":-1", REASON_BAD_REQUIREMENTS },
    { V1, "\"maxTimeoutSeconds\":60", "\"maxTimeoutSeconds\":60.5", REASON_BAD_REQUIREMENTS },
    { V1, "\"payTo\":\"0x", "\"payTo\":\"1x", REASON_BAD_REQUIREMENTS },
    { V1, "\"x402Version\":1,\"scheme\":\"exact\"", "\"x402Version\":1,\"scheme\":\"other\"", REASON_SCHEME_MISMATCH },
    { V1, ",\"extra\":{\"name\":\"USDC\",\"version\":\"2\"}", "", REASON_MISSING_DOMAIN },
    { V1, "\"version\":\"2\"", "\"version\":\"1\"", REASON_TOKEN_VERSION },
    { V1, "\"name\":\"USDC\"", "\"name\":\"USD Coin\"", REASON_TOKEN_NAME },
};

static void test_spoilt(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(spoilt); i++) {
        OWNED char *good = text_of(spoilt[i].vector, &prices[PRICE_SEPOLIA]);
        const char *at = strstr(good, spoilt[i].find);
        if (!at)
            fail_msg("%zu: %s is not in %s", i, spoilt[i].find, good);
        OWNED char *bad = str_format("%.*s%s%s", (int)(at - good), good, spoilt[i].put, at + strlen(spoilt[i].find));
        const enum reason r = read_asked(bad, prices[PRICE_SEPOLIA].token);
        if (r != spoilt[i].reason)
            fail_msg("%zu: %s: reason %d, not %d: %s", i, spoilt[i].put, (int)r, (int)spoilt[i].reason, bad);
    }
}

static struct hash32 terms_of(const char *vector, const char *find, const char *put)
{
    OWNED char *good = text_of(vector, &prices[PRICE_SEPOLIA]);
    const char *at = find ? strstr(good, find) : good;
    assert_non_null(at);
    OWNED char *text = find ? str_format("%.*s%s%s", (int)(at - good), good, put, at + strlen(find)) : str_copy(good);
    (void)read_asked(text, prices[PRICE_SEPOLIA].token);
    return asked.terms;
}

/* The terms are network, asset, payee and price; versions, time limits and spellings are not. */
static void test_terms(void **state)
{
    (void)state;
    const struct hash32 a = terms_of(V2, NULL, NULL), v1 = terms_of(V1, NULL, NULL);
    const struct hash32 time = terms_of(V1, "\"maxTimeoutSeconds\":60", "\"maxTimeoutSeconds\":61");
    const struct hash32 case_ = terms_of(V1, "\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\"",
                                         "\"asset\":\"0x036cbd53842c5426634e7929541ec2318f3dcf7e\"");
    const struct hash32 price = terms_of(V1, "\"maxAmountRequired\":\"10000\"", "\"maxAmountRequired\":\"9999\"");
    assert_true(hash_eq(&a, &v1) && hash_eq(&a, &time) && hash_eq(&a, &case_));
    assert_false(hash_eq(&a, &price));
}

/* v1 settles what was signed where that is more than the price; v2's price is exact. */
static void test_price(void **state)
{
    (void)state;
    (void)terms_of(V1, "\"maxAmountRequired\":\"10000\"", "\"maxAmountRequired\":\"9999\"");
    assert_string_equal(amount_text(asked.payment.price.amount).s, "10000");
    (void)terms_of(V1, "\"maxAmountRequired\":\"10000\"", "\"maxAmountRequired\":\"10001\"");
    assert_string_equal(amount_text(asked.payment.price.amount).s, "10001");
}

static int stop(void **state)
{
    json_decref(root);
    root = NULL;
    return sale_stop(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_price),
    };
    return cmocka_run_group_tests(tests, sale_start, stop);
}
