/* The call to the seller's API. server_app is in front; the seller's API is this test, which reads what comes and
 * answers with bytes of its own choice. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/api/wire.h"

#define H "Host: front\r\n"
#define OK "HTTP/1.1 200 OK\r\n"

static struct child front;
static int listening;

static int listen_anywhere(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    const struct timeval patience = { 10, 0 };
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    OWNED char *url = str_format("http://127.0.0.1:%u", ntohs(a.sin_port));
    setenv("UPSTREAM", url, 1);
    return fd;
}

static int start(void **state)
{
    (void)state;
    listening = listen_anywhere();
    front = child_start("60000", "20000");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    close(listening);
    return child_stop(&front);
}

static int seller_accepts(struct buf *ret_seen)
{
    const struct timeval patience = { 10, 0 };
    const int fd = accept(listening, NULL, NULL);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    wire_read_answer(fd, false, ret_seen);               /* a request has the same frame */
    return fd;
}

/* The whole way once: ask, be called, say `answer` and close. */
static void through(const char *ask, const char *answer, struct buf *ret_seen, struct buf *ret_got)
{
    const int fd = wire_open(&front);
    wire_send(fd, ask);
    const int seller = seller_accepts(ret_seen);
    wire_send(seller, answer);
    close(seller);
    wire_read_answer(fd, strncmp(ask, "HEAD", 4) == 0, ret_got);
    close(fd);
}

static void ends(const char *method_and_path, const char *answer, const char *end)
{
    BUF seen = { 0 };
    BUF got = { 0 };
    OWNED char *ask = str_format("%s HTTP/1.1\r\n" H "\r\n", method_and_path);
    OWNED char *wanted = str_format("\"end\":\"%s\"", end);
    through(ask, answer, &seen, &got);
    if (!answer_has(&got, wanted))
        fail_msg("%s answered with\n%s\nshould be %s, is\n%s", method_and_path, answer, end, got.n ? got.p : "nothing");
}

static void outcomes(void **state)
{
    (void)state;
    ends("GET /read", OK "Content-Length: 2\r\n\r\nhi", "done");
    ends("GET /read", "HTTP/1.1 304 Not Modified\r\n\r\n", "done");
    ends("GET /read", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "refused");
    ends("GET /read", "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "failed");
    ends("GET /read", OK "Content-Length: 20\r\n\r\nhi", "timeout");
    ends("GET /read", "", "timeout");
    ends("GET /read", "nonsense\r\n\r\n", "timeout");
    ends("POST /write", OK "Content-Length: 2\r\n\r\nhi", "done");
    ends("POST /write", "HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n", "refused");
    ends("POST /write", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "lost");
    ends("POST /write", OK "Content-Length: 20\r\n\r\nhi", "lost");
    ends("POST /write", "", "lost");

    BUF large = { 0 };
    buf_puts(&large, OK "Content-Length: 1001\r\n\r\n");
    for (int i = 0; i < 1001; i++)
        buf_puts(&large, "x");
    ends("GET /read", large.p, "too_large");
    ends("POST /write", large.p, "lost");
}

static void silence(const char *ask, const char *end)
{
    BUF seen = { 0 };
    BUF got = { 0 };
    const int fd = wire_open(&front);
    const int64_t began = clock_mono_ms();
    wire_send(fd, ask);
    const int seller = seller_accepts(&seen);
    wire_read_answer(fd, false, &got);
    assert_true(answer_has(&got, end));
    assert_true(clock_mono_ms() - began < 3000);
    close(seller);
    close(fd);
}

static void deadlines(void **state)
{
    (void)state;
    silence("GET /read HTTP/1.1\r\n" H "\r\n", "\"end\":\"timeout\"");
    silence("POST /write HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "\"end\":\"lost\"");
}

static void nobody_there(void **state)
{
    (void)state;
    close(listen_anywhere());                            /* a port that nobody listens on any more */
    struct child c = child_start("60000", "20000");
    BUF read = wire_ask(&c, "GET /read HTTP/1.1\r\n" H "\r\n");
    assert_true(answer_has(&read, "\"end\":\"unreached\""));
    BUF write = wire_ask(&c, "POST /write HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n");
    assert_true(answer_has(&write, "\"end\":\"unreached\""));
    assert_int_equal(child_stop(&c), 0);
}

/* Case-blind, at the beginning of a line. */
static bool sends(const struct buf *seen, const char *line_start)
{
    OWNED char *wanted = str_format("\r\n%s", line_start);
    return strcasestr(seen->p, wanted);
}

static void what_goes_out(void **state)
{
    (void)state;
    BUF seen = { 0 };
    BUF got = { 0 };
    through("POST /write?a=%2F..%00b HTTP/1.1\r\n" H
            "Authorization: Bearer theirs\r\nAccept-Encoding: gzip\r\nContent-Type: text/x\r\nX-Own: 1\r\nX-Own: 2\r\n"
            "PAYMENT-SIGNATURE: secret\r\nX-PAYMENT: secret\r\nSIGN-IN-WITH-X: secret\r\nPayonce-Retry: secret\r\n"
            "Idempotency-Key: theirs-theirs-theirs\r\nX-Payer: 0xthief\r\nX-Forwarded-For: 6.6.6.6\r\n"
            "X-Forwarded-Host: evil\r\nForwarded: for=6.6.6.6\r\nX-Request-Id: theirs-\r\nProxy-Connection: secret\r\n"
            "TE: trailers\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\nX-Hop: secret\r\nConnection: keep-alive, X-Hop\r\n"
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\n"
            "Content-Length: 3\r\n\r\nabc",
            OK "Content-Length: 0\r\n\r\n", &seen, &got);
    assert_true(strncmp(seen.p, "POST /write?a=%2F..%00b HTTP/1.1\r\n", 34) == 0);
    assert_string_equal(answer_body(&seen), "abc");
    static const char *const in[] = { "Host: 127.0.0.1:", "Authorization: Bearer theirs\r", "Accept-Encoding: gzip\r",
                                      "Content-Type: text/x\r", "X-Own: 1\r", "X-Own: 2\r", "Content-Length: 3\r",
                                      "Idempotency-Key: ord_1\r", "X-Payer: 0xpayer\r", "X-Forwarded-For: 127.0.0.1\r",
                                      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r",
                                      "tracestate: a=b\r" };
    for (size_t i = 0; i < COUNT(in); i++)
        if (!sends(&seen, in[i]))
            fail_msg("missing %s in\n%s", in[i], seen.p);
    static const char *const out[] = { "secret", "theirs-", "thief", "6.6.6.6", "evil", "front", "h2c", "trailers" };
    for (size_t i = 0; i < COUNT(out); i++)
        if (strstr(seen.p, out[i]))
            fail_msg("sent %s in\n%s", out[i], seen.p);
}

static void free_route(void **state)
{
    (void)state;
    BUF seen = { 0 };
    BUF got = { 0 };
    through("GET /read?free HTTP/1.1\r\n" H "X-Payer: 0xthief\r\ntraceparent: junk\r\ntracestate: a=b\r\n\r\n",
            OK "Content-Length: 0\r\n\r\n", &seen, &got);
    assert_false(sends(&seen, "X-Payer"));
    assert_false(sends(&seen, "Idempotency-Key"));
    assert_false(sends(&seen, "tracestate"));
    assert_true(sends(&seen, "traceparent: 00-"));
    assert_false(sends(&seen, "traceparent: junk"));
}

static void what_comes_back(void **state)
{
    (void)state;
    BUF seen = { 0 };
    BUF got = { 0 };
    through("GET /read HTTP/1.1\r\n" H "\r\n",
            "HTTP/1.1 103 Early Hints\r\nX-Early: secret\r\n\r\n" OK
            "Content-Type: text/x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nETag: \"e\"\r\nContent-Encoding: gzip\r\n"
            "PAYMENT-REQUIRED: secret\r\nPAYMENT-RESPONSE: secret\r\nX-PAYMENT-RESPONSE: secret\r\n"
            "Payonce-Receipt: secret\r\nPayonce-X: secret\r\nAccess-Control-Allow-Origin: secret\r\nDate: secret\r\n"
            "X-Hop: secret\r\nConnection: close, X-Hop\r\nKeep-Alive: secret\r\nProxy-Authenticate: secret\r\n"
            "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Trailer: secret\r\n\r\n",
            &seen, &got);
    assert_true(answer_has(&got, "\"headers\":[[\"Content-Type\",\"text/x\"],[\"Set-Cookie\",\"a\"],"
                                 "[\"Set-Cookie\",\"b\"],[\"ETag\",\"\\\"e\\\"\"],"
                                 "[\"Content-Encoding\",\"gzip\"]],\"body\":\"hi\""));
}

static void heads(void **state)
{
    (void)state;
    BUF seen = { 0 };
    BUF got = { 0 };
    through("HEAD /read HTTP/1.1\r\n" H "\r\n", OK "Content-Length: 777\r\n\r\n", &seen, &got);
    assert_true(strncmp(seen.p, "HEAD /read HTTP/1.1\r\n", 21) == 0);
    assert_int_equal(answer_status(&got), 200);
}

/* A read's connection may serve the next call; a write's is new and ends with it. */
static void connections(void **state)
{
    (void)state;
    BUF seen = { 0 };
    BUF got = { 0 };
    const int fd = wire_open(&front);
    wire_send(fd, "GET /read HTTP/1.1\r\n" H "\r\n");
    const int kept = seller_accepts(&seen);
    wire_send(kept, OK "Content-Length: 0\r\n\r\n");
    wire_read_answer(fd, false, &got);
    wire_send(fd, "GET /read HTTP/1.1\r\n" H "\r\n");
    wire_read_answer(kept, false, &seen);
    assert_true(strncmp(seen.p, "GET /read", 9) == 0);
    wire_send(kept, OK "Content-Length: 0\r\n\r\n");
    wire_read_answer(fd, false, &got);

    wire_send(fd, "POST /write HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n");
    const int fresh = seller_accepts(&seen);             /* would hang if it came over `kept` */
    wire_send(fresh, OK "Content-Length: 0\r\n\r\n");
    wire_read_answer(fd, false, &got);
    assert_true(answer_has(&got, "\"end\":\"done\""));
    assert_true(wire_closed(fresh, 2000));
    close(fresh);
    close(kept);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes),        cmocka_unit_test(deadlines), cmocka_unit_test(nobody_there),
        cmocka_unit_test(what_goes_out),   cmocka_unit_test(free_route), cmocka_unit_test(what_comes_back),
        cmocka_unit_test(heads),           cmocka_unit_test(connections),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
