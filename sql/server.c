#include <string.h>

#include "sql/internal.h"

static const char prefix[] = "payonce_";

void server_open(struct server *s, struct loop *l, const char *conninfo, const char *user)
{
    const bool ours = user && strncmp(user, prefix, sizeof prefix - 1) == 0;
    *s = (struct server){
        .loop = l,
        .conninfo = str_copy(conninfo),
        .user = str_copy(user),
        .application = user ? str_format("payonce-%s", ours ? user + sizeof prefix - 1 : user) : str_copy("payonce"),
    };
}

void server_done(struct server *s)
{
    free(s->conninfo);
    free(s->user);
    free(s->application);
}

/* A later word beats an earlier one, so: our defaults, what the operator wrote, what must be so. */
PGconn *server_start_connect(const struct server *s)
{
    const char *words[] = { "keepalives_idle",
                            "keepalives_interval",
                            "keepalives_count",
                            "tcp_user_timeout",
                            "dbname",
                            "client_encoding",
                            "application_name",
                            "user",
                            NULL };
    const char *values[] = { "10", "5", "3", "15000", s->conninfo, "UTF8", s->application, s->user, NULL };
    PGconn *pg = PQconnectStartParams(words, values, 1);
    if (!pg)
        abort();
    return pg;
}
