/* One line per event on standard error: time, level, role, event name, key=value pairs. What is not printable
 * ASCII is written as an escape, so that no value can start a line of its own.
 * Never a key, a signature, a body or a payment header. Programs log; library folders return. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/scope.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_open(const char *role, enum log_level least);
void log_write(enum log_level level, const char *event, const char *fmt, ...) PRINTF(3, 4); /* fmt: "tx=%s n=%d" */
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

#endif
