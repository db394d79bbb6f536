#include <string.h>

#include "api/config_read.h"

/* ---- networks ---- */

static void built_in_tokens(struct net *n, struct conf_memory *m)
{
    while (token_built_in(n->chain_id, n->token_count))
        n->token_count++;
    n->tokens = conf_new(m, n->token_count * sizeof *n->tokens);
    for (size_t i = 0; i < n->token_count; i++)
        n->tokens[i] = *token_built_in(n->chain_id, i);
}

/* The host, and the port where one is spelled. */
static const char *host_of(const char *url, struct conf_memory *m)
{
    const char *p = strstr(url, "://"), *from = p ? p + 3 : url;
    const size_t n = strcspn(from, "/");
    char *host = conf_new(m, n + 1);
    memcpy(host, from, n);
    return host;
}

static bool resolve_net(struct net *n, size_t at, struct conf_memory *m, struct config_why *why)
{
    if (!network_id_read(n->id, &n->chain_id))
        return conf_fail(why, "networks[%zu].id: must be a CAIP-2 id such as eip155:8453", at);
    const struct network *known = network_by_chain(n->chain_id);
    n->v1_name = known ? known->v1_name : NULL;
    n->tempo = known && known->tempo;
    if (n->token_count == 0)
        built_in_tokens(n, m);
    if (n->token_count == 0)
        return conf_fail(why, "networks[%zu].tokens: is missing, and no token of %s is built in", at, n->id);
    for (size_t i = 0; i < n->token_count; i++) {
        n->tokens[i].chain_id = n->chain_id;
        token_domain(&n->tokens[i]);
    }
    return true;
}

/* ---- prices ---- */

static const struct net *find_net(const struct config *c, const char *id)
{
    for (size_t i = 0; i < c->net_count; i++) {
        if (strcmp(c->nets[i].id, id) == 0)
            return &c->nets[i];
    }
    return NULL;
}

static const struct token *find_token(const struct net *n, const char *name)
{
    struct address a;
    const bool by_address = address_read(name, strlen(name), &a);
    for (size_t i = 0; i < n->token_count; i++) {
        const struct token *t = &n->tokens[i];
        if (by_address ? address_eq(&t->address, &a) : strcmp(t->symbol, name) == 0)
            return t;
    }
    return NULL;
}

static bool resolve_price(const struct config *c, const struct price_text *from, const char *at, struct price *ret,
                          struct config_why *why)
{
    const struct net *net = find_net(c, from->network);
    if (!net)
        return conf_fail(why, "%s.network: %s is not among networks", at, from->network);
    const struct token *token = find_token(net, from->token);
    if (!token) {
        BUF known = { 0 };
        for (size_t i = 0; i < net->token_count; i++)
            buf_printf(&known, "%s%s", i ? ", " : "", net->tokens[i].symbol);
        return conf_fail(why, "%s.token: %s has no token %s; it has %s", at, net->id, from->token, known.p);
    }
    const bool own_payee = !address_eq(&from->pay_to, &(struct address){ { 0 } });
    *ret = (struct price){ net, token, from->amount, own_payee ? from->pay_to : net->pay_to };
    return true;
}

/* On Tempo the sender chooses which token pays the fee; elsewhere the relayer pays it with the network's own coin. */
static bool resolve_fee_token(const char *name, const char *at, struct refund_policy *p, struct config_why *why)
{
    p->fee_token = *name ? find_token(p->net, name) : p->token;
    if (*name && !p->net->tempo)
        return conf_fail(why, "%s.fee_token: on %s the relayer pays for refunds, and not in tokens", at, p->net->id);
    return p->fee_token || conf_fail(why, "%s.fee_token: %s has no token %s", at, p->net->id, name);
}

static bool resolve_refunds(struct config *c, const struct config_text *t, struct conf_memory *m, struct config_why *why)
{
    c->refund_count = t->refund_count;
    c->refunds = conf_new(m, t->refund_count * sizeof *c->refunds);
    for (size_t i = 0; i < t->refund_count; i++) {
        const struct refund_text *r = &t->refunds[i];
        const struct price_text named = { .network = r->network, .token = r->token };
        OWNED char *at = str_format("refunds[%zu]", i);
        struct price found;
        if (!resolve_price(c, &named, at, &found, why))
            return false;
        c->refunds[i] = r->policy;
        c->refunds[i].net = found.net;
        c->refunds[i].token = found.token;
        if (!resolve_fee_token(r->fee_token, at, &c->refunds[i], why))
            return false;
        for (size_t k = 0; k < i; k++)
            if (c->refunds[k].token == found.token)
                return conf_fail(why, "%s: there is a policy for this token already", at);
    }
    return true;
}

/* Who asks an upstream says so in these, and no upstream need name them in its own Vary: an answer always depends on them. */
static const char *const credentials[] = { "authorization", "cookie" };

static void resolve_vary(struct tool *t, const struct tool *from, struct conf_memory *m)
{
    t->vary = conf_new(m, (from->vary_count + COUNT(credentials)) * sizeof *t->vary);
    for (size_t i = 0; i < from->vary_count; i++)
        t->vary[i] = from->vary[i];
    for (size_t i = 0; i < COUNT(credentials); i++)
        t->vary[t->vary_count++] = credentials[i];
}

static bool resolve_tool(const struct config *c, const struct tool_text *from, size_t at, struct tool *ret,
                         struct conf_memory *m, struct config_why *why)
{
    *ret = from->tool;
    resolve_vary(ret, &from->tool, m);
    ret->price_count = from->price_count;
    ret->prices = conf_new(m, from->price_count * sizeof *ret->prices);
    for (size_t i = 0; i < from->price_count; i++) {
        OWNED char *path = str_format("tools[%zu].prices[%zu]", at, i);
        if (!resolve_price(c, &from->prices[i], path, &ret->prices[i], why))
            return false;
    }
    return true;
}

static bool resolve_seller(const struct config *c, const struct seller_text *from, size_t at, struct seller *ret,
                           struct conf_memory *m, struct config_why *why)
{
    static const char digest[] = "sha256:";
    OWNED char *hex = str_format("0x%s", from->seller.key + (strncmp(from->seller.key, digest, 7) == 0 ? 7 : 0));
    *ret = from->seller;
    ret->open = strcmp(ret->key, "open") == 0;
    if (!ret->open && (strncmp(ret->key, digest, 7) != 0 || !hash_read(hex, strlen(hex), &ret->key_digest)))
        return conf_fail(why, "sellers[%zu].key: must be open, or sha256: and the 64 hex digits of the API key's digest", at);
    ret->serve_count = from->serve_count;
    ret->serves = conf_new(m, from->serve_count * sizeof *ret->serves);
    for (size_t i = 0; i < from->serve_count; i++) {
        OWNED char *path = str_format("sellers[%zu].accepts[%zu]", at, i);
        if (!resolve_price(c, &from->serves[i], path, &ret->serves[i], why))
            return false;
        if (ret->serves[i].net->tempo)
            return conf_fail(why, "%s.network: x402, which a facilitator settles, is not on %s", path, ret->serves[i].net->id);
    }
    return true;
}

static bool is_wallet(const struct address *list, size_t n, const struct address *a)
{
    for (size_t i = 0; i < n; i++)
        if (address_eq(&list[i], a))
            return true;
    return false;
}

static void add_wallet(struct net *n, const struct address *wallet)
{
    if (!is_wallet(n->wallets, n->wallet_count, wallet))
        n->wallets[n->wallet_count++] = *wallet;
}

/* Every address of a network that is paid: the settler scans them all. */
static void resolve_wallets(struct config *c, struct conf_memory *m)
{
    for (size_t i = 0; i < c->net_count; i++) {
        struct net *n = &c->nets[i];
        size_t most = 1;
        for (size_t t = 0; t < c->tool_count; t++)
            most += c->tools[t].price_count;
        n->wallets = conf_new(m, most * sizeof *n->wallets);
        add_wallet(n, &n->pay_to);
        for (size_t t = 0; t < c->tool_count; t++)
            for (size_t p = 0; p < c->tools[t].price_count; p++)
                if (c->tools[t].prices[p].net == n)
                    add_wallet(n, &c->tools[t].prices[p].pay_to);
    }
}

/* Sellers' addresses that are none of ours: scanned too, for what we settled. */
static void resolve_served(struct config *c, struct conf_memory *m)
{
    for (size_t i = 0; i < c->net_count; i++) {
        struct net *n = &c->nets[i];
        size_t most = 0;
        for (size_t s = 0; s < c->seller_count; s++)
            most += c->sellers[s].serve_count;
        n->served = conf_new(m, most * sizeof *n->served);
        for (size_t s = 0; s < c->seller_count; s++)
            for (size_t k = 0; k < c->sellers[s].serve_count; k++) {
                const struct price *p = &c->sellers[s].serves[k];
                if (p->net == n && !is_wallet(n->wallets, n->wallet_count, &p->pay_to) &&
                    !is_wallet(n->served, n->served_count, &p->pay_to))
                    n->served[n->served_count++] = p->pay_to;
            }
    }
}

/* ---- the state directory ---- */

/* What is relative is relative to the file, wherever the program was started. */
static bool resolve_state_dir(struct config *c, struct conf_memory *m, struct config_why *why)
{
    if (!c->state_dir)
        return c->database || conf_fail(why, "state_dir: is missing; without a database it holds the embedded one");
    if (*c->state_dir == '/')
        return true;
    OWNED char *file = realpath(c->path, NULL);
    if (!file)
        return conf_fail(why, "state_dir: the directory of %s cannot be resolved", c->path);
    const size_t room = strlen(file) + strlen(c->state_dir) + 1;
    char *full = conf_new(m, room);
    const size_t dir_n = (size_t)(strrchr(file, '/') + 1 - file);
    memcpy(full, file, dir_n);
    memcpy(full + dir_n, c->state_dir, strlen(c->state_dir));
    c->state_dir = full;
    return true;
}

bool conf_resolve(struct config_text *t, const char *path, struct conf_memory *m, struct config_why *why)
{
    struct config *c = &t->config;
    char *kept = conf_new(m, strlen(path) + 1);
    memcpy(kept, path, strlen(path));
    c->path = kept;
    if (!resolve_state_dir(c, m, why))
        return false;
    for (size_t i = 0; i < c->net_count; i++) {
        if (!resolve_net(&c->nets[i], i, m, why))
            return false;
        c->nets[i].realm = host_of(c->public_url, m);
    }
    c->tools = conf_new(m, t->tool_count * sizeof *c->tools);
    c->tool_count = t->tool_count;
    for (size_t i = 0; i < c->tool_count; i++) {
        if (!resolve_tool(c, &t->tools[i], i, &c->tools[i], m, why))
            return false;
    }
    c->sellers = conf_new(m, t->seller_count * sizeof *c->sellers);
    c->seller_count = t->seller_count;
    for (size_t i = 0; i < c->seller_count; i++) {
        if (!resolve_seller(c, &t->sellers[i], i, &c->sellers[i], m, why))
            return false;
    }
    resolve_wallets(c, m);
    resolve_served(c, m);
    return resolve_refunds(c, t, m, why);
}
