/* The round of one network's books: what moved, what it cost, what is owed, and whether all of it is so. */
#include <string.h>

#include "base/log.h"
#include "refunds/internal.h"

void set_bare(json_t *o, const char *key, const void *p, size_t n)
{
    OWNED char *hex = mem_new(2 * n + 1);
    hex_write_bare(hex, p, n);
    json_object_set_new(o, key, json_string(hex));
}

json_t *topic_of_address(const struct address *a)
{
    uint8_t topic[32] = { 0 };
    memcpy(topic + 12, a->b, 20);
    return rpc_hex(topic, sizeof topic);
}

struct rpc_item balance_item(const struct address *token, const struct address *wallet, uint64_t block)
{
    uint8_t call[4 + 32] = { 0x70, 0xa0, 0x82, 0x31 };
    memcpy(call + 16, wallet->b, 20);
    return (struct rpc_item){ "eth_call", json_pack("[{s:s, s:o}, o]", "to", address_lower(token).s, "data",
                                                    rpc_hex(call, sizeof call), rpc_u64(block)) };
}

bool balance_read(const struct rpc_answer *a, struct amount *ret)
{
    size_t n = 0;
    OWNED uint8_t *data = a->rc == RPC_OK ? rpc_read_data(a->result, &n) : NULL;
    if (!data || n != 32)
        return false;
    *ret = amount_from_be(data);
    return true;
}

struct refunds *refunds_new(const struct net *n, const struct refund_policy *policies, size_t count,
                            const struct key *wallet, const struct address *relayer)
{
    struct refunds *r = mem_new(sizeof *r);
    r->net = n;
    r->policies = policies;
    r->policy_count = count;
    r->wallet = wallet;
    r->relayer = *relayer;
    r->wallets = mem_new((n->wallet_count + 1) * sizeof *r->wallets);
    memcpy(r->wallets, n->wallets, n->wallet_count * sizeof *r->wallets);
    r->wallet_count = n->wallet_count;
    if (wallet && !refunds_wallet_is(r, &wallet->address))
        r->wallets[r->wallet_count++] = wallet->address;
    r->span = mem_new(r->wallet_count * sizeof *r->span);
    r->pay_at_ms = mem_new((count + 1) * sizeof *r->pay_at_ms);
    return r;
}

void refunds_free(struct refunds *r)
{
    if (r->checker)
        checker_free(r->checker);
    free(r->wallets);
    free(r->span);
    free(r->pay_at_ms);
    free(r);
}

static void add_wallet(json_t *list, const struct address *a, const char *role)
{
    json_t *o = json_object();
    set_bare(o, "address", a->b, 20);
    json_object_set_new(o, "role", json_string(role));
    json_array_append_new(list, o);
}

/* Which wallets are ours. Another refund wallet than the one that signed what is still open is refused: two wallets
 * could pay one debt. */
static bool pin(struct refunds *r, const struct settler_turn *t)
{
    JSON *list = json_array();
    for (size_t i = 0; i < r->wallet_count; i++)
        add_wallet(list, &r->wallets[i],
                   r->wallet && address_eq(&r->wallets[i], &r->wallet->address) ? "refund" : "receive");
    if (!refunds_wallet_is(r, &r->relayer))
        add_wallet(list, &r->relayer, "relayer");
    OWNED char *text = json_write(list);
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, r->net->id);
    arg_text(&a, text);
    if (db_wait(t->db, "wallets_pin", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK)
        return false;
    if (!row_is(rows, 0, "verdict", "ok") && !r->refused)
        log_error("ledger.wallet_changed",
                  "network=%s hint=refunds signed by another wallet are not proven dead; configure that wallet again",
                  r->net->id);
    r->refused = !row_is(rows, 0, "verdict", "ok");
    r->pinned = !r->refused;
    if (r->pinned)
        r->checker = checker_new(t->loop, t->rpc);
    return r->pinned;
}

/* Only the owner of the relayer's lease: one settler of several. */
void refunds_turn(void *arg, const struct settler_turn *t)
{
    struct refunds *r = arg;
    if (!t->owner || (!r->pinned && !pin(r, t)))
        return;
    movements_turn(r, t);
    gas_turn(r, t);
    check_turn(r, t);
    payout_turn(r, t);
}
