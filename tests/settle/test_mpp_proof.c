/* What a receipt proves: each transfer to the payee told once, and what it is seen from one challenge. */
#include "mpp.h"

#include <stdio.h>
#include <string.h>

static const struct slice id = SLICE_INIT("the challenge"), other_id = SLICE_INIT("another challenge");
static const struct address alpha = { { 0x20, 0xc0, 1 } }, stranger = { { 7, 7 } }, fees = { { 0xfe, 0xec } };

static struct address payer(void)
{
    return mpp_key("payer").address;
}

/* ---- receipts made here ---- */

struct made { json_t *logs; struct receipt r; };

static json_t *word(const struct address *a)
{
    uint8_t be[32] = { 0 };
    memcpy(be + 12, a->b, 20);
    return rpc_hex(be, sizeof be);
}

static void add_log(struct made *m, const struct address *token, const struct hash32 *event, const struct address *from,
                    const struct address *to, uint64_t amount, const struct hash32 *memo)
{
    uint8_t be[32];
    json_t *topics = json_array();
    amount_to_be(amount_of(amount), be);
    json_array_append_new(topics, rpc_hex(event->b, 32));
    json_array_append_new(topics, word(from));
    json_array_append_new(topics, word(to));
    if (memo)
        json_array_append_new(topics, rpc_hex(memo->b, 32));
    json_array_append_new(m->logs, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "address", rpc_hex(token->b, 20),
                                             "topics", topics, "data", rpc_hex(be, 32), "logIndex",
                                             rpc_u64(10 + json_array_size(m->logs)), "transactionHash",
                                             rpc_hex(m->r.tx.b, 32), "blockHash", rpc_hex(m->r.block_hash.b, 32)));
}

static struct made made(void)
{
    struct made m = { .logs = json_array(),
                      .r = { .found = true, .success = true, .has_from = true, .from = payer() } };
    m.r.tx.b[0] = 1;
    m.r.block_hash.b[0] = 2;
    m.r.logs = m.logs;
    return m;
}

static void add_plain(struct made *m, const struct address *token, const struct address *from, uint64_t amount)
{
    add_log(m, token, &topic_transfer, from, &mpp_price.pay_to, amount, NULL);
}

static void add_memo(struct made *m, const struct address *token, const struct address *from, uint64_t amount,
                     struct slice challenge)
{
    const struct hash32 memo = mpp_memo(slice_of(mpp_realm), challenge);
    add_plain(m, token, from, amount);
    add_log(m, token, &topic_transfer_with_memo, from, &mpp_price.pay_to, amount, &memo);
}

static void add_fee(struct made *m)
{
    const struct address from = payer();
    add_log(m, &mpp_price.token->address, &topic_transfer, &from, &fees, 582, NULL);
}

static struct mpp_want want_of(const struct mpp_source *source)
{
    struct mpp_want w = { .realm = slice_of(mpp_realm), .id = id };
    w.charge = (struct mpp_charge){ .chain_id = 42431,
                                    .currency = mpp_price.token->address,
                                    .recipient = mpp_price.pay_to,
                                    .amount = mpp_price.amount,
                                    .pull = true,
                                    .push = true,
                                    .plain = true };
    if (source)
        w.source = *source;
    return w;
}

static const char *told(const struct mpp_proof *p)
{
    static char text[256];
    text[0] = 0;
    for (size_t i = 0; i < p->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%s@%d", i ? " " : "",
                 mpp_part_name(p->transfers[i].part), amount_text(p->transfers[i].moved.amount).s,
                 (int)p->transfers[i].moved.log_index);
    return text;
}

/* Takes m. */
static void proves_of(struct made m, const struct mpp_source *source, enum mpp_verdict verdict, const char *parts)
{
    const struct mpp_want want = want_of(source);
    MPP_PROOF p = { .verdict = MPP_PROOF_UNKNOWN };
    mpp_prove(&m.r, &want, &p);
    receipt_done(&m.r);
    if (p.verdict != verdict || strcmp(told(&p), parts) != 0)
        fail_msg("verdict %d: %s, not %d: %s", (int)p.verdict, told(&p), (int)verdict, parts);
    assert_true((p.sale != NULL) == (verdict == MPP_PROOF_PAID));
    assert_true(!p.sale || p.sale->part == MPP_PART_SALE);
}

static void proves(struct made m, enum mpp_verdict verdict, const char *parts)
{
    proves_of(m, NULL, verdict, parts);
}

/* ---- the verdicts ---- */

static void test_paid(void **state)
{
    (void)state;
    const struct address from = payer(), *token = &mpp_price.token->address;
    struct made m = made();
    add_memo(&m, token, &from, 250000, id);
    add_fee(&m);
    proves(m, MPP_PROOF_PAID, "sale:250000@10");
    m = made();
    add_plain(&m, token, &stranger, 5); /* dust, another's, another token's: each is told, none is in the way */
    add_memo(&m, token, &from, 250000, id);
    add_plain(&m, &alpha, &from, 9);
    add_memo(&m, token, &from, 250000, other_id);
    proves(m, MPP_PROOF_PAID, "surplus:5@10 sale:250000@11 surplus:9@13 other_challenge:250000@14");
}

static void test_mispaid(void **state)
{
    (void)state;
    const struct address from = payer(), *token = &mpp_price.token->address;
    struct made m = made();
    add_memo(&m, token, &from, 250001, id);
    proves(m, MPP_PROOF_MISPAID, "wrong_amount:250001@10");
    m = made();
    add_memo(&m, token, &from, 249999, id);
    proves(m, MPP_PROOF_MISPAID, "wrong_amount:249999@10");
    m = made();
    add_memo(&m, &alpha, &from, 250000, id);
    proves(m, MPP_PROOF_MISPAID, "wrong_token:250000@10");
    m = made();
    add_memo(&m, token, &from, 125000, id);
    add_memo(&m, token, &from, 125000, id);
    proves(m, MPP_PROOF_MISPAID, "one_of_many:125000@10 one_of_many:125000@12");
    m = made();
    add_memo(&m, token, &from, 250000, id);
    add_memo(&m, &alpha, &from, 1, id);
    add_plain(&m, token, &from, 3);
    proves(m, MPP_PROOF_MISPAID, "one_of_many:250000@10 wrong_token:1@12 surplus:3@14");
}

static void test_unbound(void **state)
{
    (void)state;
    const struct address from = payer(), *token = &mpp_price.token->address;
    const struct hash32 memo = mpp_memo(slice_of(mpp_realm), id), foreign = mpp_memo(SLICE("gw.example.org"), id);
    struct made m = made();
    add_fee(&m);
    proves(m, MPP_PROOF_UNBOUND, "");
    m = made();
    add_plain(&m, token, &from, 250000);
    proves(m, MPP_PROOF_UNBOUND, "surplus:250000@10");
    m = made();
    add_memo(&m, token, &from, 250000, other_id);
    proves(m, MPP_PROOF_UNBOUND, "other_challenge:250000@10");
    m = made();
    add_plain(&m, token, &from, 250000);
    add_log(&m, token, &topic_transfer_with_memo, &from, &mpp_price.pay_to, 250000, &foreign);
    proves(m, MPP_PROOF_UNBOUND, "surplus:250000@10");
    m = made();
    add_log(&m, token, &topic_transfer, &from, &stranger, 250000, NULL); /* to somebody else */
    add_log(&m, token, &topic_transfer_with_memo, &from, &stranger, 250000, &memo);
    proves(m, MPP_PROOF_UNBOUND, "");
    m = made();
    add_memo(&m, &stranger, &from, 250000, id); /* a contract that calls itself a token */
    proves(m, MPP_PROOF_UNBOUND, "");
}

/* A memo counts only right behind the Transfer that it repeats. */
static void test_memo_alone(void **state)
{
    (void)state;
    const struct address from = payer(), *token = &mpp_price.token->address, *to = &mpp_price.pay_to;
    const struct hash32 memo = mpp_memo(slice_of(mpp_realm), id);
    struct made m = made();
    add_log(&m, token, &topic_transfer_with_memo, &from, to, 250000, &memo);
    proves(m, MPP_PROOF_UNBOUND, "");
    m = made();
    add_plain(&m, token, &from, 250000);
    add_fee(&m);
    add_log(&m, token, &topic_transfer_with_memo, &from, to, 250000, &memo);
    proves(m, MPP_PROOF_UNBOUND, "surplus:250000@10");
    m = made();
    add_plain(&m, token, &from, 1);
    add_log(&m, token, &topic_transfer_with_memo, &from, to, 250000, &memo);
    proves(m, MPP_PROOF_UNBOUND, "surplus:1@10");
    m = made();
    add_plain(&m, &alpha, &from, 250000);
    add_log(&m, token, &topic_transfer_with_memo, &from, to, 250000, &memo);
    proves(m, MPP_PROOF_UNBOUND, "surplus:250000@10");
    m = made();
    add_plain(&m, token, &stranger, 250000);
    add_log(&m, token, &topic_transfer_with_memo, &from, to, 250000, &memo);
    proves(m, MPP_PROOF_UNBOUND, "surplus:250000@10");
    m = made();
    add_plain(&m, token, &from, 250000);
    add_log(&m, token, &topic_transfer_with_memo, &from, to, 250000, &memo);
    json_object_set_new(json_array_get(m.logs, 1), "logIndex", rpc_u64(12)); /* a log is left out between them */
    proves(m, MPP_PROOF_UNBOUND, "surplus:250000@10");
}

static void test_presenter(void **state)
{
    (void)state;
    const struct address from = payer(), *token = &mpp_price.token->address;
    const struct mpp_source right = { MPP_SOURCE_ACCOUNT, 42431, from }, chain = { MPP_SOURCE_ACCOUNT, 4217, from },
                            other = { MPP_SOURCE_ACCOUNT, 42431, stranger }, odd = { .kind = MPP_SOURCE_OTHER };
    const struct mpp_source *const wrong[] = { &chain, &other, &odd };
    struct made m = made();
    add_memo(&m, token, &from, 250000, id);
    proves_of(m, &right, MPP_PROOF_PAID, "sale:250000@10");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        m = made();
        add_memo(&m, token, &from, 250000, id);
        add_plain(&m, token, &from, 3);
        proves_of(m, wrong[i], MPP_PROOF_PRESENTER, "claimable:250000@10 surplus:3@12");
    }
    m = made();
    add_memo(&m, token, &stranger, 250000, id); /* moved by a contract: it is not the sender's money */
    proves(m, MPP_PROOF_PRESENTER, "claimable:250000@10");
    m = made();
    add_memo(&m, token, &from, 250000, id);
    add_memo(&m, token, &stranger, 250000, id);
    proves(m, MPP_PROOF_PRESENTER, "claimable:250000@10 claimable:250000@12");
}

static void test_unknown(void **state)
{
    (void)state;
    const struct address from = payer(), *token = &mpp_price.token->address;
    static const char *const bad[] = { "address", "topics", "data", "logIndex", "transactionHash", "blockHash" };
    struct made m = made();
    m.r.found = false;
    proves(m, MPP_PROOF_UNKNOWN, "");
    m = made();
    add_memo(&m, token, &from, 250000, id);
    m.r.has_from = false;
    proves(m, MPP_PROOF_UNKNOWN, "");
    m = made();
    add_memo(&m, token, &from, 250000, id);
    m.r.success = false;
    proves(m, MPP_PROOF_REVERTED, "");
    for (size_t i = 0; i < COUNT(bad); i++) {
        m = made();
        add_memo(&m, token, &from, 250000, id);
        add_fee(&m);
        json_object_set_new(json_array_get(m.logs, 2), bad[i], json_string("0x1"));
        proves(m, MPP_PROOF_UNKNOWN, "");
    }
    m = made();
    add_memo(&m, token, &from, 250000, id);
    json_object_set_new(json_array_get(m.logs, 1), "logIndex", rpc_u64(9)); /* out of order */
    proves(m, MPP_PROOF_UNKNOWN, "");
    m = made();
    add_memo(&m, token, &from, 250000, id);
    json_object_set_new(json_array_get(m.logs, 0), "data", json_string("0x"));
    proves(m, MPP_PROOF_UNKNOWN, "");
}

static void test_real_receipt(void **state)
{
    (void)state;
    const json_t *j = json_object_get(mpp_case("dust_plus_exact"), "receipt");
    struct receipt r;
    assert_true(receipt_read(j, &r));
    const struct address from = payer();
    assert_true(r.has_from && address_eq(&r.from, &from));
    receipt_done(&r);
    JSON *no_from = json_deep_copy(j), *bad_from = json_deep_copy(j);
    json_object_del(no_from, "from");
    json_object_set_new(bad_from, "from", json_string("0x12"));
    assert_true(receipt_read(no_from, &r) && !r.has_from);
    receipt_done(&r);
    assert_false(receipt_read(bad_from, &r));
}

struct counted { size_t moved, fees; };

static void count_moved(void *arg, const struct tempo_moved *m)
{
    struct counted *c = arg;
    c->moved++;
    c->fees += tempo_is_fee(m);
}

/* A transaction that failed has moved its fee, and nothing else counts as a payment of it. */
static void test_fee_of_failed(void **state)
{
    (void)state;
    struct counted c = { 0 };
    struct made m = made();
    add_fee(&m);
    m.r.success = false;
    assert_false(tempo_each_transfer(&m.r, NULL, count_moved, &c));
    assert_true(tempo_each_moved(&m.r, count_moved, &c));
    assert_true(c.moved == 1 && c.fees == 1);
    m.r.found = false;
    assert_false(tempo_each_moved(&m.r, count_moved, &c));
    receipt_done(&m.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paid),         cmocka_unit_test(test_mispaid),   cmocka_unit_test(test_unbound),
        cmocka_unit_test(test_memo_alone),   cmocka_unit_test(test_presenter), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_real_receipt), cmocka_unit_test(test_fee_of_failed),
    };
    return cmocka_run_group_tests(tests, mpp_start, mpp_stop);
}
