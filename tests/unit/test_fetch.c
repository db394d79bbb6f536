#include "test.h"

#include <dirent.h>

#include "base/fetch.h"
#include "fake_server.h"

struct lab {
    struct loop *loop;
    struct fetcher *fetcher;
    struct fake *server;
    struct buf request; /* the last that the server saw */
    const char *reply;  /* what it sends, as it is */
    enum fake_then then;
    bool done;
    enum fetch_end end;
    int status;
    struct buf body, headers;
};

static enum fake_then serve(void *arg, struct slice request, struct buf *reply)
{
    struct lab *lab = arg;
    lab->request.n = 0;
    buf_add(&lab->request, request.p, request.n);
    buf_puts(reply, lab->reply);
    return lab->then;
}

static int begin(void **state)
{
    struct lab *lab = mem_new(sizeof *lab);
    lab->loop = loop_new();
    lab->fetcher = fetcher_new(lab->loop);
    lab->server = fake_new(lab->loop, serve, lab);
    lab->reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    *state = lab;
    return 0;
}

static int end(void **state)
{
    struct lab *lab = *state;
    fetcher_free(lab->fetcher);
    fake_free(lab->server);
    loop_free(lab->loop);
    buf_done(&lab->request);
    buf_done(&lab->body);
    buf_done(&lab->headers);
    free(lab);
    return 0;
}

static void note(void *arg, const struct fetch_answer *a)
{
    struct lab *lab = arg;
    assert_false(lab->done);
    lab->done = true;
    lab->end = a->end;
    lab->status = a->status;
    lab->body.n = lab->headers.n = 0;
    buf_add(&lab->body, a->body.p, a->body.n);
    buf_puts(&lab->headers, "");
    for (size_t i = 0; i < a->header_count; i++) {
        buf_add(&lab->headers, a->headers[i].name.p, a->headers[i].name.n);
        buf_puts(&lab->headers, "=");
        buf_add(&lab->headers, a->headers[i].value.p, a->headers[i].value.n);
        buf_puts(&lab->headers, ";");
    }
    assert_true((a->end == FETCH_ANSWERED) == (a->why == NULL));
}

static enum fetch_end fetch(struct lab *lab, const char *method, const char *path, struct fetch_request rq)
{
    OWNED char *url = rq.url ? str_copy(rq.url) : str_format("%s%s", lab->server->url, path);
    rq.method = method;
    rq.url = url;
    if (!rq.deadline_ms)
        rq.deadline_ms = clock_mono_ms() + 5000;
    if (!rq.max_answer)
        rq.max_answer = 1000;
    lab->done = false;
    fetch_start(lab->fetcher, &rq, note, lab);
    assert_false(lab->done);
    assert_true(turn_until(lab->loop, &lab->done));
    return lab->end;
}

#define assert_request(lab, text) assert_string_equal((lab)->request.p, (text))

static void what_goes_out(void **state)
{
    struct lab *lab = *state;
    const char *port = strrchr(lab->server->url, ':');
    struct header headers[] = { { SLICE("X-A"), SLICE("1") }, { SLICE("X-Empty"), SLICE("") } };
    OWNED char *get =
        str_format("GET /a/../b//%%2f?q=1&r=%%zz HTTP/1.1\r\nHost: 127.0.0.1%s\r\nX-A: 1\r\nX-Empty:\r\n\r\n", port);
    assert_int_equal(
        fetch(lab, "GET", "/a/../b//%2f?q=1&r=%zz", (struct fetch_request){ .headers = headers, .header_count = 2 }),
        FETCH_ANSWERED);
    assert_request(lab, get);
    OWNED char *post = str_format("POST / HTTP/1.1\r\nHost: 127.0.0.1%s\r\nContent-Length: 5\r\n\r\n", port);
    assert_int_equal(fetch(lab, "POST", "/", (struct fetch_request){ .body = { "a\0b\r\n", 5 } }), FETCH_ANSWERED);
    assert_memory_equal(lab->request.p, post, strlen(post));
    assert_int_equal(lab->request.n, strlen(post) + 5);
    assert_memory_equal(lab->request.p + strlen(post), "a\0b\r\n", 5);
    OWNED char *empty = str_format("PUT / HTTP/1.1\r\nHost: 127.0.0.1%s\r\nContent-Length: 0\r\n\r\n", port);
    assert_int_equal(fetch(lab, "PUT", "/", (struct fetch_request){ .max_answer = 10 }), FETCH_ANSWERED);
    assert_request(lab, empty);
    OWNED char *delete = str_format("DELETE / HTTP/1.1\r\nHost: 127.0.0.1%s\r\n\r\n", port);
    assert_int_equal(fetch(lab, "DELETE", "/", (struct fetch_request){ .max_answer = 10 }), FETCH_ANSWERED);
    assert_request(lab, delete);
}

static void a_large_body_goes_without_expect(void **state)
{
    struct lab *lab = *state;
    enum { N = 1500000 };
    OWNED char *body = mem_new(N);
    memset(body, 'x', N);
    assert_int_equal(fetch(lab, "POST", "/", (struct fetch_request){ .body = { body, N } }), FETCH_ANSWERED);
    assert_null(strstr(lab->request.p, "xpect"));
    assert_true(lab->request.n > N);
}

static void what_comes_back(void **state)
{
    struct lab *lab = *state;
    lab->reply = "HTTP/1.1 103 Early Hints\r\nLink: early\r\n\r\n"
                 "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Encoding: gzip\r\nX-Two:  a b \r\nX-Two:\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n";
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .max_answer = 2 }), FETCH_ANSWERED);
    assert_int_equal(lab->status, 302);
    assert_string_equal(lab->body.p, "ok");
    assert_string_equal(lab->headers.p,
                        "Location=/elsewhere;Content-Encoding=gzip;X-Two=a b;X-Two=;Transfer-Encoding=chunked;");
    assert_int_equal(lab->server->requests, 1);
    lab->reply = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    assert_int_equal(fetch(lab, "HEAD", "/", (struct fetch_request){ .max_answer = 1 }), FETCH_ANSWERED);
    assert_int_equal(lab->body.n, 0);
    assert_memory_equal(lab->request.p, "HEAD / ", 7);
    assert_string_equal(lab->headers.p, "Content-Length=10;");
}

static void header_lookup(void **state)
{
    (void)state;
    struct header h[] = { { SLICE("X-One"), SLICE("1") }, { SLICE("x-one-more"), SLICE("2") } };
    struct fetch_answer a = { .headers = h, .header_count = 2 };
    size_t n = 7;
    assert_ptr_equal(fetch_header(&a, "x-ONE", &n), h[0].value.p);
    assert_int_equal(n, 1);
    assert_null(fetch_header(&a, "x", &n));
    assert_int_equal(n, 1);
}

static unsigned free_port(void)
{
    struct loop *l = loop_new();
    struct fake *f = fake_new(l, NULL, NULL);
    unsigned port = f->port;
    fake_free(f);
    loop_free(l);
    return port;
}

static void not_sent(void **state)
{
    struct lab *lab = *state;
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .max_answer = 9 }), FETCH_ANSWERED);
    OWNED char *refused = str_format("http://127.0.0.1:%u/", free_port());
    assert_int_equal(fetch(lab, "POST", "/", (struct fetch_request){ .url = refused, .body = SLICE("x") }),
                     FETCH_NOT_SENT);
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .url = "ftp://127.0.0.1/" }), FETCH_NOT_SENT);
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .url = "http://nowhere.invalid/" }),
                     FETCH_NOT_SENT);
    OWNED char *tls = str_format("https://127.0.0.1:%u/", lab->server->port);
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .url = tls, .deadline_ms = clock_mono_ms() + 100 }),
                     FETCH_NOT_SENT); /* the handshake hangs */
    struct header bad = { SLICE("X-A"), SLICE("1\r\nX-B: 2") };
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .headers = &bad, .header_count = 1 }),
                     FETCH_NOT_SENT);
    assert_int_equal(lab->server->requests, 1);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void count_not_sent(void *arg, const struct fetch_answer *a)
{
    unsigned *ended = arg;
    assert_int_equal(a->end, FETCH_NOT_SENT);
    (*ended)++;
}

/* Names that nobody has, many at once: nothing is left behind, and a good host is still reached. */
static void m06_names_that_are_not_found(void **state)
{
    enum { MANY = 16 };
    struct lab *lab = *state;
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .url = "http://nope.invalid/" }), FETCH_NOT_SENT);
    const unsigned before = descriptors();
    for (int round = 0; round < 2; round++) {
        unsigned ended = 0;
        for (int i = 0; i < MANY; i++) {
            OWNED char *url = str_format("http://nope-%d.invalid/", i);
            const struct fetch_request rq = {
                .method = "GET", .url = url, .once = i % 2, .deadline_ms = clock_mono_ms() + 20000, .max_answer = 9
            };
            fetch_start(lab->fetcher, &rq, count_not_sent, &ended);
        }
        while (ended < MANY)
            loop_turn(lab->loop, 50);
    }
    assert_in_range(descriptors(), before - 2, before + 2);
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .max_answer = 9 }), FETCH_ANSWERED);
}

static void lost(void **state)
{
    struct lab *lab = *state;
    lab->then = FAKE_CLOSE;
    lab->reply = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\ncut";
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .once = true }), FETCH_LOST);
    lab->reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncut";
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .once = true }), FETCH_LOST);
    lab->reply = "";
    assert_int_equal(fetch(lab, "POST", "/", (struct fetch_request){ .once = true }), FETCH_LOST);
    lab->reply = "SSH-2.0-nothing\r\n";
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .once = true }), FETCH_LOST);
    lab->then = FAKE_HANG;
    lab->reply = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nslow";
    int64_t start = clock_mono_ms();
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .deadline_ms = start + 80 }), FETCH_LOST);
    assert_in_range((uint64_t)(clock_mono_ms() - start), 80, 2000);
    assert_int_equal(lab->server->requests, 5);
}

static void too_large(void **state)
{
    struct lab *lab = *state;
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .max_answer = 2 }), FETCH_ANSWERED);
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .max_answer = 1 }), FETCH_TOO_LARGE);
    assert_int_equal(lab->body.n, 0);
}

static void connections(void **state)
{
    struct lab *lab = *state;
    for (unsigned i = 1; i <= 3; i++) {
        fetch(lab, "GET", "/", (struct fetch_request){ .once = true });
        assert_int_equal(lab->server->connections, i);
    }
    for (int i = 0; i < 3; i++)
        fetch(lab, "GET", "/", (struct fetch_request){ .once = false });
    assert_int_equal(lab->server->connections, 4);
    fetch(lab, "GET", "/", (struct fetch_request){ .once = true });
    assert_int_equal(lab->server->connections, 5);
    lab->then = FAKE_CLOSE; /* a reused connection that dies: once must not try again */
    lab->reply = "";
    unsigned before = lab->server->requests;
    assert_int_equal(fetch(lab, "POST", "/", (struct fetch_request){ .once = true }), FETCH_LOST);
    assert_int_equal(lab->server->requests, before + 1);
}

static void never(void *arg, const struct fetch_answer *a)
{
    (void)arg;
    (void)a;
    fail_msg("called after it was cancelled");
}

static void cancelled_is_silent(void **state)
{
    struct lab *lab = *state;
    struct fetch_request rq = {
        .method = "GET", .url = lab->server->url, .deadline_ms = clock_mono_ms() + 50, .max_answer = 9
    };
    fetch_cancel(fetch_start(lab->fetcher, &rq, never, NULL));
    struct fetch *x = fetch_start(lab->fetcher, &rq, never, NULL);
    lab->then = FAKE_HANG;
    lab->reply = "";
    while (lab->server->requests == 0)
        loop_turn(lab->loop, 20);
    fetch_cancel(x);
    while (clock_mono_ms() < rq.deadline_ms + 5)
        loop_turn(lab->loop, 10);
    fetch_start(lab->fetcher, &rq, never, NULL); /* ended by fetcher_free */
}

struct chain {
    struct lab *lab;
    unsigned left;
};

static void next(void *arg, const struct fetch_answer *a)
{
    struct chain *c = arg;
    assert_int_equal(a->end, FETCH_ANSWERED);
    if (--c->left == 0) {
        c->lab->done = true;
        return;
    }
    fetch_start(
        c->lab->fetcher,
        &(struct fetch_request){
            .method = "GET", .url = c->lab->server->url, .deadline_ms = clock_mono_ms() + 5000, .max_answer = 9 },
        next, c);
    loop_turn(c->lab->loop, 10);
}

static void a_callback_may_start_and_turn(void **state)
{
    struct lab *lab = *state;
    struct chain c = { lab, 20 };
    c.left++;
    next(&c, &(struct fetch_answer){ .end = FETCH_ANSWERED });
    assert_true(turn_until(lab->loop, &lab->done));
    assert_int_equal(lab->server->requests, 20);
}

static void no_proxy_from_the_environment(void **state)
{
    struct lab *lab = *state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    assert_int_equal(fetch(lab, "GET", "/", (struct fetch_request){ .once = true }), FETCH_ANSWERED);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_goes_out),
        TEST(a_large_body_goes_without_expect),
        TEST(what_comes_back),
        TEST(header_lookup),
        TEST(not_sent),
        TEST(m06_names_that_are_not_found),
        TEST(lost),
        TEST(too_large),
        TEST(connections),
        TEST(cancelled_is_silent),
        TEST(no_proxy_from_the_environment),
        TEST(a_callback_may_start_and_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
