/* Endpoints' faults, as /metrics tells them: a settler has no address of its own, so they go by the database. */
#include <string.h>

#include "base/json.h"
#include "settle/desk.h"

static size_t stats(const struct rpc *r, struct rpc_stats *ret, size_t max)
{
    return r ? rpc_stats(r, ret, max) : 0;
}

void desk_faults(struct desk *d)
{
    struct rpc_stats all[COUNT(d->told)], one;
    uint64_t now[COUNT(d->told)][RPC_FAULTS] = { 0 };
    JSON *news = json_array();
    size_t n = stats(d->rpc, all, COUNT(all));
    for (size_t e = 0; e < n; e++) {
        const bool alone = stats(d->each[e], &one, 1) == 1;
        for (enum rpc_fault f = 0; f < RPC_FAULTS; f++) {
            now[e][f] = all[e].faults[f] + (alone ? one.faults[f] : 0);
            if (now[e][f] > d->told[e][f])
                json_array_append_new(news, json_pack("{s:s, s:s, s:I}", "endpoint", all[e].url, "kind", rpc_fault_word(f),
                                                      "n", (json_int_t)(now[e][f] - d->told[e][f])));
        }
    }
    if (json_array_size(news) == 0)
        return;
    OWNED char *text = json_write(news);
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_text(&a, text);
    if (db_wait(d->db, "rpc_faults_add", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK)
        memcpy(d->told, now, sizeof now);
}
