#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t read_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#ifdef PAYONCE_FAILPOINTS
/* Milliseconds by which a test has put the wall clock wrong: PAYONCE_WALL_STEP names the file that says so, at any time. */
static int64_t wall_step_ms(void)
{
    char text[24] = "";
    const char *path = getenv("PAYONCE_WALL_STEP");
    FILE *f = path ? fopen(path, "re") : NULL;
    if (f && !fgets(text, sizeof text, f))
        text[0] = '\0';
    if (f)
        (void)fclose(f);
    return strtoll(text, NULL, 10);
}
#else
static int64_t wall_step_ms(void)
{
    return 0;
}
#endif

int64_t clock_mono_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

int64_t clock_wall_s(void)
{
    return clock_wall_ms() / 1000;
}

int64_t clock_wall_ms(void)
{
    return read_ms(CLOCK_REALTIME) + wall_step_ms();
}

void clock_sleep_ms(int64_t ms)
{
    if (ms <= 0)
        return;
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

struct time_text time_iso(int64_t unix_s)
{
    const int64_t year_9999_end = 253402300799;
    const time_t t = unix_s < 0 ? 0 : unix_s > year_9999_end ? year_9999_end : unix_s;
    struct time_text text;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(text.s, sizeof text.s, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return text;
}

/* n digits as a number; -1: something else stands there. */
static int digits(const char *s, size_t n)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        v = v * 10 + s[i] - '0';
    }
    return v;
}

/* Behind the seconds: the fraction and the offset from UTC, both in ms. */
static bool read_rest(const char *s, int64_t *ret_fraction, int64_t *ret_offset)
{
    int64_t fraction = 0;
    if (*s == '.') {
        const size_t n = strspn(s + 1, "0123456789");
        const int scale[] = { 0, 100, 10, 1 };
        if (n == 0)
            return false;
        fraction = digits(s + 1, n < 3 ? n : 3) * scale[n < 3 ? n : 3];
        s += 1 + n;
    }
    *ret_fraction = fraction;
    *ret_offset = 0;
    if (strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
        return true;
    if ((*s != '+' && *s != '-') || strlen(s) != 6 || s[3] != ':')
        return false;
    const int hours = digits(s + 1, 2), minutes = digits(s + 4, 2);
    *ret_offset = (int64_t)(hours * 60 + minutes) * (*s == '-' ? -60000 : 60000);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

bool time_read(const char *s, int64_t *ret_ms)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    for (size_t i = 0; i < sizeof form - 1; i++) /* ends at a NUL of s, since the form has none */
        if (form[i] == 'd' ? digits(s + i, 1) < 0 : s[i] != form[i] && !(form[i] == 'T' && s[i] == 't'))
            return false;
    const struct tm said = {
        .tm_year = digits(s, 4) - 1900, .tm_mon = digits(s + 5, 2) - 1, .tm_mday = digits(s + 8, 2),
        .tm_hour = digits(s + 11, 2), .tm_min = digits(s + 14, 2), .tm_sec = digits(s + 17, 2),
    };
    struct tm tm = said;
    int64_t fraction, offset, seconds = timegm(&tm);
    if (tm.tm_year != said.tm_year || tm.tm_mon != said.tm_mon || tm.tm_mday != said.tm_mday ||
        tm.tm_hour != said.tm_hour || tm.tm_min != said.tm_min ||
        tm.tm_sec != said.tm_sec) /* timegm makes 1 March of 29 February */
        return false;
    if (!read_rest(s + sizeof form - 1, &fraction, &offset))
        return false;
    *ret_ms = seconds * 1000 + fraction - offset;
    return true;
}
