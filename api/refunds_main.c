/* payonce refunds: what is owed back, and what a person decides of it. The settler pays; nothing here holds a key. */
#include <stdio.h>
#include <string.h>

#include "api/commands.h"
#include "api/operator.h"

static const char usage[] =
    "usage: payonce refunds list [--all] [--json]\n"
    "       payonce refunds show DEBT [--json]\n"
    "       payonce refunds approve DEBT [--note TEXT]\n"
    "       payonce refunds hold DEBT --note TEXT\n"
    "       payonce refunds pay DEBT [--note TEXT]      approve it, and pay it with the next batch\n"
    "       payonce refunds pay --dry-run               what the next batch would hold\n"
    "       payonce refunds again DEBT --note TEXT      its nonce was cancelled or spent elsewhere: one more\n"
    "       payonce refunds paid DEBT --note TEXT       the wallet that paid it was ours: it is read, too\n"
    "       payonce refunds return NETWORK TX LOG       a transfer in suspense goes back to its sender\n"
    "\n"
    "A debt is paid once, whatever is asked for here and how often: its refund carries a nonce that is a hash of the "
    "debt,\n"
    "and the token takes a nonce once; on Tempo the nonce names a key, and the chain mines one transaction of its "
    "count.\n";

static int bad_usage(void)
{
    fputs(usage, stderr);
    return EXIT_USAGE;
}

/* ---- list, show ---- */

static void print_debt(const json_t *d)
{
    say("%s  %s, %s\n  %s of %s on %s to %s, owed for %" JSON_INTEGER_FORMAT " s\n  for log %" JSON_INTEGER_FORMAT
        " of %s%s%s\n",
        member(d, "debt"), member(d, "state"), member(d, "cause"), member(d, "amount"), member(d, "asset"),
        member(d, "network"), member(d, "payer"), json_integer_value(json_object_get(d, "age_s")),
        json_integer_value(json_object_get(d, "source_log")), member(d, "source_transaction"),
        json_object_get(d, "order_id") ? ", order " : "", json_object_get(d, "order_id") ? member(d, "order_id") : "");
    if (json_object_get(d, "reason"))
        say("  why: %s\n", member(d, "reason"));
    if (json_object_get(d, "foreign_wallet") && !json_object_get(d, "refund_transaction"))
        say("  paid by %s in %s\n", member(d, "foreign_wallet"), member(d, "foreign_transaction"));
    if (json_object_get(d, "refund_transaction"))
        say("  refunded in %s, block %" JSON_INTEGER_FORMAT ", %s\n", member(d, "refund_transaction"),
            json_integer_value(json_object_get(d, "refund_block")), member(d, "refunded_at"));
}

static int list(const struct config *c, int argc, char **argv)
{
    bool all = false, json = false;
    size_t i;
    json_t *d;
    for (int k = 0; k < argc; k++) {
        bool *option = strcmp(argv[k], "--all") == 0 ? &all : strcmp(argv[k], "--json") == 0 ? &json : NULL;
        if (!option || *option)
            return bad_usage();
        *option = true;
    }
    DB_ARGS args = { 0 };
    arg_bool(&args, all);
    JSON *debts = operator_json(c, "refunds list", "debts_list", "list", &args);
    if (!debts)
        return EXIT_FAILED;
    if (json)
        print_json(debts);
    else if (json_array_size(debts) == 0)
        say("nothing is owed\n");
    else
        json_array_foreach(debts, i, d) print_debt(d);
    return EXIT_OK;
}

static int show(const struct config *c, const struct hash32 *debt, bool json)
{
    size_t i;
    json_t *t;
    DB_ARGS args = { 0 };
    arg_bytes(&args, debt->b, 32);
    JSON *d = operator_json(c, "refunds show", "debt_show", "story", &args);
    if (!d)
        return EXIT_FAILED;
    if (json_object_size(d) == 0) {
        fprintf(stderr, "payonce refunds show: there is no such debt\n");
        return EXIT_FAILED;
    }
    if (json) {
        print_json(d);
        return EXIT_OK;
    }
    print_debt(d);
    say("  refund nonce %s, from %s; tried %" JSON_INTEGER_FORMAT " time(s), next %s\n", member(d, "refund_nonce"),
        member(d, "refund_wallet"), json_integer_value(json_object_get(d, "tries")), member(d, "next_try"));
    json_array_foreach(json_object_get(d, "sent_in"), i, t)
    {
        say("  sent in %s  %s", member(t, "hash"), member(t, "state"));
        if (json_object_get(t, "nonce_key"))
            say(", count %" JSON_INTEGER_FORMAT " of nonce key %s", json_integer_value(json_object_get(t, "key_count")),
                member(t, "nonce_key"));
        say("\n");
    }
    return EXIT_OK;
}

/* ---- decisions ---- */

static const struct {
    const char *verdict, *words;
} refusals[] = {
    { "unknown", "there is no such debt" },
    { "paying", "its refund is signed: from here on the chain alone decides" },
    { "refunded", "it is paid back already" },
    { "earned", "its payment bought an answer after all" },
    { "cancelled", "its payment left the chain" },
    { "owed", "it is owed, and was not held" },
    { "approved", "it is approved already" },
    { "held", "it is held; approve it first" },
    { "foreign", "a wallet that is not known here has paid it (refunds show): say `paid` if it was yours, `again` if not" },
    { "not_found", "no other wallet was found to have paid it" },
};

static int report(const char *verb, const char *verdict)
{
    if (strcmp(verdict, "changed") == 0 || strcmp(verdict, "same") == 0) {
        say("%s: done\n", verb);
        return EXIT_OK;
    }
    for (size_t i = 0; i < COUNT(refusals); i++)
        if (strcmp(verdict, refusals[i].verdict) == 0)
            fprintf(stderr, "payonce refunds %s: %s\n", verb, refusals[i].words);
    return EXIT_FAILED;
}

static int decide(const struct config *c, const char *verb, const struct hash32 *debt, const char *note)
{
    DB_ARGS args = { 0 };
    arg_bytes(&args, debt->b, 32);
    arg_text(&args, verb);
    arg_text(&args, note);
    arg_text(&args, operator_name());
    DB_ROWS *rows = operator_ask(c, "refunds", "debt_decide", &args);
    return rows ? report(verb, row_text(rows, 0, "verdict").p) : EXIT_FAILED;
}

static int give_back(const struct config *c, int argc, char **argv)
{
    struct hash32 tx;
    char *end;
    if (argc != 3 || !hash_read(argv[1], strlen(argv[1]), &tx))
        return bad_usage();
    const long long log_index = strtoll(argv[2], &end, 10);
    if (*end || end == argv[2] || log_index < 0)
        return bad_usage();
    DB_ARGS args = { 0 };
    arg_text(&args, argv[0]);
    arg_bytes(&args, tx.b, 32);
    arg_int(&args, log_index);
    arg_text(&args, operator_name());
    DB_ROWS *rows = operator_ask(c, "refunds return", "suspense_return", &args);
    if (!rows)
        return EXIT_FAILED;
    const char *verdict = row_text(rows, 0, "verdict").p;
    if (strcmp(verdict, "changed") == 0 || strcmp(verdict, "same") == 0) {
        BUF id = { 0 };
        const struct slice debt = row_bytes(rows, 0, "debt");
        buf_hex(&id, debt.p, debt.n);
        say("debt %s: approve it to have it paid\n", id.p);
        return EXIT_OK;
    }
    fprintf(stderr, "payonce refunds return: %s\n",
            strcmp(verdict, "unknown") == 0 ? "no such transfer is known" : "that transfer is not in suspense");
    return EXIT_FAILED;
}

/* ---- what the next batch would hold ---- */

static bool plan(const struct config *c, const struct refund_policy *p)
{
    DB_ARGS args = { 0 };
    uint8_t most[32];
    memset(most, 0xff, sizeof most);
    arg_text(&args, p->net->id);
    arg_bytes(&args, p->token->address.b, 20);
    arg_int(&args, p->batch_max);
    arg_amount(&args, amount_from_be(most)); /* what the wallet holds, only the settler reads */
    arg_amount(&args, p->run_max);
    arg_amount(&args, p->day_max);
    DB_ROWS *rows = operator_ask(c, "refunds pay", "payouts_due", &args);
    if (!rows)
        return false;
    say("%s %s: %d refund(s) in the next batch\n", p->net->id, p->token->symbol, db_count(rows));
    for (int i = 0; i < db_count(rows); i++) {
        char debt[67], payer[43];
        hex_write(debt, row_bytes(rows, i, "id").p, 32);
        hex_write(payer, row_bytes(rows, i, "payer").p, 20);
        say("  %s  %s to %s%s\n", debt, amount_human(row_amount(rows, i, "amount"), p->token->decimals).s, payer,
            row_is(rows, i, "state", "paying") ? "  (signed before)" : "");
    }
    return true;
}

static int dry_run(const struct config *c)
{
    bool ok = true;
    for (size_t i = 0; i < c->refund_count; i++)
        ok = plan(c, &c->refunds[i]) && ok;
    if (c->refund_count == 0)
        say("no refunds are configured\n");
    return ok ? EXIT_OK : EXIT_FAILED;
}

int refunds_main(const struct config *c, int argc, char **argv)
{
    static const char *const verbs[] = { "approve", "hold", "pay", "again", "paid" };
    struct hash32 debt;
    if (argc >= 2 && strcmp(argv[1], "list") == 0)
        return list(c, argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "return") == 0)
        return give_back(c, argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "pay") == 0 && strcmp(argv[2], "--dry-run") == 0)
        return dry_run(c);
    if (argc < 3 || !hash_read(argv[2], strlen(argv[2]), &debt))
        return bad_usage();
    const bool json = argc == 4 && strcmp(argv[3], "--json") == 0;
    if (strcmp(argv[1], "show") == 0 && (argc == 3 || json))
        return show(c, &debt, json);
    const char *note = argc == 5 && strcmp(argv[3], "--note") == 0 && *argv[4] ? argv[4] : NULL;
    const bool must_say = strcmp(argv[1], "hold") == 0 || strcmp(argv[1], "again") == 0 || strcmp(argv[1], "paid") == 0;
    if ((argc != 3 && !note) || (must_say && !note))
        return bad_usage();
    for (size_t i = 0; i < COUNT(verbs); i++)
        if (strcmp(argv[1], verbs[i]) == 0)
            return decide(c, argv[1], &debt, note);
    return bad_usage();
}
