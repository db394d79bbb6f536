#include "api/pay_http.h"

#include <string.h>
#include <strings.h>

void answer_done(struct answer *a)
{
    free(a->why);
    free(a->challenge);
    free(a->payment_response);
    free(a->receipt);
    free(a->order);
    free(a->charged);
    free(a->replayed);
    free(a->content_type);
    free(a->authenticate);
    free(a->payment_receipt);
    buf_done(&a->body);
    json_decref(a->json);
    *a = (struct answer){ 0 };
}

struct http http_open(void)
{
    struct loop *loop = loop_new();
    return (struct http){ loop, fetcher_new(loop) };
}

void http_close(struct http *h)
{
    fetcher_free(h->fetcher);
    loop_free(h->loop);
    *h = (struct http){ 0 };
}

static char *copy_header(const struct fetch_answer *from, const char *name)
{
    size_t n;
    const char *value = fetch_header(from, name, &n);
    return value ? mem_copy(value, n) : NULL;
}

/* A header that may come several times, as one list. */
static char *join_headers(const struct fetch_answer *from, const char *name)
{
    struct buf all = { 0 };
    for (size_t i = 0; i < from->header_count; i++) {
        const struct header *h = &from->headers[i];
        if (h->name.n != strlen(name) || strncasecmp(h->name.p, name, h->name.n) != 0)
            continue;
        buf_puts(&all, all.n ? ", " : "");
        buf_add(&all, h->value.p, h->value.n);
    }
    return all.p;
}

/* Seconds; the form with a date is not used by servers of this kind and counts as not said. */
static int64_t read_retry_after(const struct fetch_answer *from)
{
    OWNED char *value = copy_header(from, "Retry-After");
    if (!value || strlen(value) > 6 || !*value || strspn(value, "0123456789") != strlen(value))
        return 0;
    return strtoll(value, NULL, 10);
}

static json_t *read_json(const struct answer *a)
{
    struct json_why why;
    if (!a->content_type || !strstr(a->content_type, "json"))
        return NULL;
    json_t *j = json_read(a->body.p, a->body.n, &why);
    if (json_is_object(j))
        return j;
    json_decref(j);
    return NULL;
}

struct waiting {
    struct answer *ret;
    bool done;
};

static void keep_answer(void *arg, const struct fetch_answer *from)
{
    struct waiting *w = arg;
    struct answer *a = w->ret;
    w->done = true;
    a->end = from->end;
    if (from->end != FETCH_ANSWERED) {
        a->why = str_copy(from->why ? from->why : "no answer");
        return;
    }
    a->status = from->status;
    a->challenge = copy_header(from, "PAYMENT-REQUIRED");
    a->payment_response = copy_header(from, "PAYMENT-RESPONSE");
    a->receipt = copy_header(from, "Payonce-Receipt");
    a->order = copy_header(from, "Payonce-Order");
    a->replayed = copy_header(from, "Payonce-Replayed");
    a->charged = copy_header(from, "Payonce-Charged");
    a->content_type = copy_header(from, "Content-Type");
    a->authenticate = join_headers(from, "WWW-Authenticate");
    a->payment_receipt = copy_header(from, "Payment-Receipt");
    a->retry_after_s = read_retry_after(from);
    buf_add(&a->body, from->body.p, from->body.n);
    a->json = read_json(a);
}

void http_exchange(struct http *h, const struct fetch_request *rq, struct answer *ret)
{
    answer_done(ret);
    struct waiting w = { ret, false };
    fetch_start(h->fetcher, rq, keep_answer, &w);
    while (!w.done)
        loop_turn(h->loop, -1);
}

const char *answer_text(const struct answer *a, const char *key)
{
    return a->json ? json_str(a->json, key) : NULL;
}

bool answer_is(const struct answer *a, const char *key, const char *text)
{
    const char *value = answer_text(a, key);
    return value && strcmp(value, text) == 0;
}
