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

enum { LOOKS = 200, PASSES = 5, TRIES = 3, EVERY_MS = 1000 };

/* A transaction that used some of the nonces: a batch of ours used many of them, and is read once. */
struct landed { struct receipt receipt; uint64_t time; bool recorded; };

/* What one round of looks finds, committed at its end: what is due next must not wait for a statement each. */
struct look {
    struct desk *d;
    const struct db_rows *rows;
    struct landed *landed;
    size_t landed_count;
    json_t *proofs, *ends, *unanswered;
};

static bool deadline_passed(const struct desk *d, const struct db_rows *rows, int i)
{
    return (int64_t)d->final.time >= row_int(rows, i, "dead_after");
}

static void is_dead(struct look *l, int i, const char *state, const char *note)
{
    json_array_append_new(l->ends, json_pack("{s:I, s:s, s:s, s:I}", "id", (json_int_t)row_int(l->rows, i, "id"), "state", state, "note",
                                             note, "dead_after", (json_int_t)row_int(l->rows, i, "dead_after")));
}

static void look_again(struct desk *d, const json_t *ids)
{
    DB_ARGS a = { 0 };
    OWNED char *text = json_write(ids);
    arg_text(&a, text);
    if (json_array_size(ids) > 0)
        (void)!db_wait(d->db, "authorizations_look_again", &a, clock_mono_ms() + DESK_DB_MS, NULL);
}

/* Said twice it changes nothing, so a lost reply is no reason to wait for the next look. */
static bool store_ends(struct desk *d, const char *text)
{
    bool ok = false;
    for (int i = 0; i < TRIES && !ok; i++) {
        DB_ARGS a = { 0 };
        arg_text(&a, text);
        arg_text(&a, d->by);
        ok = db_wait(d->db, "authorizations_end", &a, clock_mono_ms() + DESK_DB_MS, NULL) == DB_OK;
    }
    return ok;
}

/* Where it cannot be booked now, each is soon looked at again. */
static void end(struct desk *d, const json_t *ends)
{
    if (json_array_size(ends) == 0)
        return;
    OWNED char *text = json_write(ends);
    FAILPOINT("settler-before-end");
    const bool ok = store_ends(d, text);
    JSON *open = json_array();
    size_t i;
    json_t *e;
    json_array_foreach(ends, i, e)
        if (!ok)
            json_array_append(open, json_object_get(e, "id"));
        else
            log_info("settler.ended", "network=%s authorization=%" JSON_INTEGER_FORMAT " state=%s note=%s", d->net->id,
                     json_integer_value(json_object_get(e, "id")), json_string_value(json_object_get(e, "state")),
                     json_string_value(json_object_get(e, "note")));
    look_again(d, open);
}

/* Not by its Transfer: it can end only as the final chain says, or a person must decide. */
static void not_proven(struct look *l, int i, const struct auth_event *e)
{
    if (e->block > l->d->final.number)
        return;
    struct address payee;
    OWNED char *note = NULL;
    if (e->kind == AUTH_EVENT_CANCELED)
        note = str_format("cancelled by the payer in %s", hash_text(&e->tx).s);
    else if (e->kind == AUTH_EVENT_TRANSFER && row_copy(l->rows, i, "payee", payee.b, 20) && !address_eq(&e->to, &payee))
        note = str_format("spent elsewhere in %s", hash_text(&e->tx).s);
    if (note) {
        is_dead(l, i, "void", note);
        return;
    }
    OWNED char *fact = str_format("its nonce is used in %s without the Transfer that it stands for", hash_text(&e->tx).s);
    desk_puzzle(l->d, row_int(l->rows, i, "id"), fact);
}

static struct landed *already_read(struct look *l, const struct auth_key *key, struct auth_event *ret)
{
    for (size_t k = 0; k < l->landed_count; k++)
        if (receipt_find(&l->landed[k].receipt, &key->asset, &key->payer, &key->nonce, ret))
            return &l->landed[k];
    return NULL;
}

/* Reads the transaction that used it. What else one of ours proves is recorded with it. */
static struct landed *read_landed(struct look *l, int i, const struct auth_key *key, struct auth_event *ret)
{
    struct landed *x = &l->landed[l->landed_count];
    struct log_place place;
    enum seek s = desk_seek(l->d, l->rows, i, &place);
    if (s == SEEK_NONE && deadline_passed(l->d, l->rows, i))
        desk_puzzle(l->d, row_int(l->rows, i, "id"), "its nonce is used, and the node has no log of it");
    if (s != SEEK_FOUND || !desk_landed(l->d, &place, &x->receipt, &x->time))
        return NULL;
    l->landed_count++;
    x->recorded = desk_mined(l->d, &x->receipt, x->time);
    return receipt_find(&x->receipt, &key->asset, &key->payer, &key->nonce, ret) ? x : NULL;
}

static void used(struct look *l, int i)
{
    struct auth_key key;
    struct auth_event e;
    desk_key(l->rows, i, &key);
    const struct landed *x = already_read(l, &key, &e);
    if (!x)
        x = read_landed(l, i, &key, &e);
    if (!x)
        return;
    if (!desk_proves(&e, l->rows, i))
        not_proven(l, i, &e);
    else if (!x->recorded && desk_deep(l->d, e.block))
        desk_add_proof(l->proofs, row_int(l->rows, i, "id"), &e, x->time);
}

static void judge(struct look *l, int i, enum flag flag)
{
    if (flag == FLAG_NO_ANSWER)
        json_array_append_new(l->unanswered, json_integer(row_int(l->rows, i, "id")));
    else if (flag == FLAG_USED)
        used(l, i);
    else if (deadline_passed(l->d, l->rows, i))
        is_dead(l, i, "expired", "unused at a final block past its deadline");
}

static void commit(struct look *l)
{
    if (json_array_size(l->proofs) > 0)
        (void)desk_record(l->d, json_incref(l->proofs), NULL, NULL);
    end(l->d, l->ends);
    look_again(l->d, l->unanswered);
}

/* Is each of them used? At the final block once its time decides, at the head before. Asked again at once where nothing was said. */
static void ask_flags(struct desk *d, const struct db_rows *rows, size_t n, enum flag *ret)
{
    OWNED uint64_t *at = mem_new(n * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = deadline_passed(d, rows, (int)i) ? d->final.number : d->head.number;
    for (int try = 0; try < TRIES; try++) {
        desk_flags(d, rows, at, ret);
        for (size_t i = 0; i < n; i++)
            if (ret[i] != FLAG_NO_ANSWER)
                return;
    }
}

static void look_at(struct desk *d, const struct db_rows *rows, size_t n)
{
    OWNED struct landed *landed = mem_new(n * sizeof *landed);
    JSON *proofs = json_array();
    JSON *ends = json_array();
    JSON *unanswered = json_array();
    struct look l = { .d = d, .rows = rows, .landed = landed, .proofs = proofs, .ends = ends, .unanswered = unanswered };
    OWNED enum flag *flag = mem_new(n * sizeof *flag);
    ask_flags(d, rows, n, flag);
    for (size_t i = 0; i < n; i++)
        judge(&l, (int)i, flag[i]);
    commit(&l);
    for (size_t k = 0; k < l.landed_count; k++)
        receipt_done(&landed[k].receipt);
}

/* Looks at what is due, LOOKS of each state; *ret_more: there may be more. False: the database was away. */
static bool look(struct desk *d, bool *ret_more)
{
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, d->net->id);
    arg_int(&a, LOOKS);
    if (db_wait(d->db, "authorizations_look", &a, clock_mono_ms() + DESK_DB_MS, &rows) != DB_OK)
        return false;
    const size_t n = (size_t)db_count(rows);
    *ret_more = n >= LOOKS;
    if (n > 0)
        look_at(d, rows, n);
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
