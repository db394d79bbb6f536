#include "test.h"

#include <limits.h>

#include "fake_token.h"

struct lab {
    struct loop *loop;
    struct fetcher *fetcher;
    struct fake *server;
    struct rpc *rpc;
    struct checker *checker;
    struct world world;
    struct token token;
};

static int begin(void **state)
{
    struct lab *lab = mem_new(sizeof *lab);
    lab->loop = loop_new();
    lab->fetcher = fetcher_new(lab->loop);
    lab->server = fake_new(lab->loop, serve, &lab->world);
    lab->rpc = rpc_new(lab->fetcher, lab->loop, CHAIN, (const char *const[]){ lab->server->url }, 1, 1600);
    lab->checker = checker_new(lab->loop, lab->rpc);
    lab->token = *token_built_in(CHAIN, 0);
    for (size_t i = 0; i < ACCOUNTS; i++)
        lab->world.account[i].balance = 1000;
    *state = lab;
    return 0;
}

static int end(void **state)
{
    struct lab *lab = *state;
    checker_free(lab->checker);
    rpc_free(lab->rpc);
    fetcher_free(lab->fetcher);
    fake_free(lab->server);
    loop_free(lab->loop);
    free(lab);
    return 0;
}

struct result {
    bool done;
    unsigned times;
    struct auth_facts facts;
};

static void note(void *arg, const struct auth_facts *facts)
{
    struct result *r = arg;
    r->facts = *facts;
    r->done = true;
    r->times++;
}

static void ask(struct lab *lab, uint8_t payer, uint8_t payee, uint64_t value, struct result *r)
{
    struct authorization a = { .value = amount_of(value), .valid_before = amount_of(TIME + 60), .signature_n = 65 };
    a.from.b[19] = payer;
    a.to.b[19] = payee;
    *r = (struct result){ .done = false };
    checker_start(lab->checker, &lab->token, &a, note, r);
    assert_false(r->done);
}

static void wait_all(struct lab *lab, struct result *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(turn_until(lab->loop, &r[i].done));
        assert_int_equal(r[i].times, 1);
    }
}

static void assert_yes(const struct auth_facts *f)
{
    assert_true(f->known && f->transfer_ok && f->balance_known && !f->nonce_used);
    assert_int_equal(f->why, REVERT_NONE);
    assert_int_equal(f->block, BLOCK);
    assert_int_equal(f->block_time, TIME);
}

static void assert_no(const struct auth_facts *f, enum revert why)
{
    assert_true(f->known && !f->transfer_ok);
    assert_int_equal(f->why, why);
    assert_int_equal(f->block, BLOCK);
}

static void many_share_one_call(void **state)
{
    struct lab *lab = *state;
    struct result r[64];
    for (size_t i = 0; i < 64; i++)
        ask(lab, (uint8_t)(i + 1), 200, 1000, &r[i]);
    wait_all(lab, r, 64);
    for (size_t i = 0; i < 64; i++) {
        assert_yes(&r[i].facts);
        assert_string_equal(amount_text(r[i].facts.balance).s, "1000");
    }
    assert_int_equal(lab->server->requests, 1);
    assert_int_equal(lab->world.most, 64);
    assert_int_equal(lab->world.lone, 0);
}

static void a_flood_goes_in_parts(void **state)
{
    struct lab *lab = *state;
    struct result r[250];
    for (size_t i = 0; i < 250; i++)
        ask(lab, (uint8_t)i, 251, 1, &r[i]);
    wait_all(lab, r, 250);
    assert_int_equal(lab->world.most, 100);
    assert_int_equal(lab->world.shared, 3);
}

static void one_is_asked_alone(void **state)
{
    struct lab *lab = *state;
    struct result r;
    lab->world.account[1].has_code = true;
    ask(lab, 1, 2, 1000, &r);
    wait_all(lab, &r, 1);
    assert_yes(&r.facts);
    assert_true(r.facts.has_code);
    assert_int_equal(lab->world.lone, 1);
    lab->world.account[1].used = true;
    ask(lab, 1, 2, 1000, &r);
    wait_all(lab, &r, 1);
    assert_no(&r.facts, REVERT_USED);
    assert_true(r.facts.nonce_used);
}

/* Two payments from one balance: together the second fails, alone both are good. */
static void a_no_by_sharing_is_not_given(void **state)
{
    struct lab *lab = *state;
    struct result r[3];
    for (size_t i = 0; i < 2; i++)
        ask(lab, 1, 9, 600, &r[i]);
    ask(lab, 2, 9, 1001, &r[2]);
    wait_all(lab, r, 3);
    assert_yes(&r[0].facts);
    assert_yes(&r[1].facts);
    assert_no(&r[2].facts, REVERT_BALANCE);
    assert_int_equal(lab->world.shared, 1);
    assert_int_equal(lab->world.lone, 2);
}

/* The first payment gives the second payer the money: that is not a yes. */
static void a_yes_by_sharing_is_not_given(void **state)
{
    struct lab *lab = *state;
    struct result r[2];
    lab->world.account[2].balance = 0;
    ask(lab, 1, 2, 500, &r[0]);
    ask(lab, 2, 3, 500, &r[1]);
    wait_all(lab, r, 2);
    assert_yes(&r[0].facts);
    assert_no(&r[1].facts, REVERT_BALANCE);
    assert_string_equal(amount_text(r[1].facts.balance).s, "0");
}

/* Behind a load balancer the next answer may be another node's. (D01) */
static void d01_a_no_of_a_stale_node(void **state)
{
    struct lab *lab = *state;
    struct result r[2];
    lab->world.stale = 1;
    for (uint8_t i = 0; i < 2; i++)
        ask(lab, i, 9, 10, &r[i]);
    wait_all(lab, r, 2);
    assert_yes(&r[0].facts);
    assert_yes(&r[1].facts);
    for (int plain = 0; plain < 2; plain++) {
        lab->world.no_multicall = plain;
        ask(lab, 1, 9, 10, &r[0]);
        wait_all(lab, r, 1); /* the newest block is seen */
        for (unsigned behind = 1; behind <= 2; behind++) {
            lab->world.stale = plain ? 2 * behind : behind; /* a block, then the state */
            ask(lab, 1, 9, 10, &r[0]);
            wait_all(lab, r, 1);
            if (behind == 1)
                assert_yes(&r[0].facts);
            else
                assert_false(r[0].facts.known);
        }
        lab->world.stale = 0;
        ask(lab, 1, 9, 1001, &r[0]);
        wait_all(lab, r, 1);
        assert_no(&r[0].facts, REVERT_BALANCE);
    }
}

/* An endpoint that is always behind: the other is asked, and where that one is down nothing is known to be refused. */
static void d01_another_endpoint(void **state)
{
    struct lab *lab = *state;
    struct result r;
    struct world stale = lab->world;
    stale.stale = UINT_MAX;
    struct fake *first = fake_new(lab->loop, serve, &stale);
    const char *const both[] = { first->url, lab->server->url };
    checker_free(lab->checker);
    rpc_free(lab->rpc);
    lab->rpc = rpc_new(lab->fetcher, lab->loop, CHAIN, both, 2, 1600);
    lab->checker = checker_new(lab->loop, lab->rpc);
    ask(lab, 1, 9, 10, &r);
    wait_all(lab, &r, 1);
    assert_yes(&r.facts);
    assert_int_equal(first->requests, 1);
    ask(lab, 1, 9, 1001, &r);
    wait_all(lab, &r, 1);
    assert_no(&r.facts, REVERT_BALANCE);
    lab->world.silent = true;
    ask(lab, 1, 9, 10, &r);
    wait_all(lab, &r, 1);
    assert_false(r.facts.known);
    fake_free(first);
}

static void payers_with_code_are_read_alone(void **state)
{
    struct lab *lab = *state;
    struct result r[10];
    lab->world.account[3].has_code = lab->world.account[4].has_code = true;
    lab->world.account[4].refuses = true;
    for (int burns = 0; burns < 2; burns++) {
        lab->world.burns_gas = burns;
        lab->world.shared = lab->world.lone = 0;
        for (size_t i = 0; i < 10; i++)
            ask(lab, (uint8_t)i, 99, 10, &r[i]);
        wait_all(lab, r, 10);
        for (size_t i = 0; i < 10; i++) {
            assert_int_equal(r[i].facts.has_code, i == 3 || i == 4);
            if (i != 4)
                assert_yes(&r[i].facts);
        }
        assert_no(&r[4].facts, REVERT_SIGNATURE);
        assert_int_equal(lab->world.lone, burns ? 3 : 2); /* a no is asked twice */
        assert_int_equal(lab->world.shared, burns ? 2 : 1);
    }
}

static void without_multicall_call_by_call(void **state)
{
    for (int init_code = 0; init_code < 2; init_code++) {
        end(state);
        begin(state);
        struct lab *lab = *state;
        struct result r[12];
        lab->world.no_multicall = init_code;
        lab->world.no_init_code = !init_code;
        lab->world.account[5].has_code = true;
        lab->world.account[6].used = true;
        for (size_t i = 0; i < 12; i++)
            ask(lab, (uint8_t)i, 99, 10, &r[i]);
        wait_all(lab, r, 12);
        for (size_t i = 0; i < 12; i++) {
            assert_int_equal(r[i].facts.has_code, i == 5);
            if (i != 6)
                assert_yes(&r[i].facts);
        }
        assert_no(&r[6].facts, REVERT_USED);
        assert_int_equal(lab->world.plain, 36);
        unsigned before = lab->world.shared + lab->world.lone;
        ask(lab, 1, 99, 10, &r[0]);
        wait_all(lab, r, 1);
        assert_int_equal(lab->world.shared + lab->world.lone, before);
    }
}

static void what_cannot_be_read_is_not_known(void **state)
{
    struct lab *lab = *state;
    struct result r[3];
    lab->world.no_token = true;
    for (size_t i = 0; i < 3; i++)
        ask(lab, (uint8_t)i, 99, 10, &r[i]);
    wait_all(lab, r, 3);
    assert_false(r[0].facts.known || r[1].facts.known || r[2].facts.known);
    lab->world.no_token = false;
    lab->world.silent = true;
    ask(lab, 1, 99, 10, &r[0]);
    wait_all(lab, r, 1);
    assert_false(r[0].facts.known);
}

static void free_ends_all_questions(void **state)
{
    struct lab *lab = *state;
    struct result r[150];
    lab->world.silent = true;
    for (size_t i = 0; i < 140; i++)
        ask(lab, (uint8_t)i, 150, 10, &r[i]);
    while (lab->server->requests == 0)
        loop_turn(lab->loop, 20);
    for (size_t i = 140; i < 150; i++)
        ask(lab, (uint8_t)i, 150, 10, &r[i]);
    checker_free(lab->checker);
    lab->checker = NULL;
    for (size_t i = 0; i < 150; i++) {
        assert_int_equal(r[i].times, 1);
        assert_false(r[i].facts.known);
    }
}

static void code_of_many(void **state)
{
    struct lab *lab = *state;
    struct address who[900];
    bool has_code[900];
    memset(who, 0, sizeof who);
    for (size_t i = 0; i < COUNT(who); i++)
        who[i].b[19] = (uint8_t)i;
    lab->world.account[7].has_code = true;
    assert_true(code_wait(lab->rpc, who, COUNT(who), has_code));
    for (size_t i = 0; i < COUNT(who); i++)
        assert_int_equal(has_code[i], i % 256 == 7);
    lab->world.no_init_code = true;
    assert_false(code_wait(lab->rpc, who, 1, has_code));
}

static void waiting_form(void **state)
{
    struct lab *lab = *state;
    struct authorization a = { .value = amount_of(1000), .signature_n = 65 };
    struct auth_facts f = checker_wait(lab->checker, &lab->token, &a);
    assert_yes(&f);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(many_share_one_call),
        TEST(a_flood_goes_in_parts),
        TEST(one_is_asked_alone),
        TEST(a_no_by_sharing_is_not_given),
        TEST(a_yes_by_sharing_is_not_given),
        TEST(d01_a_no_of_a_stale_node),
        TEST(d01_another_endpoint),
        TEST(payers_with_code_are_read_alone),
        TEST(without_multicall_call_by_call),
        TEST(what_cannot_be_read_is_not_known),
        TEST(free_ends_all_questions),
        TEST(code_of_many),
        TEST(waiting_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
