#include <string.h>

#include "sql/internal.h"

static const char *const roles[] = { "payonce_gateway", "payonce_settler", "payonce_auditor", "payonce_operator" };

static const char duplicate_object[] = "42710", unique_violation[] = "23505";

static bool exists(PGconn *pg, const char *role)
{
    RESULT *r = PQexecParams(pg, "SELECT 1 FROM pg_roles WHERE rolname = $1", 1, NULL, &role, NULL, NULL, 0);
    return PQntuples(r) == 1;
}

static void add_statement(struct buf *b, const char *role)
{
    buf_printf(b, "CREATE ROLE %s LOGIN;", role);
}

/* Roles belong to the whole server: a migration of another database may make the same ones now. */
static bool make(PGconn *pg, const char *role)
{
    BUF statement = { 0 };
    add_statement(&statement, role);
    RESULT *r = PQexec(pg, statement.p);
    if (PQresultStatus(r) == PGRES_COMMAND_OK)
        return true;
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    return state && (strcmp(state, duplicate_object) == 0 || strcmp(state, unique_violation) == 0);
}

bool roles_make(PGconn *pg, bool *ret_made, char *why, size_t why_size)
{
    BUF missing = { 0 };
    bool made = false;
    for (size_t i = 0; i < COUNT(roles); i++) {
        if (exists(pg, roles[i]))
            continue;
        if (make(pg, roles[i]))
            made = true;
        else
            add_statement(&missing, roles[i]);
    }
    if (missing.n > 0) {
        snprintf(why, why_size, "%s cannot create roles; as a superuser run: %s", PQuser(pg), missing.p);
        return false;
    }
    *ret_made = made;
    return true;
}
