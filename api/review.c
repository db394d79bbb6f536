/* payonce review: the calls whose outcome nobody knows. A person looks at the seller's own records and decides. */
#include <stdio.h>
#include <string.h>

#include "api/commands.h"
#include "api/operator.h"
#include "settle/orders.h"

enum { NOTE_MAX = 2000 };

static const char usage[] = "usage: payonce review list [--json]\n"
                            "       payonce review show ORDER [--json]\n"
                            "       payonce review resolve ORDER done|failed|void --note TEXT [--external-id ID]\n"
                            "\n"
                            "An order is in review when its call may have been carried out and no answer came back. It "
                            "is not run again and not\n"
                            "charged until a person has looked. done: it was carried out; nothing is charged, it is "
                            "never run again. failed: it\n"
                            "was not; the buyer may send it again. Where a "
                            "payment is in doubt, void: it did not pay for\n"
                            "this order, and what came of it is in suspense; the buyer may pay anew.\n";

static int bad_usage(void)
{
    fputs(usage, stderr);
    return EXIT_USAGE;
}

/* ---- list ---- */

static void print_waiting(const json_t *r)
{
    say("%s  since %s (%" JSON_INTEGER_FORMAT " s)\n  %s (%s): %s %s\n  payer %s, %s on %s\n  fact: %s\n",
        member(r, "order_id"), member(r, "opened_at"), json_integer_value(json_object_get(r, "age_s")),
        member(r, "tool"), member(r, "side_effect"), member(r, "method"), member(r, "target"), member(r, "payer"),
        member(r, "amount"), member(r, "network"), member(r, "fact"));
    if (json_object_get(r, "theirs"))
        say("  its answer named %s\n", member(r, "theirs"));
}

static int list(const struct config *c, int argc, char **argv)
{
    const bool json = argc == 1 && strcmp(argv[0], "--json") == 0;
    size_t i;
    json_t *r;
    DB_ARGS none = { 0 };
    if (argc > 0 && !json)
        return bad_usage();
    JSON *all = operator_json(c, "review list", "review_list", "list", &none);
    if (!all)
        return EXIT_FAILED;
    if (json)
        print_json(all);
    else if (json_array_size(all) == 0)
        say("nothing waits for a person\n");
    else
        json_array_foreach(all, i, r) print_waiting(r);
    return EXIT_OK;
}

/* ---- show ---- */

/* What only a person can find out, or that nothing is left to find out. */
static void print_remains(const json_t *s)
{
    const json_t *review = json_object_get(s, "review");
    if (json_object_get(review, "resolution"))
        say("\n  what remains: nothing, it is decided\n");
    else if (strcmp(member(s, "work"), "lost") == 0)
        say("\n  what remains: ask the seller's records for Idempotency-Key %s. Was it carried out?\n"
            "    yes: payonce review resolve %s done --note '...' --external-id THEIRS\n"
            "    no:  payonce review resolve %s failed --note '...'\n",
            member(s, "order_id"), member(s, "order_id"), member(s, "order_id"));
    else
        say("\n  what remains: the chain says that this authorization was used, and no log says how. It is looked at "
            "on; a node with\n"
            "    the whole history of its logs (networks[].rpc) answers it. Nothing is charged or run again "
            "meanwhile.\n"
            "    If the chain shows you that it paid something else: payonce review resolve %s void --note '...'\n",
            member(s, "order_id"));
}

static void print_done(const json_t *s)
{
    say("\n  what was done: the seller's API was called %" JSON_INTEGER_FORMAT " time(s) with Idempotency-Key %s\n",
        json_integer_value(json_object_get(s, "attempts")), member(s, "order_id"));
}

static int show(const struct config *c, int argc, char **argv)
{
    const bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    struct order_id id;
    if (argc != 1 && !json)
        return bad_usage();
    DB_ARGS args = { 0 };
    arg_text(&args, argv[0]);
    JSON *all = order_id_read(slice_of(argv[0]), &id) ? operator_json(c, "review show", "explain", "story", &args)
                                                      : json_object();
    if (!all)
        return EXIT_FAILED;
    const json_t *story = json_array_get(json_object_get(all, "orders"), 0);
    if (!json_object_get(story, "review")) {
        fprintf(stderr, "payonce review show: %s\n",
                story ? "this order was never in review" : "there is no such order");
        return EXIT_FAILED;
    }
    if (json) {
        print_json(story);
        return EXIT_OK;
    }
    story_head(story);
    story_review(story);
    print_done(story);
    story_money(story);
    print_remains(story);
    return EXIT_OK;
}

/* ---- resolve ---- */

static const struct {
    const char *verdict, *words;
} refusals[] = {
    { "unknown", "there is no such order" },
    { "no_review", "this order was never in review: there is nothing to decide" },
    { "not_lost", "it is the payment that is in doubt, not the work: that is for the chain to tell, or void" },
    { "not_money", "no payment of this order is in doubt that the chain has used" },
};

static int report(const struct db_rows *rows, const char *order)
{
    if (row_is(rows, 0, "verdict", "resolved")) {
        say("%s is decided: %s\n", order, row_text(rows, 0, "resolution").p);
        return EXIT_OK;
    }
    for (size_t i = 0; i < COUNT(refusals); i++)
        if (row_is(rows, 0, "verdict", refusals[i].verdict))
            fprintf(stderr, "payonce review resolve: %s\n", refusals[i].words);
    if (row_is(rows, 0, "verdict", "decided"))
        fprintf(stderr, "payonce review resolve: it is decided already: %s, by %s\n", row_text(rows, 0, "resolution").p,
                row_text(rows, 0, "resolved_by").p);
    return EXIT_FAILED;
}

static int resolve(const struct config *c, int argc, char **argv)
{
    const char *note = NULL, *external_id = NULL;
    struct order_id id;
    if (argc < 2 || (strcmp(argv[1], "done") != 0 && strcmp(argv[1], "failed") != 0 && strcmp(argv[1], "void") != 0))
        return bad_usage();
    for (int i = 2; i < argc; i += 2) {
        const char **option = strcmp(argv[i], "--note") == 0          ? &note
                              : strcmp(argv[i], "--external-id") == 0 ? &external_id
                                                                      : NULL;
        if (!option || *option || i + 1 == argc || strlen(argv[i + 1]) > NOTE_MAX)
            return bad_usage();
        *option = argv[i + 1];
    }
    if (!note || !*note || !order_id_read(slice_of(argv[0]), &id))
        return bad_usage();
    DB_ARGS args = { 0 };
    arg_bytes(&args, id.b, sizeof id.b);
    arg_text(&args, argv[1]);
    arg_text(&args, note);
    arg_text(&args, external_id);
    arg_text(&args, operator_name());
    DB_ROWS *rows = operator_ask(c, "review resolve", "review_resolve", &args);
    return rows ? report(rows, argv[0]) : EXIT_FAILED;
}

int review_main(const struct config *c, int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "list") == 0)
        return list(c, argc - 2, argv + 2);
    if (argc >= 3 && strcmp(argv[1], "show") == 0)
        return show(c, argc - 2, argv + 2);
    if (argc >= 3 && strcmp(argv[1], "resolve") == 0)
        return resolve(c, argc - 2, argv + 2);
    return bad_usage();
}
