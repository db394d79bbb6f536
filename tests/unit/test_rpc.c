#include "test.h"

#include <inttypes.h>

#include "base/json.h"
#include "chain/chain.h"
#include "fake_server.h"

enum { CHAIN = 84532, TIMEOUT_MS = 1600 };

enum fault {
    SOUND,
    REVERSED,
    WRONG_ID,
    TEXT_ID,
    MISSING,
    TWICE,
    HTML,
    NOT_JSON,
    EMPTY,
    BIG_NUMBER, /* in a field that nobody needs; a JSON reader's integers have 64 bits (M03) */
    STATUS_500,
    STATUS_429,
    STATUS_404,
    CUT,
    SILENT,
    OTHER_CHAIN,
    LIMIT,
    RATE,
    INTERNAL,
    REFUSED,
    REVERT,
    REVERT_400,
    NO_RESULT,
    NULL_RESULT,
    ERROR_NULL,
};

struct node {
    enum fault fault;
    unsigned chain_asked, items;
    const char *block; /* what eth_blockNumber says: tells the nodes apart */
};

struct lab {
    struct loop *loop;
    struct fetcher *fetcher;
    struct fake *server[2];
    struct node node[2];
    struct rpc *rpc;
};

static json_t *error_of(int64_t code, const char *message, const char *data)
{
    return data ? json_pack("{s:I,s:s,s:s}", "code", (json_int_t)code, "message", message, "data", data)
                : json_pack("{s:I,s:s}", "code", (json_int_t)code, "message", message);
}

static json_t *item_answer(struct node *node, const json_t *rq)
{
    const char *method = json_str(rq, "method");
    bool chain = strcmp(method, "eth_chainId") == 0;
    json_t *reply = json_pack("{s:s,s:O}", "jsonrpc", "2.0", "id", json_object_get(rq, "id"));
    node->chain_asked += chain;
    node->items++;
    if (chain && node->fault == OTHER_CHAIN)
        json_object_set_new(reply, "result", json_string("0x1"));
    else if (chain)
        json_object_set_new(reply, "result", json_string("0x14a34"));
    else if (node->fault == LIMIT)
        json_object_set_new(reply, "error", error_of(-32005, "limit exceeded", NULL));
    else if (node->fault == RATE)
        json_object_set_new(reply, "error", error_of(-32016, "over rate limit", NULL));
    else if (node->fault == INTERNAL)
        json_object_set_new(reply, "error", error_of(-32603, "internal error", NULL));
    else if (node->fault == REVERT || node->fault == REVERT_400)
        json_object_set_new(reply, "error", error_of(3, "execution reverted: no", "0x08c379a0"));
    else if (node->fault == NULL_RESULT)
        json_object_set_new(reply, "result", json_null());
    else if (node->fault != NO_RESULT)
        json_object_set_new(reply, "result", json_string(node->block));
    if (node->fault == ERROR_NULL)
        json_object_set_new(reply, "error", json_null());
    return reply;
}

static json_t *sound_reply(struct node *node, const json_t *rq)
{
    if (json_is_object(rq))
        return item_answer(node, rq);
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(rq); i++)
        json_array_append_new(all, item_answer(node, json_array_get(rq, i)));
    return all;
}

static void spoil(enum fault fault, json_t *all)
{
    json_t *first = json_is_array(all) ? json_array_get(all, 0) : all;
    json_int_t id = json_integer_value(json_object_get(first, "id"));
    OWNED char *text = str_format("%" PRId64, (int64_t)id);
    if (fault == WRONG_ID)
        json_object_set_new(first, "id",
                            json_integer(id + (json_is_array(all) ? (json_int_t)json_array_size(all) : 1)));
    if (fault == TEXT_ID)
        json_object_set_new(first, "id", json_string(text));
    if (fault == MISSING)
        json_array_remove(all, 0);
    if (fault == TWICE)
        json_array_set(all, json_array_size(all) - 1, first);
    if (fault == REVERSED)
        for (size_t i = 1; i < json_array_size(all); i++) {
            json_t *item = json_incref(json_array_get(all, i));
            json_array_remove(all, i);
            json_array_insert_new(all, 0, item);
        }
}

static void reply_with_big_number(struct buf *reply, const char *text)
{
    const int brackets = *text == '[' ? 2 : 1;
    OWNED char *big = str_format("%.*s\"size\":18446744073709551616,%s", brackets, text, text + brackets);
    fake_reply(reply, 200, "application/json", slice_of(big));
}

static enum fake_then serve(void *arg, struct slice request, struct buf *reply)
{
    struct node *node = arg;
    struct json_why why;
    const char *body = strstr(request.p, "\r\n\r\n") + 4;
    JSON *rq = json_read(body, request.n - (size_t)(body - request.p), &why);
    assert_non_null(rq);
    JSON *all = sound_reply(node, rq);
    spoil(node->fault, all);
    OWNED char *text = json_write(all);
    struct slice sound = slice_of(text);
    if (node->fault == SILENT)
        return FAKE_HANG;
    if (node->fault == HTML)
        fake_reply(reply, 200, "text/html", SLICE("<html>sign in</html>"));
    else if (node->fault == NOT_JSON)
        fake_reply(reply, 200, "application/json", (struct slice){ text, sound.n - 1 });
    else if (node->fault == BIG_NUMBER)
        reply_with_big_number(reply, text);
    else if (node->fault == EMPTY)
        fake_reply(reply, 200, "application/json", SLICE(""));
    else if (node->fault == STATUS_500 || node->fault == STATUS_429 || node->fault == STATUS_404)
        fake_reply(reply,
                   node->fault == STATUS_500   ? 500
                   : node->fault == STATUS_429 ? 429
                                               : 404,
                   "application/json", sound);
    else if (node->fault == REVERT_400)
        fake_reply(reply, 400, "application/json", sound);
    else if (node->fault == REFUSED)
        fake_reply(
            reply, 200, "application/json",
            SLICE("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"batch too large\"}}"));
    else if (node->fault == CUT)
        buf_printf(reply, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n%s", text);
    else
        fake_reply(reply, 200, "application/json", sound);
    return node->fault == CUT ? FAKE_CLOSE : FAKE_KEEP;
}

static int begin(void **state)
{
    struct lab *lab = mem_new(sizeof *lab);
    lab->loop = loop_new();
    lab->fetcher = fetcher_new(lab->loop);
    char url[2][100];
    for (size_t i = 0; i < 2; i++) {
        lab->node[i].block = i ? "0xb" : "0xa";
        lab->server[i] = fake_new(lab->loop, serve, &lab->node[i]);
        snprintf(url[i], sizeof url[i], "http://us%%40er:pass@127.0.0.1:%u/v3/secretkey?token=secret",
                 lab->server[i]->port);
    }
    lab->rpc = rpc_new(lab->fetcher, lab->loop, CHAIN, (const char *const[]){ url[0], url[1] }, 2, TIMEOUT_MS);
    *state = lab;
    return 0;
}

static int end(void **state)
{
    struct lab *lab = *state;
    rpc_free(lab->rpc);
    fetcher_free(lab->fetcher);
    fake_free(lab->server[0]);
    fake_free(lab->server[1]);
    loop_free(lab->loop);
    free(lab);
    return 0;
}

static struct rpc_answers ask(struct lab *lab, size_t n)
{
    struct rpc_item items[3];
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rpc_item){ "eth_blockNumber", NULL };
    return rpc_wait(lab->rpc, items, n);
}

#define ANSWERS SCOPE(rpc_answers_done) struct rpc_answers

static void assert_block(const struct rpc_answers *a, size_t n, size_t endpoint)
{
    assert_int_equal(a->n, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t block;
        assert_int_equal(a->a[i].rc, RPC_OK);
        assert_true(rpc_read_u64(a->a[i].result, &block));
        assert_int_equal(block, 10 + endpoint);
        assert_int_equal(a->a[i].endpoint, endpoint);
    }
}

/* From here on the first endpoint's chain is known, and one call is not a batch. */
static void ask_first(struct lab *lab)
{
    ANSWERS a = ask(lab, 1);
    assert_block(&a, 1, 0);
}

static void chain_id_is_asked_once_a_minute(void **state)
{
    struct lab *lab = *state;
    for (int i = 0; i < 3; i++)
        ask_first(lab);
    ANSWERS b = ask(lab, 3);
    assert_block(&b, 3, 0);
    assert_int_equal(lab->node[0].chain_asked, 1);
    assert_int_equal(lab->node[0].items, 7);
    assert_int_equal(lab->server[0]->requests, 4);
    assert_int_equal(lab->server[0]->connections, 1);
    assert_int_equal(lab->server[1]->requests, 0);
}

static void order_of_answers_does_not_matter(void **state)
{
    struct lab *lab = *state;
    lab->node[0].fault = REVERSED;
    ANSWERS a = ask(lab, 3);
    assert_block(&a, 3, 0);
    lab->node[0].fault = ERROR_NULL;
    ANSWERS b = ask(lab, 2);
    assert_block(&b, 2, 0);
}

/* Some providers say "range too large" by HTTP as well: it is that request's fault, and the endpoint is sound. */
static void a_no_may_come_by_http_too(void **state)
{
    struct lab *lab = *state;
    struct rpc_stats s[2];
    for (size_t n = 1; n <= 3; n += 2) {
        lab->node[0].fault = REVERT_400;
        ANSWERS a = ask(lab, n);
        assert_int_equal(a.a[0].rc, RPC_ERROR);
        assert_int_equal(a.a[0].code, 3);
        assert_int_equal(rpc_stats(lab->rpc, s, 2), 2);
        assert_false(s[0].set_aside);
    }
}

/* Every fault of the first endpoint: the second answers, the first is counted and set aside. */
static void faults_lead_to_the_next_endpoint(void **state)
{
    static const enum fault faults[] = { WRONG_ID, TEXT_ID,    MISSING,    TWICE,      HTML,      NOT_JSON,
                                         EMPTY,    STATUS_500, STATUS_429, STATUS_404, CUT,       OTHER_CHAIN,
                                         LIMIT,    RATE,       INTERNAL,   REFUSED,    NO_RESULT, SILENT,
                                         BIG_NUMBER };
    static const enum rpc_fault kinds[] = {
        [WRONG_ID] = RPC_MISMATCH, [TEXT_ID] = RPC_MISMATCH, [MISSING] = RPC_MISMATCH, [TWICE] = RPC_MISMATCH, [NO_RESULT] = RPC_MISMATCH,
        [HTML] = RPC_NOT_JSON, [NOT_JSON] = RPC_NOT_JSON, [EMPTY] = RPC_NOT_JSON, [BIG_NUMBER] = RPC_NOT_JSON, [STATUS_500] = RPC_HTTP_5XX,
        [STATUS_429] = RPC_RATE_LIMIT, [STATUS_404] = RPC_HTTP_STATUS, [CUT] = RPC_CUT, [SILENT] = RPC_CUT, [OTHER_CHAIN] = RPC_OTHER_CHAIN,
        [LIMIT] = RPC_LIMIT, [RATE] = RPC_LIMIT, [INTERNAL] = RPC_LIMIT, [REFUSED] = RPC_REFUSED,
    };
    for (size_t i = 0; i < COUNT(faults); i++)
        for (size_t n = 1; n <= 3; n += 2) {
            end(state);
            begin(state);
            struct lab *lab = *state;
            struct rpc_stats s[2];
            enum fault f = faults[i];
            bool limited = f == LIMIT || f == RATE || f == INTERNAL;
            lab->node[0].fault = f;
            ANSWERS a = ask(lab, n);
            assert_block(&a, n, 1);
            assert_int_equal(rpc_stats(lab->rpc, s, 2), 2);
            for (size_t k = 0; k < RPC_FAULTS; k++)
                assert_int_equal(s[0].faults[k], k == kinds[f]);
            assert_int_equal(s[0].set_aside, !limited);
            assert_non_null(s[0].trouble);
            ANSWERS b = ask(lab, n);
            assert_block(&b, n, 1);
            assert_int_equal(lab->server[0]->requests, limited ? 2 : 1);
        }
}

/* What shows only beside others: counted, and the next is asked instead. */
static void the_blamed_are_set_aside(void **state)
{
    struct lab *lab = *state;
    struct rpc_stats s[2];
    rpc_blame(lab->rpc, 0, RPC_BEHIND);
    ANSWERS a = ask(lab, 1);
    assert_block(&a, 1, 1);
    assert_int_equal(rpc_stats(lab->rpc, s, 2), 2);
    assert_true(s[0].set_aside);
    assert_int_equal(s[0].faults[RPC_BEHIND], 1);
    assert_string_equal(rpc_fault_word(RPC_BEHIND), "behind");
}

/* The same without the chain id in the batch. */
static void faults_after_the_first_call(void **state)
{
    static const struct {
        enum fault fault;
        size_t n;
    } cases[] = { { WRONG_ID, 1 }, { TEXT_ID, 1 }, { NO_RESULT, 1 }, { HTML, 1 },
                  { WRONG_ID, 3 }, { MISSING, 3 }, { TWICE, 3 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        end(state);
        begin(state);
        struct lab *lab = *state;
        ask_first(lab);
        lab->node[0].fault = cases[i].fault;
        ANSWERS a = ask(lab, cases[i].n);
        assert_block(&a, cases[i].n, 1);
    }
}

static void errors_and_null_are_answers(void **state)
{
    struct lab *lab = *state;
    lab->node[0].fault = REVERT;
    ANSWERS a = ask(lab, 2);
    assert_int_equal(a.a[1].rc, RPC_ERROR);
    assert_int_equal(a.a[1].code, 3);
    assert_string_equal(a.a[1].message, "execution reverted: no");
    assert_string_equal(a.a[1].data, "0x08c379a0");
    lab->node[0].fault = NULL_RESULT;
    struct rpc_item receipt = { "eth_getTransactionReceipt", NULL };
    ANSWERS b = rpc_wait(lab->rpc, &receipt, 1);
    assert_int_equal(b.a[0].rc, RPC_OK);
    assert_true(json_is_null(b.a[0].result));
    assert_int_equal(lab->server[1]->requests, 0);
    ANSWERS c = ask(lab, 1); /* there is always a newest block: null is junk, and the next endpoint is asked */
    assert_block(&c, 1, 1);
}

static void internal_error_of_a_broadcast_is_an_answer(void **state)
{
    struct lab *lab = *state;
    lab->node[0].fault = INTERNAL;
    struct rpc_item item = { "eth_sendRawTransaction", json_pack("[s]", "0x02") };
    ANSWERS a = rpc_wait(lab->rpc, &item, 1);
    assert_int_equal(a.a[0].rc, RPC_ERROR);
    assert_int_equal(a.a[0].code, -32603);
}

/* Set aside, both are still asked: nothing is refused unasked. */
static void all_down_is_unavailable_and_asked_again(void **state)
{
    struct lab *lab = *state;
    lab->node[0].fault = lab->node[1].fault = STATUS_500;
    ANSWERS a = ask(lab, 2);
    assert_int_equal(a.n, 2);
    assert_int_equal(a.a[1].rc, RPC_UNAVAILABLE);
    assert_string_equal(a.a[1].message, "HTTP 5xx");
    lab->node[1].fault = SOUND;
    ANSWERS b = ask(lab, 1);
    assert_block(&b, 1, 1);
    struct rpc_stats s[2];
    assert_int_equal(rpc_stats(lab->rpc, s, 2), 2);
    assert_true(s[0].set_aside);
    assert_false(s[1].set_aside);
}

static void deadline_is_kept(void **state)
{
    struct lab *lab = *state;
    lab->node[0].fault = lab->node[1].fault = SILENT;
    int64_t start = clock_mono_ms();
    ANSWERS a = ask(lab, 1);
    assert_int_equal(a.a[0].rc, RPC_UNAVAILABLE);
    assert_in_range((uint64_t)(clock_mono_ms() - start), TIMEOUT_MS, TIMEOUT_MS + 1500);
    assert_int_equal(lab->server[0]->requests, 1);
    assert_int_equal(lab->server[1]->requests, 1);
}

static void everywhere_asks_all(void **state)
{
    struct lab *lab = *state;
    ANSWERS a = rpc_wait_everywhere(lab->rpc, (struct rpc_item){ "eth_sendRawTransaction", json_pack("[s]", "0x02") });
    assert_int_equal(a.n, 2);
    assert_string_equal(json_string_value(a.a[0].result), "0xa");
    assert_string_equal(json_string_value(a.a[1].result), "0xb");
    lab->node[0].fault = OTHER_CHAIN;
    lab->node[1].fault = REVERT;
    ANSWERS b = rpc_wait_everywhere(lab->rpc, (struct rpc_item){ "eth_sendRawTransaction", json_pack("[s]", "0x02") });
    assert_int_equal(b.a[0].rc, RPC_OK); /* its chain was seen within the minute */
    assert_int_equal(b.a[1].rc, RPC_ERROR);
    lab->node[0].fault = STATUS_500;
    ANSWERS c = rpc_wait_everywhere(lab->rpc, (struct rpc_item){ "eth_sendRawTransaction", json_pack("[s]", "0x02") });
    assert_int_equal(c.a[0].rc, RPC_UNAVAILABLE);
    assert_int_equal(c.a[1].rc, RPC_ERROR);
}

static void stats_show_no_secret(void **state)
{
    struct lab *lab = *state;
    struct rpc_stats s[2];
    OWNED char *want = str_format("http://127.0.0.1:%u", lab->server[0]->port);
    ask_first(lab);
    assert_int_equal(rpc_stats(lab->rpc, s, 1), 1);
    assert_string_equal(s[0].url, want);
    assert_int_equal(s[0].calls, 1);
    assert_int_equal(s[0].requests, 1);
    assert_null(s[0].trouble);
}

static void count_unavailable(void *arg, const struct rpc_answer *answers, size_t n)
{
    unsigned *count = arg;
    assert_int_equal(n, 1);
    assert_int_equal(answers[0].rc, RPC_UNAVAILABLE);
    (*count)++;
}

static void free_ends_what_is_under_way(void **state)
{
    struct lab *lab = *state;
    unsigned count = 0;
    struct rpc_item item = { "eth_blockNumber", NULL };
    lab->node[0].fault = SILENT;
    rpc_start(lab->rpc, &item, 1, count_unavailable, &count);
    rpc_start(lab->rpc, &item, 1, count_unavailable, &count);
    while (lab->server[0]->requests < 2)
        loop_turn(lab->loop, 50);
    assert_int_equal(count, 0);
    rpc_free(lab->rpc);
    lab->rpc = NULL;
    assert_int_equal(count, 2);
}

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        uint64_t v;
    } cases[] = {
        { "0x0", true, 0 },
        { "0x1f", true, 31 },
        { "0xffffffffffffffff", true, UINT64_MAX },
        { "0x001", true, 1 },
        { "0x10000000000000000", false, 0 },
        { "0x", false, 0 },
        { "", false, 0 },
        { "12", false, 0 },
        { "0xg", false, 0 },
        { "-0x1", false, 0 },
        { "0x 1", false, 0 },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        JSON *j = json_string(cases[i].text);
        uint64_t v = 7;
        assert_int_equal(rpc_read_u64(j, &v), cases[i].good);
        assert_int_equal(v, cases[i].good ? cases[i].v : 7);
    }
    JSON *number = json_integer(5),
         *max = json_string("0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff");
    struct amount a;
    uint64_t v;
    size_t n;
    assert_false(rpc_read_u64(number, &v));
    assert_false(rpc_read_u64(NULL, &v));
    assert_true(rpc_read_amount(max, &a));
    JSON *data = json_string("0x00ff10"), *odd = json_string("0x123"), *none = json_string("0x");
    OWNED uint8_t *bytes = rpc_read_data(data, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(bytes, "\x00\xff\x10", 3);
    assert_null(rpc_read_data(odd, &n));
    OWNED uint8_t *empty = rpc_read_data(none, &n);
    assert_non_null(empty);
    assert_int_equal(n, 0);
    JSON *u = rpc_u64(UINT64_MAX), *h = rpc_hex("\x01\xab", 2);
    assert_string_equal(json_string_value(u), "0xffffffffffffffff");
    assert_string_equal(json_string_value(h), "0x01ab");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(chain_id_is_asked_once_a_minute),
        TEST(order_of_answers_does_not_matter),
        TEST(faults_lead_to_the_next_endpoint),
        TEST(a_no_may_come_by_http_too),
        TEST(the_blamed_are_set_aside),
        TEST(faults_after_the_first_call),
        TEST(errors_and_null_are_answers),
        TEST(internal_error_of_a_broadcast_is_an_answer),
        TEST(all_down_is_unavailable_and_asked_again),
        TEST(deadline_is_kept),
        TEST(everywhere_asks_all),
        TEST(stats_show_no_secret),
        TEST(free_ends_what_is_under_way),
        cmocka_unit_test(values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
