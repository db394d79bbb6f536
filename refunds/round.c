/* The round of one network's books: what moved, what it cost, what is owed, and whether all of it is so. */
#include <string.h>

#include "base/log.h"
#include "refunds/internal.h"

enum { PIN_MS = 10000 };

json_t *topic_of_address(const struct address *a)
{
    uint8_t topic[32] = { 0 };
    memcpy(topic + 12, a->b, 20);
    return rpc_hex(topic, sizeof topic);
}

struct rpc_item balance_item(const struct address *token, const struct address *wallet, uint64_t block)
{
    const struct balance_call call = balance_call(wallet);
    return (struct rpc_item){ "eth_call", json_pack("[{s:s, s:o}, o]", "to", address_lower(token).s, "data",
                                                    rpc_hex(call.b, sizeof call.b), rpc_u64(block)) };
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

static struct book_wallet *wallet_of(const struct refunds *r, const struct address *a)
{
    for (size_t i = 0; i < r->wallet_count; i++)
        if (address_eq(&r->wallets[i].address, a))
            return &r->wallets[i];
    return NULL;
}

static void add_wallet(struct refunds *r, const struct address *a, bool refund)
{
    struct book_wallet *known = wallet_of(r, a);
    if (!known) {
        r->wallets = mem_resize(r->wallets, r->wallet_count + 1, sizeof *r->wallets);
        r->wallets[r->wallet_count++] = (struct book_wallet){ .address = *a, .refund = refund };
    } else if (refund) {
        known->refund = true;
    }
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
    for (size_t i = 0; i < n->wallet_count; i++)
        add_wallet(r, &n->wallets[i], false);
    if (wallet)
        add_wallet(r, &wallet->address, true);
    r->pay_at_ms = mem_new((count + 1) * sizeof *r->pay_at_ms);
    r->look_span = mem_new((count + 1) * sizeof *r->look_span);
    return r;
}

void refunds_free(struct refunds *r)
{
    if (r->checker)
        checker_free(r->checker);
    free(r->wallets);
    free(r->pay_at_ms);
    free(r->look_span);
    free(r);
}

/* ---- which wallets are ours ---- */

static void name_wallet(json_t *list, const struct address *a, const char *role)
{
    json_t *o = json_object();
    json_set_bare(o, "address", a->b, 20);
    json_object_set_new(o, "role", json_string(role));
    json_array_append_new(list, o);
}

/* As the configuration has them. */
static json_t *named_wallets(const struct refunds *r)
{
    json_t *list = json_array();
    const struct net *n = r->net;
    for (size_t i = 0; i < n->wallet_count; i++)
        if (!r->wallet || !address_eq(&n->wallets[i], &r->wallet->address))
            name_wallet(list, &n->wallets[i], "receive");
    if (r->wallet)
        name_wallet(list, &r->wallet->address, "refund");
    if (!wallet_of(r, &r->relayer))
        name_wallet(list, &r->relayer, "relayer");
    return list;
}

/* Another refund wallet than the one that signed what is still open is refused: two wallets could pay one debt. Those
 * that paid or were paid to before are read on, since what they sent and got is in the books. Asked again and again: a
 * person may name one more. */
static bool pin(struct refunds *r, const struct settler_turn *t)
{
    JSON *list = named_wallets(r);
    OWNED char *text = json_write(list);
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, r->net->id);
    arg_text(&a, text);
    if (db_wait(t->db, "wallets_pin", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK)
        return false;
    const bool refused = !row_is(rows, 0, "verdict", "ok");
    if (refused && !r->refused)
        log_error("ledger.wallet_changed",
                  "network=%s hint=refunds signed by another wallet are not proven dead; configure that wallet again",
                  r->net->id);
    r->refused = refused;
    r->pinned = !refused;
    for (int i = 0; r->pinned && i < db_count(rows); i++) {
        struct address former;
        if (!row_copy(rows, i, "former", former.b, 20))
            continue;
        if (!wallet_of(r, &former))
            log_info("ledger.read_on", "network=%s wallet=%s hint=not configured any more, and its books go on",
                     r->net->id, address_lower(&former).s);
        add_wallet(r, &former, row_bool(rows, i, "refund"));
    }
    if (r->pinned && !r->checker)
        r->checker = checker_new(t->loop, t->rpc);
    return r->pinned;
}

static bool pinned(struct refunds *r, const struct settler_turn *t)
{
    const int64_t now = clock_mono_ms();
    if (r->pinned && now < r->pin_at_ms)
        return true;
    r->pin_at_ms = now + PIN_MS;
    return pin(r, t);
}

/* Only the owner of the relayer's lease: one settler of several. */
void refunds_turn(void *arg, const struct settler_turn *t)
{
    struct refunds *r = arg;
    if (!t->owner || !pinned(r, t))
        return;
    movements_turn(r, t);
    gas_turn(r, t);
    check_turn(r, t);
    own_turn(r, t);
    payout_turn(r, t);
}
