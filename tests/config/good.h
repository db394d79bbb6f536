/* A configuration that is right, and has every key. */
#ifndef TESTS_CONFIG_GOOD_H
#define TESTS_CONFIG_GOOD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/config_read.h"
#include "base/json.h"

static const char good[] =
    "{\"public_url\":\"https://api.example.com\",\"listen\":\"0.0.0.0:8402\",\"admin_listen\":\"127.0.0.1:8403\","
    "\"trusted_proxies\":[\"10.0.0.1\",\"10.1.0.0/16\"],\"state_dir\":\"state\",\"database\":\"host=/run/postgresql "
    "dbname=payonce\",\"database_connections\":8,\"receipt_signers\":[\"0x3333333333333333333333333333333333333333\"],"
    "\"offer_receipt\":false,\"seller\":\"Example\",\"wait_ms\":20000,\"quote_ttl_s\":300,"
    "\"result_retention_s\":7200,\"id_retention_s\":100000,\"repeat_retention_s\":8000,"
    "\"max_connections\":1000,\"idle_ms\":30000,\"networks\":[{\"id\":\"eip155:84532\",\"rpc\":[\"http://127.0.0.1:8545\"],"
    "\"rpc_timeout_ms\":4000,\"pay_to\":\"0x1111111111111111111111111111111111111111\",\"depth\":2,\"quorum\":1,"
    "\"finality_blocks\":10,"
    "\"block_time_ms\":1000,\"batch_max\":50,\"batch_gas_max\":1000000,\"explorer\":\"https://basescan.org\",\"tip_min_wei\":\"5000000\",\"fee_max_wei\":\"7000000\","
    "\"tokens\":[{\"address\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\",\"name\":\"USDC\",\"version\":\"2\","
    "\"decimals\":6,\"symbol\":\"USDC\"}]}],"
    "\"refunds\":[{\"network\":\"eip155:84532\",\"token\":\"USDC\",\"mode\":\"automatic\",\"after_s\":60,\"every_s\":10,"
    "\"batch_max\":20,\"minimum\":\"10\",\"run_max\":\"1000\",\"day_max\":\"5000\",\"approve_above\":\"500\",\"fee_token\":\"\"}],\"tools\":[{\"name\":\"countries\",\"description\":\"All of them\","
    "\"mime_type\":\"application/json\",\"method\":\"GET\",\"path\":\"/v1/countries/{code}\",\"upstream\":"
    "\"http://127.0.0.1:9000/api\",\"prices\":[{\"network\":\"eip155:84532\",\"token\":\"USDC\",\"amount\":\"1000\","
    "\"pay_to\":\"0x2222222222222222222222222222222222222222\"}],\"side_effect\":\"read\",\"settle\":\"after_work\",\"cacheable\":true,"
    "\"repeat_window_s\":60,\"repeat_max\":10,\"repeat_paid_first\":true,\"repeat_max_answer\":1000,\"vary\":[\"accept-language\"],\"volatile\":[\"ts\",\"/meta/id\"],"
    "\"upstream_idempotent\":true,\"timeout_ms\":10000,\"max_timeout_s\":90,\"max_body\":1000,\"max_answer\":2000}],\"sellers\":[{"
    "\"name\":\"acme\",\"key\":\"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"accepts\":[{"
    "\"network\":\"eip155:84532\",\"token\":\"USDC\",\"pay_to\":\"0x3333333333333333333333333333333333333333\","
    "\"max_amount\":\"5000000\"}],\"max_per_day\":1000,\"wait_ms\":50000,\"repeat_wait_ms\":80000,"
    "\"webhook\":\"https://shop.example.com/paid\",\"webhook_key_file\":\"/etc/payonce/acme.whsec\"}]}";

static inline json_t *good_json(void)
{
    struct json_why why;
    json_t *j = json_read(good, sizeof good - 1, &why);
    if (!j)
        abort();
    return j;
}

/* Writes a file, loads it, removes it. */
static inline struct config *load_text(const char *text, struct config_why *why)
{
    char path[] = "/tmp/payonce-config-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    close(fd);
    struct config *c = config_load(path, why);
    unlink(path);
    return c;
}

static inline struct config *load_json(const json_t *j, struct config_why *why)
{
    OWNED char *text = json_write(j);
    return load_text(text, why);
}

#endif
