/* When an unknown is looked at, and what is not worth sending any more. */
#include "money.h"

#include <string.h>

static void make_sent(int valid_in_s)
{
    make_due(1, valid_in_s);
    sql_run(pg, "UPDATE authorizations SET state = 'sent', looks = 0, next_look = now() + interval '2 s'");
}

/* Makes its look due, looks, and tells in how many seconds, rounded up, the next one is. */
static int next_after_look(void)
{
    sql_run(pg, "UPDATE authorizations SET next_look = now()");
    sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "1");
    OWNED char *s = sql_one(pg, "SELECT ceil(extract(epoch FROM next_look - now()))::int FROM authorizations");
    return atoi(s);
}

/* 2, 4, 8, 15, 30, 60 s after it was sent, then each minute. */
static void test_pace(void **state)
{
    (void)state;
    static const int at_s[] = { 2, 4, 8, 15, 30, 60, 120, 180 };
    int at = 2;
    make_sent(3000);
    for (size_t i = 0; i < COUNT(at_s); i++) {
        assert_int_equal(at, at_s[i]);
        at += next_after_look();
    }
}

static void in_s(int looks, int left_s, int from_ms, int to_ms)
{
    OWNED char *q =
        str_format("SELECT (1000 * extract(epoch FROM look_after(%d, floor(extract(epoch FROM now()))::bigint + %d) - "
                   "now()))::int BETWEEN %d AND %d",
                   looks, left_s, from_ms, to_ms);
    OWNED char *so = sql_one(pg, q);
    if (strcmp(so, "t") != 0)
        fail_msg("%d looks, %d s left: not in %d to %d ms", looks, left_s, from_ms, to_ms);
}

/* Never past the last deadline without a look just behind it; from then on further and further apart, each minute at
 * most. */
static void test_deadline(void **state)
{
    (void)state;
    in_s(6, 3600, 60000, 60000);
    in_s(6, 61, 60000, 60000);
    in_s(6, 30, 30000, 31000);
    in_s(6, 2, 2000, 3000);
    in_s(3, 30, 7000, 7000); /* the pace is faster than the deadline */
    in_s(0, 1, 1000, 2000);
    in_s(6, 0, 2000, 2000);
    in_s(6, -3, 2000, 2000);
    in_s(6, -20, 5000, 5250);
    in_s(6, -60, 15000, 15250);
    in_s(6, -239, 59750, 60000);
    in_s(6, -90000, 60000, 60000);
    in_s(0, -90000, 60000, 60000);
}

/* The deadline of the latest signature known over the nonce, not of the one that was to be sent. */
static void test_dead_after(void **state)
{
    (void)state;
    make_sent(20);
    sql_run(pg, "UPDATE authorizations SET looks = 6, dead_after = valid_before + 1000");
    assert_int_equal(next_after_look(), 60);
    sql_run(pg, "UPDATE authorizations SET looks = 6, dead_after = valid_before");
    assert_in_range(next_after_look(), 10, 21);
}

/* A look without an answer is made again soon, and one that is due sooner stays. */
static void test_look_again(void **state)
{
    (void)state;
    make_sent(3000);
    sql_run(pg, "UPDATE authorizations SET next_look = now() + interval '60 s'");
    sql_run(pg, "SELECT authorizations_look_again(json_agg(id)::text) FROM authorizations");
    sql_is(pg, "SELECT bool_and(next_look <= now() + interval '2 s') FROM authorizations", "t");
    sql_run(pg, "UPDATE authorizations SET next_look = now() - interval '1 s'");
    sql_run(pg, "SELECT authorizations_look_again(json_agg(id)::text) FROM authorizations");
    sql_is(pg, "SELECT bool_and(next_look < now()) FROM authorizations", "t");
}

/* ---- the node says that it cannot be carried out now ---- */

static void test_doubted(void **state)
{
    (void)state;
    static const char *const states[] = { "held", "due", "sent", "released" };
    make_sent(120);
    for (size_t i = 0; i < COUNT(states); i++) {
        OWNED char *set =
            str_format("UPDATE authorizations SET state = '%s', next_look = now() + interval '50 s'", states[i]);
        sql_run(pg, set);
        sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "0");
        sql_run(pg, "SELECT authorization_doubted(auth(1))");
        sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "1");
        state_is(1, states[i]); /* a doubt is no proof */
    }
    ends(1, "void");
    sql_run(pg, "UPDATE authorizations SET next_look = now() + interval '50 s'");
    OWNED char *before = dump();
    sql_run(pg, "SELECT authorization_doubted(auth(1)), authorization_doubted(999)");
    same_as(before);
}

/* A doubt at every call must not make it a look at every call. */
static void test_doubted_soon(void **state)
{
    (void)state;
    make_sent(120);
    sql_run(pg, "UPDATE authorizations SET next_look = now() - interval '1 s'");
    OWNED char *before = dump();
    sql_run(pg, "SELECT authorization_doubted(auth(1))");
    same_as(before);
}

/* ---- mined without being carried out ---- */

static void mined_in_vain(void)
{
    sql_run(pg, "UPDATE authorizations SET state = 'sent', claimed_until = '-infinity'");
    sql_is(pg,
           "SELECT proofs_record(json_build_object('network', 'eip155:1', 'mined', '[]'::json, 'proofs', '[]'::json,"
           " 'unpaid', json_build_array(auth(1)), 'by', '" BY_SETTLER "'::json)::text)",
           "0");
    state_is(1, "due");
}

static void test_fruitless(void **state)
{
    (void)state;
    make_sent(600);
    for (int i = 1; i <= 3; i++) {
        mined_in_vain();
        OWNED char *tries = sql_one(pg, "SELECT fruitless FROM authorizations");
        assert_int_equal(atoi(tries), i);
        sql_is(pg, "SELECT alone AND next_look <= now() FROM authorizations", "t");
        sql_run(pg, "UPDATE authorizations SET claimed_until = now() - interval '1 ms'");
        sql_is(pg, "SELECT count(*) FROM authorizations_claim('eip155:1', 10, 10, 8)", i < 3 ? "1" : "0");
    }
    sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "1"); /* the resolver has it still */
    ends(1, "expired");
}

/* Between two tries it waits longer each time. */
static void test_fruitless_waits(void **state)
{
    (void)state;
    make_sent(600);
    mined_in_vain();
    sql_is(pg, "SELECT count(*) FROM authorizations_claim('eip155:1', 10, 10, 8)", "1"); /* alone, at once */
    mined_in_vain();
    sql_is(pg, "SELECT count(*) FROM authorizations_claim('eip155:1', 10, 10, 8)", "0");
    sql_is(pg, "SELECT claimed_until BETWEEN now() AND now() + interval '3 s' FROM authorizations", "t");
}

/* A gateway may accept before any settler has looked, and somebody may submit that at once: a new scan begins before it. */
static void test_scan_begins(void **state)
{
    (void)state;
    sql_is(pg, "SELECT scan_cursor('eip155:1', b(8, 20), 900)", "900");
    make_due(1, 120);
    make_due(2, 120);
    sql_run(pg, "UPDATE authorizations SET from_block = CASE id WHEN auth(1) THEN 700 ELSE 800 END");
    sql_is(pg, "SELECT scan_cursor('eip155:1', b(9, 20), 900)", "700");
    sql_is(pg, "SELECT scan_cursor('eip155:1', b(9, 20), 950)", "700");
    sql_run(pg, "DELETE FROM scans; UPDATE authorizations SET from_block = 0, created_at = now() - interval '19.1 s' WHERE id = auth(2)");
    sql_is(pg, "SELECT scan_cursor('eip155:1', b(9, 20), 900)", "690");
    sql_run(pg, "DELETE FROM scans");
    sql_is(pg, "SELECT scan_cursor('eip155:1', b(9, 20), 100)", "0");
}

/* A story of any length is told in public by its beginning and its end; a free repeat's end is none of it. */
static void test_long_story(void **state)
{
    (void)state;
    make_due(1, 120);
    make_due(2, 120);
    sql_run(pg, "SELECT event_add(b(1, 16), '" BY_SETTLER "', 'set_aside', NULL, n::text, '{}') FROM generate_series(1, 200) n");
    sql_is(pg, "SELECT json_array_length(order_timeline(b(1, 16))::json)", "80");
    sql_is(pg, "SELECT order_timeline(b(1, 16))::json->79->>'became'", "200");
    sql_run(pg, "UPDATE authorizations SET state = 'released', order_id = b(1, 16);"
                "SELECT repeat_keep(auth(2), b(1, 16), b(1, 20), b(1, 32), NULL)");
    ends(2, "expired");
    sql_is(pg, "SELECT order_timeline(b(1, 16))::json->79->>'became'", "200");
    ends(1, "expired");
    sql_is(pg, "SELECT order_timeline(b(1, 16))::json->79->>'event'", "expired");
}

/* However many that were released wait for a look, what is on its way gets its own in time. */
static void test_look_crowd(void **state)
{
    (void)state;
    for (int i = 1; i <= 4; i++)
        make_due(i, 120);
    sql_run(pg, "UPDATE authorizations SET next_look = now() - make_interval(secs => 10 - id),"
                " state = CASE id WHEN auth(4) THEN 'sent' ELSE 'released' END");
    sql_is(pg, "SELECT string_agg(state, ' ' ORDER BY state) FROM authorizations_look('eip155:1', 2)", "released released sent");
    sql_is(pg, "SELECT string_agg(state, ' ') FROM authorizations_look('eip155:1', 2)", "released");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pace),         TEST(test_deadline), TEST(test_look_again),  TEST(test_dead_after),      TEST(test_doubted),
        TEST(test_doubted_soon), TEST(test_fruitless), TEST(test_fruitless_waits),
        TEST(test_look_crowd),   TEST(test_long_story), TEST(test_scan_begins),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
