/* The roles that run until they are told to stop: each returns the process's exit status. SIGTERM and SIGINT drain. */
#ifndef API_ROLES_H
#define API_ROLES_H

#include "api/config.h"

int gateway_main(const struct config *c) MUST_CHECK;
int settler_main(const struct config *c) MUST_CHECK;
/* Gateway, settler and auditor as child processes, restarted when one dies. An embedded database is started, migrated, and
 * stopped again if it was not running before. */
int all_main(const struct config *c) MUST_CHECK;

#endif
