#include <stdio.h>

#include "api/commands.h"
#include "sql/sql.h"

int migrate_main(const struct config *c, int argc, char **argv)
{
    if (argc > 1) {
        fprintf(stderr, "payonce: migrate takes no arguments, not '%s'\n", argv[1]);
        return EXIT_USAGE;
    }
    struct config_why why;
    OWNED char *conninfo = config_conninfo(c, &why);
    if (!conninfo) {
        fprintf(stderr, "payonce migrate: %s\n", why.text);
        return EXIT_FAILED;
    }
    int version = 0;
    switch (db_migrate(conninfo, &version, why.text, sizeof why.text)) {
    case MIGRATE_OK:
        printf("the database is at version %d\n", version);
        return EXIT_OK;
    case MIGRATE_NEWER:
        fprintf(stderr, "payonce migrate: made by a newer Payonce, nothing was changed: %s\n", why.text);
        return EXIT_FAILED;
    case MIGRATE_FAILED:
        fprintf(stderr, "payonce migrate: %s\n", why.text);
        return EXIT_FAILED;
    }
    abort();
}
