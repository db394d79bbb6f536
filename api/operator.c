#include "api/operator.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { PATIENCE_MS = 60000 }; /* a nonce alone has no index */

struct db_rows *operator_ask(const struct config *c, const char *command, const char *function, struct db_args *args)
{
    struct config_why why;
    struct db_rows *rows = NULL;
    OWNED char *conninfo = config_conninfo(c, &why);
    if (!conninfo) {
        fprintf(stderr, "payonce %s: %s\n", command, why.text);
        return NULL;
    }
    struct loop *loop = loop_new();
    struct db *db = db_open(loop, conninfo, "payonce_operator", 1);
    const enum db_rc rc = db_wait(db, function, args, clock_mono_ms() + PATIENCE_MS, &rows);
    db_free(db);
    loop_free(loop);
    if (rc == DB_UNAVAILABLE)
        fprintf(stderr, "payonce %s: the database cannot be reached as payonce_operator: is it running?\n", command);
    else if (rc == DB_REFUSED)
        fprintf(stderr, "payonce %s: the database refused: run `payonce migrate`\n", command);
    return rows;
}

json_t *operator_json(const struct config *c, const char *command, const char *function, const char *column,
                      struct db_args *args)
{
    struct json_why why;
    DB_ROWS *rows = operator_ask(c, command, function, args);
    if (!rows)
        return NULL;
    const struct slice text = row_text(rows, 0, column);
    json_t *j = json_read(text.p, text.n, &why);
    if (!j)
        fprintf(stderr, "payonce %s: what the database told cannot be read: %s\n", command, why.text);
    return j;
}

void say(const char *fmt, ...)
{
    OWNED char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        abort();
    va_end(args);
    for (char *p = text; *p; p++)
        if ((*p < 0x20 && *p != '\n') || *p >= 0x7f)
            *p = '?';
    fputs(text, stdout);
}

void print_json(const json_t *j)
{
    OWNED char *text = json_write(j);
    puts(text);
}

const char *member(const json_t *o, const char *key)
{
    const char *s = json_str(o, key);
    return s ? s : "-";
}

const char *operator_name(void)
{
    const char *name = getlogin();
    const struct passwd *p = name ? NULL : getpwuid(getuid());
    return name ? name : p ? p->pw_name : "unknown";
}
