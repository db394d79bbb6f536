/* Reads a JSON object into a struct by a table of its keys, strictly: an unknown key, a missing one, a wrong type, a
 * value out of range are errors that carry the JSON path. The tables are the parser's only knowledge of the file's
 * format; a test compares them with config.schema.json. */
#ifndef API_CONFIG_READ_H
#define API_CONFIG_READ_H

#include "api/config.h"

enum conf_kind {
    CONF_TEXT,    /* const char *; with choices, one of them */
    CONF_CHOICE,  /* an enum: the place of the text among the choices */
    CONF_INT,     /* an integer of 4 or 8 bytes */
    CONF_BOOL,
    CONF_AMOUNT,  /* struct amount, in the file a string of digits */
    CONF_ADDRESS, /* struct address, never the zero address */
    CONF_TEXTS,   /* const char ** and a count */
    CONF_OBJECTS, /* an array of structs and a count */
};

struct conf_object;
struct conf_key {
    const char *name;
    enum conf_kind kind;
    bool required;
    size_t at, size, count_at;       /* places in the struct */
    int64_t min, max;                /* of a number, of a text's length, of a list's count */
    const char *const *choices;      /* NULL-terminated */
    const struct conf_object *of;    /* what a list holds */
};
struct conf_object {
    size_t size;                     /* of the struct */
    void (*defaults)(void *p);       /* fills a zeroed struct */
    const struct conf_key *keys;
    size_t key_count;
};

/* A price and a tool as they are written, before names are looked up. */
struct price_text { const char *network, *token; struct amount amount; struct address pay_to; };
struct tool_text { struct tool tool; struct price_text *prices; size_t price_count; };
struct seller_text { struct seller seller; struct price_text *serves; size_t serve_count; };
struct refund_text { const char *network, *token, *fee_token; struct refund_policy policy; };
struct config_text {
    struct config config;
    struct tool_text *tools;
    size_t tool_count;
    struct seller_text *sellers;
    size_t seller_count;
    struct refund_text *refunds;
    size_t refund_count;
};
extern const struct conf_object conf_file;               /* of a struct config_text */

/* Everything made while reading, freed together. */
struct conf_memory { void **blocks; size_t n; };
void *conf_new(struct conf_memory *m, size_t size) MUST_CHECK; /* zeroed */
void conf_memory_done(struct conf_memory *m);

/* ret: o->size zeroed bytes. Texts point into j. False: why says. */
bool conf_read(const struct conf_object *o, json_t *j, void *ret, struct conf_memory *m, struct config_why *why)
    MUST_CHECK;
bool conf_fail(struct config_why *why, const char *fmt, ...) PRINTF(2, 3); /* fills why; always false */
const char *conf_nearest(const struct conf_object *o, const char *key);    /* NULL: none is near */

/* The rules that need more than one value. */
bool conf_check(const struct config *c, struct config_why *why) MUST_CHECK;
bool conf_check_sellers(const struct config *c, struct config_why *why) MUST_CHECK;
bool conf_name_ok(const char *s) MUST_CHECK;             /* letters, digits, spaces, _ - and . */
bool conf_is_token(const struct net *n, const struct address *a) MUST_CHECK; /* one of its tokens' own address */
/* Looks up tokens, networks and prices by name, and makes paths absolute. */
bool conf_resolve(struct config_text *t, const char *path, struct conf_memory *m, struct config_why *why) MUST_CHECK;
/* The forms of single values; NULL: it is right, else what is wrong with it. */
const char *conf_bad_origin(const char *url);            /* http(s)://host[:port][/prefix], no trailing slash */
const char *conf_bad_endpoint(const char *url);          /* http(s)://..., any path and query */
const char *conf_bad_listen(const char *s);              /* host:port or [v6]:port */
const char *conf_bad_ip(const char *s);                  /* an IPv4 or IPv6 address, or address/bits */

#endif
