/* Signed offers, kept: a signature costs as much as all the rest of a 402, so what is signed is good for a while and is given
 * to everybody who asks for the same target meanwhile. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "receipts/receipts.h"
#include "settle/x402_offers.h"

enum { SLOTS = 256, LEAST_S = 60 };

struct kept {
    char *target, *text;
    size_t target_n;
    int64_t valid_until;
};

struct offers {
    const struct terms *terms;
    const struct key *signer;
    char *public_url;
    struct kept slot[SLOTS];
};

struct offers *offers_new(const struct terms *t, const char *public_url, const struct key *signer)
{
    struct offers *o = mem_new(sizeof *o);
    o->terms = t;
    o->signer = signer;
    o->public_url = str_copy(public_url);
    return o;
}

void offers_free(struct offers *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        free(o->slot[i].target);
        free(o->slot[i].text);
    }
    free(o->public_url);
    free(o);
}

static size_t slot_of(struct slice target)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < target.n; i++)
        h = (h ^ (uint8_t)target.p[i]) * 16777619u;
    return h % SLOTS;
}

static char *sign(const struct offers *o, struct slice target, int64_t valid_until)
{
    OWNED char *url = str_format("%s%.*s", o->public_url, (int)target.n, target.p);
    JSON *list = json_array();
    for (size_t i = 0; i < o->terms->price_count; i++) {
        const struct price *p = &o->terms->prices[i];
        const struct address_text asset = address_checksum(&p->token->address), pay_to = address_checksum(&p->pay_to);
        const struct amount_text amount = amount_text(p->amount);
        const struct x402_offer_terms t = { url, p->net->id, asset.s, pay_to.s, amount.s, valid_until };
        json_array_append_new(list, x402_offer(o->signer, i, &t));
    }
    return json_write(list);
}

const char *offers_for(struct offers *o, struct slice target)
{
    const int64_t window = o->terms->max_timeout_s > LEAST_S ? o->terms->max_timeout_s : LEAST_S;
    const int64_t valid_until = (clock_wall_s() / window + 2) * window; /* at least for a payment's time */
    struct kept *k = &o->slot[slot_of(target)];
    if (k->text && k->valid_until == valid_until && k->target_n == target.n && memcmp(k->target, target.p, target.n) == 0)
        return k->text;
    free(k->target);
    free(k->text);
    k->target = str_format("%.*s", (int)target.n, target.p);
    k->target_n = target.n;
    k->valid_until = valid_until;
    k->text = sign(o, target, valid_until);
    return k->text;
}
