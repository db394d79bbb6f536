/* What the server refuses, on the wire, and that it stays well afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/api/wire.h"

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

/* Refused with a problem document, and the connection closed: what follows on it could be anything. */
static void refuses(const char *bytes, size_t n, int status, const char *code)
{
    BUF answer = { 0 };
    char expected[80];
    const int fd = wire_open(&server);
    wire_send_bytes(fd, bytes, n);
    wire_read_answer(fd, false, &answer);
    snprintf(expected, sizeof expected, "\"code\":\"%s\"", code);
    if (answer_status(&answer) != status || !answer_has(&answer, expected) ||
        !answer_has(&answer, "application/problem+json") || !wire_closed(fd, 1000))
        fail_msg("wanted %d %s and the end for:\n%s\ngot:\n%s", status, code, bytes, answer.n ? answer.p : "nothing");
    close(fd);
}
#define REFUSES(bytes, status, code) refuses(bytes, sizeof(bytes) - 1, status, code)
#define H "Host: x\r\n"

static void ambiguous_framing(void **state)
{
    (void)state;
    REFUSES("POST /echo HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
            "bad_request");
    REFUSES("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400,
            "bad_request");
    REFUSES("POST /echo HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", 400, "bad_request");
    REFUSES("POST /echo HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: +5\r\n\r\nabcde", 400, "bad_request");
    REFUSES("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "bad_request");
    REFUSES("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", 400, "bad_request");
    REFUSES("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400, "bad_request");
    REFUSES("POST /echo HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "bad_request");
}

/* The library refuses these before it asks us: no problem document, but 400 or 413 and the end. */
static void malformed_lengths(void **state)
{
    (void)state;
    static const char *const values[] = { "abc", "+5", "-1", "0x5", "5, 5", "", "5 5", "99999999999999999999999" };
    for (size_t i = 0; i < COUNT(values); i++) {
        char text[200];
        BUF answer = { 0 };
        snprintf(text, sizeof text, "POST /echo HTTP/1.1\r\n" H "Content-Length: %s\r\n\r\nabcde", values[i]);
        const int fd = wire_open(&server);
        wire_send(fd, text);
        wire_read_answer(fd, false, &answer);
        assert_int_equal(answer_status(&answer), i + 1 == COUNT(values) ? 413 : 400);
        assert_true(wire_closed(fd, 1000));
        close(fd);
    }
}

static void hosts(void **state)
{
    (void)state;
    REFUSES("GET /hello HTTP/1.1\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\nHost:\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\nHost: a, b\r\n\r\n", 400, "bad_request");
    BUF answer = wire_ask(&server, "GET /hello HTTP/1.0\r\n\r\n");
    assert_int_equal(answer_status(&answer), 200);
    assert_true(answer_has(&answer, "Connection: close"));
}

static void header_lines(void **state)
{
    (void)state;
    REFUSES("GET /hello HTTP/1.1\r\nHost : x\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A : b\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n A: b\r\n" H "\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "Transfer: b\r\n -Encoding\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\r\n\tc\r\nD: e\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "(A): b\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A\xc3\xa9: b\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H ": b\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\0c\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\rc\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\x01\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\x7f\r\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\nHost: x\n\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\n\r\n", 400, "bad_request");
    REFUSES("GET /hello HTTP/1.1\r\n" H "A: b\nC: d\r\n\r\n", 400, "bad_request");
    BUF answer = wire_ask(&server, "GET /echo HTTP/1.1\r\n" H "A:\r\nB:\t \tc  \r\nC: \xc3\xa9\td\r\n\r\n");
    assert_int_equal(answer_status(&answer), 200);
    assert_true(answer_has(&answer, "[[\"Host\",\"x\"],[\"A\",\"\"],[\"B\",\"c\"],[\"C\",\"\\u00E9\\td\"]]"));
}

static void targets(void **state)
{
    (void)state;
    REFUSES("GET http://x/hello HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET hello HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET * HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("CONNECT x:80 HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET /hel lo HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET /hello\tx HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET /h\xc3\xa9llo HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET /hello?a=\x01 HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET /hello#x HTTP/1.1\r\n" H "\r\n", 400, "bad_target");
    REFUSES("GET /hello\0x HTTP/1.1\r\n" H "\r\n", 400, "bad_request");
    REFUSES("GET  /hello HTTP/1.1\r\n" H "\r\n", 400, "bad_request");
    REFUSES("G(T /hello HTTP/1.1\r\n" H "\r\n", 400, "bad_request");
}

/* What is decoded for nobody reaches the application as it came. */
static void raw_targets_arrive(void **state)
{
    (void)state;
    BUF answer = wire_ask(&server, "GET /echo?a=%00b&c=%2F+d?e HTTP/1.1\r\n" H "\r\n");
    assert_true(answer_has(&answer, "\"target\":\"/echo?a=%00b&c=%2F+d?e\",\"path\":\"/echo\""));
    assert_true(answer_has(&answer, "\"query\":\"a=%00b&c=%2F+d?e\""));
    BUF encoded = wire_ask(&server, "GET /echo%00 HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(answer_status(&encoded), 404);
    BUF slash = wire_ask(&server, "GET /%65cho HTTP/1.1\r\n" H "\r\n");
    assert_int_equal(answer_status(&slash), 404);
}

static char *filled(const char *before, size_t n, const char *after)
{
    struct buf b = { 0 };
    buf_puts(&b, before);
    for (size_t i = 0; i < n; i++)
        buf_puts(&b, "a");
    buf_puts(&b, after);
    return b.p;
}

static void large_heads(void **state)
{
    (void)state;
    static const struct { const char *before, *after; size_t n; int status; } cases[] = {
        { "GET /hello HTTP/1.1\r\n" H "A: ", "\r\n\r\n", 16384, 200 },
        { "GET /hello HTTP/1.1\r\n" H "A: ", "\r\n\r\n", 24000, 431 },
        { "GET /hello HTTP/1.1\r\n" H "A: ", "\r\n\r\n", 1000000, 431 },
        { "GET /", " HTTP/1.1\r\n" H "\r\n", 1000000, 414 },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        OWNED char *text = filled(cases[i].before, cases[i].n, cases[i].after);
        const int64_t began = clock_mono_ms();
        BUF answer = wire_ask(&server, text);
        assert_int_equal(answer_status(&answer), cases[i].status);
        assert_true(clock_mono_ms() - began < 1000);
    }
    BUF many = { 0 };
    buf_puts(&many, "GET /hello HTTP/1.1\r\n" H);
    for (int i = 0; i < 300; i++)
        buf_puts(&many, "a: b\r\n");
    buf_puts(&many, "\r\n");
    refuses(many.p, many.n, 431, "header_too_large");
}

static void large_bodies(void **state)
{
    (void)state;
    BUF early = { 0 };
    OWNED char *body = filled("POST /echo HTTP/1.1\r\n" H "Content-Length: 5000000\r\n\r\n", 5000000, "");
    const int fd = wire_open(&server);
    assert_true(wire_send_bytes(fd, body, strlen(body))); /* many clients read only when all is sent */
    wire_read_answer(fd, false, &early);
    assert_int_equal(answer_status(&early), 413);
    assert_true(answer_has(&early, "body_too_large") && wire_closed(fd, 1000));
    close(fd);
    REFUSES("POST /echo HTTP/1.1\r\n" H "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 413, "body_too_large");
    OWNED char *most = filled("POST /echo HTTP/1.1\r\n" H "Content-Length: 1000\r\n\r\n", 1000, "");
    BUF answer = wire_ask(&server, most);
    assert_int_equal(answer_status(&answer), 200);
}

static void chunked_bodies(void **state)
{
    (void)state;
    BUF answer = { 0 };
    BUF text = { 0 };
    const int fd = wire_open(&server);
    wire_send(fd, "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n");
    wire_read_answer(fd, false, &answer);
    assert_true(answer_has(&answer, "\"body\":\"abcde\""));

    buf_puts(&text, "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 50; i++)
        buf_printf(&text, "64\r\n%0100d\r\n", i);
    wire_send(fd, text.p);
    wire_send(fd, "0\r\n\r\nGET /hello HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(fd, false, &answer);
    assert_int_equal(answer_status(&answer), 413);
    wire_read_answer(fd, false, &answer);                /* all of it was read, so the connection lives */
    assert_string_equal(answer_body(&answer), "hello\n");

    wire_send(fd, "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 400; i++)
        wire_send(fd, text.p + strlen("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"));
    assert_true(wire_closed(fd, 3000));
    close(fd);
}

static void still_well(void **state)
{
    (void)state;
    BUF answer = wire_ask(&server, "GET /hello HTTP/1.1\r\n" H "\r\n");
    assert_string_equal(answer_body(&answer), "hello\n");
    assert_true(answer_has(&answer, "Access-Control-Allow-Origin: *"));
    assert_true(answer_has(&answer, "X-Request-Id: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ambiguous_framing), cmocka_unit_test(malformed_lengths), cmocka_unit_test(hosts),
        cmocka_unit_test(header_lines),      cmocka_unit_test(targets),           cmocka_unit_test(raw_targets_arrive),
        cmocka_unit_test(large_heads),       cmocka_unit_test(large_bodies),      cmocka_unit_test(chunked_bodies),
        cmocka_unit_test(still_well),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
