/* payonce auditor: books rebuilt from the chain and compared, on a role that can only read. Once a day, or --once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/books_session.h"
#include "api/commands.h"
#include "api/operator.h"
#include "base/clock.h"
#include "base/log.h"

enum { DAY_MS = 86400000, AGAIN_MS = 60000, FIRST_MS = 30000, SETTLE_MS = 3000 };

static const char usage[] = "usage: payonce auditor             compare once a day, and say what differs in the log\n"
                            "       payonce auditor --once [--json]\n"
                            "\n"
                            "Rebuilds the books from the chain's own logs and compares the journal with them, entry by "
                            "entry. It mends nothing.\n"
                            "exit status of --once: 0 no difference, 1 a difference, or it could not be done\n";

static json_t *audit(const struct books_session *s, const struct net *n)
{
    struct rpc *rpc = books_session_rpc(s, n);
    json_t *found = audit_network(s->db, rpc, n);
    /* what is being booked right now looks like a difference: it must still be there a moment later */
    if (found && json_array_size(found) > 0) {
        json_decref(found);
        clock_sleep_ms(SETTLE_MS);
        found = audit_network(s->db, rpc, n);
    }
    rpc_free(rpc);
    return found;
}

static void print_differences(const struct net *n, const json_t *found)
{
    size_t i;
    json_t *d;
    json_array_foreach(found, i, d) say("%s  %s: %s\n  expected %s, found %s\n", n->id, member(d, "kind"),
                                        member(d, "what"), member(d, "expected"), member(d, "found"));
    if (json_array_size(found) == 0)
        say("%s  no difference\n", n->id);
}

static int once(const struct config *c, bool json)
{
    struct books_session s;
    bool ok = true;
    JSON *all = json_object();
    if (!books_session_open(c, "auditor", "payonce_auditor", &s))
        return EXIT_FAILED;
    for (size_t i = 0; i < c->net_count; i++) {
        json_t *found = audit(&s, &c->nets[i]);
        ok = ok && found && json_array_size(found) == 0;
        if (!found)
            fprintf(stderr, "payonce auditor: %s: chain or database did not answer\n", c->nets[i].id);
        else if (!json)
            print_differences(&c->nets[i], found);
        json_object_set_new(all, c->nets[i].id, found ? found : json_null());
    }
    books_session_close(&s);
    if (json)
        print_json(all);
    return ok ? EXIT_OK : EXIT_FAILED;
}

static void log_differences(const struct net *n, const json_t *found)
{
    size_t i;
    json_t *d;
    json_array_foreach(found, i, d)
        log_error("auditor.difference", "network=%s kind=%s what=%s expected=%s found=%s", n->id, member(d, "kind"),
                  member(d, "what"), member(d, "expected"), member(d, "found"));
    log_info("auditor.done", "network=%s differences=%zu", n->id, json_array_size(found));
}

static void stop(void *arg)
{
    *(bool *)arg = true;
}

static int for_ever(const struct config *c)
{
    struct books_session s;
    bool stopped = false;
    log_open("auditor", LOG_INFO);
    if (!books_session_open(c, "auditor", "payonce_auditor", &s))
        return EXIT_FAILED;
    loop_on_stop_signal(s.loop, stop, &stopped);
    log_info("auditor.ready", "networks=%zu", c->net_count);
    const bool *end = &stopped; /* the signal's callback sets it */
    int64_t next = clock_mono_ms() + FIRST_MS;
    while (!*end) {
        const int64_t left = next - clock_mono_ms();
        loop_turn(s.loop, left > 0 ? left : 0);
        if (*end || clock_mono_ms() < next)
            continue;
        bool all = true;
        for (size_t i = 0; i < c->net_count; i++) {
            JSON *found = audit(&s, &c->nets[i]);
            all = all && found;
            if (found)
                log_differences(&c->nets[i], found);
        }
        next = clock_mono_ms() + (all ? DAY_MS : AGAIN_MS);
    }
    books_session_close(&s);
    return EXIT_OK;
}

int auditor_main(const struct config *c, int argc, char **argv)
{
    const bool one = argc >= 2 && strcmp(argv[1], "--once") == 0, json = argc == 3 && strcmp(argv[2], "--json") == 0;
    if (argc == 1)
        return for_ever(c);
    if (one && (argc == 2 || json))
        return once(c, json);
    fputs(usage, stderr);
    return EXIT_USAGE;
}
