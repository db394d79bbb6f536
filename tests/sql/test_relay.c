/* The settler's functions: one owner of a wallet, nothing stored by a fenced one, nothing sent that is not due, nothing
 * lost. */
#include "money.h"

#include <string.h>

static const char *const wallet_args = "'eip155:1', b(3, 20)";

/* ---- helpers: verdicts as "a b c" texts ---- */

static void lease_is(int owner, int chain_nonce, const char *said)
{
    OWNED char *q =
        str_format("SELECT concat_ws(' ', held, epoch, next_nonce) FROM relayer_lease(%s, b(%d, 16), 15, %d)",
                   wallet_args, owner, chain_nonce);
    sql_is(pg, q, said);
}

static void lease_ends(void)
{
    sql_run(pg, "UPDATE relayers SET until = now() - interval '1 ms'");
}

/* One accepted and finished payment: its authorization, of that nonce, is due. */
struct store {
    int owner, epoch, account_nonce, hash;
    const char *authorizations;
};

static enum db_rc store_as(struct db *db, const struct store *s, struct db_rows **ret)
{
    DB_ARGS a = { 0 };
    OWNED char *q =
        str_format("SELECT coalesce(json_agg(auth(v::int))::text, '[]') FROM json_array_elements_text('%s') v", s->authorizations);
    OWNED char *ids = sql_one(pg, q);
    arg_text(&a, "eip155:1");
    args_id(&a, 3, 20);
    args_id(&a, s->owner, 16);
    arg_int(&a, s->epoch);
    arg_int(&a, s->account_nonce);
    args_id(&a, s->hash, 32);
    arg_bytes(&a, "raw\0bytes", 9);
    arg_int(&a, 100000);
    arg_text(&a, "115792089237316195423570985008687907853269984665640564039457584007913129639935");
    arg_text(&a, "1");
    args_id(&a, 4, 20);
    arg_bytes(&a, "call", 4);
    arg_text(&a, ids);
    arg_text(&a, BY_SETTLER);
    return call(db, "relay_store", &a, ret);
}

/* Calls relay_store once; returns the id, or 0. */
static int store_is(const struct store *s, const char *verdict)
{
    DB_ROWS *r = NULL;
    assert_int_equal(store_as(settler, s, &r), DB_OK);
    assert_string_equal(row_text(r, 0, "verdict").p, verdict);
    return (int)row_int(r, 0, "id");
}

static void changes_nothing(const struct store *s, const char *verdict)
{
    OWNED char *before = dump();
    assert_int_equal(store_is(s, verdict), 0);
    same_as(before);
}

static char *claim(int limit, int need_s)
{
    OWNED char *q = str_format(
        "SELECT coalesce(string_agg(encode(substr(nonce, 1, 1), 'hex') || CASE WHEN alone THEN '!' ELSE '' END, ' '"
        " ORDER BY nonce), '') FROM authorizations_claim('eip155:1', %d, 10, %d)",
        limit, need_s);
    return sql_one(pg, q);
}

static void claim_is(int limit, int need_s, const char *nonces)
{
    OWNED char *got = claim(limit, need_s);
    assert_string_equal(got, nonces);
}

/* ---- the wallet's lease ---- */

static void test_lease(void **state)
{
    (void)state;
    lease_is(1, 5, "t 1 5");
    lease_is(1, 4, "t 1 4"); /* renewed; what the chain said before is not kept: it may have been wrong */
    lease_is(2, 9, "f");
    lease_is(1, 7, "t 1 7");
    lease_ends();
    lease_is(1, 7, "t 1 7"); /* nobody took it in between */
    lease_ends();
    lease_is(2, 6, "t 2 6");
    lease_is(1, 8, "f");
    sql_run(pg, "SELECT relayer_leave('eip155:1', b(3, 20), b(1, 16))"); /* not its own: no effect */
    lease_is(1, 8, "f");
    sql_run(pg, "SELECT relayer_leave('eip155:1', b(3, 20), b(2, 16))");
    lease_is(1, 8, "t 3 8");
    sql_is(pg, "SELECT until BETWEEN now() + interval '10 s' AND now() + interval '15 s' FROM relayers", "t");
    sql_is(pg,
           "SELECT concat_ws(' ', held, epoch, next_nonce) FROM relayer_lease('eip155:2', b(3, 20), b(2, 16), 15, 0)",
           "t 1 0");
}

/* ---- what is due ---- */

static void test_claim(void **state)
{
    (void)state;
    for (int i = 1; i <= 3; i++)
        make_due(i, 120);
    make_due(4, 30);
    claim_is(2, 8, "01 02"); /* the oldest first */
    claim_is(10, 60, "03");  /* 4 has too little time */
    claim_is(10, 8, "04");
    claim_is(10, 8, "");
    sql_run(pg, "UPDATE authorizations SET claimed_until = now() - interval '1 ms' WHERE id = auth(2)");
    claim_is(10, 8, "02"); /* a claim lapses */
    sql_run(pg, "SELECT authorizations_unclaim('[' || auth(1) || ',' || auth(3) || ',999]')");
    claim_is(10, 8, "01 03");
    state_is(1, "due"); /* claimed is not sent */
    sql_is(pg, "SELECT count(*) FROM authorizations_claim('eip155:2', 10, 10, 0)", "0");
}

static void test_claim_alone(void **state)
{
    (void)state;
    struct ask a = ask();
    a.has_code = true;
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "done", "ok");
    make_due(2, 120);
    make_due(3, 120);
    sql_run(pg, "UPDATE authorizations SET alone = true WHERE id = auth(2)");
    claim_is(10, 8, "01! 02! 03");
}

static void test_claim_only_due(void **state)
{
    (void)state;
    static const char *const states[] = { "held", "sent", "released", "settled", "expired", "void" };
    make_due(1, 120);
    for (size_t i = 0; i < COUNT(states); i++) {
        OWNED char *set = str_format(
            "UPDATE authorizations SET state = '%s', ended_at = CASE WHEN '%s' IN ('settled', 'expired', 'void')"
            " THEN now() END",
            states[i], states[i]);
        sql_run(pg, set);
        claim_is(10, 8, "");
    }
}

/* Two settlers at once: what one has under its hands the other passes over. */
static void test_claim_two(void **state)
{
    (void)state;
    for (int i = 1; i <= 4; i++)
        make_due(i, 120);
    PGconn *other = sql_open(scratch.server.conninfo);
    sql_run(other, "SET search_path = payonce, t; BEGIN; SELECT authorizations_claim('eip155:1', 2, 10, 8)");
    claim_is(10, 8, "03 04");
    sql_run(other, "COMMIT");
    claim_is(10, 8, "");
    PQfinish(other);
}

/* ---- committed before it is sent ---- */

static void test_store(void **state)
{
    (void)state;
    make_due(1, 120);
    make_due(2, 120);
    make_due(3, 120);
    lease_is(1, 5, "t 1 5");
    const struct store s = { 1, 1, 5, 0x50, "[1, 2]" };
    const int id = store_is(&s, "stored");
    assert_true(id > 0);
    state_is(1, "sent");
    state_is(2, "sent");
    state_is(3, "due");
    sql_is(pg,
           "SELECT concat_ws(' ', state, account_nonce, hash = b(80, 32), encode(raw, 'hex'), gas, broadcast_at) FROM "
           "relay_transactions",
           "signed 5 t 726177006279746573 100000");
    sql_is(pg, "SELECT count(*) FROM relay_calls WHERE authorization_id IN (auth(1), auth(2))", "2");
    sql_is(pg, "SELECT next_nonce FROM relayers", "6");
    sql_is(pg,
           "SELECT bool_and(looks = 0 AND next_look BETWEEN now() AND now() + interval '2 s') FROM authorizations "
           "WHERE state = 'sent'",
           "t");

    OWNED char *before = dump();
    assert_int_equal(store_is(&s, "stored"), id); /* its reply was lost */
    same_as(before);
    lease_ends();
    lease_is(2, 5, "t 2 6");
    OWNED char *taken = dump();
    assert_int_equal(store_is(&s, "stored"), id); /* also when the wallet was taken over since: it is committed */
    same_as(taken);
}

/* The next account nonce is the lowest that neither the chain nor we have used. */
static void test_gap(void **state)
{
    (void)state;
    make_due(1, 120);
    make_due(2, 120);
    lease_is(1, 5, "t 1 5");
    const struct store first = { 1, 1, 5, 0x50, "[1]" }, ahead = { 1, 1, 8, 0x51, "[2]" };
    store_is(&first, "stored");
    lease_is(1, 8, "t 1 8"); /* said once, and wrong */
    store_is(&ahead, "stored");
    sql_is(pg, "SELECT next_nonce FROM relayers", "9");
    lease_is(1, 5, "t 1 6");
    sql_run(pg, "UPDATE relay_transactions SET state = 'mined' WHERE account_nonce = 5");
    lease_is(1, 2, "t 1 6"); /* what was mined is known better than by a node that lags */
    const struct store fill = { 1, 1, 6, 0x52, "[]" }, rest = { 1, 1, 7, 0x53, "[]" };
    store_is(&fill, "stored");
    sql_is(pg, "SELECT next_nonce FROM relayers", "7");
    store_is(&rest, "stored");
    sql_is(pg, "SELECT next_nonce FROM relayers", "9"); /* 8 is ours already */
    sql_is(pg, "SELECT count(*) FROM relay_calls", "2");
}

/* Said once a nonce, and counted while it is open. */
static void test_capped(void **state)
{
    (void)state;
    static const char counted[] = "SELECT value FROM metrics_read(NULL, '{2}') WHERE metric = 'fee_capped' AND label = 'eip155:1'";
    make_due(1, 120);
    lease_is(1, 5, "t 1 5");
    const struct store s = { 1, 1, 5, 0x50, "[1]" };
    OWNED char *once = str_format("SELECT first FROM relay_capped(%d)", store_is(&s, "stored"));
    sql_is(pg, counted, "0");
    sql_is(pg, once, "t");
    sql_is(pg, once, "f");
    sql_is(pg, counted, "1");
    sql_run(pg, "UPDATE relay_transactions SET state = 'mined'");
    sql_is(pg, counted, "0");
}

/* What a nonce carries under all of its hashes, once each, ended or not. */
static void test_carried(void **state)
{
    (void)state;
    make_due(1, 120);
    make_due(2, 120);
    lease_is(1, 5, "t 1 5");
    const struct store s = { 1, 1, 5, 0x50, "[1, 2]" };
    const int id = store_is(&s, "stored");
    OWNED char *replace = str_format("SELECT relay_replace(%d, b(1, 16), 1, b(81, 32), 'raw', 2, 2, '{}')", id);
    sql_run(pg, replace);
    sql_run(pg, "UPDATE authorizations SET state = 'settled', ended_at = now() WHERE id = auth(1)");
    sql_is(pg, "SELECT string_agg(encode(substr(nonce, 1, 1), 'hex'), ' ' ORDER BY nonce) FROM relay_carried('eip155:1', b(3, 20), 5)",
           "01 02");
    sql_is(pg, "SELECT count(*) FROM relay_carried('eip155:1', b(3, 20), 6)", "0");
}

static void test_store_refused(void **state)
{
    (void)state;
    struct ask held = ask();
    const struct store nobody = { 1, 1, 5, 0x50, "[1]" };
    make_due(1, 120);
    make_due(2, 120);
    held.attempt = held.nonce = held.request = 3;
    accept_is(&held, "accepted", 3, 1);
    changes_nothing(&nobody, "fenced"); /* no lease was ever taken */
    lease_is(1, 5, "t 1 5");
    lease_ends();
    lease_is(2, 5, "t 2 5");

    static const struct {
        struct store s;
        const char *verdict;
    } no[] = {
        { { 1, 1, 5, 0x50, "[1]" }, "fenced" }, /* the one before */
        { { 1, 2, 5, 0x50, "[1]" }, "fenced" },
        { { 2, 1, 5, 0x50, "[1]" }, "fenced" }, /* an older epoch of one's own */
        { { 2, 3, 5, 0x50, "[1]" }, "fenced" },
        { { 2, 2, 4, 0x50, "[1]" }, "stale" }, /* account nonces: in order, each once */
        { { 2, 2, 6, 0x50, "[1]" }, "stale" },
        { { 2, 2, 5, 0x50, "[1, 3]" }, "stale" }, /* one of them is not due: none is sent */
        { { 2, 2, 5, 0x50, "[3]" }, "stale" },
        { { 2, 2, 5, 0x50, "[1, 1]" }, "stale" },
        { { 2, 2, 5, 0x50, "[1, 9]" }, "stale" }, /* 9 is unknown */
    };
    for (size_t i = 0; i < COUNT(no); i++)
        changes_nothing(&no[i].s, no[i].verdict);
    lease_ends();
    const struct store late = { 2, 2, 5, 0x50, "[1]" };
    changes_nothing(&late, "fenced"); /* ran out, though nobody has it yet */
    lease_is(2, 5, "t 2 5");
    assert_int_equal(store_is(&late, "stored"), 1);
    const struct store twice = { 2, 2, 6, 0x51, "[1]" };
    changes_nothing(&twice, "stale"); /* sent already */
}

static void test_broadcast(void **state)
{
    (void)state;
    make_due(1, 120);
    make_due(2, 120);
    lease_is(1, 5, "t 1 5");
    const struct store one = { 1, 1, 5, 0x50, "[1]" }, two = { 1, 1, 6, 0x51, "[2]" };
    store_is(&one, "stored");
    store_is(&two, "stored");
    static const char open[] =
        "SELECT string_agg(concat_ws(' ', id, account_nonce, age_s), ', ') FROM relay_open('eip155:1', b(3, 20))";
    sql_is(pg, open, "1 5, 2 6"); /* never sent: what a crash left, in order */
    sql_run(pg, "SELECT relay_broadcast('[1]')");
    sql_is(pg, open, "1 5 0, 2 6");
    sql_is(pg,
           "SELECT string_agg(concat_ws(' ', transaction_id, id = auth(1), amount), ', ') FROM "
           "relay_authorizations('[1]')",
           "1 t 10000");
    sql_run(pg, "UPDATE relay_transactions SET state = 'mined' WHERE id = 1; SELECT relay_broadcast('[1]')");
    sql_is(pg, "SELECT state FROM relay_transactions WHERE id = 1", "mined");
    sql_is(pg, open, "2 6");
    ends(1, "void");
    sql_is(pg, "SELECT count(*) FROM relay_authorizations('[1]')", "0");
}

/* ---- proofs ---- */

static void record_is(const char *json, const char *recorded)
{
    OWNED char *q = str_format(
        "SELECT proofs_record(replace(replace(replace(replace(replace('%s', 'A1', auth(1)::text), 'A2', auth(2)::text),"
        " 'TX', encode(b(5, 32), 'hex')), 'BLOCK', encode(b(6, 32), 'hex')), '`', chr(34)))",
        json);
    sql_is(pg, q, recorded);
}
#define PROOF(id, log) "{`id`:" id ",`tx`:`TX`,`log_index`:" log ",`block`:10,`block_hash`:`BLOCK`,`block_time`:100}"
#define RECORD(mined, proofs, unpaid)                                                                                  \
    "{`network`:`eip155:1`,`mined`:[" mined "],`proofs`:[" proofs "],`unpaid`:[" unpaid "]}"
#define MINED "{`id`:1,`block`:10,`block_hash`:`BLOCK`}"

static void send_both(void)
{
    make_due(1, 120);
    make_due(2, 120);
    lease_is(1, 5, "t 1 5");
    const struct store s = { 1, 1, 5, 0x50, "[1, 2]" };
    store_is(&s, "stored");
}

static void test_proofs(void **state)
{
    (void)state;
    send_both();
    sql_run(pg, "LISTEN payonce_order");
    record_is(RECORD(MINED, PROOF("A1", "3"), "A2"), "1");
    state_is(1, "settled");
    state_is(2, "due");
    sql_is(pg, "SELECT concat_ws(' ', state, block, block_hash = b(6, 32)) FROM relay_transactions", "mined 10 t");
    sql_is(pg, "SELECT concat_ws(' ', tx = b(5, 32), log_index, block, block_time) FROM proofs", "t 3 10 100");
    claim_is(10, 8, "02!"); /* alone, and at once */
    PGnotify *n = PQnotifies(pg);
    assert_non_null(n);
    assert_string_equal(n->extra, "01010101010101010101010101010101");
    PQfreemem(n);
    sql_run(pg, "UNLISTEN payonce_order");
    OWNED char *before = dump();
    record_is(RECORD(MINED, PROOF("A1", "3"), ""), "0"); /* its reply was lost */
    record_is(RECORD("", PROOF("A1", "4"), ""), "0");    /* another log for what is proven: no second proof */
    same_as(before);
}

/* One Transfer proves one authorization. */
static void test_one_log_one_proof(void **state)
{
    (void)state;
    send_both();
    record_is(RECORD(MINED, PROOF("A1", "3"), ""), "1");
    OWNED char *before = dump();
    record_is(RECORD("", PROOF("A2", "3"), ""), "0");
    same_as(before);
    state_is(2, "sent");
    record_is(RECORD("", PROOF("A2", "4"), ""), "1");
    state_is(2, "settled");

    money_clear(NULL);
    send_both();
    record_is(RECORD("", PROOF("A1", "3") "," PROOF("A2", "3"), ""), "1"); /* in one call, too */
    sql_is(pg,
           "SELECT count(*) FILTER (WHERE state = 'settled') || ' ' || count(*) FILTER (WHERE state = 'sent') FROM "
           "authorizations",
           "1 1");
}

/* A proof settles what was released or not yet sent: somebody else may have submitted it. What is proven dead stays
 * dead. */
static void test_proof_of_any(void **state)
{
    (void)state;
    struct ask a = ask();
    accept_is(&a, "accepted", 1, 1);
    finish_is(1, 1, "failed", "ok");
    make_due(2, 120);
    record_is(RECORD("", PROOF("A1", "1"), ""), "1");
    state_is(1, "settled");
    sql_is(pg, "SELECT status FROM order_status WHERE id = b(1, 16)", "refund_due");
    ends(2, "expired");
    OWNED char *before = dump();
    record_is(RECORD("", PROOF("A2", "2"), "A1,A2"), "0");
    same_as(before);
}

/* ---- unknowns ---- */

static void test_look(void **state)
{
    (void)state;
    static const int wait_s[] = { 2, 4, 7, 15, 30, 60, 60, 60 };
    send_both();
    sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "0");
    sql_run(pg, "UPDATE authorizations SET looks = 0");
    for (size_t i = 0; i < COUNT(wait_s); i++) {
        OWNED char *next =
            str_format("SELECT extract(epoch FROM max(next_look) - now())::int BETWEEN %d AND %d FROM authorizations"
                       " WHERE id = auth(1)",
                       wait_s[i] - 1, wait_s[i]);
        sql_run(pg, "UPDATE authorizations SET next_look = now() - interval '1 s' WHERE id = auth(1)");
        sql_is(pg,
               "SELECT string_agg(concat_ws(' ', id = auth(1), state, amount, from_block), ',') FROM "
               "authorizations_look('eip155:1', 10)",
               "t sent 10000 0");
        sql_is(pg, next, "t");
        sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "0");
    }
}

/* Whatever is not ended has its visit, in each state that is not an end, and dead_after, not validBefore, is told. */
static void test_look_any(void **state)
{
    (void)state;
    static const char *const states[] = { "held", "due", "sent", "released" };
    make_due(1, 120);
    for (size_t i = 0; i < COUNT(states); i++) {
        OWNED char *set = str_format(
            "UPDATE authorizations SET state = '%s', next_look = now() - interval '1 s', dead_after = 9000000000",
            states[i]);
        sql_run(pg, set);
        sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:2', 10)", "0");
        sql_is(pg, "SELECT concat_ws(' ', state, dead_after) FROM authorizations_look('eip155:1', 10)",
               i == 0   ? "held 9000000000"
               : i == 1 ? "due 9000000000"
               : i == 2 ? "sent 9000000000"
                        : "released 9000000000");
        sql_is(pg, "SELECT bool_and(next_look > now()) FROM authorizations", "t");
    }
    ends(1, "void");
    sql_run(pg, "UPDATE authorizations SET next_look = now() - interval '1 s'");
    sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "0");
}

static void test_look_two(void **state)
{
    (void)state;
    for (int i = 1; i <= 3; i++)
        make_due(i, 120);
    sql_run(pg, "UPDATE authorizations SET next_look = now() - make_interval(secs => 10 - id)");
    PGconn *other = sql_open(scratch.server.conninfo);
    sql_run(other, "SET search_path = payonce, t; BEGIN; SELECT authorizations_look('eip155:1', 1)");
    sql_is(pg, "SELECT string_agg((nonce = b(1, 32))::text, ' ') FROM authorizations_look('eip155:1', 10)",
           "false false");
    sql_run(other, "ROLLBACK");
    sql_is(pg, "SELECT count(*) FROM authorizations_look('eip155:1', 10)", "1"); /* a crashed look loses nothing */
    PQfinish(other);
}

static void test_end(void **state)
{
    (void)state;
    static const char *const from[] = { "held", "due", "sent", "released" };
    make_due(1, 120);
    for (size_t i = 0; i < COUNT(from); i++) {
        OWNED char *set =
            str_format("UPDATE authorizations SET state = '%s', ended_at = NULL, end_note = NULL", from[i]);
        sql_run(pg, set);
        OWNED char *before = dump();
        sql_is(pg, "SELECT authorization_end(auth(1), 'settled', 'x')", "f"); /* only a proof settles */
        sql_is(pg, "SELECT authorization_end(auth(1), 'due', 'x')", "f");
        sql_is(pg, "SELECT authorization_end(999, 'void', 'x')", "f");
        same_as(before);
        ends(1, i % 2 ? "void" : "expired");
        OWNED char *ended = dump();
        sql_is(pg, "SELECT authorization_end(auth(1), 'void', 'x')", "f"); /* an end is the end */
        sql_is(pg, "SELECT authorization_end(auth(1), 'expired', 'x')", "f");
        same_as(ended);
    }
    sql_is(pg, "SELECT end_note FROM authorizations", "a note");
    sql_run(pg, "UPDATE authorizations SET state = 'sent', ended_at = NULL");
    settles(1, 1, 0);
    sql_is(pg, "SELECT authorization_end(auth(1), 'void', 'x')", "f");
    state_is(1, "settled");
    make_due(2, 120);
    make_due(3, 120);
    sql_run(pg, "SELECT authorizations_end(json_build_array(json_build_object('id', auth(3), 'state', 'void', 'note', 'elsewhere'),"
                " json_build_object('id', auth(1), 'state', 'void', 'note', 'x'), json_build_object('id', auth(2), 'state', 'expired',"
                " 'note', 'late', 'dead_after', 9999999999))::text, '" BY_SETTLER "')");
    state_is(1, "settled");
    state_is(2, "expired");
    state_is(3, "void");
    sql_is(pg, "SELECT string_agg(end_note, ' ' ORDER BY id) FROM authorizations WHERE id IN (auth(2), auth(3))", "late elsewhere");
}

static void test_networks(void **state)
{
    (void)state;
    sql_is(pg, "SELECT concat_ws(' ', replaced, final) FROM network_pin('eip155:1', b(1, 32))", "f 0");
    sql_is(pg, "SELECT concat_ws(' ', replaced, final) FROM network_pin('eip155:1', b(2, 32))", "t 0");
    sql_run(pg,
            "SELECT network_seen('eip155:1', 10, b(3, 32), 100, 8, b(4, 32), 80, 5), network_seen('eip155:1', 9, b(5, "
            "32), 90, 7, b(6, 32), 70, 6)");
    sql_is(pg,
           "SELECT concat_ws(' ', head, head_hash = b(5, 32), final, final_hash = b(4, 32), final_time, gas_balance) "
           "FROM networks "
           "WHERE id = 'eip155:1'",
           "9 t 8 t 80 6"); /* what is final does not go back */
    struct ask a = ask();
    accept_is(&a, "accepted", 1, 1);
    sql_is(pg, "SELECT from_block FROM authorizations", "9");

    static const char finality[] = "SELECT finality_s FROM networks_finality() WHERE id = 'eip155:1'";
    sql_is(pg, finality, "20");
    sql_run(pg, "SELECT network_seen('eip155:1', 11, b(7, 32), 1300, 8, b(4, 32), 80, 5)");
    sql_is(pg, finality, "1220");
    sql_run(pg, "SELECT network_seen('eip155:1', 12, b(8, 32), 1302, 11, b(7, 32), 1300, 5)");
    sql_is(pg, finality, "1218");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lease),         TEST(test_claim),
        TEST(test_claim_alone),   TEST(test_claim_only_due),
        TEST(test_claim_two),     TEST(test_store),
        TEST(test_store_refused), TEST(test_broadcast),
        TEST(test_proofs),        TEST(test_one_log_one_proof),
        TEST(test_proof_of_any),  TEST(test_look),
        TEST(test_look_any),      TEST(test_look_two),
        TEST(test_end),           TEST(test_networks),
        TEST(test_gap),           TEST(test_capped),
        TEST(test_carried),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
