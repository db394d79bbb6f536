#include "api/doctor.h"
#include "settle/quote.h"

static bool is_quote_key(const char *path)
{
    SCOPE(quote_key_wipe) struct quote_key k = { .n = 0 };
    return quote_key_load(path, &k);
}

/* lines: there may be several, the keys before. */
static bool check_key(struct doctor *d, const char *variable, const char *what, bool lines, struct key *ret)
{
    const char *path = getenv(variable);
    if (!path || !*path) {
        doctor_say(d, FINDING_FAIL, what,
                   "%s is not set: make a key file (openssl rand -hex 32, mode 600) and name it there", variable);
        return false;
    }
    const enum key_rc rc = key_load(path, ret);
    switch (rc == KEY_BAD && lines && is_quote_key(path) ? KEY_OK : rc) {
    case KEY_OK:
        return true;
    case KEY_NO_FILE:
        doctor_say(d, FINDING_FAIL, what, "%s (%s) cannot be read by this user", path, variable);
        return false;
    case KEY_LOOSE_FILE:
        doctor_say(d, FINDING_FAIL, what, "%s can be read by others: chmod 600 it, and consider the key known", path);
        return false;
    case KEY_BAD:
        doctor_say(d, FINDING_FAIL, what, "%s must hold 32 bytes as 64 hex digits and nothing else", path);
        return false;
    }
    abort();
}

bool doctor_key(struct doctor *d, const char *variable, const char *what, struct key *ret)
{
    return check_key(d, variable, what, false, ret);
}

void doctor_keys(struct doctor *d)
{
    SCOPE(key_wipe) struct key k = { 0 };
    d->has_relayer = doctor_key(d, "PAYONCE_RELAYER_KEY_FILE", "relayer key", &k);
    if (d->has_relayer) {
        d->relayer = k.address;
        doctor_say(d, FINDING_OK, "relayer key", "for %s", address_checksum(&k.address).s);
    }
    if (check_key(d, "PAYONCE_QUOTE_KEY_FILE", "quote key", true, &k))
        doctor_say(d, FINDING_OK, "quote key", "present");
}
