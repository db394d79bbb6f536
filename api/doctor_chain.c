#include <string.h>

#include "api/doctor.h"
#include "base/clock.h"

enum { SETTLEMENTS = 100, GAS_EACH = 90000, CLOCK_WARN_S = 10, CLOCK_FAIL_S = 60 };

/* ---- one question each ---- */

static bool ask(struct rpc *r, const char *method, json_t *params, json_t **ret)
{
    struct rpc_item item = { method, params };
    SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
    if (got.a[0].rc != RPC_OK)
        return false;
    *ret = json_incref(got.a[0].result);
    return true;
}

static bool ask_block(struct rpc *r, const char *tag, struct block *ret)
{
    JSON *j = NULL;
    return ask(r, "eth_getBlockByNumber", json_pack("[s, b]", tag, 0), &j) && block_read(j, ret);
}

static bool ask_amount(struct rpc *r, const char *method, json_t *params, struct amount *ret)
{
    JSON *j = NULL;
    return ask(r, method, params, &j) && rpc_read_amount(j, ret);
}

bool doctor_ask(struct rpc *r, const struct address *to, const char *data, struct buf *ret)
{
    JSON *j = NULL;
    size_t n;
    if (!ask(r, "eth_call", json_pack("[{s:s, s:s}, s]", "to", address_lower(to).s, "data", data, "latest"), &j))
        return false;
    OWNED uint8_t *bytes = rpc_read_data(j, &n);
    if (!bytes)
        return false;
    buf_add(ret, bytes, n);
    return true;
}

/* ---- checks of one endpoint ---- */

static bool check_reach(struct doctor *d, struct rpc *r, const struct net *n, const char *at, struct block *ret)
{
    if (ask_block(r, "latest", ret)) {
        doctor_say(d, FINDING_OK, at, "chain %llu, block %llu", (unsigned long long)n->chain_id,
                   (unsigned long long)ret->number);
        return true;
    }
    struct rpc_stats s;
    const bool other = rpc_stats(r, &s, 1) == 1 && s.faults[RPC_OTHER_CHAIN] > 0;
    if (other)
        doctor_say(d, FINDING_FAIL, at, "serves another chain than %s: correct rpc or id", n->id);
    else
        doctor_say(d, FINDING_FAIL, at, "gives no usable answer: is the address right and the node up?");
    return false;
}

static void check_clock(struct doctor *d, const struct net *n, const char *at, const struct block *latest)
{
    const int64_t behind = clock_wall_s() - (int64_t)latest->time; /* a block is up to its own interval old */
    const int64_t old = behind - n->block_time_ms / 1000;
    const int64_t off = behind < 0 ? -behind : old > 0 ? old : 0;
    if (off <= CLOCK_WARN_S)
        doctor_say(d, FINDING_OK, at, "the clock agrees with the block's time");
    else
        doctor_say(d, off > CLOCK_FAIL_S ? FINDING_FAIL : FINDING_WARN, at,
                   "the latest block is %lld s %s this clock: set the clock (NTP), or the node is behind",
                   (long long)(behind < 0 ? -behind : behind), behind < 0 ? "ahead of" : "behind");
}

static void check_finality(struct doctor *d, struct rpc *r, const struct net *n, const char *at)
{
    struct block b;
    if (n->finality_blocks > 0)
        doctor_say(d, FINDING_OK, at, "final is %u blocks behind the latest", n->finality_blocks);
    else if (ask_block(r, "finalized", &b))
        doctor_say(d, FINDING_OK, at, "knows the finalized block, %llu", (unsigned long long)b.number);
    else
        doctor_say(d, FINDING_FAIL, at, "does not know `finalized`: set finality_blocks of %s", n->id);
}

/* ---- code where it must be, and where it may surprise ---- */

static size_t add_payee(struct address *list, size_t n, const struct address *a)
{
    for (size_t i = 0; i < n; i++) {
        if (address_eq(&list[i], a))
            return n;
    }
    list[n] = *a;
    return n + 1;
}

static size_t list_payees(const struct config *c, const struct net *n, struct address **ret)
{
    size_t room = 1;
    for (size_t i = 0; i < c->tool_count; i++)
        room += c->tools[i].price_count;
    struct address *list = mem_resize(NULL, room, sizeof *list);
    size_t count = add_payee(list, 0, &n->pay_to);
    for (size_t i = 0; i < c->tool_count; i++) {
        for (size_t k = 0; k < c->tools[i].price_count; k++) {
            if (c->tools[i].prices[k].net == n)
                count = add_payee(list, count, &c->tools[i].prices[k].pay_to);
        }
    }
    *ret = list;
    return count;
}

static void check_payees(struct doctor *d, struct rpc *r, const struct net *n, const char *at)
{
    OWNED struct address *payees = NULL;
    const size_t count = list_payees(d->c, n, &payees);
    OWNED bool *code = mem_new(count * sizeof *code);
    if (!code_wait(r, payees, count, code)) {
        doctor_say(d, FINDING_FAIL, at, "the code at pay_to cannot be read");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct address_text who = address_checksum(&payees[i]);
        if (code[i])
            doctor_say(d, FINDING_WARN, at,
                       "pay_to %s has code: be sure that this contract can give the token out again", who.s);
        else
            doctor_say(d, FINDING_OK, at, "pay_to %s is a plain account", who.s);
    }
}

static void check_multicall(struct doctor *d, struct rpc *r, const char *at)
{
    bool there = false;
    if (code_wait(r, &multicall3_address, 1, &there) && there)
        doctor_say(d, FINDING_OK, at, "Multicall3 is there");
    else
        doctor_say(d, FINDING_FAIL, at, "no Multicall3 at %s: without it payments cannot be read or sent in batches",
                   address_checksum(&multicall3_address).s);
}

/* ---- gas ---- */

/* False: over 2^256. */
static bool times(struct amount a, uint64_t n, struct amount *ret)
{
    struct amount sum = AMOUNT_ZERO;
    for (; n > 0; n >>= 1) {
        if ((n & 1) && !amount_add(sum, a, &sum))
            return false;
        if (n > 1 && !amount_add(a, a, &a))
            return false;
    }
    *ret = sum;
    return true;
}

static void check_gas(struct doctor *d, struct rpc *r, const struct net *n, const char *at)
{
    struct amount balance, price, needed;
    if (!d->has_relayer)
        return;
    if (!ask_amount(r, "eth_getBalance", json_pack("[s, s]", address_lower(&d->relayer).s, "latest"), &balance) ||
        !ask_amount(r, "eth_gasPrice", json_array(), &price) ||
        !times(price, (uint64_t)SETTLEMENTS * GAS_EACH, &needed)) {
        doctor_say(d, FINDING_FAIL, at, "the relayer's balance cannot be read");
        return;
    }
    if (amount_cmp(price, n->fee_max) > 0)
        doctor_say(d, FINDING_WARN, at, "gas costs %s wei, over fee_max_wei (%s): payments wait", amount_text(price).s,
                   amount_text(n->fee_max).s);
    const struct address_text who = address_checksum(&d->relayer);
    const struct amount_text has = amount_human(balance, 18), wants = amount_human(needed, 18);
    if (amount_cmp(balance, needed) >= 0)
        doctor_say(d, FINDING_OK, at, "relayer %s has %s of the native coin, enough for over %d settlements", who.s,
                   has.s, SETTLEMENTS);
    else
        doctor_say(d, amount_is_zero(balance) ? FINDING_FAIL : FINDING_WARN, at,
                   "relayer %s has %s of the native coin; send it some (%d settlements cost about %s)", who.s, has.s,
                   SETTLEMENTS, wants.s);
}

/* ---- a network ---- */

static void check_endpoint(struct doctor *d, const struct net *n, size_t i)
{
    struct block latest;
    OWNED char *at = str_format("%s rpc[%zu]", n->id, i);
    struct rpc *r = rpc_new(d->fetcher, d->loop, n->chain_id, &n->rpc[i], 1, n->rpc_timeout_ms);
    if (check_reach(d, r, n, at, &latest)) {
        check_clock(d, n, at, &latest);
        check_finality(d, r, n, at);
        if (!n->tempo)
            check_multicall(d, r, at);
        for (size_t k = 0; k < n->token_count; k++)
            doctor_token(d, r, &n->tokens[k], at);
        check_payees(d, r, n, at);
        if (!n->tempo) /* payers send their own transactions, and pay for them in tokens */
            check_gas(d, r, n, at);
        doctor_refunds(d, r, n, at);
    }
    rpc_free(r);
}

void doctor_chain(struct doctor *d, const struct net *n)
{
    for (size_t i = 0; i < n->rpc_count; i++)
        check_endpoint(d, n, i);
}
