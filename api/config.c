#include "api/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/config_read.h"
#include "base/json.h"

enum { LARGEST_FILE = 4 * 1024 * 1024 };

/* What config_load gives is the first member of this. */
struct loaded {
    struct config config;
    json_t *file; /* the texts are its */
    struct conf_memory memory;
};

static void file_close(FILE **f)
{
    if (*f)
        fclose(*f);
}

static bool read_file(const char *path, struct buf *ret, struct config_why *why)
{
    SCOPE(file_close) FILE *f = fopen(path, "re");
    if (!f)
        return conf_fail(why, "cannot be read: %s", strerror(errno));
    char part[65536];
    size_t n;
    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        buf_add(ret, part, n);
        if (ret->n > LARGEST_FILE)
            return conf_fail(why, "is over %d bytes", LARGEST_FILE);
    }
    return !ferror(f) || conf_fail(why, "cannot be read: %s", strerror(errno));
}

static void loaded_done(struct loaded **l)
{
    if (!*l)
        return;
    conf_memory_done(&(*l)->memory);
    json_decref((*l)->file);
    free(*l);
}

struct config *config_load(const char *path, struct config_why *why)
{
    BUF text = { 0 };
    if (!read_file(path, &text, why))
        return NULL;
    struct json_why bad;
    SCOPE(loaded_done) struct loaded *l = mem_new(sizeof *l);
    l->file = json_read(text.p, text.n, &bad);
    if (!l->file) {
        conf_fail(why, "is not JSON: %s", bad.text);
        return NULL;
    }
    struct config_text t = { 0 };
    if (!conf_read(&conf_file, l->file, &t, &l->memory, why) || !conf_resolve(&t, path, &l->memory, why) ||
        !conf_check(&t.config, why))
        return NULL;
    l->config = t.config;
    return &MOVE(l)->config;
}

void config_free(struct config *c)
{
    struct loaded *l = (struct loaded *)c;
    loaded_done(&l);
}
