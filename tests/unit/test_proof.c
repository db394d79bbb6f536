#include "test.h"

#include <string.h>

#include "base/json.h"
#include "chain/chain.h"

/* A receipt is written here as lines, one a log: address, event, topics and data in short. */
#define TOKEN "0x036cbd53842c5426634e7929541ec2318f3dcf7e"
#define OTHER "0x00000000000000000000000000000000000000aa"
#define TX "0x1111111111111111111111111111111111111111111111111111111111111111"
#define BLOCK "0x2222222222222222222222222222222222222222222222222222222222222222"
#define NONCE "0x3333333333333333333333333333333333333333333333333333333333333333"
#define NONCE_2 "0x4444444444444444444444444444444444444444444444444444444444444444"
#define PAYER "0x000000000000000000000000a000000000000000000000000000000000000001"
#define PAYEE "0x000000000000000000000000b000000000000000000000000000000000000002"
#define VALUE "0x00000000000000000000000000000000000000000000000000000000000003e8"

static json_t *log_json(uint64_t index, const char *address, json_t *topics, const char *data)
{
    return json_pack("{s:s,s:o,s:s,s:o,s:s,s:s,s:b}", "address", address, "topics", topics, "data", data, "logIndex",
                     rpc_u64(index), "transactionHash", TX, "blockHash", BLOCK, "removed", 0);
}

static json_t *topics_of(const struct hash32 *event, const char *one, const char *two)
{
    json_t *t = json_pack("[o]", rpc_hex(event->b, 32));
    if (one)
        json_array_append_new(t, json_string(one));
    if (two)
        json_array_append_new(t, json_string(two));
    return t;
}

static json_t *used(uint64_t i, const char *nonce)
{
    return log_json(i, TOKEN, topics_of(&topic_authorization_used, PAYER, nonce), "0x");
}

static json_t *transfer(uint64_t i, const char *address)
{
    return log_json(i, address, topics_of(&topic_transfer, PAYER, PAYEE), VALUE);
}

static json_t *receipt_json(json_t *logs)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o}", "status", "0x1", "blockNumber", "0x10", "transactionIndex",
                     "0x2", "gasUsed", "0x14f00", "effectiveGasPrice", "0x3b9aca00", "transactionHash", TX, "blockHash",
                     BLOCK, "logs", logs);
}

/* Looks for NONCE of PAYER; steals logs. */
static bool find(json_t *logs, struct auth_event *ret)
{
    JSON *j = receipt_json(logs);
    SCOPE(receipt_done) struct receipt r = { .found = false };
    struct address token, payer;
    struct hash32 nonce;
    assert_true(receipt_read(j, &r));
    assert_true(address_read(TOKEN, 42, &token));
    assert_true(address_read("0xa000000000000000000000000000000000000001", 42, &payer));
    assert_true(hash_read(NONCE, 66, &nonce));
    return receipt_find(&r, &token, &payer, &nonce, ret);
}

/* Looks for NONCE of PAYER in TX, by all logs of BLOCK; steals logs. */
static bool find_in_block(json_t *logs, struct auth_event *ret)
{
    JSON *j = logs;
    SCOPE(receipt_done) struct receipt r = { .found = false };
    struct address token, payer;
    struct hash32 nonce, tx, block;
    assert_true(address_read(TOKEN, 42, &token));
    assert_true(address_read("0xa000000000000000000000000000000000000001", 42, &payer));
    assert_true(hash_read(NONCE, 66, &nonce));
    assert_true(hash_read(TX, 66, &tx));
    assert_true(hash_read(BLOCK, 66, &block));
    return receipt_of_logs(j, &tx, &block, 16, &r) && receipt_find(&r, &token, &payer, &nonce, ret);
}

static json_t *elsewhere(json_t *log, const char *key)
{
    json_object_set_new(log, key, json_string(NONCE_2));
    return log;
}

static void all_logs_of_a_block_prove_like_a_receipt(void **state)
{
    (void)state;
    struct auth_event e;
    assert_true(find_in_block(json_pack("[ooooo]", elsewhere(transfer(0, TOKEN), "transactionHash"), used(1, NONCE), transfer(2, OTHER),
                                        transfer(3, TOKEN), elsewhere(transfer(4, TOKEN), "transactionHash")),
                              &e));
    assert_int_equal(e.kind, AUTH_EVENT_TRANSFER);
    assert_int_equal(e.event_index, 1);
    assert_int_equal(e.log_index, 3);
    assert_int_equal(e.block, 16);
    assert_string_equal(hash_text(&e.tx).s, TX);

    /* the Transfer of another transaction is not its own */
    assert_true(find_in_block(json_pack("[oo]", used(0, NONCE), elsewhere(transfer(1, TOKEN), "transactionHash")), &e));
    assert_int_equal(e.kind, AUTH_EVENT_NO_TRANSFER);
    /* what is left out could be the token's next log */
    assert_false(find_in_block(json_pack("[oo]", used(0, NONCE), transfer(2, TOKEN)), &e));
    assert_false(find_in_block(json_pack("[oo]", used(1, NONCE), transfer(2, TOKEN)), &e));
    assert_false(find_in_block(json_pack("[oo]", used(0, NONCE), elsewhere(transfer(1, TOKEN), "blockHash")), &e));
    assert_false(find_in_block(json_pack("[o]", elsewhere(transfer(0, TOKEN), "transactionHash")), &e));
    assert_false(find_in_block(json_array(), &e));
    assert_false(find_in_block(json_null(), &e));
}

static void the_tokens_next_log_is_the_proof(void **state)
{
    (void)state;
    struct auth_event e;
    assert_true(find(json_pack("[ooooo]", used(4, NONCE_2), transfer(5, TOKEN), used(6, NONCE), transfer(7, OTHER),
                               transfer(9, TOKEN)),
                     &e));
    assert_int_equal(e.kind, AUTH_EVENT_TRANSFER);
    assert_int_equal(e.event_index, 6);
    assert_int_equal(e.log_index, 9);
    assert_int_equal(e.block, 16);
    assert_string_equal(hash_text(&e.tx).s, TX);
    assert_string_equal(hash_text(&e.block_hash).s, BLOCK);
    assert_string_equal(address_lower(&e.from).s, "0xa000000000000000000000000000000000000001");
    assert_string_equal(address_lower(&e.to).s, "0xb000000000000000000000000000000000000002");
    assert_string_equal(amount_text(e.value).s, "1000");
}

static void no_transfer(void **state)
{
    (void)state;
    struct auth_event e;
    assert_true(find(json_pack("[oo]", transfer(5, TOKEN), used(6, NONCE)), &e));
    assert_int_equal(e.kind, AUTH_EVENT_NO_TRANSFER);
    assert_int_equal(e.log_index, 6);
    assert_true(find(json_pack("[ooo]", used(6, NONCE), used(7, NONCE_2), transfer(8, TOKEN)), &e));
    assert_int_equal(e.kind, AUTH_EVENT_NO_TRANSFER);
    assert_true(find(json_pack("[oo]", used(6, NONCE), log_json(7, TOKEN, json_array(), "0x")), &e));
    assert_int_equal(e.kind, AUTH_EVENT_NO_TRANSFER);
}

static void cancelled(void **state)
{
    (void)state;
    struct auth_event e;
    json_t *c = log_json(3, TOKEN, topics_of(&topic_authorization_canceled, PAYER, NONCE), "0x");
    assert_true(find(json_pack("[oo]", c, transfer(4, TOKEN)), &e));
    assert_int_equal(e.kind, AUTH_EVENT_CANCELED);
    assert_int_equal(e.event_index, 3);
}

static void not_there(void **state)
{
    (void)state;
    struct auth_event e;
    assert_false(find(json_array(), &e));
    assert_false(find(json_pack("[oo]", used(6, NONCE_2), transfer(7, TOKEN)), &e));
    assert_false(find(json_pack("[oo]", log_json(6, OTHER, topics_of(&topic_authorization_used, PAYER, NONCE), "0x"),
                                transfer(7, TOKEN)),
                      &e));
    assert_false(find(json_pack("[oo]", log_json(6, TOKEN, topics_of(&topic_authorization_used, PAYEE, NONCE), "0x"),
                                transfer(7, TOKEN)),
                      &e));
    assert_false(find(json_pack("[oo]", log_json(6, TOKEN, topics_of(&topic_authorization_used, PAYER, NULL), "0x"),
                                transfer(7, TOKEN)),
                      &e));
}

/* The receipt of a good proof with one log spoilt. */
static bool find_spoilt(size_t log, const char *key, json_t *value)
{
    struct auth_event e;
    json_t *logs = json_pack("[oo]", used(6, NONCE), transfer(7, TOKEN));
    if (value)
        json_object_set_new(json_array_get(logs, log), key, value);
    else
        json_object_del(json_array_get(logs, log), key);
    return find(logs, &e);
}

static void malformed_is_no_proof(void **state)
{
    (void)state;
    assert_true(find_spoilt(1, "extra", json_true()));
    for (size_t i = 0; i < 2; i++) {
        assert_false(find_spoilt(i, "removed", json_true()));
        assert_false(find_spoilt(i, "topics", NULL));
        assert_false(find_spoilt(i, "topics", json_pack("[s]", "0x12")));
        assert_false(find_spoilt(i, "address", NULL));
        assert_false(find_spoilt(i, "logIndex", NULL));
        assert_false(find_spoilt(i, "data", NULL));
        assert_false(find_spoilt(i, "transactionHash", json_string(BLOCK)));
        assert_false(find_spoilt(i, "blockHash", json_string(TX)));
    }
    assert_false(find_spoilt(1, "logIndex", json_string("0x6")));
    assert_false(find_spoilt(1, "logIndex", json_string("0x5")));
    assert_false(find_spoilt(1, "data", json_string("0x")));
    assert_false(find_spoilt(1, "data", json_string(VALUE "00")));
    assert_false(find_spoilt(1, "topics", topics_of(&topic_transfer, PAYER, NULL)));
    assert_false(find_spoilt(1, "topics", topics_of(&topic_transfer, NONCE, PAYEE)));
}

static void receipts(void **state)
{
    (void)state;
    static const char *const needed[] = { "status",    "blockNumber", "transactionIndex", "gasUsed", "transactionHash",
                                          "blockHash", "logs" };
    struct receipt r;
    struct auth_event e;
    struct address zero = { { 0 } };
    struct hash32 none = { { 0 } };
    JSON *null = json_null();
    assert_true(receipt_read(null, &r));
    assert_false(r.found);
    assert_false(receipt_find(&r, &zero, &zero, &none, &e));
    receipt_done(&r);
    for (size_t i = 0; i < COUNT(needed); i++) {
        JSON *j = receipt_json(json_array());
        json_object_set_new(j, needed[i], json_null());
        assert_false(receipt_read(j, &r));
    }
    JSON *failed = receipt_json(json_array());
    json_object_set_new(failed, "status", json_string("0x0"));
    assert_true(receipt_read(failed, &r));
    assert_true(r.found && !r.success);
    assert_int_equal(r.block, 16);
    assert_int_equal(r.tx_index, 2);
    assert_int_equal(r.gas_used, 0x14f00);
    assert_string_equal(amount_text(r.gas_price).s, "1000000000");
    receipt_done(&r);
    assert_false(receipt_read(NULL, &r));
}

static void blocks(void **state)
{
    (void)state;
    struct block b;
    JSON *j = json_pack("{s:s,s:s,s:s,s:s,s:s}", "number", "0x10", "timestamp", "0x65", "hash", BLOCK, "parentHash", TX,
                        "baseFeePerGas", "0x7");
    assert_true(block_read(j, &b));
    assert_int_equal(b.number, 16);
    assert_int_equal(b.time, 101);
    assert_string_equal(hash_text(&b.parent).s, TX);
    assert_string_equal(amount_text(b.base_fee).s, "7");
    json_object_set_new(j, "hash", json_null()); /* a pending block */
    assert_false(block_read(j, &b));
    JSON *null = json_null();
    assert_false(block_read(null, &b));
}

static void filter_of_a_nonce(void **state)
{
    (void)state;
    struct address token, payer;
    struct hash32 nonce;
    assert_true(address_read(TOKEN, 42, &token));
    assert_true(address_read("0xa000000000000000000000000000000000000001", 42, &payer));
    assert_true(hash_read(NONCE, 66, &nonce));
    JSON *j = logs_of_nonce(&token, &payer, &nonce, 16, 32);
    OWNED char *text = json_write(j);
    assert_string_equal(text, "[{\"address\":\"" TOKEN "\",\"fromBlock\":\"0x10\",\"toBlock\":\"0x20\",\"topics\":[["
                              "\"0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5\","
                              "\"0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81\"],"
                              "\"" PAYER "\",\"" NONCE "\"]}]");
}

static enum revert expected(const char *reason)
{
    if (strstr(reason, "used or canceled"))
        return REVERT_USED;
    if (strstr(reason, "expired"))
        return REVERT_EXPIRED;
    if (strstr(reason, "not yet valid"))
        return REVERT_NOT_YET_VALID;
    if (strstr(reason, "invalid signature"))
        return REVERT_SIGNATURE;
    if (strstr(reason, "exceeds balance"))
        return REVERT_BALANCE;
    if (strstr(reason, "blacklisted"))
        return REVERT_BLACKLISTED;
    return strstr(reason, "paused") ? REVERT_PAUSED : REVERT_OTHER;
}

/* What the real token said on a real node; and each of them cut. */
static void reverts_of_the_token(void **state)
{
    (void)state;
    json_error_t error;
    JSON *file = json_load_file(VECTORS_DIR "/usdc-reverts.json", 0, &error);
    const json_t *cases = json_object_get(file, "cases");
    unsigned seen = 0;
    assert_true(json_array_size(cases) >= 25);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        size_t n;
        OWNED uint8_t *data = rpc_read_data(json_object_get(c, "data"), &n);
        const char *reason = json_str(c, "reason");
        enum revert want = expected(reason);
        assert_int_equal(revert_read((struct slice){ (const char *)data, n }), want);
        assert_int_equal(revert_read((struct slice){ (const char *)data, 67 + strlen(reason) }), REVERT_OTHER);
        seen |= 1U << want;
    }
    assert_int_equal(seen, 0xfe | 1U << REVERT_OTHER); /* each that a token like that can say */
    assert_int_equal(revert_read(SLICE("")), REVERT_OTHER);
    assert_string_equal(revert_name(REVERT_NOT_YET_VALID), "not_yet_valid");
}

/* What TIP-20 tokens said on a Tempo node, in errors of their own; and each of them cut. */
static void reverts_of_other_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        enum revert revert;
    } said[] = {
        { "0x832f98b50000000000000000000000000000000000000000000000000000000000987d8700000000000000000000000000000000000000"
          "000000000000038d7ea4c6800000000000000000000000000020c0000000000000000000000000000000000000",
          REVERT_BALANCE },
        { "0xab35696f", REVERT_PAUSED },
        { "0x54cfe659", REVERT_FORBIDDEN },
        { "0x9c8d2cd2", REVERT_RECIPIENT },
        { "0x9c8d2cd3", REVERT_OTHER },
    };
    for (size_t i = 0; i < COUNT(said); i++) {
        size_t n;
        JSON *hex = json_string(said[i].data);
        OWNED uint8_t *data = rpc_read_data(hex, &n);
        assert_int_equal(revert_read((struct slice){ (const char *)data, n }), said[i].revert);
        assert_int_equal(revert_read((struct slice){ (const char *)data, 3 }), REVERT_OTHER);
    }
    assert_string_equal(revert_name(REVERT_FORBIDDEN), "policy_forbids");
    assert_string_equal(revert_name(REVERT_RECIPIENT), "recipient");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tokens_next_log_is_the_proof),
        cmocka_unit_test(all_logs_of_a_block_prove_like_a_receipt),
        cmocka_unit_test(no_transfer),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(not_there),
        cmocka_unit_test(malformed_is_no_proof),
        cmocka_unit_test(receipts),
        cmocka_unit_test(blocks),
        cmocka_unit_test(filter_of_a_nonce),
        cmocka_unit_test(reverts_of_the_token),
        cmocka_unit_test(reverts_of_other_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
