/* Payments that are a transaction of the payer's own: one challenge, one transaction, for ever; and each transfer that pays nothing is
 * owed back once. Challenge, transaction and nonce are numbers as in money.h; the memo's last seven bytes name the challenge. */
#include "money.h"

/* order_accept for a charge, as the gateway calls it: its verdict, or the SQLSTATE by which it was refused. pay(n, challenge, tx, raw) */
static const char helpers[] =
    "CREATE FUNCTION t.pay(n int, challenge int, tx int, raw text, id text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$"
    "BEGIN RETURN (order_accept(b(n, 16), b(1, 16), 100, b(n, 16), b(n, 16), 'mpp', 1, 'countries', 'read', false, false, 'GET', '/c',"
    " b(n, 32), id, b(n, 16), 'eip155:1', b(7, 20), b(1, 20), b(challenge, 32), b(9, 20), 250, 0,"
    " floor(extract(epoch FROM now()))::bigint + 60, b(tx, 32), false, 3, true, '{}', NULL, NULL, NULL, NULL, true,"
    " json_build_object('challenge', encode(b(challenge, 32), 'hex'), 'tx', encode(b(tx, 32), 'hex'), 'memo', encode(b(challenge, 32), 'hex'),"
    " 'raw', raw)::text)).verdict; EXCEPTION WHEN unique_violation OR serialization_failure THEN RETURN sqlstate; END $$;"
    "CREATE FUNCTION t.seen(tx int, log int, memo int, amount int, age_s int, block int DEFAULT 10) RETURNS void LANGUAGE sql AS $$"
    " INSERT INTO payonce.transfers (network, tx, log_index, asset, sender, receiver, amount, block, block_hash, block_time, memo, class)"
    " VALUES ('eip155:1', b(tx, 32), log, b(7, 20), b(1, 20), b(9, 20), amount, block, b(6, 32),"
    "  floor(extract(epoch FROM now()))::bigint - age_s, CASE WHEN memo > 0 THEN b(memo, 32) END, 'suspense') $$;"
    "CREATE FUNCTION t.find(challenge int, tx int) RETURNS text LANGUAGE sql AS"
    " $$ SELECT verdict FROM payonce.charge_find(b(challenge, 32), 'eip155:1', b(tx, 32)) $$;"
    "CREATE FUNCTION t.book() RETURNS int LANGUAGE sql AS $$ SELECT payonce.orphans_book('eip155:1', 900, '" BY_SETTLER "') $$;"
    "CREATE FUNCTION t.owed() RETURNS text LANGUAGE sql AS $$ SELECT coalesce(string_agg(concat_ws(' ', get_byte(tx, 0), log_index, cause,"
    " state, amount, order_id IS NOT NULL), ', ' ORDER BY tx, log_index), '') FROM payonce.debts $$;";

static int begin(void **state)
{
    money_start(state);
    sql_run(pg, helpers);
    return 0;
}

static int clear(void **state)
{
    money_clear(state);
    sql_run(pg, "UPDATE networks SET head = 20, final = 15, head_time = extract(epoch FROM now()), final_time = extract(epoch FROM now())");
    return 0;
}

static void settle(int challenge, int tx, int log_index)
{
    OWNED char *q = str_format(
        "SELECT proofs_record(json_build_object('network', 'eip155:1', 'mined', '[]'::json, 'unpaid', '[]'::json, 'by', '" BY_SETTLER
        "'::json, 'proofs', json_build_array(json_build_object('id', auth(%d), 'tx', encode(b(%d, 32), 'hex'), 'log_index', %d, 'block', 10,"
        " 'block_hash', encode(b(6, 32), 'hex'), 'block_time', floor(extract(epoch FROM now()))::bigint)))::text)",
        challenge, tx, log_index);
    sql_run(pg, q);
    state_is(challenge, "settled");
}

/* ---- one challenge, one transaction ---- */

static void test_one_each(void **state)
{
    (void)state;
    sql_is(pg, "SELECT find(1, 11)", "new");
    sql_is(pg, "SELECT pay(1, 1, 11, NULL)", "to_settle");
    sql_is(pg, "SELECT find(1, 11)", "known");
    sql_is(pg, "SELECT find(1, 12)", "known"); /* the challenge is taken, whatever comes for it */
    sql_is(pg, "SELECT get_byte(tx, 0) FROM charge_find(b(1, 32), 'eip155:1', b(12, 32))", "11");
    sql_is(pg, "SELECT find(2, 11)", "used");
    OWNED char *before = dump();
    sql_is(pg, "SELECT pay(2, 2, 11, NULL)", "23505"); /* by constraint, also where the look before was too early */
    same_as(before);
    sql_is(pg, "SELECT pay(3, 1, 13, NULL)", "conflict_request");
    sql_is(pg, "SELECT count(*) FROM charges", "1");
}

/* The bytes, the hash and the deadline stand before anything may be sent; only such a row is. */
static void test_stored_before_sent(void **state)
{
    (void)state;
    sql_is(pg, "SELECT pay(1, 1, 11, 'abcd')", "to_settle");
    state_is(1, "sent");
    sql_is(pg, "SELECT encode(raw, 'hex') || ' ' || (valid_before > extract(epoch FROM now())) FROM charges, authorizations", "abcd true");
    sql_is(pg, "SELECT encode(raw, 'hex') || ours FROM charges_look('eip155:1', 9)", "abcdtrue");
    sql_is(pg, "SELECT count(*) FROM charges_look('eip155:1', 9)", "0"); /* not again at once */
    sql_is(pg, "SELECT count(*) FROM charges_look('eip155:2', 9)", "0");
    sql_is(pg, "SELECT pay(2, 2, 12, NULL)", "to_settle");
    sql_is(pg, "SELECT raw IS NULL AND NOT ours FROM charges_look('eip155:1', 9)", "t");
}

/* Beside an order that needs no more money a pull is stored and not sent; a push is looked at all the same. */
static void test_not_needed(void **state)
{
    (void)state;
    sql_is(pg, "SELECT pay(1, 1, 11, NULL, '" ID "')", "to_settle");
    settle(1, 11, 0);
    sql_run(pg, "UPDATE orders SET request = b(2, 32); UPDATE payment_ids SET request = b(2, 32)");
    sql_is(pg, "SELECT pay(2, 2, 12, 'abcd', '" ID "')", "begin");
    state_is(2, "released");
    sql_is(pg, "SELECT count(*) FROM charges_look('eip155:1', 9)", "0");
    sql_run(pg, "UPDATE authorizations SET next_look = now() WHERE state = 'released'");
    sql_is(pg, "SELECT raw IS NULL AND ours FROM charges_look('eip155:1', 9)", "t"); /* watched, and never sent */
    sql_run(pg, "UPDATE orders SET request = b(3, 32); UPDATE payment_ids SET request = b(3, 32)");
    sql_is(pg, "SELECT pay(3, 3, 13, NULL, '" ID "')", "begin");
    state_is(3, "released");
    sql_is(pg, "SELECT raw IS NULL FROM charges_look('eip155:1', 9)", "t");
}

/* ---- what nobody came with ---- */

static void test_orphan(void **state)
{
    (void)state;
    sql_run(pg, "SELECT seen(11, 0, 1, 250, 899)");
    sql_is(pg, "SELECT book()", "0"); /* somebody may still come */
    sql_run(pg, "UPDATE transfers SET block_time = block_time - 2");
    sql_is(pg, "SELECT book()", "1");
    sql_is(pg, "SELECT owed()", "11 0 unclaimed owed 250 f");
    sql_is(pg, "SELECT class FROM transfers", "debt");
    sql_is(pg, "SELECT id = sha256(convert_to('payonce debteip155:1', 'UTF8') || b(11, 32) || int8send(0)) FROM debts", "t");
    sql_is(pg, "SELECT book()", "0");
    sql_is(pg, "SELECT find(1, 11)", "owed");
    sql_is(pg, "SELECT pay(1, 1, 11, NULL)", "40001"); /* owed back, it buys nothing */
    sql_is(pg, "SELECT count(*) FROM orders", "0");
    sql_is(pg, "SELECT json_array_length(charge_debts('eip155:1', b(11, 32))::json)", "1");
    sql_is(pg, "SELECT charge_debts('eip155:1', b(12, 32)) IS NULL", "t");
}

static void test_not_final(void **state)
{
    (void)state;
    sql_run(pg, "SELECT seen(11, 0, 1, 250, 2000, 16)");
    sql_is(pg, "SELECT book()", "0");
    sql_run(pg, "UPDATE networks SET final = 16");
    sql_is(pg, "SELECT book()", "1");
}

/* Plain transfers name nobody: they wait for a person. */
static void test_without_memo(void **state)
{
    (void)state;
    sql_run(pg, "SELECT seen(11, 0, 0, 250, 9000)");
    sql_is(pg, "SELECT book()", "0");
    sql_is(pg, "SELECT class FROM transfers", "suspense");
}

/* Told to be owed back, it is at once: each of its transfers. */
static void test_refused(void **state)
{
    (void)state;
    sql_run(pg, "SELECT seen(11, 0, 1, 125, 1), seen(11, 3, 1, 124, 1), seen(12, 0, 2, 250, 1)");
    sql_run(pg, "SELECT charge_refuse('eip155:1', b(11, 32)), charge_refuse('eip155:1', b(11, 32))");
    sql_is(pg, "SELECT book()", "2");
    sql_is(pg, "SELECT owed()", "11 0 unclaimed owed 125 f, 11 3 unclaimed owed 124 f");
}

/* ---- beside a payment ---- */

/* What came with the transfer that pays, or in another transaction for the same challenge, belongs to that order. */
static void test_surplus_and_second(void **state)
{
    (void)state;
    sql_is(pg, "SELECT pay(1, 1, 11, NULL)", "to_settle");
    sql_run(pg, "SELECT seen(11, 3, 0, 70, 9000), seen(12, 0, 1, 250, 1)");
    sql_is(pg, "SELECT book()", "1"); /* of 11 it is not known yet which one pays */
    sql_is(pg, "SELECT owed()", "12 0 duplicate owed 250 t");
    settle(1, 11, 0);
    sql_is(pg, "SELECT book()", "1");
    sql_is(pg, "SELECT owed()", "11 3 duplicate owed 70 t, 12 0 duplicate owed 250 t");
    sql_is(pg, "SELECT string_agg(class::text, ' ' ORDER BY tx, log_index) FROM transfers", "sale debt debt");
    sql_is(pg, "SELECT book()", "0");
}

/* ---- asked by its hash ---- */

static void test_read(void **state)
{
    (void)state;
    const char *read = "SELECT concat_ws(' ', coalesce(state, '-'), ended, receipt IS NOT NULL, block) FROM charge_read('eip155:1', b(1, 20), b(11, 32))";
    sql_is(pg, read, "- f");
    sql_is(pg, "SELECT pay(1, 1, 11, NULL)", "to_settle");
    sql_is(pg, read, "sent f t");
    settle(1, 11, 0);
    sql_is(pg, read, "settled t t 10");
    sql_is(pg, "SELECT state IS NULL FROM charge_read('eip155:1', b(2, 20), b(11, 32))", "t"); /* another's */
    sql_run(pg, "SELECT seen(12, 0, 2, 250, 1)");
    sql_is(pg, "SELECT concat_ws(' ', state, receipt IS NULL, block) FROM charge_read('eip155:1', b(1, 20), b(12, 32))", "settled t 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_each, clear),
        cmocka_unit_test_setup(test_stored_before_sent, clear),
        cmocka_unit_test_setup(test_not_needed, clear),
        cmocka_unit_test_setup(test_orphan, clear),
        cmocka_unit_test_setup(test_not_final, clear),
        cmocka_unit_test_setup(test_without_memo, clear),
        cmocka_unit_test_setup(test_refused, clear),
        cmocka_unit_test_setup(test_surplus_and_second, clear),
        cmocka_unit_test_setup(test_read, clear),
    };
    return cmocka_run_group_tests(tests, begin, money_stop);
}
