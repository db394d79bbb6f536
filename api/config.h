/* The configuration: one JSON file, read once, checked whole, never changed while running.
 *
 * Unknown keys are errors that name the key and the nearest right one. Secrets are not in it: the environment
 * names their files (PAYONCE_RELAYER_KEY_FILE, PAYONCE_QUOTE_KEY_FILE, PAYONCE_REFUND_KEY_FILE). config.schema.json describes the same
 * file for editors; a test holds the two together. */
#ifndef API_CONFIG_H
#define API_CONFIG_H

#include <stdbool.h>

#include "refunds/refunds.h"

enum side_effect { EFFECT_NONE, EFFECT_READ, EFFECT_WRITE, EFFECT_IRREVERSIBLE };
const char *side_effect_name(enum side_effect e);

struct tool {
    const char *name, *description, *mime_type;
    const char *method;              /* GET, POST, PUT, PATCH, DELETE; HEAD follows GET */
    const char *path;                /* literal segments and {name} segments; see api/route.h */
    const char *upstream;            /* scheme://host[:port][/prefix], no trailing slash */
    struct price *prices;            /* in order of preference; none: the route is free and only proxied */
    size_t price_count;
    enum side_effect side_effect;
    bool cacheable;
    bool upstream_idempotent;        /* its upstream honours Idempotency-Key for writes */
    int64_t timeout_ms;              /* the upstream's deadline: 20,000 */
    unsigned max_timeout_s;          /* maxTimeoutSeconds of its offers: 120 */
    size_t max_body, max_answer;     /* bytes: 262,144 and 4,194,304 */
};

struct config {
    const char *path;                /* the file it came from */
    const char *public_url;          /* https://api.example.com, no trailing slash */
    const char *listen, *admin_listen; /* host:port: 127.0.0.1:8402 and 127.0.0.1:8403 */
    const char **trusted_proxies;    /* addresses and address/bits whose X-Forwarded-For is believed */
    size_t trusted_proxy_count;
    const char *state_dir;           /* absolute; NULL: none, and then there is a database */
    const char *database;            /* libpq conninfo without a user; NULL: the embedded cluster */
    unsigned database_connections;   /* a gateway's pool: 12 */
    const char **receipt_signers;    /* earlier keys of receipts, by address: still published, as retired */
    size_t receipt_signer_count;
    const char *seller;              /* shown in receipts; may be empty */
    struct net *nets;
    size_t net_count;
    struct tool *tools;
    size_t tool_count;
    struct refund_policy *refunds;   /* how debts are paid back, a token; one that is not here is paid by nobody */
    size_t refund_count;
    int64_t wait_ms;                 /* how long a paid request waits for its proof before 409: 30,000 */
    int64_t quote_ttl_s;             /* how long a quote may be taken: 600 */
    unsigned max_connections;        /* 20,000 */
    int64_t idle_ms;                 /* idle keep-alive connections are closed after this: 60,000 */
};

struct config_why { char text[400]; };
/* NULL: why says, with the JSON path; the file's name is not in it. */
struct config *config_load(const char *path, struct config_why *why) MUST_CHECK;
void config_free(struct config *c);
/* An admin address that others can reach asks for a token (PAYONCE_ADMIN_TOKEN_FILE). */
bool config_admin_open(const struct config *c) MUST_CHECK;
/* libpq's conninfo of the configured or the embedded database, owned; nothing is started. NULL: it is not running. */
char *config_conninfo(const struct config *c, struct config_why *why) MUST_CHECK;

#endif
