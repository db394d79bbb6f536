/* The journal for others: hledger, CSV, JSON lines. The same rows in the same order each time, amounts as the token
 * counts them. */
#include <inttypes.h>
#include <string.h>

#include "refunds/internal.h"
#include "refunds/signed.h"

/* ---- CSV ---- */

/* A field that begins like a formula gets an apostrophe in front, as spreadsheets show text; a plain number is one. */
void csv_field(struct buf *b, struct slice text)
{
    const bool number = text.n > 1 && text.p[0] == '-' && strspn(text.p + 1, "0123456789") == text.n - 1;
    const bool formula = text.n > 0 && strchr("=+-@\t\r", text.p[0]) && !number;
    bool quote = formula;
    if (text.n == 0)
        return;
    for (size_t i = 0; i < text.n; i++)
        quote = quote || strchr(",\"\r\n", text.p[i]);
    if (!quote) {
        buf_add(b, text.p, text.n);
        return;
    }
    buf_puts(b, formula ? "\"'" : "\"");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"')
            buf_puts(b, "\"");
        buf_add(b, &text.p[i], 1);
    }
    buf_puts(b, "\"");
}

static void csv_hex(struct buf *b, struct slice bytes)
{
    if (bytes.p)
        buf_hex(b, bytes.p, bytes.n);
}

static void receipt_link(struct buf *b, const struct export_source *s, int row)
{
    char hex[33];
    const struct slice id = row_bytes(s->rows, row, "receipt");
    if (!id.p)
        return;
    hex_write_bare(hex, id.p, id.n);
    buf_printf(b, "%s/receipts/rcp_%s", s->public_url, hex);
}

static const char csv_head[] =
    "record,time,network,block,entry,kind,what,account,asset,symbol,decimals,amount,transaction,log,debt,receipt,"
    "reason,actor\r\n";

static void csv_asset(struct buf *b, const struct export_source *s, const struct db_rows *rows, int i)
{
    const char *symbol, *asset = row_text(rows, i, "asset").p;
    const unsigned decimals = asset_decimals(s->nets, s->net_count, row_text(rows, i, "network").p, asset, &symbol);
    csv_field(b, slice_of(asset));
    buf_puts(b, ",");
    csv_field(b, slice_of(symbol));
    buf_printf(b, ",%u,", decimals);
}

static void csv_balance(struct buf *b, const struct export_source *s, const char *record, int64_t at,
                        const struct db_rows *rows, int i, const char *amount)
{
    buf_printf(b, "%s,%s,", record, time_iso(at).s);
    csv_field(b, row_text(rows, i, "network"));
    buf_puts(b, ",,,,,");
    csv_field(b, row_text(rows, i, "name"));
    buf_puts(b, ",");
    csv_asset(b, s, rows, i);
    buf_printf(b, "%s,,,,,,\r\n", amount);
}

static void csv_row(struct buf *b, const struct export_source *s, int i)
{
    const struct db_rows *r = s->rows;
    buf_printf(b, "posting,%s,", time_iso(row_int(r, i, "at")).s);
    csv_field(b, row_text(r, i, "network"));
    buf_printf(b, ",%" PRId64 ",%" PRId64 ",", row_int(r, i, "block"), row_int(r, i, "entry"));
    csv_field(b, row_text(r, i, "kind"));
    buf_puts(b, ",");
    csv_field(b, row_text(r, i, "what"));
    buf_puts(b, ",");
    csv_field(b, row_text(r, i, "account"));
    buf_puts(b, ",");
    csv_asset(b, s, r, i);
    buf_printf(b, "%s,", row_text(r, i, "amount").p);
    csv_hex(b, row_bytes(r, i, "tx"));
    buf_puts(b, ",");
    if (!row_null(r, i, "log_index"))
        buf_printf(b, "%" PRId64, row_int(r, i, "log_index"));
    buf_puts(b, ",");
    csv_hex(b, row_bytes(r, i, "debt"));
    buf_puts(b, ",");
    receipt_link(b, s, i);
    buf_puts(b, ",");
    csv_field(b, row_text(r, i, "reason"));
    buf_puts(b, ",");
    csv_field(b, row_text(r, i, "actor"));
    buf_puts(b, "\r\n");
}

/* ---- balances per (network, asset, account) ---- */

struct balance {
    struct slice network, asset, name;
    struct sum sum;
    const struct db_rows *rows;
    int row;
};
struct balances {
    struct balance *of;
    size_t n, room;
};

static struct sum *balance_of(struct balances *all, const struct db_rows *rows, int row, const char *name)
{
    const struct slice network = row_text(rows, row, "network"), asset = row_text(rows, row, "asset"),
                       account = row_text(rows, row, name);
    for (size_t i = 0; i < all->n; i++) {
        const struct balance *x = &all->of[i];
        if (slice_is(x->name, account.p) && slice_is(x->asset, asset.p) && slice_is(x->network, network.p))
            return &all->of[i].sum;
    }
    if (all->n == all->room) {
        all->room = all->room ? 2 * all->room : 16;
        all->of = mem_resize(all->of, all->room, sizeof *all->of);
    }
    all->of[all->n] = (struct balance){ .network = network, .asset = asset, .name = account, .rows = rows, .row = row };
    return &all->of[all->n++].sum;
}

/* What the accounts come to at the end; false: an amount is no number. */
static bool close_books(const struct export_source *s, struct balances *all)
{
    bool ok = true;
    for (int i = 0; s->opening && ok && i < db_count(s->opening); i++)
        ok = sum_add(balance_of(all, s->opening, i, "name"), row_text(s->opening, i, "balance"));
    for (int i = 0; ok && i < db_count(s->rows); i++)
        ok = sum_add(balance_of(all, s->rows, i, "account"), row_text(s->rows, i, "amount"));
    return ok;
}

static void csv_close(struct buf *b, const struct export_source *s, const struct balances *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct balance *x = &all->of[i];
        const char *symbol;
        const unsigned decimals = asset_decimals(s->nets, s->net_count, x->network.p, x->asset.p, &symbol);
        buf_printf(b, "closing,%s,%s,,,,,", time_iso(s->until).s, x->network.p);
        csv_field(b, x->name);
        buf_printf(b, ",%s,", x->asset.p);
        csv_field(b, slice_of(symbol));
        buf_printf(b, ",%u,%s,,,,,,\r\n", decimals, sum_text(&x->sum).s);
    }
}

/* The trailer: how many postings, and what their debits and credits come to, an asset. */
static void csv_trailer(struct buf *b, const struct export_source *s)
{
    struct balances debits = { 0 }, credits = { 0 };
    for (int i = 0; i < db_count(s->rows); i++) {
        const struct slice amount = row_text(s->rows, i, "amount");
        struct sum *debit = balance_of(&debits, s->rows, i, "asset"),
                   *credit = balance_of(&credits, s->rows, i, "asset");
        (void)!sum_add(amount.p[0] == '-' ? credit : debit, amount);
    }
    for (size_t i = 0; i < debits.n; i++) {
        const struct balance *x = &debits.of[i];
        buf_printf(b, "sum,%s,%s,,,,debits,,%s,,,%s,,,,,,\r\n", time_iso(s->until).s, x->network.p, x->asset.p,
                   sum_text(&x->sum).s);
        buf_printf(b, "sum,%s,%s,,,,credits,,%s,,,%s,,,,,,\r\n", time_iso(s->until).s, x->network.p, x->asset.p,
                   sum_text(&credits.of[i].sum).s);
    }
    buf_printf(b, "count,%s,,,,,postings,,,,,%d,,,,,,\r\n", time_iso(s->until).s, db_count(s->rows));
    free(debits.of);
    free(credits.of);
}

static void write_csv(struct buf *b, const struct export_source *s, const struct balances *closing)
{
    buf_puts(b, csv_head);
    for (int i = 0; s->opening && i < db_count(s->opening); i++)
        csv_balance(b, s, "opening", s->from, s->opening, i, row_text(s->opening, i, "balance").p);
    for (int i = 0; i < db_count(s->rows); i++)
        csv_row(b, s, i);
    csv_close(b, s, closing);
    csv_trailer(b, s);
}

/* ---- hledger ---- */

static void hledger_amount(struct buf *b, const struct export_source *s, const char *network, const char *asset,
                           const struct sum *sum)
{
    const char *symbol;
    const unsigned decimals = asset_decimals(s->nets, s->net_count, network, asset, &symbol);
    buf_printf(b, "%s \"%s %s\"", sum_human(sum, decimals).s, symbol, network);
}

static void hledger_directives(struct buf *b, const struct export_source *s, const struct balances *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct balance *x = &all->of[i];
        const char *symbol;
        const unsigned decimals = asset_decimals(s->nets, s->net_count, x->network.p, x->asset.p, &symbol);
        bool first = true, known = false;
        for (size_t k = 0; k < i; k++) {
            first = first && !(slice_is(all->of[k].asset, x->asset.p) && slice_is(all->of[k].network, x->network.p));
            known = known || slice_is(all->of[k].name, x->name.p);
        }
        if (first)
            buf_printf(b, "commodity 1000.%.*s \"%s %s\"\n", (int)(decimals < 77 ? decimals : 77),
                       "00000000000000000000000000000000000000000000000000000000000000000000000000000", symbol,
                       x->network.p);
        if (!known)
            buf_printf(b, "account %s\n", x->name.p);
    }
    buf_puts(b, "\n");
}

static void hledger_opening(struct buf *b, const struct export_source *s)
{
    if (!s->opening || db_count(s->opening) == 0)
        return;
    buf_printf(b, "%.10s opening balances\n", time_iso(s->from).s);
    for (int i = 0; i < db_count(s->opening); i++) {
        struct sum sum = { 0 };
        if (!sum_add(&sum, row_text(s->opening, i, "balance")))
            continue;
        buf_printf(b, "    %s  ", row_text(s->opening, i, "name").p);
        hledger_amount(b, s, row_text(s->opening, i, "network").p, row_text(s->opening, i, "asset").p, &sum);
        buf_puts(b, "\n");
    }
    buf_puts(b, "\n");
}

static void hledger_head(struct buf *b, const struct export_source *s, int i)
{
    const struct db_rows *r = s->rows;
    buf_printf(b, "%.10s %s: %s\n    ; time:%s, entry:%" PRId64 ", network:%s, block:%" PRId64,
               time_iso(row_int(r, i, "at")).s, row_text(r, i, "kind").p, row_text(r, i, "what").p,
               time_iso(row_int(r, i, "at")).s, row_int(r, i, "entry"), row_text(r, i, "network").p,
               row_int(r, i, "block"));
    if (!row_null(r, i, "tx")) {
        buf_puts(b, "\n    ; tx:");
        csv_hex(b, row_bytes(r, i, "tx"));
    }
    if (!row_null(r, i, "log_index"))
        buf_printf(b, ", log:%" PRId64, row_int(r, i, "log_index"));
    if (!row_null(r, i, "debt")) {
        buf_puts(b, "\n    ; debt:");
        csv_hex(b, row_bytes(r, i, "debt"));
    }
    if (!row_null(r, i, "receipt")) {
        buf_puts(b, "\n    ; receipt:");
        receipt_link(b, s, i);
    }
    if (!row_null(r, i, "reason"))
        buf_printf(b, "\n    ; actor:%s\n    ; reason:%s", row_text(r, i, "actor").p, row_text(r, i, "reason").p);
    buf_puts(b, "\n");
}

static void write_hledger(struct buf *b, const struct export_source *s, const struct balances *closing)
{
    const struct db_rows *r = s->rows;
    hledger_directives(b, s, closing);
    hledger_opening(b, s);
    for (int i = 0; i < db_count(r); i++) {
        const bool first = i == 0 || row_int(r, i, "entry") != row_int(r, i - 1, "entry");
        struct sum sum = { 0 };
        if (first && i > 0)
            buf_puts(b, "\n");
        if (first)
            hledger_head(b, s, i);
        (void)!sum_add(&sum, row_text(r, i, "amount"));
        buf_printf(b, "    %s  ", row_text(r, i, "account").p);
        hledger_amount(b, s, row_text(r, i, "network").p, row_text(r, i, "asset").p, &sum);
        buf_puts(b, "\n");
    }
}

/* ---- JSON lines ---- */

static json_t *entry_json(const struct export_source *s, int i)
{
    const struct db_rows *r = s->rows;
    BUF link = { 0 };
    json_t *o = json_pack("{s:I, s:s, s:s, s:I, s:s, s:s}", "entry", (json_int_t)row_int(r, i, "entry"), "time",
                          time_iso(row_int(r, i, "at")).s, "network", row_text(r, i, "network").p, "block",
                          (json_int_t)row_int(r, i, "block"), "kind", row_text(r, i, "kind").p, "what",
                          row_text(r, i, "what").p);
    json_set_hex(o, "transaction", row_bytes(r, i, "tx"));
    if (!row_null(r, i, "log_index"))
        json_object_set_new(o, "log", json_integer(row_int(r, i, "log_index")));
    json_set_hex(o, "debt", row_bytes(r, i, "debt"));
    receipt_link(&link, s, i);
    if (link.n > 0)
        json_object_set_new(o, "receipt", json_string(link.p));
    if (!row_null(r, i, "reason")) {
        json_object_set_new(o, "reason", json_of_slice(row_text(r, i, "reason")));
        json_object_set_new(o, "actor", json_of_slice(row_text(r, i, "actor")));
    }
    json_object_set_new(o, "postings", json_array());
    return o;
}

static void write_jsonl(struct buf *b, const struct export_source *s)
{
    const struct db_rows *r = s->rows;
    JSON *entry = NULL;
    for (int i = 0; i <= db_count(r); i++) {
        const bool end = i == db_count(r);
        if (entry && (end || row_int(r, i, "entry") != row_int(r, i - 1, "entry"))) {
            OWNED char *text = json_write(entry);
            buf_printf(b, "%s\n", text);
            json_decref(entry);
            entry = NULL;
        }
        if (end)
            break;
        if (!entry)
            entry = entry_json(s, i);
        const char *symbol, *asset = row_text(r, i, "asset").p;
        const unsigned decimals = asset_decimals(s->nets, s->net_count, row_text(r, i, "network").p, asset, &symbol);
        json_array_append_new(json_object_get(entry, "postings"),
                              json_pack("{s:s, s:s, s:s, s:i, s:s}", "account", row_text(r, i, "account").p, "asset",
                                        asset, "symbol", symbol, "decimals", (int)decimals, "amount",
                                        row_text(r, i, "amount").p));
    }
}

void export_write(struct buf *b, enum export_format f, const struct export_source *s)
{
    struct balances closing = { 0 };
    const bool ok = close_books(s, &closing);
    switch (f) {
    case EXPORT_HLEDGER:
        if (ok)
            write_hledger(b, s, &closing);
        break;
    case EXPORT_CSV:
        if (ok)
            write_csv(b, s, &closing);
        break;
    case EXPORT_JSONL:
        write_jsonl(b, s);
        break;
    }
    free(closing.of);
}
