/* What commands that read both the books and the chain share: a loop, the database in a role, and an RPC client a
 * network. */
#ifndef API_BOOKS_SESSION_H
#define API_BOOKS_SESSION_H

#include "api/config.h"

struct books_session {
    struct loop *loop;
    struct db *db;
    struct fetcher *fetcher;
};
/* False: why is said on standard error, with the command's name before it. */
bool books_session_open(const struct config *c, const char *command, const char *role,
                        struct books_session *ret) MUST_CHECK;
void books_session_close(struct books_session *s);
struct rpc *books_session_rpc(const struct books_session *s, const struct net *n) MUST_CHECK;

/* "2026-11-30" or "2026-11-30T12:00:00Z", UTC, as unix seconds. */
bool day_read(const char *s, int64_t *ret) MUST_CHECK;

#endif
