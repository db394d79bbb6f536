#include "base/scope.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *or_abort(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

void *mem_new(size_t size)
{
    return or_abort(calloc(1, size ? size : 1));
}

void *mem_resize(void *p, size_t count, size_t size)
{
    const bool none = count == 0 || size == 0; /* of which realloc would make a free */
    return or_abort(none ? realloc(p, 1) : reallocarray(p, count, size));
}

void *mem_copy(const void *p, size_t n)
{
    char *copy = or_abort(n < SIZE_MAX ? malloc(n + 1) : NULL);
    if (n)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

char *str_copy(const char *s)
{
    return s ? mem_copy(s, strlen(s)) : NULL;
}

char *str_format(const char *fmt, ...)
{
    char *s = NULL;
    va_list args;
    va_start(args, fmt);
    const int n = vasprintf(&s, fmt, args);
    va_end(args);
    return or_abort(n < 0 ? NULL : s);
}
