/* Books against chain, all the time: a wallet's balance at the last booked block, soon after something was booked and
 * at least every five minutes; and once a day the whole report, which is kept. A difference is what a node that keeps
 * logs to itself looks like: the scans go back to where all was well, and read again. */
#include "refunds/internal.h"

#include <inttypes.h>

#include "base/log.h"

enum { CHECK_MS = 15000, DAY_MS = 86400000, AGAIN_MS = 60000 };

static void compare(struct refunds *r, const struct settler_turn *t, const struct address *wallet,
                    const struct token *token, uint64_t block)
{
    struct rpc_item item = balance_item(&token->address, wallet, block);
    struct rpc_answers answer = settler_ask(t->desk, &item, 1);
    struct amount have;
    const bool ok = balance_read(&answer.a[0], &have);
    rpc_answers_done(&answer);
    if (!ok)
        return;
    DB_ARGS a = { 0 };
    DB_ROWS *rows = NULL;
    arg_text(&a, r->net->id);
    arg_bytes(&a, wallet->b, 20);
    arg_bytes(&a, token->address.b, 20);
    arg_int(&a, (int64_t)block);
    arg_amount(&a, have);
    if (db_wait(t->db, "wallet_checked", &a, clock_mono_ms() + BOOKS_DB_MS, &rows) != DB_OK ||
        row_null(rows, 0, "agrees") || row_bool(rows, 0, "agrees"))
        return;
    log_error("ledger.differs",
              "network=%s wallet=%s asset=%s block=%" PRIu64 " on_chain=%s in_books=%s again_from=%" PRId64, r->net->id,
              address_lower(wallet).s, address_lower(&token->address).s, block, amount_text(have).s,
              row_text(rows, 0, "in_books").p, row_int(rows, 0, "back_to"));
}

static bool keep_report(struct refunds *r, const struct settler_turn *t, uint64_t block)
{
    JSON *report = books_report(t->db, t->rpc, r->net, block);
    if (!report)
        return false;
    OWNED char *text = json_write(report);
    DB_ARGS a = { 0 };
    arg_text(&a, r->net->id);
    arg_int(&a, (int64_t)block);
    arg_int(&a, (int64_t)books_differences(report));
    arg_text(&a, text);
    if (books_differences(report) > 0)
        log_error("ledger.reconciled", "network=%s block=%" PRIu64 " differences=%zu", r->net->id, block,
                  books_differences(report));
    else
        log_info("ledger.reconciled", "network=%s block=%" PRIu64 " differences=0", r->net->id, block);
    return db_wait(t->db, "reconciliation_add", &a, clock_mono_ms() + BOOKS_DB_MS, NULL) == DB_OK;
}

void check_turn(struct refunds *r, const struct settler_turn *t)
{
    const int64_t now = clock_mono_ms();
    uint64_t block;
    if (now < r->check_at_ms)
        return;
    r->check_at_ms = now + CHECK_MS;
    if (!books_block(t->db, r->net, &block))
        return;
    for (size_t i = 0; i < r->wallet_count; i++)
        for (size_t k = 0; k < r->net->token_count; k++)
            compare(r, t, &r->wallets[i].address, &r->net->tokens[k], block);
    if (now >= r->report_at_ms)
        r->report_at_ms = now + (keep_report(r, t, block) ? DAY_MS : AGAIN_MS);
}
