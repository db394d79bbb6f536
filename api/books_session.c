#include "api/books_session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

bool books_session_open(const struct config *c, const char *command, const char *role, struct books_session *ret)
{
    struct config_why why;
    OWNED char *conninfo = config_conninfo(c, &why);
    if (!conninfo) {
        fprintf(stderr, "payonce %s: %s\n", command, why.text);
        return false;
    }
    ret->loop = loop_new();
    ret->fetcher = fetcher_new(ret->loop);
    ret->db = db_open(ret->loop, conninfo, role, 1);
    return true;
}

void books_session_close(struct books_session *s)
{
    db_free(s->db);
    fetcher_free(s->fetcher);
    loop_free(s->loop);
}

struct rpc *books_session_rpc(const struct books_session *s, const struct net *n)
{
    return rpc_new(s->fetcher, s->loop, n->chain_id, n->rpc, n->rpc_count, n->rpc_timeout_ms);
}

bool day_read(const char *s, int64_t *ret)
{
    struct tm t = { 0 };
    const char *end = strptime(s, "%Y-%m-%d", &t);
    if (end && *end == 'T')
        end = strptime(end, "T%H:%M:%SZ", &t);
    if (!end || *end)
        return false;
    *ret = timegm(&t);
    return true;
}
