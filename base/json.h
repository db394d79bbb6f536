/* JSON at the border: strict reading with the field named in the error, ASCII-only writing.
 *
 * json_read refuses duplicate keys, trailing bytes, NUL bytes in the text or in strings, invalid UTF-8 and
 * nesting over jansson's own limit (2,048), and anything but an object or an array at the top. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

static inline void json_done(json_t **j)
{
    json_decref(*j);
    *j = NULL;
}
#define JSON SCOPE(json_done) json_t

struct json_why { char text[192]; };                     /* what was wrong, printable ASCII, for a problem's detail */

json_t *json_read(const char *p, size_t n, struct json_why *why) MUST_CHECK; /* NULL: why says */
char *json_write(const json_t *j) MUST_CHECK;            /* owned; compact, ASCII only, key order as inserted */
const char *json_str(const json_t *object, const char *key);  /* NULL if absent or not a string */
struct slice json_slice(const json_t *object, const char *key); /* p NULL if absent or not a string */
json_t *json_of_slice(struct slice s) MUST_CHECK;        /* a string value; invalid UTF-8 gives null */
void json_set_bare(json_t *object, const char *key, const void *p, size_t n); /* hex without 0x, as database functions take bytes */
void json_set_hex(json_t *object, const char *key, struct slice bytes); /* hex with 0x; none (p NULL): no member */

#endif
