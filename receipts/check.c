/* A receipt against the chain: the verifier's own reading of every log that it speaks of. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "receipts/receipts.h"

struct wanted {
    struct address asset, from, to;
    struct amount value;
    uint64_t log_index;
    bool has_from, has_log, found;
};

static void transfer(void *arg, const struct auth_event *e, const struct hash32 *nonce)
{
    struct wanted *w = arg;
    (void)nonce;
    w->found = w->found || (amount_cmp(e->value, w->value) == 0 && (!w->has_from || address_eq(&e->from, &w->from)) &&
                            (!w->has_log || e->log_index == w->log_index));
}

static bool read_address(const json_t *o, const char *key, struct address *ret)
{
    const char *s = json_str(o, key);
    return s && address_read(s, strlen(s), ret);
}

/* Is there, in that transaction of the chain, this Transfer? ret_block: where. */
static bool look(struct rpc *rpc, const char *tx, struct wanted *w, uint64_t *ret_block)
{
    struct rpc_item item = { "eth_getTransactionReceipt", json_pack("[s]", tx) };
    struct rpc_answers r = rpc_wait(rpc, &item, 1);
    struct receipt receipt = { 0 };
    const bool ok = r.a[0].rc == RPC_OK && receipt_read(r.a[0].result, &receipt) && receipt.found &&
                    receipt_each_transfer(&receipt, &w->asset, &w->to, transfer, w) && w->found;
    *ret_block = receipt.block;
    rpc_answers_done(&r);
    receipt_done(&receipt);
    return ok;
}

static bool say(json_t *facts, bool ok, const char *what, const char *tx, uint64_t block)
{
    OWNED char *line = ok ? str_format("ok: %s, in block %" PRIu64 " of the chain, %s", what, block, tx)
                          : str_format("NOT SO: %s is not in %s, as the chain has it", what, tx);
    json_array_append_new(facts, json_string(line));
    return ok;
}

static bool check_payment(const json_t *payment, struct rpc *rpc, json_t *facts)
{
    struct wanted w = { .has_from = true, .has_log = true };
    const char *amount = json_str(payment, "amount"), *tx = json_str(payment, "transaction"),
               *state = json_str(payment, "state");
    uint64_t block = 0;
    if (!state || strcmp(state, "settled") != 0 || !tx)
        return true;
    w.log_index = (uint64_t)json_integer_value(json_object_get(payment, "log_index"));
    const bool read = amount && read_address(payment, "asset", &w.asset) && read_address(payment, "payer", &w.from) &&
                      read_address(payment, "payee", &w.to) && amount_read(amount, strlen(amount), &w.value);
    const bool ok =
        read && look(rpc, tx, &w, &block) && block == (uint64_t)json_integer_value(json_object_get(payment, "block"));
    return say(facts, ok, "the payment", tx, block);
}

static bool check_refund(const json_t *debt, const json_t *payment, struct rpc *rpc, json_t *facts)
{
    struct wanted w = { 0 };
    const char *amount = json_str(debt, "amount"), *tx = json_str(debt, "transaction"),
               *state = json_str(debt, "state");
    uint64_t block = 0;
    if (!state || strcmp(state, "refunded") != 0)
        return true;
    if (!tx)
        return say(facts, false, "a refund", "-", 0);
    const bool read = amount && read_address(payment, "asset", &w.asset) && read_address(debt, "to", &w.to) &&
                      amount_read(amount, strlen(amount), &w.value);
    return say(facts, read && look(rpc, tx, &w, &block), "a refund", tx, block);
}

bool receipt_check_chain(const json_t *document, struct rpc *rpc, json_t *ret_facts)
{
    const json_t *payment = json_object_get(document, "payment");
    bool ok = check_payment(payment, rpc, ret_facts);
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(document, "refunds"), i, d) ok = check_refund(d, payment, rpc, ret_facts) && ok;
    return ok;
}
