#include <string.h>

#include "sql/internal.h"

struct listener {
    struct link link;
    char *greeting;
    db_heard_fn *fn;
    void *arg;
};

/* Only now is it certain that nothing later is missed; the caller re-reads what may have come before. */
static void on_up(void *owner)
{
    const struct listener *l = owner;
    l->fn(l->arg, NULL, NULL);
}

static void on_heard(void *owner, const char *channel, const char *payload)
{
    const struct listener *l = owner;
    l->fn(l->arg, channel, payload);
}

static void on_lost(void *owner)
{
    (void)owner;
}

static const struct link_uses listener_uses = { .up = on_up, .heard = on_heard, .lost = on_lost };

struct listener *listener_open(struct server *s, const char *const *channels, size_t n, db_heard_fn *fn, void *arg)
{
    struct listener *l = mem_new(sizeof *l);
    BUF greeting = { 0 };
    buf_puts(&greeting, LINK_SETTINGS);
    for (size_t i = 0; i < n; i++) {
        if (channels[i][strspn(channels[i], "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
            abort();
        buf_printf(&greeting, "LISTEN %s;", channels[i]);
    }
    l->greeting = MOVE(greeting.p);
    l->fn = fn;
    l->arg = arg;
    link_open(&l->link, s, &listener_uses, l, l->greeting);
    return l;
}

void listener_close(struct listener *l)
{
    link_close(&l->link);
    free(l->greeting);
    free(l);
}
