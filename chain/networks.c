#include <string.h>

#include "chain/internal.h"

const struct address multicall3_address = { {
    0xca, 0x11, 0xbd, 0xe0, 0x59, 0x77, 0xb3, 0x63, 0x11, 0x67,
    0x02, 0x88, 0x62, 0xbe, 0x2a, 0x17, 0x39, 0x76, 0xca, 0x11,
} };

/* keccak256 of "Transfer(address,address,uint256)" */
const struct hash32 topic_transfer = { {
    0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa,
    0x95, 0x2b, 0xa7, 0xf1, 0x63, 0xc4, 0xa1, 0x16, 0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
} };

/* ... of "AuthorizationUsed(address,bytes32)" */
const struct hash32 topic_authorization_used = { {
    0x98, 0xde, 0x50, 0x35, 0x28, 0xee, 0x59, 0xb5, 0x75, 0xef, 0x0c, 0x0a, 0x25, 0x76, 0xa8, 0x24,
    0x97, 0xbf, 0xc0, 0x29, 0xa5, 0x68, 0x5b, 0x20, 0x9e, 0x9e, 0xc3, 0x33, 0x47, 0x9b, 0x10, 0xa5,
} };

/* ... of "AuthorizationCanceled(address,bytes32)" */
const struct hash32 topic_authorization_canceled = { {
    0x1c, 0xdd, 0x46, 0xff, 0x24, 0x27, 0x16, 0xcd, 0xaa, 0x72, 0xd1, 0x59, 0xd3, 0x39, 0xa4, 0x85,
    0xb3, 0x43, 0x83, 0x98, 0x34, 0x8d, 0x68, 0xf0, 0x9d, 0x7c, 0x8c, 0x0a, 0x59, 0x35, 0x3d, 0x81,
} };

/* Networks with a built-in token, or with a name that x402 v1 clients send. */
static const struct network networks[] = {
    { 8453, "eip155:8453", "base", false },
    { 84532, "eip155:84532", "base-sepolia", false },
    { 1, "eip155:1", "ethereum", false },
    { 43114, "eip155:43114", "avalanche", false },
    { 143, "eip155:143", "monad", false },
    { 988, "eip155:988", "stable", false },
    { 2201, "eip155:2201", "stable-testnet", false },
    { 137, "eip155:137", "polygon", false },
    { 42161, "eip155:42161", NULL, false },
    { 421614, "eip155:421614", NULL, false },
    { 36900, "eip155:36900", NULL, false },
    { 190415, "eip155:190415", NULL, false },
    { 181228, "eip155:181228", NULL, false },
    { 50, "eip155:50", NULL, false },
    { 51, "eip155:51", NULL, false },
    { 14, "eip155:14", "flare", false },
    { 42220, "eip155:42220", "celo", false },
    { 11142220, "eip155:11142220", NULL, false },
    { 1329, "eip155:1329", "sei", false },
    { 1328, "eip155:1328", "sei-testnet", false },
    { 1514, "eip155:1514", "story", false },
    { 2741, "eip155:2741", "abstract", false },
    { 3338, "eip155:3338", "peaq", false },
    { 4689, "eip155:4689", "iotex", false },
    { 11124, "eip155:11124", "abstract-testnet", false },
    { 41923, "eip155:41923", "educhain", false },
    { 43113, "eip155:43113", "avalanche-fuji", false },
    { 80002, "eip155:80002", "polygon-amoy", false },
    { 324705682, "eip155:324705682", "skale-base-sepolia", false },
    { 11155111, "eip155:11155111", "sepolia", false },
    { 4326, "eip155:4326", "megaeth", false },
    { 4217, "eip155:4217", NULL, true },
    { 42431, "eip155:42431", NULL, true },
};

/* The tokens that stock x402 clients know and that take EIP-3009 authorizations, and Tempo's; the usual one first on each chain.
 * Address and domain are filled in from the other fields by tokens(). */
struct row {
    const char *address;
    struct token token;
};
/* clang-format off */
#define TOKEN(chain, address, name, version, symbol, decimals)                                                         \
    { address, { chain, { { 0 } }, name, version, symbol, decimals, { { 0 } } } }
/* clang-format on */
static struct row rows[] = {
    TOKEN(8453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin", "2", "USDC", 6),
    TOKEN(84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", "2", "USDC", 6),
    TOKEN(1, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USD Coin", "2", "USDC", 6),
    TOKEN(43114, "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "USD Coin", "2", "USDC", 6),
    TOKEN(143, "0x754704Bc059F8C67012fEd69BC8A327a5aafb603", "USDC", "2", "USDC", 6),
    TOKEN(988, "0x779Ded0c9e1022225f8E0630b35a9b54bE713736", "USDT0", "1", "USDT0", 6),
    TOKEN(2201, "0x78Cf24370174180738C5B8E352B6D14c83a6c9A9", "USDT0", "1", "USDT0", 6),
    TOKEN(137, "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USD Coin", "2", "USDC", 6),
    TOKEN(42161, "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USD Coin", "2", "USDC", 6),
    TOKEN(421614, "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", "USD Coin", "2", "USDC", 6),
    TOKEN(36900, "0x9cb8142aEBBcdc60AF7c97Af897A67A8f3CA71C2", "USDC.e", "2", "USDC.e", 6),
    TOKEN(190415, "0x401eCb1D350407f13ba348573E5630B83638E30D", "Bridged USDC", "2", "USDC.e", 6),
    TOKEN(181228, "0x401eCb1D350407f13ba348573E5630B83638E30D", "Bridged USDC", "2", "USDC.e", 6),
    TOKEN(50, "0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1", "USDC", "2", "USDC", 6),
    TOKEN(51, "0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4", "USDC", "2", "USDC", 6),
    TOKEN(14, "0xe7cd86e13AC4309349F30B3435a9d337750fC82D", "USD₮0", "1", "USDT0", 6),
    TOKEN(42220, "0xcebA9300f2b948710d2653dD7B07f33A8B32118C", "USDC", "2", "USDC", 6),
    TOKEN(42220, "0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e", "Tether USD", "1", "USDT", 6),
    TOKEN(42220, "0xD2ab3C9A02DBBAB236BfEC45D1d755DF4267F771", "Tether America USD", "1", "USAT", 6),
    TOKEN(11142220, "0x01C5C0122039549AD1493B8220cABEdD739BC44E", "USDC", "2", "USDC", 6),
    TOKEN(1329, "0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392", "USDC", "2", "USDC", 6),
    TOKEN(1328, "0x4fCF1784B31630811181f670Aea7A7bEF803eaED", "USDC", "2", "USDC", 6),
    TOKEN(1514, "0xF1815bd50389c46847f0Bda824eC8da914045D14", "Bridged USDC", "2", "USDC", 6),
    TOKEN(2741, "0x84a71ccd554cc1b02749b35d22f684cc8ec987e1", "Bridged USDC", "2", "USDC", 6),
    TOKEN(3338, "0xbbA60da06c2c5424f03f7434542280FCAd453d10", "USDC", "2", "USDC", 6),
    TOKEN(4689, "0xcdf79194c6c285077a58da47641d4dbe51f63542", "Bridged USDC", "2", "USDC", 6),
    TOKEN(11124, "0xe4C7fBB0a626ed208021ccabA6Be1566905E2dFc", "Bridged USDC", "2", "USDC", 6),
    TOKEN(41923, "0x12a272A581feE5577A5dFa371afEB4b2F3a8C2F8", "Bridged USDC (Stargate)", "2", "USDC", 6),
    TOKEN(43113, "0x5425890298aed601595a70AB815c96711a31Bc65", "USD Coin", "2", "USDC", 6),
    TOKEN(80002, "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582", "USDC", "2", "USDC", 6),
    TOKEN(4217, "0x20c0000000000000000000000000000000000000", "pathUSD", "1", "pathUSD", 6),
    TOKEN(4217, "0x20C000000000000000000000b9537d11c60E8b50", "USDC.e", "1", "USDC.e", 6),
    TOKEN(42431, "0x20c0000000000000000000000000000000000000", "pathUSD", "1", "pathUSD", 6),
    TOKEN(42431, "0x20c0000000000000000000000000000000000001", "AlphaUSD", "1", "AlphaUSD", 6),
    TOKEN(42431, "0x20c0000000000000000000000000000000000002", "BetaUSD", "1", "BetaUSD", 6),
    TOKEN(42431, "0x20c0000000000000000000000000000000000003", "ThetaUSD", "1", "ThetaUSD", 6),
    TOKEN(324705682, "0x2e08028E3C4c2356572E096d8EF835cD5C6030bD", "Bridged USDC (SKALE Bridge)", "2", "USDC", 6),
};

static const struct row *tokens(void)
{
    static bool complete;
    for (size_t i = 0; !complete && i < COUNT(rows); i++) {
        struct row *r = &rows[i];
        if (!address_read(r->address, strlen(r->address), &r->token.address))
            abort();
        token_domain(&r->token);
    }
    complete = true;
    return rows;
}

const struct network *network_by_chain(uint64_t chain_id)
{
    for (size_t i = 0; i < COUNT(networks); i++) {
        if (networks[i].chain_id == chain_id)
            return &networks[i];
    }
    return NULL;
}

const struct network *network_by_v1_name(const char *name)
{
    for (size_t i = 0; i < COUNT(networks); i++) {
        if (networks[i].v1_name && strcmp(networks[i].v1_name, name) == 0)
            return &networks[i];
    }
    return NULL;
}

const struct token *token_built_in(uint64_t chain_id, size_t i)
{
    const struct row *r = tokens();
    for (const struct row *end = r + COUNT(rows); r < end; r++) {
        if (r->token.chain_id == chain_id && i-- == 0)
            return &r->token;
    }
    return NULL;
}

bool network_id_read(const char *id, uint64_t *ret_chain)
{
    static const char prefix[] = "eip155:";
    const size_t n = sizeof prefix - 1;
    struct amount a;
    uint64_t chain;
    if (strncmp(id, prefix, n) != 0 || !amount_read(id + n, strlen(id + n), &a) || !amount_u64(a, &chain) || chain == 0)
        return false;
    *ret_chain = chain;
    return true;
}
