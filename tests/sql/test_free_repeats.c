/* Free repeats at random, against an oracle of a few lines: sequences of (wallet, tool, method, arguments, time, outcome), their keys
 * made by the program, their decisions by the database. No wrong answer, no charge inside a window, a charge outside of each.
 * PAYONCE_SEQUENCES says how many, PAYONCE_SEED which. */
#include "money.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "settle/canonical.h"

enum { SEQUENCES = 10000, BATCH = 500, STEPS = 6, WALLETS = 2, TOOLS = 4, METHODS = 2, MEANINGS = 3, WINDOW_S = 120 };

static const char player[] =
    "CREATE FUNCTION t.ended(n bigint, outcome text, now_ms bigint, body text) RETURNS void LANGUAGE plpgsql AS $$"
    "DECLARE o bytea := decode(lpad(to_hex(n), 32, '0'), 'hex'); b bytea := convert_to(body, 'UTF8'); BEGIN"
    " IF outcome = 'failed' THEN PERFORM order_finish(o, 1, 'failed', 'a note', NULL, NULL, NULL, NULL); RETURN; END IF;"
    " IF outcome <> 'proven' THEN"
    "  PERFORM order_finish(o, 1, 'done', NULL, 200, '[]', b, sha256(b), NULL, outcome <> 'cookie'); END IF;"
    " IF outcome <> 'settling' THEN"
    "  INSERT INTO proofs (authorization_id, network, tx, log_index, block, block_hash, block_time)"
    "  SELECT authorization_id, 'eip155:1', decode(lpad(to_hex(n), 64, '0'), 'hex'), 0, 1, b(1, 32), now_ms / 1000 FROM orders WHERE id = o;"
    "  UPDATE authorizations a SET state = 'settled', ended_at = now() FROM orders x WHERE x.id = o AND a.id = x.authorization_id;"
    "  UPDATE orders SET delivered_at = now() WHERE id = o; END IF; END $$;"
    "CREATE FUNCTION t.asked(s jsonb, verified boolean) RETURNS record LANGUAGE plpgsql AS $$"
    "DECLARE n bytea := decode(lpad(to_hex((s->>'n')::bigint), 32, '0'), 'hex'); BEGIN"
    " RETURN order_accept(n, b(1, 16), 100, n, n, 'x402', 2, s->>'tool', s->>'effect', true, false, s->>'method', '/',"
    "  decode(s->>'request', 'hex'), NULL, NULL, 'eip155:1', b(7, 20), decode(s->>'payer', 'hex'), n || n, b(9, 20), 1, 0,"
    "  extract(epoch FROM now())::bigint + 120, b(1, 65), false, 8, verified, '{\"actor\":\"gateway 1\"}', decode(s->>'key', 'hex'), 120, 1000000,"
    "  (s->>'now')::bigint); END $$;"
    "CREATE FUNCTION t.play(steps jsonb) RETURNS text LANGUAGE plpgsql AS $$"
    "DECLARE s jsonb; r record; word text; said jsonb[] := '{}'; BEGIN"
    " FOR s IN SELECT v FROM jsonb_array_elements(steps) WITH ORDINALITY AS x (v, i) ORDER BY i LOOP"
    "  IF s ? 'end' THEN PERFORM t.ended((s->>'n')::bigint, s->>'end', (s->>'now')::bigint, s->>'body'); CONTINUE; END IF;"
    "  word := 'new';"
    "  IF s->>'key' IS NOT NULL THEN r := t.asked(s, false); word := r.verdict; END IF;"
    "  IF word = 'new' THEN r := t.asked(s, true); END IF;"
    "  IF r.verdict = 'accepted' AND s->>'then' <> 'running' THEN"
    "   PERFORM t.ended((s->>'n')::bigint, s->>'then', (s->>'now')::bigint, s->>'body'); END IF;"
    "  said := said || jsonb_build_array(r.verdict, convert_from(r.answer_body, 'UTF8'));"
    " END LOOP; RETURN to_jsonb(said)::text; END $$;";

static uint64_t seed;
static unsigned any(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* ---- the oracle: what is known of one question ---- */

enum fate { FATE_NONE, FATE_RUNNING, FATE_SETTLING, FATE_PAID, FATE_SPENT /* failed, or not to be given again */ };
struct known { enum fate fate; int64_t proven_ms; unsigned n; };

struct sequence {
    unsigned number;
    int64_t now_ms;
    unsigned wallet, tool, method, meaning; /* of the question before */
    struct known known[WALLETS][TOOLS][METHODS][MEANINGS];
};

/* Two of the tools are cacheable reads; one is not marked, one writes. */
static bool cacheable(unsigned tool)
{
    return tool < 2;
}

struct expected { char verdict[16], body[64]; };

static struct expected oracle(const struct known *k, unsigned tool, int64_t now_ms, const char *body)
{
    struct expected e = { "accepted", "" };
    if (!cacheable(tool))
        return e;
    if (k->fate == FATE_RUNNING || k->fate == FATE_SETTLING)
        strcpy(e.verdict, "repeat_wait");
    if (k->fate == FATE_PAID && now_ms < k->proven_ms + WINDOW_S * 1000) {
        strcpy(e.verdict, "repeat");
        snprintf(e.body, sizeof e.body, "%s %u", body, k->n);
    }
    return e;
}

/* ---- a step ---- */

static const char *const meanings[MEANINGS][3] = {
    { "a=1&b=2", "b=2&a=1", "b=%32&a=1" },
    { "a=1.0&b=2", "b=2&a=1.0", "a=1%2e0&b=2" },
    { "a=2&a=1&b", "b&a=2&a=1", "a=2&b&a=1" },
};
static const char *const methods[METHODS] = { "GET", "POST" };
static const char *const fates[] = { "paid", "paid", "paid", "failed", "cookie", "running", "settling" };

static void fate_of(struct known *k, const char *end, int64_t now_ms, unsigned n)
{
    const int64_t proven_ms = now_ms / 1000 * 1000;
    if (strcmp(end, "running") == 0)
        *k = (struct known){ FATE_RUNNING, 0, n };
    else if (strcmp(end, "settling") == 0)
        *k = (struct known){ FATE_SETTLING, 0, n };
    else if (strcmp(end, "failed") == 0 || strcmp(end, "cookie") == 0)
        *k = (struct known){ FATE_SPENT, 0, n };
    else
        *k = (struct known){ FATE_PAID, proven_ms, n };
}

/* Often right at an edge of the window. */
static void time_passes(struct sequence *s, const struct known *k)
{
    static const int64_t edges_ms[] = { 0, 119900, 119999, 120000, 120100 }, steps_ms[] = { 0, 100, 1000, 59000, 119900, 120100 };
    const int64_t edge = k->proven_ms + edges_ms[any(COUNT(edges_ms))];
    if (k->fate == FATE_PAID && any(2) && edge >= s->now_ms)
        s->now_ms = edge;
    else
        s->now_ms += steps_ms[any(COUNT(steps_ms))];
}

static void hex_of(char *ret, const void *p, size_t n)
{
    hex_write_bare(ret, p, n);
}

/* A question that runs or settles may come to its end before the next is asked. */
static void perhaps_end(struct sequence *s, struct known *k, const char *body, json_t *steps)
{
    char text[64];
    if ((k->fate != FATE_RUNNING && k->fate != FATE_SETTLING) || any(2))
        return;
    const char *end = k->fate == FATE_SETTLING ? "proven" : fates[any(5)];
    snprintf(text, sizeof text, "%s %u", body, k->n);
    json_array_append_new(steps, json_pack("{s:s, s:I, s:I, s:s}", "end", end, "n", (json_int_t)k->n, "now", (json_int_t)s->now_ms, "body", text));
    fate_of(k, end, s->now_ms, k->n);
}

/* Most often the same again, else one that differs in one thing. */
static void next_question(struct sequence *s)
{
    switch (any(12)) {
    case 0:
        s->wallet = any(WALLETS);
        break;
    case 1:
        s->tool = any(TOOLS);
        break;
    case 2:
        s->method = any(METHODS);
        break;
    case 3:
        s->meaning = any(MEANINGS);
        break;
    default:
        break;
    }
}

static void ask_one(struct sequence *s, unsigned n, json_t *steps, struct expected *ret)
{
    next_question(s);
    const unsigned w = s->wallet, tool = s->tool, method = s->method, meaning = s->meaning;
    struct known *k = &s->known[w][tool][method][meaning];
    const char *query = meanings[meaning][any(3)], *end = fates[any(COUNT(fates))], *effect = tool == 3 ? "write" : "read";
    struct address payer = { { 0 } };
    struct hash32 key, request = sha256(&n, sizeof n);
    char names[8], wallet[41], key_text[65], request_text[65], body[40], told[64];
    memcpy(payer.b, &s->number, sizeof s->number);
    payer.b[19] = (uint8_t)w;
    snprintf(names, sizeof names, "tool %u", tool);
    snprintf(body, sizeof body, "%u %u %u %u", w, tool, method, meaning);
    perhaps_end(s, k, body, steps);
    time_passes(s, k);
    const struct question q = { .payer = &payer, .tool = names, .method = methods[method], .path = SLICE_INIT("/x"), .query = slice_of(query) };
    assert_true(question_key(&q, &key));
    hex_of(wallet, payer.b, 20);
    hex_of(key_text, key.b, 32);
    hex_of(request_text, request.b, 32);
    *ret = oracle(k, tool, s->now_ms, body);
    snprintf(told, sizeof told, "%s %u", body, n);
    json_array_append_new(steps, json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:s?, s:I, s:s, s:s}", "n", (json_int_t)n, "tool", names, "effect", effect,
                                           "method", methods[method], "request", request_text, "payer", wallet, "key",
                                           cacheable(tool) ? key_text : NULL, "now", (json_int_t)s->now_ms, "then", end, "body", told));
    if (strcmp(ret->verdict, "accepted") == 0)
        fate_of(k, end, s->now_ms, n);
}

/* ---- all of them ---- */

static struct { unsigned charged, free, waited; } seen;

static void compare(const char *text, const struct expected *e, size_t n)
{
    struct json_why why;
    JSON *said = json_read(text, strlen(text), &why);
    assert_int_equal(json_array_size(said), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(said, i);
        const char *verdict = json_string_value(json_array_get(one, 0)), *body = json_string_value(json_array_get(one, 1));
        if (strcmp(verdict, e[i].verdict) != 0 || strcmp(body ? body : "", e[i].body) != 0)
            fail_msg("%zu: %s '%s' instead of %s '%s'", i, verdict, body ? body : "", e[i].verdict, e[i].body);
        seen.charged += strcmp(verdict, "accepted") == 0;
        seen.free += strcmp(verdict, "repeat") == 0;
        seen.waited += strcmp(verdict, "repeat_wait") == 0;
    }
}

static void play(unsigned from, unsigned *n)
{
    static struct expected expected[BATCH * STEPS];
    size_t count = 0;
    JSON *steps = json_array();
    for (unsigned i = 0; i < BATCH; i++) {
        struct sequence s = { .number = from + i + 1, .now_ms = INT64_C(1800000000000) + any(1000) };
        for (unsigned k = 2 + any(STEPS - 1); k > 0; k--)
            ask_one(&s, ++*n, steps, &expected[count++]);
    }
    OWNED char *text = json_write(steps);
    const char *values[] = { text };
    PGresult *r = PQexecParams(pg, "SELECT t.play($1::jsonb)", 1, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(r));
    compare(PQgetvalue(r, 0, 0), expected, count);
    PQclear(r);
}

static void test_at_random(void **state)
{
    (void)state;
    const char *how_many = getenv("PAYONCE_SEQUENCES"), *which = getenv("PAYONCE_SEED");
    const unsigned sequences = how_many ? (unsigned)strtoul(how_many, NULL, 10) : SEQUENCES;
    unsigned n = 0;
    seed = which ? strtoull(which, NULL, 10) : (uint64_t)clock_wall_ms();
    print_message("%u sequences, PAYONCE_SEED=%llu\n", sequences, (unsigned long long)seed);
    sql_run(pg, player);
    sql_run(pg, "SET synchronous_commit = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off");
    for (unsigned i = 0; i < sequences; i += BATCH) {
        play(i, &n);
        if (i % 20000 == 0)
            sql_run(pg, "SELECT t.clear(); SELECT network_pin('eip155:1', b(1, 32)); SELECT instance_beat(b(1, 16), 'gateway', 6000)");
    }
    print_message("%u charged, %u free, %u waited\n", seen.charged, seen.free, seen.waited);
    assert_true(seen.charged > sequences / 2 && seen.free > sequences / 5 && seen.waited > sequences / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_at_random, money_clear),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
