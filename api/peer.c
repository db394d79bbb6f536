/* Who the client is: the socket's address, or behind a trusted proxy the last address that no trusted proxy wrote. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "api/http.h"

static struct in6_addr mapped(struct in_addr v4)
{
    struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
    memcpy(a.s6_addr + 12, &v4, 4);
    return a;
}

static bool read_address(const char *s, struct in6_addr *ret, bool *ret_v4)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, s, &v4) == 1) {
        *ret = mapped(v4);
        *ret_v4 = true;
        return true;
    }
    *ret_v4 = false;
    return inet_pton(AF_INET6, s, ret) == 1;
}

static bool read_prefix(const char *text, struct network_prefix *ret)
{
    char s[INET6_ADDRSTRLEN + 4];
    if (strlen(text) >= sizeof s)
        return false;
    memcpy(s, text, strlen(text) + 1);
    char *slash = strchr(s, '/');
    if (slash)
        *slash = '\0';
    bool v4;
    if (!read_address(s, &ret->address, &v4))
        return false;
    const unsigned most = v4 ? 32 : 128;
    unsigned long bits = most;
    if (slash) {
        char *end;
        bits = strtoul(slash + 1, &end, 10);
        if (slash[1] < '0' || slash[1] > '9' || *end || bits > most)
            return false;
    }
    ret->bits = (unsigned)bits + 128 - most;
    return true;
}

bool trust_read(struct trust *t, const char *const *texts, size_t count, const char **ret_bad)
{
    t->list = mem_resize(NULL, count, sizeof *t->list);
    t->count = count;
    for (size_t i = 0; i < count; i++)
        if (!read_prefix(texts[i], &t->list[i])) {
            *ret_bad = texts[i];
            return false;
        }
    return true;
}

void trust_done(struct trust *t)
{
    free(t->list);
}

static bool within(const struct network_prefix *p, const struct in6_addr *a)
{
    const unsigned whole = p->bits / 8, rest = p->bits % 8;
    if (memcmp(p->address.s6_addr, a->s6_addr, whole) != 0)
        return false;
    return rest == 0 || (p->address.s6_addr[whole] ^ a->s6_addr[whole]) >> (8 - rest) == 0;
}

static bool trusted(const struct trust *t, const struct in6_addr *a)
{
    for (size_t i = 0; i < t->count; i++)
        if (within(&t->list[i], a))
            return true;
    return false;
}

static void print(const struct in6_addr *a, char ret[INET6_ADDRSTRLEN])
{
    if (IN6_IS_ADDR_V4MAPPED(a))
        inet_ntop(AF_INET, a->s6_addr + 12, ret, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, a, ret, INET6_ADDRSTRLEN);
}

void peer_read(const struct trust *t, const struct sockaddr *sa, struct peer *ret)
{
    struct in6_addr a = IN6ADDR_ANY_INIT;
    if (sa->sa_family == AF_INET)
        a = mapped(((const struct sockaddr_in *)(const void *)sa)->sin_addr);
    else if (sa->sa_family == AF_INET6)
        a = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    print(&a, ret->text);
    ret->trusted = trusted(t, &a);
}

/* The last element of a comma-separated list, which becomes one shorter. */
static struct slice take_last(struct slice *list)
{
    size_t from = list->n;
    while (from > 0 && list->p[from - 1] != ',')
        from--;
    struct slice s = { list->p + from, list->n - from };
    list->n = from > 0 ? from - 1 : 0;
    while (s.n > 0 && (*s.p == ' ' || *s.p == '\t'))
        s.p++, s.n--;
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* A proxy appends the address that it saw, so only the end of the list is worth anything. */
const char *client_of(struct request *rq, const struct peer *peer)
{
    if (!peer->trusted)
        return peer->text;
    const char *best = peer->text;
    for (size_t i = rq->header_count; i-- > 0;) {
        if (!name_is(rq->headers[i].name, "X-Forwarded-For"))
            continue;
        struct slice list = rq->headers[i].value;
        while (list.n > 0) {
            const struct slice s = take_last(&list);
            char text[INET6_ADDRSTRLEN];
            struct in6_addr a;
            bool v4;
            if (s.n == 0 || s.n >= sizeof text)
                return best;
            memcpy(text, s.p, s.n);
            text[s.n] = '\0';
            if (!read_address(text, &a, &v4))
                return best;
            print(&a, rq->forwarded);
            best = rq->forwarded;
            if (!trusted(&rq->server->trust, &a))
                return best;
        }
    }
    return best;
}
