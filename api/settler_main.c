/* The settler process: the relayer's key is read here and nowhere else. */
#include <stdio.h>
#include <string.h>

#include "api/roles.h"
#include "base/log.h"
#include "settle/settler.h"

static void stop(void *arg)
{
    *(bool *)arg = true;
}

static bool load_key(struct key *ret)
{
    const char *path = getenv("PAYONCE_RELAYER_KEY_FILE");
    if (!path) {
        (void)fprintf(stderr, "payonce settler: PAYONCE_RELAYER_KEY_FILE must name the relayer's key file\n");
        return false;
    }
    switch (key_load(path, ret)) {
    case KEY_OK:
        return true;
    case KEY_NO_FILE:
        (void)fprintf(stderr, "payonce settler: %s cannot be read\n", path);
        return false;
    case KEY_LOOSE_FILE:
        (void)fprintf(stderr, "payonce settler: %s can be read by others; chmod 600 it\n", path);
        return false;
    case KEY_BAD:
        (void)fprintf(stderr, "payonce settler: %s must hold 64 hex digits, a secp256k1 secret key\n", path);
        return false;
    }
    return false;
}

int settler_main(const struct config *c)
{
    struct key relayer;
    struct config_why why = { "" };
    bool stopped = false;
    OWNED char *conninfo = config_conninfo(c, &why);
    if (!conninfo) {
        (void)fprintf(stderr, "payonce settler: %s\n", why.text);
        return 1;
    }
    if (!load_key(&relayer))
        return 2;
    log_open("settler", LOG_INFO);
    struct loop *loop = loop_new();
    loop_on_stop_signal(loop, stop, &stopped);
    struct fetcher *fetcher = fetcher_new(loop);
    struct db *db = db_open(loop, conninfo, "payonce_settler", 2);
    struct settler_options o = { loop, db, fetcher, c->nets, c->net_count, &relayer, &stopped };
    log_info("settler.ready", "relayer=%s networks=%zu", address_lower(&relayer.address).s, c->net_count);
    bool ok = settler_run(&o);
    key_wipe(&relayer);
    db_free(db);
    fetcher_free(fetcher);
    loop_free(loop);
    return ok ? 0 : 1;
}
