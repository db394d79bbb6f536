/* The agent against a scripted server: nothing leaves before it is on disk, and one purchase is signed once. */
#include "tests/unit/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "api/pay.h"
#include "tests/unit/fake_server.h"

/* What the server process saw and how it is to answer a payment; shared memory. */
struct seen {
    unsigned unpaid, paid, cut, refuse, in_flight; /* the last three: how many payments are still to end like that */
    char first[16384], last[16384];  /* payment headers */
    bool stored_before;              /* the intent's file was there at each payment */
    char store[256];
};

struct world {
    struct seen *seen;
    pid_t server;
    unsigned port;
    char dir[64], store[128], key[128], url[64];
};

/* ---- the server ---- */

static void copy_payment(struct slice request, char ret[16384])
{
    const char *from = memmem(request.p, request.n, "PAYMENT-SIGNATURE: ", 19);
    const char *to = from ? strstr(from, "\r\n") : NULL;
    *ret = '\0';
    if (to)
        snprintf(ret, 16384, "%.*s", (int)(to - from - 19), from + 19);
}

static bool any_intent(const char *store)
{
    OWNED char *command = str_format("ls %s/*.json >/dev/null 2>&1", store);
    return system(command) == 0;
}

static void ask_for_payment(struct buf *reply, const char *why)
{
    BUF challenge = { 0 }, header = { 0 };
    buf_printf(&challenge,
               "{\"x402Version\":2,\"error\":\"%s\",\"resource\":{\"url\":\"http://x/\"},\"accepts\":[{\"scheme\":\"exact\","
               "\"network\":\"eip155:84532\",\"amount\":\"1000\",\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\","
               "\"payTo\":\"0x2222222222222222222222222222222222222222\",\"maxTimeoutSeconds\":120,"
               "\"extra\":{\"name\":\"USDC\",\"version\":\"2\"}}]}",
               why);
    base64_add(&header, challenge.p, challenge.n);
    buf_printf(reply, "HTTP/1.1 402 X\r\nPAYMENT-REQUIRED: %s\r\nContent-Length: 0\r\n\r\n", header.p);
}

static enum fake_then serve(void *arg, struct slice request, struct buf *reply)
{
    struct seen *s = arg;
    if (!memmem(request.p, request.n, "PAYMENT-SIGNATURE: ", 19)) {
        s->unpaid++;
        ask_for_payment(reply, "Payment required");
        return FAKE_KEEP;
    }
    s->stored_before = s->stored_before && any_intent(s->store);
    copy_payment(request, s->paid++ ? s->last : s->first);
    if (s->cut > 0) {
        s->cut--;
        return FAKE_CLOSE;
    }
    if (s->refuse > 0) {
        s->refuse--;
        ask_for_payment(reply, "invalid_exact_evm_insufficient_balance");
        return FAKE_KEEP;
    }
    if (s->in_flight > 0) {
        s->in_flight--;
        const char problem[] = "{\"code\":\"payment_in_flight\",\"retry\":\"poll\",\"order_id\":\"ord_1\"}";
        buf_printf(reply, "HTTP/1.1 409 X\r\nRetry-After: 1\r\nContent-Type: application/problem+json\r\n"
                          "Content-Length: %zu\r\n\r\n%s", sizeof problem - 1, problem);
        return FAKE_KEEP;
    }
    buf_puts(reply, "HTTP/1.1 200 X\r\nPayonce-Charged: true\r\nPayonce-Order: ord_1\r\nContent-Length: 3\r\n\r\nyes");
    return FAKE_KEEP;
}

static void run_server(struct seen *s, int port_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct loop *l = loop_new();
    const struct fake *f = fake_new(l, serve, s);
    if (write(port_fd, &f->port, sizeof f->port) != sizeof f->port)
        _exit(1);
    loop_run(l);
}

static void start_server(struct world *w)
{
    int pipe_fd[2];
    assert_int_equal(pipe(pipe_fd), 0);
    w->server = fork();
    if (w->server == 0)
        run_server(w->seen, pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], &w->port, sizeof w->port), sizeof w->port);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%u/thing", w->port);
}

/* ---- the world of one test ---- */

static int set_up(void **state)
{
    struct world *w = mem_new(sizeof *w);
    w->seen = mmap(NULL, sizeof *w->seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w->seen == MAP_FAILED)
        return -1;
    memcpy(w->dir, "/tmp/payonce-agent-XXXXXX", 26);
    if (!mkdtemp(w->dir))
        return -1;
    snprintf(w->store, sizeof w->store, "%s/store", w->dir);
    snprintf(w->key, sizeof w->key, "%s/key", w->dir);
    memcpy(w->seen->store, w->store, sizeof w->store);
    w->seen->stored_before = true;
    FILE *f = fopen(w->key, "we");
    fprintf(f, "0x%064d\n", 7);
    fclose(f);
    chmod(w->key, 0600);
    start_server(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    kill(w->server, SIGKILL);
    waitpid(w->server, NULL, 0);
    munmap(w->seen, sizeof *w->seen);
    OWNED char *command = str_format("rm -rf %s", w->dir);
    const int rc = system(command);
    free(w);
    return rc;
}

/* Up to three further arguments, NULL where there is none. */
static int pay(struct world *w, const char *a, const char *b, const char *c)
{
    char *argv[12] = { str_copy("pay"), str_copy("--json"), str_copy("--key-file"), str_copy(w->key), str_copy("--store"),
                       str_copy(w->store), str_copy(w->url) };
    int n = 7;
    const char *more[] = { a, b, c };
    for (size_t i = 0; i < COUNT(more); i++) {
        if (more[i])
            argv[n++] = str_copy(more[i]);
    }
    char *given[12];
    memcpy(given, argv, sizeof given); /* getopt moves them about */
    const int status = pay_main(n, given);
    for (int i = 0; i < n; i++)
        free(argv[i]);
    return status;
}

#define ID "--id=pay_0123456789abcdef"

static void test_paid_and_stored(void **state)
{
    struct world *w = *state;
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_DONE);
    assert_int_equal(w->seen->unpaid, 1);
    assert_int_equal(w->seen->paid, 1);
    assert_true(w->seen->stored_before);

    struct key k;
    INTENT i = { 0 };
    struct store s = { w->store };
    assert_int_equal(key_load(w->key, &k), KEY_OK);
    OWNED char *path = store_path(&s, &k.address, "pay_0123456789abcdef");
    assert_int_equal(store_read(path, &i), STORE_FOUND);
    assert_int_equal(i.state, INTENT_DONE);
    assert_string_equal(json_str(i.result, "order_id"), "ord_1");
    OWNED char *header = intent_header(&i);
    assert_string_equal(header, w->seen->first);

    assert_int_equal(pay(w, ID, NULL, NULL), PAY_DONE); /* the same id: the same payment, and no price is asked */
    assert_int_equal(w->seen->unpaid, 1);
    assert_string_equal(w->seen->last, w->seen->first);
}

static void test_cut_replies(void **state)
{
    struct world *w = *state;
    w->seen->cut = 2;
    assert_int_equal(pay(w, NULL, NULL, NULL), PAY_DONE);
    assert_int_equal(w->seen->paid, 3);
    assert_string_equal(w->seen->last, w->seen->first);
}

static void test_in_flight(void **state)
{
    struct world *w = *state;
    w->seen->in_flight = 2;
    assert_int_equal(pay(w, "--wait=1", NULL, NULL), PAY_NOT_FINAL);
    assert_int_equal(pay(w, NULL, NULL, NULL), PAY_DONE); /* no id: the unfinished purchase is taken up */
    assert_int_equal(w->seen->unpaid, 1);
    assert_string_equal(w->seen->last, w->seen->first);
}

/* Refused or not, without a proof from the chain there is no second signature. */
static void test_refused(void **state)
{
    struct world *w = *state;
    w->seen->refuse = 2;
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_REFUSED);
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_REFUSED);
    assert_int_equal(w->seen->paid, 2);
    assert_string_equal(w->seen->last, w->seen->first);
}

static void test_lost_store(void **state)
{
    struct world *w = *state;
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_DONE);
    OWNED char *command = str_format("rm -rf %s", w->store);
    assert_int_equal(system(command), 0);
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_DONE);
    OWNED uint8_t *first = NULL, *last = NULL;
    size_t n;
    assert_true(base64_read(w->seen->first, strlen(w->seen->first), &first, &n));
    assert_true(base64_read(w->seen->last, strlen(w->seen->last), &last, &n));
    const char *a = strstr((const char *)first, "\"nonce\""), *b = strstr((const char *)last, "\"nonce\"");
    assert_non_null(a);
    assert_memory_equal(a, b, 76);
}

static void test_another_request_under_the_id(void **state)
{
    struct world *w = *state;
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_DONE);
    assert_int_equal(pay(w, ID, "--data=x", NULL), PAY_USAGE);
    assert_int_equal(w->seen->paid, 1);
}

static void test_caps(void **state)
{
    struct world *w = *state;
    assert_int_equal(pay(w, "--max=999", NULL, NULL), PAY_CAP);
    assert_int_equal(w->seen->paid, 0);
    assert_false(any_intent(w->store));
    assert_int_equal(pay(w, "--max-day=2000", NULL, NULL), PAY_DONE);
    assert_int_equal(pay(w, "--max-day=2000", "--new", NULL), PAY_DONE);
    assert_int_equal(pay(w, "--max-day=2000", "--new", NULL), PAY_CAP);
    assert_int_equal(w->seen->paid, 2);
}

/* ---- a store that cannot be written ---- */

static void test_store_that_cannot_be_made(void **state)
{
    struct world *w = *state;
    snprintf(w->store, sizeof w->store, "%s/key/store", w->dir); /* below a file */
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_FAILED);
    assert_int_equal(w->seen->unpaid + w->seen->paid, 0);
}

static void test_store_that_fails_at_the_write(void **state)
{
    struct world *w = *state;
    struct key k;
    struct store s = { w->store };
    assert_int_equal(key_load(w->key, &k), KEY_OK);
    OWNED char *path = store_path(&s, &k.address, "pay_0123456789abcdef");
    OWNED char *in_the_way = str_format("%s.tmp", path);
    assert_int_equal(mkdir(w->store, 0700), 0);
    assert_int_equal(mkdir(in_the_way, 0700), 0);
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_FAILED);
    assert_int_equal(w->seen->unpaid, 1);
    assert_int_equal(w->seen->paid, 0);
}

static void test_store_with_a_broken_intent(void **state)
{
    struct world *w = *state;
    OWNED char *path = str_format("%s/%064d.json", w->store, 0);
    assert_int_equal(mkdir(w->store, 0700), 0);
    FILE *f = fopen(path, "we");
    fputs("{", f);
    fclose(f);
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_FAILED); /* the day's sum is unknown */
    assert_int_equal(w->seen->paid, 0);
}

static void test_locked_intent(void **state)
{
    struct world *w = *state;
    struct key k;
    struct store s;
    char *why = NULL;
    assert_null(store_open(w->store, &s));
    assert_int_equal(key_load(w->key, &k), KEY_OK);
    OWNED char *path = store_path(&s, &k.address, "pay_0123456789abcdef");
    const int lock = store_lock(&s, path, false, &why);
    assert_true(lock >= 0);
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_NOT_FINAL);
    assert_int_equal(w->seen->unpaid + w->seen->paid, 0);
    close(lock);
    assert_int_equal(pay(w, ID, NULL, NULL), PAY_DONE);
    store_done(&s);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_paid_and_stored),
        IN_WORLD(test_cut_replies),
        IN_WORLD(test_in_flight),
        IN_WORLD(test_refused),
        IN_WORLD(test_lost_store),
        IN_WORLD(test_another_request_under_the_id),
        IN_WORLD(test_caps),
        IN_WORLD(test_store_that_cannot_be_made),
        IN_WORLD(test_store_that_fails_at_the_write),
        IN_WORLD(test_store_with_a_broken_intent),
        IN_WORLD(test_locked_intent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
