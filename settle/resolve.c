/* Did it land? Asked of the chain, nonce by nonce, until it is proven: the flag and the time from one block.
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

enum { LOOKS = 200, EVERY_MS = 1000, ENDS = 50 /* in a transaction */ };

static bool deadline_passed(const struct desk *d, const struct db_rows *rows, int i)
{
    return (int64_t)d->final.time >= row_int(rows, i, "dead_after");
}

static void end_void(struct desk *d, int64_t id, const char *note)
{
    DB_ARGS a = { 0 };
    arg_int(&a, id);
    arg_text(&a, "void");
    arg_text(&a, note);
    arg_text(&a, d->by);
    FAILPOINT("settler-before-end");
    (void)!db_wait(d->db, "authorization_end", &a, clock_mono_ms() + DESK_DB_MS, NULL);
    log_info("settler.void", "network=%s authorization=%" PRId64 " note=%s", d->net->id, id, note);
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
static void not_proven(struct desk *d, const struct db_rows *rows, int i, const struct auth_event *e)
{
    int64_t id = row_int(rows, i, "id");
    if (e->block > d->final.number)
        return;
    struct address payee;
    OWNED char *note = NULL;
    if (e->kind == AUTH_EVENT_CANCELED)
        note = str_format("cancelled by the payer in %s", hash_text(&e->tx).s);
    else if (e->kind == AUTH_EVENT_TRANSFER && row_copy(rows, i, "payee", payee.b, 20) && !address_eq(&e->to, &payee))
        note = str_format("spent elsewhere in %s", hash_text(&e->tx).s);
    if (note) {
        end_void(d, id, note);
        return;
    }
    OWNED char *fact = str_format("its nonce is used in %s without the Transfer that it stands for", hash_text(&e->tx).s);
    puzzle(d, id, fact);
}

static void used(struct desk *d, const struct db_rows *rows, int i)
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
        not_proven(d, rows, i, &e);
}

static void look_again(struct desk *d, const json_t *ids)
{
    DB_ARGS a = { 0 };
    OWNED char *text = json_write(ids);
    arg_text(&a, text);
    if (json_array_size(ids) > 0)
        (void)!db_wait(d->db, "authorizations_look_again", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

/* Empties `dead`, [[id, dead_after], ...]; those that cannot be ended now become `unanswered`. */
static void expire(struct desk *d, json_t *dead, json_t *unanswered)
{
    DB_ARGS a = { 0 };
    OWNED char *text = json_write(dead);
    size_t i;
    json_t *pair;
    if (json_array_size(dead) == 0)
        return;
    arg_text(&a, text);
    arg_text(&a, "unused at a final block past its deadline");
    arg_text(&a, d->by);
    FAILPOINT("settler-before-end");
    if (db_wait(d->db, "authorizations_expire", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK)
        log_info("settler.expired", "network=%s authorizations=%zu", d->net->id, json_array_size(dead));
    else
        json_array_foreach(dead, i, pair)
            json_array_append(unanswered, json_array_get(pair, 0));
    json_array_clear(dead);
}

/* What its flag says of each. Those without an answer are looked at soon again. */
static void judge(struct desk *d, const struct db_rows *rows, const enum flag *flag)
{
    JSON *dead = json_array(), *unanswered = json_array();
    for (int i = 0; i < db_count(rows); i++) {
        const int64_t id = row_int(rows, i, "id");
        if (flag[i] == FLAG_NO_ANSWER)
            json_array_append_new(unanswered, json_integer(id));
        else if (flag[i] == FLAG_USED)
            used(d, rows, i);
        else if (deadline_passed(d, rows, i))
            json_array_append_new(dead, json_pack("[I, I]", (json_int_t)id, (json_int_t)row_int(rows, i, "dead_after")));
        if (json_array_size(dead) == ENDS)
            expire(d, dead, unanswered);
    }
    expire(d, dead, unanswered);
    look_again(d, unanswered);
}

bool desk_resolve(struct desk *d)
{
    if (!d->new_head && clock_mono_ms() < d->resolve_at_ms)
        return true;
    d->resolve_at_ms = clock_mono_ms() + EVERY_MS;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_int(&a, LOOKS);
    if (db_wait(d->db, "authorizations_look", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    size_t n = (size_t)db_count(rows);
    if (n == 0)
        return true;
    if (n >= LOOKS)
        d->resolve_at_ms = 0;                    /* there may be more: at once */
    OWNED uint64_t *at = mem_new(n * sizeof *at);
    OWNED enum flag *flag = mem_new(n * sizeof *flag);
    for (size_t i = 0; i < n; i++)               /* at the final block once its time decides, at the head before */
        at[i] = deadline_passed(d, rows, (int)i) ? d->final.number : d->head.number;
    desk_flags(d, rows, at, flag);
    judge(d, rows, flag);
    return true;
}
