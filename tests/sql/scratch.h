/* A throw-away database server for one test program: the embedded cluster in a temporary directory. */
#ifndef TESTS_SQL_SCRATCH_H
#define TESTS_SQL_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <libpq-fe.h>

#include "base/clock.h"
#include "sql/sql.h"

enum { PATIENCE_MS = 30000 }; /* longer than anything takes, even on a busy machine */

struct scratch {
    char dir[128];
    struct embedded server;
};
extern struct scratch scratch;

int scratch_start(void **state); /* cmocka group setup */
int scratch_start_copy(void **state); /* the same, of the cluster that PAYONCE_TEST_CLUSTER names, if it does (tests/lib/cluster.mjs) */
int scratch_stop(void **state);  /* group teardown: stops the server, removes the directory */
void scratch_restart(void);      /* after its server was killed */
void scratch_new_dir(char ret[128]);
void scratch_remove(const char *dir);

PGconn *sql_open(const char *conninfo);
void sql_run(PGconn *pg, const char *text);  /* fails the test when it does */
char *sql_one(PGconn *pg, const char *text); /* the first value of the first row; free() */
void sql_is(PGconn *pg, const char *text, const char *expected);
void sql_wait(PGconn *pg, const char *text, const char *expected); /* until it is so */

#endif
