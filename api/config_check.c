#include <string.h>

#include "api/config_read.h"
#include "api/route.h"
#include "settle/canonical.h"

/* ---- the top ---- */

static bool form(const char *bad, const char *at, struct config_why *why)
{
    return !bad || conf_fail(why, "%s: %s", at, bad);
}

static bool check_top(const struct config *c, struct config_why *why)
{
    if (!form(conf_bad_origin(c->public_url), "public_url", why) || !form(conf_bad_listen(c->listen), "listen", why) ||
        !form(conf_bad_listen(c->admin_listen), "admin_listen", why))
        return false;
    if (strcmp(c->listen, c->admin_listen) == 0)
        return conf_fail(why, "admin_listen: must not be the same as listen");
    for (size_t i = 0; i < c->trusted_proxy_count; i++) {
        const char *bad = conf_bad_ip(c->trusted_proxies[i]);
        if (bad)
            return conf_fail(why, "trusted_proxies[%zu]: %s", i, bad);
    }
    for (size_t i = 0; i < c->receipt_signer_count; i++) {
        struct address a;
        if (!address_read(c->receipt_signers[i], strlen(c->receipt_signers[i]), &a))
            return conf_fail(why, "receipt_signers[%zu]: must be an address, 0x and 40 hex digits", i);
    }
    return true;
}

/* ---- networks ---- */

bool conf_is_token(const struct net *n, const struct address *a)
{
    for (size_t i = 0; i < n->token_count; i++) {
        if (address_eq(&n->tokens[i].address, a))
            return true;
    }
    return false;
}

static bool check_tokens(const struct net *n, size_t at, struct config_why *why)
{
    for (size_t i = 0; i < n->token_count; i++) {
        struct address ignored;
        const struct token *t = &n->tokens[i];
        if (address_read(t->symbol, strlen(t->symbol), &ignored))
            return conf_fail(why, "networks[%zu].tokens[%zu].symbol: must not look like an address", at, i);
        for (size_t k = 0; k < i; k++) {
            if (address_eq(&t->address, &n->tokens[k].address))
                return conf_fail(why, "networks[%zu].tokens[%zu].address: is already that of tokens[%zu]", at, i, k);
            if (strcmp(t->symbol, n->tokens[k].symbol) == 0)
                return conf_fail(why, "networks[%zu].tokens[%zu].symbol: is already that of tokens[%zu]", at, i, k);
        }
    }
    return true;
}

static bool check_net(const struct config *c, size_t at, struct config_why *why)
{
    const struct net *n = &c->nets[at];
    for (size_t i = 0; i < at; i++) {
        if (c->nets[i].chain_id == n->chain_id)
            return conf_fail(why, "networks[%zu].id: is already that of networks[%zu]", at, i);
    }
    for (size_t i = 0; i < n->rpc_count; i++) {
        const char *bad = conf_bad_endpoint(n->rpc[i]);
        if (bad)
            return conf_fail(why, "networks[%zu].rpc[%zu]: %s", at, i, bad);
    }
    const char *bad_explorer = *n->explorer ? conf_bad_origin(n->explorer) : NULL;
    if (bad_explorer)
        return conf_fail(why, "networks[%zu].explorer: %s", at, bad_explorer);
    if (amount_cmp(n->tip_min, n->fee_max) > 0)
        return conf_fail(why, "networks[%zu].tip_min_wei: must not be above fee_max_wei", at);
    if (n->quorum > n->rpc_count)
        return conf_fail(why, "networks[%zu].quorum: is %u, and there are only %zu endpoints in rpc", at, n->quorum, n->rpc_count);
    if (conf_is_token(n, &n->pay_to))
        return conf_fail(why, "networks[%zu].pay_to: is the token's own address; what is sent there is lost", at);
    return check_tokens(n, at, why);
}

/* ---- tools ---- */

bool conf_name_ok(const char *s)
{
    for (; *s; s++) {
        const bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
        if (!letter && !strchr("_-. ", *s))
            return false;
    }
    return true;
}

static size_t segment(const char *s)
{
    return strcspn(s, "/");
}

/* Whether one path could match both. A {name} takes any segment. */
static bool paths_overlap(const char *a, const char *b)
{
    while (*a == '/' && *b == '/') {
        a++;
        b++;
        const size_t an = segment(a), bn = segment(b);
        const bool any = (an && *a == '{') || (bn && *b == '{');
        if (!any && (an != bn || memcmp(a, b, an) != 0))
            return false;
        a += an;
        b += bn;
    }
    return *a == *b;
}

static bool check_route(const struct config *c, size_t at, struct config_why *why)
{
    const struct tool *t = &c->tools[at];
    const char *bad;
    if (!route_pattern_ok(t->path, &bad))
        return conf_fail(why, "tools[%zu].path: %s", at, bad);
    if (route_reserved(t->path))
        return conf_fail(why, "tools[%zu].path: is one of Payonce's own addresses", at);
    for (size_t i = 0; i < at; i++) {
        const struct tool *other = &c->tools[i];
        if (strcmp(other->name, t->name) == 0)
            return conf_fail(why, "tools[%zu].name: is already that of tools[%zu]", at, i);
        if (strcmp(other->method, t->method) == 0 && paths_overlap(other->path, t->path))
            return conf_fail(why, "tools[%zu].path: %s %s overlaps tools[%zu], %s", at, t->method, t->path, i,
                             other->path);
    }
    return true;
}

/* From the upstream's answer to the payment's last moment there must be time to settle. */
static int64_t settle_margin_ms(const struct net *n)
{
    const int64_t blocks = n->block_time_ms * ((int64_t)n->depth + 2);
    return blocks > 15000 ? blocks : 15000;
}

static bool check_price(const struct tool *t, size_t at, size_t i, struct config_why *why)
{
    const struct price *p = &t->prices[i];
    if (amount_is_zero(p->amount))
        return conf_fail(why, "tools[%zu].prices[%zu].amount: must not be zero; a tool without prices is free", at, i);
    if (conf_is_token(p->net, &p->pay_to))
        return conf_fail(why, "tools[%zu].prices[%zu].pay_to: is the token's own address; what is sent there is lost",
                         at, i);
    for (size_t k = 0; k < i; k++) {
        if (t->prices[k].token == p->token)
            return conf_fail(why, "tools[%zu].prices[%zu]: has the network and token of prices[%zu]", at, i, k);
    }
    const int64_t needed_ms = (t->settle == SETTLE_AFTER_WORK && !p->net->tempo ? t->timeout_ms : 0) + settle_margin_ms(p->net);
    if (needed_ms >= (int64_t)t->max_timeout_s * 1000)
        return conf_fail(why,
                         "tools[%zu].timeout_ms: with %lld ms to settle on %s there is not enough time within "
                         "max_timeout_s (%u)",
                         at, (long long)settle_margin_ms(p->net), p->net->id, t->max_timeout_s);
    return true;
}

static bool vary_ok(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(s);
}

static bool check_repeats(const struct config *c, size_t at, struct config_why *why)
{
    const struct tool *t = &c->tools[at];
    if (t->cacheable && t->repeat_window_s > c->result_retention_s)
        return conf_fail(why, "tools[%zu].repeat_window_s: is longer than result_retention_s (%u)", at, c->result_retention_s);
    for (size_t i = 0; i < t->vary_count; i++)
        if (!vary_ok(t->vary[i]))
            return conf_fail(why, "tools[%zu].vary[%zu]: must be a header's name in small letters", at, i);
    for (size_t i = 0; i < t->volatile_count; i++)
        if (t->volatiles[i][0] == '/' && !json_pointer_ok(t->volatiles[i]))
            return conf_fail(why, "tools[%zu].volatile[%zu]: is no JSON pointer: ~ is written ~0, and / in a name ~1", at, i);
    return true;
}

static bool check_tool(const struct config *c, size_t at, struct config_why *why)
{
    const struct tool *t = &c->tools[at];
    if (!conf_name_ok(t->name))
        return conf_fail(why, "tools[%zu].name: must be of letters, digits, spaces, '_', '-' and '.'", at);
    const char *bad = conf_bad_origin(t->upstream);
    if (bad)
        return conf_fail(why, "tools[%zu].upstream: %s", at, bad);
    if (t->cacheable && t->side_effect != EFFECT_NONE && t->side_effect != EFFECT_READ)
        return conf_fail(why, "tools[%zu].cacheable: a tool with side_effect %s cannot be", at,
                         side_effect_name(t->side_effect));
    if (!check_repeats(c, at, why))
        return false;
    for (size_t i = 0; i < t->price_count; i++) {
        if (!check_price(t, at, i, why))
            return false;
    }
    return check_route(c, at, why);
}

bool conf_check(const struct config *c, struct config_why *why)
{
    if (!check_top(c, why))
        return false;
    for (size_t i = 0; i < c->net_count; i++) {
        if (!check_net(c, i, why))
            return false;
    }
    for (size_t i = 0; i < c->tool_count; i++) {
        if (!check_tool(c, i, why))
            return false;
    }
    if (c->tool_count + c->seller_count == 0)
        return conf_fail(why, "tools: must hold at least 1 where there are no sellers");
    return conf_check_sellers(c, why);
}

bool config_admin_open(const struct config *c)
{
    const char *listen = c->admin_listen;
    return strncmp(listen, "127.", 4) != 0 && strncmp(listen, "[::1]:", 6) != 0 && strncmp(listen, "localhost:", 10) != 0;
}
