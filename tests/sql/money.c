#include "money.h"

#include <stdio.h>
#include <string.h>

PGconn *pg;
struct loop *loop;
struct db *gateway, *settler;
static int64_t began; /* the database's time at the test's beginning */

/* Over whatever tables there are, so that a new one cannot be forgotten. */
static const char all_tables[] =
    "CREATE VIEW t.names AS SELECT c.oid::regclass AS name FROM pg_class c WHERE relnamespace = 'payonce'::regnamespace"
    "    AND relkind = 'r' AND relname <> 'migrations';"
    "CREATE FUNCTION t.clear() RETURNS void LANGUAGE plpgsql AS $$BEGIN EXECUTE"
    " (SELECT 'TRUNCATE ' || string_agg(name::text, ', ') || ' RESTART IDENTITY CASCADE' FROM t.names); END$$;"
    "CREATE FUNCTION t.rows() RETURNS SETOF text LANGUAGE plpgsql AS $$DECLARE n regclass; BEGIN"
    " FOR n IN SELECT name FROM t.names ORDER BY name::text LOOP"
    " RETURN QUERY EXECUTE format('SELECT %L || x::text FROM %s x ORDER BY 1', n || ' ', n); END LOOP; END$$;";

int money_start(void **state)
{
    char why[400];
    int version;
    scratch_start_copy(state);
    if (db_migrate(scratch.server.conninfo, &version, why, sizeof why) != MIGRATE_OK)
        fail_msg("%s", why);
    pg = sql_open(scratch.server.conninfo);
    sql_run(pg, "CREATE SCHEMA t; SET search_path = payonce, t; SET lock_timeout = '3s';"
                "CREATE FUNCTION t.b(n int, size int) RETURNS bytea LANGUAGE sql IMMUTABLE AS"
                " 'SELECT decode(repeat(lpad(to_hex(n), 2, ''0''), size), ''hex'')';"
                "CREATE FUNCTION t.auth(n int) RETURNS bigint LANGUAGE sql AS"
                " 'SELECT id FROM payonce.authorizations WHERE nonce = t.b(n, 32) AND payer = t.b(1, 20)'");
    sql_run(pg, all_tables);
    loop = loop_new();
    gateway = db_open(loop, scratch.server.conninfo, "payonce_gateway", 2);
    settler = db_open(loop, scratch.server.conninfo, "payonce_settler", 2);
    return 0;
}

int money_stop(void **state)
{
    db_free(gateway);
    db_free(settler);
    loop_free(loop);
    PQfinish(pg);
    return scratch_stop(state);
}

int money_clear(void **state)
{
    (void)state;
    sql_run(pg, "SELECT t.clear();"
                "SELECT network_pin('eip155:1', b(1, 32)), network_pin('eip155:2', b(2, 32));"
                "SELECT instance_beat(b(1, 16), 'gateway', 600), instance_beat(b(2, 16), 'gateway', 600)");
    OWNED char *now = sql_one(pg, "SELECT floor(extract(epoch FROM now()))::bigint");
    began = atoll(now);
    return 0;
}

struct ask ask(void)
{
    return (struct ask){ .attempt = 1,
                         .instance = 1,
                         .request = 1,
                         .payer = 1,
                         .nonce = 1,
                         .payee = 9,
                         .signature = 1,
                         .network = 1,
                         .side_effect = "read",
                         .amount = "10000",
                         .valid_in_s = 120,
                         .need_s = 8,
                         .window_s = 120,
                         .repeat_max = 1000,
                         .by = BY_GATEWAY };
}

struct ask with_id(void)
{
    struct ask a = ask();
    a.payment_id = ID;
    a.quote = 3;
    return a;
}

/* The same call, signed anew: another nonce under the same payment id. */
struct ask fresh(int nonce)
{
    struct ask a = ask();
    a.payment_id = ID;
    a.attempt = a.nonce = nonce;
    return a;
}

struct ask again(int attempt)
{
    struct ask a = ask();
    a.attempt = attempt;
    return a;
}

void args_id(struct db_args *a, int n, size_t size)
{
    uint8_t bytes[32];
    memset(bytes, n, sizeof bytes);
    arg_bytes(a, bytes, size);
}

enum db_rc call(struct db *db, const char *function, struct db_args *a, struct db_rows **ret)
{
    return db_wait(db, function, a, clock_mono_ms() + PATIENCE_MS, ret);
}

/* ---- the gateway's three calls ---- */

static void add_network(struct db_args *d, const struct ask *a)
{
    char network[32];
    snprintf(network, sizeof network, "eip155:%d", a->network);
    arg_text(d, network);
}

static void add_quote(struct db_args *d, const struct ask *a)
{
    if (a->quote)
        args_id(d, a->quote, 16);
    else
        arg_null(d);
}

int id_in(const struct db_rows *r, const char *column)
{
    uint8_t b[16], same[16];
    if (!row_copy(r, 0, column, b, sizeof b))
        return 0;
    memset(same, b[0], sizeof same);
    assert_memory_equal(b, same, sizeof b);
    return b[0];
}

static void verdict_is(const struct db_rows *r, const char *verdict)
{
    assert_int_equal(db_count(r), 1);
    assert_non_null(row_text(r, 0, "verdict").p);
    assert_string_equal(row_text(r, 0, "verdict").p, verdict);
}

void find_is(const struct ask *a, const char *verdict, int order, bool fresh)
{
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    OWNED char *before = dump();
    arg_text(&d, a->payment_id);
    add_quote(&d, a);
    args_id(&d, a->payer, 20);
    add_network(&d, a);
    args_id(&d, 7, 20);
    args_id(&d, a->nonce, 32);
    args_id(&d, a->request, 32);
    args_id(&d, a->payee, 20);
    arg_text(&d, a->amount);
    arg_int(&d, 0);
    arg_int(&d, began + a->valid_in_s);
    args_id(&d, a->signature, 32);
    arg_bool(&d, !a->has_code);
    arg_int(&d, a->need_s);
    if (a->manner) {
        arg_int(&d, a->now_ms ? a->now_ms : INT64_C(1000) * began);
        args_id(&d, a->manner, 32);
    }
    assert_int_equal(call(gateway, "order_find", &d, &r), DB_OK);
    verdict_is(r, verdict);
    assert_int_equal(id_in(r, "order_id"), order);
    assert_int_equal(row_is(r, 0, "known", "none"), fresh);
    same_as(before);
}

static void add_question(struct db_args *d, const struct ask *a)
{
    args_id(d, a->key, 32);
    arg_int(d, a->window_s);
    arg_int(d, a->repeat_max);
    arg_int(d, a->now_ms);
}

enum db_rc accept_rows(const struct ask *a, struct db_rows **ret)
{
    DB_ARGS d = { 0 };
    args_id(&d, a->attempt, 16);
    args_id(&d, a->instance, 16);
    arg_int(&d, 100);
    args_id(&d, a->attempt, 16);
    args_id(&d, a->attempt, 16);
    arg_text(&d, "x402");
    arg_int(&d, 2);
    arg_text(&d, "countries");
    arg_text(&d, a->side_effect);
    arg_bool(&d, a->cacheable);
    arg_bool(&d, a->idempotent);
    arg_text(&d, "GET");
    arg_text(&d, "/countries");
    args_id(&d, a->request, 32);
    arg_text(&d, a->payment_id);
    add_quote(&d, a);
    add_network(&d, a);
    args_id(&d, 7, 20);
    args_id(&d, a->payer, 20);
    args_id(&d, a->nonce, 32);
    args_id(&d, a->payee, 20);
    arg_text(&d, a->amount);
    arg_int(&d, 0);
    arg_int(&d, began + a->valid_in_s);
    args_id(&d, a->signature, 32);
    arg_bool(&d, a->has_code);
    arg_int(&d, a->need_s);
    arg_bool(&d, !a->unverified);
    arg_text(&d, a->by);
    if (a->key)
        add_question(&d, a);
    for (int i = 0; !a->key && (a->pay_first || a->manner) && i < 4; i++)
        arg_null(&d);
    if (a->pay_first || a->manner)
        arg_bool(&d, a->pay_first);
    if (a->manner) {
        arg_null(&d);
        args_id(&d, a->manner, 32);
    }
    return call(gateway, "order_accept", &d, ret);
}

void accept_is(const struct ask *a, const char *verdict, int order, int epoch)
{
    DB_ROWS *r = NULL;
    assert_int_equal(accept_rows(a, &r), DB_OK);
    verdict_is(r, verdict);
    assert_int_equal(id_in(r, "order_id"), order);
    /* the receipt and the epoch are told of the order's own, not of one that is only similar */
    assert_int_equal(id_in(r, "receipt"), epoch ? order : 0);
    assert_int_equal(row_int(r, 0, "epoch"), epoch);
}

enum db_rc accept_rc(const struct ask *a)
{
    return accept_rows(a, NULL);
}

void accept_warns(const struct ask *a, int similar)
{
    DB_ROWS *r = NULL;
    assert_int_equal(accept_rows(a, &r), DB_OK);
    verdict_is(r, "accepted");
    assert_int_equal(id_in(r, "similar_order"), similar);
}

void begin_is(int order, int attempt, int instance, const char *verdict, int epoch)
{
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    args_id(&d, order, 16);
    args_id(&d, attempt, 16);
    args_id(&d, instance, 16);
    arg_int(&d, 100);
    arg_null(&d);
    arg_text(&d, BY_GATEWAY);
    assert_int_equal(call(gateway, "order_begin", &d, &r), DB_OK);
    verdict_is(r, verdict);
    assert_int_equal(id_in(r, "receipt"), order);
    assert_int_equal(row_int(r, 0, "epoch"), epoch);
}

void finish_is(int order, int epoch, const char *work, const char *verdict)
{
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    args_id(&d, order, 16);
    arg_int(&d, epoch);
    arg_text(&d, work);
    arg_text(&d, strcmp(work, "done") == 0 ? NULL : "a note");
    if (strcmp(work, "done") == 0) {
        arg_int(&d, 200);
        arg_text(&d, "[]");
        arg_bytes(&d, "a\0b", 3);
        args_id(&d, epoch, 32);
    } else {
        for (int i = 0; i < 4; i++)
            arg_null(&d);
    }
    arg_text(&d, BY_GATEWAY);
    assert_int_equal(call(gateway, "order_finish", &d, &r), DB_OK);
    verdict_is(r, verdict);
}

/* ---- what became of it ---- */

void state_is(int nonce, const char *state)
{
    OWNED char *q = str_format("SELECT state FROM authorizations WHERE id = auth(%d)", nonce);
    sql_is(pg, q, state);
}

void current_is(int nonce)
{
    OWNED char *q = str_format("SELECT authorization_id = auth(%d) FROM orders", nonce);
    sql_is(pg, q, "t");
}

void work_is(int order, const char *work)
{
    OWNED char *q = str_format("SELECT work FROM orders WHERE id = b(%d, 16)", order);
    sql_is(pg, q, work);
}

void make_due(int nonce, int valid_in_s)
{
    struct ask a = ask();
    a.attempt = a.nonce = a.request = nonce;
    a.valid_in_s = valid_in_s;
    a.need_s = -1000;
    accept_is(&a, "accepted", nonce, 1);
    finish_is(nonce, 1, "done", "ok");
}

void ends(int nonce, const char *state)
{
    OWNED char *q = str_format("SELECT authorization_end(auth(%d), '%s', 'a note', '" BY_SETTLER "')", nonce, state);
    sql_is(pg, q, "t");
    state_is(nonce, state);
}

void settles(int nonce, int log_index, int age_s)
{
    OWNED char *q = str_format(
        "SELECT proofs_record(json_build_object('network', 'eip155:1', 'mined', '[]'::json, 'unpaid', '[]'::json, "
        "'by', '" BY_SETTLER "'::json, 'proofs',"
        " json_build_array(json_build_object('id', auth(%d), 'tx', encode(b(5, 32), 'hex'), 'log_index', %d, 'block', "
        "10,"
        " 'block_hash', encode(b(6, 32), 'hex'), 'block_time', floor(extract(epoch FROM now()))::bigint - %d)))::text)",
        nonce, log_index, age_s);
    sql_is(pg, q, "1");
    state_is(nonce, "settled");
}

void instance_dies(int instance)
{
    OWNED char *q = str_format("UPDATE instances SET until = now() - interval '1 s' WHERE id = b(%d, 16)", instance);
    sql_run(pg, q);
    /* nobody is taken for dead by a server that has just started */
    sql_wait(pg, "SELECT pg_postmaster_start_time() < now() - interval '20 s'", "t");
}

char *dump(void)
{
    return sql_one(pg, "SELECT string_agg(x, E'\\n') FROM t.rows() x");
}

void same_as(const char *before)
{
    OWNED char *after = dump();
    assert_string_equal(after, before);
}
