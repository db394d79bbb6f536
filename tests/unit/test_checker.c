#include "test.h"

#include <inttypes.h>

#include "base/json.h"
#include "chain/chain.h"
#include "fake_server.h"

/* A node with one token and a Multicall3, small enough to be read: accounts are told apart by their last byte. */
enum { CHAIN = 84532, ACCOUNTS = 256, BLOCK = 77, TIME = 1700000000 };

struct account {
    uint64_t balance;
    bool has_code, used, refuses; /* refuses: its code says no to every signature */
};

struct world {
    struct account account[ACCOUNTS];
    bool no_multicall, no_init_code, no_token, burns_gas, silent;
    unsigned shared, lone, plain, most; /* calls, and the most questions in one */
};

struct lab {
    struct loop *loop;
    struct fetcher *fetcher;
    struct fake *server;
    struct rpc *rpc;
    struct checker *checker;
    struct world world;
    struct token token;
};

static uint64_t word_at(const uint8_t *p, size_t at)
{
    uint64_t v = 0;
    for (size_t i = 24; i < 32; i++)
        v = v << 8 | p[at + i];
    return v;
}

static void add_word(struct buf *b, uint64_t v)
{
    uint8_t w[32] = { 0 };
    for (size_t i = 0; i < 8; i++)
        w[31 - i] = (uint8_t)(v >> (8 * i));
    buf_add(b, w, sizeof w);
}

static bool reverts(struct buf *ret, const char *why)
{
    static const char padding[32];
    buf_add(ret, "\x08\xc3\x79\xa0", 4);
    add_word(ret, 32);
    add_word(ret, strlen(why));
    buf_puts(ret, why);
    buf_add(ret, padding, 31 - (strlen(why) + 31) % 32);
    return false;
}

static bool token_call(struct world *w, const uint8_t *p, struct buf *ret)
{
    struct account *a = &w->account[p[35]];
    if (memcmp(p, "\xe9\x4a\x01\x02", 4) == 0) {
        if (w->no_token)
            return reverts(ret, "what");
        add_word(ret, a->used);
        return true;
    }
    if (memcmp(p, "\x70\xa0\x82\x31", 4) == 0) {
        add_word(ret, a->balance);
        return true;
    }
    assert_memory_equal(p, "\xe3\xee\x16\x0e", 4);
    uint64_t value = word_at(p, 4 + 64);
    if (a->used)
        return reverts(ret, "FiatTokenV2: authorization is used or canceled");
    if (a->refuses)
        return reverts(ret, "FiatTokenV2: invalid signature");
    if (a->balance < value)
        return reverts(ret, "ERC20: transfer amount exceeds balance");
    a->used = true;
    a->balance -= value;
    w->account[p[67]].balance += value;
    return true;
}

/* aggregate3: the calls one after the other, on a state that is dropped afterwards. */
static bool multicall(struct world *w, const uint8_t *p, struct buf *ret)
{
    struct world after = *w;
    const uint8_t *list = p + 4 + 32;
    uint64_t n = word_at(list, 0), questions = (n - 2) / 3;
    BUF tuples = { 0 }, offsets = { 0 };
    *(questions > 1 ? &w->shared : &w->lone) += 1;
    if (questions > w->most)
        w->most = (unsigned)questions;
    for (size_t i = 0; i < n; i++) {
        BUF out = { 0 };
        const uint8_t *tuple = list + 32 + word_at(list, 32 + 32 * i);
        const uint8_t *data = tuple + word_at(tuple, 64) + 32;
        bool ok = true;
        if (memcmp(data, "\x42\xcb\xb1\x5c", 4) == 0)
            add_word(&out, BLOCK);
        else if (memcmp(data, "\x0f\x28\xc9\x7d", 4) == 0)
            add_word(&out, TIME);
        else if (w->burns_gas && after.account[data[35]].has_code && questions > 1)
            return false;
        else
            ok = token_call(&after, data, &out);
        add_word(&offsets, 32 * n + tuples.n);
        add_word(&tuples, ok);
        add_word(&tuples, 64);
        add_word(&tuples, out.n);
        buf_add(&tuples, out.p, out.n);
        static const char padding[32];
        buf_add(&tuples, padding, 31 - (out.n + 31) % 32);
    }
    add_word(ret, 32);
    add_word(ret, n);
    buf_add(ret, offsets.p, offsets.n);
    buf_add(ret, tuples.p, tuples.n);
    return true;
}

static bool call(struct world *w, const json_t *tx, struct buf *ret)
{
    struct address to;
    size_t n;
    OWNED uint8_t *data = rpc_read_data(json_object_get(tx, "data"), &n);
    if (!json_object_get(tx, "to")) {
        for (size_t at = 35; at < n; at += 32)
            add_word(ret, w->account[data[at + 31]].has_code ? 23 : 0);
        return !w->no_init_code;
    }
    assert_true(rpc_read_address(json_object_get(tx, "to"), &to));
    if (address_eq(&to, &multicall3_address))
        return w->no_multicall || multicall(w, data, ret);
    struct world after = *w;
    w->plain++;
    return token_call(&after, data, ret);
}

static json_t *error_of(const struct buf *revert)
{
    if (revert->n == 0)
        return json_pack("{s:i,s:s}", "code", -32603, "message", "EVM error OutOfGas");
    return json_pack("{s:i,s:s,s:o}", "code", 3, "message", "execution reverted", "data",
                     rpc_hex(revert->p, revert->n));
}

static json_t *item_answer(struct world *w, const json_t *rq)
{
    const char *method = json_str(rq, "method");
    const json_t *first = json_array_get(json_object_get(rq, "params"), 0);
    json_t *reply = json_pack("{s:O}", "id", json_object_get(rq, "id"));
    struct address who;
    BUF out = { 0 };
    if (!strcmp(method, "eth_chainId"))
        json_object_set_new(reply, "result", json_string("0x14a34"));
    else if (!strcmp(method, "eth_getBlockByNumber"))
        json_object_set_new(reply, "result",
                            json_pack("{s:o,s:o,s:o,s:o}", "number", rpc_u64(BLOCK), "timestamp", rpc_u64(TIME), "hash",
                                      rpc_hex(topic_transfer.b, 32), "parentHash", rpc_hex(topic_transfer.b, 32)));
    else if (!strcmp(method, "eth_getCode") && rpc_read_address(first, &who))
        json_object_set_new(reply, "result", json_string(w->account[who.b[19]].has_code ? "0xef" : "0x"));
    else if (call(w, first, &out))
        json_object_set_new(reply, "result", rpc_hex(out.p, out.n));
    else
        json_object_set_new(reply, "error", error_of(&out));
    return reply;
}

static enum fake_then serve(void *arg, struct slice request, struct buf *reply)
{
    struct world *w = arg;
    struct json_why why;
    const char *body = strstr(request.p, "\r\n\r\n") + 4;
    JSON *rq = json_read(body, request.n - (size_t)(body - request.p), &why);
    if (w->silent)
        return FAKE_HANG;
    JSON *all = json_is_array(rq) ? json_array() : item_answer(w, rq);
    for (size_t i = 0; i < json_array_size(rq); i++)
        json_array_append_new(all, item_answer(w, json_array_get(rq, i)));
    OWNED char *text = json_write(all);
    fake_reply(reply, 200, "application/json", slice_of(text));
    return FAKE_KEEP;
}

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
        assert_int_equal(lab->world.lone, 2);
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
        TEST(payers_with_code_are_read_alone),
        TEST(without_multicall_call_by_call),
        TEST(what_cannot_be_read_is_not_known),
        TEST(free_ends_all_questions),
        TEST(code_of_many),
        TEST(waiting_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
