#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/doctor.h"
#include "api/pay_http.h"
#include "base/clock.h"

enum { ANSWER_MS = 5000, LONGEST_V1_AMOUNT = 18 };

static void get(struct doctor *d, const char *method, const char *url, struct answer *ret)
{
    struct http h = { d->loop, d->fetcher };
    const struct fetch_request rq = {
        .method = method, .url = url, .deadline_ms = clock_mono_ms() + ANSWER_MS, .max_answer = 1 << 20
    };
    http_exchange(&h, &rq, ret);
}

/* ---- our own addresses ---- */

static int try_bind(const struct addrinfo *a)
{
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* an old connection's last wait is not in use */
    const int failed = bind(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    close(fd);
    return failed;
}

/* 0: free; EADDRINUSE and others as bind says; -1: the name is not known. */
static int bind_result(const char *listen)
{
    const char *colon = strrchr(listen, ':');
    const bool v6 = *listen == '[';
    OWNED char *host = str_format("%.*s", (int)(colon - listen) - (v6 ? 2 : 0), listen + (v6 ? 1 : 0));
    struct addrinfo *list = NULL;
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    if (getaddrinfo(host, colon + 1, &hints, &list) != 0)
        return -1;
    const int result = try_bind(list);
    freeaddrinfo(list);
    return result;
}

/* A wildcard address is asked on loopback. */
static bool answers_healthz(struct doctor *d, const char *listen)
{
    const char *colon = strrchr(listen, ':');
    const bool any = strncmp(listen, "0.0.0.0:", 8) == 0 || strncmp(listen, "[::]:", 5) == 0;
    OWNED char *url = any ? str_format("http://127.0.0.1%s/healthz", colon) : str_format("http://%s/healthz", listen);
    ANSWER x = { 0 };
    get(d, "GET", url, &x);
    return x.end == FETCH_ANSWERED && x.status == 200 && answer_is(&x, "status", "ok");
}

static void check_listen(struct doctor *d, const char *what, const char *listen)
{
    const int result = bind_result(listen);
    if (result == 0)
        doctor_say(d, FINDING_OK, what, "%s is free", listen);
    else if (result == -1)
        doctor_say(d, FINDING_FAIL, what, "%s: no such host name", listen);
    else if (result != EADDRINUSE)
        doctor_say(d, FINDING_FAIL, what, "%s: %s", listen, strerror(result));
    else if (answers_healthz(d, listen))
        doctor_say(d, FINDING_OK, what, "%s is in use, by a gateway that answers /healthz", listen);
    else
        doctor_say(d, FINDING_FAIL, what, "%s is in use by another program: stop that or choose another port", listen);
}

static bool is_loopback(const char *url)
{
    static const char *const hosts[] = { "http://127.", "http://localhost", "http://[::1]" };
    for (size_t i = 0; i < COUNT(hosts); i++) {
        if (strncmp(url, hosts[i], strlen(hosts[i])) == 0)
            return true;
    }
    return false;
}

static void check_public_url(struct doctor *d)
{
    const char *url = d->c->public_url;
    if (strncmp(url, "https://", 8) == 0 || is_loopback(url))
        doctor_say(d, FINDING_OK, "public_url", "%s", url);
    else
        doctor_say(d, FINDING_WARN, "public_url", "%s is not https: put TLS in front and name that address", url);
}

/* ---- the tools ---- */

static bool seen_before(const struct config *c, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(c->tools[i].upstream, c->tools[at].upstream) == 0)
            return true;
    }
    return false;
}

static void check_upstream(struct doctor *d, const struct tool *t)
{
    OWNED char *url = str_format("%s/", t->upstream);
    ANSWER x = { 0 };
    get(d, "HEAD", url, &x);
    if (x.end == FETCH_ANSWERED)
        doctor_say(d, FINDING_OK, "upstream", "%s answers", t->upstream);
    else
        doctor_say(d, FINDING_WARN, "upstream", "%s: %s; nobody is charged while it is down", t->upstream, x.why);
}

static void check_v1(struct doctor *d, const struct tool *t)
{
    for (size_t i = 0; i < t->price_count; i++) {
        const struct price *p = &t->prices[i];
        if (p->net->v1_name && strlen(amount_text(p->amount).s) > LONGEST_V1_AMOUNT)
            doctor_say(d, FINDING_WARN, "prices",
                       "%s: x402 v1 clients refuse amounts of over %d digits, %s of %s has more", t->name,
                       LONGEST_V1_AMOUNT, p->token->symbol, p->net->id);
    }
}

void doctor_http(struct doctor *d)
{
    check_public_url(d);
    check_listen(d, "listen", d->c->listen);
    check_listen(d, "admin_listen", d->c->admin_listen);
    if (config_admin_open(d->c) && !getenv("PAYONCE_ADMIN_TOKEN_FILE"))
        doctor_say(d, FINDING_FAIL, "admin_listen", "%s can be reached by others: name a token's file in PAYONCE_ADMIN_TOKEN_FILE, "
                   "or listen on 127.0.0.1", d->c->admin_listen);
    for (size_t i = 0; i < d->c->tool_count; i++) {
        if (!seen_before(d->c, i))
            check_upstream(d, &d->c->tools[i]);
        check_v1(d, &d->c->tools[i]);
    }
}
