/* Settlements for sellers: settlement_find, settlement_accept, what each seller may read, the news of their ends, and that a
 * seller's wallet is scanned for nothing but them. */
#include "money.h"

#include <string.h>

/* What a seller's server requires, beside the payment of struct ask: asset 7 for `payee`, digest `request`. */
struct want {
    struct ask ask;
    const char *seller;
    int asked_payee;
    bool tell, unproven;
    int most;
};

static struct want want(void)
{
    struct want w = { .ask = ask(), .seller = "acme", .asked_payee = 9 };
    return w;
}

static struct want copy(int attempt)
{
    struct want w = want();
    w.ask.attempt = attempt;
    return w;
}

static int64_t deadline(const struct want *w)
{
    static int64_t began;            /* the database's time at the first call: equal asks have equal deadlines */
    if (began == 0) {
        OWNED char *now = sql_one(pg, "SELECT floor(extract(epoch FROM now()))::bigint");
        began = atoll(now);
    }
    return began + w->ask.valid_in_s;
}

static void add_asked(struct db_args *d, const struct want *w)
{
    const struct ask *a = &w->ask;
    arg_text(d, w->seller);
    args_id(d, a->request, 32);
    args_id(d, w->asked_payee, 20);
    arg_text(d, "eip155:1");
    args_id(d, 7, 20);
    args_id(d, a->payer, 20);
    args_id(d, a->nonce, 32);
    args_id(d, a->payee, 20);
    arg_text(d, a->amount);
    arg_int(d, 0);
    arg_int(d, deadline(w));
    args_id(d, a->signature, 32);
}

static void verdict_is(const struct db_rows *r, const char *verdict, int order)
{
    assert_int_equal(db_count(r), 1);
    assert_string_equal(row_text(r, 0, "verdict").p, verdict);
    assert_int_equal(id_in(r, "order_id"), order);
}

static void finds(const struct want *w, const char *verdict, int order, const char *known)
{
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    OWNED char *before = dump();
    add_asked(&d, w);
    arg_bool(&d, !w->unproven);
    arg_int(&d, w->ask.need_s);
    assert_int_equal(call(gateway, "settlement_find", &d, &r), DB_OK);
    verdict_is(r, verdict, order);
    assert_string_equal(row_text(r, 0, "known").p, known);
    same_as(before);
}

static void takes(const struct want *w, const char *verdict, int order)
{
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    args_id(&d, w->ask.attempt, 16);
    args_id(&d, w->ask.attempt, 16);
    args_id(&d, w->ask.attempt, 16);
    arg_text(&d, "x402");
    arg_int(&d, 2);
    arg_bool(&d, w->tell);
    add_asked(&d, w);
    arg_bool(&d, w->ask.has_code);
    arg_int(&d, w->ask.need_s);
    arg_bool(&d, !w->ask.unverified);
    if (w->most)
        arg_int(&d, w->most);
    else
        arg_null(&d);
    arg_text(&d, BY_GATEWAY);
    assert_int_equal(call(gateway, "settlement_accept", &d, &r), DB_OK);
    verdict_is(r, verdict, order);
}

/* ---- birth and repeats ---- */

static void test_stored_is_due(void **state)
{
    (void)state;
    struct want w = want();
    finds(&w, "new", 0, "none");
    takes(&w, "accepted", 1);
    state_is(1, "due");
    work_is(1, "none");
    sql_is(pg, "SELECT concat_ws(' ', seller, status, work, tool, amount) FROM order_status JOIN orders USING (id, work, tool, amount)",
           "acme settling none settlement 10000");
    finds(&w, "settling", 1, "all");
    sql_is(pg, "SELECT string_agg(event || ' ' || (facts->>'seller'), ',') FROM events", "accepted acme");
}

static void test_lost_reply(void **state)
{
    (void)state;
    struct want w = want();
    takes(&w, "accepted", 1);
    OWNED char *before = dump();
    takes(&w, "accepted", 1);
    same_as(before);
}

static void test_unverified_makes_no_row(void **state)
{
    (void)state;
    struct want w = want();
    w.ask.unverified = true;
    OWNED char *before = dump();
    takes(&w, "new", 0);
    same_as(before);
}

static void test_a_copy_changes_nothing(void **state)
{
    (void)state;
    struct want first = want(), second = copy(2);
    takes(&first, "accepted", 1);
    OWNED char *before = dump();
    takes(&second, "settling", 1);
    same_as(before);
    settles(1, 3, 5);
    finds(&second, "settled", 1, "all");
    takes(&second, "settled", 1);
    sql_is(pg, "SELECT status FROM order_status", "paid");
    sql_is(pg, "SELECT string_agg(class, ',') FROM transfers", "sale");
    sql_is(pg, "SELECT count(*) FROM debts", "0");
}

/* ---- what does not fit ---- */

static void test_other_requirements(void **state)
{
    (void)state;
    struct want w = want(), payee = copy(2), amount = copy(3), rival = copy(4);
    takes(&w, "accepted", 1);
    payee.ask.request = amount.ask.request = rival.ask.request = 2;
    payee.asked_payee = 8;
    rival.seller = "rival";
    OWNED char *before = dump();
    finds(&payee, "other_payee", 0, "all");
    finds(&amount, "other_amount", 0, "all");
    finds(&rival, "other", 0, "all");
    takes(&payee, "other_payee", 0);
    takes(&amount, "other_amount", 0);
    takes(&rival, "other", 0);
    rival.ask.request = 1;                       /* the very same question, of another seller */
    takes(&rival, "other", 0);
    same_as(before);
}

/* A call of our own tools and a settlement never share a nonce. */
static void test_a_paid_call_is_none(void **state)
{
    (void)state;
    struct ask a = ask();
    accept_is(&a, "accepted", 1, 1);
    struct want w = copy(2);
    w.ask.request = a.request;
    finds(&w, "other", 0, "nonce");
    takes(&w, "other", 0);
    struct want settled = copy(3);
    settled.ask.nonce = 3;
    settled.ask.request = 5;
    takes(&settled, "accepted", 3);
    struct ask bought = ask();
    bought.nonce = 3;
    bought.attempt = 4;
    accept_is(&bought, "conflict_request", 0, 0);
}

/* Where only the chain can judge a signature, another one than the stored finds nothing. */
static void test_unproven(void **state)
{
    (void)state;
    struct want w = want();
    w.unproven = true;
    takes(&w, "accepted", 1);
    finds(&w, "settling", 1, "all");
    w.ask.signature = 2;
    finds(&w, "new", 0, "none");
}

/* ---- other signatures, and ends ---- */

static void test_later_signature_is_kept(void **state)
{
    (void)state;
    struct want w = want(), later = copy(2);
    takes(&w, "accepted", 1);
    later.ask.valid_in_s = 500;
    later.ask.signature = 2;
    later.ask.unverified = true;
    finds(&later, "settling", 1, "nonce");
    takes(&later, "settling", 1);
    sql_is(pg, "SELECT dead_after - valid_before FROM authorizations", "380");
    sql_is(pg, "SELECT count(*) FROM other_signatures", "1");
    state_is(1, "due");
}

static void test_dead(void **state)
{
    (void)state;
    struct want w = want(), later = copy(2);
    takes(&w, "accepted", 1);
    ends(1, "expired");
    finds(&w, "expired", 1, "all");
    later.ask.valid_in_s = 500;
    later.ask.signature = 2;
    finds(&later, "again", 1, "nonce");
    takes(&later, "accepted", 1);
    state_is(1, "due");
    sql_is(pg, "SELECT signature = b(2, 32) AND attempt = b(2, 16) FROM authorizations", "t");
    struct want third = copy(3);
    third.ask.valid_in_s = 500;
    third.ask.signature = 2;
    finds(&third, "settling", 1, "all");
    ends(1, "void");
    finds(&third, "void", 1, "all");
    third.ask.valid_in_s = 900;
    finds(&third, "void", 1, "nonce");
}

/* ---- who may read what ---- */

static int reads(const char *sellers, int nonce)
{
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    arg_text(&d, sellers);
    arg_text(&d, "eip155:1");
    arg_text(&d, "[\"0707070707070707070707070707070707070707\", \"0101010101010101010101010101010101010101\"]");
    args_id(&d, 1, 20);
    args_id(&d, nonce, 32);
    assert_int_equal(call(gateway, "settlement_read", &d, &r), DB_OK);
    return db_count(r) ? id_in(r, "id") : 0;
}

static void test_each_sees_his_own(void **state)
{
    (void)state;
    struct want mine = want(), theirs = copy(2);
    theirs.ask.nonce = 2;
    theirs.seller = "rival";
    takes(&mine, "accepted", 1);
    takes(&theirs, "accepted", 2);
    assert_int_equal(reads("[\"acme\"]", 1), 1);
    assert_int_equal(reads("[\"acme\"]", 2), 0);
    assert_int_equal(reads("[\"acme\", \"rival\"]", 2), 2);
    assert_int_equal(reads("[]", 1), 0);
    assert_int_equal(reads("[\"acme\"]", 3), 0);
    sql_is(pg, "SELECT string_agg(seller || ' ' || today, ', ') FROM sellers_load('[\"acme\", \"rival\", \"none\"]')",
           "acme 1, rival 1, none 0");
}

/* ---- the news of their ends ---- */

static int claims(int64_t *ret_authorization, uint8_t ret_notice[16])
{
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    arg_text(&d, "[\"acme\"]");
    arg_int(&d, 10);
    arg_int(&d, 60);
    assert_int_equal(call(gateway, "notices_claim", &d, &r), DB_OK);
    if (db_count(r) == 0)
        return 0;
    *ret_authorization = row_int(r, 0, "authorization_id");
    assert_true(row_copy(r, 0, "notice", ret_notice, 16));
    return (int)row_int(r, 0, "tries");
}

static void told(int64_t authorization, const uint8_t notice[16], bool ok, int again_s)
{
    DB_ARGS d = { 0 };
    arg_int(&d, authorization);
    arg_bytes(&d, notice, 16);
    arg_bool(&d, ok);
    arg_text(&d, ok ? "HTTP 204" : "HTTP 500");
    arg_int(&d, again_s);
    assert_int_equal(call(gateway, "notice_end", &d, NULL), DB_OK);
}

static void test_news(void **state)
{
    (void)state;
    struct want w = want();
    int64_t id = 0;
    uint8_t first[16], second[16], third[16];
    w.tell = true;
    takes(&w, "accepted", 1);
    assert_int_equal(claims(&id, first), 0); /* not over */
    settles(1, 3, 5);
    assert_int_equal(claims(&id, first), 1);
    assert_int_equal(claims(&id, second), 0); /* claimed */
    told(id, first, false, 0);
    assert_int_equal(claims(&id, second), 2);
    assert_memory_equal(first, second, 16);
    told(id, second, true, 0);
    assert_int_equal(claims(&id, second), 0); /* told */
    sql_is(pg, "SELECT told_at IS NOT NULL AND last_answer = 'HTTP 204' FROM notices", "t");

    sql_run(pg, "SELECT block_undone('eip155:1', 10, b(6, 32), '" BY_SETTLER "')");
    assert_int_equal(claims(&id, third), 0);
    settles(1, 4, 5);
    assert_int_equal(claims(&id, third), 1);
    told(id, third, true, 0);
    assert_int_equal(claims(&id, second), 0);
}

/* What changed while it was being told is not told. */
static void test_old_news(void **state)
{
    (void)state;
    struct want w = want();
    int64_t id = 0;
    uint8_t first[16], second[16];
    w.tell = true;
    takes(&w, "accepted", 1);
    ends(1, "expired");
    assert_int_equal(claims(&id, first), 1);
    struct want later = copy(2);
    later.ask.valid_in_s = 500;
    later.ask.signature = 2;
    takes(&later, "accepted", 1);
    told(id, first, true, 0);
    ends(1, "void");
    assert_true(claims(&id, second) > 0);
    assert_memory_not_equal(first, second, 16);
}

/* Told that it is dead, and then its nonce is signed anew and it lands: that is news. */
static void test_news_after_the_end(void **state)
{
    (void)state;
    struct want w = want();
    int64_t id = 0;
    uint8_t first[16], second[16];
    w.tell = true;
    takes(&w, "accepted", 1);
    ends(1, "expired");
    assert_int_equal(claims(&id, first), 1);
    told(id, first, true, 0);
    struct want later = copy(2);
    later.ask.valid_in_s = 500;
    later.ask.signature = 2;
    takes(&later, "accepted", 1);
    assert_int_equal(claims(&id, second), 0);
    settles(1, 3, 5);
    assert_int_equal(claims(&id, second), 1);
    assert_memory_not_equal(first, second, 16);
}

/* One who does not listen keeps nobody else waiting. */
static void test_each_seller_his_share(void **state)
{
    (void)state;
    DB_ARGS d = { 0 };
    DB_ROWS *r = NULL;
    for (int i = 1; i <= 4; i++) {
        struct want w = want();
        w.ask.nonce = w.ask.attempt = i;
        w.seller = i < 4 ? "acme" : "rival";
        w.tell = true;
        takes(&w, "accepted", i);
        settles(i, i, 5);
    }
    arg_text(&d, "[\"acme\", \"rival\"]");
    arg_int(&d, 2);
    arg_int(&d, 60);
    assert_int_equal(call(gateway, "notices_claim", &d, &r), DB_OK);
    assert_int_equal(db_count(r), 3);
    sql_is(pg, "SELECT string_agg(o.seller, ' ' ORDER BY o.seller) FROM notices n JOIN authorizations a ON a.id = n.authorization_id"
           " JOIN orders o ON o.id = a.order_id WHERE n.tries = 1", "acme acme rival");
}

/* ---- a day's limit ---- */

static void test_limit(void **state)
{
    (void)state;
    for (int i = 1; i <= 4; i++) {
        struct want w = want();
        w.ask.nonce = w.ask.attempt = i;
        w.most = 2;
        takes(&w, i <= 2 ? "accepted" : "limit", i <= 2 ? i : 0);
    }
    struct want again = want(), other = want();
    again.most = 2;
    takes(&again, "accepted", 1);                /* what is known is no new one */
    other.ask.nonce = other.ask.attempt = 5;
    other.seller = "rival";
    other.most = 2;
    takes(&other, "accepted", 5);
    sql_run(pg, "UPDATE orders SET created_at = created_at - interval '25 hours'");
    struct want next = want();
    next.ask.nonce = next.ask.attempt = 6;
    next.most = 2;
    takes(&next, "accepted", 6);
}

/* After three days nobody is bothered any more. */
static void test_giving_up(void **state)
{
    (void)state;
    struct want w = want();
    int64_t id = 0;
    uint8_t notice[16];
    w.tell = true;
    takes(&w, "accepted", 1);
    settles(1, 3, 5);
    sql_run(pg, "UPDATE authorizations SET ended_at = now() - interval '73 hours'");
    assert_int_equal(claims(&id, notice), 1);
    told(id, notice, false, 0);
    assert_int_equal(claims(&id, notice), 0);
    sql_is(pg, "SELECT gave_up AND told_at IS NULL FROM notices", "t");
}

/* ---- a seller's wallet ---- */

static void scans(int nonce, bool ours, int log_index)
{
    OWNED char *q = str_format(
        "SELECT scan_cursor('eip155:1', b(9, 20), 5);"
        "SELECT scan_record('eip155:1', b(9, 20), (SELECT block FROM scans), (SELECT block FROM scans) + 1, b(3, 32),"
        " json_build_array(json_build_object('tx', encode(b(%d, 32), 'hex'), 'log_index', %d, 'block', 10, 'block_hash',"
        " encode(b(6, 32), 'hex'), 'block_time', 1000, 'asset', encode(b(7, 20), 'hex'), 'sender', encode(b(1, 20), 'hex'),"
        " 'receiver', encode(b(9, 20), 'hex'), 'amount', '10000', 'nonce', encode(b(%d, 32), 'hex')))::text, '" BY_SETTLER "', %s)",
        nonce + 20, log_index, nonce, ours ? "true" : "false");
    sql_run(pg, q);
}

static void test_only_what_is_known_is_booked(void **state)
{
    (void)state;
    struct want w = want();
    takes(&w, "accepted", 1);
    scans(2, false, 1);                          /* the seller's own business */
    sql_is(pg, "SELECT count(*) FROM transfers", "0");
    scans(1, false, 2);                          /* somebody else submitted ours */
    state_is(1, "settled");
    sql_is(pg, "SELECT string_agg(class, ',') FROM transfers", "sale");
    scans(3, true, 3);                           /* a wallet of ours */
    sql_is(pg, "SELECT string_agg(class, ',' ORDER BY class) FROM transfers", "sale,suspense");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_stored_is_due, money_clear),
        cmocka_unit_test_setup(test_lost_reply, money_clear),
        cmocka_unit_test_setup(test_unverified_makes_no_row, money_clear),
        cmocka_unit_test_setup(test_a_copy_changes_nothing, money_clear),
        cmocka_unit_test_setup(test_other_requirements, money_clear),
        cmocka_unit_test_setup(test_a_paid_call_is_none, money_clear),
        cmocka_unit_test_setup(test_unproven, money_clear),
        cmocka_unit_test_setup(test_later_signature_is_kept, money_clear),
        cmocka_unit_test_setup(test_dead, money_clear),
        cmocka_unit_test_setup(test_each_sees_his_own, money_clear),
        cmocka_unit_test_setup(test_news, money_clear),
        cmocka_unit_test_setup(test_old_news, money_clear),
        cmocka_unit_test_setup(test_giving_up, money_clear),
        cmocka_unit_test_setup(test_news_after_the_end, money_clear),
        cmocka_unit_test_setup(test_each_seller_his_share, money_clear),
        cmocka_unit_test_setup(test_limit, money_clear),
        cmocka_unit_test_setup(test_only_what_is_known_is_booked, money_clear),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
