/* The rules of `sellers`: a payee has one seller, and a key too. */
#include <string.h>

#include "api/config_read.h"

static bool same_serve(const struct price *a, const struct price *b)
{
    return a->net == b->net && a->token == b->token && address_eq(&a->pay_to, &b->pay_to);
}

/* Before (seller, place) in the order of the file. NULL: none. */
static const struct seller *served_before(const struct config *c, size_t seller, size_t place)
{
    const struct price *mine = &c->sellers[seller].serves[place];
    for (size_t s = 0; s <= seller; s++)
        for (size_t i = 0; i < (s == seller ? place : c->sellers[s].serve_count); i++)
            if (same_serve(mine, &c->sellers[s].serves[i]))
                return &c->sellers[s];
    return NULL;
}

static bool check_serve(const struct config *c, size_t at, size_t i, struct config_why *why)
{
    const struct price *p = &c->sellers[at].serves[i];
    if (conf_is_token(p->net, &p->pay_to))
        return conf_fail(why, "sellers[%zu].accepts[%zu].pay_to: is the token's own address; what is sent there is lost", at, i);
    const struct seller *other = served_before(c, at, i);
    if (other)
        return conf_fail(why, "sellers[%zu].accepts[%zu]: network, token and pay_to are already those of %s", at, i, other->name);
    return true;
}

static bool check_seller(const struct config *c, size_t at, struct config_why *why)
{
    const struct seller *s = &c->sellers[at];
    if (!conf_name_ok(s->name))
        return conf_fail(why, "sellers[%zu].name: must be of letters, digits, spaces, '_', '-' and '.'", at);
    for (size_t i = 0; i < at; i++) {
        if (strcmp(c->sellers[i].name, s->name) == 0)
            return conf_fail(why, "sellers[%zu].name: is already that of sellers[%zu]", at, i);
        if (!s->open && !c->sellers[i].open && hash_eq(&c->sellers[i].key_digest, &s->key_digest))
            return conf_fail(why, "sellers[%zu].key: is already that of sellers[%zu]", at, i);
    }
    const char *bad = s->webhook ? conf_bad_endpoint(s->webhook) : NULL;
    if (bad)
        return conf_fail(why, "sellers[%zu].webhook: %s", at, bad);
    for (size_t i = 0; i < s->serve_count; i++)
        if (!check_serve(c, at, i, why))
            return false;
    return true;
}

bool conf_check_sellers(const struct config *c, struct config_why *why)
{
    for (size_t i = 0; i < c->seller_count; i++)
        if (!check_seller(c, i, why))
            return false;
    return true;
}
