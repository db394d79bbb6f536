#include <stdio.h>
#include <string.h>

#include "api/doctor.h"

/* ABI: an offset, a length, the bytes. What is not printable is shown as a question mark. */
static void ask_string(struct rpc *r, const struct address *token, const char *selector, char ret[64])
{
    BUF b = { 0 };
    snprintf(ret, 64, "?");
    if (!doctor_ask(r, token, selector, &b) || b.n < 64)
        return;
    const uint64_t at = amount_u64_cap(amount_from_be((const uint8_t *)b.p));
    if (at > b.n - 32)
        return;
    const uint64_t n = amount_u64_cap(amount_from_be((const uint8_t *)b.p + at));
    if (n > b.n - at - 32 || n > 63)
        return;
    memcpy(ret, b.p + at + 32, n);
    ret[n] = '\0';
    for (char *p = ret; *p; p++)
        *p = *p < ' ' || *p > '~' ? '?' : *p;
}

static bool has_code(struct rpc *r, const struct address *a)
{
    bool there = false;
    return code_wait(r, a, 1, &there) && there;
}

static void check_domain(struct doctor *d, struct rpc *r, const struct token *t, const char *at)
{
    BUF b = { 0 };
    char name[64], version[64];
    const bool asked = doctor_ask(r, &t->address, "0x3644e515", &b); /* DOMAIN_SEPARATOR() */
    if (asked && b.n == 32 && memcmp(b.p, t->domain.b, 32) == 0) {
        doctor_say(d, FINDING_OK, at, "%s: its EIP-712 domain is ours (\"%s\", version \"%s\")", t->symbol, t->name,
                   t->version);
        return;
    }
    if (!asked || b.n != 32) {
        doctor_say(d, FINDING_FAIL, at, "%s: gives no DOMAIN_SEPARATOR: it is no EIP-3009 token", t->symbol);
        return;
    }
    ask_string(r, &t->address, "0x06fdde03", name);
    ask_string(r, &t->address, "0x54fd4d50", version);
    doctor_say(d, FINDING_FAIL, at,
               "%s: no payment would verify: the token's EIP-712 domain is not of \"%s\", version \"%s\"; it "
               "calls itself \"%s\", version \"%s\": correct name and version",
               t->symbol, t->name, t->version, name, version);
}

static void check_decimals(struct doctor *d, struct rpc *r, const struct token *t, const char *at)
{
    BUF b = { 0 };
    if (!doctor_ask(r, &t->address, "0x313ce567", &b) || b.n != 32) {
        doctor_say(d, FINDING_WARN, at, "%s: does not say its decimals", t->symbol);
        return;
    }
    const uint64_t theirs = amount_u64_cap(amount_from_be((const uint8_t *)b.p));
    if (theirs == t->decimals)
        doctor_say(d, FINDING_OK, at, "%s: %u decimals", t->symbol, t->decimals);
    else
        doctor_say(d, FINDING_FAIL, at,
                   "%s: has %llu decimals, the configuration says %u: prices may be off by powers of ten", t->symbol,
                   (unsigned long long)theirs, t->decimals);
}

/* Its tokens take no signed authorizations: there is no domain to compare. */
static bool is_tempo(const struct token *t)
{
    const struct network *n = network_by_chain(t->chain_id);
    return n && n->tempo;
}

void doctor_token(struct doctor *d, struct rpc *r, const struct token *t, const char *at)
{
    if (!has_code(r, &t->address)) {
        doctor_say(d, FINDING_FAIL, at, "%s: no code at %s: wrong address or wrong chain", t->symbol,
                   address_checksum(&t->address).s);
        return;
    }
    if (!is_tempo(t))
        check_domain(d, r, t, at);
    check_decimals(d, r, t, at);
}
