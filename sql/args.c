#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sql/sql.h"

static void add(struct db_args *a, enum db_arg_kind kind, const void *p, size_t n)
{
    if (a->count == DB_ARGS_MAX)
        abort();
    a->arg[a->count].at = a->text.n;
    a->arg[a->count].n = n;
    a->arg[a->count].kind = kind;
    a->count++;
    buf_add(&a->text, p, n);
    buf_add(&a->text, "", 1); /* libpq wants texts terminated */
}

void arg_null(struct db_args *a)
{
    add(a, DB_ARG_NULL, "", 0);
}

void arg_text(struct db_args *a, const char *s)
{
    arg_slice(a, slice_of(s));
}

void arg_slice(struct db_args *a, struct slice s)
{
    if (!s.p) {
        arg_null(a);
        return;
    }
    if (memchr(s.p, '\0', s.n))
        a->bad = true; /* cut at the NUL it would be another value */
    add(a, DB_ARG_TEXT, s.p, s.n);
}

void arg_bytes(struct db_args *a, const void *p, size_t n)
{
    if (!p)
        arg_null(a);
    else
        add(a, DB_ARG_BYTES, p, n);
}

void arg_int(struct db_args *a, int64_t v)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, v);
    arg_text(a, digits);
}

void arg_bool(struct db_args *a, bool v)
{
    arg_text(a, v ? "t" : "f");
}

void arg_amount(struct db_args *a, struct amount v)
{
    arg_text(a, amount_text(v).s);
}

void db_args_done(struct db_args *a)
{
    buf_done(&a->text);
    a->count = 0;
    a->bad = false;
}
