/* What a gateway saved its buyers, for GET /metrics: free repeats, what they would have cost, waits, and misses by reason. */
#ifndef API_REPEAT_COUNTS_H
#define API_REPEAT_COUNTS_H

#include "settle/terms.h"

/* Why a question that may be repeated free was none: never asked; past its window; its answer may not be given again; it failed; given
 * too often; its arguments cannot be read. */
enum repeat_miss { MISS_FIRST, MISS_WINDOW, MISS_ANSWER, MISS_FAILED, MISS_LIMIT, MISS_ARGUMENTS, MISS_KINDS };

struct saved { const struct net *net; const struct token *token; struct amount sum; };
struct repeat_counts {
    uint64_t served, waits, misses[MISS_KINDS];
    struct saved *saved;             /* one a token of a network */
    size_t saved_count;
};
void repeat_counts_served(struct repeat_counts *c, const struct price *p);
void repeat_counts_missed(struct repeat_counts *c, const char *why); /* as order_accept says it */
void repeat_counts_print(const struct repeat_counts *c, struct buf *b);
void repeat_counts_done(struct repeat_counts *c);

#endif
