/* What a configuration may say, and the words in which a bad one is refused. */
#include "tests/unit/test.h"

#include "tests/config/good.h"

static void test_every_key_is_read(void **state)
{
    (void)state;
    struct config_why why;
    JSON *j = good_json();
    struct config *c = load_json(j, &why);
    assert_non_null(c);
    assert_string_equal(c->public_url, "https://api.example.com");
    assert_string_equal(c->listen, "0.0.0.0:8402");
    assert_int_equal(c->trusted_proxy_count, 2);
    assert_string_equal(c->trusted_proxies[1], "10.1.0.0/16");
    assert_string_equal(c->state_dir, "/tmp/state");
    assert_int_equal(c->database_connections, 8);
    assert_int_equal(c->wait_ms, 20000);
    const struct net *n = &c->nets[0];
    assert_int_equal(n->chain_id, 84532);
    assert_string_equal(n->v1_name, "base-sepolia");
    assert_int_equal(n->depth, 2);
    assert_int_equal(n->finality_blocks, 10);
    assert_int_equal(n->batch_gas_max, 1000000);
    assert_string_equal(amount_text(n->tip_min).s, "5000000");
    assert_string_equal(amount_text(n->fee_max).s, "7000000");
    assert_int_equal(n->tokens[0].chain_id, 84532);
    assert_string_equal(hash_text(&n->tokens[0].domain).s,
                        "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818");
    const struct tool *t = &c->tools[0];
    assert_string_equal(t->method, "GET");
    assert_int_equal(t->side_effect, EFFECT_READ);
    assert_true(t->cacheable && t->upstream_idempotent);
    assert_int_equal(t->max_timeout_s, 90);
    assert_int_equal(t->max_answer, 2000);
    assert_ptr_equal(t->prices[0].net, n);
    assert_ptr_equal(t->prices[0].token, &n->tokens[0]);
    assert_string_equal(amount_text(t->prices[0].amount).s, "1000");
    assert_string_equal(address_lower(&t->prices[0].pay_to).s, "0x2222222222222222222222222222222222222222");
    const struct seller *s = &c->sellers[0];
    assert_false(s->open);
    assert_string_equal(hash_text(&s->key_digest).s, "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_ptr_equal(s->serves[0].token, &n->tokens[0]);
    assert_string_equal(amount_text(s->serves[0].amount).s, "5000000");
    assert_int_equal(s->repeat_wait_ms, 80000);
    assert_int_equal(n->served_count, 1);
    config_free(c);
}

static void test_defaults(void **state)
{
    (void)state;
    struct config_why why;
    struct config *c = load_text("{\"public_url\":\"http://localhost:8402\",\"state_dir\":\"/var/lib/x\",\"networks\":[{"
                                 "\"id\":\"eip155:8453\",\"rpc\":[\"https://rpc.example\"],"
                                 "\"pay_to\":\"0x1111111111111111111111111111111111111111\"}],\"tools\":[{"
                                 "\"name\":\"a\",\"method\":\"POST\",\"path\":\"/a\",\"upstream\":\"http://u\","
                                 "\"side_effect\":\"write\",\"prices\":[{\"network\":\"eip155:8453\","
                                 "\"token\":\"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913\",\"amount\":\"1\"}]}]}",
                                 &why);
    assert_non_null(c);
    assert_string_equal(c->listen, "127.0.0.1:8402");
    assert_string_equal(c->admin_listen, "127.0.0.1:8403");
    assert_string_equal(c->state_dir, "/var/lib/x");
    assert_null(c->database);
    assert_int_equal(c->max_connections, 20000);
    assert_string_equal(c->seller, "");
    assert_string_equal(c->nets[0].tokens[0].name, "USD Coin");
    assert_string_equal(amount_text(c->nets[0].fee_max).s, "500000000000");
    assert_int_equal(c->nets[0].depth, 1);
    assert_int_equal(c->tools[0].timeout_ms, 20000);
    assert_int_equal(c->tools[0].max_body, 262144);
    assert_int_equal(c->tools[0].side_effect, EFFECT_WRITE);
    assert_string_equal(address_lower(&c->tools[0].prices[0].pay_to).s, "0x1111111111111111111111111111111111111111");
    config_free(c);
}

/* ---- refusals ---- */

#define USDC "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
#define TOOL(name, method, path) \
    "{\"name\":\"" name "\",\"method\":\"" method "\",\"path\":\"" path "\",\"upstream\":\"http://u\"," \
    "\"side_effect\":\"read\"}"

#define SERVE "{\"network\":\"eip155:84532\",\"token\":\"USDC\",\"pay_to\":\"0x3333333333333333333333333333333333333333\"}"
#define SELLER(name, key) "{\"name\":\"" name "\",\"key\":\"" key "\",\"accepts\":[" SERVE "]}"
#define KEY "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* A change to the good file: at `in`, `key` becomes the JSON text `value` (NULL: it is removed). */
struct change { const char *in, *key, *value, *expected; };
static const struct change changes[] = {
    { "/networks/0", "dept", "1", "networks[0].dept: unknown key, did you mean \"depth\"?" },
    { "/networks/0", "payTo", "1", "networks[0].payTo: unknown key, did you mean \"pay_to\"?" },
    { "/networks/0", "rcp", "[]", "networks[0].rcp: unknown key, did you mean \"rpc\"?" },
    { "/networks/0", "rpc_url", "1", "networks[0].rpc_url: unknown key, did you mean \"rpc\"?" },
    { "/networks/0", "finality", "1", "networks[0].finality: unknown key, did you mean \"finality_blocks\"?" },
    { "/networks/0", "max_fee_wei", "1", "networks[0].max_fee_wei: unknown key, did you mean \"fee_max_wei\"?" },
    { "/tools/0", "timeout", "1", "tools[0].timeout: unknown key, did you mean \"timeout_ms\"?" },
    { "/", "Listen", "1", "Listen: unknown key, did you mean \"listen\"?" },
    { "/tools/0/prices/0", "price", "1", "tools[0].prices[0].price: unknown key; known are network, token, amount, pay_to" },
    { "/networks/0/tokens/0", "decimal", "6", "networks[0].tokens[0].decimal: unknown key, did you mean \"decimals\"?" },
    { "/", "public_url", NULL, "public_url: is missing" },
    { "/tools/0", "side_effect", NULL, "tools[0].side_effect: is missing" },
    { "/tools/0/prices/0", "amount", "1000",
      "tools[0].prices[0].amount: amounts are strings (\"1000\"): a JSON number can lose digits on its way" },
    { "/tools/0/prices/0", "amount", "\"0\"", "tools[0].prices[0].amount: must not be zero" },
    { "/tools/0/prices/0", "amount", "\"01\"", "tools[0].prices[0].amount: must be a string of decimal digits" },
    { "/tools/0/prices/0", "amount", "\"1e3\"", "tools[0].prices[0].amount: must be a string of decimal digits" },
    { "/tools/0/prices/0", "token", "\"USDT\"", "tools[0].prices[0].token: eip155:84532 has no token USDT; it has USDC" },
    { "/tools/0/prices/0", "network", "\"eip155:8453\"", "tools[0].prices[0].network: eip155:8453 is not among networks" },
    { "/tools/0/prices/0", "pay_to", "\"" USDC "\"", "tools[0].prices[0].pay_to: is the token's own address" },
    { "/networks/0", "pay_to", "\"" USDC "\"", "networks[0].pay_to: is the token's own address" },
    { "/networks/0", "pay_to", "\"0x0000000000000000000000000000000000000000\"",
      "networks[0].pay_to: must not be the zero address" },
    { "/networks/0", "depth", "0", "networks[0].depth: must be from 1 to 10000" },
    { "/networks/0", "depth", "1.0", "networks[0].depth: must be a whole number" },
    { "/networks/0", "rpc", "[]", "networks[0].rpc: must hold at least 1" },
    { "/networks/0", "rpc", "[\"ws://x\"]", "networks[0].rpc[0]: must begin with http:// or https://" },
    { "/networks/0", "rpc", "[7]", "networks[0].rpc[0]: must be a string" },
    { "/networks/0", "id", "\"base-sepolia\"", "networks[0].id: must be a CAIP-2 id" },
    { "/networks/0", "tip_min_wei", "\"8000000\"", "networks[0].tip_min_wei: must not be above fee_max_wei" },
    { "/", "networks", "[]", "networks: must hold at least 1" },
    { "/", "public_url", "\"https://api.example.com/\"", "public_url: must not end with a slash" },
    { "/", "public_url", "\"api.example.com\"", "public_url: must begin with http:// or https://" },
    { "/", "listen", "\"8402\"", "listen: must be host:port" },
    { "/", "listen", "\"127.0.0.1:70000\"", "listen: must be host:port" },
    { "/", "listen", "\"::1:80\"", "listen: must be host:port" },
    { "/", "admin_listen", "\"0.0.0.0:8402\"", "admin_listen: must not be the same as listen" },
    { "/", "trusted_proxies", "[\"10.0.0.0/33\"]", "trusted_proxies[0]: must be an IP address" },
    { "/", "trusted_proxies", "\"10.0.0.1\"", "trusted_proxies: must be a list" },
    { "/tools/0", "cacheable", "1", "tools[0].cacheable: must be true or false" },
    { "/tools/0", "side_effect", "\"write\"", "tools[0].cacheable: a tool with side_effect write cannot be" },
    { "/tools/0", "side_effect", "\"some\"", "tools[0].side_effect: must be one of none, read, write, irreversible" },
    { "/tools/0", "method", "\"HEAD\"", "tools[0].method: must be one of GET, POST, PUT, PATCH, DELETE" },
    { "/tools/0", "path", "\"/a/\"", "tools[0].path: " },
    { "/tools/0", "path", "\"/orders/{id}\"", "tools[0].path: is one of Payonce's own addresses" },
    { "/tools/0", "upstream", "\"http://u/\"", "tools[0].upstream: must not end with a slash" },
    { "/tools/0", "timeout_ms", "75000", "tools[0].timeout_ms: with 15000 ms to settle on eip155:84532 there is not enough" },
    { "/", "tools", "[" TOOL("a", "GET", "/a") "," TOOL("a", "GET", "/b") "]", "tools[1].name: is already that of tools[0]" },
    { "/", "tools", "[" TOOL("a", "GET", "/a") "," TOOL("b", "GET", "/a") "]", "tools[1].path: GET /a overlaps tools[0]" },
    { "/", "tools", "[" TOOL("a", "GET", "/a/{x}") "," TOOL("b", "GET", "/a/all") "]",
      "tools[1].path: GET /a/all overlaps tools[0], /a/{x}" },
    { "/sellers/0", "key", "\"secret\"", "sellers[0].key: must be open, or sha256:" },
    { "/sellers/0", "key", "\"sha256:12\"", "sellers[0].key: must be open, or sha256:" },
    { "/sellers/0", "name", "\"a/b\"", "sellers[0].name: must be of letters" },
    { "/sellers/0", "webhook", "\"ftp://a\"", "sellers[0].webhook: " },
    { "/sellers/0", "accepts", "[]", "sellers[0].accepts: must hold at least 1" },
    { "/sellers/0/accepts/0", "pay_to", NULL, "sellers[0].accepts[0].pay_to: is missing" },
    { "/sellers/0/accepts/0", "pay_to", "\"" USDC "\"", "sellers[0].accepts[0].pay_to: is the token's own address" },
    { "/sellers/0/accepts/0", "token", "\"USDT\"", "sellers[0].accepts[0].token: eip155:84532 has no token USDT" },
    { "/sellers/0", "accepts", "[" SERVE "," SERVE "]", "sellers[0].accepts[1]: network, token and pay_to are already those of acme" },
    { "/", "sellers", "[" SELLER("a", "open") "," SELLER("a", "open") "]", "sellers[1].name: is already that of sellers[0]" },
    { "/", "sellers", "[" SELLER("a", "open") "," SELLER("b", "open") "]",
      "sellers[1].accepts[0]: network, token and pay_to are already those of a" },
    { "/", "sellers", "[" SELLER("a", KEY) "," SELLER("b", KEY) "]", "sellers[1].key: is already that of sellers[0]" },
};

static json_t *at_path(json_t *j, const char *path)
{
    OWNED char *copy = str_copy(path);
    char *rest = NULL;
    for (char *part = strtok_r(copy, "/", &rest); part; part = strtok_r(NULL, "/", &rest))
        j = json_is_array(j) ? json_array_get(j, (size_t)atoi(part)) : json_object_get(j, part);
    return j;
}

static void apply(json_t *j, const struct change *c)
{
    json_t *object = at_path(j, c->in);
    assert_non_null(object);
    if (c->value)
        json_object_set_new(object, c->key, json_loads(c->value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(object, c->key);
}

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct config_why why = { "" };
        JSON *j = good_json();
        apply(j, &changes[i]);
        struct config *c = load_json(j, &why);
        if (c || strncmp(why.text, changes[i].expected, strlen(changes[i].expected)) != 0)
            fail_msg("%s of %s: '%s', not '%s'", changes[i].key, changes[i].in, c ? "accepted" : why.text,
                     changes[i].expected);
    }
}

static const struct change fine[] = {
    { "/", "tools", "[" TOOL("a", "GET", "/a/{x}") "," TOOL("b", "POST", "/a/all") "]", NULL },
    { "/", "tools", "[" TOOL("a", "GET", "/a/{x}") "," TOOL("b", "GET", "/a/{x}/y") "]", NULL },
    { "/", "tools", "[" TOOL("a", "GET", "/a") "," TOOL("b", "GET", "/ab") "]", NULL },
    { "/", "listen", "\"[::]:80\"", NULL },
    { "/", "public_url", "\"https://api.example.com/shop\"", NULL },
    { "/", "state_dir", NULL, NULL },
    { "/", "database", NULL, NULL },
    { "/networks/0", "tokens", NULL, NULL },
    { "/tools/0", "timeout_ms", "74999", NULL },
    { "/tools/0", "prices", NULL, NULL },
    { "/", "sellers", NULL, NULL },
    { "/", "tools", "[]", NULL },
    { "/sellers/0", "key", "\"open\"", NULL },
};

static void test_what_is_fine(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fine); i++) {
        struct config_why why = { "" };
        JSON *j = good_json();
        apply(j, &fine[i]);
        struct config *c = load_json(j, &why);
        if (!c)
            fail_msg("%s of %s: '%s'", fine[i].key, fine[i].in, why.text);
        config_free(c);
    }
}

static void test_without_any_store(void **state)
{
    (void)state;
    struct config_why why = { "" };
    JSON *j = good_json();
    json_object_del(j, "database");
    json_object_del(j, "state_dir");
    assert_null(load_json(j, &why));
    assert_non_null(strstr(why.text, "state_dir: is missing"));
}

static void test_an_unknown_chain_needs_tokens(void **state)
{
    (void)state;
    struct config_why why = { "" };
    JSON *j = good_json();
    json_object_set_new(at_path(j, "/networks/0"), "id", json_string("eip155:31337"));
    json_object_set_new(at_path(j, "/tools/0/prices/0"), "network", json_string("eip155:31337"));
    json_object_set_new(at_path(j, "/sellers/0/accepts/0"), "network", json_string("eip155:31337"));
    json_object_set_new(at_path(j, "/refunds/0"), "network", json_string("eip155:31337"));
    struct config *c = load_json(j, &why);
    assert_non_null(c);
    assert_null(c->nets[0].v1_name);
    config_free(c);
    json_object_del(at_path(j, "/networks/0"), "tokens");
    assert_null(load_json(j, &why));
    assert_string_equal(why.text, "networks[0].tokens: is missing, and no token of eip155:31337 is built in");
}

/* On Tempo the wallet pays fees in a token: the one that goes back, or another that is named; elsewhere none is. */
static void test_fee_token(void **state)
{
    (void)state;
    struct config_why why = { "" };
    JSON *j = good_json();
    json_object_set_new(at_path(j, "/refunds/0"), "fee_token", json_string("USDC"));
    assert_null(load_json(j, &why));
    assert_string_equal(why.text, "refunds[0].fee_token: on eip155:84532 the relayer pays for refunds, and not in tokens");
    json_object_del(at_path(j, "/refunds/0"), "fee_token");
    json_array_append_new(json_object_get(j, "networks"),
                          json_pack("{s:s, s:[s], s:s}", "id", "eip155:42431", "rpc", "http://127.0.0.1:8546", "pay_to",
                                    "0x1111111111111111111111111111111111111111"));
    json_array_append_new(json_object_get(j, "refunds"), json_pack("{s:s, s:s, s:s}", "network", "eip155:42431", "token",
                                                                   "AlphaUSD", "mode", "automatic"));
    struct config *c = load_json(j, &why);
    if (!c)
        fail_msg("%s", why.text);
    assert_true(c->refunds[1].net == &c->nets[1] && c->refunds[1].fee_token == c->refunds[1].token);
    assert_true(c->refunds[0].fee_token == c->refunds[0].token);
    config_free(c);
    json_object_set_new(at_path(j, "/refunds/1"), "fee_token", json_string("pathUSD"));
    assert_non_null(c = load_json(j, &why));
    assert_string_equal(c->refunds[1].fee_token->symbol, "pathUSD");
    assert_string_equal(c->refunds[1].token->symbol, "AlphaUSD");
    config_free(c);
    json_object_set_new(at_path(j, "/refunds/1"), "fee_token", json_string("EURC"));
    assert_null(load_json(j, &why));
    assert_string_equal(why.text, "refunds[1].fee_token: eip155:42431 has no token EURC");
}

/* What a facilitator settles is x402's. */
static void test_no_facilitator_on_tempo(void **state)
{
    (void)state;
    struct config_why why = { "" };
    JSON *j = good_json();
    json_array_append_new(json_object_get(j, "networks"),
                          json_pack("{s:s, s:[s], s:s}", "id", "eip155:42431", "rpc", "http://127.0.0.1:8546", "pay_to",
                                    "0x1111111111111111111111111111111111111111"));
    json_t *accepts = at_path(j, "/sellers/0/accepts/0");
    json_object_set_new(accepts, "network", json_string("eip155:42431"));
    json_object_set_new(accepts, "token", json_string("pathUSD"));
    assert_null(load_json(j, &why));
    assert_string_equal(why.text, "sellers[0].accepts[0].network: x402, which a facilitator settles, is not on eip155:42431");
}

static void test_not_a_configuration(void **state)
{
    (void)state;
    struct config_why why;
    assert_null(load_text("", &why));
    assert_null(load_text("[]", &why));
    assert_string_equal(why.text, "the file: must be an object");
    assert_null(load_text("{\"public_url\":\"a\",\"public_url\":\"b\"}", &why));
    assert_non_null(strstr(why.text, "is not JSON"));
    assert_null(config_load("/nonexistent/payonce.json", &why));
    assert_non_null(strstr(why.text, "cannot be read"));
}

static void test_nearest(void **state)
{
    (void)state;
    assert_string_equal(conf_nearest(&conf_file, "publicUrl"), "public_url");
    assert_string_equal(conf_nearest(&conf_file, "network"), "networks");
    assert_string_equal(conf_nearest(&conf_file, "WAIT_MS"), "wait_ms");
    assert_string_equal(conf_nearest(&conf_file, "wait"), "wait_ms");
    assert_string_equal(conf_nearest(&conf_file, "database_url"), "database");
    assert_string_equal(conf_nearest(&conf_file, "proxies"), "trusted_proxies");
    assert_null(conf_nearest(&conf_file, "zzzzzz"));
    assert_null(conf_nearest(&conf_file, "_"));
    assert_null(conf_nearest(&conf_file, ""));
    assert_null(conf_nearest(&conf_file, "a key that is far longer than any key of this file could ever be, and more"));
}

static void test_the_example(void **state)
{
    (void)state;
    struct config_why why = { "" };
    struct config *c = config_load(EXAMPLE, &why);
    if (!c)
        fail_msg("%s", why.text);
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_is_read),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_what_is_fine),
        cmocka_unit_test(test_without_any_store),
        cmocka_unit_test(test_an_unknown_chain_needs_tokens),
        cmocka_unit_test(test_fee_token),
        cmocka_unit_test(test_no_facilitator_on_tempo), cmocka_unit_test(test_not_a_configuration),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_the_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
