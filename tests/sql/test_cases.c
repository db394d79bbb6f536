/* Kinds of faults that users of other systems reported, each with its right outcome here; the letters name the case. */
#include "money.h"

#include <string.h>

static void claim_is(const char *nonces)
{
    OWNED char *got = sql_one(pg, "SELECT coalesce(string_agg(get_byte(nonce, 0)::text, ' ' ORDER BY nonce), '')"
                                  " FROM authorizations_claim('eip155:1', 10, 60, 8)");
    assert_string_equal(got, nonces);
}

/* What commits late has a lower number than what was read meanwhile, and is sent all the same. */
static void h18_late_commit(void **state)
{
    (void)state;
    for (int i = 1; i <= 3; i++)
        make_due(i, 120);
    sql_run(pg, "UPDATE authorizations SET state = 'held'");
    PGconn *late = sql_open(scratch.server.conninfo);
    sql_run(late, "SET search_path = payonce, t; BEGIN; UPDATE authorizations SET state = 'due' WHERE id = auth(1)");
    sql_run(pg, "UPDATE authorizations SET state = 'due' WHERE id = auth(2)");
    claim_is("2");
    sql_run(pg, "UPDATE authorizations SET state = 'due' WHERE id = auth(3)");
    claim_is("3");
    sql_run(late, "COMMIT");
    claim_is("1");
    PQfinish(late);
}

/* Settled, and what follows from it: one commit, or nothing of it. */
static void h19_settled_with_its_debt(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "in_flight", 1, 1);
    finish_is(1, 1, "done", "ok");
    settles(1, 1, 0);
    OWNED char *before = dump();
    sql_run(pg, "BEGIN");
    settles(2, 2, 0);
    sql_is(pg, "SELECT count(*) FROM debts", "1");
    sql_run(pg, "ROLLBACK"); /* which is what kill -9 is to the database */
    same_as(before);
    settles(2, 2, 0);
    sql_is(pg,
           "SELECT concat_ws(' ', (SELECT count(*) FROM proofs), (SELECT count(*) FROM transfers),"
           " (SELECT count(*) FROM debts), (SELECT count(*) FROM events WHERE event = 'settled'))",
           "2 2 1 2");
}

/* An hour of looks later a released authorization is still looked at, and its money becomes a debt that names its
 * transaction. */
static void j01_late_money(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.valid_in_s = 4000;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    state_is(1, "released");
    for (int i = 0; i < 60; i++) {
        sql_run(pg, "UPDATE authorizations SET next_look = now()");
        sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "1");
        sql_is(pg, "SELECT next_look <= now() + interval '60 s' FROM authorizations", "t");
    }
    sql_is(pg, "SELECT status FROM order_status", "not_charged");
    settles(1, 1, 0);
    sql_is(pg, "SELECT concat_ws(' ', cause, state, amount, tx = b(5, 32), order_id = b(1, 16)) FROM debts",
           "late owed 10000 t t");
    sql_is(pg, "SELECT status FROM order_status", "refund_due");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = { TEST(h18_late_commit), TEST(h19_settled_with_its_debt), TEST(j01_late_money) };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
