#include <string.h>

#include "base/log.h"
#include "sql/internal.h"

/* PostgreSQL's numbers for its types; they never change. */
enum { BOOL = 16, BYTEA = 17, INT8 = 20, INT2 = 21, INT4 = 23, TEXT = 25, VARCHAR = 1043 };

static _Noreturn void unfit(const char *column, const char *what)
{
    log_error("db_column", "column=%s %s", column, what);
    abort();
}

static int find(const struct db_rows *r, int row, const char *column)
{
    if (row < 0 || row >= PQntuples(r->result))
        unfit(column, "no such row");
    const int i = PQfnumber(r->result, column);
    if (i < 0)
        unfit(column, "no such column");
    return i;
}

static bool is_one_of(Oid type, Oid a, Oid b)
{
    return type == a || type == b;
}

/* Big-endian two's complement of n bytes. */
static int64_t read_int(const char *p, size_t n)
{
    uint64_t v = (uint8_t)p[0] & 0x80u ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | (uint8_t)p[i];
    return (int64_t)v;
}

/* The value's bytes, with a NUL of libpq's behind them; null: p NULL. */
static struct slice value(const struct db_rows *r, int row, int i)
{
    if (PQgetisnull(r->result, row, i))
        return (struct slice){ NULL, 0 };
    return (struct slice){ PQgetvalue(r->result, row, i), (size_t)PQgetlength(r->result, row, i) };
}

int db_count(const struct db_rows *r)
{
    return PQntuples(r->result);
}

bool row_null(const struct db_rows *r, int row, const char *column)
{
    return PQgetisnull(r->result, row, find(r, row, column));
}

int64_t row_int(const struct db_rows *r, int row, const char *column)
{
    const int i = find(r, row, column);
    const Oid type = PQftype(r->result, i);
    if (type != INT2 && type != INT4 && type != INT8)
        unfit(column, "is no integer");
    const struct slice v = value(r, row, i);
    return v.p ? read_int(v.p, v.n) : 0;
}

bool row_bool(const struct db_rows *r, int row, const char *column)
{
    const int i = find(r, row, column);
    if (PQftype(r->result, i) != BOOL)
        unfit(column, "is no boolean");
    const struct slice v = value(r, row, i);
    return v.p && v.p[0] != 0;
}

struct slice row_text(const struct db_rows *r, int row, const char *column)
{
    const int i = find(r, row, column);
    if (!is_one_of(PQftype(r->result, i), TEXT, VARCHAR))
        unfit(column, "is no text");
    return value(r, row, i);
}

struct slice row_bytes(const struct db_rows *r, int row, const char *column)
{
    const int i = find(r, row, column);
    if (PQftype(r->result, i) != BYTEA)
        unfit(column, "is no bytea");
    return value(r, row, i);
}

bool row_is(const struct db_rows *r, int row, const char *column, const char *text)
{
    const struct slice v = row_text(r, row, column);
    return v.p && slice_is(v, text);
}

struct amount row_amount(const struct db_rows *r, int row, const char *column)
{
    const struct slice v = row_text(r, row, column);
    struct amount a;
    if (!v.p || !amount_read(v.p, v.n, &a))
        unfit(column, "is no amount");
    return a;
}

bool row_copy(const struct db_rows *r, int row, const char *column, void *ret, size_t n)
{
    const struct slice v = row_bytes(r, row, column);
    if (!v.p)
        return false;
    if (v.n != n)
        unfit(column, "has another length");
    memcpy(ret, v.p, n);
    return true;
}

void db_rows_free(struct db_rows *r)
{
    if (!r)
        return;
    PQclear(r->result);
    free(r);
}
