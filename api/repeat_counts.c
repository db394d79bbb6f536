#include "api/repeat_counts.h"

#include <inttypes.h>
#include <string.h>

#include "api/metrics.h"

static const char *const reasons[MISS_KINDS] = {
    [MISS_FIRST] = "first", [MISS_WINDOW] = "window", [MISS_ANSWER] = "answer", [MISS_FAILED] = "failed",
    [MISS_LIMIT] = "limit", [MISS_ARGUMENTS] = "arguments",
};

void repeat_counts_served(struct repeat_counts *c, const struct price *p)
{
    size_t i = 0;
    c->served++;
    while (i < c->saved_count && c->saved[i].token != p->token)
        i++;
    if (i == c->saved_count) {
        c->saved = mem_resize(c->saved, ++c->saved_count, sizeof *c->saved);
        c->saved[i] = (struct saved){ p->net, p->token, AMOUNT_ZERO };
    }
    (void)!amount_add(c->saved[i].sum, p->amount, &c->saved[i].sum);
}

void repeat_counts_missed(struct repeat_counts *c, const char *why)
{
    for (size_t i = 0; i < MISS_KINDS; i++)
        c->misses[i] += strcmp(reasons[i], why) == 0;
}

void repeat_counts_print(const struct repeat_counts *c, struct buf *b)
{
    metrics_head(b, "payonce_free_repeats_total", "counter", "Answers that were given again and not charged.");
    buf_printf(b, "payonce_free_repeats_total %" PRIu64 "\n", c->served);
    metrics_head(b, "payonce_not_charged_units_total", "counter", "What they would have cost, in the token's atomic units.");
    for (size_t i = 0; i < c->saved_count; i++)
        buf_printf(b, "payonce_not_charged_units_total{network=\"%s\",token=\"%s\"} %s\n", c->saved[i].net->id,
                   c->saved[i].token->symbol, amount_text(c->saved[i].sum).s);
    metrics_head(b, "payonce_repeat_waits_total", "counter", "Repeats that came while the first was under way, and waited for it.");
    buf_printf(b, "payonce_repeat_waits_total %" PRIu64 "\n", c->waits);
    metrics_head(b, "payonce_repeat_misses_total", "counter", "Calls of cacheable tools that were no free repeat, by reason.");
    for (size_t i = 0; i < MISS_KINDS; i++)
        buf_printf(b, "payonce_repeat_misses_total{reason=\"%s\"} %" PRIu64 "\n", reasons[i], c->misses[i]);
}

void repeat_counts_done(struct repeat_counts *c)
{
    free(c->saved);
}
