/* Time. The monotonic clock decides deadlines, the database's clock leases, the chain's block time
 * authorizations; wall time is for people, for quotes and for log lines. In builds with failpoints PAYONCE_WALL_STEP names a file that
 * says by how many milliseconds it is wrong. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/scope.h"

int64_t clock_mono_ms(void);
int64_t clock_wall_s(void);
int64_t clock_wall_ms(void);
void clock_sleep_ms(int64_t ms);

struct time_text { char s[32]; };
struct time_text time_iso(int64_t unix_s);               /* 2026-11-30T02:27:50Z; held within the years 1970 to 9999 */
/* RFC 3339 with seconds, a fraction of any length (cut to milliseconds) and Z or an offset. False: no such time, or
 * anything else. */
bool time_read(const char *s, int64_t *ret_ms) MUST_CHECK;

#endif
