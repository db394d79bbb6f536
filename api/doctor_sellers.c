#include "api/doctor.h"
#include "api/webhook_key.h"

static void check_webhook(struct doctor *d, const struct seller *s)
{
    struct webhook_key k = { 0 };
    if (webhook_key_read(s->webhook_key_file, &k))
        doctor_say(d, FINDING_OK, "webhook key", "%s: present", s->name);
    else
        doctor_say(d, FINDING_FAIL, "webhook key",
                   "%s: webhook_key_file must name a file of mode 600: echo whsec_$(openssl rand -base64 32)", s->name);
    webhook_key_done(&k);
}

/* Whoever may ask without a key spends our gas. */
static bool is_limited(const struct seller *s)
{
    return !s->open || s->max_per_day > 0;
}

void doctor_sellers(struct doctor *d)
{
    for (size_t i = 0; i < d->c->seller_count; i++) {
        const struct seller *s = &d->c->sellers[i];
        if (is_limited(s))
            doctor_say(d, FINDING_OK, "seller", "%s: %s, %zu payee(s)", s->name, s->open ? "open" : "with a key", s->serve_count);
        else
            doctor_say(d, FINDING_WARN, "seller", "%s: is open without max_per_day: anybody can spend the relayer's gas for it", s->name);
        if (s->webhook)
            check_webhook(d, s);
    }
}
