#include "api/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/commands.h"

void doctor_say(struct doctor *d, enum finding f, const char *what, const char *fmt, ...)
{
    static const char *const words[] = { "ok", "warn", "FAIL" };
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        abort();
    va_end(args);
    if (f == FINDING_FAIL)
        d->failed = true;
    if (d->lines)
        json_array_append_new(d->lines, json_pack("{s:s, s:s, s:o}", "result", words[f], "check", what, "text",
                                                  json_of_slice(slice_of(text))));
    else
        printf("%-5s %-24s %s\n", words[f], what, text);
    free(text);
}

static void print_json(const struct doctor *d)
{
    JSON *all = json_pack("{s:b, s:O}", "ok", !d->failed, "checks", d->lines);
    OWNED char *text = json_write(all);
    puts(text);
}

int doctor_main(const struct config *c, int argc, char **argv)
{
    const bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 && !json) {
        fputs("usage: payonce doctor [--json]\n", stderr);
        return EXIT_USAGE;
    }
    struct loop *loop = loop_new();
    struct doctor d = { .c = c, .loop = loop, .fetcher = fetcher_new(loop), .lines = json ? json_array() : NULL };
    doctor_say(&d, FINDING_OK, "configuration", "%s: %zu network(s), %zu tool(s), %zu seller(s)", c->path, c->net_count,
               c->tool_count, c->seller_count);
    doctor_keys(&d);
    doctor_paid_back(&d);
    doctor_sellers(&d);
    doctor_pay_first(&d);
    doctor_database(&d);
    for (size_t i = 0; i < c->net_count; i++)
        doctor_chain(&d, &c->nets[i]);
    doctor_http(&d);
    if (json)
        print_json(&d);
    json_decref(d.lines);
    fetcher_free(d.fetcher);
    loop_free(loop);
    return d.failed ? EXIT_FAILED : EXIT_OK;
}
