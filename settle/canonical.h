/* The key of a question: two requests with one key ask the same, and one answer serves both.
 *
 * What is made one: the order of query names, the spelling of percent-encoding (RFC 3986: unreserved characters decoded, hex digits
 * upper case), and in a JSON body the order of keys, white space and escapes. What stays as it is written: numbers (1.0 is not 1), the
 * order of equal names, a name with an empty value and one without, every other body byte for byte (also JSON whose media type has a
 * parameter that is not its charset, UTF-8). Less what the tool marks volatile.
 * In doubt two spellings stay two questions: the second is paid for, never wrongly answered. */
#ifndef SETTLE_CANONICAL_H
#define SETTLE_CANONICAL_H

#include "base/bytes.h"

struct question {
    const struct address *payer;
    const char *tool, *method;
    struct slice path, query, body;
    struct slice content_type, content_encoding; /* p NULL: not sent */
    const char *const *vary;             /* names, small letters */
    const struct slice *vary_values;     /* one a name; p NULL: not sent */
    size_t vary_count;
    const char *const *volatiles;        /* query names, and JSON pointers, which begin with a slash */
    size_t volatile_count;
};
/* False: the arguments cannot be read (a broken percent-encoding): there is no key. */
bool question_key(const struct question *q, struct hash32 *ret) MUST_CHECK;

/* The canonical forms by themselves, appended. */
bool canonical_query(struct slice query, const char *const *volatiles, size_t n, struct buf *ret) MUST_CHECK;
/* False: not one strict JSON text (duplicate keys, bad UTF-8, too deep): its bytes are the argument. */
bool canonical_json(struct slice text, const char *const *pointers, size_t n, struct buf *ret) MUST_CHECK;
bool json_pointer_ok(const char *s) MUST_CHECK;          /* RFC 6901, not the whole document */

#endif
