/* Refunds that are transactions of the refund wallet's own: stored before anything is sent, one of a debt at a time,
 * the next count only behind one that reverted, and for a person where the chain shows what nobody here has signed. */
#include "money.h"

#include <stdio.h>

#define WALLETS                                                                                                        \
    "'[{\"address\":\"0909090909090909090909090909090909090909\",\"role\":\"receive\"},"                               \
    "{\"address\":\"0808080808080808080808080808080808080808\",\"role\":\"refund\"}]'"

/* A debt of 10000 to payer 1, in a final block, approved. */
static void owed(void)
{
    struct ask a = with_id();
    sql_is(pg, "SELECT verdict FROM wallets_pin('eip155:1', " WALLETS ")", "ok");
    sql_run(pg, "SELECT wallet_open('eip155:1', b(9, 20), 0, 0, '{}'), wallet_open('eip155:1', b(8, 20), 0, 0, '{}')");
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    settles(1, 1, 0);
    sql_run(pg, "UPDATE networks SET final = 1000; SELECT journal_round('eip155:1', '" BY_SETTLER "');"
                "SELECT debts_approve('eip155:1', b(7, 20), 0, 0, 1000000, '" BY_SETTLER "')");
}

/* refund_store, with a hash of its own number; nonce: SQL. */
static void store_with(int hash, int count, const char *nonce, const char *stored)
{
    OWNED char *q = str_format(
        "SELECT stored FROM refund_store('eip155:1', b(8, 20), (SELECT id FROM debts), %s, b(3, 32), %d, b(%d, 32), "
        "b(%d, 9), 1000, b(7, 20), '" BY_SETTLER "')",
        nonce, count, hash, hash);
    sql_is(pg, q, stored);
}

static void store(int hash, int count, const char *stored)
{
    store_with(hash, count, "(SELECT refund_nonce FROM debts)", stored);
}

/* refund_end of the one with that hash; the final block is 50. */
static void ends_as(int hash, const char *state, bool dead, const char *ended)
{
    OWNED char *q = str_format(
        "SELECT ended FROM refund_end((SELECT id FROM refund_transactions WHERE hash = b(%d, 32)), '%s', 'why so', 50, "
        "%s, '" BY_SETTLER "')",
        hash, state, dead ? "true" : "false");
    sql_is(pg, q, ended);
}

static void scanned(int block)
{
    OWNED char *q = str_format("UPDATE movement_scans SET block = %d WHERE wallet = b(8, 20)", block);
    sql_run(pg, q);
}

/* The transfer as the wallet's scan finds it, with its fee. */
static void lands(int tx, const char *receiver)
{
    scanned(0);
    OWNED char *q = str_format(
        "SELECT movements_record('eip155:1', b(8, 20), 0, 50, (SELECT json_agg(jsonb_build_object('tx', encode(b(%d, "
        "32),"
        " 'hex'), 'log_index', x.log, 'asset', encode(b(7, 20), 'hex'), 'sender', encode(b(8, 20), 'hex'), 'receiver', "
        "encode(x.receiver, 'hex'), 'amount', x.amount, 'block', 40, 'block_hash', encode(b(6, 32), 'hex'), "
        "'block_time',"
        " 9) || x.more) FROM (VALUES (3, %s, '10000', (SELECT jsonb_build_object('mark', encode(refund_nonce, 'hex'))"
        " FROM debts)), (5, b(15, 20), '146', '{\"fee\": true}'::jsonb)) x (log, receiver, amount, more))::text, "
        "'" BY_SETTLER "')",
        tx, receiver);
    sql_run(pg, q);
}

static void debt_is(const char *expected)
{
    sql_is(pg, "SELECT concat_ws(' ', state, reason) FROM debts", expected);
}

static void due_is(const char *expected)
{
    sql_is(pg,
           "SELECT coalesce(string_agg(state || ' ' || key_count, ', '), '') FROM payouts_due('eip155:1', b(7, 20), "
           "10, 100000, 100000, "
           "100000)",
           expected);
}

static void account_is(const char *name, const char *sum)
{
    OWNED char *q = str_format(
        "SELECT coalesce(sum(p.amount), 0) FROM postings p JOIN accounts a ON a.id = p.account_id WHERE name = '%s'",
        name);
    sql_is(pg, q, sum);
}

static void try_now(void)
{
    sql_run(pg, "UPDATE debts SET next_try = '-infinity'");
}

/* ---- one at a time ---- */

static void test_paid(void **state)
{
    (void)state;
    owed();
    due_is("approved 0");
    store(70, 0, "t");
    debt_is("paying");
    store(70, 0, "t"); /* asked again: the reply was lost */
    store(71, 0, "f"); /* another settler */
    sql_is(pg, "SELECT count(*) FROM refund_transactions", "1");
    due_is("");
    ends_as(70, "paid", false, "t");
    due_is(""); /* its log is not read yet: nothing is signed in between */
    try_now();
    due_is("");
    store(72, 0, "f");
    lands(70, "b(1, 20)");
    debt_is("refunded");
    account_is("expenses:gas", "146");
    account_is("liabilities:refunds-owed", "0");
    account_is("assets:refund-wallet:0x0808080808080808080808080808080808080808", "-10146");
    sql_is(pg, "SELECT string_agg(class, ' ' ORDER BY log_index) FROM movements", "payout fee");
    sql_is(pg, "SELECT debt_show(id)::json #>> '{sent_in,0,state}' FROM debts", "paid");
    sql_is(pg, "SELECT order_refunds(order_id)::json #>> '{0,transaction}' = hex_text(b(70, 32)) FROM debts", "t");
}

/* Of its count one was mined and reverted: the next count, and no other. */
static void test_reverted(void **state)
{
    (void)state;
    owed();
    store(70, 1, "f");
    store(70, 0, "t");
    ends_as(70, "reverted", false, "t");
    ends_as(70, "paid", false, "f"); /* said once */
    debt_is("paying why so");
    due_is(""); /* it backs off */
    try_now();
    due_is("paying 1");
    store(71, 0, "f");
    store(71, 1, "t");
    debt_is("paying why so"); /* until one succeeds, why the one before did not */
    ends_as(71, "reverted", false, "t");
    try_now();
    due_is("paying 2");
    sql_is(pg, "SELECT string_agg(event, ' ' ORDER BY seq) FROM events WHERE event LIKE 'refund%'",
           "refund_signed refund_sent refund_reverted refund_sent refund_reverted");
}

/* Not mined before its deadline: the same count once more, at once, and its hash is kept. */
static void test_expired(void **state)
{
    (void)state;
    owed();
    store(70, 0, "t");
    ends_as(70, "expired", true, "t");
    due_is("paying 0");
    store(71, 0, "t");
    sql_is(pg, "SELECT string_agg(key_count || ' ' || state, ', ' ORDER BY id) FROM refund_transactions",
           "0 expired, 0 signed");
}

/* ---- for a person ---- */

static void test_astray(void **state)
{
    (void)state;
    owed();
    store(70, 0, "t");
    ends_as(70, "astray", false, "t");
    debt_is("held why so");
    lands(70, "b(44, 20)");
    debt_is("held why so"); /* the payer has nothing */
    account_is("liabilities:refunds-owed", "-10000");
    account_is("equity:withdrawals", "10000");
    due_is("");
    sql_is(pg, "SELECT debt_decide(id, 'approve', NULL, 'me') FROM debts", "held");
    sql_is(pg, "SELECT debt_decide(id, 'pay', NULL, 'me') FROM debts", "held");
    sql_is(pg, "SELECT debt_decide(id, 'again', 'got it back', 'me') FROM debts", "changed");
    due_is("approved 0");
    store_with(71, 0, "(SELECT refund_nonce FROM refund_transactions)", "f"); /* of before */
    store(71, 0, "t");
}

/* Its count was used, and by none of ours: a person, but only when nothing that was signed before can be mined any more
 * and the wallet's own scan has passed that block. */
static void test_lost(void **state)
{
    (void)state;
    owed();
    store(70, 0, "t");
    scanned(50);
    ends_as(70, "lost", false, "f");
    scanned(49);
    ends_as(70, "lost", true, "f");
    debt_is("paying");
    scanned(50);
    ends_as(70, "lost", true, "t");
    debt_is("held why so");
    due_is("");
}

/* ... unless the scan has found the refund meanwhile: of another transaction, or of this one, whose receipt is denied.
 */
static void test_found(void **state)
{
    (void)state;
    for (int tx = 70; tx <= 71; tx++) {
        money_clear(NULL);
        owed();
        store(70, 0, "t");
        lands(tx, "b(1, 20)");
        debt_is("refunded");
        ends_as(70, "lost", false, "t");
        debt_is("refunded");
        sql_is(pg, "SELECT state FROM refund_transactions", tx == 70 ? "paid" : "lost");
    }
}

/* ---- what sending costs comes from the same wallet ---- */

static void test_short(void **state)
{
    (void)state;
    static const char q[] = "SELECT count(*) FROM payouts_due('eip155:1', b(7, 20), 10, %d, 100000, 100000, 500)";
    owed();
    OWNED char *less = str_format(q, 10499), *enough = str_format(q, 10500);
    sql_is(pg, less, "0");
    sql_is(pg, enough, "1");
    sql_run(pg, "SELECT refund_funds_seen('eip155:1', b(7, 20), 10100, 500)");
    sql_is(pg, "SELECT lacks FROM refund_funds", "400");
}

/* A wallet that is not the refund wallet, a debt that is held, a nonce of another part: nothing is stored. */
static void test_refused(void **state)
{
    (void)state;
    owed();
    store_with(70, 0, "b(1, 32)", "f");
    sql_run(pg, "UPDATE wallets SET role = 'former' WHERE role = 'refund'");
    store(70, 0, "f");
    sql_run(pg, "UPDATE wallets SET role = 'refund' WHERE role = 'former'");
    sql_is(pg, "SELECT debt_decide(id, 'hold', 'wait', 'me') FROM debts", "changed");
    store(70, 0, "f");
    sql_is(pg, "SELECT count(*) FROM refund_transactions", "0");
    sql_is(pg, "SELECT debt_decide(id, 'approve', NULL, 'me') FROM debts", "changed");
    store(70, 0, "t");
}

static void test_look(void **state)
{
    (void)state;
    static const char look[] = "SELECT count(*), min(looks), min(encode(raw, 'hex')) FROM refunds_look('eip155:1', 10)";
    owed();
    store(70, 0, "t");
    sql_is(pg,
           "SELECT string_agg(concat_ws(' ', key_count, amount, raw = b(70, 9), hash = b(70, 32), payer = b(1, 20), "
           "looks), ', ')"
           " FROM refunds_look('eip155:1', 10)",
           "0 10000 t t t 1");
    sql_is(pg, look, "0");
    sql_run(pg, "UPDATE refund_transactions SET next_look = '-infinity'");
    ends_as(70, "paid", false, "t");
    sql_is(pg, look, "0");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_paid),  TEST(test_reverted), TEST(test_expired), TEST(test_astray), TEST(test_lost),
        TEST(test_found), TEST(test_short),    TEST(test_refused), TEST(test_look),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
