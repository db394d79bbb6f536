#include <string.h>

#include "base/json.h"
#include "chain/internal.h"

bool block_read(const json_t *j, struct block *ret)
{
    struct block b = { .base_fee = AMOUNT_ZERO };
    const json_t *fee = json_object_get(j, "baseFeePerGas");
    if (fee && !rpc_read_amount(fee, &b.base_fee))
        return false;
    if (!rpc_read_u64(json_object_get(j, "number"), &b.number) ||
        !rpc_read_u64(json_object_get(j, "timestamp"), &b.time))
        return false;
    if (!rpc_read_hash(json_object_get(j, "hash"), &b.hash) ||
        !rpc_read_hash(json_object_get(j, "parentHash"), &b.parent))
        return false;
    *ret = b;
    return true;
}

/* ---- logs ---------------------------------------------------------------------------------------- */

bool log_read(const json_t *j, const struct receipt *r, struct log *ret)
{
    struct log log = { .data = json_object_get(j, "data") };
    struct hash32 tx, block;
    const json_t *topics = json_object_get(j, "topics");
    if (json_is_true(json_object_get(j, "removed")) || !json_is_array(topics) || !json_is_string(log.data))
        return false;
    if (!rpc_read_address(json_object_get(j, "address"), &log.address) ||
        !rpc_read_u64(json_object_get(j, "logIndex"), &log.index) ||
        !rpc_read_hash(json_object_get(j, "transactionHash"), &tx) ||
        !rpc_read_hash(json_object_get(j, "blockHash"), &block))
        return false;
    if (!hash_eq(&tx, &r->tx) || !hash_eq(&block, &r->block_hash))
        return false;
    log.topics = json_array_size(topics);
    if (log.topics > COUNT(log.topic))
        return false;
    for (size_t i = 0; i < log.topics; i++)
        if (!rpc_read_hash(json_array_get(topics, i), &log.topic[i]))
            return false;
    *ret = log;
    return true;
}

bool log_place_read(const json_t *log, struct log_place *ret)
{
    struct log_place p;
    if (!rpc_read_hash(json_object_get(log, "transactionHash"), &p.tx) ||
        !rpc_read_hash(json_object_get(log, "blockHash"), &p.block_hash) ||
        !rpc_read_u64(json_object_get(log, "blockNumber"), &p.block))
        return false;
    *ret = p;
    return true;
}

/* Many authorizations look for theirs in one receipt, so its logs are read once, up to the first that is malformed or out of order. */
static void logs_read(struct receipt *r)
{
    uint64_t least = 0;
    r->count = json_array_size(r->logs);
    r->log = mem_new((r->count + 1) * sizeof *r->log);
    while (r->good < r->count) {
        struct log *log = &r->log[r->good];
        if (!log_read(json_array_get(r->logs, r->good), r, log) || log->index < least)
            return;
        least = log->index + 1;
        r->good++;
    }
}

/* ---- receipts ------------------------------------------------------------------------------------ */

bool receipt_read(const json_t *j, struct receipt *ret)
{
    struct receipt r = { .found = true, .gas_price = AMOUNT_ZERO };
    uint64_t status;
    if (json_is_null(j)) {
        *ret = (struct receipt){ .found = false };
        return true;
    }
    const json_t *price = json_object_get(j, "effectiveGasPrice"), *from = json_object_get(j, "from");
    json_t *logs = json_object_get(j, "logs");
    if (!rpc_read_u64(json_object_get(j, "status"), &status) || status > 1 ||
        !rpc_read_u64(json_object_get(j, "blockNumber"), &r.block) ||
        !rpc_read_u64(json_object_get(j, "transactionIndex"), &r.tx_index) ||
        !rpc_read_u64(json_object_get(j, "gasUsed"), &r.gas_used) ||
        !rpc_read_hash(json_object_get(j, "transactionHash"), &r.tx) ||
        !rpc_read_hash(json_object_get(j, "blockHash"), &r.block_hash))
        return false;
    if ((price && !rpc_read_amount(price, &r.gas_price)) || (from && !rpc_read_address(from, &r.from)) ||
        !json_is_array(logs))
        return false;
    r.has_from = from != NULL;
    r.success = status == 1;
    r.logs = json_incref(logs);
    logs_read(&r);
    *ret = r;
    return true;
}

void receipt_done(struct receipt *r)
{
    json_decref(r->logs);
    free(r->log);
    r->logs = NULL;
    r->log = NULL;
}

bool receipt_of_logs(const json_t *logs, const struct hash32 *tx, const struct hash32 *block_hash, uint64_t block,
                     struct receipt *ret)
{
    struct receipt r = { .found = true, .success = true, .block = block, .tx = *tx, .block_hash = *block_hash };
    JSON *own = json_array();
    for (size_t i = 0; i < json_array_size(logs); i++) {
        json_t *log = json_array_get(logs, i);
        struct hash32 in, block_of_log;
        uint64_t index;
        if (!rpc_read_hash(json_object_get(log, "transactionHash"), &in) ||
            !rpc_read_hash(json_object_get(log, "blockHash"), &block_of_log) ||
            !rpc_read_u64(json_object_get(log, "logIndex"), &index))
            return false;
        if (index != i || !hash_eq(&block_of_log, block_hash))
            return false; /* what is left out might come between an event and its Transfer */
        if (hash_eq(&in, tx))
            json_array_append(own, log);
    }
    if (json_array_size(own) == 0)
        return false;
    r.logs = MOVE(own);
    logs_read(&r);
    *ret = r;
    return true;
}

struct hash32 topic_of(const struct address *a)
{
    struct hash32 h = { { 0 } };
    memcpy(h.b + 12, a->b, sizeof a->b);
    return h;
}

bool topic_address(const struct hash32 *h, struct address *ret)
{
    memcpy(ret->b, h->b + 12, sizeof ret->b);
    struct hash32 again = topic_of(ret);
    return hash_eq(&again, h);
}

bool log_is(const struct log *log, const struct hash32 *event)
{
    return log->topics > 0 && hash_eq(&log->topic[0], event);
}

bool log_amount(const struct log *log, struct amount *ret)
{
    size_t n;
    OWNED uint8_t *data = rpc_read_data(log->data, &n);
    if (!data || n != WORD)
        return false;
    *ret = amount_from_be(data);
    return true;
}

/* Fills in the Transfer. False: it calls itself one and is not. */
static bool transfer_read(const struct log *log, struct auth_event *e)
{
    if (log->topics != 3 || !topic_address(&log->topic[1], &e->from) || !topic_address(&log->topic[2], &e->to))
        return false;
    if (!log_amount(log, &e->value))
        return false;
    e->kind = AUTH_EVENT_TRANSFER;
    e->log_index = log->index;
    return true;
}

bool receipt_find(const struct receipt *r, const struct address *token, const struct address *payer,
                  const struct hash32 *nonce, struct auth_event *ret)
{
    struct auth_event e = {
        .kind = AUTH_EVENT_NO_TRANSFER, .tx = r->tx, .block_hash = r->block_hash, .block = r->block
    };
    struct hash32 who = topic_of(payer);
    bool seen = false;
    if (!r->found || !r->success)
        return false;
    for (size_t i = 0; i < r->count; i++) {
        const struct log *log = &r->log[i];
        if (i == r->good)
            return false; /* the order is part of the proof */
        if (!address_eq(&log->address, token))
            continue;
        if (seen) {
            if (log_is(log, &topic_transfer) && !transfer_read(log, &e))
                return false;
            *ret = e;
            return true;
        }
        bool used = log_is(log, &topic_authorization_used);
        if (!used && !log_is(log, &topic_authorization_canceled))
            continue;
        if (log->topics != 3 || !hash_eq(&log->topic[1], &who) || !hash_eq(&log->topic[2], nonce))
            continue;
        e.event_index = e.log_index = log->index;
        if (!used) {
            e.kind = AUTH_EVENT_CANCELED;
            *ret = e;
            return true;
        }
        seen = true;
    }
    if (seen)
        *ret = e;
    return seen;
}

static json_t *hash_json(const struct hash32 *h)
{
    return rpc_hex(h->b, sizeof h->b);
}

json_t *logs_of_nonce(const struct address *token, const struct address *payer, const struct hash32 *nonce,
                      uint64_t from_block, uint64_t to_block)
{
    struct hash32 who = topic_of(payer);
    json_t *events = json_array(), *topics = json_array(), *filter = json_object(), *params = json_array();
    json_array_append_new(events, hash_json(&topic_authorization_used));
    json_array_append_new(events, hash_json(&topic_authorization_canceled));
    json_array_append_new(topics, events);
    json_array_append_new(topics, hash_json(&who));
    json_array_append_new(topics, hash_json(nonce));
    json_object_set_new(filter, "address", rpc_hex(token->b, sizeof token->b));
    json_object_set_new(filter, "fromBlock", rpc_u64(from_block));
    json_object_set_new(filter, "toBlock", rpc_u64(to_block));
    json_object_set_new(filter, "topics", topics);
    json_array_append_new(params, filter);
    return params;
}

bool receipt_each_transfer(const struct receipt *r, const struct address *token, const struct address *to,
                           transfer_fn *fn, void *arg)
{
    const struct log *before = NULL;
    if (!r->found || !r->success)
        return false;
    for (size_t i = 0; i < r->count; i++) {
        const struct log *log = &r->log[i];
        if (i == r->good)
            return false;
        if (!address_eq(&log->address, token))
            continue;
        struct auth_event e = {
            .kind = AUTH_EVENT_NO_TRANSFER, .tx = r->tx, .block_hash = r->block_hash, .block = r->block
        };
        if (log_is(log, &topic_transfer) && transfer_read(log, &e) && (!to || address_eq(&e.to, to))) {
            struct hash32 from = topic_of(&e.from);
            bool belongs = before && log_is(before, &topic_authorization_used) && before->topics == 3 &&
                           hash_eq(&before->topic[1], &from);
            fn(arg, &e, belongs ? &before->topic[2] : NULL);
        }
        before = log;
    }
    return true;
}
