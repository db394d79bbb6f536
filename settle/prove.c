/* From mined to proven. A transaction of ours is read from the chain, each authorization in it is judged by its own logs,
 * and what they say is committed together with the waking of whoever waits. */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "settle/desk.h"

enum { AGAIN_S = 10 };               /* the same bytes are sent again when nothing was seen of them for so long */

bool desk_proves(const struct auth_event *e, const struct db_rows *rows, int i)
{
    struct address payer, payee;
    return e->kind == AUTH_EVENT_TRANSFER && row_copy(rows, i, "payer", payer.b, 20) && row_copy(rows, i, "payee", payee.b, 20) &&
           address_eq(&e->from, &payer) && address_eq(&e->to, &payee) && amount_cmp(e->value, row_amount(rows, i, "amount")) == 0;
}

void desk_add_proof(json_t *proofs, int64_t authorization, const struct auth_event *e, uint64_t block_time)
{
    json_t *p = json_object();
    json_object_set_new(p, "id", json_integer(authorization));
    json_set_bare(p, "tx", e->tx.b, 32);
    json_set_bare(p, "block_hash", e->block_hash.b, 32);
    json_object_set_new(p, "log_index", json_integer((json_int_t)e->log_index));
    json_object_set_new(p, "block", json_integer((json_int_t)e->block));
    json_object_set_new(p, "block_time", json_integer((json_int_t)block_time));
    json_array_append_new(proofs, p);
}

bool desk_record(struct desk *d, json_t *proofs, json_t *mined, json_t *unpaid)
{
    JSON *o = json_object();
    size_t proven = json_array_size(proofs), left = json_array_size(unpaid);
    json_object_set_new(o, "network", json_string(d->net->id));
    json_object_set_new(o, "by", json_loads(d->by, 0, NULL));
    json_object_set_new(o, "proofs", proofs ? proofs : json_array());
    json_object_set_new(o, "mined", mined ? mined : json_array());
    json_object_set_new(o, "unpaid", unpaid ? unpaid : json_array());
    OWNED char *text = json_write(o);
    DB_ARGS a = { 0 };
    arg_text(&a, text);
    FAILPOINT("settler-before-proof");
    if (db_wait(d->db, "proofs_record", &a, clock_mono_ms() + DESK_DB_MS, NULL) != DB_OK)
        return false;
    FAILPOINT("settler-after-proof");
    log_info("settler.proven", "network=%s block=%" PRIu64 " proofs=%zu unpaid=%zu", d->net->id, d->head.number, proven, left);
    return true;
}

/* ---- receipts of what is open ---- */

static bool read_open(struct desk *d, struct db_rows **ret)
{
    DB_ARGS a = { 0 };
    arg_text(&a, d->net->id);
    arg_bytes(&a, d->relayer->address.b, 20);
    return db_wait(d->db, "relay_open", &a, clock_mono_ms() + DESK_DB_MS, ret) == DB_OK;
}

static void read_receipts(struct desk *d, const struct db_rows *open, struct mined *m)
{
    size_t n = (size_t)db_count(open);
    OWNED struct rpc_item *items = mem_new(n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        struct slice hash = row_bytes(open, (int)i, "hash");
        items[i] = (struct rpc_item){ "eth_getTransactionReceipt", json_pack("[o]", rpc_hex(hash.p, hash.n)) };
    }
    struct rpc_answers r = quorum_wait(d, items, n);
    for (size_t i = 0; i < n; i++)
        if (r.a[i].rc == RPC_OK && receipt_read(r.a[i].result, &m[i].receipt))
            m[i].absent = !m[i].receipt.found;
    rpc_answers_done(&r);
}

/* The receipt's block must be the one that the chain has at that height; its time dates the payment. */
static void read_blocks(struct desk *d, struct mined *m, size_t n)
{
    OWNED struct rpc_item *items = mem_new(n * sizeof *items);
    OWNED size_t *who = mem_new(n * sizeof *who);
    size_t asked = 0;
    for (size_t i = 0; i < n; i++) {
        const struct receipt *r = &m[i].receipt;
        if (!r->found || !desk_deep(d, r->block))
            continue;
        if (r->block == d->head.number) {
            m[i].usable = hash_eq(&r->block_hash, &d->head.hash);
            m[i].block_time = d->head.time;
            continue;
        }
        items[asked] = (struct rpc_item){ "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64(r->block), 0) };
        who[asked++] = i;
    }
    if (asked == 0)
        return;
    struct rpc_answers r = quorum_wait(d, items, asked);
    for (size_t i = 0; i < asked; i++) {
        struct mined *x = &m[who[i]];
        struct block b;
        x->usable = r.a[i].rc == RPC_OK && block_read(r.a[i].result, &b) && hash_eq(&b.hash, &x->receipt.block_hash);
        x->block_time = x->usable ? b.time : 0;
    }
    rpc_answers_done(&r);
}

/* ---- verdicts ---- */

static const struct mined *mined_of(const struct db_rows *open, const struct mined *m, int64_t transaction)
{
    for (int i = 0; i < db_count(open); i++)
        if (row_int(open, i, "id") == transaction)
            return &m[i];
    return NULL;
}

/* Mined with its own Transfer: proven. Mined without its event: it was not carried out, so it may go again, alone. Mined with
 * an event that pays somebody else, or a cancellation: the resolver ends it, at a final block. */
static void judge(const struct db_rows *open, const struct mined *m, const struct db_rows *auths, int i, json_t *proofs, json_t *unpaid)
{
    const struct mined *x = mined_of(open, m, row_int(auths, i, "transaction_id"));
    struct auth_key key;
    struct auth_event e;
    if (!x || !x->usable)
        return;
    desk_key(auths, i, &key);
    if (!x->receipt.success || !receipt_find(&x->receipt, &key.asset, &key.payer, &key.nonce, &e))
        json_array_append_new(unpaid, json_integer(row_int(auths, i, "id")));
    else if (desk_proves(&e, auths, i))
        desk_add_proof(proofs, row_int(auths, i, "id"), &e, x->block_time);
}

static json_t *mined_list(const struct db_rows *open, const struct mined *m)
{
    json_t *list = json_array();
    for (int i = 0; i < db_count(open); i++) {
        if (!m[i].usable)
            continue;
        json_t *o = json_object();
        json_object_set_new(o, "id", json_integer(row_int(open, i, "id")));
        json_object_set_new(o, "block", json_integer((json_int_t)m[i].receipt.block));
        json_set_bare(o, "block_hash", m[i].receipt.block_hash.b, 32);
        json_array_append_new(list, o);
    }
    return list;
}

static bool record_mined(struct desk *d, const struct db_rows *open, const struct mined *m)
{
    JSON *mined = mined_list(open, m);
    if (json_array_size(mined) == 0)
        return true;
    JSON *ids = json_array();
    size_t i;
    json_t *one;
    json_array_foreach(mined, i, one)
        json_array_append(ids, json_object_get(one, "id"));
    OWNED char *text = json_write(ids);
    DB_ARGS a = { 0 };
    DB_ROWS *auths = NULL;
    arg_text(&a, text);
    if (db_wait(d->db, "relay_authorizations", &a, clock_mono_ms() + DESK_DB_MS, &auths) != DB_OK)
        return false;
    json_t *proofs = json_array(), *unpaid = json_array();
    for (int row = 0; row < db_count(auths); row++)
        judge(open, m, auths, row, proofs, unpaid);
    return desk_record(d, proofs, MOVE(mined), unpaid);
}

bool desk_mined(struct desk *d, const struct receipt *r, uint64_t block_time)
{
    DB_ROWS *open = NULL;
    if (!d->owner || !desk_deep(d, r->block) || !read_open(d, &open))
        return false;
    size_t n = (size_t)db_count(open);
    OWNED struct mined *m = mem_new(n * sizeof *m);
    bool ours = false;
    for (size_t i = 0; i < n; i++) {
        struct hash32 hash;
        if (row_copy(open, (int)i, "hash", hash.b, 32) && hash_eq(&hash, &r->tx)) {
            m[i] = (struct mined){ .receipt = *r, .block_time = block_time, .usable = true };
            ours = true;
        }
    }
    return ours && record_mined(d, open, m);
}

/* Never sent, or nothing seen of it for a while: the very same bytes again. */
static void send_again(struct desk *d, const struct db_rows *open, const struct mined *m)
{
    for (int i = 0; i < db_count(open); i++) {
        bool recent = !row_null(open, i, "age_s") && row_int(open, i, "age_s") < AGAIN_S;
        if (m[i].receipt.found || recent || !row_bool(open, i, "newest"))
            continue;
        desk_broadcast(d, open, i);
    }
}

bool desk_prove(struct desk *d)
{
    int64_t now = clock_mono_ms();
    if (!d->owner || !d->open || (!d->new_head && now < d->open_at_ms))
        return true;
    d->open_at_ms = now + 1000;
    DB_ROWS *open = NULL;
    if (!read_open(d, &open))
        return false;
    size_t n = (size_t)db_count(open);
    d->open = n > 0;
    if (n == 0)
        return true;
    OWNED struct mined *m = mem_new(n * sizeof *m);
    read_receipts(d, open, m);
    read_blocks(d, m, n);
    bool ok = record_mined(d, open, m);
    send_again(d, open, m);
    desk_unstick(d, open, m);
    desk_fill_gap(d, open);
    for (size_t i = 0; i < n; i++)
        receipt_done(&m[i].receipt);
    return ok;
}
