/* payonce explain: the whole story of an order, by whatever name somebody has for it. */
#include <stdio.h>
#include <string.h>

#include "api/commands.h"
#include "api/operator.h"

static const char usage[] =
    "usage: payonce explain ORDER|RECEIPT|PAYMENT_ID|TX|NONCE|DEBT [--json]\n"
    "\n"
    "Prints what happened to an order, in order: who did what and why, each authorization with every transaction that\n"
    "carried it, proofs, debts, review; and whether the record is whole. A transaction may tell of many orders.\n"
    "exit status: 0 told, 1 nothing here knows it, or the record of an order is broken\n";

static void print_stray(const json_t *t)
{
    say("transfer %s log %" JSON_INTEGER_FORMAT "   %s\n  %s of %s from %s to %s on %s: it belongs to no order\n",
        member(t, "tx"), json_integer_value(json_object_get(t, "log_index")), member(t, "class"), member(t, "amount"),
        member(t, "asset"), member(t, "from"), member(t, "to"), member(t, "network"));
}

static void print_story(const json_t *s)
{
    story_head(s);
    story_events(s);
    story_money(s);
    story_told(s);
    story_review(s);
    story_chain(s);
}

int explain_main(const struct config *c, int argc, char **argv)
{
    const bool json = argc == 3 && strcmp(argv[2], "--json") == 0;
    if ((argc != 2 && !json) || argv[1][0] == '-') {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    DB_ARGS args = { 0 };
    arg_text(&args, argv[1]);
    JSON *all = operator_json(c, "explain", "explain", "story", &args);
    if (!all)
        return EXIT_FAILED;
    const json_t *orders = json_object_get(all, "orders"), *transfers = json_object_get(all, "transfers");
    bool whole = true;
    size_t i;
    json_t *x;
    if (json)
        print_json(all);
    json_array_foreach(orders, i, x)
    {
        whole = whole && json_integer_value(json_object_get(x, "events_broken")) == 0;
        if (!json)
            print_story(x);
        if (!json && i + 1 < json_array_size(orders))
            say("\n\n");
    }
    json_array_foreach(transfers, i, x) if (!json) print_stray(x);
    if (json_array_size(orders) + json_array_size(transfers) > 0)
        return whole ? EXIT_OK : EXIT_FAILED;
    fprintf(stderr, "payonce explain: nothing here has that id, nonce or hash\n");
    return EXIT_FAILED;
}
