/* Where an embedded cluster lies, and how it is made. */
#ifndef SQL_CLUSTER_H
#define SQL_CLUSTER_H

#include "sql/process.h"

struct cluster {
    char *data;       /* <state_dir>/postgres */
    char *being_made; /* its name until it is whole */
    char *sockets;    /* data itself, or a short name in /tmp */
    char *log;
    char *turn;  /* lock: who starts or stops */
    char *alive; /* lock: held by the server and its children while any is left */
    struct account account;
};
bool cluster_find(const char *state_dir, struct cluster *ret, const struct why *w) MUST_CHECK;
void cluster_done(struct cluster *c);
bool cluster_exists(const struct cluster *c);
bool cluster_make(const struct cluster *c, const struct why *w) MUST_CHECK; /* whole or not at all */
bool cluster_make_sockets(const struct cluster *c, const struct why *w) MUST_CHECK;
/* Full path of one of PostgreSQL's programs; NULL: not installed. */
char *cluster_program(const struct cluster *c, const char *name) MUST_CHECK;

enum { CLUSTER_PORT = 5432 };
#define CLUSTER_OWNER "payonce_owner"

#endif
