/* What the relayer's transactions cost, each booked once from its receipt when it is final, in the network's own asset.
 */
#include "base/log.h"
#include "refunds/internal.h"

enum { AT_ONCE = 50, EVERY_MS = 5000, BALANCE_MS = 30000 };

/* gas used at its price, and what a layer below charged for it. */
static bool cost_of(const json_t *receipt, struct amount *ret)
{
    struct receipt r;
    struct amount fee = AMOUNT_ZERO, one, below;
    if (!receipt_read(receipt, &r) || !r.found)
        return false;
    one = r.gas_price;
    bool ok = true;
    for (uint64_t gas = r.gas_used; gas && ok; gas >>= 1) {
        ok = !(gas & 1) || amount_add(fee, one, &fee);
        ok = ok && (gas == 1 || amount_add(one, one, &one));
    }
    if (rpc_read_amount(json_object_get(receipt, "l1Fee"), &below))
        ok = ok && amount_add(fee, below, &fee);
    receipt_done(&r);
    *ret = fee;
    return ok;
}

static json_t *cost_json(int64_t id, const struct rpc_answer *a, uint64_t final_block, uint64_t final_time)
{
    struct amount cost;
    uint64_t block;
    if (a->rc != RPC_OK || !cost_of(a->result, &cost) ||
        !rpc_read_u64(json_object_get(a->result, "blockNumber"), &block) || block > final_block)
        return NULL;
    return json_pack("{s:I, s:s, s:I}", "id", (json_int_t)id, "cost", amount_text(cost).s, "time",
                     (json_int_t)final_time);
}

static bool book_costs(struct refunds *r, const struct settler_turn *t)
{
    DB_ARGS a = { 0 }, b = { 0 };
    DB_ROWS *due = NULL;
    struct rpc_item items[AT_ONCE];
    arg_text(&a, r->net->id);
    arg_int(&a, AT_ONCE);
    if (db_wait(t->db, "gas_due", &a, clock_mono_ms() + BOOKS_DB_MS, &due) != DB_OK)
        return false;
    const int n = db_count(due);
    if (n == 0)
        return true;
    for (int i = 0; i < n; i++) {
        const struct slice hash = row_bytes(due, i, "hash");
        items[i] = (struct rpc_item){ "eth_getTransactionReceipt", json_pack("[o]", rpc_hex(hash.p, hash.n)) };
    }
    struct rpc_answers answers = settler_ask(t->desk, items, (size_t)n);
    JSON *costs = json_array();
    for (int i = 0; i < n; i++) {
        json_t *cost = cost_json(row_int(due, i, "id"), &answers.a[i], t->final.number, t->final.time);
        if (cost)
            json_array_append_new(costs, cost);
    }
    rpc_answers_done(&answers);
    OWNED char *text = json_write(costs);
    arg_text(&b, r->net->id);
    arg_text(&b, text);
    return json_array_size(costs) > 0 &&
           db_wait(t->db, "gas_record", &b, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK && n < AT_ONCE;
}

static void book_balance(struct refunds *r, const struct settler_turn *t)
{
    struct rpc_item item = { "eth_getBalance",
                             json_pack("[s, o]", address_lower(&r->relayer).s, rpc_u64(t->final.number)) };
    struct rpc_answers answer = settler_ask(t->desk, &item, 1);
    struct amount have;
    const bool ok = answer.a[0].rc == RPC_OK && rpc_read_amount(answer.a[0].result, &have);
    rpc_answers_done(&answer);
    if (!ok)
        return;
    DB_ARGS a = { 0 };
    arg_text(&a, r->net->id);
    arg_bytes(&a, r->relayer.b, 20);
    arg_int(&a, (int64_t)t->final.number);
    arg_int(&a, (int64_t)t->final.time);
    arg_amount(&a, have);
    (void)!db_wait(t->db, "gas_balance", &a, clock_mono_ms() + BOOKS_DB_MS, NULL);
}

void gas_turn(struct refunds *r, const struct settler_turn *t)
{
    const int64_t now = clock_mono_ms();
    if (now < r->gas_at_ms)
        return;
    r->gas_at_ms = now + EVERY_MS;
    if (!book_costs(r, t)) {
        r->gas_at_ms = now + EVERY_MS / 10;
    } else if (now >= r->balance_at_ms) {
        r->balance_at_ms = now + BALANCE_MS;
        book_balance(r, t);
    }
}
