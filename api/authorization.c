/* "Did you take my money?" One authorization, by what identifies it (its nonce; on Tempo the transaction's hash): settled,
 * void, expired, or possible until a time, with the block that says so, signed. And the keys that this and receipts are
 * signed with. */
#include <inttypes.h>
#include <string.h>

#include "api/gateway.h"
#include "base/clock.h"
#include "base/json.h"
#include "receipts/receipts.h"

enum { READ_MS = 5000, TOKENS_MAX = 16 };
static const uint64_t LATEST = 253402300799; /* the year 9999 */

struct question {
    const struct net *net;
    struct address payer;
    struct hash32 nonce; /* on Tempo: the transaction's hash */
    json_t *answer;      /* NULL: not known */
    const struct seat *seat;
    int64_t final, scanned, head;
    int64_t valid_before, block_time; /* as whoever asks has signed it, 0: not said; of the block `scanned` */
    bool known, unavailable, used, unread, others;
};

/* ---- keys ---- */

struct step keys_begin(struct request *rq)
{
    const struct gateway *g = request_app(rq);
    JSON *keys = json_array();
    if (g->has_receipt_key)
        json_array_append_new(keys, json_pack("{s:s, s:s, s:s}", "address", address_checksum(&g->receipt_key.address).s,
                                              "use", "receipts", "status", "current"));
    for (size_t i = 0; i < g->config->receipt_signer_count; i++)
        json_array_append_new(keys, json_pack("{s:s, s:s, s:s}", "address", g->config->receipt_signers[i], "use",
                                              "receipts", "status", "retired"));
    JSON *o = json_pack("{s:s, s:O}", "issuer", g->config->public_url, "keys", keys);
    struct reply *r = reply_new(200);
    reply_json(r, NULL, o);
    reply_header(r, "Cache-Control", "public, max-age=300");
    return request_reply(rq, r);
}

/* ---- the answer ---- */

static json_t *begin_answer(const struct question *q)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "network", q->net->id, "payer", address_checksum(&q->payer).s,
                     q->net->tempo ? "transaction" : "nonce", hash_text(&q->nonce).s, "issued_at",
                     time_iso(clock_wall_s()).s);
}

static void conclude(json_t *o, const char *status, int64_t block, bool final, const char *why)
{
    json_object_set_new(o, "status", json_string(status));
    json_object_set_new(o, "block", json_integer(block));
    json_object_set_new(o, "final", json_boolean(final));
    json_object_set_new(o, "why", json_string(why));
}

static void set_until(json_t *o, const struct question *q, int64_t dead_after)
{
    json_object_set_new(o, "until", json_string(time_iso(seat_known_by(q->seat, dead_after).at).s));
}

/* What our own proofs say of an authorization that was presented here, or of money that came in under its nonce. */
static void from_books(struct question *q, const struct db_rows *rows)
{
    const char *state = row_text(rows, 0, "state").p;
    struct order_id receipt;
    q->head = row_int(rows, 0, "head");
    q->final = row_int(rows, 0, "final");
    q->scanned = row_null(rows, 0, "scanned") ? -1 : row_int(rows, 0, "scanned");
    q->known = state != NULL;
    if (!state)
        return;
    json_t *o = q->answer = begin_answer(q);
    json_set_hex(o, "transaction", row_bytes(rows, 0, "tx"));
    if (row_copy(rows, 0, "receipt", receipt.b, sizeof receipt.b))
        json_object_set_new(o, "receipt_id", json_string(receipt_id_text(&receipt).s));
    if (strcmp(state, "settled") == 0) {
        const int64_t block = row_int(rows, 0, "block");
        conclude(o, "settled", block, block <= q->final,
                 row_null(rows, 0, "receipt") ? "the money came in and belongs to no call known here"
                                              : "the money came in; the receipt says what became of it");
    } else if (row_bool(rows, 0, "ended")) {
        conclude(o, state, q->final, true,
                 row_null(rows, 0, "why") ? "proven on the chain" : row_text(rows, 0, "why").p);
    } else {
        conclude(o, "possible", q->head, false,
                 strcmp(state, "released") == 0
                     ? "it was set aside and will not be sent from here; whoever saw it can still send it"
                     : "it is not decided yet");
        set_until(o, q, row_int(rows, 0, "dead_after"));
    }
}

static struct step reply_answer(struct request *rq, json_t *answer)
{
    const struct gateway *g = request_app(rq);
    JSON *o = answer;
    record_sign(o, g->has_receipt_key ? &g->receipt_key : NULL);
    struct reply *r = reply_new(200);
    reply_json(r, NULL, o);
    reply_header(r, "Cache-Control", "no-store");
    return request_reply(rq, r);
}

/* ---- one that is not known here: the token's own flag, at a final block up to which every transfer to us is known ---- */

/* How that is said: of the flag, or of a transaction. */
struct words {
    const char *used, *expired, *possible;
};
static const struct words of_flag = {
    "it was used or cancelled, and no money of it came to this seller",
    "it was unused at a final block whose time is at or past its validBefore",
    "it is unused, and was not presented here; it can be used until its own validBefore",
};
static const struct words of_transaction = {
    "it was mined, and no money of it came to this seller",
    "no money of it came to this seller up to a final block whose time is at or past its valid_before",
    "no money of it came to this seller yet; it can be mined until its own valid_before",
};

/* Only who signed it knows its validBefore; what is said of it stands in what is signed. */
static void from_flag(json_t *o, const struct question *q)
{
    const struct words *say = q->net->tempo ? &of_transaction : &of_flag;
    if (q->valid_before)
        json_object_set_new(o, "valid_before", json_string(time_iso(q->valid_before).s));
    json_object_set_new(o, "block_time", json_string(time_iso(q->block_time).s));
    if (q->used) {
        conclude(o, "void", q->scanned, true, say->used);
    } else if (q->valid_before && q->block_time >= q->valid_before) {
        conclude(o, "expired", q->scanned, true, say->expired);
    } else {
        conclude(o, "possible", q->scanned, true, say->possible);
        if (q->valid_before)
            set_until(o, q, q->valid_before);
    }
}

static struct step from_chain(struct request *rq)
{
    struct question *q = request_memory(rq, sizeof *q);
    if (q->unread)
        return request_reply(rq, reply_problem(rq, ERR_CHAIN_UNAVAILABLE, NULL, NULL));
    if (q->others)
        return request_reply(rq, reply_problem(rq, ERR_NOT_FOUND, "Somebody else sent this transaction.", NULL));
    json_t *o = begin_answer(q);
    from_flag(o, q);
    return reply_answer(rq, o);
}

/* Mined up to the block that was scanned: used. */
static void have_mined(void *arg, const struct rpc_answer *answers, size_t n)
{
    struct question *q = request_memory(arg, sizeof *q);
    SCOPE(receipt_done) struct receipt r = { .found = false };
    struct block b;
    q->unread = n != 2 || answers[0].rc != RPC_OK || !receipt_read(answers[0].result, &r) || answers[1].rc != RPC_OK ||
                !block_read(answers[1].result, &b);
    if (!q->unread) {
        q->block_time = (int64_t)b.time;
        q->used = r.found && r.block <= (uint64_t)q->scanned;
        q->others = r.found && r.has_from && !address_eq(&r.from, &q->payer);
    }
    request_go(arg, from_chain);
}

static void have_flags(void *arg, const struct rpc_answer *answers, size_t n)
{
    struct question *q = request_memory(arg, sizeof *q);
    struct block b;
    q->unread = answers[n - 1].rc != RPC_OK || !block_read(answers[n - 1].result, &b);
    q->block_time = q->unread ? 0 : (int64_t)b.time;
    for (size_t i = 0; i + 1 < n; i++) {
        size_t size = 0;
        OWNED uint8_t *flag = answers[i].rc == RPC_OK ? rpc_read_data(answers[i].result, &size) : NULL;
        q->unread = q->unread || !flag || size != 32;
        q->used = q->used || (flag && size == 32 && flag[31]);
    }
    request_go(arg, from_chain);
}

static struct step ask_receipt(struct request *rq, struct question *q)
{
    struct rpc_item items[] = {
        { "eth_getTransactionReceipt", json_pack("[s]", hash_text(&q->nonce).s) },
        { "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64((uint64_t)q->scanned), 0) },
    };
    rpc_start(q->seat->rpc, items, COUNT(items), have_mined, rq);
    return request_wait(rq);
}

static struct step ask_flags(struct request *rq, struct question *q)
{
    struct gateway *g = request_app(rq);
    struct rpc_item items[TOKENS_MAX + 1];
    const struct state_call call = state_call(&q->payer, &q->nonce);
    const size_t n = q->net->token_count < TOKENS_MAX ? q->net->token_count : TOKENS_MAX;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rpc_item){ "eth_call",
                                      json_pack("[{s:s, s:o}, o]", "to", address_lower(&q->net->tokens[i].address).s,
                                                "data", rpc_hex(call.b, sizeof call.b), rpc_u64((uint64_t)q->scanned)) };
    items[n] = (struct rpc_item){ "eth_getBlockByNumber", json_pack("[o, b]", rpc_u64((uint64_t)q->scanned), 0) };
    rpc_start(gateway_seat(g, q->net)->rpc, items, n + 1, have_flags, rq);
    return request_wait(rq);
}

static struct step have_books(struct request *rq)
{
    struct question *q = request_memory(rq, sizeof *q);
    if (q->unavailable)
        return request_reply(rq, reply_problem(rq, ERR_STORE_UNAVAILABLE, NULL, NULL));
    if (q->known)
        return reply_answer(rq, MOVE(q->answer));
    if (q->scanned < 0)
        return request_reply(rq, reply_problem(rq, ERR_CHAIN_UNAVAILABLE, "This network was not read yet.", NULL));
    return q->net->tempo ? ask_receipt(rq, q) : ask_flags(rq, q);
}

static void have_row(void *arg, enum db_rc rc, const struct db_rows *rows)
{
    struct question *q = request_memory(arg, sizeof *q);
    q->unavailable = rc != DB_OK || db_count(rows) == 0;
    if (!q->unavailable)
        from_books(q, rows);
    request_go(arg, have_books);
}

static bool read_question(const struct gateway *g, struct slice path, struct question *q)
{
    static const char prefix[] = "/authorizations/";
    const char *network = path.p + sizeof prefix - 1, *end = path.p + path.n;
    const char *payer = memchr(network, '/', (size_t)(end - network));
    const char *nonce = payer ? memchr(payer + 1, '/', (size_t)(end - payer - 1)) : NULL;
    if (!nonce)
        return false;
    q->net = gateway_net(g, (struct slice){ network, (size_t)(payer - network) });
    return q->net && address_read(payer + 1, (size_t)(nonce - payer - 1), &q->payer) &&
           hash_read(nonce + 1, (size_t)(end - nonce - 1), &q->nonce);
}

/* ?valid_before=T, unix seconds; nothing else. */
static bool read_deadline(struct slice query, struct question *q)
{
    static const char name[] = "valid_before=";
    const size_t n = sizeof name - 1;
    struct amount t;
    if (query.n == 0)
        return true;
    if (query.n <= n || memcmp(query.p, name, n) != 0 || !amount_read(query.p + n, query.n - n, &t) ||
        amount_u64_cap(t) > LATEST)
        return false;
    q->valid_before = (int64_t)amount_u64_cap(t);
    return true;
}

static char *assets_text(const struct net *n)
{
    JSON *list = json_array();
    for (size_t i = 0; i < n->token_count; i++)
        json_array_append_new(list, json_string(address_lower(&n->tokens[i].address).s + 2));
    return json_write(list);
}

struct step authorization_begin(struct request *rq, struct slice path)
{
    struct gateway *g = request_app(rq);
    struct question *q = request_memory(rq, sizeof *q);
    DB_ARGS a = { 0 };
    if (!read_question(g, path, q))
        return request_reply(
            rq, reply_problem(rq, ERR_NOT_FOUND,
                              "Ask for /authorizations/{network}/{payer}/{nonce}, on Tempo with the transaction's hash.", NULL));
    if (!read_deadline(request_query(rq), q))
        return request_reply(
            rq, reply_problem(rq, ERR_BAD_REQUEST, "The query may be ?valid_before= and unix seconds.", NULL));
    OWNED char *assets = assets_text(q->net);
    q->seat = gateway_seat(g, q->net);
    arg_text(&a, q->net->id);
    if (!q->net->tempo)
        arg_text(&a, assets);
    arg_bytes(&a, q->payer.b, 20);
    arg_bytes(&a, q->nonce.b, 32);
    db_call(g->db, q->net->tempo ? "charge_read" : "authorization_read", &a, clock_mono_ms() + READ_MS, have_row, rq);
    return request_wait(rq);
}
