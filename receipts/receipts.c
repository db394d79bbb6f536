#include "receipts/receipts.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "receipts/words.h"

/* Setting a member that the row does not have leaves it out: absent says "not yet", null says nothing. */
static void set_text(json_t *o, const char *key, struct slice s)
{
    if (s.p)
        json_object_set_new(o, key, json_of_slice(s));
}

static void set_int(json_t *o, const char *key, const struct db_rows *r, int row, const char *column)
{
    if (!row_null(r, row, column))
        json_object_set_new(o, key, json_integer(row_int(r, row, column)));
}

static void set_time(json_t *o, const char *key, const struct db_rows *r, int row, const char *column)
{
    if (!row_null(r, row, column))
        json_object_set_new(o, key, json_string(time_iso(row_int(r, row, column)).s));
}

/* A column that holds JSON of the database's own making. */
static void set_parsed(json_t *o, const char *key, const struct db_rows *r, int row, const char *column)
{
    struct json_why why;
    const struct slice text = row_text(r, row, column);
    json_t *j = text.p ? json_read(text.p, text.n, &why) : NULL;
    if (j)
        json_object_set_new(o, key, j);
}

static char *public_id(const char *prefix, const struct db_rows *r, int row, const char *column)
{
    char hex[33];
    struct slice id = row_bytes(r, row, column);
    hex_write_bare(hex, id.p, id.n);
    return str_format("%s%s", prefix, hex);
}

static void set_url(json_t *o, const char *key, const struct receipt_links *l, const char *kind, const char *id)
{
    OWNED char *url = str_format("%s/%s/%s", l->public_url, kind, id);
    json_object_set_new(o, key, json_string(url));
}

/* Blocks on top of the payment's own, that one counted; and whether the chain calls it final. */
static void set_depth(json_t *o, const struct db_rows *r, int row)
{
    int64_t block = row_int(r, row, "block"), head = row_int(r, row, "head");
    json_object_set_new(o, "depth", json_integer(head >= block ? head - block + 1 : 1));
    json_object_set_new(o, "final", json_boolean(row_int(r, row, "final") >= block));
}

static bool undecided(const struct db_rows *r, int row)
{
    return row_null(r, row, "money_ended");
}

static void set_known_by(json_t *o, const struct db_rows *r, int row, const struct receipt_links *l)
{
    if (l->known_by && undecided(r, row)) {
        json_object_set_new(o, "final", json_false());
        json_object_set_new(o, "known_by", json_string(time_iso(l->known_by).s));
        set_text(o, "known_by_note", slice_of(l->known_by_note));
    }
}

json_t *order_json(const struct db_rows *r, int row, const struct receipt_links *l)
{
    json_t *o = json_object();
    OWNED char *order = public_id("ord_", r, row, "id"), *receipt = public_id("rcp_", r, row, "receipt");
    json_object_set_new(o, "order_id", json_string(order));
    set_text(o, "status", row_text(r, row, "status"));
    set_text(o, "work", row_text(r, row, "work"));
    set_text(o, "money", row_text(r, row, "money"));
    set_text(o, "tool", row_text(r, row, "tool"));
    set_text(o, "payment_id", row_text(r, row, "payment_id"));
    set_time(o, "created_at", r, row, "created");
    set_time(o, "work_ended_at", r, row, "work_ended");
    set_time(o, "settled_at", r, row, "block_time");
    set_text(o, "network", row_text(r, row, "network"));
    json_set_hex(o, "asset", row_bytes(r, row, "asset"));
    json_set_hex(o, "payer", row_bytes(r, row, "payer"));
    json_set_hex(o, "payee", row_bytes(r, row, "payee"));
    set_text(o, "amount", row_text(r, row, "amount"));
    json_set_hex(o, "request_digest", row_bytes(r, row, "request"));
    json_set_hex(o, "answer_digest", row_bytes(r, row, "answer_digest"));
    json_set_hex(o, "transaction", row_bytes(r, row, row_null(r, row, "tx") ? "last_hash" : "tx"));
    set_int(o, "block", r, row, "block");
    set_text(o, "note", row_text(r, row, "note"));
    set_known_by(o, r, row, l);
    if (!row_null(r, row, "tx"))
        set_depth(o, r, row);
    if (row_is(r, row, "status", "processing") || row_is(r, row, "status", "settling"))
        json_object_set_new(o, "retry_after", json_integer(2));
    set_parsed(o, "refunds", r, row, "refunds");
    json_object_set_new(o, "answer_ready",
                        json_boolean(row_is(r, row, "status", "paid") && row_bool(r, row, "answer_kept")));
    json_object_set_new(o, "receipt_id", json_string(receipt));
    set_url(o, "receipt", l, "receipts", receipt);
    return o;
}

static json_t *request_json(const struct db_rows *r, int row)
{
    json_t *o = json_object();
    set_text(o, "tool", row_text(r, row, "tool"));
    set_text(o, "side_effect", row_text(r, row, "side_effect"));
    set_text(o, "method", row_text(r, row, "method"));
    json_set_hex(o, "digest", row_bytes(r, row, "request"));
    return o;
}

static json_t *payment_json(const struct db_rows *r, int row)
{
    json_t *o = json_object();
    set_text(o, "rail", row_text(r, row, "rail"));
    set_text(o, "network", row_text(r, row, "network"));
    json_set_hex(o, "asset", row_bytes(r, row, "asset"));
    set_text(o, "amount", row_text(r, row, "amount"));
    json_set_hex(o, "payer", row_bytes(r, row, "payer"));
    json_set_hex(o, "payee", row_bytes(r, row, "payee"));
    json_set_hex(o, "nonce", row_bytes(r, row, "nonce"));
    set_time(o, "valid_before", r, row, "valid_before");
    set_text(o, "state", row_text(r, row, "money"));
    json_set_hex(o, "transaction", row_bytes(r, row, row_null(r, row, "tx") ? "last_hash" : "tx"));
    set_int(o, "log_index", r, row, "log_index");
    set_int(o, "block", r, row, "block");
    json_set_hex(o, "block_hash", row_bytes(r, row, "block_hash"));
    set_time(o, "block_time", r, row, "block_time");
    if (!row_null(r, row, "tx"))
        set_depth(o, r, row);
    return o;
}

/* What people read, when it was written, and who says so: last, since the signature is over all of it. */
static void seal(json_t *o, const struct receipt_links *l)
{
    const json_t *payment = json_object_get(o, "payment");
    const char *tx = json_str(payment, "transaction"), *state = json_str(payment, "state");
    const int64_t now = clock_wall_s();
    OWNED char *headline = words_headline(o, l);
    json_object_set_new(o, "headline", json_string(headline));
    json_object_set_new(o, "issued_at", json_string(time_iso(now).s));
    if (l->seller && *l->seller)
        json_object_set_new(o, "seller", json_string(l->seller));
    json_t *display = json_object();
    if (l->symbol) {
        json_object_set_new(display, "symbol", json_string(l->symbol));
        json_object_set_new(display, "decimals", json_integer((json_int_t)l->decimals));
    }
    if (l->explorer && *l->explorer)
        json_object_set_new(display, "explorer", json_string(l->explorer));
    json_object_set_new(o, "display", display);
    if (l->signer && state && strcmp(state, "settled") == 0)
        json_object_set_new(o, "x402_receipt",
                            x402_receipt(l->signer, json_str(payment, "network"), json_str(o, "self"),
                                         json_str(payment, "payer"), now, tx ? tx : ""));
    record_sign(o, l->signer);
}

json_t *receipt_json(const struct db_rows *r, int row, const struct receipt_links *l)
{
    json_t *o = json_object(), *answer = NULL;
    OWNED char *order = public_id("ord_", r, row, "id"), *receipt = public_id("rcp_", r, row, "receipt");
    json_object_set_new(o, "receipt_id", json_string(receipt));
    json_object_set_new(o, "order_id", json_string(order));
    set_text(o, "status", row_text(r, row, "status"));
    set_time(o, "created_at", r, row, "created");
    set_time(o, "work_ended_at", r, row, "work_ended");
    set_time(o, "delivered_at", r, row, "delivered");
    set_text(o, "payment_id", row_text(r, row, "payment_id"));
    json_object_set_new(o, "request", request_json(r, row));
    if (!row_null(r, row, "answer_status")) {
        answer = json_object();
        set_int(answer, "status", r, row, "answer_status");
        set_int(answer, "size", r, row, "answer_size");
        json_set_hex(answer, "digest", row_bytes(r, row, "answer_digest"));
        json_object_set_new(o, "answer", answer);
    }
    json_object_set_new(o, "payment", payment_json(r, row));
    set_parsed(o, "free_repeats", r, row, "free_repeats");
    set_parsed(o, "refunds", r, row, "refunds");
    set_parsed(o, "timeline", r, row, "timeline");
    set_known_by(o, r, row, l);
    set_url(o, "order", l, "orders", order);
    set_url(o, "self", l, "receipts", receipt);
    seal(o, l);
    return o;
}
