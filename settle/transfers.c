/* What moved, for whoever scans: Transfers are read from the receipts of their transactions, many in one request, each
 * in a block of the chain as it is now. */
#include <malloc.h>
#include <string.h>

#include "base/json.h"
#include "chain/tempo_tx.h"
#include "settle/desk.h"
#include "settle/mpp_challenge.h"

enum { ITEMS_MAX = 50, SPAN_FIRST = 64, SPAN_MAX = 2000 };

/* One request: receipts, and the block of each, once. */
struct page {
    struct rpc_item items[ITEMS_MAX];
    const json_t *log[ITEMS_MAX];    /* of a receipt: a log of its transaction; NULL: a block */
    const char *number[ITEMS_MAX];   /* of a block */
    size_t block[ITEMS_MAX];         /* of a receipt: where its block is */
    size_t n;
};

struct reading {
    struct desk *d;
    transfer_wanted_fn *wanted;
    const void *arg;
    const struct receipt *receipt;   /* that is read now */
    const struct token *token;       /* likewise */
    uint64_t block_time;
    json_t *found;
};

/* NULL: it is not wanted. Else what was added, borrowed. */
static json_t *add(const struct reading *x, const struct auth_event *e, const struct address *asset, const struct hash32 *nonce)
{
    if (!x->wanted(x->arg, &e->from, &e->to))
        return NULL;
    json_t *f = json_object();
    json_set_bare(f, "tx", e->tx.b, 32);
    json_set_bare(f, "block_hash", e->block_hash.b, 32);
    json_set_bare(f, "asset", asset->b, 20);
    json_set_bare(f, "sender", e->from.b, 20);
    json_set_bare(f, "receiver", e->to.b, 20);
    if (nonce)
        json_set_bare(f, "nonce", nonce->b, 32);
    json_object_set_new(f, "amount", json_string(amount_text(e->value).s));
    json_object_set_new(f, "log_index", json_integer((json_int_t)e->log_index));
    json_object_set_new(f, "block", json_integer((json_int_t)e->block));
    json_object_set_new(f, "block_time", json_integer((json_int_t)x->block_time));
    json_array_append_new(x->found, f);
    return f;
}

static void found(void *arg, const struct auth_event *e, const struct hash32 *nonce)
{
    const struct reading *x = arg;
    (void)add(x, e, &x->token->address, nonce);
}

static bool is_ours(const struct net *n, const struct address *token)
{
    for (size_t i = 0; i < n->token_count; i++)
        if (address_eq(&n->tokens[i].address, token))
            return true;
    return false;
}

/* On Tempo: of our tokens, and of any where the memo names a challenge of ours. */
static void moved(void *arg, const struct tempo_moved *m)
{
    const struct reading *x = arg;
    const struct net *n = x->d->net;
    const struct auth_event e = { .kind = AUTH_EVENT_TRANSFER, .tx = x->receipt->tx, .block_hash = x->receipt->block_hash,
                                  .block = x->receipt->block, .log_index = m->log_index, .from = m->from, .to = m->to, .value = m->amount };
    const bool named = m->has_memo && mpp_memo_of_realm(&m->memo, slice_of(n->realm));
    json_t *f = named || is_ours(n, &m->token) ? add(x, &e, &m->token, NULL) : NULL;
    if (f && named)
        json_set_bare(f, "memo", m->memo.b, 32);
    else if (f && m->has_memo)
        json_set_bare(f, "mark", m->memo.b, 32);
    if (f && tempo_is_fee(m))
        json_object_set_new(f, "fee", json_true());
}

static bool read_receipt(struct reading *x, const struct receipt *r)
{
    bool ok = r->block <= x->d->final.number;
    x->receipt = r;
    if (ok && x->d->net->tempo)
        return tempo_each_moved(r, moved, x);
    for (size_t i = 0; ok && i < x->d->net->token_count; i++) {
        x->token = &x->d->net->tokens[i];
        ok = receipt_each_transfer(r, &x->token->address, NULL, found, x);
    }
    return ok;
}

/* What the many could not tell is asked for alone: nodes have been seen to deny a receipt for hours. */
static bool read_alone(struct reading *x, const json_t *log)
{
    SCOPE(receipt_done) struct receipt r = { .found = false };
    struct log_place place;
    return log_place_read(log, &place) && desk_landed(x->d, &place, &r, &x->block_time) && read_receipt(x, &r);
}

static bool read_answer(struct reading *x, const struct page *p, const struct rpc_answer *a, size_t i)
{
    SCOPE(receipt_done) struct receipt r = { .found = false };
    const struct rpc_answer *at = &a[p->block[i]];
    struct block b;
    if (a[i].rc != RPC_OK || !receipt_read(a[i].result, &r) || !r.found || at->rc != RPC_OK ||
        !block_read(at->result, &b) || !hash_eq(&b.hash, &r.block_hash))
        return read_alone(x, p->log[i]);
    x->block_time = b.time;
    return read_receipt(x, &r);
}

static bool ask_page(struct reading *x, struct page *p)
{
    struct rpc_answers r = quorum_wait(x->d, p->items, p->n);
    bool ok = true;
    for (size_t i = 0; ok && i < p->n; i++)
        ok = !p->log[i] || read_answer(x, p, r.a, i);
    rpc_answers_done(&r);
    p->n = 0;
    return ok;
}

static void page_add(struct page *p, const struct hash32 *tx, const json_t *log)
{
    const char *number = json_str(log, "blockNumber");
    size_t at = 0;
    while (at < p->n && (p->log[at] || strcmp(p->number[at], number) != 0))
        at++;
    if (at == p->n) {
        p->items[at] = (struct rpc_item){ "eth_getBlockByNumber", json_pack("[s, b]", number, 0) };
        p->log[at] = NULL;
        p->number[at] = number;
        p->n++;
    }
    p->items[p->n] = (struct rpc_item){ "eth_getTransactionReceipt", json_pack("[s]", hash_text(tx).s) };
    p->log[p->n] = log;
    p->block[p->n] = at;
    p->n++;
}

json_t *settler_transfers(struct desk *d, const json_t *logs, transfer_wanted_fn *wanted, const void *arg)
{
    JSON *list = json_array(), *seen = json_object();
    struct reading x = { .d = d, .wanted = wanted, .arg = arg, .found = list };
    struct page p = { .n = 0 };
    size_t i;
    json_t *log;
    bool ok = json_is_array(logs);
    json_array_foreach(logs, i, log)
    {
        struct log_place place;
        ok = ok && log_place_read(log, &place);
        if (!ok || json_object_get(seen, hash_text(&place.tx).s))
            continue;
        json_object_set_new(seen, hash_text(&place.tx).s, json_true());
        page_add(&p, &place.tx, log);
        ok = p.n + 2 <= ITEMS_MAX || ask_page(&x, &p);
    }
    ok = ok && (p.n == 0 || ask_page(&x, &p));
    return ok ? MOVE(list) : NULL;
}

uint64_t settler_span(uint64_t span, bool ok, size_t logs)
{
    if (span == 0)
        return SPAN_FIRST;
    if (logs > SETTLER_LOGS_MOST)
        malloc_trim(0); /* what so large a reply took is not needed again */
    if (!ok)
        return span > 1 ? span / 2 : 1;
    return 2 * logs > SETTLER_LOGS_MOST || span >= SPAN_MAX ? span : span * 2 < SPAN_MAX ? span * 2 : SPAN_MAX;
}
