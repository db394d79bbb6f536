#include "api/config_read.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Where we are in the file, and what a failure there needs. */
struct place {
    struct buf *path;
    struct conf_memory *memory;
    struct config_why *why;
};

void *conf_new(struct conf_memory *m, size_t size)
{
    void *p = mem_new(size);
    m->blocks = mem_resize(m->blocks, m->n + 1, sizeof *m->blocks);
    m->blocks[m->n++] = p;
    return p;
}

void conf_memory_done(struct conf_memory *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->blocks[i]);
    free(m->blocks);
    *m = (struct conf_memory){ 0 };
}

bool conf_fail(struct config_why *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, sizeof why->text, fmt, args);
    va_end(args);
    return false;
}

static bool fail_at(const struct place *at, const char *fmt, ...) PRINTF(2, 3);
static bool fail_at(const struct place *at, const char *fmt, ...)
{
    char what[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return conf_fail(at->why, "%s: %s", at->path->n ? at->path->p : "the file", what);
}

static size_t path_enter(const struct place *at, const char *key)
{
    const size_t before = at->path->n;
    buf_printf(at->path, "%s%s", before ? "." : "", key);
    return before;
}

static size_t path_enter_item(const struct place *at, size_t i)
{
    const size_t before = at->path->n;
    buf_printf(at->path, "[%zu]", i);
    return before;
}

static void path_leave(const struct place *at, size_t before)
{
    at->path->n = before;
    if (at->path->p)
        at->path->p[before] = '\0';
}

/* ---- the nearest key ---- */

enum { LONGEST_KEY = 40 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Letters to add, drop, replace or swap with their neighbour (Damerau and Levenshtein, each place once), blind to case.
 * Both have at most LONGEST_KEY characters. */
static unsigned distance(const char *a, const char *b)
{
    unsigned d[LONGEST_KEY + 1][LONGEST_KEY + 1];
    const size_t an = strlen(a), bn = strlen(b);
    for (size_t i = 0; i <= an; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= bn; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= an; i++) {
        for (size_t j = 1; j <= bn; j++) {
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[an][bn];
}

/* How many of the key's words the name has: finality, and rpc_url, mean finality_blocks and rpc. */
static unsigned words_shared(const char *key, const char *name)
{
    unsigned n = 0;
    while (*key) {
        const size_t word = strcspn(key, "_");
        for (const char *at = name; at; at = strchr(at, '_') ? strchr(at, '_') + 1 : NULL)
            n += word > 0 && strcspn(at, "_") == word && strncasecmp(at, key, word) == 0;
        key += word + (key[word] == '_');
    }
    return n;
}

const char *conf_nearest(const struct conf_object *o, const char *key)
{
    const char *typo = NULL, *alike = NULL;
    const size_t n = strlen(key);
    unsigned typo_distance = (unsigned)n / 2 + 1, alike_words = 0, alike_distance = 0;
    for (size_t i = 0; i < o->key_count && n <= LONGEST_KEY; i++) {
        const char *name = o->keys[i].name;
        const unsigned d = distance(key, name), words = words_shared(key, name);
        if (d < typo_distance) {
            typo = name;
            typo_distance = d;
        }
        if (words > alike_words || (words > 0 && words == alike_words && d < alike_distance)) {
            alike = name;
            alike_words = words;
            alike_distance = d;
        }
    }
    return typo ? typo : alike;
}

static const struct conf_key *find_key(const struct conf_object *o, const char *name)
{
    for (size_t i = 0; i < o->key_count; i++) {
        if (strcmp(o->keys[i].name, name) == 0)
            return &o->keys[i];
    }
    return NULL;
}

static bool unknown_key(const struct place *at, const struct conf_object *o, const char *name)
{
    const char *near = conf_nearest(o, name);
    path_enter(at, name);
    if (near)
        return fail_at(at, "unknown key, did you mean \"%s\"?", near);
    BUF known = { 0 };
    for (size_t i = 0; i < o->key_count; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", o->keys[i].name);
    return fail_at(at, "unknown key; known are %s", known.p);
}

/* ---- values ---- */

static bool read_text(const struct place *at, const struct conf_key *k, const json_t *j, const char **ret)
{
    if (!json_is_string(j))
        return fail_at(at, "must be a string");
    const int64_t n = (int64_t)json_string_length(j);
    if (n < k->min)
        return n == 0 ? fail_at(at, "must not be empty")
                      : fail_at(at, "is too short, at least %lld bytes", (long long)k->min);
    if (n > k->max)
        return fail_at(at, "is too long, at most %lld bytes", (long long)k->max);
    *ret = json_string_value(j);
    return true;
}

static bool read_choice(const struct place *at, const struct conf_key *k, const json_t *j, size_t *ret)
{
    const char *s = json_string_value(j);
    BUF all = { 0 };
    for (size_t i = 0; k->choices[i]; i++) {
        if (s && strcmp(s, k->choices[i]) == 0) {
            *ret = i;
            return true;
        }
        buf_printf(&all, "%s%s", i ? ", " : "", k->choices[i]);
    }
    return fail_at(at, "must be one of %s", all.p);
}

static bool read_int(const struct place *at, const struct conf_key *k, const json_t *j, void *ret)
{
    if (!json_is_integer(j))
        return fail_at(at, "must be a whole number");
    const int64_t v = json_integer_value(j);
    if (v < k->min || v > k->max)
        return fail_at(at, "must be from %lld to %lld", (long long)k->min, (long long)k->max);
    if (k->size == sizeof(uint32_t)) /* no table has a bound that its field cannot hold; nothing is negative */
        memcpy(ret, &(uint32_t){ (uint32_t)v }, sizeof(uint32_t));
    else
        memcpy(ret, &v, sizeof v);
    return true;
}

static bool read_bool(const struct place *at, const json_t *j, bool *ret)
{
    if (!json_is_boolean(j))
        return fail_at(at, "must be true or false");
    *ret = json_is_true(j);
    return true;
}

static bool read_amount(const struct place *at, const json_t *j, struct amount *ret)
{
    if (json_is_number(j))
        return fail_at(at, "amounts are strings (\"1000\"): a JSON number can lose digits on its way");
    if (!json_is_string(j) || !amount_read(json_string_value(j), json_string_length(j), ret))
        return fail_at(at, "must be a string of decimal digits in atomic units, without leading zeros");
    return true;
}

/* An address in mixed case carries a checksum (EIP-55): one wrong digit, and the money would be nobody's. */
static bool checksum_wrong(const char *text, const struct address *a)
{
    bool lower = false, upper = false;
    for (const char *p = text + 2; *p; p++) {
        lower = lower || (*p >= 'a' && *p <= 'f');
        upper = upper || (*p >= 'A' && *p <= 'F');
    }
    return lower && upper && strcmp(address_checksum(a).s, text) != 0;
}

static bool read_address(const struct place *at, const json_t *j, struct address *ret)
{
    if (!json_is_string(j) || !address_read(json_string_value(j), json_string_length(j), ret))
        return fail_at(at, "must be an address, 0x and 40 hex digits");
    if (checksum_wrong(json_string_value(j), ret))
        return fail_at(at, "has a wrong checksum (EIP-55): a digit is mistyped; in lower case it would not be checked");
    if (address_eq(ret, &(struct address){ { 0 } }))
        return fail_at(at, "must not be the zero address: what is sent there is lost");
    return true;
}

/* ---- lists ---- */

static bool list_ok(const struct place *at, const struct conf_key *k, const json_t *j)
{
    if (!json_is_array(j))
        return fail_at(at, "must be a list");
    const int64_t n = (int64_t)json_array_size(j);
    if (n < k->min)
        return fail_at(at, "must hold at least %lld", (long long)k->min);
    return n <= k->max || fail_at(at, "must hold at most %lld", (long long)k->max);
}

static bool read_texts(const struct place *at, const struct conf_key *k, const json_t *j, char *object)
{
    static const struct conf_key item = { .min = 1, .max = 2048 };
    if (!list_ok(at, k, j))
        return false;
    const size_t n = json_array_size(j);
    const char **list = conf_new(at->memory, n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        const size_t before = path_enter_item(at, i);
        if (!read_text(at, &item, json_array_get(j, i), &list[i]))
            return false;
        path_leave(at, before);
    }
    memcpy(object + k->at, &list, sizeof list);
    memcpy(object + k->count_at, &n, sizeof n);
    return true;
}

static bool read_object(const struct place *at, const struct conf_object *o, json_t *j, char *ret);

static bool read_objects(const struct place *at, const struct conf_key *k, const json_t *j, char *object)
{
    if (!list_ok(at, k, j))
        return false;
    const size_t n = json_array_size(j);
    char *list = conf_new(at->memory, n * k->of->size);
    for (size_t i = 0; i < n; i++) {
        const size_t before = path_enter_item(at, i);
        if (!read_object(at, k->of, json_array_get(j, i), list + i * k->of->size))
            return false;
        path_leave(at, before);
    }
    memcpy(object + k->at, &list, sizeof list);
    memcpy(object + k->count_at, &n, sizeof n);
    return true;
}

/* ---- objects ---- */

static bool read_value(const struct place *at, const struct conf_key *k, const json_t *j, char *object)
{
    size_t chosen = 0;
    void *ret = object + k->at;
    switch (k->kind) {
    case CONF_TEXT:
        return (!k->choices || read_choice(at, k, j, &chosen)) && read_text(at, k, j, ret);
    case CONF_CHOICE:
        if (!read_choice(at, k, j, &chosen))
            return false;
        memcpy(ret, &(unsigned){ (unsigned)chosen }, sizeof(unsigned));
        return true;
    case CONF_INT:
        return read_int(at, k, j, ret);
    case CONF_BOOL:
        return read_bool(at, j, ret);
    case CONF_AMOUNT:
        return read_amount(at, j, ret);
    case CONF_ADDRESS:
        return read_address(at, j, ret);
    case CONF_TEXTS:
        return read_texts(at, k, j, object);
    case CONF_OBJECTS:
        return read_objects(at, k, j, object);
    }
    abort();
}

static bool keys_known(const struct place *at, const struct conf_object *o, json_t *j)
{
    for (void *i = json_object_iter(j); i; i = json_object_iter_next(j, i)) {
        if (!find_key(o, json_object_iter_key(i)))
            return unknown_key(at, o, json_object_iter_key(i));
    }
    return true;
}

static bool read_object(const struct place *at, const struct conf_object *o, json_t *j, char *ret)
{
    if (!json_is_object(j))
        return fail_at(at, "must be an object");
    if (!keys_known(at, o, j))
        return false;
    o->defaults(ret);
    for (size_t i = 0; i < o->key_count; i++) {
        const struct conf_key *k = &o->keys[i];
        const json_t *value = json_object_get(j, k->name);
        const size_t before = path_enter(at, k->name);
        if (!value && k->required)
            return fail_at(at, "is missing");
        if (value && !read_value(at, k, value, ret))
            return false;
        path_leave(at, before);
    }
    return true;
}

bool conf_read(const struct conf_object *o, json_t *j, void *ret, struct conf_memory *m, struct config_why *why)
{
    BUF path = { 0 };
    return read_object(&(struct place){ &path, m, why }, o, j, ret);
}
