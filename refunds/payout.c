/* Paying debts back, a batch at a time: sign, commit, send. Whatever is lost on the way, each step may be done again,
 * since a debt's nonce is a hash of the debt and the token lets it move money once. What was paid is proven by its log
 * (movements.c). */
#include <inttypes.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "refunds/internal.h"
#include "settle/keyed.h"

enum { VALID_S = 3600, BATCH_GAS = 60000, EACH_GAS = 110000, BATCH_LIMIT = 100, LOOK_MS = 1000 };

struct batch {
    struct refunds *r;
    const struct settler_turn *t;
    const struct refund_policy *p;
    const struct db_rows *due;
    struct authorization *refund; /* one a row of due */
    int *row;                     /* those that can be paid */
    int n;
};

static bool refund_sign(const struct batch *b, int row)
{
    struct authorization *a = &b->refund[row];
    const int64_t now = clock_wall_s(), from = now > (int64_t)b->t->head.time ? now : (int64_t)b->t->head.time;
    *a = (struct authorization){ .from = b->r->wallet->address, .value = row_amount(b->due, row, "amount") };
    a->valid_before = amount_of((uint64_t)(from + VALID_S));
    return row_copy(b->due, row, "payer", a->to.b, 20) && row_copy(b->due, row, "nonce", a->nonce.b, 32) &&
           authorization_sign(a, b->p->token, b->r->wallet);
}

/* ---- can it be paid? ---- */

void debt_put_off(const struct refunds *r, const struct settler_turn *t, struct slice debt, const char *why)
{
    DB_ARGS a = { 0 };
    char hex[65];
    arg_bytes(&a, debt.p, debt.n);
    arg_text(&a, why);
    arg_text(&a, t->by);
    hex_write_bare(hex, debt.p, debt.n);
    log_warn("refunds.put_off", "network=%s debt=0x%s why=%s", r->net->id, hex, why);
    (void)!db_wait(t->db, "payout_put_off", &a, clock_mono_ms() + BOOKS_DB_MS, NULL);
}

/* Is the nonce used at the final block? Then either the scan finds our refund, or it was not one. */
static void look_at_spent(const struct batch *b, int row)
{
    const struct authorization *x = &b->refund[row];
    const struct slice id = row_bytes(b->due, row, "id");
    const struct state_call call = state_call(&x->from, &x->nonce);
    size_t n = 0;
    struct rpc_item item = { "eth_call",
                             json_pack("[{s:s, s:o}, o]", "to", address_lower(&b->p->token->address).s, "data",
                                       rpc_hex(call.b, sizeof call.b), rpc_u64(b->t->final.number)) };
    struct rpc_answers r = settler_ask(b->t->desk, &item, 1);
    OWNED uint8_t *flag = r.a[0].rc == RPC_OK ? rpc_read_data(r.a[0].result, &n) : NULL;
    const bool spent = flag && n == 32 && flag[31];
    rpc_answers_done(&r);
    if (!spent)
        return;
    DB_ARGS a = { 0 };
    arg_bytes(&a, id.p, id.n);
    arg_int(&a, (int64_t)b->t->final.number);
    arg_text(&a, b->t->by);
    (void)!db_wait(b->t->db, "payout_spent", &a, clock_mono_ms() + BOOKS_DB_MS, NULL);
}

/* Asked of the token itself. A nonce that is used is signed again and sent no more: the database may have forgotten
 * what it paid. */
static bool judge(struct batch *b, int row, bool *ret_send)
{
    const struct auth_facts f = checker_wait(b->r->checker, b->p->token, &b->refund[row]);
    const bool claimed = row_is(b->due, row, "state", "paying");
    *ret_send = f.known && !f.nonce_used && f.transfer_ok;
    if (!f.known)
        return false;
    if (f.nonce_used && claimed)
        look_at_spent(b, row);
    else if (!f.nonce_used && !f.transfer_ok)
        debt_put_off(b->r, b->t, row_bytes(b->due, row, "id"), revert_name(f.why));
    return *ret_send || (f.nonce_used && !claimed);
}

/* ---- claim, sign, send ---- */

static json_t *signed_json(const struct batch *b, const int *rows, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const struct authorization *a = &b->refund[rows[i]];
        const struct slice id = row_bytes(b->due, rows[i], "id");
        json_t *o = json_object();
        json_set_bare(o, "id", id.p, id.n);
        json_set_bare(o, "signature", a->signature, a->signature_n);
        json_object_set_new(o, "valid_before", json_integer((json_int_t)amount_u64_cap(a->valid_before)));
        json_array_append_new(list, o);
    }
    return list;
}

static bool was_claimed(const struct db_rows *claimed, struct slice id)
{
    for (int i = 0; i < db_count(claimed); i++) {
        const struct slice one = row_bytes(claimed, i, "id");
        if (one.n == id.n && memcmp(one.p, id.p, id.n) == 0)
            return true;
    }
    return false;
}

/* Of the rows only those stay in the batch that the database let us claim. */
static bool claim(struct batch *b, const int *rows, int n)
{
    JSON *list = signed_json(b, rows, n);
    OWNED char *text = json_write(list);
    DB_ARGS a = { 0 };
    DB_ROWS *claimed = NULL;
    arg_text(&a, b->r->net->id);
    arg_bytes(&a, b->r->wallet->address.b, 20);
    arg_text(&a, text);
    arg_text(&a, b->t->by);
    FAILPOINT("refund-before-sign");
    if (db_wait(b->t->db, "payouts_sign", &a, clock_mono_ms() + BOOKS_DB_MS, &claimed) != DB_OK)
        return false;
    FAILPOINT("refund-after-sign");
    int kept = 0;
    for (int i = 0; i < b->n; i++)
        if (was_claimed(claimed, row_bytes(b->due, b->row[i], "id")))
            b->row[kept++] = b->row[i];
    b->n = kept;
    return true;
}

static void batch_call(const struct batch *b, struct address *ret_to, struct buf *ret_data)
{
    *ret_to = b->p->token->address;
    if (b->n == 1) {
        authorization_call(ret_data, &b->refund[b->row[0]]);
        return;
    }
    OWNED struct call3 *calls = mem_new((size_t)b->n * sizeof *calls);
    OWNED struct buf *data = mem_new((size_t)b->n * sizeof *data);
    for (int i = 0; i < b->n; i++) {
        authorization_call(&data[i], &b->refund[b->row[i]]);
        calls[i] = (struct call3){ *ret_to, { data[i].p, data[i].n } };
    }
    multicall_call(ret_data, calls, (size_t)b->n);
    for (int i = 0; i < b->n; i++)
        buf_done(&data[i]);
    *ret_to = multicall3_address;
}

static void send(const struct batch *b)
{
    JSON *ids = json_array();
    BUF data = { 0 };
    struct settler_call call = { .gas = BATCH_GAS + EACH_GAS * (uint64_t)b->n, .function = "payout_store" };
    for (int i = 0; i < b->n; i++) {
        char hex[65];
        const struct slice id = row_bytes(b->due, b->row[i], "id");
        hex_write_bare(hex, id.p, id.n);
        json_array_append_new(ids, json_string(hex));
    }
    OWNED char *what = json_write(ids);
    batch_call(b, &call.to, &data);
    call.data = (struct slice){ data.p, data.n };
    call.what = what;
    if (settler_carry(b->t->desk, &call))
        log_info("refunds.sent", "network=%s debts=%d", b->r->net->id, b->n);
    FAILPOINT("refund-after-send");
}

static void pay(struct batch *b)
{
    const int n = db_count(b->due);
    OWNED struct authorization *refund = mem_new((size_t)n * sizeof *refund);
    OWNED int *rows = mem_new((size_t)n * sizeof *rows), *payable = mem_new((size_t)n * sizeof *payable);
    int to_sign = 0;
    b->refund = refund;
    b->row = payable;
    for (int i = 0; i < n; i++) {
        bool goes = false;
        if (!refund_sign(b, i) || !judge(b, i, &goes))
            continue;
        rows[to_sign++] = i;
        if (goes)
            b->row[b->n++] = i;
    }
    if (to_sign > 0 && claim(b, rows, to_sign) && b->n > 0)
        send(b);
}

/* ---- what is due ---- */

static bool read_funds(struct refunds *r, const struct settler_turn *t, const struct refund_policy *p,
                       struct amount *ret)
{
    struct rpc_item item = balance_item(&p->token->address, &r->wallet->address, t->head.number);
    struct rpc_answers answer = rpc_wait(t->rpc, &item, 1);
    const bool ok = balance_read(&answer.a[0], ret);
    rpc_answers_done(&answer);
    if (!ok)
        return false;
    DB_ARGS a = { 0 };
    arg_text(&a, r->net->id);
    arg_bytes(&a, p->token->address.b, 20);
    arg_amount(&a, *ret);
    arg_amount(&a, own_cost(r, t, p));
    return db_wait(t->db, "refund_funds_seen", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
}

static bool approve(struct refunds *r, const struct settler_turn *t, const struct refund_policy *p)
{
    DB_ARGS a = { 0 };
    arg_text(&a, r->net->id);
    arg_bytes(&a, p->token->address.b, 20);
    arg_int(&a, p->after_s);
    arg_amount(&a, p->minimum);
    arg_amount(&a, p->approve_above);
    arg_text(&a, t->by);
    return p->mode != REFUNDS_AUTOMATIC ||
           db_wait(t->db, "debts_approve", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
}

static void policy_turn(struct refunds *r, const struct settler_turn *t, size_t policy)
{
    const struct refund_policy *p = &r->policies[policy];
    struct batch b = { .r = r, .t = t, .p = p };
    struct amount have;
    if (!approve(r, t, p) || !r->wallet || p->mode == REFUNDS_OFF || !read_funds(r, t, p, &have) ||
        !own_fees_there(r, t, p))
        return;
    DB_ARGS a = { 0 };
    DB_ROWS *due = NULL;
    arg_text(&a, r->net->id);
    arg_bytes(&a, p->token->address.b, 20);
    arg_int(&a, p->batch_max < BATCH_LIMIT ? p->batch_max : BATCH_LIMIT);
    arg_amount(&a, have);
    arg_amount(&a, p->run_max);
    arg_amount(&a, p->day_max);
    arg_amount(&a, own_cost(r, t, p));
    if (db_wait(t->db, "payouts_due", &a, clock_mono_ms() + BOOKS_DB_MS, &due) != DB_OK || db_count(due) == 0)
        return;
    FAILPOINT("refund-after-due");
    switch (paid_elsewhere(r, t, policy, due)) {
    case LOOK_ON:
        r->pay_at_ms[policy] = clock_mono_ms() + LOOK_MS;
        return;
    case LOOK_CLEAR:
        break;
    }
    b.due = due;
    if (keyed_network(r->net))
        own_pay(r, t, p, due);
    else
        pay(&b);
}

void payout_turn(struct refunds *r, const struct settler_turn *t)
{
    for (size_t i = 0; i < r->policy_count; i++) {
        if (r->policies[i].net != r->net || clock_mono_ms() < r->pay_at_ms[i])
            continue;
        r->pay_at_ms[i] = clock_mono_ms() + r->policies[i].every_s * 1000;
        policy_turn(r, t, i);
    }
}
