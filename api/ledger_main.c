/* payonce ledger, export, reconcile: the books, for people and for other programs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/books_session.h"
#include "api/commands.h"
#include "api/operator.h"
#include "base/clock.h"

static const int64_t for_ever = 253402300800; /* the year 10000 */

/* ---- options that name a period ---- */

struct period {
    int64_t from, until;
    const char *name, *format;
};

static bool read_period(int argc, char **argv, struct period *ret)
{
    *ret = (struct period){ 0, for_ever, "", NULL };
    for (int i = 0; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--from") == 0 && day_read(argv[i + 1], &ret->from))
            continue;
        if (strcmp(argv[i], "--until") == 0 && day_read(argv[i + 1], &ret->until))
            continue;
        if (strcmp(argv[i], "--account") == 0 && *argv[i + 1])
            ret->name = argv[i + 1];
        else if (strcmp(argv[i], "--format") == 0)
            ret->format = argv[i + 1];
        else
            return false;
    }
    return argc % 2 == 0;
}

static struct db_rows *read_rows(const struct config *c, const char *command, const struct period *p)
{
    DB_ARGS args = { 0 };
    arg_int(&args, p->from);
    arg_int(&args, p->until);
    arg_text(&args, p->name);
    return operator_ask(c, command, "export_rows", &args);
}

static struct db_rows *read_balance(const struct config *c, const char *command, int64_t until)
{
    DB_ARGS args = { 0 };
    arg_int(&args, until);
    return operator_ask(c, command, "ledger_balance", &args);
}

/* ---- payonce ledger ---- */

static const char ledger_usage[] = "usage: payonce ledger balance [--until TIME]\n"
                                   "       payonce ledger register [--from TIME] [--until TIME] [--account PREFIX]\n"
                                   "       payonce ledger correct ...                   one more entry, by a person\n"
                                   "\n"
                                   "TIME is 2026-11-30 or 2026-11-30T12:00:00Z, UTC, of the blocks; --until is not "
                                   "included. Amounts are minor units,\n"
                                   "debit positive; what is not final is not in the journal yet.\n";

static int balance(const struct config *c, const struct period *p)
{
    DB_ROWS *rows = read_balance(c, "ledger balance", p->until);
    if (!rows)
        return EXIT_FAILED;
    for (int i = 0; i < db_count(rows); i++) {
        const char *symbol, *asset = row_text(rows, i, "asset").p;
        (void)asset_decimals(c->nets, c->net_count, row_text(rows, i, "network").p, asset, &symbol);
        say("%-14s %-8s %24s  %s\n", row_text(rows, i, "network").p, symbol, row_text(rows, i, "balance").p,
            row_text(rows, i, "name").p);
    }
    if (db_count(rows) == 0)
        say("the journal is empty\n");
    return EXIT_OK;
}

static int print_register(const struct config *c, const struct period *p)
{
    DB_ROWS *rows = read_rows(c, "ledger register", p);
    if (!rows)
        return EXIT_FAILED;
    for (int i = 0; i < db_count(rows); i++) {
        const char *symbol;
        char tx[67] = "-";
        const struct slice hash = row_bytes(rows, i, "tx");
        if (hash.p)
            hex_write(tx, hash.p, 32);
        (void)asset_decimals(c->nets, c->net_count, row_text(rows, i, "network").p, row_text(rows, i, "asset").p,
                             &symbol);
        say("%s %8" PRId64 " %-11s %-22s %24s %-8s %-58s %s\n", time_iso(row_int(rows, i, "at")).s,
            row_int(rows, i, "entry"), row_text(rows, i, "kind").p, row_text(rows, i, "what").p,
            row_text(rows, i, "amount").p, symbol, row_text(rows, i, "account").p, tx);
    }
    return EXIT_OK;
}

int ledger_main(const struct config *c, int argc, char **argv)
{
    struct period p;
    if (argc >= 2 && strcmp(argv[1], "correct") == 0)
        return ledger_correct(c, argc - 1, argv + 1);
    if (argc >= 2 && read_period(argc - 2, argv + 2, &p) && !p.format) {
        if (strcmp(argv[1], "balance") == 0 && p.from == 0 && !*p.name)
            return balance(c, &p);
        if (strcmp(argv[1], "register") == 0)
            return print_register(c, &p);
    }
    fputs(ledger_usage, stderr);
    return EXIT_USAGE;
}

/* ---- payonce export ---- */

static const char export_usage[] =
    "usage: payonce export --format hledger|csv|jsonl [--from TIME] [--until TIME]\n"
    "\n"
    "The journal of a period on standard output. TIME is 2026-11-30 or 2026-11-30T12:00:00Z, UTC.\n";

int export_main(const struct config *c, int argc, char **argv)
{
    static const char *const formats[] = {
        [EXPORT_HLEDGER] = "hledger", [EXPORT_CSV] = "csv", [EXPORT_JSONL] = "jsonl"
    };
    struct period p;
    size_t format = COUNT(formats);
    if (read_period(argc - 1, argv + 1, &p) && p.format && !*p.name)
        for (size_t i = 0; i < COUNT(formats); i++)
            format = strcmp(p.format, formats[i]) == 0 ? i : format;
    if (format == COUNT(formats)) {
        fputs(export_usage, stderr);
        return EXIT_USAGE;
    }
    DB_ROWS *rows = read_rows(c, "export", &p),
            *opening = rows && p.from > 0 ? read_balance(c, "export", p.from) : NULL;
    if (!rows || (p.from > 0 && !opening))
        return EXIT_FAILED;
    const int64_t now = clock_wall_s();
    const struct export_source s = { rows,         opening, c->nets,
                                     c->net_count, p.from,  p.until < now ? p.until : now,
                                     c->public_url };
    BUF b = { 0 };
    export_write(&b, (enum export_format)format, &s);
    return fwrite(b.p ? b.p : "", 1, b.n, stdout) == b.n && fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

/* ---- payonce reconcile ---- */

static const char reconcile_usage[] =
    "usage: payonce reconcile [--at BLOCK] [--network ID] [--json | --csv]\n"
    "\n"
    "Compares the books with the chain: per wallet and asset, opening + entries = closing, and closing = balance at "
    "the\n"
    "block; open debts = the liability account. Without --at: at the newest block that is booked.\n"
    "exit status: 0 no difference, 1 a difference, or it could not be done\n";

struct reconcile {
    const char *network;
    bool json, csv, at_given;
    uint64_t at;
};

static bool read_reconcile(int argc, char **argv, struct reconcile *ret)
{
    *ret = (struct reconcile){ 0 };
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        if (strcmp(argv[i], "--json") == 0)
            ret->json = true;
        else if (strcmp(argv[i], "--csv") == 0)
            ret->csv = true;
        else if (strcmp(argv[i], "--network") == 0 && i + 1 < argc)
            ret->network = argv[++i];
        else if (strcmp(argv[i], "--at") == 0 && i + 1 < argc && argv[i + 1][0] >= '0' && argv[i + 1][0] <= '9') {
            ret->at = strtoull(argv[++i], &end, 10);
            ret->at_given = true;
        } else
            return false;
        if (end && *end)
            return false;
    }
    return !(ret->json && ret->csv);
}

static void print_report(const json_t *r)
{
    size_t i;
    json_t *o;
    say("%s at block %" JSON_INTEGER_FORMAT "\n", member(r, "network"),
        json_integer_value(json_object_get(r, "block")));
    json_array_foreach(json_object_get(r, "wallets"), i, o) say(
        "  %s %s\n    opening %s, entries %s, closing %s; on the chain %s\n", member(o, "account"), member(o, "symbol"),
        member(o, "opening"), member(o, "entries"), member(o, "closing"), member(o, "on_chain"));
    json_array_foreach(json_object_get(r, "liabilities"), i, o)
        say("  %s\n    refunds owed %s, open debts %s, suspense %s, trial balance %s\n", member(o, "asset"),
            member(o, "account"), member(o, "open_debts"), member(o, "suspense"), member(o, "trial_balance"));
    json_array_foreach(json_object_get(r, "differences"), i, o)
        say("  DIFFERENCE %s (%s)\n    expected %s, found %s\n    %s: %s\n", member(o, "what"), member(o, "asset"),
            member(o, "expected"), member(o, "found"), member(o, "owner"), member(o, "reason"));
    if (books_differences(r) == 0)
        say("  no difference\n");
}

static bool reconcile_one(const struct books_session *s, const struct net *n, const struct reconcile *o)
{
    uint64_t booked;
    struct rpc *rpc = books_session_rpc(s, n);
    const bool open = books_block(s->db, n, &booked);
    JSON *report =
        open && (!o->at_given || o->at <= booked) ? books_report(s->db, rpc, n, o->at_given ? o->at : booked) : NULL;
    rpc_free(rpc);
    if (!report) {
        if (open && o->at_given && o->at > booked)
            fprintf(stderr, "payonce reconcile: %s is booked up to block %" PRIu64 " only\n", n->id, booked);
        else
            fprintf(stderr, "payonce reconcile: %s: %s\n", n->id,
                    open ? "chain or database did not answer" : "its books are not open; is the settler running?");
        return false;
    }
    OWNED char *csv = o->csv ? books_csv(report) : NULL;
    if (o->json)
        print_json(report);
    else if (csv)
        fputs(csv, stdout);
    else
        print_report(report);
    return books_differences(report) == 0;
}

int reconcile_main(const struct config *c, int argc, char **argv)
{
    struct reconcile o;
    struct books_session s;
    bool ok = true, any = false;
    if (!read_reconcile(argc, argv, &o)) {
        fputs(reconcile_usage, stderr);
        return EXIT_USAGE;
    }
    if (!books_session_open(c, "reconcile", "payonce_operator", &s))
        return EXIT_FAILED;
    for (size_t i = 0; i < c->net_count; i++) {
        if (o.network && strcmp(o.network, c->nets[i].id) != 0)
            continue;
        any = true;
        ok = reconcile_one(&s, &c->nets[i], &o) && ok;
    }
    books_session_close(&s);
    if (!any)
        fprintf(stderr, "payonce reconcile: no network %s is configured\n", o.network);
    return ok && any ? EXIT_OK : EXIT_FAILED;
}
