#include "api/lost.h"

#include <string.h>
#include <strings.h>

enum { THEIRS_MAX = 500 };

char *lost_fact(const struct work *w)
{
    if (w->why)
        return str_copy(w->why);
    return w->status > 0 ? str_format("the seller's API answered %d", w->status) : str_copy("its outcome is unknown");
}

/* Sellers name their ids as they like: X-Request-Id, Order-Id, x-amzn-RequestId. */
static bool names_something(const char *name)
{
    static const char *const places[] = { "Location", "Content-Location" };
    const size_t n = strlen(name);
    for (size_t i = 0; i < COUNT(places); i++)
        if (strcasecmp(name, places[i]) == 0)
            return true;
    return n >= 2 && strcasecmp(name + n - 2, "id") == 0;
}

char *lost_theirs(const struct work *w)
{
    BUF b = { 0 };
    size_t i;
    json_t *h;
    json_array_foreach(w->headers, i, h)
    {
        const char *name = json_string_value(json_array_get(h, 0)), *value = json_string_value(json_array_get(h, 1));
        if (!names_something(name) || b.n + strlen(name) + strlen(value) + 4 > THEIRS_MAX)
            continue;
        buf_printf(&b, "%s%s: %s", b.n ? ", " : "", name, value);
    }
    return b.n ? str_copy(b.p) : NULL;
}
