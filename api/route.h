/* Which tool a raw path is, by exact bytes: a variant of a priced path is the priced route or it is nothing.
 *
 * A pattern is literal segments and {name} segments; {name} takes one segment of A-Z a-z 0-9 - . _ ~ that is not
 * "." or "..". Every other spelling (//, dot segments, percent-encoding, another case, a trailing slash) is no route.
 * What matched is what is forwarded, byte for byte. */
#ifndef API_ROUTE_H
#define API_ROUTE_H

#include "api/config.h"

bool route_pattern_ok(const char *pattern, const char **ret_why) MUST_CHECK;  /* for the configuration's check */
bool route_matches(const char *pattern, struct slice path) MUST_CHECK;
bool route_reserved(const char *pattern);                /* our own addresses: /orders/, /receipts/, /payments/, ... */
/* NULL: no tool has this path (ret_allow untouched) or none has this method there (ret_allow: the Allow value).
 * HEAD is GET. Where two patterns match, the one that spells out more at the first difference is meant. */
const struct tool *route_find(const struct config *c, const char *method, struct slice path, struct buf *ret_allow);

#endif
