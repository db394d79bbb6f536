#include "base/failpoint.h"

#include "base/bytes.h"

#ifdef PAYONCE_FAILPOINTS

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"

/* One entry: name[:n][=sleep_ms]. */
struct point {
    struct slice name;
    unsigned long n;
    const char *sleep_ms;
};

static struct point point_read(const char *entry)
{
    struct point p = { { entry, strcspn(entry, ":=,") }, 1, NULL };
    const char *rest = entry + p.name.n;
    if (*rest == ':')
        p.n = strtoul(rest + 1, NULL, 10);
    rest += strcspn(rest, "=,");
    if (*rest == '=')
        p.sleep_ms = rest + 1;
    return p;
}

void failpoint_hit(const char *name)
{
    static atomic_ulong passed[16]; /* by place in the environment variable */
    const char *entry = getenv("PAYONCE_FAILPOINT");
    for (size_t i = 0; entry && *entry && i < COUNT(passed); i++) {
        const struct point p = point_read(entry);
        if (slice_is(p.name, name) && atomic_fetch_add(&passed[i], 1) + 1 == p.n) {
            if (!p.sleep_ms)
                raise(SIGKILL);
            else
                clock_sleep_ms(strtol(p.sleep_ms, NULL, 10));
        }
        entry += strcspn(entry, ",");
        entry += *entry == ',';
    }
}

#endif
