/* The settler of one network: the only holder of the relayer's key. It submits what is due, proves what was mined,
 * resolves what is unknown, and frees what a dead gateway left. It never tells an order anything but what the chain proved. */
#ifndef SETTLE_SETTLER_H
#define SETTLE_SETTLER_H

#include "settle/terms.h"
#include "sql/sql.h"

struct settler_options {
    struct loop *loop;
    struct db *db;
    struct fetcher *fetcher;
    const struct net *net;
    const struct key *relayer;
    const bool *stop;                /* becomes true on SIGTERM: finish the step under way, then return */
};
/* Returns when told to stop (true), or when a chain was replaced (false, said in the log). */
bool settler_run(const struct settler_options *o) MUST_CHECK;

#endif
