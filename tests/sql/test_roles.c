/* Who may do what: each role its own functions, and no table but to read it where that is its work. */
#include "money.h"

#include <string.h>

static void may(const char *role, const char *text, bool allowed)
{
    OWNED char *conninfo = str_format("%s user=%s", scratch.server.conninfo, role);
    PGconn *c = PQconnectdb(conninfo);
    assert_int_equal(PQstatus(c), CONNECTION_OK);
    PGresult *r = PQexec(c, text);
    const char *sqlstate = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const bool denied = sqlstate && strcmp(sqlstate, "42501") == 0;
    if (denied == allowed || (allowed && PQresultStatus(r) != PGRES_TUPLES_OK))
        fail_msg("%s: %s: %s", role, text, PQresultErrorMessage(r));
    PQclear(r);
    PQfinish(c);
}

static void test_roles(void **state)
{
    (void)state;
    static const char *const roles[] = { "payonce_gateway", "payonce_settler", "payonce_auditor", "payonce_operator" };
    static const char *const tables[] = { "networks",       "instances",
                                          "orders",         "answers",
                                          "authorizations", "other_signatures",
                                          "relayers",       "relay_transactions",
                                          "relay_calls",    "proofs",
                                          "events",         "transfers",
                                          "debts",          "scans",
                                          "reviews",        "undone_proofs",
                                          "notices",
                                          "answers_3",      "repeats",
                                          "payment_ids",    "sign_ins",
                                          "rings",
                                          "order_status",   "order_books",
                                          "order_wire",     "receipt_wire",
                                          "wallets",        "movements",
                                          "movement_scans", "accounts",
                                          "entries",        "postings",
                                          "payout_calls",   "refund_funds",
                                          "wallet_checks",  "reconciliations",
                                          "refund_transactions" };
    for (size_t r = 0; r < COUNT(roles); r++)
        for (size_t t = 0; t < COUNT(tables); t++) {
            OWNED char *read = str_format("SELECT * FROM payonce.%s", tables[t]),
                       *del = str_format("DELETE FROM payonce.%s", tables[t]);
            may(roles[r], read, r >= 2 && strncmp(tables[t], "answers", 7) != 0);
            if (strncmp(tables[t], "order_", 6) != 0 && strcmp(tables[t], "receipt_wire") != 0) /* those are views */
                may(roles[r], del, false);
        }
    static const char store[] = "SELECT payonce.relay_store('n', '', '', 1, 1, '', '', 1, 1, 1, '', '', '[]')",
                      proofs[] = "SELECT payonce.proofs_record('{}')",
                      end[] = "SELECT payonce.authorization_end(1, 'void', '')",
                      finish[] =
                          "SELECT payonce.order_finish(''::bytea, 1, 'done', NULL, 200, '[]', ''::bytea, ''::bytea)",
                      due[] = "SELECT payonce.authorization_due(1)",
                      work_end[] = "SELECT payonce.order_work_end(''::bytea, 'lost', '', '{}')",
                      accept[] = "SELECT payonce.order_accept('', '', 1, '', '', '', 1, '', '', true, true, '', '', "
                                 "'', '', '', '', '', '', '', '',"
                                 " 1, 1, 1, '', true, 1, true)",
                      landed[] = "SELECT payonce.authorization_landed(1, '{}', 'sent')",
                      add[] = "SELECT payonce.proofs_add('n', '[]', '{}')",
                      told[] = "SELECT payonce.event_add(''::bytea, '{}', '', '', '')",
                      close[] = "SELECT payonce.review_close(''::bytea, 'done', '', '', '')",
                      puzzles[] = "SELECT payonce.authorization_puzzles(1, '')";
    static const char *const money[] = { store, proofs, end,      puzzles, finish, accept,
                                         due,   landed, work_end, add,     told,   close };
    for (size_t i = 0; i < COUNT(money); i++) {
        may("payonce_operator", money[i], false);
        may("payonce_auditor", money[i], false);
        if (i != 4 && i != 5)
            may("payonce_gateway", money[i], false);
        if (i > 3)
            may("payonce_settler", money[i], false);
    }
    may("payonce_settler", end, true);
    may("payonce_operator", "SELECT * FROM payonce.money_counts()", true);
    DB_ARGS a = { 0 };
    arg_text(&a, "{}");
    assert_int_equal(call(gateway, "proofs_record", &a, NULL), DB_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
