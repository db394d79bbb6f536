/* The other side of the wire: server_app as a child process, and raw sockets to it. Everything has a deadline. */
#ifndef TESTS_API_WIRE_H
#define TESTS_API_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bytes.h"

struct child { pid_t pid; unsigned port; };

struct child child_start(const char *idle_ms, const char *read_ms);
void child_signal_stop(const struct child *c);
int child_wait(struct child *c);                         /* its exit status; fails the test after 10 s */
int child_stop(struct child *c);                         /* both */

int wire_open(const struct child *c);
int wire_open_from(const struct child *c, const char *address);
void wire_send(int fd, const char *text);
bool wire_send_bytes(int fd, const void *p, size_t n);   /* false: the other side did not take all */
void wire_read_answer(int fd, bool head, struct buf *ret); /* one whole answer, by its Content-Length */
bool wire_closed(int fd, int within_ms);                 /* after what is left to read */
bool wire_silent(int fd, int for_ms);                    /* nothing came */
struct buf wire_ask(const struct child *c, const char *text); /* one answer on a connection of its own */

int answer_status(const struct buf *answer);
bool answer_has(const struct buf *answer, const char *text);
const char *answer_body(const struct buf *answer);

#endif
