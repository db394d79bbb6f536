/* Was it paid already, from a wallet that this database does not know? One that was restored has forgotten what was
 * paid since its backup, and if the refund wallet was changed too, the wallet of today would be free to pay once more.
 * A debt's nonce is a hash of the debt, whoever pays: the chain is asked for it without naming a wallet, from the
 * debt's source on. */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "refunds/internal.h"
#include "settle/keyed.h"

enum { RANGES_AT_ONCE = 5 };

/* An authorization that was signed once is the token's to refuse. A transaction of the wallet's own is not, where a
 * person paid by another one: there the chain is asked for the name each time. */
static bool is_asked(const struct net *n, const struct db_rows *due, int i)
{
    return row_is(due, i, "state", "approved") || keyed_network(n);
}

static json_t *nonces_of(const struct net *n, const struct db_rows *due)
{
    json_t *list = json_array();
    for (int i = 0; i < db_count(due); i++) {
        const struct slice nonce = row_bytes(due, i, "nonce");
        if (is_asked(n, due, i))
            json_array_append_new(list, rpc_hex(nonce.p, nonce.n));
    }
    return list;
}

static struct rpc_item used_item(const struct net *n, const struct address *token, const struct db_rows *due,
                                 uint64_t from, uint64_t to)
{
    json_t *topics =
        keyed_network(n) ? json_pack("[s, n, n, o]", hash_text(&topic_transfer_with_memo).s, nonces_of(n, due))
                         : json_pack("[s, n, o]", hash_text(&topic_authorization_used).s, nonces_of(n, due));
    return (struct rpc_item){ "eth_getLogs",
                              json_pack("[{s:o, s:o, s:s, s:o}]", "fromBlock", rpc_u64(from), "toBlock", rpc_u64(to),
                                        "address", address_lower(token).s, "topics", topics) };
}

/* ---- what was found ---- */

static bool anything(const void *arg, const struct address *from, const struct address *to)
{
    (void)arg, (void)from, (void)to;
    return true;
}

static bool bare_is(const json_t *o, const char *key, struct slice bytes)
{
    const char *hex = json_str(o, key);
    char text[65];
    hex_write_bare(text, bytes.p, bytes.n);
    return hex && strcmp(hex, text) == 0;
}

/* Somebody may use the same nonce for anything; only what gave this payer this amount pays the debt. */
static int row_paid_by(const struct net *n, const struct db_rows *due, const json_t *transfer)
{
    const char *key = keyed_network(n) ? "mark" : "nonce";
    for (int i = 0; i < db_count(due); i++)
        if (is_asked(n, due, i) && bare_is(transfer, key, row_bytes(due, i, "nonce")) &&
            bare_is(transfer, "receiver", row_bytes(due, i, "payer")) &&
            slice_is(row_text(due, i, "amount"), json_str(transfer, "amount")))
            return i;
    return -1;
}

static void tell(const struct refunds *r, const struct settler_turn *t, struct slice debt, const json_t *transfer)
{
    DB_ARGS a = { 0 };
    char hex[65];
    hex_write_bare(hex, debt.p, debt.n);
    log_error("refunds.paid_elsewhere", "network=%s debt=0x%s wallet=0x%s tx=0x%s", r->net->id, hex,
              json_str(transfer, "sender"), json_str(transfer, "tx"));
    arg_bytes(&a, debt.p, debt.n);
    arg_text(&a, json_str(transfer, "sender"));
    arg_text(&a, json_str(transfer, "tx"));
    arg_int(&a, json_integer_value(json_object_get(transfer, "block")));
    arg_text(&a, t->by);
    (void)!db_wait(t->db, "payout_elsewhere", &a, clock_mono_ms() + BOOKS_DB_MS, NULL);
}

/* The refund wallet's own authorizations are judged by the token (payout.c). */
static bool by_others(const struct net *n, const json_t *logs, const struct address *wallet, json_t *ret)
{
    size_t i;
    json_t *log;
    JSON *mine = topic_of_address(wallet);
    if (!json_is_array(logs))
        return false;
    json_array_foreach(logs, i, log)
    {
        const json_t *who = json_array_get(json_object_get(log, "topics"), 1);
        if (!json_is_string(who))
            return false;
        if (keyed_network(n) || strcmp(json_string_value(who), json_string_value(mine)) != 0)
            json_array_append(ret, log);
    }
    return true;
}

/* False: not all of it could be read. ret_found: some were paid. */
static bool read_range(const struct refunds *r, const struct settler_turn *t, const struct db_rows *due,
                       struct rpc_item item, bool *ret_found)
{
    struct rpc_answers answers = settler_ask(t->desk, &item, 1);
    JSON *logs = json_array(), *transfers = NULL;
    bool ok = answers.a[0].rc == RPC_OK && by_others(r->net, answers.a[0].result, &r->wallet->address, logs);
    rpc_answers_done(&answers);
    if (ok && json_array_size(logs) > 0)
        ok = (transfers = settler_transfers(t->desk, logs, anything, NULL)) != NULL;
    size_t i;
    json_t *transfer;
    json_array_foreach(transfers, i, transfer)
    {
        const int row = row_paid_by(r->net, due, transfer);
        if (row < 0)
            continue;
        tell(r, t, row_bytes(due, row, "id"), transfer);
        *ret_found = true;
    }
    return ok;
}

/* ---- how far it was read ---- */

static bool first_block(const struct net *n, const struct db_rows *due, uint64_t *ret)
{
    bool any = false;
    for (int i = 0; i < db_count(due); i++) {
        const uint64_t from = (uint64_t)row_int(due, i, "looked") + 1;
        if (is_asked(n, due, i) && (!any || from < *ret))
            *ret = from;
        any = any || is_asked(n, due, i);
    }
    return any;
}

static bool keep(const struct settler_turn *t, const struct db_rows *due, uint64_t upto)
{
    JSON *ids = json_array();
    for (int i = 0; i < db_count(due); i++) {
        char hex[65];
        const struct slice id = row_bytes(due, i, "id");
        hex_write_bare(hex, id.p, id.n);
        if (is_asked(t->net, due, i))
            json_array_append_new(ids, json_string(hex));
    }
    OWNED char *text = json_write(ids);
    DB_ARGS a = { 0 };
    arg_text(&a, text);
    arg_int(&a, (int64_t)upto);
    return db_wait(t->db, "payouts_looked", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
}

enum look paid_elsewhere(struct refunds *r, const struct settler_turn *t, size_t policy, const struct db_rows *due)
{
    const struct address *token = &r->policies[policy].token->address;
    uint64_t from = 0, *span = &r->look_span[policy];
    if (!first_block(r->net, due, &from))
        return LOOK_CLEAR;
    if (*span == 0)
        *span = settler_span(0, true, 0);
    for (int i = 0; i < RANGES_AT_ONCE && from <= t->head.number; i++) {
        const uint64_t to = t->head.number - from < *span ? t->head.number : from + *span - 1;
        bool found = false;
        const bool ok = read_range(r, t, due, used_item(r->net, token, due, from, to), &found);
        *span = settler_span(*span, ok, 0);
        /* what is found stays to be found until a person has said whose it is */
        if (!ok || found || !keep(t, due, to < t->final.number ? to : t->final.number))
            return LOOK_ON;
        from = to + 1;
    }
    return from > t->head.number ? LOOK_CLEAR : LOOK_ON;
}
