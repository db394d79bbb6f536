/* Ownership in one line: who frees a thing is said where it is declared.
 *
 *   SCOPE(fn) T *x        fn(&x) runs when x leaves its block
 *   MOVE(x)               hands x over; x is NULL afterwards
 *   MUST_CHECK            ignoring the result is a build failure
 *
 * Memory: mem_* abort the process when there is none left. A payment server that runs on without an
 * allocation it needed is worse than one that restarts into its durable state. */
#ifndef BASE_SCOPE_H
#define BASE_SCOPE_H

#include <stddef.h>
#include <stdlib.h>

#define SCOPE(fn) __attribute__((cleanup(fn)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MOVE(p)                                                                                                        \
    __extension__({                                                                                                    \
        __typeof__(p) moved_ = (p);                                                                                    \
        (p) = NULL;                                                                                                    \
        moved_;                                                                                                        \
    })
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void *mem_new(size_t size) MUST_CHECK;                   /* zeroed */
void *mem_resize(void *p, size_t count, size_t size) MUST_CHECK; /* count * size, overflow checked */
void *mem_copy(const void *p, size_t n) MUST_CHECK;      /* n bytes plus a NUL behind them */
char *str_copy(const char *s) MUST_CHECK;                /* NULL stays NULL */
char *str_format(const char *fmt, ...) MUST_CHECK PRINTF(1, 2);

static inline void free_mem(void *pp)
{
    void **p = pp;
    free(*p);
    *p = NULL;
}
#define OWNED SCOPE(free_mem)

#endif
