#include "test.h"

/* Compiled in here, whatever the build's option says. */
#ifndef PAYONCE_FAILPOINTS
#define PAYONCE_FAILPOINTS
#endif
#include "base/failpoint.c"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child passes "a", "b", "a", "b", ...; how many passages until it was killed? 0: never. */
static int killed_at(const char *setting)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("PAYONCE_FAILPOINT", setting, 1);
        for (int i = 0; i < 8; i++) {
            if (write(ends[1], "x", 1) != 1)
                _exit(2);
            FAILPOINT(i % 2 == 0 ? "a" : "b");
        }
        _exit(0);
    }
    close(ends[1]);
    char text[16];
    int n = 0, status;
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
        n += (int)got;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return 0;
    }
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return n;
}

static void kills_at_its_passage(void **state)
{
    (void)state;
    assert_int_equal(killed_at("a"), 1);
    assert_int_equal(killed_at("b"), 2);
    assert_int_equal(killed_at("a:3"), 5);
    assert_int_equal(killed_at("b:4"), 8);
    assert_int_equal(killed_at("b:5"), 0);
    assert_int_equal(killed_at("x,b:2"), 4);
    assert_int_equal(killed_at("a:4,b:2"), 4);
    assert_int_equal(killed_at(""), 0);
    assert_int_equal(killed_at("ab"), 0);
    assert_int_equal(killed_at("A"), 0);
}

static void sleeps_once_and_goes_on(void **state)
{
    (void)state;
    int64_t before = clock_mono_ms();
    assert_int_equal(killed_at("a=60"), 0);
    assert_in_range(clock_mono_ms() - before, 60, 5000);
    before = clock_mono_ms();
    assert_int_equal(killed_at("a:2=40,b:3"), 6);
    assert_in_range(clock_mono_ms() - before, 40, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_at_its_passage),
        cmocka_unit_test(sleeps_once_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
