/* A used nonce that we have no row for: what did it do? Asked of the token's own logs, some thousand blocks back. */
#ifndef API_SPENT_H
#define API_SPENT_H

#include "chain/chain.h"

struct spent {
    bool known;                      /* false: the chain was not read, or has no such log within reach */
    struct auth_event event;
};
typedef void spent_fn(void *arg, const struct spent *s);
/* Copies t and a; head: the newest block. The callback is called once, never from inside. */
void spent_start(struct rpc *rpc, const struct token *t, const struct authorization *a, uint64_t head, spent_fn *fn, void *arg);

#endif
