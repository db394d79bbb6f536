#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"

static const char *role = "payonce";
static enum log_level least = LOG_INFO;

void log_open(const char *as, enum log_level from)
{
    role = as;
    least = from;
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    }
    abort();
}

static void add_escaped(struct buf *line, const char *s)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '\\')
            buf_puts(line, "\\\\");
        else if (c == '\n')
            buf_puts(line, "\\n");
        else if (c < 0x20 || c > 0x7e)
            buf_printf(line, "\\x%02x", c);
        else
            buf_add(line, s, 1);
    }
}

static void add_time(struct buf *line)
{
    const int64_t now_ms = clock_wall_ms();
    const struct time_text t = time_iso(now_ms / 1000);
    buf_printf(line, "%.19s.%03dZ", t.s, (int)(now_ms % 1000)); /* up to the Z */
}

/* In one write, so that the lines of several processes do not mix. Nothing can be done about one that fails. */
static void write_out(const struct buf *line)
{
    for (size_t done = 0; done < line->n;) {
        const ssize_t n = write(STDERR_FILENO, line->p + done, line->n - done);
        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

void log_write(enum log_level level, const char *event, const char *fmt, ...)
{
    if (level < least)
        return;
    OWNED char *pairs = NULL;
    va_list args;
    va_start(args, fmt);
    const int n = vasprintf(&pairs, fmt, args);
    va_end(args);
    if (n < 0)
        abort();

    BUF line = { 0 };
    add_time(&line);
    buf_printf(&line, " %s %s ", level_name(level), role);
    add_escaped(&line, event);
    if (n > 0) {
        buf_puts(&line, " ");
        add_escaped(&line, pairs);
    }
    buf_puts(&line, "\n");
    write_out(&line);
}
