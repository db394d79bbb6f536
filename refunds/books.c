/* Reconciliation: the books against the chain at one block, wallet by wallet and asset by asset. */
#include "refunds/internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "refunds/signed.h"

bool books_block(struct db *db, const struct net *n, uint64_t *ret)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, n->id);
    if (db_wait(db, "books_block", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK || row_null(rows, 0, "block"))
        return false;
    *ret = (uint64_t)row_int(rows, 0, "block");
    return true;
}

size_t books_differences(const json_t *report)
{
    return json_array_size(json_object_get(report, "differences"));
}

static void differ(json_t *report, const char *what, const char *asset, const char *expected, const char *found,
                   const char *owner, const char *reason)
{
    json_array_append_new(json_object_get(report, "differences"),
                          json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "what", what, "asset", asset, "expected",
                                    expected, "found", found, "owner", owner, "reason", reason));
}

unsigned asset_decimals(const struct net *nets, size_t n, const char *network, const char *asset,
                        const char **ret_symbol)
{
    *ret_symbol = strcmp(asset, "native") == 0 ? "native" : asset;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; strcmp(nets[i].id, network) == 0 && k < nets[i].token_count; k++)
            if (strcmp(address_lower(&nets[i].tokens[k].address).s, asset) == 0) {
                *ret_symbol = nets[i].tokens[k].symbol;
                return nets[i].tokens[k].decimals;
            }
    return strcmp(asset, "native") == 0 ? 18 : 0;
}

/* ---- a wallet ---- */

static bool ask_balance(struct rpc *rpc, const char *asset, const char *wallet, uint64_t block, struct amount *ret)
{
    struct address token, who;
    if (!address_read(wallet, strlen(wallet), &who))
        return false;
    const bool native = strcmp(asset, "native") == 0;
    if (!native && !address_read(asset, strlen(asset), &token))
        return false;
    struct rpc_item item = native ? (struct rpc_item){ "eth_getBalance", json_pack("[s, o]", wallet, rpc_u64(block)) }
                                  : balance_item(&token, &who, block);
    struct rpc_answers r = rpc_wait(rpc, &item, 1);
    const bool ok = native ? r.a[0].rc == RPC_OK && rpc_read_amount(r.a[0].result, ret) : balance_read(&r.a[0], ret);
    rpc_answers_done(&r);
    return ok;
}

/* Native money comes without a log, so what the relayer was given is booked a moment later; what it lacks is a
 * difference. */
static void compare_wallet(json_t *report, const char *account, const char *asset, const char *closing,
                           const char *on_chain)
{
    struct sum d = { 0 };
    const bool gas = strcmp(asset, "native") == 0;
    if (!sum_add(&d, slice_of(on_chain)) || !sum_take(&d, slice_of(closing)) || sum_is_zero(&d) ||
        (gas && sum_sign(&d) > 0))
        return;
    differ(report, account, asset, closing, on_chain, gas ? "operator" : "finance",
           gas ? "the relayer spent native money that no transaction in the journal accounts for"
               : "the wallet's balance is not what the journal's entries come to: a transfer is missing from the "
                 "books, or is in them twice");
}

static bool is_named(const struct net *n, const char *wallet)
{
    struct address a;
    bool named = false;
    for (size_t i = 0; i < n->wallet_count && address_read(wallet, strlen(wallet), &a); i++)
        named = named || address_eq(&n->wallets[i], &a);
    return named;
}

static bool add_wallet(json_t *report, struct rpc *rpc, const struct net *n, const struct db_rows *rows, int i,
                       uint64_t block)
{
    const char *asset = row_text(rows, i, "asset").p, *account = row_text(rows, i, "name").p, *symbol;
    const char *wallet = strrchr(account, ':') + 1, *closing = row_text(rows, i, "closing").p;
    struct amount have;
    if (!ask_balance(rpc, asset, wallet, block, &have))
        return false;
    const struct amount_text on_chain = amount_text(have);
    struct sum d = { 0 };
    if (!sum_add(&d, slice_of(on_chain.s)) || !sum_take(&d, slice_of(closing)))
        return false;
    const unsigned decimals = asset_decimals(n, 1, n->id, asset, &symbol);
    const bool former = strncmp(account, "assets:wallet:", 14) == 0 && !is_named(n, wallet);
    json_array_append_new(json_object_get(report, "wallets"),
                          json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:I, s:s, s:s, s:s, s:s}", "account", account,
                                    "wallet", wallet, "asset", asset, "symbol", symbol, "decimals", (int)decimals,
                                    "opening", row_text(rows, i, "opening").p, "entries",
                                    row_text(rows, i, "entries").p, "count", (json_int_t)row_int(rows, i, "count"),
                                    "closing", closing, "on_chain", on_chain.s, "difference", sum_text(&d).s, "note",
                                    former ? "not in the configuration any more; read on" : ""));
    compare_wallet(report, account, asset, closing, on_chain.s);
    return true;
}

/* ---- accounts against each other ---- */

static struct slice closing_of(const struct db_rows *rows, const char *asset, const char *name)
{
    for (int i = 0; i < db_count(rows); i++)
        if (row_is(rows, i, "asset", asset) && row_is(rows, i, "name", name))
            return row_text(rows, i, "closing");
    return SLICE("0");
}

static void compare_asset(json_t *report, const struct db_rows *rows, const char *asset)
{
    struct sum trial = { 0 }, debts = { 0 };
    const struct slice owed = closing_of(rows, asset, "liabilities:refunds-owed"),
                       open = closing_of(rows, asset, "open debts"),
                       clearing = closing_of(rows, asset, "assets:clearing");
    bool ok = sum_add(&debts, owed) && sum_add(&debts, open);
    for (int i = 0; ok && i < db_count(rows); i++)
        if (row_is(rows, i, "asset", asset) && !row_is(rows, i, "name", "open debts"))
            ok = sum_add(&trial, row_text(rows, i, "closing"));
    json_array_append_new(json_object_get(report, "liabilities"),
                          json_pack("{s:s, s:s, s:s, s:s, s:s}", "asset", asset, "account", owed.p, "open_debts",
                                    open.p, "suspense", closing_of(rows, asset, "liabilities:suspense").p,
                                    "trial_balance", sum_text(&trial).s));
    if (!ok || !sum_is_zero(&debts))
        differ(report, "liabilities:refunds-owed", asset, open.p, owed.p, "finance",
               "the open debts and their liability account differ");
    if (!ok || !sum_is_zero(&trial))
        differ(report, "trial balance", asset, "0", sum_text(&trial).s, "operator",
               "the journal's entries do not sum to zero");
    if (!slice_is(clearing, "0"))
        differ(report, "assets:clearing", asset, "0", clearing.p, "finance",
               "money left one of our wallets for another and is not in the books there");
}

json_t *books_report(struct db *db, struct rpc *rpc, const struct net *n, uint64_t block)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, n->id);
    arg_int(&a, (int64_t)block);
    if (db_wait(db, "books_at", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK)
        return NULL;
    JSON *report = json_pack("{s:s, s:I, s:s, s:[], s:[], s:[]}", "network", n->id, "block", (json_int_t)block,
                             "made_at", time_iso(clock_wall_s()).s, "wallets", "liabilities", "differences");
    struct slice before = { NULL, 0 };
    for (int i = 0; i < db_count(rows); i++) {
        const struct slice asset = row_text(rows, i, "asset"), name = row_text(rows, i, "name");
        const bool wallet = strncmp(name.p, "assets:", 7) == 0 && strchr(name.p + 7, ':');
        if (wallet && !add_wallet(report, rpc, n, rows, i, block))
            return NULL;
        if (!before.p || !slice_is(asset, before.p))
            compare_asset(report, rows, asset.p);
        before = asset;
    }
    return MOVE(report);
}

/* ---- as CSV ---- */

static void csv_line(struct buf *b, const json_t *o, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_object_get(o, keys[i]);
        if (i > 0)
            buf_puts(b, ",");
        if (json_is_integer(v))
            buf_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        else if (json_is_string(v))
            csv_field(b, slice_of(json_string_value(v)));
    }
    buf_puts(b, "\r\n");
}

static void csv_list(struct buf *b, const json_t *report, const char *list, const char *const *keys, size_t n)
{
    size_t i;
    json_t *o;
    buf_puts(b, "network,block");
    for (i = 0; i < n; i++)
        buf_printf(b, ",%s", keys[i]);
    buf_puts(b, "\r\n");
    json_array_foreach(json_object_get(report, list), i, o)
    {
        buf_printf(b, "%s,%" JSON_INTEGER_FORMAT ",", json_str(report, "network"),
                   json_integer_value(json_object_get(report, "block")));
        csv_line(b, o, keys, n);
    }
}

char *books_csv(const json_t *report)
{
    static const char *const wallets[] = { "account", "asset", "symbol",  "decimals", "opening",
                                           "entries", "count", "closing", "on_chain", "difference", "note" };
    static const char *const differences[] = { "what", "asset", "expected", "found", "owner", "reason" };
    struct buf b = { 0 };
    csv_list(&b, report, "wallets", wallets, COUNT(wallets));
    buf_puts(&b, "\r\n");
    csv_list(&b, report, "differences", differences, COUNT(differences));
    return b.p;
}
