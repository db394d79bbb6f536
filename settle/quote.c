#include "settle/quote.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAC = 16, RAW = 16 + 8 + MAC };

/* False: not one to QUOTE_KEYS lines of 64 hex digits each. */
static bool read_keys(char *text, struct quote_key *ret)
{
    char *rest = text;
    ret->n = 0;
    for (const char *line; (line = strsep(&rest, "\n")) && (*line || rest); ret->n++) {
        char hex[2 + 64 + 1] = "0x";
        const size_t n = strcspn(line, "\r");
        if (ret->n == QUOTE_KEYS || n != 64 || (line[n] && line[n + 1]))
            return false;
        memcpy(hex + 2, line, n);
        if (!hex_read(hex, 2 + n, ret->b[ret->n], sizeof ret->b[0]))
            return false;
    }
    return ret->n > 0;
}

bool quote_key_load(const char *path, struct quote_key *ret)
{
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    char text[QUOTE_KEYS * 68] = "";
    bool tight = fstat(fileno(f), &st) == 0 && (st.st_mode & 077) == 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    bool whole = fgetc(f) == EOF && strlen(text) == n;
    (void)fclose(f);
    bool ok = tight && whole && read_keys(text, ret);
    bytes_wipe(text, sizeof text);
    return ok;
}

void quote_key_wipe(struct quote_key *k)
{
    bytes_wipe(k, sizeof *k);
}

/* Everything that was offered, in fixed places; the tool's name last, since it alone has no fixed length. */
static void quote_mac(const uint8_t key[32], const uint8_t head[24], const char *tool, const struct hash32 *request,
                      const struct price *p, uint8_t ret[MAC])
{
    uint8_t text[24 + 32 + 8 + 20 + 20 + 32 + 128];
    uint8_t *at = text;
    size_t name = strnlen(tool, 128);
    memcpy(at, head, 24);
    memcpy(at += 24, request->b, 32);
    at += 32;
    for (unsigned i = 0; i < 8; i++)
        *at++ = (uint8_t)(p->net->chain_id >> (56 - 8 * i));
    memcpy(at, p->token->address.b, 20);
    memcpy(at += 20, p->pay_to.b, 20);
    amount_to_be(p->amount, at += 20);
    memcpy(at += 32, tool, name);
    struct hash32 mac = hmac_sha256(key, 32, text, (size_t)(at - text) + name);
    memcpy(ret, mac.b, MAC);
}

void quote_write(const struct quote_key *k, const struct quote_id *id, int64_t expires, const char *tool, const struct hash32 *request,
                 const struct price *price, struct quote_text *ret)
{
    uint8_t raw[RAW];
    memcpy(raw, id->b, 16);
    for (unsigned i = 0; i < 8; i++)
        raw[16 + i] = (uint8_t)((uint64_t)expires >> (56 - 8 * i));
    quote_mac(k->b[0], raw, tool, request, price, raw + 24);
    BUF text = { 0 };
    base64url_add(&text, raw, sizeof raw);
    memcpy(ret->s, text.p, text.n + 1);
}

enum quote_rc quote_read(const struct quote_key *k, struct slice text, const char *tool, const struct hash32 *request,
                         const struct price *price, int64_t now, struct quote_id *ret_id)
{
    uint8_t raw[RAW], mac[MAC];
    bool ours = false;
    if (!base64url_read(text.p, text.n, raw, sizeof raw))
        return QUOTE_OTHER;
    for (size_t i = 0; i < k->n && !ours; i++) {
        quote_mac(k->b[i], raw, tool, request, price, mac);
        ours = bytes_equal_ct(mac, raw + 24, MAC);
    }
    if (!ours)
        return QUOTE_OTHER;
    uint64_t expires = 0;
    for (unsigned i = 0; i < 8; i++)
        expires = expires << 8 | raw[16 + i];
    memcpy(ret_id->b, raw, 16);
    return (int64_t)expires >= now ? QUOTE_OK : QUOTE_EXPIRED;
}

bool quote_named(struct slice text, struct quote_id *ret_id)
{
    uint8_t raw[RAW];
    if (!base64url_read(text.p, text.n, raw, sizeof raw))
        return false;
    memcpy(ret_id->b, raw, 16);
    return true;
}

/* 128 random bits. The kernel is asked for many at once, since a call to it costs more than the rest of a quote. */
struct quote_id quote_fresh(void)
{
    static struct quote_id stock[16];
    static size_t left;
    if (left == 0) {
        bytes_random(stock, sizeof stock);
        left = COUNT(stock);
    }
    struct quote_id id = stock[--left];
    bytes_wipe(&stock[left], sizeof id);
    return id;
}
