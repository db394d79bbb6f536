#include "tests/api/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

enum { PATIENCE_MS = 10000 };

struct child child_start(const char *idle_ms, const char *read_ms)
{
    int out[2];
    char line[16] = "";
    size_t n = 0;
    assert_int_equal(pipe(out), 0);
    struct child c = { .pid = fork() };
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);                /* a failed test leaves nobody behind */
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        execl(SERVER_APP, SERVER_APP, "127.0.0.1:0", idle_ms, read_ms, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    for (ssize_t got; n < sizeof line - 1 && (got = read(out[0], line + n, sizeof line - 1 - n)) > 0; n += (size_t)got)
        if (strchr(line, '\n'))
            break;
    close(out[0]);
    c.port = (unsigned)strtoul(line, NULL, 10);
    assert_true(c.port > 0);
    return c;
}

void child_signal_stop(const struct child *c)
{
    kill(c->pid, SIGTERM);
}

int child_wait(struct child *c)
{
    int status;
    for (int64_t end = clock_mono_ms() + PATIENCE_MS; clock_mono_ms() < end; clock_sleep_ms(5))
        if (waitpid(c->pid, &status, WNOHANG) == c->pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(c->pid, SIGKILL);
    fail_msg("the server did not end");
    return -1;
}

int child_stop(struct child *c)
{
    child_signal_stop(c);
    return child_wait(c);
}

int wire_open_from(const struct child *c, const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)c->port) };
    struct sockaddr_in from = { .sin_family = AF_INET };
    const struct timeval patience = { PATIENCE_MS / 1000, 0 };
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    inet_pton(AF_INET, address, &from.sin_addr);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

int wire_open(const struct child *c)
{
    return wire_open_from(c, "127.0.0.1");
}

bool wire_send_bytes(int fd, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

void wire_send(int fd, const char *text)
{
    (void)wire_send_bytes(fd, text, strlen(text));       /* a server that closed is seen by what it answered */
}

/* Byte by byte up to the blank line: what belongs to the next answer must stay in the socket. */
static void read_head(int fd, struct buf *ret)
{
    char c;
    while (ret->n < 4 || memcmp(ret->p + ret->n - 4, "\r\n\r\n", 4) != 0) {
        if (recv(fd, &c, 1, 0) != 1)
            return;
        buf_add(ret, &c, 1);
    }
}

static size_t length_of(const struct buf *head)
{
    const char *at = strcasestr(head->p, "\r\nContent-Length:");
    return at ? strtoul(at + 17, NULL, 10) : 0;
}

void wire_read_answer(int fd, bool head, struct buf *ret)
{
    char some[4096];
    buf_done(ret);
    read_head(fd, ret);
    if (ret->n == 0 || head)
        return;
    for (size_t left = length_of(ret); left > 0;) {
        const ssize_t got = recv(fd, some, left < sizeof some ? left : sizeof some, 0);
        if (got <= 0)
            return;
        buf_add(ret, some, (size_t)got);
        left -= (size_t)got;
    }
}

bool wire_silent(int fd, int for_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, for_ms) == 0;
}

bool wire_closed(int fd, int within_ms)
{
    char some[4096];
    for (int64_t end = clock_mono_ms() + within_ms; clock_mono_ms() < end;) {
        if (wire_silent(fd, (int)(end - clock_mono_ms())))
            return false;
        if (recv(fd, some, sizeof some, 0) <= 0)
            return true;
    }
    return false;
}

struct buf wire_ask(const struct child *c, const char *text)
{
    struct buf answer = { 0 };
    const int fd = wire_open(c);
    wire_send(fd, text);
    wire_read_answer(fd, false, &answer);
    close(fd);
    return answer;
}

int answer_status(const struct buf *answer)
{
    return answer->n > 12 && memcmp(answer->p, "HTTP/1.1 ", 9) == 0 ? atoi(answer->p + 9) : 0;
}

bool answer_has(const struct buf *answer, const char *text)
{
    return answer->n > 0 && strstr(answer->p, text);
}

const char *answer_body(const struct buf *answer)
{
    const char *at = answer->n > 0 ? strstr(answer->p, "\r\n\r\n") : NULL;
    return at ? at + 4 : "";
}
