/* TIP-20, Tempo's token: a transfer that carries a memo, and both in the logs. */
#include <string.h>

#include "chain/internal.h"
#include "chain/tempo_tx.h"

#define TRANSFER_WITH_MEMO "\x95\x77\x7d\x59" /* transferWithMemo(address,uint256,bytes32) */

/* keccak256 of "TransferWithMemo(address,address,uint256,bytes32)" */
const struct hash32 topic_transfer_with_memo = { {
    0x57, 0xbc, 0x73, 0x54, 0xaa, 0x85, 0xae, 0xd3, 0x39, 0xe0, 0x00, 0xbc, 0xcf, 0xfa, 0xbb, 0xc5,
    0x29, 0x46, 0x6a, 0xf3, 0x5f, 0x07, 0x72, 0xc8, 0xf8, 0xee, 0x11, 0x45, 0x92, 0x7d, 0xe7, 0xf0,
} };

bool tempo_is_token(const struct address *a)
{
    return a->b[0] == 0x20 && a->b[1] == 0xc0;
}

void tempo_transfer_call(struct buf *b, const struct tempo_transfer *t)
{
    uint8_t word[WORD];
    buf_add(b, TRANSFER_WITH_MEMO, 4);
    word_address(word, &t->to);
    buf_add(b, word, WORD);
    amount_to_be(t->amount, word);
    buf_add(b, word, WORD);
    buf_add(b, t->memo.b, WORD);
}

bool tempo_transfer_read(struct slice calldata, struct tempo_transfer *ret)
{
    struct hash32 word[3];
    struct tempo_transfer t;
    if (calldata.n != 4 + sizeof word || memcmp(calldata.p, TRANSFER_WITH_MEMO, 4) != 0)
        return false;
    memcpy(word, calldata.p + 4, sizeof word);
    if (!topic_address(&word[0], &t.to))
        return false;
    t.amount = amount_from_be(word[1].b);
    t.memo = word[2];
    *ret = t;
    return true;
}

/* ---- logs ---- */

/* False: it calls itself a Transfer and is not one. */
static bool read_transfer(const struct log *log, size_t topics, struct tempo_moved *ret)
{
    *ret = (struct tempo_moved){ .token = log->address, .log_index = log->index };
    return log->topics == topics && topic_address(&log->topic[1], &ret->from) &&
           topic_address(&log->topic[2], &ret->to) && log_amount(log, &ret->amount);
}

/* Takes the memo from the log right behind m, where that one says the same transfer. */
static void take_memo(const struct log *log, struct tempo_moved *m)
{
    struct tempo_moved again;
    if (!log_is(log, &topic_transfer_with_memo) || !read_transfer(log, 4, &again) || log->index != m->log_index + 1)
        return;
    if (!address_eq(&again.token, &m->token) || !address_eq(&again.from, &m->from) || !address_eq(&again.to, &m->to) ||
        amount_cmp(again.amount, m->amount) != 0)
        return;
    m->has_memo = true;
    m->memo = log->topic[3];
}

static bool read_logs(const struct receipt *r, struct log *ret)
{
    for (size_t i = 0; i < json_array_size(r->logs); i++)
        if (!log_read(json_array_get(r->logs, i), r, &ret[i]) || (i > 0 && ret[i].index <= ret[i - 1].index))
            return false;
    return true;
}

static bool each(const struct receipt *r, const struct address *to, tempo_moved_fn *fn, void *arg)
{
    const size_t n = json_array_size(r->logs);
    OWNED struct log *logs = mem_resize(NULL, n + 1, sizeof *logs);
    if (!read_logs(r, logs))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct tempo_moved m;
        if (!tempo_is_token(&logs[i].address) || !log_is(&logs[i], &topic_transfer))
            continue;
        if (!read_transfer(&logs[i], 3, &m))
            return false;
        if (i + 1 < n)
            take_memo(&logs[i + 1], &m);
        if (!to || address_eq(&m.to, to))
            fn(arg, &m);
    }
    return true;
}

bool tempo_each_transfer(const struct receipt *r, const struct address *to, tempo_moved_fn *fn, void *arg)
{
    return r->found && r->success && each(r, to, fn, arg);
}

bool tempo_each_moved(const struct receipt *r, tempo_moved_fn *fn, void *arg)
{
    return r->found && each(r, NULL, fn, arg);
}

bool tempo_is_fee(const struct tempo_moved *m)
{
    static const struct address manager = { { 0xfe, 0xec } };
    return address_eq(&m->to, &manager);
}
