#include "api/webhook_key.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_TEXT = 300, LEAST = 24 };

void webhook_key_done(struct webhook_key *k)
{
    if (k->b)
        bytes_wipe(k->b, k->n);
    free(k->b);
    *k = (struct webhook_key){ 0 };
}

bool webhook_key_read(const char *path, struct webhook_key *ret)
{
    static const char prefix[] = "whsec_";
    struct stat st;
    char text[KEY_TEXT];
    FILE *f = path ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    bool tight = fstat(fileno(f), &st) == 0 && (st.st_mode & 077) == 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    struct webhook_key k = { 0 };
    bool ok = tight && n > strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0 &&
              base64_read(text + strlen(prefix), n - strlen(prefix), &k.b, &k.n) && k.n >= LEAST;
    bytes_wipe(text, sizeof text);
    if (ok)
        *ret = k;
    else
        webhook_key_done(&k);
    return ok;
}
