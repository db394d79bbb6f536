/* What a gateway counts and measures for GET /metrics, and what the database adds to it when asked: read at most every
 * two seconds, and once for all who ask meanwhile. */
#ifndef API_METRICS_H
#define API_METRICS_H

#include "api/request.h"
#include "base/loop.h"
#include "sql/sql.h"

struct metrics;
struct metrics *metrics_new(struct db *db) MUST_CHECK;
void metrics_free(struct metrics *m); /* after the database's end: a read may be under way until then */

/* How long something took that began at began_ms (monotonic). */
enum span { SPAN_FIND, SPAN_ACCEPT, SPAN_FINISH, SPAN_STATUS, SPAN_UPSTREAM, SPAN_KINDS };
void metrics_span(struct metrics *m, enum span s, int64_t began_ms);
void metrics_presented(struct metrics *m, struct request *rq); /* a payment came: who says to have repeated it? */
void metrics_found(struct metrics *m, bool known);             /* and do we know it? */

/* Reads the database's figures, unless they are fresh, then goes on with `next`. */
struct step metrics_read(struct metrics *m, struct request *rq, phase *next) MUST_CHECK;
void metrics_print(const struct metrics *m, struct buf *b);
void metrics_head(struct buf *b, const char *name, const char *type, const char *help);

#endif
