#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
