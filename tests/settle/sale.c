#include "sale.h"

#include <string.h>

static struct token tokens[PRICE_COUNT] = {
    { .chain_id = 84532, .name = "USDC", .version = "2", .symbol = "USDC", .decimals = 6 },
    { .chain_id = 31337, .name = "USDC", .version = "2", .symbol = "USDC", .decimals = 6 },
    { .chain_id = 8453, .name = "USD Coin", .version = "2", .symbol = "USDC", .decimals = 6 },
    { .chain_id = 84532,
      .name = "USD\xe2\x82\xae"
              "0",
      .version = "1",
      .symbol = "USDT0",
      .decimals = 6 },
};
static const char *const token_addresses[PRICE_COUNT] = {
    "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    "0x5FbDB2315678afecb367f032d93F642f64180aa3",
    "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
};

struct net nets[3] = {
    { .id = "eip155:84532", .v1_name = "base-sepolia", .chain_id = 84532, .depth = 1, .block_time_ms = 2000 },
    { .id = "eip155:31337", .chain_id = 31337, .depth = 1, .block_time_ms = 2000 },
    { .id = "eip155:8453", .v1_name = "base", .chain_id = 8453, .depth = 1, .block_time_ms = 2000 },
};
struct price prices[PRICE_COUNT] = {
    { .net = &nets[NET_SEPOLIA], .token = &tokens[0] },
    { .net = &nets[NET_LOCAL], .token = &tokens[1] },
    { .net = &nets[NET_BASE], .token = &tokens[2] },
    { .net = &nets[NET_SEPOLIA], .token = &tokens[3] },
};
struct terms terms = { .tool = "countries", .prices = prices, .price_count = PRICE_COUNT, .max_timeout_s = 60 };
const struct quote_key quote_key = { { { 7, 7, 7 } }, 1 };
const struct hash32 request = { { 1, 2, 3 } };
int64_t now = 1800000000;
const struct x402_in in = { &terms, &quote_key, &request, 1800000000 };
json_t *vectors;

int sale_start(void **state)
{
    (void)state;
    json_error_t e;
    vectors = json_load_file(PAYMENTS, JSON_REJECT_DUPLICATES, &e);
    assert_non_null(vectors);
    for (size_t i = 0; i < PRICE_COUNT; i++) {
        assert_true(address_read(token_addresses[i], 42, &tokens[i].address));
        assert_true(address_read("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC", 42, &prices[i].pay_to));
        prices[i].amount = amount_of(10000);
        token_domain(&tokens[i]);
    }
    return 0;
}

int sale_stop(void **state)
{
    (void)state;
    json_decref(vectors);
    return 0;
}

struct quote_text quote_for(const struct price *price, int64_t expires)
{
    const struct quote_id id = { { 0xaa, 0xbb } };
    struct quote_text t;
    quote_write(&quote_key, &id, expires, terms.tool, &request, price, &t);
    return t;
}

static const json_t *vector_of(const char *id)
{
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(vectors, "cases"), i, c) if (slice_is(json_slice(c, "id"), id)) return c;
    fail_msg("no vector %s", id);
    return NULL;
}

static const struct price *price_of(const json_t *vector)
{
    const json_t *domain = json_object_get(vector, "domain");
    for (size_t i = 0; i < PRICE_COUNT; i++)
        if ((json_int_t)tokens[i].chain_id == json_integer_value(json_object_get(domain, "chainId")) &&
            slice_is(json_slice(domain, "name"), tokens[i].name))
            return &prices[i];
    fail_msg("no price for a vector");
    return NULL;
}

char *payment_text(const char *vector)
{
    const json_t *v = vector_of(vector);
    JSON *root = json_deep_copy(json_object_get(v, "paymentPayload"));
    json_t *extra = json_object_get(json_object_get(root, "accepted"), "extra");
    if (extra)
        json_object_set_new(extra, "quote", json_string(quote_for(price_of(v), now + 60).s));
    return json_write(root);
}

const char *vector_signature(const char *vector)
{
    return json_str(json_object_get(json_object_get(vector_of(vector), "paymentPayload"), "payload"), "signature");
}

char *replaced(const char *text, const char *find, const char *put)
{
    const char *at = strstr(text, find);
    if (!at || strstr(at + 1, find))
        fail_msg("%s is not in the payment exactly once", find);
    BUF b = { 0 };
    buf_add(&b, text, (size_t)(at - text));
    buf_puts(&b, put);
    buf_puts(&b, at + strlen(find));
    return MOVE(b.p);
}

struct payment payment;
enum reason reason;
const char *detail;
static bool readable;

enum err read_raw(struct slice header, int version)
{
    memset(&payment, 0xee, sizeof payment);
    reason = REASON_SIMULATION;
    detail = "untouched";
    return x402_payment(&in, header, version, &payment, &reason, &readable, &detail);
}

enum err read_bytes(const char *json, size_t n, int version)
{
    BUF header = { 0 };
    base64_add(&header, json, n);
    return read_raw((struct slice){ header.p, header.n }, version);
}

enum err read_text(const char *json, int version)
{
    return read_bytes(json, strlen(json), version);
}
