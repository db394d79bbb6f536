/* payonce receipt verify: is this receipt what its seller signed, and does the chain say the same? For anybody: it
 * needs no configuration, and nothing of the seller's but the receipt. */
#include <stdio.h>
#include <string.h>

#include "api/commands.h"
#include "api/operator.h"
#include "base/clock.h"
#include "receipts/receipts.h"

enum { PATIENCE_MS = 15000, MOST = 1024 * 1024 };

static const char usage[] =
    "usage: payonce receipt verify FILE|URL [--signer ADDRESS] [--rpc URL]\n"
    "\n"
    "Checks that nothing of the receipt was changed since it was signed, and by whom. A URL's keys are asked of the\n"
    "same origin (/.well-known/payonce-keys.json) unless --signer names one; a FILE needs --signer, and then nobody "
    "is\n"
    "asked anything. With --rpc every payment and refund of the receipt is looked up on the chain.\n"
    "exit status: 0 all is so, 1 something is not, 2 wrong usage\n";

struct verify {
    const char *what, *signer, *rpc;
    struct loop *loop;
    struct fetcher *fetcher;
};

/* ---- reading it ---- */

struct got {
    bool done;
    struct buf body;
};

static void have_answer(void *arg, const struct fetch_answer *a)
{
    struct got *g = arg;
    g->done = true;
    if (a->end == FETCH_ANSWERED && a->status == 200)
        buf_add(&g->body, a->body.p, a->body.n);
}

static bool fetch_wait(const struct verify *v, const char *url, struct buf *ret)
{
    static const struct header headers[] = { { SLICE_INIT("Accept"), SLICE_INIT("application/json") } };
    struct got g = { 0 };
    const struct fetch_request rq = { .method = "GET",
                                      .url = url,
                                      .headers = headers,
                                      .header_count = 1,
                                      .deadline_ms = clock_mono_ms() + PATIENCE_MS,
                                      .max_answer = MOST };
    (void)fetch_start(v->fetcher, &rq, have_answer, &g);
    while (!g.done)
        loop_turn(v->loop, -1);
    *ret = g.body;
    return g.body.n > 0;
}

static bool is_url(const char *s)
{
    return strncmp(s, "http://", 7) == 0 || strncmp(s, "https://", 8) == 0;
}

static bool read_file(const char *path, struct buf *ret)
{
    char part[16384];
    size_t n;
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while ((n = fread(part, 1, sizeof part, f)) > 0 && ret->n <= MOST)
        buf_add(ret, part, n);
    (void)fclose(f);
    return ret->n > 0 && ret->n <= MOST;
}

static json_t *read_document(const struct verify *v)
{
    BUF text = { 0 };
    struct json_why why;
    if (!(is_url(v->what) ? fetch_wait(v, v->what, &text) : read_file(v->what, &text))) {
        fprintf(stderr, "payonce receipt verify: %s cannot be read\n", v->what);
        return NULL;
    }
    json_t *j = json_read(text.p, text.n, &why);
    if (!j)
        fprintf(stderr, "payonce receipt verify: %s is no receipt: %s\n", v->what, why.text);
    return j;
}

/* ---- who signed ---- */

/* Is the address among the keys that the receipt's origin publishes? */
static bool published(const struct verify *v, const struct address *signer, bool *ret_retired)
{
    BUF text = { 0 };
    struct json_why why;
    const char *host = strstr(v->what, "://") + 3, *path = strchr(host, '/');
    OWNED char *url =
        str_format("%.*s/.well-known/payonce-keys.json", (int)(path ? path - v->what : (long)strlen(v->what)), v->what);
    JSON *keys = fetch_wait(v, url, &text) ? json_read(text.p, text.n, &why) : NULL;
    size_t i;
    json_t *k;
    json_array_foreach(json_object_get(keys, "keys"), i, k)
    {
        const char *address = json_str(k, "address"), *status = json_str(k, "status");
        struct address a;
        if (address && address_read(address, strlen(address), &a) && address_eq(&a, signer)) {
            *ret_retired = status && strcmp(status, "retired") == 0;
            return true;
        }
    }
    return false;
}

static bool trusted(const struct verify *v, const struct address *signer)
{
    struct address wanted;
    bool retired = false;
    if (v->signer) {
        const bool same = address_read(v->signer, strlen(v->signer), &wanted) && address_eq(&wanted, signer);
        say(same ? "ok: signed by %s\n" : "NOT SO: it is signed by %s, not by the signer you named\n",
            address_checksum(signer).s);
        return same;
    }
    const bool known = published(v, signer, &retired);
    say(known ? "ok: signed by %s%s\n" : "NOT SO: signed by %s, which its origin does not publish%s\n",
        address_checksum(signer).s, known ? (retired ? ", a retired key of its origin" : ", a key of its origin") : "");
    return known;
}

/* ---- the chain ---- */

static bool check_chain(const struct verify *v, const json_t *document)
{
    uint64_t chain;
    size_t i;
    json_t *line;
    const char *network = json_str(json_object_get(document, "payment"), "network");
    if (!network || !network_id_read(network, &chain)) {
        say("NOT SO: the receipt names no network\n");
        return false;
    }
    JSON *facts = json_array();
    struct rpc *rpc = rpc_new(v->fetcher, v->loop, chain, &v->rpc, 1, PATIENCE_MS);
    const bool ok = receipt_check_chain(document, rpc, facts);
    rpc_free(rpc);
    json_array_foreach(facts, i, line) say("%s\n", json_string_value(line));
    return ok;
}

static int verify(const struct verify *v)
{
    struct address signer;
    JSON *document = read_document(v);
    if (!document)
        return EXIT_FAILED;
    switch (receipt_check(document, &signer)) {
    case RECEIPT_UNSIGNED:
        say("NOT SO: the receipt is not signed\n");
        return EXIT_FAILED;
    case RECEIPT_CHANGED:
        say("NOT SO: the receipt is not what was signed\n");
        return EXIT_FAILED;
    case RECEIPT_OK:
        break;
    }
    say("%s\nok: nothing was changed since it was signed, %s\n", member(document, "headline"),
        member(document, "issued_at"));
    bool ok = trusted(v, &signer);
    if (v->rpc)
        ok = check_chain(v, document) && ok;
    return ok ? EXIT_OK : EXIT_FAILED;
}

int receipt_verify(int argc, char **argv)
{
    struct verify v = { 0 };
    bool bad = argc < 3 || strcmp(argv[1], "verify") != 0 || argc % 2 == 0;
    for (int i = 3; !bad && i + 1 < argc; i += 2) {
        const char **option = strcmp(argv[i], "--signer") == 0 ? &v.signer
                              : strcmp(argv[i], "--rpc") == 0  ? &v.rpc
                                                               : NULL;
        bad = !option || *option;
        if (!bad)
            *option = argv[i + 1];
    }
    if (bad || (!is_url(argv[2]) && !v.signer) || (v.rpc && !is_url(v.rpc))) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    v.what = argv[2];
    v.loop = loop_new();
    v.fetcher = fetcher_new(v.loop);
    const int status = verify(&v);
    fetcher_free(v.fetcher);
    loop_free(v.loop);
    return status;
}
