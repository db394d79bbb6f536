#include "sql/internal.h"

struct wait {
    bool ended;
    enum db_rc rc;
    struct db_rows **ret;
};

static void on_done(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct wait *w = arg;
    w->ended = true;
    w->rc = rc;
    if (rc != DB_OK || !w->ret)
        return;
    struct db_rows *kept = mem_new(sizeof *kept);
    PGresult *copy = PQcopyResult(rows->result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
    if (!copy)
        abort();
    kept->result = copy;
    *w->ret = kept;
}

enum db_rc db_wait(struct db *db, const char *function, struct db_args *args, int64_t deadline_ms, struct db_rows **ret)
{
    struct wait w = { .ret = ret };
    db_call(db, function, args, deadline_ms, on_done, &w);
    while (!w.ended)
        loop_turn(db_loop(db), -1);
    return w.rc;
}
