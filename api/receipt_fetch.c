/* payonce receipt fetch: the answer that this wallet has paid for, once more, by signing in at the receipt's address. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/commands.h"
#include "api/pay_http.h"
#include "base/clock.h"
#include "settle/siwx.h"

enum { EXCHANGE_MS = 30000, LARGEST_ANSWER = 64 * 1024 * 1024 };

static const char usage[] =
    "usage: payonce receipt fetch URL [--key-file FILE] [--network ID]\n"
    "\n"
    "Fetches an answer that was paid for and prints it. URL is the receipt's, as Payonce-Receipt told it. The wallet that\n"
    "paid signs a text that says so; nothing is paid.\n"
    "\n"
    "  --key-file FILE  that wallet's key, 64 hex digits (or $PAYONCE_AGENT_KEY_FILE)\n"
    "  --network ID     the chain to sign in on, as eip155:8453 (the first that the service names)\n"
    "\n"
    "exit status: 0 fetched, 1 not, 2 wrong usage\n";

struct fetch { const char *url, *key_file, *network; };

static int fail(const char *what, const char *detail)
{
    fprintf(stderr, "payonce receipt fetch: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    return EXIT_FAILED;
}

static void get(struct http *h, const char *url, const char *sign_in, struct answer *ret)
{
    const struct header header = { SLICE("SIGN-IN-WITH-X"), slice_of(sign_in) };
    const struct fetch_request rq = { .method = "GET",
                                      .url = url,
                                      .headers = &header,
                                      .header_count = sign_in ? 1 : 0,
                                      .deadline_ms = clock_mono_ms() + EXCHANGE_MS,
                                      .max_answer = LARGEST_ANSWER };
    http_exchange(h, &rq, ret);
}

static const char *chosen_chain(const struct fetch *f, const json_t *chains)
{
    size_t i;
    json_t *chain;
    json_array_foreach(chains, i, chain)
    {
        const char *id = json_str(chain, "chainId"), *type = json_str(chain, "type");
        if (id && type && strcmp(type, "eip191") == 0 && (!f->network || strcmp(f->network, id) == 0))
            return id;
    }
    return NULL;
}

/* Only a text that names the very host and address that we asked is signed: another would be somebody else's sign-in. */
static char *sign(const struct fetch *f, const char *url, const struct answer *a, const struct key *k)
{
    json_t *extension = json_object_get(json_object_get(a->json, "extensions"), "sign-in-with-x");
    json_t *offer = json_object_get(extension, "info");
    const char *chain = chosen_chain(f, json_object_get(extension, "supportedChains"));
    const char *domain = json_str(offer, "domain"), *uri = json_str(offer, "uri");
    OWNED char *host = url_host(url);
    if (!domain || !uri || strcmp(domain, host) != 0 || strcmp(uri, url) != 0) {
        (void)fail("the service asks to sign in for another address; nothing was signed", uri);
        return NULL;
    }
    char *value = chain ? siwx_answer(offer, chain, k) : NULL;
    if (!value)
        (void)fail(chain ? "its sign-in cannot be signed" : "it offers no sign-in on that network", f->network);
    return value;
}

static int report(const struct answer *a)
{
    if (a->end != FETCH_ANSWERED)
        return fail("no answer", a->why);
    if (!a->charged) {
        const char *code = answer_text(a, "code");
        return fail(code ? code : "this is not the address of a receipt", answer_text(a, "detail"));
    }
    fprintf(stderr, "  receipt    %s\n  status     %d\n", a->receipt ? a->receipt : "", a->status);
    fwrite(a->body.p, 1, a->body.n, stdout);
    return EXIT_OK;
}

static int fetch(const struct fetch *f, const struct key *k)
{
    const size_t n = strlen(f->url);
    const bool whole = n > 7 && strcmp(f->url + n - 7, "/result") == 0;
    OWNED char *url = str_format("%s%s", f->url, whole ? "" : "/result");
    struct http h = http_open();
    ANSWER a = { 0 };
    get(&h, url, NULL, &a);
    int status = EXIT_FAILED;
    if (a.end == FETCH_ANSWERED && a.status == 401) {
        OWNED char *value = sign(f, url, &a, k);
        if (value) {
            get(&h, url, value, &a);
            status = report(&a);
        }
    } else {
        status = report(&a);
    }
    http_close(&h);
    return status;
}

static bool read_options(int argc, char **argv, struct fetch *f)
{
    static const struct option known[] = {
        { "key-file", required_argument, NULL, 'k' }, { "network", required_argument, NULL, 'n' }, { NULL, 0, NULL, 0 },
    };
    for (int k; (k = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (k == '?')
            return false;
        *(k == 'k' ? &f->key_file : &f->network) = optarg;
    }
    if (optind + 1 != argc)
        return false;
    f->url = argv[optind];
    return true;
}

int receipt_fetch(int argc, char **argv)
{
    struct fetch f = { .key_file = getenv("PAYONCE_AGENT_KEY_FILE") };
    struct key key;
    if (argc < 2 || strcmp(argv[1], "fetch") != 0 || !read_options(argc - 1, argv + 1, &f)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (!f.key_file || key_load(f.key_file, &key) != KEY_OK)
        return fail("no usable key file (64 hex digits, mode 0600)", f.key_file);
    const int status = fetch(&f, &key);
    key_wipe(&key);
    return status;
}
