/* From due to broadcast: claim, sign, COMMIT, then send. What is broadcast is always in the database already. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "settle/desk.h"

enum { LEASE_S = 15, CLAIM_S = 10, PLAIN_GAS_MAX = 1000000, BATCH_GAS = 60000, BATCH_GAS_EACH = 110000, GAS_MAX = 15000000 };

bool desk_lease(struct desk *d)
{
    if (d->owner && clock_mono_ms() < d->renew_at_ms)
        return true;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_bytes(&a, d->relayer->address.b, 20);
    arg_bytes(&a, d->instance.b, 16);
    arg_int(&a, LEASE_S);
    arg_int(&a, (int64_t)d->chain_nonce);
    if (db_wait(d->db, "relayer_lease", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK) {
        d->owner = false;
        return false;
    }
    bool was = d->owner;
    d->owner = row_bool(rows, 0, "held");
    if (!d->owner)
        return false;
    d->epoch = row_int(rows, 0, "epoch");
    d->next_nonce = (uint64_t)row_int(rows, 0, "next_nonce");
    d->renew_at_ms = clock_mono_ms() + LEASE_S * 1000 / 3;
    if (!was) {
        d->open = true;
        log_info("settler.wallet", "network=%s relayer=%s epoch=%" PRId64 " nonce=%" PRIu64, d->net->id,
                 address_lower(&d->relayer->address).s, d->epoch, d->next_nonce);
    }
    return true;
}

/* ---- one transaction ---- */

struct parcel {                      /* the authorizations of one transaction: rows of the claim */
    const struct db_rows *rows;
    int row[512];
    int n;
};

static void row_authorization(const struct db_rows *rows, int i, struct authorization *ret)
{
    struct slice signature = row_bytes(rows, i, "signature");
    memset(ret, 0, sizeof *ret);
    (void)row_copy(rows, i, "payer", ret->from.b, 20);
    (void)row_copy(rows, i, "payee", ret->to.b, 20);
    (void)row_copy(rows, i, "nonce", ret->nonce.b, 32);
    ret->value = row_amount(rows, i, "amount");
    ret->valid_after = row_amount(rows, i, "valid_after");
    ret->valid_before = amount_of((uint64_t)row_int(rows, i, "valid_before"));
    ret->signature_n = signature.n < sizeof ret->signature ? signature.n : 0;
    memcpy(ret->signature, signature.p, ret->signature_n);
}

static json_t *parcel_ids(const struct parcel *p)
{
    json_t *ids = json_array();
    for (int i = 0; i < p->n; i++)
        json_array_append_new(ids, json_integer(row_int(p->rows, p->row[i], "id")));
    return ids;
}

/* The call that carries the parcel: the token itself for one, Multicall3 with failures allowed for several. */
static void parcel_call(const struct parcel *p, struct address *ret_to, struct buf *ret_data)
{
    struct authorization a;
    if (p->n == 1) {
        row_authorization(p->rows, p->row[0], &a);
        (void)row_copy(p->rows, p->row[0], "asset", ret_to->b, 20);
        authorization_call(ret_data, &a);
        return;
    }
    size_t n = (size_t)p->n;
    OWNED struct call3 *calls = mem_new(n * sizeof *calls);
    OWNED struct buf *data = mem_new(n * sizeof *data);
    for (size_t i = 0; i < n; i++) {
        row_authorization(p->rows, p->row[i], &a);
        (void)row_copy(p->rows, p->row[i], "asset", calls[i].to.b, 20);
        authorization_call(&data[i], &a);
        calls[i].data = (struct slice){ data[i].p, data[i].n };
    }
    multicall_call(ret_data, calls, n);
    for (size_t i = 0; i < n; i++)
        buf_done(&data[i]);
    *ret_to = multicall3_address;
}

/* "Already used" may be the truth: the resolver looks at it at once. */
static void doubt(struct desk *d, int64_t authorization)
{
    DB_ARGS a = { 0 };
    arg_int(&a, authorization);
    (void)!db_wait(d->db, "authorization_doubted", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

/* Gas for one alone is asked of the node, which also tells when it cannot succeed now. In a batch an estimate would be
 * worthless: with failures allowed the cheapest success is one in which every call fails. */
static bool parcel_gas(struct desk *d, const struct parcel *p, const struct address *to, const struct buf *data, uint64_t *ret)
{
    if (p->n > 1) {
        *ret = BATCH_GAS + BATCH_GAS_EACH * (uint64_t)p->n;
        return true;
    }
    struct rpc_item item = { "eth_estimateGas", json_pack("[{s:s, s:s, s:o}]", "from", address_lower(&d->relayer->address).s, "to",
                                                          address_lower(to).s, "data", rpc_hex(data->p, data->n)) };
    struct rpc_answers r = rpc_wait(d->rpc, &item, 1);
    uint64_t gas;
    bool ok = r.a[0].rc == RPC_OK && rpc_read_u64(r.a[0].result, &gas);
    if (ok)
        *ret = gas + gas / 4 < PLAIN_GAS_MAX ? gas + gas / 4 : PLAIN_GAS_MAX;
    else if (r.a[0].rc == RPC_ERROR)
        doubt(d, row_int(p->rows, p->row[0], "id"));
    if (!ok)
        log_info("settler.not_now", "network=%s authorization=%" PRId64 " why=%s", d->net->id, row_int(p->rows, p->row[0], "id"),
                 r.a[0].rc == RPC_ERROR && r.a[0].message ? r.a[0].message : "no answer");
    rpc_answers_done(&r);
    return ok;
}

struct amount desk_fee(const struct desk *d)
{
    struct amount fee = d->tip;
    for (int i = 0; i < 2; i++)
        if (!amount_add(fee, d->head.base_fee, &fee))
            return d->net->fee_max;
    return fee;
}

static bool mark_broadcast(struct desk *d, int64_t id)
{
    DB_ARGS a = { 0 };
    OWNED char *ids = str_format("[%" PRId64 "]", id);
    arg_text(&a, ids);
    return db_wait(d->db, "relay_broadcast", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK;
}

/* Every endpoint gets it. Whatever they answer, only the chain tells whether it landed: a node that says "already known" or
 * "nonce too low" has as little a verdict as one that says nothing. */
static void broadcast(struct desk *d, int64_t id, const struct hash32 *hash, struct slice raw)
{
    FAILPOINT("settler-before-broadcast");
    struct rpc_answers r = rpc_wait_everywhere(d->rpc, (struct rpc_item){ "eth_sendRawTransaction",
                                                                         json_pack("[o]", rpc_hex(raw.p, raw.n)) });
    FAILPOINT("settler-after-broadcast");
    bool answered = false;
    for (size_t i = 0; i < r.n; i++) {
        answered = answered || r.a[i].rc != RPC_UNAVAILABLE;
        if (r.a[i].rc == RPC_ERROR)
            log_info("settler.node_says", "network=%s tx=%s says=%s", d->net->id, hash_text(hash).s,
                     r.a[i].message ? r.a[i].message : "");
    }
    rpc_answers_done(&r);
    if (answered)
        (void)mark_broadcast(d, id);
}

void desk_broadcast(struct desk *d, const struct db_rows *open, int i)
{
    struct hash32 hash;
    if (row_copy(open, i, "hash", hash.b, 32))
        broadcast(d, row_int(open, i, "id"), &hash, row_bytes(open, i, "raw"));
}

bool desk_send(struct desk *d, struct transaction *tx, const json_t *ids)
{
    BUF raw = { 0 };
    OWNED char *text = json_write(ids);
    struct hash32 hash;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    tx->chain_id = d->net->chain_id;
    tx->nonce = d->next_nonce;
    tx->max_fee = desk_fee(d);
    tx->max_tip = d->tip;
    if (!transaction_sign(tx, d->relayer, &raw, &hash))
        return false;
    arg_text(&a, d->net->id);
    arg_bytes(&a, d->relayer->address.b, 20);
    arg_bytes(&a, d->instance.b, 16);
    arg_int(&a, d->epoch);
    arg_int(&a, (int64_t)tx->nonce);
    arg_bytes(&a, hash.b, 32);
    arg_bytes(&a, raw.p, raw.n);
    arg_int(&a, (int64_t)tx->gas);
    arg_amount(&a, tx->max_fee);
    arg_amount(&a, tx->max_tip);
    arg_bytes(&a, tx->to.b, 20);
    arg_bytes(&a, tx->data.n > 0 ? tx->data.p : "", tx->data.n);
    arg_text(&a, text);
    arg_text(&a, d->by);
    FAILPOINT("settler-before-store");
    if (db_wait(d->db, "relay_store", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK || !row_is(rows, 0, "verdict", "stored")) {
        log_warn("settler.not_stored", "network=%s nonce=%" PRIu64 " verdict=%s", d->net->id, tx->nonce,
                 rows ? row_text(rows, 0, "verdict").p : "unavailable");
        d->owner = false;
        return false;
    }
    FAILPOINT("settler-after-store");
    d->next_nonce = (uint64_t)row_int(rows, 0, "next_nonce");
    d->open = true;
    log_info("settler.sent", "network=%s tx=%s nonce=%" PRIu64 " authorizations=%zu", d->net->id, hash_text(&hash).s, tx->nonce,
             json_array_size(ids));
    broadcast(d, row_int(rows, 0, "id"), &hash, (struct slice){ raw.p, raw.n });
    return true;
}

static bool send(struct desk *d, const struct parcel *p)
{
    BUF data = { 0 };
    struct transaction tx = { 0 };
    parcel_call(p, &tx.to, &data);
    tx.data = (struct slice){ data.p, data.n };
    if (!parcel_gas(d, p, &tx.to, &data, &tx.gas))
        return true;                             /* stays claimed for a while, then is tried again */
    JSON *ids = parcel_ids(p);
    return desk_send(d, &tx, ids);
}

/* ---- what is due ---- */

static bool can_pay_gas(struct desk *d, uint64_t gas)
{
    struct amount fee = desk_fee(d), cost = AMOUNT_ZERO, one = fee;
    bool dear = amount_cmp(fee, d->net->fee_max) > 0;
    for (; gas; gas >>= 1) {                     /* cost = fee * gas, checked */
        if ((gas & 1) && !amount_add(cost, one, &cost))
            return false;
        if (gas > 1 && !amount_add(one, one, &one))
            return false;
    }
    bool poor = amount_cmp(d->balance, cost) < 0;
    if (poor && !d->poor)
        log_error("settler.out_of_gas", "network=%s relayer=%s balance_wei=%s hint=authorizations wait; fund the relayer", d->net->id,
                  address_lower(&d->relayer->address).s, amount_text(d->balance).s);
    if (dear && !d->dear)
        log_warn("settler.fees_high", "network=%s fee_wei=%s", d->net->id, amount_text(fee).s);
    d->poor = poor;
    d->dear = dear;
    return !poor && !dear;
}

static int batch_size(const struct net *n)
{
    uint64_t gas = n->batch_gas_max ? n->batch_gas_max : GAS_MAX, fit = (gas - BATCH_GAS) / BATCH_GAS_EACH;
    unsigned most = n->batch_max < 500 ? n->batch_max : 500;
    return fit < 1 ? 1 : fit < most ? (int)fit : (int)most;
}

static void unclaim(struct desk *d, const struct db_rows *rows)
{
    struct parcel all = { .rows = rows };
    for (int i = 0; i < db_count(rows) && i < (int)COUNT(all.row); i++)
        all.row[all.n++] = i;
    JSON *ids = parcel_ids(&all);
    OWNED char *text = json_write(ids);
    DB_ARGS a = { 0 };
    arg_text(&a, text);
    (void)!db_wait(d->db, "authorizations_unclaim", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

static bool submit_claimed(struct desk *d, const struct db_rows *rows)
{
    int n = db_count(rows);
    struct parcel shared = { .rows = rows };
    OWNED struct address *payers = mem_new((size_t)n * sizeof *payers);
    OWNED bool *has_code = mem_new((size_t)n * sizeof *has_code);
    for (int i = 0; i < n; i++)
        (void)row_copy(rows, i, "payer", payers[i].b, 20);
    if (n > 1 && !code_wait(d->rpc, payers, (size_t)n, has_code)) {
        unclaim(d, rows);                        /* a payer may have become a contract since it was verified */
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (!has_code[i] && !row_bool(rows, i, "alone")) {
            shared.row[shared.n++] = i;
            continue;
        }
        struct parcel one = { .rows = rows, .row = { i }, .n = 1 };
        if (!send(d, &one))
            return false;
    }
    return shared.n == 0 || send(d, &shared);
}

bool desk_submit(struct desk *d)
{
    int limit = batch_size(d->net);
    if (!d->owner || !can_pay_gas(d, BATCH_GAS + BATCH_GAS_EACH))
        return false;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_int(&a, limit);
    arg_int(&a, CLAIM_S);
    arg_int(&a, (int64_t)(2 * d->net->block_time_ms + 1999) / 1000);
    if (db_wait(d->db, "authorizations_claim", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    if (db_count(rows) == 0)
        return true;
    FAILPOINT("settler-after-claim");
    if (!can_pay_gas(d, BATCH_GAS + BATCH_GAS_EACH * (uint64_t)db_count(rows))) {
        unclaim(d, rows);
        return false;
    }
    return submit_claimed(d, rows);
}
