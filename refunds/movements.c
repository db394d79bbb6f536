/* What leaves our wallets, and what comes into the refund wallet: with the transfers that settle/ finds, every movement
 * of our money. Block range by block range up to the final block; cursor, findings and their entries are one commit. A
 * refund is proven here, by its own log, whoever sent it. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "refunds/internal.h"

enum { EVERY_MS = 1000 };

struct reading {
    struct refunds *r;
    const struct settler_turn *t;
    const struct address *wallet;
    bool refund; /* one that pays refunds, or did */
    size_t logs; /* of the range */
};

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

/* Of what comes in only the refund wallet's is ours to book here. */
static bool touches(const void *arg, const struct address *from, const struct address *to)
{
    const struct reading *x = arg;
    return address_eq(from, x->wallet) || (x->refund && address_eq(to, x->wallet));
}

/* ---- one range ---- */

static bool record(const struct reading *x, uint64_t from, uint64_t to, const json_t *findings)
{
    OWNED char *text = json_write(findings);
    DB_ARGS a = { 0 };
    arg_text(&a, x->r->net->id);
    arg_bytes(&a, x->wallet->b, 20);
    arg_int(&a, (int64_t)from);
    arg_int(&a, (int64_t)to);
    arg_text(&a, text);
    arg_text(&a, x->t->by);
    FAILPOINT("ledger-before-movements");
    if (json_array_size(findings) > 0)
        log_info("ledger.moved", "network=%s movements=%zu up_to=%" PRIu64, x->r->net->id, json_array_size(findings),
                 to);
    bool ok = db_wait(x->t->db, "movements_record", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
    FAILPOINT("ledger-after-movements");
    return ok;
}

static bool scan_range(struct reading *x, uint64_t from, uint64_t to)
{
    const size_t n = x->refund ? 2 : 1;
    struct rpc_item items[2] = { logs_item(x, from + 1, to, true) };
    if (x->refund)
        items[1] = logs_item(x, from + 1, to, false);
    struct rpc_answers r = settler_ask(x->t->desk, items, n);
    JSON *logs = json_array();
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = r.a[i].rc == RPC_OK && json_is_array(r.a[i].result) && json_array_extend(logs, r.a[i].result) == 0;
    rpc_answers_done(&r);
    x->logs = json_array_size(logs);
    if (!ok || (x->logs > SETTLER_LOGS_MOST && to - from > 1))
        return false;
    JSON *findings = settler_transfers(x->t->desk, logs, touches, x);
    return findings && record(x, from, to, findings);
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
    if (!ok) {
        log_warn("ledger.not_opened",
                 "network=%s wallet=%s block=%" PRIu64
                 " hint=the node does not tell the balance there; an archive does",
                 n->id, address_lower(x->wallet).s, block);
        return false;
    }
    OWNED char *text = json_write(balances);
    DB_ARGS a = { 0 };
    arg_text(&a, n->id);
    arg_bytes(&a, x->wallet->b, 20);
    arg_int(&a, (int64_t)block);
    arg_int(&a, (int64_t)b.time);
    arg_text(&a, text);
    return db_wait(x->t->db, "wallet_open", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
}

/* False: there is more to do. */
static bool scan_wallet(struct refunds *r, const struct settler_turn *t, size_t i)
{
    struct reading x = { .r = r, .t = t, .wallet = &r->wallets[i].address, .refund = r->wallets[i].refund };
    uint64_t *span = &r->wallets[i].span;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, r->net->id);
    arg_bytes(&a, x.wallet->b, 20);
    arg_int(&a, (int64_t)t->final.number);
    if (db_wait(t->db, "movement_cursor", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK ||
        row_null(rows, 0, "block"))
        return true;
    const uint64_t from = (uint64_t)row_int(rows, 0, "block");
    if (!row_bool(rows, 0, "opened"))
        return !open_wallet(&x, from);
    if (from >= t->final.number)
        return true;
    if (*span == 0)
        *span = settler_span(0, true, 0);
    const uint64_t to = t->final.number - from > *span ? from + *span : t->final.number;
    const bool ok = scan_range(&x, from, to);
    *span = settler_span(*span, ok, x.logs);
    return ok ? to >= t->final.number : x.logs <= SETTLER_LOGS_MOST;
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
