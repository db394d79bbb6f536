/* Did it land? Asked of the chain, one nonce at a time, until it is proven: the flag and the time from one block.
 *
 *   used    find the log that says so: our Transfer is the proof, a cancellation or a Transfer to somebody else is void, and
 *           anything else, or no log found, is still unknown
 *   unused  nothing yet, until a final block's time has passed the last deadline: expired
 *   no answer: unknown */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "settle/desk.h"

enum { LOOKS = 100, PASSES = 5, EVERY_MS = 1000 };

static bool deadline_passed(const struct desk *d, const struct db_rows *rows, int i)
{
    return (int64_t)d->final.time >= row_int(rows, i, "dead_after");
}

/* Proven dead; end() books it. */
static void is_dead(json_t *ends, const struct db_rows *rows, int i, const char *state, const char *note)
{
    json_array_append_new(ends, json_pack("{s:I, s:s, s:s, s:I}", "id", (json_int_t)row_int(rows, i, "id"), "state", state, "note", note,
                                          "dead_after", (json_int_t)row_int(rows, i, "dead_after")));
}

/* All at once: what is due next must not wait for a statement each. */
static void end(struct desk *d, const json_t *ends)
{
    if (json_array_size(ends) == 0)
        return;
    DB_ARGS a = { 0 };
    OWNED char *text = json_write(ends);
    arg_text(&a, text);
    arg_text(&a, d->by);
    FAILPOINT("settler-before-end");
    if (db_wait(d->db, "authorizations_end", &a, clock_mono_ms() + DESK_DB_MS, NULL) != DB_OK)
        return; /* each is looked at again */
    size_t i;
    json_t *e;
    json_array_foreach(ends, i, e)
        log_info("settler.ended", "network=%s authorization=%" JSON_INTEGER_FORMAT " state=%s note=%s", d->net->id,
                 json_integer_value(json_object_get(e, "id")), json_string_value(json_object_get(e, "state")),
                 json_string_value(json_object_get(e, "note")));
}

/* Used, and the token's logs neither show our Transfer nor say where it went. */
static void puzzle(struct desk *d, int64_t id, const char *fact)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, fact);
    arg_text(&a, d->by);
    log_warn("settler.puzzle", "network=%s authorization=%" PRId64 " why=%s", d->net->id, id, fact);
    (void)!db_wait(d->db, "authorization_puzzles", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

/* Its own Transfer is there. What else a transaction of ours proves is recorded with it. */
static void proven(struct desk *d, int64_t id, const struct auth_event *e, const struct receipt *r, uint64_t block_time)
{
    if (!desk_deep(d, e->block) || desk_mined(d, r, block_time))
        return;
    json_t *proofs = json_array();
    desk_add_proof(proofs, id, e, block_time);
    (void)desk_record(d, proofs, NULL, NULL);
}

/* Not by its Transfer: it can end only as the final chain says, or a person must decide. */
static void not_proven(struct desk *d, const struct db_rows *rows, int i, const struct auth_event *e, json_t *ends)
{
    if (e->block > d->final.number)
        return;
    struct address payee;
    OWNED char *note = NULL;
    if (e->kind == AUTH_EVENT_CANCELED)
        note = str_format("cancelled by the payer in %s", hash_text(&e->tx).s);
    else if (e->kind == AUTH_EVENT_TRANSFER && row_copy(rows, i, "payee", payee.b, 20) && !address_eq(&e->to, &payee))
        note = str_format("spent elsewhere in %s", hash_text(&e->tx).s);
    if (note) {
        is_dead(ends, rows, i, "void", note);
        return;
    }
    OWNED char *fact = str_format("its nonce is used in %s without the Transfer that it stands for", hash_text(&e->tx).s);
    puzzle(d, row_int(rows, i, "id"), fact);
}

static void used(struct desk *d, const struct db_rows *rows, int i, json_t *ends)
{
    SCOPE(receipt_done) struct receipt receipt = { .found = false };
    struct auth_key key;
    struct auth_event e;
    struct log_place place;
    uint64_t time;
    enum seek s = desk_seek(d, rows, i, &place);
    if (s == SEEK_NONE && deadline_passed(d, rows, i))
        puzzle(d, row_int(rows, i, "id"), "its nonce is used, and the node has no log of it");
    if (s != SEEK_FOUND || !desk_landed(d, &place, &receipt, &time))
        return;
    desk_key(rows, i, &key);
    if (!receipt_find(&receipt, &key.asset, &key.payer, &key.nonce, &e))
        return;
    if (desk_proves(&e, rows, i))
        proven(d, row_int(rows, i, "id"), &e, &receipt, time);
    else
        not_proven(d, rows, i, &e, ends);
}

/* False: there was no answer. */
static bool judge(struct desk *d, const struct db_rows *rows, int i, const struct rpc_answer *a, json_t *ends)
{
    bool is_used;
    if (!desk_read_flag(a, &is_used))
        return false;
    if (is_used)
        used(d, rows, i, ends);
    else if (deadline_passed(d, rows, i))
        is_dead(ends, rows, i, "expired", "unused at a final block past its deadline");
    return true;
}

static void look_again(struct desk *d, const json_t *ids)
{
    DB_ARGS a = { 0 };
    OWNED char *text = json_write(ids);
    arg_text(&a, text);
    if (json_array_size(ids) > 0)
        (void)!db_wait(d->db, "authorizations_look_again", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

/* Looks at what is due, LOOKS of it; *ret_more: there may be more. False: the database was away. */
static bool look(struct desk *d, bool *ret_more)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_int(&a, LOOKS);
    if (db_wait(d->db, "authorizations_look", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    size_t n = (size_t)db_count(rows);
    *ret_more = n == LOOKS;
    if (n == 0)
        return true;
    OWNED struct rpc_item *items = mem_new(n * sizeof *items);
    for (size_t i = 0; i < n; i++)               /* at the final block once its time decides, at the head before */
        items[i] = desk_ask_flag(rows, (int)i, deadline_passed(d, rows, (int)i) ? d->final.number : d->head.number);
    struct rpc_answers r = quorum_wait(d, items, n);
    JSON *unanswered = json_array();
    JSON *ends = json_array();
    for (size_t i = 0; i < n; i++)
        if (!judge(d, rows, (int)i, &r.a[i], ends))
            json_array_append_new(unanswered, json_integer(row_int(rows, (int)i, "id")));
    rpc_answers_done(&r);
    end(d, ends);
    look_again(d, unanswered);
    return true;
}

/* All of what is due, or the last of it would be known later than it was said; but other work has its turn in between. */
bool desk_resolve(struct desk *d)
{
    if (!d->new_head && clock_mono_ms() < d->resolve_at_ms)
        return true;
    d->resolve_at_ms = clock_mono_ms() + EVERY_MS;
    bool more = true;
    for (int i = 0; i < PASSES && more; i++)
        if (!look(d, &more))
            return false;
    return true;
}
