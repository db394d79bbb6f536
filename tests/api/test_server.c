/* The life of requests: parking, waiting, keep-alive, browsers, clients that leave or dawdle, and the drain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/api/wire.h"

#define H "Host: x\r\n"

static struct child server;

static int start(void **state)
{
    (void)state;
    server = child_start("60000", "20000");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return child_stop(&server);
}

static long stat_of(const char *name)
{
    BUF answer = wire_ask(&server, "GET /stats HTTP/1.1\r\n" H "\r\n");
    const char *at = strstr(answer_body(&answer), name);
    assert_non_null(at);
    return strtol(at + strlen(name), NULL, 10);
}

static void until_stat(const char *name, long wanted)
{
    for (int64_t end = clock_mono_ms() + 5000; stat_of(name) != wanted; clock_sleep_ms(2))
        if (clock_mono_ms() > end)
            fail_msg("%s never became %ld", name, wanted);
}

static void wake(const char *topic)
{
    OWNED char *text = str_format("GET /wake?%s HTTP/1.1\r\n" H "\r\n", topic);
    BUF answer = wire_ask(&server, text);
    assert_int_equal(answer_status(&answer), 200);
}

static void pipelined(void **state)
{
    (void)state;
    BUF answer = { 0 };
    const int fd = wire_open(&server);
    wire_send(fd, "GET /echo?1 HTTP/1.1\r\n" H "\r\nPOST /echo?2 HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"
                  "GET /go-later HTTP/1.1\r\n" H "\r\nGET /echo?4 HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(fd, false, &answer);
    assert_true(answer_has(&answer, "\"target\":\"/echo?1\""));
    wire_read_answer(fd, false, &answer);
    assert_true(answer_has(&answer, "\"target\":\"/echo?2\"") && answer_has(&answer, "\"body\":\"abc\""));
    wire_read_answer(fd, false, &answer);
    assert_string_equal(answer_body(&answer), "hello\n");
    wire_read_answer(fd, false, &answer);
    assert_true(answer_has(&answer, "\"target\":\"/echo?4\""));
    close(fd);
}

static void waiting(void **state)
{
    (void)state;
    BUF now = wire_ask(&server, "GET /go-sync HTTP/1.1\r\n" H "\r\n");
    assert_string_equal(answer_body(&now), "hello\n");
    BUF later = wire_ask(&server, "GET /go-later HTTP/1.1\r\n" H "\r\n");
    assert_string_equal(answer_body(&later), "hello\n");
}

static void park_and_wake(void **state)
{
    (void)state;
    BUF answer = { 0 };
    const int a = wire_open(&server), b = wire_open(&server), other = wire_open(&server);
    wire_send(a, "GET /park?apple HTTP/1.1\r\n" H "\r\n");
    wire_send(b, "GET /park?apple HTTP/1.1\r\n" H "\r\n");
    wire_send(other, "GET /park?banana HTTP/1.1\r\n" H "\r\n");
    until_stat("parked=", 3);
    wake("apple");
    wire_read_answer(a, false, &answer);
    assert_true(answer_has(&answer, "woken"));
    wire_read_answer(b, false, &answer);
    assert_true(answer_has(&answer, "woken"));
    assert_true(wire_silent(other, 50));
    until_stat("parked=", 1);
    wake("banana");
    wire_read_answer(other, false, &answer);
    assert_int_equal(answer_status(&answer), 200);
    wire_send(a, "GET /hello HTTP/1.1\r\n" H "\r\n");    /* and the connection goes on */
    wire_read_answer(a, false, &answer);
    assert_string_equal(answer_body(&answer), "hello\n");
    close(a);
    close(b);
    close(other);
}

/* Topics share the table's rings: a thousand others meet the few that are parked, and wake none. */
static void wakes_only_its_topic(void **state)
{
    (void)state;
    enum { PARKED = 50, OTHERS = 1000 };
    BUF answer = { 0 };
    int parked[PARKED];
    const int fd = wire_open(&server);
    for (int i = 0; i < PARKED; i++) {
        OWNED char *text = str_format("GET /park?mine-%d HTTP/1.1\r\n" H "\r\n", i);
        parked[i] = wire_open(&server);
        wire_send(parked[i], text);
    }
    until_stat("parked=", PARKED);
    for (int i = 0; i < OTHERS; i++) {
        OWNED char *text = str_format("GET /wake?other-%d HTTP/1.1\r\n" H "\r\n", i);
        wire_send(fd, text);
        wire_read_answer(fd, false, &answer);
    }
    assert_int_equal(stat_of("parked="), PARKED);
    for (int i = 0; i < PARKED; i++) {
        OWNED char *topic = str_format("mine-%d", i);
        wake(topic);
        wire_read_answer(parked[i], false, &answer);
        assert_int_equal(answer_status(&answer), 200);
        close(parked[i]);
    }
    close(fd);
}

static void woken_answers_leave_at_once(void **state)
{
    (void)state;
    BUF answer = { 0 };
    const int fd = wire_open(&server);
    int64_t worst = 0;
    for (int i = 0; i < 20; i++) {
        wire_send(fd, "GET /park?quick HTTP/1.1\r\n" H "\r\n");
        until_stat("parked=", 1);
        const int64_t began = clock_mono_ms();
        wake("quick");
        wire_read_answer(fd, false, &answer);
        if (clock_mono_ms() - began > worst)
            worst = clock_mono_ms() - began;
    }
    assert_true(worst < 100);
    close(fd);
}

static void park_until_deadline(void **state)
{
    (void)state;
    BUF answer = wire_ask(&server, "GET /park-short?pear HTTP/1.1\r\n" H "\r\n");
    assert_string_equal(answer_body(&answer), "woken late\n");
    assert_int_equal(stat_of("parked="), 0);
}

/* A phase that finds nothing decided parks again on the same topic: one wake is one look, not a loop. */
static void park_again(void **state)
{
    (void)state;
    BUF answer = { 0 };
    const int fd = wire_open(&server);
    wire_send(fd, "GET /park-again?plum HTTP/1.1\r\n" H "\r\n");
    until_stat("parked=", 1);
    wake("plum");
    until_stat("parked=", 1);
    assert_true(wire_silent(fd, 50));
    wake("plum");
    wire_read_answer(fd, false, &answer);
    assert_int_equal(answer_status(&answer), 200);
    close(fd);
}

static void client_leaves_while_parked(void **state)
{
    (void)state;
    const int fd = wire_open(&server);
    wire_send(fd, "GET /park?gone HTTP/1.1\r\n" H "\r\n");
    until_stat("parked=", 1);
    const long lost = stat_of("lost=");
    const struct linger hard = { 1, 0 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    wake("gone");
    until_stat("lost=", lost + 1);
    assert_int_equal(stat_of("parked="), 0);
}

static void head_and_options(void **state)
{
    (void)state;
    BUF answer = { 0 };
    const int fd = wire_open(&server);
    wire_send(fd, "HEAD /hello HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(fd, true, &answer);
    assert_true(answer_has(&answer, "Content-Length: 6"));
    wire_send(fd, "HEAD /length HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(fd, true, &answer);
    assert_true(answer_has(&answer, "Content-Length: 12345"));
    wire_send(fd, "OPTIONS /no/such HTTP/1.1\r\n" H "Origin: https://a\r\n"
                  "Access-Control-Request-Headers: x-one,x-two\r\n\r\n");
    wire_read_answer(fd, false, &answer);
    assert_int_equal(answer_status(&answer), 204);
    assert_true(answer_has(&answer, "PAYMENT-SIGNATURE, X-PAYMENT, Authorization, Accept-Payment, SIGN-IN-WITH-X, Content-Type, Idempotency-Key, "
                                    "Access-Control-Expose-Headers, Payonce-Retry-Source, traceparent, x-one,x-two"));
    assert_true(answer_has(&answer, "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    assert_true(answer_has(&answer, "Access-Control-Max-Age: "));
    wire_send(fd, "OPTIONS * HTTP/1.1\r\n" H "Access-Control-Request-Headers: x one\r\n\r\n");
    wire_read_answer(fd, false, &answer);
    assert_int_equal(answer_status(&answer), 204);
    assert_false(answer_has(&answer, "x one"));
    close(fd);
}

static void expect_continue(void **state)
{
    (void)state;
    BUF answer = { 0 };
    const int fd = wire_open(&server);
    wire_send(fd, "POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    wire_read_answer(fd, true, &answer);
    assert_int_equal(answer_status(&answer), 100);
    wire_send(fd, "abc");
    wire_read_answer(fd, false, &answer);
    assert_true(answer_has(&answer, "\"body\":\"abc\""));
    close(fd);
}

static void answers_hold_no_line_of_others(void **state)
{
    (void)state;
    BUF answer = wire_ask(&server, "GET /inject HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(answer_status(&answer), 200);
    assert_false(answer_has(&answer, "X-Injected"));
    assert_true(answer_has(&answer, "X-Good: yes"));
    BUF large = wire_ask(&server, "GET /large-head HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(answer_status(&large), 500);
    assert_true(answer_has(&large, "\"code\":\"internal\""));
    BUF problem = wire_ask(&server, "GET /no HTTP/1.1\r\n" H "\r\n");
    assert_true(answer_has(&problem, "Retry-After: 7") && answer_has(&problem, "Cache-Control: no-store"));
}

static void client_is(const char *from, const char *headers, const char *wanted)
{
    BUF answer = { 0 };
    OWNED char *text = str_format("GET /echo HTTP/1.1\r\n" H "%s\r\n", headers);
    OWNED char *client = str_format("\"client\":\"%s\"", wanted);
    const int fd = wire_open_from(&server, from);
    wire_send(fd, text);
    wire_read_answer(fd, false, &answer);
    if (!answer_has(&answer, client))
        fail_msg("wanted %s, got %s", client, answer.p);
    close(fd);
}

static void forwarded_clients(void **state)
{
    (void)state;
    client_is("127.0.0.1", "X-Forwarded-For: 1.2.3.4\r\n", "127.0.0.1");
    client_is("127.0.0.2", "", "127.0.0.2");
    client_is("127.0.0.2", "X-Forwarded-For: 1.2.3.4\r\n", "1.2.3.4");
    client_is("127.0.0.2", "X-Forwarded-For: 6.6.6.6, 1.2.3.4 , 10.9.8.7\r\n", "1.2.3.4");
    client_is("127.0.0.2", "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 2001:DB8::1\r\n", "2001:db8::1");
    client_is("127.0.0.2", "X-Forwarded-For: 1.2.3.4, junk\r\n", "127.0.0.2");
    client_is("127.0.0.2", "X-Forwarded-For: 11.2.3.4, 10.1.1.1\r\n", "11.2.3.4");
}

static void idle_connections_end(void **state)
{
    (void)state;
    struct child brief = child_start("1000", "1000");
    BUF answer = { 0 };
    const int idle = wire_open(&brief), slow = wire_open(&brief), parked = wire_open(&brief);
    wire_send(idle, "GET /hello HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(idle, false, &answer);
    wire_send(parked, "GET /go-later HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(parked, false, &answer);
    wire_send(parked, "GET /park?x HTTP/1.1\r\n" H "\r\n");
    const int64_t began = clock_mono_ms();
    wire_send(slow, "GET /hello HTTP/1.1\r\n" H "A: ");
    while (wire_silent(slow, 100) && clock_mono_ms() - began < 8000)
        wire_send(slow, "a");                            /* each byte puts the library's own timeout off */
    const int64_t took = clock_mono_ms() - began;
    assert_true(took > 1500 && took < 6000);
    assert_true(wire_closed(idle, 3000));
    assert_true(wire_silent(parked, 10));                /* the parked are not idle */
    close(idle);
    close(slow);
    close(parked);
    assert_int_equal(child_stop(&brief), 0);
}

/* Parked requests are woken, slow ones finish, new ones are told to go elsewhere; the rest is cut at the deadline. */
static void drain(void **state)
{
    (void)state;
    struct child c = child_start("60000", "20000");
    BUF answer = { 0 };
    const int parked = wire_open(&c), slow = wire_open(&c), idle = wire_open(&c);
    wire_send(idle, "GET /hello HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(idle, false, &answer);
    wire_send(slow, "GET /hello HTTP/1.1\r\n" H "\r\nGET /go-later HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(slow, false, &answer);
    wire_send(parked, "GET /hello HTTP/1.1\r\n" H "\r\nGET /park?x HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(parked, false, &answer);
    child_signal_stop(&c);
    wire_read_answer(parked, false, &answer);
    assert_int_equal(answer_status(&answer), 503);
    assert_true(answer_has(&answer, "shutting_down") && answer_has(&answer, "Connection: close"));
    wire_send(idle, "GET /hello HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(idle, false, &answer);
    assert_int_equal(answer_status(&answer), 503);
    wire_read_answer(slow, false, &answer);
    assert_string_equal(answer_body(&answer), "hello\n");
    assert_int_equal(child_wait(&c), 0);
    close(parked);
    close(slow);
    close(idle);
}

static void drain_has_an_end(void **state)
{
    (void)state;
    struct child c = child_start("60000", "20000");
    BUF answer = { 0 };
    const int fd = wire_open(&c);
    wire_send(fd, "GET /hello HTTP/1.1\r\n" H "\r\nGET /never HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(fd, false, &answer);
    const int64_t began = clock_mono_ms();
    assert_int_equal(child_stop(&c), 0);
    assert_true(clock_mono_ms() - began > 1500);
    assert_true(wire_closed(fd, 1000));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelined),
        cmocka_unit_test(waiting),
        cmocka_unit_test(park_and_wake),
        cmocka_unit_test(wakes_only_its_topic),
        cmocka_unit_test(woken_answers_leave_at_once),
        cmocka_unit_test(park_until_deadline),
        cmocka_unit_test(park_again),
        cmocka_unit_test(client_leaves_while_parked),
        cmocka_unit_test(head_and_options),
        cmocka_unit_test(expect_continue),
        cmocka_unit_test(answers_hold_no_line_of_others),
        cmocka_unit_test(forwarded_clients),
        cmocka_unit_test(idle_connections_end),
        cmocka_unit_test(drain),
        cmocka_unit_test(drain_has_an_end),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
