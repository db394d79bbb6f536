/* Is this node's chain the one that the database knows? The first to ask pins the genesis; afterwards a node whose
 * genesis, or whose block at our last final height, has another hash serves a replaced chain: nothing of it is booked. */
#ifndef SETTLE_PIN_H
#define SETTLE_PIN_H

#include "settle/terms.h"
#include "sql/sql.h"

enum pin { PIN_OK, PIN_UNAVAILABLE, PIN_REPLACED };
typedef void pin_fn(void *arg, enum pin result, const char *why); /* once, never from inside; why: a sentence for people */
void pin_start(struct db *db, struct rpc *rpc, const struct net *net, pin_fn *fn, void *arg);
enum pin pin_wait(struct loop *l, struct db *db, struct rpc *rpc, const struct net *net, char *why, size_t why_size) MUST_CHECK;

#endif
