#include "test.h"

#include <string.h>

#include "chain/chain.h"

static void networks(void **state)
{
    (void)state;
    const struct network *base = network_by_chain(8453);
    assert_non_null(base);
    assert_string_equal(base->id, "eip155:8453");
    assert_ptr_equal(network_by_v1_name("base"), base);
    assert_int_equal(network_by_v1_name("base-sepolia")->chain_id, 84532);
    assert_int_equal(network_by_v1_name("skale-base-sepolia")->chain_id, 324705682);
    assert_null(network_by_chain(42161)->v1_name);
    assert_null(network_by_chain(31337));
    assert_null(network_by_v1_name("solana"));
    assert_null(network_by_v1_name("Base"));
    assert_null(network_by_v1_name(""));
}

static void tokens(void **state)
{
    (void)state;
    const struct token *usdc = token_built_in(8453, 0);
    assert_string_equal(usdc->name, "USD Coin");
    assert_string_equal(usdc->symbol, "USDC");
    assert_int_equal(usdc->decimals, 6);
    assert_string_equal(address_checksum(&usdc->address).s, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
    assert_string_equal(hash_text(&usdc->domain).s,
                        "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f");
    assert_null(token_built_in(8453, 1));
    assert_string_equal(token_built_in(42220, 0)->symbol, "USDC");
    assert_string_equal(token_built_in(42220, 1)->symbol, "USDT");
    assert_string_equal(token_built_in(42220, 2)->symbol, "USAT");
    assert_null(token_built_in(42220, 3));
    assert_null(token_built_in(4326, 0)); /* MegaUSD takes no EIP-3009 */
    assert_null(token_built_in(31337, 0));
}

/* Every known network spells its own id, every name finds its network, and every token is whole. */
static void tables_agree(void **state)
{
    (void)state;
    static const uint64_t chains[] = {
        1,     14,    50,    51,     137,    143,    988,      1328,     1329,      1514,  2201,
        2741,  3338,  4326,  4689,   8453,   11124,  36900,    41923,    42161,     42220, 43113,
        43114, 80002, 84532, 181228, 190415, 421614, 11142220, 11155111, 324705682,
    };
    size_t token_count = 0;
    for (size_t i = 0; i < COUNT(chains); i++) {
        const struct network *n = network_by_chain(chains[i]);
        uint64_t chain;
        assert_non_null(n);
        assert_true(network_id_read(n->id, &chain));
        assert_true(chain == chains[i] && n->chain_id == chain);
        if (n->v1_name)
            assert_ptr_equal(network_by_v1_name(n->v1_name), n);
        const struct token *t;
        for (size_t k = 0; (t = token_built_in(chain, k)); k++, token_count++) {
            struct token copy = *t;
            memset(&copy.domain, 0, sizeof copy.domain);
            token_domain(&copy);
            assert_true(hash_eq(&copy.domain, &t->domain));
            assert_true(t->chain_id == chain && t->decimals == 6);
        }
    }
    assert_int_equal(token_count, 31);
}

static void ids(void **state)
{
    (void)state;
    uint64_t chain = 5;
    assert_true(network_id_read("eip155:18446744073709551615", &chain));
    assert_true(chain == UINT64_MAX);
    chain = 5;
    static const char *const bad[] = {
        "",
        "eip155",
        "eip155:",
        "eip155:0",
        "eip155:01",
        "eip155:-1",
        "eip155:1 ",
        " eip155:1",
        "EIP155:1",
        "eip155:0x1",
        "eip155:18446744073709551616",
        "solana:1",
        "base",
        "8453",
        "eip155:*",
        "eip155:1e3",
        "eip155::1",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (network_id_read(bad[i], &chain))
            fail_msg("taken: '%s'", bad[i]);
        assert_int_equal(chain, 5);
    }
}

static void constants(void **state)
{
    (void)state;
    const char *transfer = "Transfer(address,address,uint256)", *used = "AuthorizationUsed(address,bytes32)",
               *canceled = "AuthorizationCanceled(address,bytes32)";
    assert_memory_equal(topic_transfer.b, keccak256(transfer, strlen(transfer)).b, 32);
    assert_memory_equal(topic_authorization_used.b, keccak256(used, strlen(used)).b, 32);
    assert_memory_equal(topic_authorization_canceled.b, keccak256(canceled, strlen(canceled)).b, 32);
    assert_string_equal(address_checksum(&multicall3_address).s, "0xcA11bde05977b3631167028862bE2a173976CA11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks), cmocka_unit_test(tokens),    cmocka_unit_test(tables_agree),
        cmocka_unit_test(ids),      cmocka_unit_test(constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
