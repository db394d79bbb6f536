#include <string.h>

#include "sql/internal.h"

/* By SQLSTATE, or the beginning of one. What is not named here is a fault of ours and is not tried again. */
static const struct {
    const char *state;
    enum verdict verdict;
} verdicts[] = {
    { "08", VERDICT_RECONNECT },    /* connection exception, as poolers say it */
    { "0A000", VERDICT_STALE },     /* a function's result type was changed by a migration */
    { "25006", VERDICT_RECONNECT }, /* read only: this server is a standby now */
    { "26000", VERDICT_STALE },     /* a pooler gave us another session */
    { "40", VERDICT_REPEAT },       /* serialization failure, deadlock, completion unknown */
    { "53", VERDICT_REPEAT },       /* out of memory, disk, connections */
    { "55P03", VERDICT_REPEAT },    /* lock timeout */
    { "57014", VERDICT_REPEAT },    /* statement timeout, or cancelled by a person */
    { "57P", VERDICT_RECONNECT },   /* shutdown, crash, not yet accepting */
    { "58", VERDICT_REPEAT },       /* input or output error of the system */
};

enum verdict judge(const PGresult *r)
{
    if (PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK)
        return VERDICT_OK;
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    if (!state)
        return VERDICT_RECONNECT; /* libpq's own: lost, or not understood */
    for (size_t i = 0; i < COUNT(verdicts); i++)
        if (strncmp(state, verdicts[i].state, strlen(verdicts[i].state)) == 0)
            return verdicts[i].verdict;
    return VERDICT_REFUSED;
}
