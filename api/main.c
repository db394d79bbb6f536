/* payonce: one program in a few roles. Here is only which. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/commands.h"
#include "api/pay.h"
#include "api/roles.h"

static const char help[] =
    "usage: payonce [--config FILE] COMMAND [arguments]\n"
    "\n"
    "  all        gateway, settler and auditor together, with the embedded database if none is configured\n"
    "  gateway    serve the priced routes\n"
    "  settler    submit payments and prove them\n"
    "  migrate    bring the database to this program's schema\n"
    "  doctor     check the configuration against the world, and say what to mend (--json)\n"
    "  explain    tell the whole story of an order, a payment id, a transaction or a nonce (--json)\n"
    "  auditor    rebuild the books from the chain and say what differs (--once)\n"
    "  review     list | show | resolve calls whose outcome only a person can find out\n"
    "  refunds    list | show | approve | hold | pay debts, what is owed back\n"
    "  ledger     balance | register of the journal\n"
    "  export     the journal of a period: --format hledger | csv | jsonl\n"
    "  reconcile  compare books and chain at a block\n"
    "  database   start | stop | status of the embedded database\n"
    "  pay        buy one call (payonce pay --help)\n"
    "  receipt    fetch an answer that was paid for | verify a receipt (payonce receipt --help)\n"
    "  version    print the version\n"
    "  help       print this\n"
    "\n"
    "The configuration is FILE, else $PAYONCE_CONFIG, else ./payonce.json, else /etc/payonce/payonce.json.\n"
    "Secrets are files that the environment names: PAYONCE_RELAYER_KEY_FILE and PAYONCE_REFUND_KEY_FILE for the settler,\n"
    "PAYONCE_QUOTE_KEY_FILE for the gateway; each holds 32 bytes as 64 hex digits. PAYONCE_ADMIN_TOKEN_FILE holds the token that GET /metrics\n"
    "asks for; without it admin_listen must be a loopback address.\n"
    "\n"
    "exit status: 0 done, 1 failed, 2 wrong usage or configuration; those of pay are in its own help\n";

/* ---- the commands, all of one form ---- */

static int no_arguments(int argc, char **argv)
{
    if (argc == 1)
        return EXIT_OK;
    fprintf(stderr, "payonce: %s takes no arguments, not '%s'\n", argv[0], argv[1]);
    return EXIT_USAGE;
}

static int run_gateway(const struct config *c, int argc, char **argv)
{
    const int bad = no_arguments(argc, argv);
    return bad ? bad : gateway_main(c);
}

static int run_settler(const struct config *c, int argc, char **argv)
{
    const int bad = no_arguments(argc, argv);
    return bad ? bad : settler_main(c);
}

static int run_all(const struct config *c, int argc, char **argv)
{
    const int bad = no_arguments(argc, argv);
    return bad ? bad : all_main(c);
}

static int run_pay(const struct config *c, int argc, char **argv)
{
    (void)c; /* an agent needs no seller's configuration */
    return pay_main(argc, argv);
}

static int run_receipt(const struct config *c, int argc, char **argv)
{
    (void)c; /* nor does a buyer */
    return receipt_main(argc, argv);
}

static int run_version(const struct config *c, int argc, char **argv)
{
    (void)c;
    puts("payonce " PAYONCE_VERSION);
    return no_arguments(argc, argv);
}

static int run_help(const struct config *c, int argc, char **argv)
{
    (void)c;
    fputs(help, stdout);
    return no_arguments(argc, argv);
}

typedef int command_fn(const struct config *c, int argc, char **argv);
static const struct command {
    const char *name;
    command_fn *run;
    bool configured;
} commands[] = {
    { "all", run_all, true },          { "gateway", run_gateway, true },  { "settler", run_settler, true },
    { "migrate", migrate_main, true }, { "doctor", doctor_main, true },   { "database", database_main, true },
    { "explain", explain_main, true }, { "review", review_main, true },   { "refunds", refunds_main, true },
    { "ledger", ledger_main, true },   { "export", export_main, true },   { "reconcile", reconcile_main, true },
    { "auditor", auditor_main, true },
    { "pay", run_pay, false },         { "receipt", run_receipt, false }, { "version", run_version, false }, { "--version", run_version, false },
    { "help", run_help, false },       { "--help", run_help, false },     { "-h", run_help, false },
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

/* ---- the configuration ---- */

static const char *config_path(const char *given)
{
    static const char here[] = "payonce.json", system_wide[] = "/etc/payonce/payonce.json";
    const char *from_environment = getenv("PAYONCE_CONFIG");
    if (given)
        return given;
    if (from_environment && *from_environment)
        return from_environment;
    return access(here, F_OK) == 0 ? here : system_wide;
}

static int run_configured(const struct command *command, const char *given, int argc, char **argv)
{
    struct config_why why;
    const char *path = config_path(given);
    struct config *c = config_load(path, &why);
    if (!c) {
        fprintf(stderr, "payonce: %s: %s\n", path, why.text);
        return EXIT_USAGE;
    }
    const int status = command->run(c, argc, argv);
    config_free(c);
    return status;
}

static int usage(const char *what, const char *arg)
{
    fprintf(stderr, "payonce: %s%s\nTry 'payonce help'.\n", what, arg);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const char *given = NULL;
    int at = 1;
    if (at < argc && strcmp(argv[at], "--config") == 0) {
        if (at + 1 == argc)
            return usage("which file? ", argv[at]);
        given = argv[at + 1];
        at += 2;
    }
    if (at == argc)
        return usage("which command?", "");
    const struct command *command = find_command(argv[at]);
    if (!command)
        return usage("no such command: ", argv[at]);
    return command->configured ? run_configured(command, given, argc - at, argv + at)
                               : command->run(NULL, argc - at, argv + at);
}
