#include "base/json.h"

#include <stdio.h>

/* jansson quotes what it read, which may be any bytes and may end inside a character. */
static void keep_ascii(char *s)
{
    for (; *s; s++) {
        if (*s < 0x20 || *s > 0x7e)
            *s = '?';
    }
}

json_t *json_read(const char *p, size_t n, struct json_why *why)
{
    json_error_t e;
    json_t *j = json_loadb(n ? p : "", n, JSON_REJECT_DUPLICATES, &e);
    if (!j) {
        snprintf(why->text, sizeof why->text, "at byte %d: %s", e.position, e.text);
        keep_ascii(why->text);
    }
    return j;
}

char *json_write(const json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
    if (!text)
        abort();
    return text;
}

const char *json_str(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

struct slice json_slice(const json_t *object, const char *key)
{
    const json_t *j = json_object_get(object, key);
    return (struct slice){ json_string_value(j), json_string_length(j) };
}

json_t *json_of_slice(struct slice s)
{
    json_t *j = json_stringn(s.p ? s.p : "", s.n);
    return j ? j : json_null();
}

void json_set_bare(json_t *object, const char *key, const void *p, size_t n)
{
    OWNED char *hex = mem_new(2 * n + 1);
    hex_write_bare(hex, p, n);
    json_object_set_new(object, key, json_string(hex));
}

void json_set_hex(json_t *object, const char *key, struct slice bytes)
{
    BUF b = { 0 };
    if (!bytes.p)
        return;
    buf_hex(&b, bytes.p, bytes.n);
    json_object_set_new(object, key, json_string(b.p));
}
