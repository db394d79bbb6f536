/* payonce ledger correct: a person puts the books right, by one more entry that says why and who. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/commands.h"
#include "api/operator.h"

static const char usage[] =
    "usage: payonce ledger correct [--network ID] --asset SYMBOL|0x...|native --amount MINOR --debit ACCOUNT\n"
    "                              --credit ACCOUNT --note WHY\n"
    "\n"
    "Books MINOR units from the credited to the debited account, at the newest final block. Entries are never changed:\n"
    "this is one more. An account is one that is in the books, or a new one below income:, expenses: or equity:. The\n"
    "same correction for the same reason is booked once. What no longer agrees with the chain, reconcile and auditor "
    "say.\n";

struct correction {
    const char *network, *asset, *amount, *debit, *credit, *note;
    const struct net *net;
    struct amount value;
};

static bool read_options(int argc, char **argv, struct correction *ret)
{
    const struct {
        const char *name, **value;
    } options[] = {
        { "--network", &ret->network }, { "--asset", &ret->asset },   { "--amount", &ret->amount },
        { "--debit", &ret->debit },     { "--credit", &ret->credit }, { "--note", &ret->note },
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t k = 0;
        while (k < COUNT(options) && strcmp(argv[i], options[k].name) != 0)
            k++;
        if (k == COUNT(options) || *options[k].value || !*argv[i + 1])
            return false;
        *options[k].value = argv[i + 1];
    }
    return argc % 2 == 1 && ret->asset && ret->amount && ret->debit && ret->credit && ret->note &&
           amount_read(ret->amount, strlen(ret->amount), &ret->value);
}

static bool read_network(const struct config *c, struct correction *ret)
{
    for (size_t i = 0; i < c->net_count; i++)
        if (ret->network ? strcmp(c->nets[i].id, ret->network) == 0 : c->net_count == 1)
            ret->net = &c->nets[i];
    return ret->net != NULL;
}

/* As the journal names it. Owned; NULL: no such token there. */
static char *asset_name(const struct correction *x)
{
    if (strcmp(x->asset, "native") == 0)
        return str_copy(x->asset);
    for (size_t i = 0; i < x->net->token_count; i++) {
        const struct token *t = &x->net->tokens[i];
        struct address a;
        if (strcmp(t->symbol, x->asset) == 0 ||
            (address_read(x->asset, strlen(x->asset), &a) && address_eq(&a, &t->address)))
            return str_copy(address_lower(&t->address).s);
    }
    return NULL;
}

/* One line, as it stands in a journal file's comment. */
static bool note_ok(const char *s)
{
    enum { MOST = 500 };
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    return strlen(s) <= MOST;
}

static int report(const struct db_rows *rows)
{
    static const struct {
        const char *verdict, *words;
    } refusals[] = {
        { "not_open", "the books of this network are not open; is the settler running?" },
        { "account", "there is no such account in the books, and it is none of income:, expenses: or equity:" },
        { "amount", "an amount above 0, and two accounts" },
    };
    const char *verdict = row_text(rows, 0, "verdict").p;
    if (strcmp(verdict, "corrected") == 0 || strcmp(verdict, "same") == 0) {
        say("entry %" PRId64 "%s\n", row_int(rows, 0, "entry"),
            *verdict == 's' ? ": it was booked before, for the same reason" : "");
        return EXIT_OK;
    }
    for (size_t i = 0; i < COUNT(refusals); i++)
        if (strcmp(verdict, refusals[i].verdict) == 0)
            fprintf(stderr, "payonce ledger correct: %s\n", refusals[i].words);
    return EXIT_FAILED;
}

int ledger_correct(const struct config *c, int argc, char **argv)
{
    struct correction x = { 0 };
    DB_ARGS args = { 0 };
    if (!read_options(argc, argv, &x) || !note_ok(x.note)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    OWNED char *asset = read_network(c, &x) ? asset_name(&x) : NULL;
    if (!asset) {
        fprintf(stderr, "payonce ledger correct: no such %s is configured\n", x.net ? "asset" : "network");
        return EXIT_FAILED;
    }
    arg_text(&args, x.net->id);
    arg_text(&args, asset);
    arg_text(&args, x.debit);
    arg_text(&args, x.credit);
    arg_amount(&args, x.value);
    arg_text(&args, x.note);
    arg_text(&args, operator_name());
    DB_ROWS *rows = operator_ask(c, "ledger correct", "ledger_correct", &args);
    return rows ? report(rows) : EXIT_FAILED;
}
