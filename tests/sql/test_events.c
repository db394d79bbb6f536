/* The story of an order: each change of its work or its money tells itself once, in its own commit, in one unbroken
 * chain. */
#include "money.h"

#include <string.h>

/* Every change of an axis, with its transaction, seen by triggers: what the events must have told. */
static const char watch[] =
    "CREATE TABLE t.changes (order_id bytea, nonce bytea, xid bigint, said text);"
    "CREATE FUNCTION t.saw() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
    " IF TG_TABLE_NAME = 'orders' THEN"
    "  INSERT INTO t.changes VALUES (NEW.id, NULL, txid_current(), 'work ' || NEW.work);"
    " ELSE"
    "  INSERT INTO t.changes VALUES (NEW.order_id, NEW.nonce, txid_current(), 'money ' || NEW.state);"
    " END IF; RETURN NULL; END$$;"
    "CREATE TRIGGER saw AFTER INSERT OR UPDATE OF work ON orders FOR EACH ROW EXECUTE FUNCTION t.saw();"
    "CREATE TRIGGER saw_insert AFTER INSERT ON authorizations FOR EACH ROW EXECUTE FUNCTION t.saw();"
    "CREATE TRIGGER saw AFTER UPDATE OF state ON authorizations FOR EACH ROW"
    " WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION t.saw();"
    "GRANT USAGE ON SCHEMA t TO PUBLIC; GRANT ALL ON t.changes TO PUBLIC;";

static int start(void **state)
{
    money_start(state);
    sql_run(pg, watch);
    return 0;
}

static int told; /* how many events the test has read */

static int clear(void **state)
{
    told = 0;
    sql_run(pg, "TRUNCATE t.changes");
    return money_clear(state);
}

/* The events since the last call, as "seq actor event: before -> after", and nothing else was told. */
static void tells(const char *expected)
{
    OWNED char *q =
        str_format("SELECT coalesce(string_agg(concat(seq, ' ', actor, ' ', event, ': ', coalesce(before, '-'), ' -> ',"
                   " coalesce(after, '-')), E'\\n' ORDER BY id), '') FROM events WHERE id > %d",
                   told);
    OWNED char *n = sql_one(pg, "SELECT coalesce(max(id), 0) FROM events");
    sql_is(pg, q, expected);
    told = atoi(n);
}

/* Nothing changed untold, or told in another commit; one event a commit, and one more for each debt. */
static void all_told(void)
{
    sql_is(
        pg,
        "SELECT count(*) FROM t.changes c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.order_id = c.order_id AND "
        "e.xmin::text::bigint = c.xid)",
        "0");
    sql_is(pg,
           "SELECT count(*) FROM (SELECT order_id, xmin::text FROM events WHERE event <> 'debt_owed' GROUP BY 1, 2"
           " HAVING count(*) > 1) x",
           "0");
    sql_is(pg, "SELECT sum(events_broken(id)) FROM orders", "0");
}

static void send(void)
{
    sql_run(pg, "SELECT relayer_lease('eip155:1', b(3, 20), b(1, 16), 15, 0)");
    sql_run(pg, "SELECT relay_store('eip155:1', b(3, 20), b(1, 16), 1, (SELECT next_nonce FROM relayers), b((SELECT "
                "next_nonce + 1 FROM relayers)::int, 32), 'raw', 1, 1, 1, b(4, 20), 'call',"
                " (SELECT json_agg(id)::text FROM authorizations WHERE state = 'due'), '" BY_SETTLER "')");
}

/* ---- what is told ---- */

static void test_sale(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    tells("1 gateway 1 accepted: - -> work running, money held");
    accept_is(&a, "accepted", 1, 1); /* its reply was lost: told once */
    tells("");
    accept_is(&b, "in_flight", 1, 1);
    tells("2 gateway 1 set_aside: - -> money released");
    accept_is(&b, "in_flight", 1, 1);
    tells("");
    finish_is(1, 1, "done", "ok");
    tells("3 gateway 1 work_done: work running -> work done, money due");
    finish_is(1, 1, "done", "ok");
    finish_is(1, 1, "failed", "late");
    tells("");
    send();
    tells("4 settler 1 sent: money due -> money sent");
    settles(1, 1, 0);
    tells("5 settler 1 settled: money sent -> money settled");
    ends(2, "expired");
    tells("6 settler 1 expired: money released -> money expired");
    all_told();
}

static void test_failures(void **state)
{
    (void)state;
    struct ask a = with_id(), b = again(2), c = fresh(3), d = fresh(4);
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    accept_is(&b, "accepted", 1, 2);
    tells("1 gateway 1 accepted: - -> work running, money held\n"
          "2 gateway 1 work_failed: work running -> work failed, money released\n"
          "3 gateway 1 accepted_again: work failed, money released -> work running, money held");
    finish_is(1, 2, "done", "ok");
    send();
    told = 5;
    sql_run(pg, "SELECT proofs_record(json_build_object('network', 'eip155:1', 'mined', '[]'::json, 'proofs',"
                " '[]'::json, 'unpaid', json_build_array(auth(1)), 'by', '" BY_SETTLER "'::json)::text)");
    tells("6 settler 1 not_carried_out: money sent -> money due");
    ends(1, "void");
    accept_is(&c, "resent", 1, 2);
    tells("7 settler 1 void: money due -> money void\n"
          "8 gateway 1 resent: work done, money void -> work done, money due");
    accept_is(&d, "in_flight", 1, 2);
    settles(3, 1, 0);
    settles(4, 2, 0);
    tells("9 gateway 1 set_aside: - -> money released\n"
          "10 settler 1 settled: money due -> money settled\n"
          "11 settler 1 settled: money released -> money settled\n"
          "12 settler 1 debt_owed: - -> owed");
    sql_run(pg, "SELECT block_undone('eip155:1', 10, b(6, 32), '" BY_SETTLER "')");
    sql_is(pg, "SELECT count(*) FROM events WHERE event = 'proof_undone'", "2");
    sql_is(pg, "SELECT events_broken(b(1, 16))", "0");
}

static void test_reviews(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.side_effect = "write";
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s'");
    told = 1;
    sql_run(pg, "SELECT orders_sweep(10, '" BY_SETTLER "')");
    tells("2 settler 1 work_lost: work running -> work lost, money released");
    finish_is(1, 1, "done", "ok");
    tells("3 gateway 1 work_done: work lost -> work done, money due");
    all_told();
}

static void test_puzzle(void **state)
{
    (void)state;
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    told = 1;
    for (int i = 0; i < 2; i++)
        sql_run(pg, "SELECT authorization_puzzles(auth(1), 'used, no log', '" BY_SETTLER "')");
    tells("2 settler 1 review_opened: - -> in_review");
    all_told();
}

/* An event tells what is, not what usually is. */
static void test_truth(void **state)
{
    (void)state;
    struct ask a = ask(), b = ask();
    accept_is(&a, "accepted", 1, 1);
    settles(1, 1, 0);
    b.attempt = b.nonce = b.request = 2;
    accept_is(&b, "accepted", 2, 1);
    ends(2, "void");
    finish_is(1, 1, "failed", "ok");
    finish_is(2, 1, "failed", "ok");
    sql_is(pg, "SELECT string_agg(after, '; ' ORDER BY id) FROM events WHERE event = 'work_failed'",
           "work failed, money settled; work failed, money void");
}

/* What was to pay and is released because another one pays: its nonce's story has that, too. */
static void test_released_by_another(void **state)
{
    (void)state;
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "in_flight", 1, 1);
    finish_is(1, 1, "done", "ok");
    settles(2, 2, 0);
    state_is(1, "released");
    sql_is(pg,
           "SELECT count(*) > 0 FROM events WHERE seq > 3 AND facts::text LIKE '%' || encode(b(1, 32), 'hex') || '%'",
           "t");
}

/* ---- what is told with it, and what never is ---- */

static void test_facts(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.signature = 0x5a;
    a.by = "{\"actor\":\"gateway 7\",\"request\":\"req-9\",\"retry\":\"framework\","
           "\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}";
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    send();
    settles(1, 3, 0);
    sql_is(pg,
           "SELECT concat_ws(' ', actor, request_id, retry_source, traceparent, attempt = b(1, 16), facts->>'amount',"
           " facts->>'nonce' = encode(b(1, 32), 'hex')) FROM events WHERE seq = 1",
           "gateway 7 req-9 framework 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 t 10000 t");
    sql_is(pg,
           "SELECT concat_ws(' ', facts->>'log_index', facts->>'tx' = encode(b(5, 32), 'hex')) FROM events WHERE event "
           "= 'settled'",
           "3 t");
    sql_is(pg, "SELECT count(*) FROM events e WHERE e::text LIKE '%5a5a5a5a%' OR e::text LIKE '%610062%'", "0");
}

static void test_nobody(void **state)
{
    (void)state;
    struct ask a = with_id();
    a.by = NULL;
    accept_is(&a, "accepted", 1, 1);
    sql_is(pg, "SELECT concat_ws(' ', actor, events_broken(order_id)) FROM events", "unknown 0");
}

static void test_conflicts_tell_nothing(void **state)
{
    (void)state;
    struct ask a = with_id(), payer = with_id(), request = with_id();
    accept_is(&a, "accepted", 1, 1);
    payer.attempt = request.attempt = 2;
    payer.payer = 2;
    request.request = 2;
    told = 1;
    accept_is(&payer, "conflict_payer", 0, 0);
    accept_is(&request, "conflict_request", 0, 0);
    tells("");
}

/* An event is of its commit: what is rolled back was never told, and leaves no gap. */
static void test_rolled_back(void **state)
{
    (void)state;
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    sql_run(pg, "BEGIN");
    ends(1, "void");
    sql_run(pg, "ROLLBACK");
    sql_is(pg, "SELECT count(*) FROM events", "1");
    ends(1, "void");
    sql_is(pg, "SELECT string_agg(seq || ' ' || event, ', ' ORDER BY id) || ' ' || events_broken(b(1, 16)) FROM events",
           "1 accepted, 2 void 0");
}

/* ---- the chain ---- */

static void long_story(void)
{
    struct ask a = with_id(), b = fresh(2);
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "in_flight", 1, 1);
    finish_is(1, 1, "done", "ok");
    send();
    settles(1, 1, 0);
    settles(2, 2, 0);
    sql_is(pg, "SELECT count(*) || ' ' || events_broken(b(1, 16)) FROM events", "7 0");
}

static void test_tampered(void **state)
{
    (void)state;
    static const char *const deeds[] = {
        "UPDATE events SET actor = 'somebody' WHERE seq = 3",
        "UPDATE events SET event = 'x' WHERE seq = 3",
        "UPDATE events SET before = 'x' WHERE seq = 3",
        "UPDATE events SET before = NULL WHERE seq = 3",
        "UPDATE events SET after = 'x' WHERE seq = 3",
        "UPDATE events SET at = at + interval '1 us' WHERE seq = 3",
        "UPDATE events SET request_id = 'x' WHERE seq = 3",
        "UPDATE events SET retry_source = 'llm' WHERE seq = 3",
        "UPDATE events SET traceparent = 'x' WHERE seq = 3",
        "UPDATE events SET attempt = b(9, 16) WHERE seq = 1",
        "UPDATE events SET facts = facts || '{\"status\": 201}' WHERE seq = 3",
        "UPDATE events SET hash = b(9, 32) WHERE seq = 7",
        "UPDATE events SET previous = b(9, 32) WHERE seq = 1",
        "UPDATE events SET seq = 8 WHERE seq = 7",
        "UPDATE events SET seq = 8 WHERE seq = 7; UPDATE events e SET hash = event_hash(e) WHERE seq = 8",
        "DELETE FROM events WHERE seq < 7; UPDATE events SET seq = 1; UPDATE events e SET hash = event_hash(e)",
        "DELETE FROM events WHERE seq = 1",
        "DELETE FROM events WHERE seq = 3",
        "DELETE FROM events WHERE seq = 3; UPDATE events SET seq = seq - 1 WHERE seq > 3",
        "UPDATE events e SET actor = 'x' WHERE seq = 3; UPDATE events e SET hash = event_hash(e) WHERE seq = 3",
    };
    long_story();
    for (size_t i = 0; i < COUNT(deeds); i++) {
        OWNED char *deed = str_format("BEGIN; %s", deeds[i]);
        sql_run(pg, deed);
        OWNED char *seen = sql_one(pg, "SELECT events_broken(b(1, 16)) > 0");
        sql_run(pg, "ROLLBACK");
        if (strcmp(seen, "t") != 0)
            fail_msg("not seen: %s", deeds[i]);
    }
}

/* ---- many at once on one order ---- */

static void test_parallel(void **state)
{
    (void)state;
    enum { SIDES = 6, NOTES = 30 };
    PGconn *side[SIDES];
    struct ask a = with_id();
    accept_is(&a, "accepted", 1, 1);
    for (int i = 0; i < SIDES; i++) {
        OWNED char *q = str_format(
            "DO $$BEGIN FOR i IN 1..%d LOOP PERFORM events_note(json_build_array(json_build_object('order', "
            "encode(b(1, "
            "16), 'hex'), 'event', 'replayed', 'by', json_build_object('actor', 'side %d')))::text); COMMIT; "
            "END LOOP; END$$",
            NOTES, i);
        side[i] = sql_open(scratch.server.conninfo);
        sql_run(side[i], "SET search_path = payonce, t");
        assert_true(PQsendQuery(side[i], q));
    }
    finish_is(1, 1, "done", "ok"); /* in the midst of it */
    settles(1, 1, 0);
    for (int i = 0; i < SIDES; i++) {
        PGresult *r = PQgetResult(side[i]);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            fail_msg("%s", PQresultErrorMessage(r));
        PQclear(r);
        PQfinish(side[i]);
    }
    sql_is(pg, "SELECT concat_ws(' ', count(*), min(seq), max(seq), events_broken(b(1, 16))) FROM events",
           "183 1 183 0");
}

/* Notes of several orders meet a call that tells of the same ones: both take them in the same order, and nobody is
 * stuck. */
static void meets_notes(const char *call)
{
    PGconn *notes = sql_open(scratch.server.conninfo), *side = sql_open(scratch.server.conninfo);
    sql_run(notes, "SET search_path = payonce, t; BEGIN; SELECT event_add(b(1, 16), NULL, 'noted', NULL, NULL)");
    sql_run(side, "SET search_path = payonce, t");
    assert_true(PQsendQuery(side, call));
    sql_wait(pg, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted", "t");
    sql_run(notes, "SELECT event_add(b(2, 16), NULL, 'noted', NULL, NULL); COMMIT");
    PGresult *r = PQgetResult(side);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(r));
    PQclear(r);
    PQfinish(notes);
    PQfinish(side);
    sql_is(pg, "SELECT sum(events_broken(id)) FROM orders", "0");
}

static void two_orders(void)
{
    for (int i = 1; i <= 2; i++) {
        struct ask a = ask();
        a.attempt = a.nonce = a.request = i;
        accept_is(&a, "accepted", i, 1);
    }
}

static void test_proofs_meet_notes(void **state)
{
    (void)state;
    two_orders();
    finish_is(1, 1, "done", "ok");
    sql_run(pg, "UPDATE authorizations SET state = 'sent' WHERE id = auth(1)");
    meets_notes(
        "SELECT proofs_record(json_build_object('network', 'eip155:1', 'unpaid', json_build_array(auth(1)),"
        " 'proofs', json_build_array(json_build_object('id', auth(2), 'tx', encode(b(5, 32), 'hex'), 'log_index',"
        " 1, 'block', 1, 'block_hash', encode(b(6, 32), 'hex'), 'block_time', 1)), 'by', '" BY_SETTLER
        "'::json)::text)");
    state_is(1, "due");
    state_is(2, "settled");
}

static void test_finish_meets_notes(void **state)
{
    (void)state;
    two_orders();
    meets_notes("SELECT order_finish(b(1, 16), 1, 'failed', 'a note', NULL, NULL, NULL, NULL)");
    work_is(1, "failed");
}

/* Notes of a bulk: unknown orders are passed over, each order has its own chain. */
static void test_notes(void **state)
{
    (void)state;
    struct ask a = ask(), b = ask();
    b.attempt = b.nonce = b.request = 2;
    accept_is(&a, "accepted", 1, 1);
    accept_is(&b, "accepted", 2, 1);
    DB_ARGS d = { 0 };
    arg_text(&d, "[{\"order\":\"02020202020202020202020202020202\",\"event\":\"replayed\",\"by\":{\"actor\":\"g\"}},"
                 "{\"order\":\"09090909090909090909090909090909\",\"event\":\"replayed\",\"by\":{\"actor\":\"g\"}},"
                 "{\"order\":\"01010101010101010101010101010101\",\"event\":\"in_flight\",\"by\":null},"
                 "{\"order\":\"02020202020202020202020202020202\",\"event\":\"replayed\"}]");
    assert_int_equal(call(gateway, "events_note", &d, NULL), DB_OK);
    sql_is(pg,
           "SELECT string_agg(get_byte(order_id, 0) || ' ' || seq || ' ' || event, ', ' ORDER BY order_id, seq) FROM "
           "events",
           "1 1 accepted, 1 2 in_flight, 2 1 accepted, 2 2 replayed, 2 3 replayed");
    sql_is(pg, "SELECT sum(events_broken(id)) FROM orders", "0");
}

#define TEST(f) cmocka_unit_test_setup(f, clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sale),
        TEST(test_failures),
        TEST(test_reviews),
        TEST(test_puzzle),
        TEST(test_truth),
        TEST(test_released_by_another),
        TEST(test_facts),
        TEST(test_nobody),
        TEST(test_conflicts_tell_nothing),
        TEST(test_rolled_back),
        TEST(test_tampered),
        TEST(test_parallel),
        TEST(test_proofs_meet_notes),
        TEST(test_finish_meets_notes),
        TEST(test_notes),
    };
    return cmocka_run_group_tests(tests, start, money_stop);
}
