/* The 402. A tool's challenge is rendered once, with marks where a request's own parts go; a request only joins pieces. */
#include <string.h>

#include "base/json.h"
#include "receipts/receipts.h"
#include "settle/x402.h"
#include "settle/x402_offers.h"

enum { MARK_SIZE = 16 };

/* A text that is always the same, and what of a request's own follows it: U its target, E the reason, O the signed
 * offers, Q the quote of a price. */
struct piece {
    struct slice text;
    char then;                       /* NUL: nothing, it is the last */
    size_t price;
};

struct rendered {
    char *text;
    size_t n;
    struct piece *pieces;
};

struct challenge {
    const struct terms *terms;
    char mark[MARK_SIZE + 1];        /* random, so that no text of anybody's contains it */
    struct rendered v2, v1;          /* v1 is empty when no offer has a v1 name */
    struct offers *offers;           /* signed ones; NULL: none */
};

/* Not written where the work comes first: that is what a client expects. */
static void add_flow(const struct terms *t, json_t *offer)
{
    if (t->pay_first)
        json_object_set_new(json_object_get(offer, "extra"), "paymentFlow", json_string("upfront"));
}

static json_t *v2_offer(const struct challenge *c, size_t i)
{
    const struct terms *t = c->terms;
    const struct price *p = &t->prices[i];
    OWNED char *quote = str_format("%sQ%c", c->mark, (char)('A' + i));
    json_t *offer = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:{s:s, s:s, s:s}}", "scheme", "exact", "network", p->net->id, "amount",
                     amount_text(p->amount).s, "asset", address_checksum(&p->token->address).s, "payTo",
                     address_checksum(&p->pay_to).s, "maxTimeoutSeconds", (int)t->max_timeout_s, "extra", "name", p->token->name,
                     "version", p->token->version, "quote", quote);
    add_flow(t, offer);
    return offer;
}

static json_t *v1_offer(const struct terms *t, const struct price *p, const char *url, const char *description, const char *mime)
{
    json_t *offer = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:{s:s, s:s}}", "scheme", "exact", "network",
                     p->net->v1_name, "maxAmountRequired", amount_text(p->amount).s, "resource", url, "description", description, "mimeType",
                     mime, "payTo", address_checksum(&p->pay_to).s, "maxTimeoutSeconds", (int)t->max_timeout_s, "asset",
                     address_checksum(&p->token->address).s, "extra", "name", p->token->name, "version", p->token->version);
    add_flow(t, offer);
    return offer;
}

static json_t *payment_identifier(void)
{
    return json_pack("{s:{s:b}, s:{s:s, s:s, s:{s:{s:s}, s:{s:s, s:i, s:i, s:s}}, s:[s]}}", "info", "required", 0, "schema",
                     "$schema", "https://json-schema.org/draft/2020-12/schema", "type", "object", "properties", "required", "type",
                     "boolean", "id", "type", "string", "minLength", 16, "maxLength", 128, "pattern", "^[a-zA-Z0-9_-]+$", "required",
                     "required");
}

/* The mark of the signed offers stands for an array, not for a string. */
static void unquote(char *text, const char *mark)
{
    OWNED char *quoted = str_format("\"%sO\"", mark);
    char *at = strstr(text, quoted);
    const size_t n = strlen(quoted);
    memmove(at, at + 1, n - 2);
    memmove(at + n - 2, at + n, strlen(at + n) + 1);
}

static void add_offers(struct challenge *c, json_t *v2, const char *public_url, const struct key *signer)
{
    OWNED char *mark = str_format("%sO", c->mark);
    c->offers = offers_new(c->terms, public_url, signer);
    json_object_set_new(json_object_get(v2, "extensions"), "offer-receipt", x402_offer_receipt("offers", json_string(mark)));
}

static struct rendered cut(const struct challenge *c, char *text)
{
    struct rendered r = { .text = text };
    size_t n = 0;
    r.n = strlen(r.text);
    for (const char *from = r.text, *mark; from; n++) {
        r.pieces = mem_resize(r.pieces, n + 1, sizeof *r.pieces);
        r.pieces[n] = (struct piece){ .text = slice_of(from) };
        mark = strstr(from, c->mark);
        if (mark) {
            r.pieces[n].text.n = (size_t)(mark - from);
            r.pieces[n].then = mark[MARK_SIZE];
            r.pieces[n].price = (size_t)(mark[MARK_SIZE + 1] - 'A'); /* means something behind Q only */
        }
        from = mark ? mark + MARK_SIZE + (mark[MARK_SIZE] == 'Q' ? 2 : 1) : NULL;
    }
    return r;
}

struct challenge *challenge_new(const struct terms *t, const char *public_url, const char *description, const char *mime_type,
                                const struct key *signer)
{
    struct challenge *c = mem_new(sizeof *c);
    const char *about = description ? description : "", *mime = mime_type ? mime_type : "";
    uint8_t random[MARK_SIZE / 2];
    bytes_random(random, sizeof random);
    hex_write_bare(c->mark, random, sizeof random);
    c->terms = t;
    OWNED char *url = str_format("%s%sU", public_url, c->mark), *error = str_format("%sE", c->mark);
    JSON *v2 = json_pack("{s:i, s:s, s:{s:s, s:s, s:s}, s:[], s:{s:o}}", "x402Version", 2, "error", error, "resource", "url", url,
                         "description", about, "mimeType", mime, "accepts", "extensions", "payment-identifier",
                         payment_identifier());
    JSON *v1 = json_pack("{s:i, s:s, s:[]}", "x402Version", 1, "error", error, "accepts");
    for (size_t i = 0; i < t->price_count; i++) {
        json_array_append_new(json_object_get(v2, "accepts"), v2_offer(c, i));
        if (t->prices[i].net->v1_name)
            json_array_append_new(json_object_get(v1, "accepts"), v1_offer(t, &t->prices[i], url, about, mime));
    }
    if (signer)
        add_offers(c, v2, public_url, signer);
    char *text = json_write(v2);
    if (signer)
        unquote(text, c->mark);
    c->v2 = cut(c, text);
    if (json_array_size(json_object_get(v1, "accepts")) > 0)
        c->v1 = cut(c, json_write(v1));
    return c;
}

void challenge_free(struct challenge *c)
{
    if (!c)
        return;
    offers_free(c->offers);
    free(c->v2.text);
    free(c->v2.pieces);
    free(c->v1.text);
    free(c->v1.pieces);
    free(c);
}

/* A target is printable ASCII: the server lets nothing else through. */
static void add_escaped(struct buf *b, struct slice s)
{
    size_t from = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '"' && s.p[i] != '\\')
            continue;
        buf_add(b, s.p + from, i - from);
        buf_add(b, "\\", 1);
        from = i;
    }
    buf_add(b, s.p + from, s.n - from);
}

static void fill(struct buf *b, const struct rendered *r, const struct challenge *c, const struct challenge_for *f,
                 int version)
{
    for (const struct piece *p = r->pieces;; p++) {
        struct quote_text quote;
        buf_add(b, p->text.p, p->text.n);
        switch (p->then) {
        case 'U':
            add_escaped(b, f->target);
            break;
        case 'O':
            buf_puts(b, offers_for(c->offers, f->target));
            break;
        case 'E':
            buf_puts(b, reason_code(f->why, version));
            break;
        case 'Q':
            quote_write(f->key, &f->quote, f->quote_expires, c->terms->tool, f->request, &c->terms->prices[p->price],
                        &quote);
            buf_puts(b, quote.s);
            break;
        default:
            return;
        }
    }
}

void challenge_write(const struct challenge *c, const struct challenge_for *f, struct buf *ret_header, struct buf *ret_v1)
{
    BUF json = { 0 };
    size_t own = f->target.n * (1 + c->terms->price_count) + sizeof(struct quote_text) * c->terms->price_count + 128;
    buf_reserve(&json, c->v2.n + own);
    fill(&json, &c->v2, c, f, 2);
    buf_reserve(ret_header, json.n * 4 / 3 + 4);
    base64_add(ret_header, json.p, json.n);
    if (c->v1.n == 0)
        return;
    BUF v1 = { 0 };
    buf_reserve(&v1, c->v1.n + own);
    fill(&v1, &c->v1, c, f, 1);
    buf_add(ret_v1, v1.p + 1, v1.n - 2);
}
