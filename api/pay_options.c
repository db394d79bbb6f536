#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/pay.h"

enum { DEFAULT_WAIT_S = 120, LONGEST_WAIT_S = 86400 };

const char pay_help[] =
    "usage: payonce pay [options] URL\n"
    "\n"
    "Buys one call over x402 or MPP. What is bought, with what was signed for it, is on disk before it is sent.\n"
    "Run again, the same is sent again and nothing else is signed.\n"
    "\n"
    "  --key-file FILE   the paying wallet's key, 64 hex digits (or $PAYONCE_AGENT_KEY_FILE)\n"
    "  --method M        GET, or POST when there is --data\n"
    "  --data TEXT|@FILE the request's body (@-: standard input); JSON, unless a Content-Type --header says otherwise\n"
    "  --header 'N: V'   a header to send; may be repeated\n"
    "  --id ID           your name for this one purchase, 16 to 128 of A-Z a-z 0-9 _ -\n"
    "                    (without it one is made, and an unfinished purchase of the same call is taken up again)\n"
    "  --new             do not take up an unfinished purchase: buy a second time\n"
    "  --store DIR       where intents are kept ($XDG_STATE_HOME/payonce, ~/.local/state/payonce)\n"
    "  --rpc URL         your own node. Only it may prove an authorization dead, so that a new one is signed;\n"
    "                    without it nothing is paid on Tempo, where a transaction needs it from the start\n"
    "  --max UNITS       most to pay for this call, in the token's atomic units (100000)\n"
    "  --max-day UNITS   most to sign for in 24 hours (1000000)\n"
    "  --network ID      take only offers on this network, as eip155:8453\n"
    "  --asset ADDRESS   take only offers in this token\n"
    "  --mode push|pull  pay as MPP does, on Tempo: send the transaction and name it, or hand it over signed\n"
    "  --wait SECONDS    how long to go on asking while the payment is not final (120)\n"
    "  --json            one JSON object on standard output instead of the answer's body\n"
    "\n"
    "exit status: 0 answered; 2 usage; 3 refused, nothing moved; 4 not final yet, run again with the same --id;\n"
    "5 over a cap, nothing signed; 6 in review; 7 paid, but the answer is not served;\n"
    "8 the server refused the call itself (404, 400, ...) before any payment, nothing signed; 1 anything else\n";

static bool usage(const char *what, const char *arg)
{
    fprintf(stderr, "payonce pay: %s%s\nTry 'payonce pay --help'.\n", what, arg);
    return false;
}

/* ---- single options ---- */

static bool read_stream(FILE *f, struct buf *ret)
{
    char part[65536];
    size_t n;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        buf_add(ret, part, n);
    return !ferror(f);
}

static void file_close(FILE **f)
{
    if (*f)
        fclose(*f);
}

static bool read_data(const char *arg, struct buf *ret)
{
    buf_puts(ret, ""); /* an empty body is a body */
    if (*arg != '@') {
        buf_puts(ret, arg);
        return true;
    }
    if (strcmp(arg, "@-") == 0)
        return read_stream(stdin, ret) || usage("standard input: ", strerror(errno));
    SCOPE(file_close) FILE *f = fopen(arg + 1, "re");
    return (f && read_stream(f, ret)) || usage("the file of --data cannot be read: ", arg + 1);
}

static bool token_chars(struct slice s)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < s.n; i++) {
        if (!s.p[i] || !strchr(allowed, s.p[i]))
            return false;
    }
    return s.n > 0;
}

static bool is_ours(struct slice name)
{
    static const char *const ours[] = { "PAYMENT-SIGNATURE", "X-PAYMENT",        "Idempotency-Key", "Host",
                                        "Content-Length",    "Transfer-Encoding" };
    for (size_t i = 0; i < COUNT(ours); i++) {
        if (strlen(ours[i]) == name.n && strncasecmp(ours[i], name.p, name.n) == 0)
            return true;
    }
    return false;
}

static bool add_header(struct pay_options *o, const char *arg)
{
    const char *colon = strchr(arg, ':');
    const struct slice name = { arg, colon ? (size_t)(colon - arg) : 0 };
    if (!token_chars(name) || strpbrk(arg, "\r\n"))
        return usage("not of the form 'Name: value': ", arg);
    if (is_ours(name))
        return usage("this header is set by payonce itself: ", arg);
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    o->headers = mem_resize(o->headers, o->header_count + 1, sizeof *o->headers);
    o->headers[o->header_count++] = (struct header){ name, slice_of(value) };
    return true;
}

static bool read_units(const char *arg, struct amount *ret)
{
    return amount_read(arg, strlen(arg), ret) || usage("an amount is whole atomic units, digits only: ", arg);
}

static bool read_wait(const char *arg, int64_t *ret)
{
    const size_t n = strlen(arg);
    if (n < 1 || n > 5 || strspn(arg, "0123456789") != n || strtoll(arg, NULL, 10) > LONGEST_WAIT_S)
        return usage("--wait takes seconds, at most 86400: ", arg);
    *ret = strtoll(arg, NULL, 10);
    return true;
}

static bool read_method(const char *arg, const char **ret)
{
    *ret = arg;
    return token_chars(slice_of(arg)) || usage("not a method: ", arg);
}

static bool take_option(struct pay_options *o, int option, const char *arg)
{
    switch (option) {
    case 'k':
        o->key_file = arg;
        return true;
    case 'X':
        return read_method(arg, &o->method);
    case 'd':
        return read_data(arg, &o->body);
    case 'H':
        return add_header(o, arg);
    case 'i':
        o->id = arg;
        return payment_id_ok(slice_of(arg)) || usage("a payment id has 16 to 128 of A-Z a-z 0-9 _ -: ", arg);
    case 'n':
        o->fresh = true;
        return true;
    case 's':
        o->store = arg;
        return true;
    case 'r':
        o->rpc = arg;
        return true;
    case 'm':
        return read_units(arg, &o->max_call);
    case 'D':
        return read_units(arg, &o->max_day);
    case 'N':
        o->network = arg;
        return true;
    case 'a':
        o->asset = arg;
        return true;
    case 'M':
        o->mode = arg;
        return strcmp(arg, "push") == 0 || strcmp(arg, "pull") == 0 || usage("--mode takes push or pull: ", arg);
    case 'w':
        return read_wait(arg, &o->wait_s);
    case 'j':
        o->json = true;
        return true;
    default:
        return usage("see the usage above", "");
    }
}

/* ---- all of them together ---- */

static bool filters_ok(const struct pay_options *o)
{
    uint64_t chain_id;
    struct address asset;
    if (o->network && !network_id_read(o->network, &chain_id))
        return usage("--network takes a CAIP-2 id such as eip155:8453: ", o->network);
    return !o->asset || address_read(o->asset, strlen(o->asset), &asset) ||
           usage("--asset takes an address: ", o->asset);
}

static bool url_ok(const char *url)
{
    const bool http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    if (!http || strpbrk(url, " #\t\r\n"))
        return usage("not an http:// or https:// URL (without a fragment): ", url);
    return true;
}

static bool has_header(const struct pay_options *o, const char *name)
{
    for (size_t i = 0; i < o->header_count; i++) {
        if (o->headers[i].name.n == strlen(name) && strncasecmp(o->headers[i].name.p, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static bool fill_in(struct pay_options *o)
{
    if (o->body.p && !has_header(o, "Content-Type") && !add_header(o, "Content-Type: application/json"))
        return false;
    if (o->id && o->fresh)
        return usage("--id names one purchase, --new asks for another: take one of them", "");
    if (!o->key_file)
        o->key_file = getenv("PAYONCE_AGENT_KEY_FILE");
    if (!o->key_file)
        return usage("no wallet: give --key-file or PAYONCE_AGENT_KEY_FILE", "");
    if (!o->method)
        o->method = o->body.p ? "POST" : "GET";
    if (o->store)
        return *o->store || usage("--store takes a directory", "");
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        o->default_store = str_format("%s/payonce", state);
    else if (home && *home == '/')
        o->default_store = str_format("%s/.local/state/payonce", home);
    o->store = o->default_store;
    return o->store || usage("neither XDG_STATE_HOME nor HOME is set: give --store", "");
}

enum pay_exit pay_options_read(int argc, char **argv, struct pay_options *ret)
{
    static const struct option known[] = {
        { "key-file", required_argument, NULL, 'k' },
        { "method", required_argument, NULL, 'X' },
        { "data", required_argument, NULL, 'd' },
        { "header", required_argument, NULL, 'H' },
        { "id", required_argument, NULL, 'i' },
        { "new", no_argument, NULL, 'n' },
        { "store", required_argument, NULL, 's' },
        { "rpc", required_argument, NULL, 'r' },
        { "max", required_argument, NULL, 'm' },
        { "max-day", required_argument, NULL, 'D' },
        { "network", required_argument, NULL, 'N' },
        { "asset", required_argument, NULL, 'a' },
        { "mode", required_argument, NULL, 'M' },
        { "wait", required_argument, NULL, 'w' },
        { "json", no_argument, NULL, 'j' },
        { 0 },
    };
    ret->max_call = amount_of(100000);
    ret->max_day = amount_of(1000000);
    ret->wait_s = DEFAULT_WAIT_S;
    optind = 0; /* glibc: begin anew, in this argv */
    for (int option; (option = getopt_long(argc, argv, "k:X:d:H:", known, NULL)) != -1;) {
        if (!take_option(ret, option, optarg))
            return PAY_USAGE;
    }
    if (optind + 1 != argc) {
        usage("give exactly one URL", "");
        return PAY_USAGE;
    }
    ret->url = argv[optind];
    return url_ok(ret->url) && filters_ok(ret) && fill_in(ret) ? PAY_DONE : PAY_USAGE;
}

void pay_options_done(struct pay_options *o)
{
    buf_done(&o->body);
    free(o->headers);
    free(o->default_store);
    *o = (struct pay_options){ 0 };
}
