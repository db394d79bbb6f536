/* The configuration: one JSON file, read once, checked whole, never changed while running.
 *
 * Unknown keys are errors that name the key and the nearest right one. Secrets are not in it: the environment
 * names their files (PAYONCE_RELAYER_KEY_FILE, PAYONCE_QUOTE_KEY_FILE, PAYONCE_REFUND_KEY_FILE). config.schema.json describes the same
 * file for editors; a test holds the two together. */
#ifndef API_CONFIG_H
#define API_CONFIG_H

#include <stdbool.h>

#include "refunds/refunds.h"

enum settle_when { SETTLE_AFTER_WORK, SETTLE_BEFORE_WORK };
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
    enum settle_when settle;         /* before_work: x402's paymentFlow upfront; failed work is then a debt */
    bool cacheable;
    unsigned repeat_window_s;        /* of a cacheable tool: how long its answer is given again, free: 120 */
    unsigned repeat_max;             /* how often: 1,000 */
    bool repeat_paid_first;          /* also where the money comes before the work, so that a repeat may have paid already: false */
    size_t repeat_max_answer;        /* bytes of an answer that is given again: 1,048,576 */
    const char **vary;               /* request headers that its answer depends on, small letters */
    size_t vary_count;
    const char **volatiles;          /* query names and JSON pointers that it does not depend on */
    size_t volatile_count;
    bool upstream_idempotent;        /* its upstream honours Idempotency-Key for writes */
    int64_t timeout_ms;              /* the upstream's deadline: 20,000 */
    unsigned max_timeout_s;          /* maxTimeoutSeconds of its offers: 120 */
    size_t max_body, max_answer;     /* bytes: 262,144 and 4,194,304 */
};

/* A seller whose own server settles through us (POST /verify, /settle). */
struct seller {
    const char *name;
    const char *key;                 /* "open", or "sha256:" and the digest of the API key in hex */
    bool open;
    struct hash32 key_digest;
    struct price *serves;            /* what may be paid to him; amount: the most of one payment, 0: any */
    size_t serve_count;
    int64_t max_per_day;             /* settlements within 24 hours; 0: any number */
    int64_t wait_ms, repeat_wait_ms; /* how long /settle waits for the proof: 55,000, and when asked again 85,000 */
    const char *webhook;             /* is told how each settlement ends; NULL: nobody */
    const char *webhook_key_file;    /* signs what it is told */
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
    bool offer_receipt;              /* signed offers in the 402, and a signed receipt in PAYMENT-RESPONSE: x402's offer-receipt. false */
    const char *seller;              /* shown in receipts; may be empty */
    struct net *nets;
    size_t net_count;
    struct tool *tools;
    size_t tool_count;
    struct seller *sellers;
    size_t seller_count;
    struct refund_policy *refunds;   /* how debts are paid back, a token; one that is not here is paid by nobody */
    size_t refund_count;
    int64_t wait_ms;                 /* how long a paid request waits for its proof before 409: 30,000 */
    int64_t quote_ttl_s;             /* how long a quote may be taken: 600 */
    unsigned result_retention_s;     /* how long a paid answer is kept for its buyer: 86,400 */
    unsigned id_retention_s;         /* how long a payment id names its call: 7,776,000 */
    unsigned repeat_retention_s;     /* how long a free repeat is remembered: 604,800 */
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
