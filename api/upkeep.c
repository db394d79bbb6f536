/* What a gateway does beside its requests: it follows the chain's time, and turns the rings of what is kept for a while only. */
#include "api/gateway.h"
#include "base/clock.h"
#include "base/log.h"

enum { HEADS_MS = 1000, RINGS_MS = 60000, RINGS_FIRST_MS = 3000, FIRST_MS = 3000, READ_MS = 5000, TURN_MS = 30000, SIGN_IN_KEEP_S = 900 };

static void keep_heads(struct gateway *g, const struct db_rows *rows)
{
    for (int i = 0; i < db_count(rows); i++)
        for (size_t n = 0; n < g->config->net_count; n++)
            if (row_is(rows, i, "network", g->config->nets[n].id))
                chain_clock_saw(&g->seats[n].clock, (uint64_t)row_int(rows, i, "head"), row_int(rows, i, "head_time"), clock_mono_ms(),
                                clock_wall_ms());
}

static void have_heads(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    if (rc == DB_OK)
        keep_heads(arg, rows);
}

static void read_heads(void *arg)
{
    struct gateway *g = arg;
    DB_ARGS none = { 0 };
    db_call(g->db, "network_heads", &none, clock_mono_ms() + READ_MS, have_heads, g);
    timer_set(g->loop, &g->heads, clock_mono_ms() + HEADS_MS, read_heads, g);
}

static void turned(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    (void)arg;
    if (rc == DB_OK && row_int(rows, 0, "emptied") > 0)
        log_info("gateway.ring_turned", "parts=%d", (int)row_int(rows, 0, "emptied"));
}

static void turn(struct gateway *g, const char *ring, unsigned keep_s)
{
    DB_ARGS a = { 0 };
    arg_text(&a, ring);
    arg_int(&a, keep_s);
    db_call(g->db, "ring_turn", &a, clock_mono_ms() + TURN_MS, turned, g);
}

static void turn_rings(void *arg)
{
    struct gateway *g = arg;
    turn(g, "answers", g->config->result_retention_s);
    turn(g, "payment_ids", g->config->id_retention_s);
    turn(g, "repeats", g->config->repeat_retention_s);
    turn(g, "sign_ins", SIGN_IN_KEEP_S);
    timer_set(g->loop, &g->rings, clock_mono_ms() + RINGS_MS, turn_rings, g);
}

void upkeep_start(struct gateway *g)
{
    DB_ARGS none = { 0 };
    DB_ROWS *rows = NULL;
    if (db_wait(g->db, "network_heads", &none, clock_mono_ms() + FIRST_MS, &rows) == DB_OK)
        keep_heads(g, rows);
    timer_set(g->loop, &g->heads, clock_mono_ms() + HEADS_MS, read_heads, g);
    timer_set(g->loop, &g->rings, clock_mono_ms() + RINGS_FIRST_MS, turn_rings, g);
}

void upkeep_stop(struct gateway *g)
{
    timer_clear(g->loop, &g->heads);
    timer_clear(g->loop, &g->rings);
}
