/* The chain as the auditor sees it: logs only, by a reader that shares nothing with the settler's. */
#include <string.h>

#include "refunds/audit.h"
#include "settle/keyed.h"

enum { SPAN_MAX = 2000, MEMO_TAG = 5, MEMO_REALM = 10 };

/* What belongs together in a transaction: AuthorizationUsed(wallet, nonce) and the token's next log, or a Transfer and
 * TransferWithMemo right behind it. */
struct used {
    struct hash32 tx, nonce;
    uint64_t log_index;
    struct address asset;
};

static size_t slot_of(const struct seen_list *l, const struct hash32 *tx, uint64_t log_index)
{
    uint64_t h;
    memcpy(&h, tx->b, sizeof h);
    size_t i = (size_t)(h ^ (log_index * 0x9e3779b97f4a7c15u)) & (l->slots - 1);
    while (l->slot[i]) {
        const struct seen *s = &l->of[l->slot[i] - 1];
        if (s->log_index == log_index && hash_eq(&s->tx, tx))
            break;
        i = (i + 1) & (l->slots - 1);
    }
    return i;
}

static void grow(struct seen_list *l)
{
    l->room = l->room ? 2 * l->room : 256;
    l->of = mem_resize(l->of, l->room, sizeof *l->of);
    free(l->slot);
    l->slots = 4 * l->room;
    l->slot = mem_new(l->slots * sizeof *l->slot);
    for (size_t i = 0; i < l->n; i++)
        l->slot[slot_of(l, &l->of[i].tx, l->of[i].log_index)] = i + 1;
}

static void keep(struct seen_list *l, const struct seen *s)
{
    if (l->n == l->room)
        grow(l);
    const size_t i = slot_of(l, &s->tx, s->log_index);
    if (l->slot[i])
        return;
    l->of[l->n++] = *s;
    l->slot[i] = l->n;
}

struct seen *audit_find(struct seen_list *l, const struct hash32 *tx, uint64_t log_index)
{
    const size_t i = l->slots ? slot_of(l, tx, log_index) : 0;
    return l->slots && l->slot[i] ? &l->of[l->slot[i] - 1] : NULL;
}

void seen_done(struct seen_list *l)
{
    free(l->of);
    free(l->slot);
}

/* `other`: the first topic may be that as well. */
static json_t *filter(const struct net *n, uint64_t from, uint64_t to, const struct hash32 *topic,
                      const struct hash32 *other, const struct address *first, const struct address *second)
{
    json_t *tokens = json_array(), *topics = json_array(), *kinds = json_array();
    for (size_t i = 0; i < n->token_count; i++)
        json_array_append_new(tokens, json_string(address_lower(&n->tokens[i].address).s));
    json_array_append_new(kinds, json_string(hash_text(topic).s));
    if (other)
        json_array_append_new(kinds, json_string(hash_text(other).s));
    json_array_append_new(topics, kinds);
    json_array_append_new(topics, first ? topic_of_address(first) : json_null());
    if (second)
        json_array_append_new(topics, topic_of_address(second));
    return json_pack("[{s:o, s:o, s:o, s:o}]", "fromBlock", rpc_u64(from), "toBlock", rpc_u64(to), "address", tokens,
                     "topics", topics);
}

/* Of any token, with a memo. */
static json_t *named_filter(uint64_t from, uint64_t to, const struct address *wallet)
{
    json_t *topics = json_pack("[s, n, o]", hash_text(&topic_transfer_with_memo).s, topic_of_address(wallet));
    return json_pack("[{s:o, s:o, s:o}]", "fromBlock", rpc_u64(from), "toBlock", rpc_u64(to), "topics", topics);
}

static bool read_transfer(const json_t *log, size_t topic_count, struct seen *ret)
{
    const json_t *topics = json_object_get(log, "topics");
    struct hash32 from, to;
    size_t n = 0;
    *ret = (struct seen){ 0 };
    if (!rpc_read_hash(json_object_get(log, "transactionHash"), &ret->tx) ||
        !rpc_read_u64(json_object_get(log, "logIndex"), &ret->log_index) ||
        !rpc_read_u64(json_object_get(log, "blockNumber"), &ret->block) ||
        !rpc_read_address(json_object_get(log, "address"), &ret->asset) || json_array_size(topics) != topic_count ||
        !rpc_read_hash(json_array_get(topics, 1), &from) || !rpc_read_hash(json_array_get(topics, 2), &to))
        return false;
    memcpy(ret->from.b, from.b + 12, 20);
    memcpy(ret->to.b, to.b + 12, 20);
    OWNED uint8_t *data = rpc_read_data(json_object_get(log, "data"), &n);
    if (!data || n != 32)
        return false;
    ret->amount = amount_from_be(data);
    return true;
}

static bool read_transfers(const struct rpc_answer *a, struct seen_list *ret)
{
    size_t i;
    json_t *log;
    if (a->rc != RPC_OK || !json_is_array(a->result))
        return false;
    json_array_foreach(a->result, i, log)
    {
        struct seen s;
        if (!read_transfer(log, 3, &s))
            return false;
        keep(ret, &s);
    }
    return true;
}

/* Where transfers carry memos, one of any token is ours to give back if its memo names us: the tag of such memos, then
 * the realm. It is told by the log right behind it. Under a realm that is ours no more it may be booked, and need not
 * be. */
static bool read_named(const struct net *n, const struct rpc_answer *a, struct seen_list *ret)
{
    static const uint8_t tag[MEMO_TAG] = { 0xef, 0x1e, 0xd7, 0x12, 0x01 };
    const struct hash32 realm = keccak256(n->realm, strlen(n->realm));
    size_t i;
    json_t *log;
    if (a->rc != RPC_OK || !json_is_array(a->result))
        return false;
    json_array_foreach(a->result, i, log)
    {
        struct seen s;
        struct hash32 memo;
        if (!read_transfer(log, 4, &s) || !rpc_read_hash(json_array_get(json_object_get(log, "topics"), 3), &memo))
            return false;
        if (s.log_index == 0 || !keyed_token(&s.asset) || memcmp(memo.b, tag, MEMO_TAG) != 0)
            continue;
        s.log_index--;
        s.optional = memcmp(memo.b + MEMO_TAG, realm.b, MEMO_REALM) != 0;
        keep(ret, &s);
    }
    return true;
}

/* The nonce of what left: the token logs AuthorizationUsed right before the Transfer, or TransferWithMemo right behind
 * it. */
static bool read_nonce(const json_t *log, struct used *ret)
{
    const json_t *topics = json_object_get(log, "topics");
    struct hash32 kind;
    if (!rpc_read_hash(json_object_get(log, "transactionHash"), &ret->tx) ||
        !rpc_read_u64(json_object_get(log, "logIndex"), &ret->log_index) ||
        !rpc_read_hash(json_array_get(topics, 0), &kind))
        return false;
    const bool behind = hash_eq(&kind, &topic_transfer_with_memo);
    ret->log_index += behind ? (uint64_t)-1 : 1;
    return rpc_read_hash(json_array_get(topics, behind ? 3 : 2), &ret->nonce);
}

static bool read_nonces(const struct rpc_answer *a, struct seen_list *l)
{
    size_t i;
    json_t *log;
    if (a->rc != RPC_OK || !json_is_array(a->result))
        return false;
    json_array_foreach(a->result, i, log)
    {
        struct used u;
        if (!read_nonce(log, &u))
            return false;
        struct seen *s = audit_find(l, &u.tx, u.log_index);
        if (s) {
            s->has_nonce = true;
            s->nonce = u.nonce;
        }
    }
    return true;
}

static bool read_range(struct rpc *rpc, const struct net *n, const struct audit_wallet *w, uint64_t from, uint64_t to,
                       struct seen_list *ret)
{
    struct rpc_item items[] = {
        { "eth_getLogs", filter(n, from, to, &topic_transfer, NULL, &w->address, NULL) },
        { "eth_getLogs", filter(n, from, to, &topic_transfer, NULL, NULL, &w->address) },
        { "eth_getLogs",
          filter(n, from, to, &topic_authorization_used, &topic_transfer_with_memo, &w->address, NULL) },
        { "eth_getLogs", keyed_network(n) ? named_filter(from, to, &w->address) : NULL },
    };
    struct rpc_answers r = rpc_wait(rpc, items, COUNT(items) - (keyed_network(n) ? 0 : 1));
    const bool ok = read_transfers(&r.a[0], ret) && read_transfers(&r.a[1], ret) && read_nonces(&r.a[2], ret) &&
                    (!keyed_network(n) || read_named(n, &r.a[3], ret));
    rpc_answers_done(&r);
    return ok;
}

bool audit_chain(struct rpc *rpc, const struct net *n, const struct audit_wallet *w, struct seen_list *ret)
{
    uint64_t span = SPAN_MAX;
    for (uint64_t from = w->start + 1; from <= w->block;) {
        const uint64_t to = w->block - from < span ? w->block : from + span - 1;
        if (read_range(rpc, n, w, from, to, ret)) {
            from = to + 1;
            span = span * 2 < SPAN_MAX ? span * 2 : SPAN_MAX;
        } else if (span == 1) {
            return false;
        } else {
            span /= 2;
        }
    }
    return true;
}
