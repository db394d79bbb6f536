#include "test.h"

#include <regex.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"

/* Standard error goes into a pipe while one line is logged. */
static int saved, ends[2];

static void capture(void)
{
    assert_int_equal(pipe(ends), 0);
    saved = dup(STDERR_FILENO);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
}

static void captured(char *ret, size_t size)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    const ssize_t n = read(ends[0], ret, size - 1);
    close(ends[0]);
    assert_true(n >= 0);
    ret[n] = '\0';
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t re;
    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    const int rc = regexec(&re, text, 0, NULL, 0);
    regfree(&re);
    if (rc != 0)
        fail_msg("'%s' does not match '%s'", text, pattern);
}

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

static void one_line_an_event(void **state)
{
    (void)state;
    char text[1024];
    log_open("settler", LOG_INFO);
    capture();
    log_warn("relay_stuck", "tx=%s n=%d", "0xab", 3);
    captured(text, sizeof text);
    assert_matches(text, "^" TIME " warn settler relay_stuck tx=0xab n=3\n$");

    capture();
    log_error("bad", "value=%s", "a\nb\r\t\x1b[31m\x7f\xe2\x82\xac\\");
    captured(text, sizeof text);
    assert_non_null(strstr(text, " value=a\\nb\\x0d\\x09\\x1b[31m\\x7f\\xe2\\x82\\xac\\\\\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);

    capture();
    log_info("plain", "%s", "");
    captured(text, sizeof text);
    assert_matches(text, "^" TIME " info settler plain\n$");
}

static void below_the_level_nothing(void **state)
{
    (void)state;
    char text[1024];
    log_open("gateway", LOG_WARN);
    capture();
    log_debug("quiet", "n=%d", 1);
    log_info("quiet", "n=%d", 1);
    captured(text, sizeof text);
    assert_string_equal(text, "");
}

static void times(void **state)
{
    (void)state;
    assert_string_equal(time_iso(1795487270).s, "2026-11-24T02:27:50Z");
    assert_string_equal(time_iso(0).s, "1970-01-01T00:00:00Z");
    assert_string_equal(time_iso(-1).s, "1970-01-01T00:00:00Z");
    assert_string_equal(time_iso(1709208000).s, "2024-02-29T12:00:00Z");
    assert_string_equal(time_iso(INT64_MAX).s, "9999-12-31T23:59:59Z");
    const int64_t before = clock_mono_ms();
    clock_sleep_ms(5);
    assert_true(clock_mono_ms() - before >= 4);
    clock_sleep_ms(-1);
    assert_in_range(clock_wall_ms() / 1000 - clock_wall_s() + 1, 0, 2);
}

static void read_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        { "2026-11-24T02:27:50Z", 1795487270000 },      { "2026-11-24t02:27:50.1z", 1795487270100 },
        { "2026-11-24T02:27:50.123Z", 1795487270123 },  { "2026-11-24T02:27:50.123999Z", 1795487270123 },
        { "2026-11-24T04:27:50+02:00", 1795487270000 }, { "2026-11-23T21:57:50-04:30", 1795487270000 },
        { "2024-02-29T12:00:00Z", 1709208000000 },      { "1970-01-01T00:00:00.000-00:00", 0 },
    };
    static const char *const bad[] = {
        "", "2026", "2026-11-24", "2026-11-24T02:27:50", "2026-11-24T02:27Z", "2026-11-24 02:27:50Z", "2026-02-29T02:27:50Z",
        "2026-13-01T02:27:50Z", "2026-11-24T24:00:00Z", "2026-11-24T02:60:50Z", "2026-11-24T02:27:50.Z", "2026-11-24T02:27:50+2:00",
        "2026-11-24T02:27:50+0200", "2026-11-24T02:27:50+24:00", "2026-11-24T02:27:50Z ", " 2026-11-24T02:27:50Z",
        "+026-11-24T02:27:50Z", "2026-11-24T02:27:50,5Z",
    };
    int64_t ms;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(time_read(good[i].text, &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (time_read(bad[i], &ms))
            fail_msg("%s is no time", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_an_event),
        cmocka_unit_test(below_the_level_nothing),
        cmocka_unit_test(times),
        cmocka_unit_test(read_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
