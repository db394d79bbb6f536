/* What leaves our wallets, and what comes into the refund wallet: with the transfers that settle/ finds, every movement
 * of our money. Block range by block range up to the final block; cursor, findings and their entries are one commit. A
 * refund is proven here, by its own log, whoever sent it. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "refunds/internal.h"

enum { SPAN_MAX = 2000, EVERY_MS = 1000, RECEIPTS_AT_ONCE = 25 };

struct reading {
    struct refunds *r;
    const struct settler_turn *t;
    const struct address *wallet;
    const struct token *token; /* of the receipt that is read now */
    json_t *findings;
};

bool refunds_wallet_is(const struct refunds *r, const struct address *a)
{
    for (size_t i = 0; i < r->wallet_count; i++)
        if (address_eq(&r->wallets[i], a))
            return true;
    return false;
}

/* ---- logs ---- */

static struct rpc_item logs_item(const struct reading *x, uint64_t from, uint64_t to, bool out)
{
    const struct net *n = x->r->net;
    json_t *tokens = json_array(), *topics = json_array();
    for (size_t i = 0; i < n->token_count; i++)
        json_array_append_new(tokens, json_string(address_lower(&n->tokens[i].address).s));
    json_array_append_new(topics, json_string(hash_text(&topic_transfer).s));
    if (!out)
        json_array_append_new(topics, json_null());
    json_array_append_new(topics, topic_of_address(x->wallet));
    return (struct rpc_item){ "eth_getLogs", json_pack("[{s:o, s:o, s:o, s:o}]", "fromBlock", rpc_u64(from), "toBlock",
                                                       rpc_u64(to), "address", tokens, "topics", topics) };
}

/* The transactions that hold them, once each, with their block. False: malformed. */
static bool add_transactions(const json_t *logs, json_t *list)
{
    size_t i;
    json_t *log;
    if (!json_is_array(logs))
        return false;
    json_array_foreach(logs, i, log)
    {
        struct hash32 tx;
        if (!rpc_read_hash(json_object_get(log, "transactionHash"), &tx))
            return false;
        json_object_set(list, hash_text(&tx).s, json_object_get(log, "blockNumber"));
    }
    return true;
}

/* ---- what they say ---- */

static void found(void *arg, const struct auth_event *e, const struct hash32 *nonce)
{
    struct reading *x = arg;
    const bool out = address_eq(&e->from, x->wallet), in = x->r->wallet && address_eq(&e->to, &x->r->wallet->address);
    if (!out && !(in && address_eq(&e->to, x->wallet)))
        return;
    json_t *f = json_object();
    set_bare(f, "tx", e->tx.b, 32);
    set_bare(f, "block_hash", e->block_hash.b, 32);
    set_bare(f, "asset", x->token->address.b, 20);
    set_bare(f, "sender", e->from.b, 20);
    set_bare(f, "receiver", e->to.b, 20);
    if (nonce)
        set_bare(f, "nonce", nonce->b, 32);
    json_object_set_new(f, "amount", json_string(amount_text(e->value).s));
    json_object_set_new(f, "log_index", json_integer((json_int_t)e->log_index));
    json_object_set_new(f, "block", json_integer((json_int_t)e->block));
    json_array_append_new(x->findings, f);
}

/* A receipt in the chain's own block of that number; its findings get the block's time. */
static bool read_one(struct reading *x, const struct rpc_answer *receipt_answer, const struct rpc_answer *block_answer)
{
    struct receipt receipt = { 0 };
    struct block b;
    const size_t before = json_array_size(x->findings);
    bool ok = receipt_answer->rc == RPC_OK && receipt_read(receipt_answer->result, &receipt) && receipt.found &&
              block_answer->rc == RPC_OK && block_read(block_answer->result, &b) &&
              hash_eq(&b.hash, &receipt.block_hash) && b.number <= x->t->final.number;
    for (size_t i = 0; ok && i < x->r->net->token_count; i++) {
        x->token = &x->r->net->tokens[i];
        ok = receipt_each_transfer(&receipt, &x->token->address, NULL, found, x);
    }
    for (size_t i = before; ok && i < json_array_size(x->findings); i++)
        json_object_set_new(json_array_get(x->findings, i), "block_time", json_integer((json_int_t)b.time));
    receipt_done(&receipt);
    return ok;
}

static bool read_all(struct reading *x, json_t *transactions)
{
    struct rpc_item items[2 * RECEIPTS_AT_ONCE];
    size_t n = 0, left = json_object_size(transactions);
    const char *tx;
    json_t *block;
    json_object_foreach(transactions, tx, block)
    {
        items[n++] = (struct rpc_item){ "eth_getTransactionReceipt", json_pack("[s]", tx) };
        items[n++] = (struct rpc_item){ "eth_getBlockByNumber", json_pack("[O, b]", block, 0) };
        if (--left > 0 && n < COUNT(items))
            continue;
        struct rpc_answers r = settler_ask(x->t->desk, items, n);
        bool ok = true;
        for (size_t i = 0; i < n; i += 2)
            ok = ok && read_one(x, &r.a[i], &r.a[i + 1]);
        rpc_answers_done(&r);
        if (!ok)
            return false;
        n = 0;
    }
    return true;
}

/* ---- one range ---- */

static bool record(const struct reading *x, uint64_t from, uint64_t to)
{
    OWNED char *text = json_write(x->findings);
    DB_ARGS a = { 0 };
    arg_text(&a, x->r->net->id);
    arg_bytes(&a, x->wallet->b, 20);
    arg_int(&a, (int64_t)from);
    arg_int(&a, (int64_t)to);
    arg_text(&a, text);
    arg_text(&a, x->t->by);
    FAILPOINT("ledger-before-movements");
    if (json_array_size(x->findings) > 0)
        log_info("ledger.moved", "network=%s movements=%zu up_to=%" PRIu64, x->r->net->id, json_array_size(x->findings),
                 to);
    bool ok = db_wait(x->t->db, "movements_record", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
    FAILPOINT("ledger-after-movements");
    return ok;
}

static bool scan_range(struct reading *x, uint64_t from, uint64_t to)
{
    const bool both = x->r->wallet && address_eq(x->wallet, &x->r->wallet->address);
    struct rpc_item items[2] = { logs_item(x, from + 1, to, true) };
    if (both)
        items[1] = logs_item(x, from + 1, to, false);
    struct rpc_answers r = settler_ask(x->t->desk, items, both ? 2 : 1);
    JSON *transactions = json_object();
    bool ok = true;
    for (size_t i = 0; i < (both ? 2u : 1u); i++)
        ok = ok && r.a[i].rc == RPC_OK && add_transactions(r.a[i].result, transactions);
    rpc_answers_done(&r);
    return ok && read_all(x, transactions) && record(x, from, to);
}

/* The books of a wallet begin with what it holds where its scan begins. */
static bool open_wallet(const struct reading *x, uint64_t block)
{
    const struct net *n = x->r->net;
    OWNED struct rpc_item *items = mem_new((n->token_count + 1) * sizeof *items);
    for (size_t i = 0; i < n->token_count; i++)
        items[i] = balance_item(&n->tokens[i].address, x->wallet, block);
    items[n->token_count] = (struct rpc_item){ "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(block), 0) };
    struct rpc_answers r = settler_ask(x->t->desk, items, n->token_count + 1);
    JSON *balances = json_object();
    struct block b;
    bool ok = r.a[n->token_count].rc == RPC_OK && block_read(r.a[n->token_count].result, &b);
    for (size_t i = 0; i < n->token_count; i++) {
        struct amount have;
        ok = ok && balance_read(&r.a[i], &have);
        if (ok)
            json_object_set_new(balances, address_lower(&n->tokens[i].address).s, json_string(amount_text(have).s));
    }
    rpc_answers_done(&r);
    if (!ok)
        return false;
    OWNED char *text = json_write(balances);
    DB_ARGS a = { 0 };
    arg_text(&a, n->id);
    arg_bytes(&a, x->wallet->b, 20);
    arg_int(&a, (int64_t)block);
    arg_int(&a, (int64_t)b.time);
    arg_text(&a, text);
    return db_wait(x->t->db, "wallet_open", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
}

/* A range that a provider refuses is halved, one that works grows again. False: there is more to do. */
static bool scan_wallet(struct refunds *r, const struct settler_turn *t, size_t i)
{
    struct reading x = { .r = r, .t = t, .wallet = &r->wallets[i] };
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, r->net->id);
    arg_bytes(&a, x.wallet->b, 20);
    arg_int(&a, (int64_t)t->final.number);
    if (db_wait(t->db, "movement_cursor", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK ||
        row_null(rows, 0, "block"))
        return true;
    const uint64_t from = (uint64_t)row_int(rows, 0, "block"), span = r->span[i] ? r->span[i] : SPAN_MAX;
    if (!row_bool(rows, 0, "opened"))
        return !open_wallet(&x, from);
    if (from >= t->final.number)
        return true;
    const uint64_t to = t->final.number - from > span ? from + span : t->final.number;
    x.findings = json_array();
    const bool ok = scan_range(&x, from, to);
    json_decref(x.findings);
    r->span[i] = ok ? (span * 2 < SPAN_MAX ? span * 2 : SPAN_MAX) : span / 2 > 0 ? span / 2 : 1;
    return !ok || to >= t->final.number;
}

void movements_turn(struct refunds *r, const struct settler_turn *t)
{
    const int64_t now = clock_mono_ms();
    if (now < r->scan_at_ms)
        return;
    r->scan_at_ms = now + EVERY_MS;
    for (size_t i = 0; i < r->wallet_count; i++)
        if (!scan_wallet(r, t, i))
            r->scan_at_ms = 0;
    DB_ARGS a = { 0 };
    arg_text(&a, r->net->id);
    arg_text(&a, t->by);
    (void)!db_wait(t->db, "journal_round", &a, clock_mono_ms() + BOOKS_DB_MS, NULL);
}
