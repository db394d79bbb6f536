/* The books and the debts in them: what is booked once and corrected by entries, and what the database refuses whatever
 * is asked of it. */
#include "money.h"

#include <stdio.h>
#include <string.h>

#define WALLETS                                                                                                        \
    "'[{\"address\":\"0909090909090909090909090909090909090909\",\"role\":\"receive\"},"                               \
    "{\"address\":\"0808080808080808080808080808080808080808\",\"role\":\"refund\"}]'"

/* Our wallets are known, and the books of the one that is paid to begin at block 0. */
static void books_begin(void)
{
    sql_is(pg, "SELECT verdict FROM wallets_pin('eip155:1', " WALLETS ")", "ok");
    sql_run(pg, "SELECT wallet_open('eip155:1', b(9, 20), 0, 0, '{}')");
}

/* One order whose work failed and whose money came in: a debt of 10000, in a final block. */
static void owed_one(void)
{
    struct ask a = with_id();
    books_begin();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    settles(1, 1, 0);
    sql_run(pg, "UPDATE networks SET final = 1000; SELECT journal_round('eip155:1', '" BY_SETTLER "')");
}

static void account_is(const char *name, const char *sum)
{
    OWNED char *q = str_format(
        "SELECT coalesce(sum(p.amount), 0) FROM postings p JOIN accounts a ON a.id = p.account_id WHERE name = '%s'",
        name);
    sql_is(pg, q, sum);
}

static void debt_is(const char *state)
{
    sql_is(pg, "SELECT state FROM debts", state);
}

static void refused(const char *text, const char *sqlstate)
{
    PGresult *r = PQexec(pg, text);
    const char *got = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    assert_string_equal(got ? got : "no error", sqlstate);
    PQclear(r);
}

static void approve(void)
{
    sql_run(pg, "SELECT debts_approve('eip155:1', b(7, 20), 0, 0, 1000000, '" BY_SETTLER "')");
}

static void sign(const char *expected)
{
    sql_is(pg,
           "SELECT count(*) FROM payouts_sign('eip155:1', b(8, 20), (SELECT json_agg(json_build_object('id', "
           "encode(id, 'hex'), 'signature',"
           " repeat('ab', 65), 'valid_before', 99))::text FROM debts), '" BY_SETTLER "')",
           expected);
}

/* The refund as the wallet's scan finds it. */
static void refund_lands(const char *amount, int tx)
{
    OWNED char *q = str_format("INSERT INTO movement_scans VALUES ('eip155:1', b(8, 20), 0, 0) ON CONFLICT (network, "
                               "wallet) DO UPDATE SET block = 0;"
                               "SELECT movements_record('eip155:1', b(8, 20), 0, 50, "
                               "json_build_array(json_build_object('tx', encode(b(%d, 32), 'hex'), 'log_index', 3,"
                               "'asset', encode(b(7, 20), 'hex'), 'sender', encode(b(8, 20), 'hex'), 'receiver', "
                               "encode(b(1, 20), 'hex'), 'amount', '%s', 'block', 40,"
                               "'block_hash', encode(b(6, 32), 'hex'), 'block_time', 9, 'nonce', (SELECT "
                               "encode(refund_nonce, 'hex') FROM debts)))::text, '" BY_SETTLER "')",
                               tx, amount);
    sql_run(pg, q);
}

static void test_books(void **state)
{
    (void)state;
    owed_one();
    account_is("assets:wallet:0x0909090909090909090909090909090909090909", "10000");
    account_is("liabilities:refunds-owed", "-10000");
    sql_run(pg, "SELECT journal_round('eip155:1', '" BY_SETTLER "')");
    sql_is(pg, "SELECT count(*) FROM entries", "1");
    approve();
    debt_is("approved");
    sign("1");
    debt_is("paying");
    refund_lands("10000", 77);
    debt_is("refunded");
    account_is("liabilities:refunds-owed", "0");
    account_is("assets:refund-wallet:0x0808080808080808080808080808080808080808", "-10000");
    refund_lands("10000", 77); /* I10, I11, K03: told again */
    sql_is(pg, "SELECT count(*) FROM entries", "2");
    sql_is(pg, "SELECT status FROM order_status", "refunded");
    sql_is(pg,
           "SELECT count(*) FROM entries e JOIN LATERAL audit_entries('eip155:1', 0, 100) x ON x.id = e.id WHERE NOT "
           "x.whole",
           "0");
}

/* Whoever writes to the journal: it sums to zero at the commit, or is not there. */
static void test_balance(void **state)
{
    (void)state;
    owed_one();
    sql_run(pg, "INSERT INTO accounts (network, asset, name) SELECT network, asset, 'income:sales' FROM accounts LIMIT 1");
    refused("INSERT INTO postings SELECT e.id, a.id, 1 FROM entries e, accounts a WHERE a.name = 'income:sales'", "23514");
    sql_is(pg, "SELECT sum(amount) FROM postings", "0");
}

/* What a transaction of the relayer's moved is booked before its gas is: the books are whole up to the block before it. */
static void test_unnoticed(void **state)
{
    (void)state;
    owed_one();
    approve();
    sign("1");
    refund_lands("10000", 77);
    sql_run(pg, "UPDATE movement_scans SET block = 50");
    sql_is(pg, "SELECT books_block('eip155:1')", "50");
    sql_run(pg, "INSERT INTO relayers (network, address) VALUES ('eip155:1', b(3, 20)) ON CONFLICT DO NOTHING;"
                "INSERT INTO relay_transactions (network, relayer, account_nonce, hash, raw, gas, max_fee, max_tip, state)"
                " VALUES ('eip155:1', b(3, 20), 1, b(77, 32), '', 1, 1, 1, 'broadcast')");
    sql_is(pg, "SELECT books_block('eip155:1')", "39");
    sql_run(pg, "UPDATE relay_transactions SET state = 'final', block = 40, gas_cost = 1");
    sql_is(pg, "SELECT books_block('eip155:1')", "50");
}

/* A refund of another amount, or under another nonce, is none: money left the wallet, and the debt stays. (I15) */
static void test_not_the_refund(void **state)
{
    (void)state;
    owed_one();
    approve();
    sign("1");
    refund_lands("9999", 77);
    debt_is("paying");
    account_is("liabilities:refunds-owed", "-10000");
    account_is("equity:withdrawals", "9999");
}

/* A database that forgot what it paid books it when the chain shows it, and pays no more: the wallet's scan finds the
 * nonce. */
static void test_forgotten(void **state)
{
    (void)state;
    owed_one();
    refund_lands("10000", 77);
    debt_is("refunded");
    sign("0");
}

/* Its class changes after it was booked: an entry corrects it. */
static void test_correction(void **state)
{
    (void)state;
    struct ask a = with_id();
    books_begin();
    accept_is(&a, "accepted", 1, 1);
    settles(1, 1, 0); /* somebody else sent it while the work runs */
    sql_run(pg, "UPDATE networks SET final = 1000; SELECT journal_round('eip155:1', '" BY_SETTLER "')");
    account_is("income:sales", "-10000");
    finish_is(1, 1, "failed", "ok");
    sql_run(pg, "SELECT journal_round('eip155:1', '" BY_SETTLER "')");
    account_is("income:sales", "0");
    account_is("liabilities:refunds-owed", "-10000");
    sql_is(pg, "SELECT string_agg(kind || ' ' || what, ', ' ORDER BY id) FROM entries",
           "receipt sale, correction sale is debt");
}

/* What came in before the books began is in the opening balance, and is not counted again; until they begin nothing is
 * booked. */
static void test_before_the_books(void **state)
{
    (void)state;
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    sql_is(pg, "SELECT verdict FROM wallets_pin('eip155:1', " WALLETS ")", "ok");
    settles(1, 1, 0);
    sql_run(pg, "UPDATE networks SET final = 1000; SELECT journal_round('eip155:1', '" BY_SETTLER "')");
    sql_is(pg, "SELECT count(*) FROM entries", "0");
    sql_run(pg, "SELECT wallet_open('eip155:1', b(9, 20), 500, 0, json_build_object('0x' || encode(b(7, 20), 'hex'), "
                "'10300')::text);"
                "SELECT journal_round('eip155:1', '" BY_SETTLER "')");
    account_is("assets:wallet:0x0909090909090909090909090909090909090909", "10300");
    account_is("income:sales", "-10000");
    account_is("equity:opening", "-300");
}

/* No refund before its source is final. */
static void test_not_final(void **state)
{
    (void)state;
    owed_one();
    approve();
    sql_run(pg, "UPDATE networks SET final = 1");
    sign("0");
    debt_is("approved");
    sql_is(pg, "SELECT count(*) FROM payouts_due('eip155:1', b(7, 20), 10, 1000000, 1000000, 1000000)", "0");
}

/* Kept or refunded, never both: a late answer finds its refund signed. (I20) */
static void test_kept_or_refunded(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.side_effect = "write";
    books_begin();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "lost", "ok");
    settles(1, 1, 0);
    sql_run(pg, "UPDATE networks SET final = 1000; SELECT journal_round('eip155:1', '" BY_SETTLER "')");
    approve();
    debt_is("owed"); /* a person has not decided */
    sql_run(pg, "SELECT review_resolve(b(1, 16), 'failed', 'it was not', NULL, 'ann')");
    approve();
    sign("1");
    debt_is("paying");
    finish_is(1, 1, "done", "late");
    debt_is("paying");
    sql_is(pg, "SELECT count(*) FROM answers", "0");
}

/* A transfer is owed back once, whoever asks: what is paid back never exceeds what came in. (I02) */
static void test_one_debt(void **state)
{
    (void)state;
    owed_one();
    refused("INSERT INTO debts (id, order_id, authorization_id, cause, network, asset, payer, amount, tx, log_index, "
            "refund_nonce) "
            "SELECT b(99, 32), NULL, NULL, 'unclaimed', network, asset, payer, 1, tx, log_index, b(99, 32) FROM debts",
            "23505");
    refused("UPDATE debts SET amount = amount + 1", "23514");
    sql_is(pg, "SELECT sum(amount) FROM debts", "10000");
}

/* Limits: the wallet, the run, the day; oldest first; more than a person must approve stays. (I02) */
static void test_limits(void **state)
{
    (void)state;
    owed_one();
    sql_run(pg, "SELECT debts_approve('eip155:1', b(7, 20), 0, 0, 9999, '" BY_SETTLER "')");
    debt_is("owed");
    sql_run(pg, "SELECT debts_approve('eip155:1', b(7, 20), 3600, 0, 10000, '" BY_SETTLER "')");
    debt_is("owed");
    sql_run(pg, "SELECT debts_approve('eip155:1', b(7, 20), 0, 10001, 10000, '" BY_SETTLER "')");
    debt_is("owed");
    approve();
    sql_is(pg, "SELECT count(*) FROM payouts_due('eip155:1', b(7, 20), 10, 9999, 1000000, 1000000)", "0");
    sql_is(pg, "SELECT count(*) FROM payouts_due('eip155:1', b(7, 20), 10, 10000, 9999, 1000000)", "0");
    sql_is(pg, "SELECT count(*) FROM payouts_due('eip155:1', b(7, 20), 10, 10000, 10000, 9999)", "0");
    sql_is(pg, "SELECT count(*) FROM payouts_due('eip155:1', b(7, 20), 10, 10000, 10000, 10000)", "1");
}

/* The wallet that signed is the wallet that pays, until what it signed is proven. */
static void test_wallet(void **state)
{
    (void)state;
    owed_one();
    approve();
    sign("1");
    sql_is(pg,
           "SELECT verdict FROM wallets_pin('eip155:1', "
           "'[{\"address\":\"0404040404040404040404040404040404040404\",\"role\":\"refund\"}]')",
           "wallet_changed");
    refund_lands("10000", 77);
    sql_is(pg,
           "SELECT verdict FROM wallets_pin('eip155:1', "
           "'[{\"address\":\"0404040404040404040404040404040404040404\",\"role\":\"refund\"}]')",
           "ok");
}

/* A person: held with a reason, approved; not any more once it is signed. A nonce that was lost gives one more, by a
 * person. */
static void test_person(void **state)
{
    (void)state;
    owed_one();
    sql_is(pg, "SELECT debt_decide(id, 'hold', 'why?', 'ann') FROM debts", "changed");
    sql_is(pg, "SELECT debt_decide(id, 'pay', NULL, 'ann') FROM debts", "held");
    sql_is(pg, "SELECT debt_decide(id, 'approve', NULL, 'ann') FROM debts", "changed");
    sign("1");
    sql_is(pg, "SELECT debt_decide(id, 'hold', 'no', 'ann') FROM debts", "paying");
    sql_is(pg, "SELECT debt_decide(id, 'again', 'no', 'ann') FROM debts", "paying");
    OWNED char *before = sql_one(pg, "SELECT encode(refund_nonce, 'hex') FROM debts");
    sql_run(pg,
            "INSERT INTO movement_scans VALUES ('eip155:1', b(8, 20), 0, 50); SELECT payout_spent(id, 51, '" BY_SETTLER
            "') FROM debts");
    debt_is("paying"); /* the scan is not there yet */
    sql_run(pg, "SELECT payout_spent(id, 50, '" BY_SETTLER "') FROM debts");
    debt_is("held");
    sql_is(pg, "SELECT debt_decide(id, 'approve', NULL, 'ann') FROM debts", "held");
    sql_is(pg, "SELECT debt_decide(id, 'again', 'it was cancelled', 'ann') FROM debts", "changed");
    OWNED char *after = sql_one(pg, "SELECT encode(refund_nonce, 'hex') FROM debts");
    assert_string_not_equal(before, after);
    sql_is(pg, "SELECT events_broken(b(1, 16))", "0");
}

/* More than the price: the surplus is owed, the price is the sale, and one entry says both. (J05) */
static void test_overpaid(void **state)
{
    (void)state;
    struct ask a = with_id();
    books_begin();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    sql_run(pg, "UPDATE networks SET final = 1000; SELECT scan_cursor('eip155:1', b(9, 20), 0)");
    sql_run(pg, "SELECT scan_record('eip155:1', b(9, 20), 0, 50, b(6, 32), json_build_array(json_build_object('tx', "
                "encode(b(5, 32), 'hex'),"
                "'log_index', 1, 'asset', encode(b(7, 20), 'hex'), 'sender', encode(b(1, 20), 'hex'), 'receiver', "
                "encode(b(9, 20), 'hex'),"
                "'amount', '10001', 'block', 40, 'block_hash', encode(b(6, 32), 'hex'), 'block_time', 9, 'nonce', "
                "encode(b(1, 32), 'hex')))::text,"
                " '" BY_SETTLER "')");
    sql_is(pg, "SELECT cause || ' ' || amount FROM debts", "overpaid 1");
    account_is("income:sales", "-10000");
    account_is("liabilities:refunds-owed", "-1");
    account_is("assets:wallet:0x0909090909090909090909090909090909090909", "10001");
    sql_is(pg, "SELECT status FROM order_status", "paid");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_books),
        TEST(test_balance), TEST(test_unnoticed),
        TEST(test_not_the_refund),
        TEST(test_forgotten),
        TEST(test_correction),
        TEST(test_before_the_books),
        TEST(test_not_final),
        TEST(test_kept_or_refunded),
        TEST(test_one_debt),
        TEST(test_limits),
        TEST(test_wallet),
        TEST(test_person),
        TEST(test_overpaid),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
