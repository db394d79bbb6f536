/* The log scan: every Transfer to a wallet of ours, block range by block range, up to the final block. It sees what nobody told us
 * of: a released authorization that somebody submitted, a payment of a row that a restored database lost, plain transfers. The cursor
 * and what was found are one commit, so that nothing is booked twice or passed over. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "settle/desk.h"

enum { EVERY_MS = 2000, RECONCILE_MS = 300000 };

/* One range of one wallet's logs on its way into the books. */
struct scan {
    struct desk *d;
    const struct address *wallet;
    bool ours;                       /* else a seller's: only what we know of is booked */
    size_t logs;                     /* of the range */
};

static bool reaches(const void *arg, const struct address *from, const struct address *to)
{
    const struct scan *s = arg;
    (void)from;
    return address_eq(to, s->wallet);
}

/* ---- the logs of a range, less those that are booked ---- */

static json_t *log_params(const struct scan *s, uint64_t from, uint64_t to)
{
    const struct net *n = s->d->net;
    uint8_t topic[32] = { 0 };
    json_t *tokens = json_array();
    memcpy(topic + 12, s->wallet->b, 20);
    for (size_t i = 0; i < n->token_count; i++)
        json_array_append_new(tokens, json_string(address_lower(&n->tokens[i].address).s));
    json_t *filter = json_pack("{s:o, s:o, s:[s, n, o]}", "fromBlock", rpc_u64(from), "toBlock", rpc_u64(to), "topics",
                               hash_text(&topic_transfer).s, rpc_hex(topic, 32));
    if (n->tempo) /* a wrong token is found by its memo */
        json_decref(tokens);
    else
        json_object_set_new(filter, "address", tokens);
    return json_pack("[o]", filter);
}

/* Every log of the range that an endpoint has. What fewer endpoints have than must agree does not count; where one is enough, all are
 * asked all the same, since one of them may know of less: a log too many is found out by its receipt. NULL: no answer. */
static json_t *read_logs(const struct scan *s, uint64_t from, uint64_t to)
{
    struct desk *d = s->d;
    struct rpc_item item = { "eth_getLogs", log_params(s, from + 1, to) };
    bool each = d->net->quorum <= 1 && d->net->rpc_count > 1;
    struct rpc_answers r = each ? rpc_wait_everywhere(d->rpc, item) : quorum_wait(d, &item, 1);
    json_t *all = NULL;
    for (size_t i = 0; i < r.n; i++) {
        if (r.a[i].rc != RPC_OK || !json_is_array(r.a[i].result))
            continue;
        all = all ? all : json_array();
        if (i > 0 && json_array_size(all) > 0 && json_array_size(r.a[i].result) != json_array_size(all))
            log_warn("settler.logs_differ", "network=%s from=%" PRIu64 " to=%" PRIu64, d->net->id, from + 1, to);
        json_array_extend(all, r.a[i].result);
    }
    rpc_answers_done(&r);
    return all;
}

/* [{"tx", "log_index"}] of logs, as the database wants them. NULL: malformed. */
static json_t *log_names(const json_t *logs)
{
    JSON *list = json_array();
    size_t i;
    json_t *log;
    json_array_foreach(logs, i, log) {
        uint64_t index;
        struct hash32 tx;
        if (!rpc_read_hash(json_object_get(log, "transactionHash"), &tx) || !rpc_read_u64(json_object_get(log, "logIndex"), &index))
            return NULL;
        json_t *o = json_object();
        json_set_bare(o, "tx", tx.b, 32);
        json_object_set_new(o, "log_index", json_integer((json_int_t)index));
        json_array_append_new(list, o);
    }
    return MOVE(list);
}

static json_t *booked_names(const struct db_rows *known)
{
    json_t *booked = json_object();
    for (int row = 0; row < db_count(known); row++) {
        char hex[65];
        if (row_null(known, row, "tx"))
            continue;
        hex_write_bare(hex, row_bytes(known, row, "tx").p, 32);
        OWNED char *key = str_format("%s %" PRId64, hex, row_int(known, row, "log_index"));
        json_object_set_new(booked, key, json_true());
    }
    return booked;
}

/* The logs that are not booked. NULL: the database did not answer, or knows of a Transfer that ought to be among them: some are left
 * out, so the cursor does not pass here. */
static json_t *unknown_logs(struct scan *s, uint64_t from, uint64_t to, const json_t *logs)
{
    JSON *names = log_names(logs);
    if (!names)
        return NULL;
    OWNED char *text = json_write(names);
    DB_ARGS a = { 0 };
    DB_ROWS *known = NULL;
    arg_text(&a, s->d->net->id);
    arg_bytes(&a, s->wallet->b, 20);
    arg_int(&a, (int64_t)from);
    arg_int(&a, (int64_t)to);
    arg_text(&a, text);
    if (db_wait(s->d->db, "transfers_known", &a, clock_mono_ms() + DESK_DB_MS, &known) != DB_OK)
        return NULL;
    if (db_count(known) > 0 && row_int(known, 0, "missing") > 0) {
        log_warn("settler.logs_incomplete", "network=%s from=%" PRIu64 " to=%" PRIu64 " missing=%" PRId64, s->d->net->id, from + 1, to,
                 row_int(known, 0, "missing"));
        return NULL;
    }
    JSON *booked = booked_names(known);
    json_t *unknown = json_array(), *name;
    size_t i;
    json_array_foreach(names, i, name) {
        const char *tx = json_str(name, "tx");
        OWNED char *key = str_format("%s %" JSON_INTEGER_FORMAT, tx, json_integer_value(json_object_get(name, "log_index")));
        if (!json_object_get(booked, key))
            json_array_append(unknown, json_array_get(logs, i));
    }
    return unknown;
}

/* ---- one range ---- */

static bool record(const struct scan *s, uint64_t from, uint64_t to, const struct hash32 *to_hash, const json_t *findings)
{
    OWNED char *text = json_write(findings);
    DB_ARGS a = { 0 };
    arg_text(&a, s->d->net->id);
    arg_bytes(&a, s->wallet->b, 20);
    arg_int(&a, (int64_t)from);
    arg_int(&a, (int64_t)to);
    arg_bytes(&a, to_hash->b, 32);
    arg_text(&a, text);
    arg_text(&a, s->d->by);
    arg_bool(&a, s->ours);
    FAILPOINT("settler-before-scan");
    if (json_array_size(findings) > 0)
        log_info("settler.found", "network=%s transfers=%zu up_to=%" PRIu64, s->d->net->id, json_array_size(findings), to);
    return db_wait(s->d->db, "scan_record", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK;
}

static bool scan_range(struct scan *s, uint64_t from, uint64_t to)
{
    struct rpc_item item = { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(to), 0) };
    struct rpc_answers r = quorum_wait(s->d, &item, 1);
    struct block last;
    bool ok = r.a[0].rc == RPC_OK && block_read(r.a[0].result, &last);
    rpc_answers_done(&r);
    JSON *logs = ok ? read_logs(s, from, to) : NULL;
    s->logs = json_array_size(logs);
    if (!logs || (s->logs > SETTLER_LOGS_MOST && to - from > 1))
        return false;
    JSON *unknown = unknown_logs(s, from, to, logs);
    JSON *findings = unknown ? settler_transfers(s->d, unknown, reaches, s) : NULL;
    return findings && record(s, from, to, &last.hash, findings);
}

static bool scan_wallet(struct desk *d, const struct address *wallet, bool ours)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_bytes(&a, wallet->b, 20);
    arg_int(&a, (int64_t)d->final.number);
    if (db_wait(d->db, "scan_cursor", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    if (d->scan_span == 0)
        d->scan_span = settler_span(0, true, 0);
    uint64_t from = (uint64_t)row_int(rows, 0, "block");
    if (from >= d->final.number)
        return true;
    uint64_t to = d->final.number - from > d->scan_span ? from + d->scan_span : d->final.number;
    struct scan s = { .d = d, .wallet = wallet, .ours = ours };
    bool ok = scan_range(&s, from, to);
    d->scan_span = settler_span(d->scan_span, ok, s.logs);
    if (ok ? to < d->final.number : s.logs > SETTLER_LOGS_MOST)
        d->scan_at_ms = 0;                       /* there is more: at once */
    return ok;
}

static bool is_named(const struct net *n, const struct address *wallet)
{
    bool named = false;
    for (size_t i = 0; i < n->wallet_count; i++)
        named = named || address_eq(&n->wallets[i], wallet);
    for (size_t i = 0; i < n->served_count; i++)
        named = named || address_eq(&n->served[i], wallet);
    return named;
}

/* Wallets that the configuration does not name any more: what was signed for them can still land there, and their books go on. */
static bool scan_former(struct desk *d)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    bool ok = true;
    arg_text(&a, d->net->id);
    if (db_wait(d->db, "receiving_wallets", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    for (int i = 0; i < db_count(rows); i++) {
        struct address wallet;
        if (row_copy(rows, i, "wallet", wallet.b, 20) && !is_named(d->net, &wallet))
            ok = scan_wallet(d, &wallet, true) && ok;
    }
    return ok;
}

static void reconcile(struct desk *d)
{
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    (void)!db_wait(d->db, "reconcile", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

bool desk_scan(struct desk *d)
{
    int64_t now = clock_mono_ms();
    bool ok = true;
    if (now >= d->reconcile_at_ms) {
        d->reconcile_at_ms = now + RECONCILE_MS;
        reconcile(d);
    }
    if (!d->owner || now < d->scan_at_ms)
        return true;
    d->scan_at_ms = now + EVERY_MS;
    for (size_t i = 0; i < d->net->wallet_count; i++)
        ok = scan_wallet(d, &d->net->wallets[i], true) && ok;
    for (size_t i = 0; i < d->net->served_count; i++)
        ok = scan_wallet(d, &d->net->served[i], false) && ok;
    return scan_former(d) && ok;
}
