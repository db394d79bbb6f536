/* The operator's commands. argv[0] is the command's name; each returns the process's exit status. */
#ifndef API_COMMANDS_H
#define API_COMMANDS_H

#include "api/config.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

int migrate_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int database_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int doctor_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int explain_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int review_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int receipt_main(int argc, char **argv) MUST_CHECK;   /* fetch | verify: a buyer's, needs no configuration */
int receipt_fetch(int argc, char **argv) MUST_CHECK;
int receipt_verify(int argc, char **argv) MUST_CHECK;
int refunds_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int ledger_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int ledger_correct(const struct config *c, int argc, char **argv) MUST_CHECK;
int export_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int reconcile_main(const struct config *c, int argc, char **argv) MUST_CHECK;
int auditor_main(const struct config *c, int argc, char **argv) MUST_CHECK;

/* The same conninfo for another database role, owned. */
char *conninfo_as(const char *conninfo, const char *role) MUST_CHECK;

#endif
