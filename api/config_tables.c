#include <stddef.h>

#include "api/config_read.h"

#define AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define LIST(type, member, count) AT(type, member), .count_at = offsetof(type, count)
enum { MAX_TEXT = 2048, MAX_TIME_MS = 600000, MAX_LIST = 1000 };

static const char *const effects[] = { "none", "read", "write", "irreversible", NULL };
static const char *const refund_modes[] = { "off", "manual", "automatic", NULL };
static const char *const settle_times[] = { "after_work", "before_work", NULL };
static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", NULL };

const char *side_effect_name(enum side_effect e)
{
    return effects[e];
}

/* ---- tokens ---- */

static void token_defaults(void *p)
{
    (void)p; /* every key of a token is required */
}

static const struct conf_key token_keys[] = {
    { "address", CONF_ADDRESS, true, AT(struct token, address) },
    { "name", CONF_TEXT, true, AT(struct token, name), .min = 1, .max = 100 },
    { "version", CONF_TEXT, true, AT(struct token, version), .min = 1, .max = 20 },
    { "decimals", CONF_INT, true, AT(struct token, decimals), .min = 0, .max = AMOUNT_MAX_DECIMALS },
    { "symbol", CONF_TEXT, true, AT(struct token, symbol), .min = 1, .max = 20 },
};
static const struct conf_object token_object = { sizeof(struct token), token_defaults, token_keys, COUNT(token_keys) };

/* ---- networks ---- */

static void net_defaults(void *p)
{
    struct net *n = p;
    n->rpc_timeout_ms = 5000;
    n->depth = 1;
    n->quorum = 1;
    n->block_time_ms = 2000;
    n->batch_max = 100;
    n->explorer = "";
    n->tip_min = amount_of(1000000);
    n->fee_max = amount_of(500000000000);
}

static const struct conf_key net_keys[] = {
    { "id", CONF_TEXT, true, AT(struct net, id), .min = 8, .max = 40 },
    { "rpc", CONF_TEXTS, true, LIST(struct net, rpc, rpc_count), .min = 1, .max = 8 },
    { "rpc_timeout_ms", CONF_INT, false, AT(struct net, rpc_timeout_ms), .min = 100, .max = 60000 },
    { "pay_to", CONF_ADDRESS, true, AT(struct net, pay_to) },
    { "depth", CONF_INT, false, AT(struct net, depth), .min = 1, .max = 10000 },
    { "quorum", CONF_INT, false, AT(struct net, quorum), .min = 1, .max = 8 },
    { "finality_blocks", CONF_INT, false, AT(struct net, finality_blocks), .min = 0, .max = 100000 },
    { "block_time_ms", CONF_INT, false, AT(struct net, block_time_ms), .min = 50, .max = 120000 },
    { "batch_max", CONF_INT, false, AT(struct net, batch_max), .min = 1, .max = 1000 },
    { "batch_gas_max", CONF_INT, false, AT(struct net, batch_gas_max), .min = 0, .max = 1000000000000 },
    { "explorer", CONF_TEXT, false, AT(struct net, explorer), .min = 0, .max = MAX_TEXT },
    { "tip_min_wei", CONF_AMOUNT, false, AT(struct net, tip_min) },
    { "fee_max_wei", CONF_AMOUNT, false, AT(struct net, fee_max) },
    { "tokens", CONF_OBJECTS, false, LIST(struct net, tokens, token_count), .min = 1, .max = 100, .of = &token_object },
};
static const struct conf_object net_object = { sizeof(struct net), net_defaults, net_keys, COUNT(net_keys) };

/* ---- tools ---- */

static void price_defaults(void *p)
{
    (void)p; /* pay_to: the network's, when the price is resolved */
}

static const struct conf_key price_keys[] = {
    { "network", CONF_TEXT, true, AT(struct price_text, network), .min = 8, .max = 40 },
    { "token", CONF_TEXT, true, AT(struct price_text, token), .min = 1, .max = 42 },
    { "amount", CONF_AMOUNT, true, AT(struct price_text, amount) },
    { "pay_to", CONF_ADDRESS, false, AT(struct price_text, pay_to) },
};
static const struct conf_object price_object = { sizeof(struct price_text), price_defaults, price_keys,
                                                 COUNT(price_keys) };

static void tool_defaults(void *p)
{
    struct tool *t = &((struct tool_text *)p)->tool;
    t->description = "";
    t->mime_type = "application/json";
    t->timeout_ms = 20000;
    t->max_timeout_s = 120;
    t->max_body = 262144;
    t->max_answer = 4194304;
    t->repeat_window_s = 120;
    t->repeat_max = 1000;
    t->repeat_max_answer = 1048576;
}

static const struct conf_key tool_keys[] = {
    { "name", CONF_TEXT, true, AT(struct tool_text, tool.name), .min = 1, .max = 64 },
    { "description", CONF_TEXT, false, AT(struct tool_text, tool.description), .min = 0, .max = MAX_TEXT },
    { "mime_type", CONF_TEXT, false, AT(struct tool_text, tool.mime_type), .min = 0, .max = 200 },
    { "method", CONF_TEXT, true, AT(struct tool_text, tool.method), .min = 3, .max = 6, .choices = methods },
    { "path", CONF_TEXT, true, AT(struct tool_text, tool.path), .min = 1, .max = MAX_TEXT },
    { "upstream", CONF_TEXT, true, AT(struct tool_text, tool.upstream), .min = 1, .max = MAX_TEXT },
    { "prices", CONF_OBJECTS, false, LIST(struct tool_text, prices, price_count), .min = 0, .max = 20,
      .of = &price_object },
    { "side_effect", CONF_CHOICE, true, AT(struct tool_text, tool.side_effect), .choices = effects },
    { "settle", CONF_CHOICE, false, AT(struct tool_text, tool.settle), .choices = settle_times },
    { "cacheable", CONF_BOOL, false, AT(struct tool_text, tool.cacheable) },
    { "repeat_window_s", CONF_INT, false, AT(struct tool_text, tool.repeat_window_s), .min = 1, .max = 86400 },
    { "repeat_max", CONF_INT, false, AT(struct tool_text, tool.repeat_max), .min = 0, .max = 1000000 },
    { "repeat_paid_first", CONF_BOOL, false, AT(struct tool_text, tool.repeat_paid_first) },
    { "repeat_max_answer", CONF_INT, false, AT(struct tool_text, tool.repeat_max_answer), .min = 0, .max = 67108864 },
    { "vary", CONF_TEXTS, false, LIST(struct tool_text, tool.vary, tool.vary_count), .min = 0, .max = 20 },
    { "volatile", CONF_TEXTS, false, LIST(struct tool_text, tool.volatiles, tool.volatile_count), .min = 0, .max = 50 },
    { "upstream_idempotent", CONF_BOOL, false, AT(struct tool_text, tool.upstream_idempotent) },
    { "timeout_ms", CONF_INT, false, AT(struct tool_text, tool.timeout_ms), .min = 100, .max = MAX_TIME_MS },
    { "max_timeout_s", CONF_INT, false, AT(struct tool_text, tool.max_timeout_s), .min = 20, .max = 3600 },
    { "max_body", CONF_INT, false, AT(struct tool_text, tool.max_body), .min = 0, .max = 16777216 },
    { "max_answer", CONF_INT, false, AT(struct tool_text, tool.max_answer), .min = 1, .max = 67108864 },
};
static const struct conf_object tool_object = { sizeof(struct tool_text), tool_defaults, tool_keys, COUNT(tool_keys) };

/* ---- sellers ---- */

static void serve_defaults(void *p)
{
    (void)p; /* max_amount: 0, any */
}

static const struct conf_key serve_keys[] = {
    { "network", CONF_TEXT, true, AT(struct price_text, network), .min = 8, .max = 40 },
    { "token", CONF_TEXT, true, AT(struct price_text, token), .min = 1, .max = 42 },
    { "pay_to", CONF_ADDRESS, true, AT(struct price_text, pay_to) },
    { "max_amount", CONF_AMOUNT, false, AT(struct price_text, amount) },
};
static const struct conf_object serve_object = { sizeof(struct price_text), serve_defaults, serve_keys,
                                                 COUNT(serve_keys) };

static void seller_defaults(void *p)
{
    struct seller *s = &((struct seller_text *)p)->seller;
    s->wait_ms = 55000;
    s->repeat_wait_ms = 85000;
}

static const struct conf_key seller_keys[] = {
    { "name", CONF_TEXT, true, AT(struct seller_text, seller.name), .min = 1, .max = 64 },
    { "key", CONF_TEXT, true, AT(struct seller_text, seller.key), .min = 4, .max = 71 },
    { "accepts", CONF_OBJECTS, true, LIST(struct seller_text, serves, serve_count), .min = 1, .max = 100,
      .of = &serve_object },
    { "max_per_day", CONF_INT, false, AT(struct seller_text, seller.max_per_day), .min = 0, .max = 1000000000 },
    { "wait_ms", CONF_INT, false, AT(struct seller_text, seller.wait_ms), .min = 100, .max = MAX_TIME_MS },
    { "repeat_wait_ms", CONF_INT, false, AT(struct seller_text, seller.repeat_wait_ms), .min = 100, .max = MAX_TIME_MS },
    { "webhook", CONF_TEXT, false, AT(struct seller_text, seller.webhook), .min = 1, .max = MAX_TEXT },
    { "webhook_key_file", CONF_TEXT, false, AT(struct seller_text, seller.webhook_key_file), .min = 1, .max = MAX_TEXT },
};
static const struct conf_object seller_object = { sizeof(struct seller_text), seller_defaults, seller_keys,
                                                  COUNT(seller_keys) };

/* ---- refunds ---- */

static void refund_defaults(void *p)
{
    struct refund_policy *r = &((struct refund_text *)p)->policy;
    ((struct refund_text *)p)->fee_token = "";
    r->every_s = 30;
    r->batch_max = 50;
    r->run_max = r->day_max = r->approve_above = amount_of(100000000);
}

static const struct conf_key refund_keys[] = {
    { "network", CONF_TEXT, true, AT(struct refund_text, network), .min = 8, .max = 40 },
    { "token", CONF_TEXT, true, AT(struct refund_text, token), .min = 1, .max = 42 },
    { "mode", CONF_CHOICE, true, AT(struct refund_text, policy.mode), .choices = refund_modes },
    { "after_s", CONF_INT, false, AT(struct refund_text, policy.after_s), .min = 0, .max = 31536000 },
    { "every_s", CONF_INT, false, AT(struct refund_text, policy.every_s), .min = 1, .max = 86400 },
    { "batch_max", CONF_INT, false, AT(struct refund_text, policy.batch_max), .min = 1, .max = 100 },
    { "minimum", CONF_AMOUNT, false, AT(struct refund_text, policy.minimum) },
    { "run_max", CONF_AMOUNT, false, AT(struct refund_text, policy.run_max) },
    { "day_max", CONF_AMOUNT, false, AT(struct refund_text, policy.day_max) },
    { "approve_above", CONF_AMOUNT, false, AT(struct refund_text, policy.approve_above) },
    { "fee_token", CONF_TEXT, false, AT(struct refund_text, fee_token), .min = 0, .max = 42 },
};
static const struct conf_object refund_object = { sizeof(struct refund_text), refund_defaults, refund_keys, COUNT(refund_keys) };

/* ---- the file ---- */

static void file_defaults(void *p)
{
    struct config *c = &((struct config_text *)p)->config;
    c->listen = "127.0.0.1:8402";
    c->admin_listen = "127.0.0.1:8403";
    c->database_connections = 12;
    c->seller = "";
    c->wait_ms = 30000;
    c->quote_ttl_s = 600;
    c->result_retention_s = 86400;
    c->id_retention_s = 7776000;
    c->repeat_retention_s = 604800;
    c->max_connections = 20000;
    c->idle_ms = 60000;
}

static const struct conf_key file_keys[] = {
    { "public_url", CONF_TEXT, true, AT(struct config_text, config.public_url), .min = 1, .max = MAX_TEXT },
    { "listen", CONF_TEXT, false, AT(struct config_text, config.listen), .min = 1, .max = 200 },
    { "admin_listen", CONF_TEXT, false, AT(struct config_text, config.admin_listen), .min = 1, .max = 200 },
    { "trusted_proxies", CONF_TEXTS, false,
      LIST(struct config_text, config.trusted_proxies, config.trusted_proxy_count), .min = 0, .max = 100 },
    { "state_dir", CONF_TEXT, false, AT(struct config_text, config.state_dir), .min = 1, .max = MAX_TEXT },
    { "database", CONF_TEXT, false, AT(struct config_text, config.database), .min = 1, .max = MAX_TEXT },
    { "database_connections", CONF_INT, false, AT(struct config_text, config.database_connections), .min = 1,
      .max = 200 },
    { "receipt_signers", CONF_TEXTS, false,
      LIST(struct config_text, config.receipt_signers, config.receipt_signer_count), .min = 0, .max = 100 },
    { "offer_receipt", CONF_BOOL, false, AT(struct config_text, config.offer_receipt) },
    { "seller", CONF_TEXT, false, AT(struct config_text, config.seller), .min = 0, .max = 200 },
    { "wait_ms", CONF_INT, false, AT(struct config_text, config.wait_ms), .min = 0, .max = MAX_TIME_MS },
    { "quote_ttl_s", CONF_INT, false, AT(struct config_text, config.quote_ttl_s), .min = 10, .max = 86400 },
    { "result_retention_s", CONF_INT, false, AT(struct config_text, config.result_retention_s), .min = 3600, .max = 31536000 },
    { "id_retention_s", CONF_INT, false, AT(struct config_text, config.id_retention_s), .min = 86400, .max = 315360000 },
    { "repeat_retention_s", CONF_INT, false, AT(struct config_text, config.repeat_retention_s), .min = 3600, .max = 315360000 },
    { "max_connections", CONF_INT, false, AT(struct config_text, config.max_connections), .min = 1, .max = 1000000 },
    { "idle_ms", CONF_INT, false, AT(struct config_text, config.idle_ms), .min = 100, .max = 3600000 },
    { "networks", CONF_OBJECTS, true, LIST(struct config_text, config.nets, config.net_count), .min = 1, .max = 50,
      .of = &net_object },
    { "refunds", CONF_OBJECTS, false, LIST(struct config_text, refunds, refund_count), .min = 0, .max = 100, .of = &refund_object },
    { "tools", CONF_OBJECTS, true, LIST(struct config_text, tools, tool_count), .min = 0, .max = MAX_LIST,
      .of = &tool_object },
    { "sellers", CONF_OBJECTS, false, LIST(struct config_text, sellers, seller_count), .min = 0, .max = 100,
      .of = &seller_object },
};
const struct conf_object conf_file = { sizeof(struct config_text), file_defaults, file_keys, COUNT(file_keys) };
