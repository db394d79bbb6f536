/* A paying client that costs little, so that the servers have the machine: one thread, many connections, each a closed
 * loop of challenge, signature and paid call over plain x402 v2 ("exact" on EVM, EIP-3009).
 *
 *     load payers FIRST COUNT
 *         the addresses of payers FIRST.., one a line
 *     load pay HOST PORT PATH --payers FIRST:COUNT --connections N --seconds S [--warm S] [--payments N] [--keep-offer]
 *         the payers take turns; ends when the time is over or N payments are answered. --keep-offer pays the first
 *         402's offer again and again (a server without quotes takes that); else each call asks its price.
 *         With --mpp each call is paid on Tempo (load_mpp.c), not over x402.
 *     load repeat HOST PORT PATH --payers FIRST:COUNT --connections N --seconds S [--warm S]
 *         the same question each time, a payer a connection: the first is paid for, the others are free repeats
 *     load recover SECONDS
 *         how many payers' signatures one core recovers in a second
 *     load idle HOST PORT PATH --connections N
 *         connections that were served once and stay open until standard input ends
 *
 * `pay` and `idle` print "ready" when all connections stand (of `pay`: when every one has sent a payment), and at the
 * end one line of JSON. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "load_pay.h"

enum { ROOM = 16384, STATUS_MAX = 600, LATENCIES = 1 << 20 };

struct options {
    struct sockaddr_in to;
    const char *host, *path;
    uint64_t first, payers, payments; /* payments 0: no bound */
    unsigned connections;
    int64_t seconds, warm;
    bool keep_offer, idle, repeat, mpp;
};

enum phase { ASKING, PAYING, RESTING };

struct client {
    uint64_t call;
    int fd;
    enum phase phase;
    int64_t began_ms;                /* the paid call's */
    struct buf out;
    size_t sent, in;
    char text[ROOM + 1];
    size_t body_left;
    bool head_done, closes;
    int status;
};

struct load {
    const struct options *o;
    int epoll;
    struct client *clients;
    struct key *keys;                /* the payers', made once */
    uint64_t payments_sent, calls;
    unsigned resting;
    char *offer;                     /* with keep_offer: the first challenge */
    int64_t count_from_ms, end_ms;
    uint64_t paid, free, challenges, other[STATUS_MAX], broken;
    uint32_t *latency;
    size_t latencies;
    bool said_ready;
};

/* ---- payers ---- */

static struct key payer(uint64_t i)
{
    struct key k;
    char label[64];
    int n = snprintf(label, sizeof label, "payonce bench payer %llu", (unsigned long long)i);
    struct hash32 secret = keccak256(label, (size_t)n);
    if (!key_from_secret(secret.b, &k))
        abort();
    return k;
}

static int list_payers(uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        struct key k = payer(i);
        puts(address_lower(&k.address).s);
    }
    return 0;
}

/* ---- a connection ---- */

static void arm(struct load *l, struct client *c, int how, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.ptr = c };
    if (epoll_ctl(l->epoll, how, c->fd, &e) != 0)
        abort();
}

static void open_connection(struct load *l, struct client *c)
{
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int rc = c->fd < 0 ? -1 : connect(c->fd, (const struct sockaddr *)&l->o->to, sizeof l->o->to);
    if (rc != 0 && (c->fd < 0 || errno != EINPROGRESS)) {
        perror("load: connect");
        exit(1);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    arm(l, c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

static void start(struct client *c, const struct options *o, const char *header, const char *value)
{
    c->out.n = c->sent = c->in = c->body_left = 0;
    c->head_done = c->closes = false;
    /* a call of its own each time: one wallet's identical read at once would be taken for a repeat, and not be charged */
    if (o->repeat)
        buf_printf(&c->out, "GET %s HTTP/1.1\r\nHost: %s\r\n", o->path, o->host);
    else
        buf_printf(&c->out, "GET %s%ccall=%d-%llu HTTP/1.1\r\nHost: %s\r\n", o->path, strchr(o->path, '?') ? '&' : '?', (int)getpid(),
                   (unsigned long long)c->call, o->host);
    buf_printf(&c->out, "%s%s%s\r\n", header, value, *value ? "\r\n" : "");
}

static void rest(struct load *l, struct client *c)
{
    c->phase = RESTING;
    l->resting++;
}

/* Where an offer stands, and where what pays it does. */
static const char *offer_header(const struct options *o)
{
    return o->mpp ? "WWW-Authenticate" : "PAYMENT-REQUIRED";
}

static const char *payment_header(const struct options *o)
{
    return o->mpp ? "Authorization: " : o->repeat ? "X-PAYMENT: " : "PAYMENT-SIGNATURE: ";
}

static void pay(struct load *l, struct client *c, const char *offer)
{
    if (l->o->payments > 0 && l->payments_sent == l->o->payments) {
        rest(l, c);
        return;
    }
    const uint64_t turn = l->o->repeat ? (uint64_t)(c - l->clients) : l->payments_sent;
    BUF value = { 0 };
    const struct key *k = &l->keys[turn % l->o->payers];
    if (l->o->mpp)
        mpp_payment(offer, k, &value);
    else
        x402_payment(offer, k, l->o->repeat, &value);
    start(c, l->o, payment_header(l->o), value.p);
    c->phase = PAYING;
    c->began_ms = clock_mono_ms();
    l->payments_sent++;
}

static void ask(struct load *l, struct client *c)
{
    c->call = ++l->calls;
    if (l->offer) {
        pay(l, c, l->offer);
        return;
    }
    start(c, l->o, "", "");
    c->phase = ASKING;
}

/* ---- answers ---- */

/* The value of a header in the head, cut off behind it; NULL: none. */
static char *header(struct client *c, const char *name)
{
    size_t n = strlen(name);
    for (char *line = strstr(c->text, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        char *value = line + n + 1 + strspn(line + n + 1, " ");
        value[strcspn(value, "\r")] = '\0';
        return value;
    }
    return NULL;
}

static void paid_call_ended(struct load *l, struct client *c)
{
    int64_t now = clock_mono_ms();
    const char *charged = header(c, "Payonce-Charged");
    if (now < l->count_from_ms || now >= l->end_ms)
        return;
    if (c->status == 200) {
        l->paid++;
        l->free += charged && strcmp(charged, "false") == 0;
        if (l->latencies < LATENCIES)
            l->latency[l->latencies++] = (uint32_t)(now - c->began_ms);
    } else {
        l->other[c->status < STATUS_MAX ? c->status : 0]++;
    }
}

static void answered(struct load *l, struct client *c)
{
    if (c->phase == PAYING) {
        paid_call_ended(l, c);
        ask(l, c);
        return;
    }
    l->challenges++;
    const char *offer = header(c, offer_header(l->o));
    if (c->status != 402 || !offer) {
        (void)fprintf(stderr, "load: no challenge but status %d\n", c->status);
        exit(1);
    }
    if (l->o->idle) {
        rest(l, c);
        return;
    }
    if (l->o->keep_offer && !l->offer)
        l->offer = str_copy(offer);
    pay(l, c, offer);
}

static void read_head(struct client *c)
{
    char *end = strstr(c->text, "\r\n\r\n");
    if (!end)
        return;
    const char *length = strcasestr(c->text, "\r\nContent-Length:");
    size_t body = length && length < end ? (size_t)strtoull(length + 17, NULL, 10) : 0;
    size_t have = c->in - (size_t)(end + 4 - c->text);
    const char *closes = strcasestr(c->text, "\r\nConnection: close");
    c->status = c->in > 9 ? (int)strtol(c->text + 9, NULL, 10) : 0;
    c->head_done = true;
    c->closes = closes && closes < end;
    c->body_left = body > have ? body - have : 0;
    end[2] = '\0';
}

/* False: the connection is no longer good. */
static bool take(struct client *c)
{
    static char rest_of_body[65536];
    char *to = c->head_done ? rest_of_body : c->text + c->in;
    size_t room = c->head_done ? sizeof rest_of_body : ROOM - c->in;
    ssize_t n = room ? recv(c->fd, to, room, 0) : 0;
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    if (c->head_done) {
        c->body_left -= (size_t)n < c->body_left ? (size_t)n : c->body_left;
        return true;
    }
    c->in += (size_t)n;
    c->text[c->in] = '\0';
    read_head(c);
    return true;
}

static bool give(struct client *c)
{
    if (c->sent == c->out.n)
        return true;
    ssize_t n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == ENOTCONN;
    c->sent += (size_t)n;
    return true;
}

static void renew(struct load *l, struct client *c)
{
    close(c->fd);
    open_connection(l, c);
}

static void serve(struct load *l, struct client *c, uint32_t events)
{
    if (((events & EPOLLIN) && !take(c)) || ((events & EPOLLOUT) && !give(c)) || (events & EPOLLERR)) {
        l->broken++;
        renew(l, c);
        ask(l, c);
        return;
    }
    if (c->phase != RESTING && c->head_done && c->body_left == 0) {
        bool closes = c->closes;
        answered(l, c);
        if (closes)
            renew(l, c);
        else
            (void)give(c);                       /* what went wrong comes back as an event */
    }
    arm(l, c, EPOLL_CTL_MOD, c->sent < c->out.n ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* ---- a run ---- */

static void say_ready(struct load *l)
{
    bool ready = l->o->idle ? l->resting == l->o->connections : l->payments_sent >= l->o->connections;
    if (!ready || l->said_ready)
        return;
    l->said_ready = true;
    puts("ready");
    (void)fflush(stdout);
}

static bool input_ended(void)
{
    struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
    char drop[64];
    return poll(&p, 1, 0) == 1 && read(STDIN_FILENO, drop, sizeof drop) <= 0;
}

static bool over(const struct load *l)
{
    if (l->o->idle)
        return input_ended();
    return clock_mono_ms() >= l->end_ms || l->resting == l->o->connections;
}

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void report(struct load *l)
{
    qsort(l->latency, l->latencies, sizeof *l->latency, compare);
    const size_t n = l->latencies;
    const uint32_t p50 = n ? l->latency[n / 2] : 0, p99 = n ? l->latency[n * 99 / 100] : 0;
    JSON *other = json_object();
    for (int i = 0; i < STATUS_MAX; i++)
        if (l->other[i]) {
            char name[16];
            (void)snprintf(name, sizeof name, "%d", i);
            json_object_set_new(other, name, json_integer((json_int_t)l->other[i]));
        }
    JSON *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:O}", "paid", (json_int_t)l->paid, "free", (json_int_t)l->free,
                        "challenges", (json_int_t)l->challenges, "sent", (json_int_t)l->payments_sent,
                        "broken", (json_int_t)l->broken, "p50_ms", (int)p50, "p99_ms", (int)p99, "other", other);
    OWNED char *text = json_write(o);
    puts(text);
}

static int run(const struct options *o)
{
    struct load l = { .o = o, .epoll = epoll_create1(EPOLL_CLOEXEC) };
    struct epoll_event events[256];
    l.clients = mem_new(o->connections * sizeof *l.clients);
    l.keys = mem_new((size_t)o->payers * sizeof *l.keys);
    for (uint64_t i = 0; i < o->payers; i++)
        l.keys[i] = payer(o->first + i);
    l.latency = mem_new(LATENCIES * sizeof *l.latency);
    l.count_from_ms = clock_mono_ms() + o->warm * 1000;
    l.end_ms = l.count_from_ms + o->seconds * 1000;
    for (unsigned i = 0; i < o->connections; i++) {
        open_connection(&l, &l.clients[i]);
        ask(&l, &l.clients[i]);
        if (i % 64 != 63)
            continue;                            /* a listening socket's queue is short: let it be taken from */
        for (int n; (n = epoll_wait(l.epoll, events, 256, 1)) > 0;)
            for (int e = 0; e < n; e++)
                serve(&l, events[e].data.ptr, events[e].events);
    }
    while (!over(&l)) {
        int n = epoll_wait(l.epoll, events, 256, 100);
        for (int i = 0; i < n; i++)
            serve(&l, events[i].data.ptr, events[i].events);
        say_ready(&l);
    }
    report(&l);
    return 0;
}

/* ---- the command line ---- */

static void read_options(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        { "payers", required_argument, NULL, 'p' }, { "connections", required_argument, NULL, 'c' },
        { "seconds", required_argument, NULL, 's' }, { "warm", required_argument, NULL, 'w' },
        { "payments", required_argument, NULL, 'n' }, { "keep-offer", no_argument, NULL, 'k' },
        { "mpp", no_argument, NULL, 'm' },
        { NULL, 0, NULL, 0 },
    };
    for (int k; (k = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        unsigned long long v = optarg ? strtoull(optarg, NULL, 10) : 0;
        if (k == 'p') {
            const char *colon = strchr(optarg, ':');
            o->first = v;
            o->payers = colon ? strtoull(colon + 1, NULL, 10) : 1;
        } else if (k == 'c') {
            o->connections = (unsigned)v;
        } else if (k == 's') {
            o->seconds = (int64_t)v;
        } else if (k == 'w') {
            o->warm = (int64_t)v;
        } else if (k == 'n') {
            o->payments = v;
        } else if (k == 'k') {
            o->keep_offer = true;
        } else if (k == 'm') {
            o->mpp = true;
        } else {
            exit(2);
        }
    }
}

static int count_recoveries(int64_t seconds)
{
    const struct key k = payer(0);
    const struct hash32 digest = keccak256("a payment", 9);
    struct signature s;
    struct address who;
    uint64_t n = 0;
    if (!key_sign(&k, &digest, &s))
        return 1;
    const int64_t end_ms = clock_mono_ms() + seconds * 1000;
    for (; clock_mono_ms() < end_ms; n++)
        if (!signature_recover(&s, &digest, &who) || !address_eq(&who, &k.address))
            return 1;
    printf("%llu\n", (unsigned long long)(n / (uint64_t)seconds));
    return 0;
}

static void raise_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

int main(int argc, char **argv)
{
    struct options o = { .connections = 1, .seconds = 5, .payers = 1 };
    if (argc == 4 && strcmp(argv[1], "payers") == 0)
        return list_payers(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "recover") == 0)
        return count_recoveries(strtoll(argv[2], NULL, 10));
    o.repeat = argc > 1 && strcmp(argv[1], "repeat") == 0;
    o.idle = argc > 1 && strcmp(argv[1], "idle") == 0;
    if (argc < 5 || (!o.idle && !o.repeat && strcmp(argv[1], "pay") != 0)) {
        (void)fprintf(stderr, "load payers FIRST COUNT | load pay|idle HOST PORT PATH --connections N ...\n");
        return 2;
    }
    o.host = argv[2];
    o.path = argv[4];
    o.to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10)) };
    if (inet_pton(AF_INET, o.host, &o.to.sin_addr) != 1)
        return 2;
    read_options(argc - 4, argv + 4, &o);
    o.keep_offer = o.keep_offer || o.repeat;
    raise_limit();
    return run(&o);
}
