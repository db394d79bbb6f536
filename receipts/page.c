/* A receipt as a page: one line with the answer, then everything. It reads without a script, by keyboard and aloud,
 * light and dark, on a phone; an id is selected whole by one click. Everything that came from outside is escaped. */
#include <inttypes.h>
#include <string.h>

#include "receipts/words.h"

static const char style[] =
    ":root{color-scheme:light "
    "dark;--ink:#1b1b1f;--dim:#55555e;--line:#d5d5dc;--paper:#ffffff;--mark:#f2f2f6;--link:#0645ad}"
    "@media(prefers-color-scheme:dark){:root{--ink:#ececf1;--dim:#b0b0ba;--line:#3c3c46;--paper:#16161a;--mark:#23232a;"
    "--link:#9cc4ff}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}"
    "main{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 3rem}h1{font-size:1.5rem;line-height:1.3;margin:.2rem 0 "
    "1rem}"
    "h2{font-size:1.1rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}p{margin:.4rem 0}"
    ".dim{color:var(--dim)}dl{margin:0;display:grid;grid-template-columns:minmax(8rem,12rem) 1fr;gap:.4rem 1rem}"
    "dl+dl{margin-top:1rem;border-top:1px dotted var(--line);padding-top:1rem}"
    "dt{color:var(--dim)}dd{margin:0;min-width:0}code{font:.875rem/1.5 "
    "ui-monospace,monospace;background:var(--mark);padding:.1rem .3rem;"
    "border-radius:.2rem;overflow-wrap:anywhere;user-select:all;-webkit-user-select:all}a{color:var(--link)}"
    "a:focus-visible{outline:3px solid var(--link);outline-offset:2px}ol{margin:0;padding-left:1.4rem}li{margin:.5rem "
    "0}"
    "@media(max-width:34rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.7rem}}@media "
    "print{a::after{content:none}}";

char *receipt_page_policy(void)
{
    const struct hash32 h = sha256(style, sizeof style - 1);
    BUF b = { 0 };
    base64_add(&b, h.b, sizeof h.b);
    return str_format(
        "default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", b.p);
}

/* ---- lines of a list ---- */

static void term(struct buf *b, const char *name)
{
    buf_printf(b, "<dt>%s</dt><dd>", name);
}

static void plain(struct buf *b, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    term(b, name);
    buf_html(b, value);
    buf_puts(b, "</dd>\n");
}

static void number(struct buf *b, const char *name, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v))
        return;
    term(b, name);
    buf_printf(b, "%" JSON_INTEGER_FORMAT "</dd>\n", json_integer_value(v));
}

/* kind: what the explorer calls it, "tx" or "address"; NULL: it is not on a chain. */
static void id(struct buf *b, const char *name, const char *value, const char *kind, const struct receipt_links *l)
{
    if (!value)
        return;
    term(b, name);
    buf_puts(b, "<code>");
    buf_html(b, value);
    buf_puts(b, "</code>");
    if (kind && l->explorer && *l->explorer) {
        buf_puts(b, " <a rel=\"noreferrer\" href=\"");
        buf_html(b, l->explorer);
        buf_printf(b, "/%s/", kind);
        buf_html(b, value);
        buf_printf(b, "\" aria-label=\"%s: block explorer\">block explorer</a>", name);
    }
    buf_puts(b, "</dd>\n");
}

static void money(struct buf *b, const char *name, const char *minor, const struct receipt_links *l)
{
    OWNED char *human = minor ? words_amount(minor, l) : NULL;
    plain(b, name, human);
}

/* "2026-11-30 14:30:15 UTC" for eyes, all of it for programs. */
static void when(struct buf *b, const char *iso)
{
    const bool whole = strlen(iso) > 19 && iso[10] == 'T';
    OWNED char *text = whole ? str_format("%.10s %.8s UTC", iso, iso + 11) : str_copy(iso);
    buf_puts(b, "<time datetime=\"");
    buf_html(b, iso);
    buf_puts(b, "\">");
    buf_html(b, text);
    buf_puts(b, "</time>");
}

static void moment(struct buf *b, const char *name, const char *iso)
{
    if (!iso)
        return;
    term(b, name);
    when(b, iso);
    buf_puts(b, "</dd>\n");
}

/* ---- its parts ---- */

static void payment(struct buf *b, const json_t *p, const struct receipt_links *l)
{
    OWNED char *finality = words_finality(p);
    buf_puts(b, "<h2>Payment</h2>\n<dl>\n");
    money(b, "Price", json_str(p, "amount"), l);
    plain(b, "State", words_money(json_str(p, "state")));
    plain(b, "Finality", finality);
    moment(b, "Block time", json_str(p, "block_time"));
    number(b, "Depth in blocks", p, "depth");
    id(b, "Transaction", json_str(p, "transaction"), "tx", l);
    number(b, "Log", p, "log_index");
    id(b, "Payer", json_str(p, "payer"), "address", l);
    id(b, "Paid to", json_str(p, "payee"), "address", l);
    plain(b, "Network", json_str(p, "network"));
    id(b, "Asset", json_str(p, "asset"), "address", l);
    id(b, "Authorization nonce", json_str(p, "nonce"), NULL, l);
    moment(b, "Valid before", json_str(p, "valid_before"));
    buf_puts(b, "</dl>\n");
}

static void refund(struct buf *b, const json_t *d, const struct receipt_links *l)
{
    const char *state = json_str(d, "state"), *cause = json_str(d, "cause");
    buf_puts(b, "<dl>\n");
    money(b, "Amount", json_str(d, "amount"), l);
    plain(b, "State", state ? words_debt(state) : NULL);
    plain(b, "Why", cause ? words_cause(cause) : NULL);
    plain(b, "Waits because", json_str(d, "reason"));
    moment(b, "Owed since", json_str(d, "owed_since"));
    moment(b, "Refunded at", json_str(d, "refunded_at"));
    number(b, "Block", d, "block");
    id(b, "Refund transaction", json_str(d, "transaction"), "tx", l);
    id(b, "To", json_str(d, "to"), "address", l);
    id(b, "For transaction", json_str(d, "source_transaction"), "tx", l);
    id(b, "Debt", json_str(d, "debt"), NULL, l);
    buf_puts(b, "</dl>\n");
}

static void refunds(struct buf *b, const json_t *list, const struct receipt_links *l)
{
    size_t i;
    json_t *d;
    buf_puts(b, "<h2>Refunds</h2>\n");
    if (json_array_size(list) == 0)
        buf_puts(b, "<p>Nothing is owed back.</p>\n");
    json_array_foreach(list, i, d) refund(b, d, l);
}

static void call(struct buf *b, const json_t *r, const struct receipt_links *l)
{
    const json_t *request = json_object_get(r, "request"), *answer = json_object_get(r, "answer");
    buf_puts(b, "<h2>Call</h2>\n<dl>\n");
    plain(b, "Tool", json_str(request, "tool"));
    plain(b, "Method", json_str(request, "method"));
    id(b, "Payment id", json_str(r, "payment_id"), NULL, l);
    id(b, "Request digest", json_str(request, "digest"), NULL, l);
    number(b, "Answer status", answer, "status");
    number(b, "Answer bytes", answer, "size");
    id(b, "Answer digest", json_str(answer, "digest"), NULL, l);
    moment(b, "Delivered", json_str(r, "delivered_at"));
    number(b, "Given again, free of charge", json_object_get(r, "free_repeats"), "count");
    buf_puts(b, "</dl>\n");
}

static void timeline(struct buf *b, const json_t *list)
{
    size_t i;
    json_t *e;
    bool settled = false;
    buf_puts(b, "<h2>What happened</h2>\n<ol>\n");
    json_array_foreach(list, i, e)
    {
        const char *at = json_str(e, "at"), *tx = json_str(e, "transaction"), *event = json_str(e, "event");
        const bool paid = event && strcmp(event, "settled") == 0;
        buf_puts(b, "<li>");
        if (at)
            when(b, at);
        buf_puts(b, "<br>");
        buf_html(b, paid && settled ? "Another payment for this call is on the chain" : words_event(event));
        settled = paid || (settled && !(event && strcmp(event, "proof_undone") == 0));
        if (tx) {
            buf_puts(b, "<br><code>");
            buf_html(b, tx);
            buf_puts(b, "</code>");
        }
        buf_puts(b, "</li>\n");
    }
    buf_puts(b, "</ol>\n");
}

static void identity(struct buf *b, const json_t *r, const struct receipt_links *l)
{
    const json_t *signature = json_object_get(r, "signature");
    buf_puts(b, "<h2>This receipt</h2>\n<dl>\n");
    id(b, "Receipt", json_str(r, "receipt_id"), NULL, l);
    id(b, "Order", json_str(r, "order_id"), NULL, l);
    moment(b, "Issued", json_str(r, "issued_at"));
    id(b, "Signed by", json_str(signature, "signer"), NULL, l);
    id(b, "Signature", json_str(signature, "value"), NULL, l);
    buf_puts(b, "</dl>\n<p class=\"dim\">Ask this address with <code>Accept: application/json</code> for the signed "
                "record, and check it with ");
    buf_puts(b, "<code>payonce receipt verify</code>. The keys are at <a "
                "href=\"/.well-known/payonce-keys.json\">/.well-known/payonce-keys.json</a>.</p>\n");
}

void receipt_page(struct buf *b, const json_t *r)
{
    const json_t *display = json_object_get(r, "display");
    const struct receipt_links l = { .symbol = json_str(display, "symbol"),
                                     .explorer = json_str(display, "explorer"),
                                     .decimals = (unsigned)json_integer_value(json_object_get(display, "decimals")) };
    const char *headline = json_str(r, "headline"), *seller = json_str(r, "seller"),
               *known_by = json_str(r, "known_by");
    buf_puts(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"robots\" "
                "content=\"noindex\">\n<title>Receipt: ");
    buf_html(b, headline ? headline : "");
    buf_printf(b, "</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n<p class=\"dim\">Receipt", style);
    if (seller) {
        buf_puts(b, " of ");
        buf_html(b, seller);
    }
    buf_puts(b, "</p>\n<h1>");
    buf_html(b, headline ? headline : "");
    buf_puts(b, "</h1>\n");
    if (known_by) {
        buf_puts(b, "<p>A payment that was signed for this call can still arrive. By ");
        when(b, known_by);
        buf_puts(b, " it is known; if it arrives after all, it is owed back and shown here.</p>\n");
    }
    payment(b, json_object_get(r, "payment"), &l);
    refunds(b, json_object_get(r, "refunds"), &l);
    call(b, r, &l);
    timeline(b, json_object_get(r, "timeline"));
    identity(b, r, &l);
    buf_puts(b, "</main>\n</body>\n</html>\n");
}
