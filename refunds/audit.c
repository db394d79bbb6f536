/* The auditor: entry by entry, is it a Transfer of the chain, with its amount, once, in the accounts where it belongs;
 * and Transfer by Transfer, is it in the journal. It trusts no class and no state of the database where it can work the
 * matter out itself. */
#include "refunds/audit.h"

#include <inttypes.h>
#include <string.h>

#include "refunds/signed.h"

enum { PAGE = 2000 };
static const char owed[] = "liabilities:refunds-owed";

struct audit {
    struct db *db;
    struct rpc *rpc;
    const struct net *n;
    struct audit_wallet *wallet;
    size_t wallets;
    uint64_t start; /* what came in up to here is in the opening balances */
    uint64_t until; /* the block that everything is compared at */
    struct seen_list seen;
    json_t *differences;
    json_t *sources; /* "tx log" of what came in: {account: sum of all its entries} */
    json_t *totals;  /* "asset account": sum */
    json_t *payouts; /* debt: the entry that paid it */
    struct db_rows *debts;
};

static void differ(struct audit *a, const char *kind, const char *what, const char *expected, const char *found,
                   int64_t entry)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "kind", kind, "what", what, "expected", expected, "found", found);
    if (entry > 0)
        json_object_set_new(o, "entry", json_integer(entry));
    json_array_append_new(a->differences, o);
}

static void add_to(json_t *object, const char *key, const char *amount)
{
    struct sum s = { 0 };
    const char *before = json_str(object, key);
    if (sum_add(&s, slice_of(before ? before : "0")) && sum_add(&s, slice_of(amount)))
        json_object_set_new(object, key, json_string(sum_text(&s).s));
}

static const struct audit_wallet *wallet_of(const struct audit *a, const struct address *address)
{
    for (size_t i = 0; i < a->wallets; i++)
        if (address_eq(&a->wallet[i].address, address))
            return &a->wallet[i];
    return NULL;
}

static char *account_of(const struct audit_wallet *w)
{
    return str_format("assets:%s:%s", w->refund ? "refund-wallet" : "wallet", address_lower(&w->address).s);
}

static char *source_key(const struct hash32 *tx, uint64_t log_index)
{
    return str_format("%s %" PRIu64, hash_text(tx).s, log_index);
}

/* ---- what is there ---- */

static bool ask(const struct audit *a, const char *function, struct db_rows **ret)
{
    DB_ARGS args = { 0 };
    arg_text(&args, a->n->id);
    return db_wait(a->db, function, &args, clock_mono_ms() + 6 * BOOKS_DB_MS, ret) == DB_OK;
}

static bool read_chain(struct audit *a)
{
    DB_ROWS *rows = NULL;
    if (!ask(a, "audit_scans", &rows))
        return false;
    a->wallet = mem_new((size_t)db_count(rows) * sizeof *a->wallet + 1);
    for (int i = 0; i < db_count(rows); i++) {
        struct audit_wallet *w = &a->wallet[a->wallets++];
        (void)row_copy(rows, i, "wallet", w->address.b, 20);
        w->refund = row_is(rows, i, "role", "refund");
        w->start = (uint64_t)row_int(rows, i, "start");
        w->block = (uint64_t)row_int(rows, i, "block");
        a->start = w->start > a->start ? w->start : a->start;
        a->until = i == 0 || w->block < a->until ? w->block : a->until;
    }
    for (size_t i = 0; i < a->wallets; i++)
        a->wallet[i].block = a->until;
    for (size_t i = 0; i < a->wallets; i++)
        if (!audit_chain(a->rpc, a->n, &a->wallet[i], &a->seen))
            return false;
    return true;
}

/* ---- an entry ---- */

/* What the entry must put into our wallets' accounts, and whether it does. */
static void compare_amount(struct audit *a, const struct db_rows *rows, int i, const struct seen *s,
                           const json_t *lines, bool in)
{
    const struct audit_wallet *from = wallet_of(a, &s->from), *to = wallet_of(a, &s->to);
    const struct amount_text amount = amount_text(s->amount);
    OWNED char *minus = str_format("-%s", amount.s), *out = !in && from ? account_of(from) : NULL,
               *into = (in || (to && to->refund)) && to ? account_of(to) : NULL;
    const bool same = out && into && strcmp(out, into) == 0;
    const int64_t id = row_int(rows, i, "id");
    OWNED char *what = source_key(&s->tx, s->log_index);
    if (out && !same && (!json_str(lines, out) || strcmp(json_str(lines, out), minus) != 0))
        differ(a, "wrong amount", what, minus, json_str(lines, out) ? json_str(lines, out) : "0", id);
    if (into && !same && (!json_str(lines, into) || strcmp(json_str(lines, into), amount.s) != 0))
        differ(a, "wrong amount", what, amount.s, json_str(lines, into) ? json_str(lines, into) : "0", id);
}

static int debt_row(const struct audit *a, const void *id)
{
    for (int i = 0; i < db_count(a->debts); i++) {
        const struct slice one = row_bytes(a->debts, i, "id");
        if (memcmp(one.p, id, 32) == 0)
            return i;
    }
    return -1;
}

/* The nonce that the refund of a debt must carry, worked out here. */
static struct hash32 nonce_of(const struct db_rows *debts, int i)
{
    static const char domain[] = "payonce refund";
    uint8_t text[sizeof domain - 1 + 2 + 32];
    const int64_t part = row_int(debts, i, "part");
    memcpy(text, domain, sizeof domain - 1);
    text[sizeof domain - 1] = (uint8_t)(part >> 8);
    text[sizeof domain] = (uint8_t)part;
    memcpy(text + sizeof domain + 1, row_bytes(debts, i, "id").p, 32);
    return sha256(text, sizeof text);
}

static void judge_payout(struct audit *a, const struct db_rows *rows, int i, const struct seen *s)
{
    const struct slice id = row_bytes(rows, i, "debt");
    const int64_t entry = row_int(rows, i, "id");
    const int row = id.p ? debt_row(a, id.p) : -1;
    struct hash32 key;
    if (row < 0) {
        differ(a, "refund without a debt", "a payout names no debt that there is", "a debt", "none", entry);
        return;
    }
    memcpy(key.b, id.p, 32);
    const struct hash_text debt = hash_text(&key);
    if (json_object_get(a->payouts, debt.s))
        differ(a, "doubled refund", debt.s, "one payout", "another", entry);
    json_object_set_new(a->payouts, debt.s, json_integer(entry));
    const struct hash32 nonce = nonce_of(a->debts, row);
    if (s && (!s->has_nonce || !hash_eq(&nonce, &s->nonce)))
        differ(a, "refund without a debt", debt.s, hash_text(&nonce).s,
               s->has_nonce ? hash_text(&s->nonce).s : "no nonce", entry);
}

static void judge_entry(struct audit *a, const struct db_rows *rows, int i)
{
    struct json_why why;
    const struct slice text = row_text(rows, i, "lines");
    const int64_t id = row_int(rows, i, "id");
    JSON *lines = json_read(text.p, text.n, &why);
    struct hash32 tx;
    const char *account;
    json_t *amount;
    if ((uint64_t)row_int(rows, i, "block") > a->until)
        return;
    if (!row_bool(rows, i, "whole"))
        differ(a, "edited row", "the entry or its postings were changed", "its digest", "another", id);
    if (!row_is(rows, i, "sum", "0"))
        differ(a, "unbalanced", "the entry's postings", "0", row_text(rows, i, "sum").p, id);
    json_object_foreach(lines, account, amount)
    {
        OWNED char *key = str_format("%s %s", row_text(rows, i, "asset").p, account);
        add_to(a->totals, key, json_string_value(amount));
    }
    if (!row_copy(rows, i, "tx", tx.b, 32) || row_null(rows, i, "log_index"))
        return;
    if ((uint64_t)row_int(rows, i, "block") <= a->start && json_object_get(lines, "equity:opening"))
        return;
    const bool in = row_is(rows, i, "kind", "receipt"), out = row_is(rows, i, "kind", "movement");
    const uint64_t log_index = (uint64_t)row_int(rows, i, "log_index");
    struct seen *s = audit_find(&a->seen, &tx, log_index);
    OWNED char *source = source_key(&tx, log_index);
    if ((in || out) && !s)
        differ(a, "entry without a transfer", source, "a Transfer on the chain", "none", id);
    if ((in || out) && s) {
        bool *booked = in ? &s->receipt : &s->movement;
        if (*booked)
            differ(a, "booked twice", source, "one entry", "another", id);
        *booked = true;
        compare_amount(a, rows, i, s, lines, in);
    }
    if (out && row_is(rows, i, "what", "payout"))
        judge_payout(a, rows, i, s);
    if (in || row_is(rows, i, "kind", "correction")) {
        json_t *accounts = json_object_get(a->sources, source);
        if (!accounts)
            json_object_set_new(a->sources, source, accounts = json_object());
        json_object_foreach(lines, account, amount) add_to(accounts, account, json_string_value(amount));
    }
}

static bool read_journal(struct audit *a)
{
    for (int64_t after = 0;;) {
        DB_ARGS args = { 0 };
        DB_ROWS *rows = NULL;
        arg_text(&args, a->n->id);
        arg_int(&args, after);
        arg_int(&args, PAGE);
        if (db_wait(a->db, "audit_entries", &args, clock_mono_ms() + 6 * BOOKS_DB_MS, &rows) != DB_OK)
            return false;
        const int n = db_count(rows);
        for (int i = 0; i < n; i++)
            judge_entry(a, rows, i);
        if (n < PAGE)
            return true;
        after = row_int(rows, n - 1, "id");
    }
}

/* ---- a Transfer ---- */

static void judge_transfers(struct audit *a)
{
    for (size_t i = 0; i < a->seen.n; i++) {
        const struct seen *s = &a->seen.of[i];
        const struct audit_wallet *from = wallet_of(a, &s->from), *to = wallet_of(a, &s->to);
        const bool in = to && !to->refund && s->block > to->start && s->block <= to->block;
        const bool out = (from && s->block > from->start && s->block <= from->block) ||
                         (to && to->refund && s->block > to->start && s->block <= to->block);
        OWNED char *what = source_key(&s->tx, s->log_index);
        if (!s->optional && ((in && !s->receipt) || (out && !s->movement)))
            differ(a, "missing entry", what, amount_text(s->amount).s, "no entry", 0);
    }
}

/* ---- in the right accounts? ---- */

struct split {
    struct sum income, owed, suspense, clearing;
};

/* What the orders and debts make of an incoming Transfer. */
static void split_of(const struct audit *a, const json_t *prices, const struct seen *s, const char *key,
                     struct split *ret)
{
    const struct amount_text amount = amount_text(s->amount);
    const char *price = json_str(prices, key), *debt = NULL;
    for (int i = 0; i < db_count(a->debts); i++)
        if (memcmp(row_bytes(a->debts, i, "tx").p, s->tx.b, 32) == 0 &&
            (uint64_t)row_int(a->debts, i, "log_index") == s->log_index && !row_is(a->debts, i, "state", "earned") &&
            !row_is(a->debts, i, "state", "cancelled"))
            debt = row_text(a->debts, i, "amount").p;
    memset(ret, 0, sizeof *ret);
    if (debt)
        (void)!sum_take(&ret->owed, slice_of(debt));
    struct sum *rest = price ? &ret->income : wallet_of(a, &s->from) ? &ret->clearing : &ret->suspense;
    (void)!(sum_take(rest, slice_of(amount.s)) && (!debt || sum_add(rest, slice_of(debt))));
}

static void compare_account(struct audit *a, const json_t *accounts, const char *account, const struct sum *expected,
                            const char *key)
{
    struct sum d = *expected;
    const char *found = json_str(accounts, account) ? json_str(accounts, account) : "0";
    OWNED char *what = str_format("%s in %s", key, account);
    if (!sum_take(&d, slice_of(found)) || !sum_is_zero(&d))
        differ(a, "wrong account", what, sum_text(expected).s, found, 0);
}

static bool judge_accounts(struct audit *a)
{
    DB_ROWS *rows = NULL;
    JSON *prices = json_object();
    if (!ask(a, "audit_transfers", &rows))
        return false;
    for (int i = 0; i < db_count(rows); i++) {
        struct hash32 tx;
        if (!row_copy(rows, i, "tx", tx.b, 32))
            continue;
        OWNED char *key = source_key(&tx, (uint64_t)row_int(rows, i, "log_index"));
        json_object_set_new(prices, key, json_string(row_text(rows, i, "price").p));
    }
    for (size_t i = 0; i < a->seen.n; i++) {
        const struct seen *s = &a->seen.of[i];
        OWNED char *key = source_key(&s->tx, s->log_index);
        const json_t *accounts = s->receipt ? json_object_get(a->sources, key) : NULL;
        struct split want;
        if (!accounts)
            continue;
        split_of(a, prices, s, key, &want);
        compare_account(a, accounts, "income:sales", &want.income, key);
        compare_account(a, accounts, owed, &want.owed, key);
        compare_account(a, accounts, "liabilities:suspense", &want.suspense, key);
        compare_account(a, accounts, "assets:clearing", &want.clearing, key);
    }
    return true;
}

/* ---- debts and what went back ---- */

static void judge_debt(struct audit *a, int i)
{
    struct hash32 tx, id, nonce, has;
    struct address payer;
    if (!row_copy(a->debts, i, "tx", tx.b, 32) || !row_copy(a->debts, i, "id", id.b, 32) ||
        !row_copy(a->debts, i, "payer", payer.b, 20) || !row_copy(a->debts, i, "refund_nonce", has.b, 32) ||
        row_is(a->debts, i, "state", "cancelled"))
        return;
    const struct hash_text name = hash_text(&id);
    const struct seen *s = audit_find(&a->seen, &tx, (uint64_t)row_int(a->debts, i, "log_index"));
    if (s && (!address_eq(&s->from, &payer) || amount_cmp(s->amount, row_amount(a->debts, i, "amount")) < 0))
        differ(a, "edited row", name.s, amount_text(s->amount).s, row_text(a->debts, i, "amount").p, 0);
    nonce = nonce_of(a->debts, i);
    if (!hash_eq(&nonce, &has))
        differ(a, "edited row", name.s, hash_text(&nonce).s, hash_text(&has).s, 0);
    size_t paid = 0;
    for (size_t k = 0; k < a->seen.n; k++)
        paid +=
            a->seen.of[k].has_nonce && hash_eq(&a->seen.of[k].nonce, &nonce) && address_eq(&a->seen.of[k].to, &payer);
    if (row_is(a->debts, i, "state", "refunded") != (paid == 1) && row_null(a->debts, i, "refund_tx") == (paid == 1))
        differ(a, "wrong state", name.s, paid ? "refunded" : "not refunded", row_text(a->debts, i, "state").p, 0);
}

/* What left the refund wallet without a debt's nonce, for somebody who has been paid back already, is paid twice by
 * hand. */
static void judge_outgoing(struct audit *a, const struct seen *s)
{
    const struct audit_wallet *from = wallet_of(a, &s->from);
    if (!from || !from->refund)
        return;
    bool refund = false, payer = false;
    for (int i = 0; i < db_count(a->debts); i++) {
        const struct hash32 nonce = nonce_of(a->debts, i);
        refund = refund || (s->has_nonce && hash_eq(&nonce, &s->nonce));
        payer = payer || (row_is(a->debts, i, "state", "refunded") &&
                          memcmp(row_bytes(a->debts, i, "payer").p, s->to.b, 20) == 0 &&
                          amount_cmp(row_amount(a->debts, i, "amount"), s->amount) == 0);
    }
    OWNED char *what = source_key(&s->tx, s->log_index);
    if (!refund && payer)
        differ(a, "doubled refund", what, "one refund of each debt", "its amount once more, by no debt's nonce", 0);
}

/* ---- the sums ---- */

static bool judge_sums(struct audit *a)
{
    struct sum debts, liability;
    for (size_t k = 0; k < a->n->token_count; k++) {
        const struct address_text asset = address_lower(&a->n->tokens[k].address);
        OWNED char *key = str_format("%s %s", asset.s, owed);
        memset(&debts, 0, sizeof debts);
        memset(&liability, 0, sizeof liability);
        for (int i = 0; i < db_count(a->debts); i++) {
            const struct slice token = row_bytes(a->debts, i, "asset");
            struct hash32 tx, refund;
            const bool paid = row_copy(a->debts, i, "refund_tx", refund.b, 32) &&
                              audit_find(&a->seen, &refund, (uint64_t)row_int(a->debts, i, "refund_log"));
            const bool open =
                !paid && !row_is(a->debts, i, "state", "earned") && !row_is(a->debts, i, "state", "cancelled");
            (void)row_copy(a->debts, i, "tx", tx.b, 32);
            const bool booked =
                !row_null(a->debts, i, "source_block") && (uint64_t)row_int(a->debts, i, "source_block") <= a->start;
            if (open && memcmp(token.p, a->n->tokens[k].address.b, 20) == 0 &&
                (booked || audit_find(&a->seen, &tx, (uint64_t)row_int(a->debts, i, "log_index"))))
                (void)!sum_take(&debts, row_text(a->debts, i, "amount"));
        }
        const char *books = json_str(a->totals, key) ? json_str(a->totals, key) : "0";
        (void)!sum_add(&liability, slice_of(books));
        if (strcmp(sum_text(&debts).s, books) != 0)
            differ(a, "liability", key, sum_text(&debts).s, books, 0);
        for (size_t w = 0; w < a->wallets; w++) {
            struct rpc_item item = balance_item(&a->n->tokens[k].address, &a->wallet[w].address, a->wallet[w].block);
            struct rpc_answers r = rpc_wait(a->rpc, &item, 1);
            struct amount have;
            const bool ok = balance_read(&r.a[0], &have);
            rpc_answers_done(&r);
            if (!ok)
                return false;
            OWNED char *account = account_of(&a->wallet[w]), *name = str_format("%s %s", asset.s, account);
            const char *in_books = json_str(a->totals, name) ? json_str(a->totals, name) : "0";
            if (strcmp(amount_text(have).s, in_books) != 0)
                differ(a, "wallet", name, amount_text(have).s, in_books, 0);
        }
    }
    return true;
}

static bool judge(struct audit *a)
{
    if (!ask(a, "audit_debts", &a->debts) || !read_chain(a) || !read_journal(a) || !judge_accounts(a))
        return false;
    judge_transfers(a);
    for (int i = 0; i < db_count(a->debts); i++)
        judge_debt(a, i);
    for (size_t i = 0; i < a->seen.n; i++)
        judge_outgoing(a, &a->seen.of[i]);
    return judge_sums(a);
}

json_t *audit_network(struct db *db, struct rpc *rpc, const struct net *n)
{
    struct audit a = { .db = db,
                       .rpc = rpc,
                       .n = n,
                       .differences = json_array(),
                       .sources = json_object(),
                       .totals = json_object(),
                       .payouts = json_object() };
    const bool ok = judge(&a);
    json_decref(a.sources);
    json_decref(a.totals);
    json_decref(a.payouts);
    db_rows_free(a.debts);
    free(a.wallet);
    seen_done(&a.seen);
    if (ok)
        return a.differences;
    json_decref(a.differences);
    return NULL;
}
