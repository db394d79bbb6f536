#include <stdio.h>
#include <string.h>

#include "api/commands.h"
#include "base/json.h"
#include "sql/sql.h"

#define EMBEDDED SCOPE(embedded_done) struct embedded

char *config_conninfo(const struct config *c, struct config_why *why)
{
    if (c->database)
        return str_copy(c->database);
    EMBEDDED e = { 0 };
    if (embedded_status(c->state_dir, &e))
        return MOVE(e.conninfo);
    snprintf(why->text, sizeof why->text, "the embedded database in %s is not running: run `payonce database start`",
             c->state_dir);
    return NULL;
}

/* The embedded cluster's conninfo ends with its owner's name, which the role's replaces. */
char *conninfo_as(const char *conninfo, const char *role)
{
    const bool is_url = strncmp(conninfo, "postgres://", 11) == 0 || strncmp(conninfo, "postgresql://", 13) == 0;
    if (is_url)
        return str_format("%s%suser=%s", conninfo, strchr(conninfo, '?') ? "&" : "?", role);
    const char *owner = strstr(conninfo, " user=");
    const size_t n = owner ? (size_t)(owner - conninfo) : strlen(conninfo);
    return str_format("%.*s user=%s", (int)n, conninfo, role);
}

static void print_running(const struct embedded *e)
{
    OWNED char *conninfo = conninfo_as(e->conninfo, "payonce_operator");
    JSON *j = json_pack("{s:b, s:s, s:i}", "running", 1, "conninfo", conninfo, "pid", e->pid);
    OWNED char *text = json_write(j);
    puts(text);
}

static int start(const struct config *c)
{
    char why[400];
    EMBEDDED e = { 0 };
    if (!embedded_start(c->state_dir, &e, why, sizeof why)) {
        fprintf(stderr, "payonce database start: %s\n", why);
        return EXIT_FAILED;
    }
    print_running(&e);
    return EXIT_OK;
}

static int stop(const struct config *c)
{
    char why[400];
    if (embedded_stop(c->state_dir, why, sizeof why))
        return EXIT_OK;
    fprintf(stderr, "payonce database stop: %s\n", why);
    return EXIT_FAILED;
}

static int status(const struct config *c)
{
    EMBEDDED e = { 0 };
    if (!embedded_status(c->state_dir, &e)) {
        puts("{\"running\":false}");
        return EXIT_FAILED;
    }
    print_running(&e);
    return EXIT_OK;
}

int database_main(const struct config *c, int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: payonce database start|stop|status\n", stderr);
        return EXIT_USAGE;
    }
    if (c->database) {
        fputs("payonce database: the configuration names a database of its own; there is no embedded one\n", stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "start") == 0)
        return start(c);
    if (strcmp(argv[1], "stop") == 0)
        return stop(c);
    if (strcmp(argv[1], "status") == 0)
        return status(c);
    fprintf(stderr, "payonce database: start, stop or status, not '%s'\n", argv[1]);
    return EXIT_USAGE;
}
