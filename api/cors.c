/* Browsers: what their scripts may send to us and read of our answers. OPTIONS is answered here, for any path: it is
 * never priced and reaches no tool. Credentials are never allowed, so every origin may be. */
#include "api/http.h"

const char cors_exposed[] = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Payonce-Receipt, Payonce-Charged, "
                            "Payonce-Replayed, Payonce-Similar-Order, Payonce-Final, Payonce-Known-By, Payonce-Order, "
                            "Payonce-Receipt-Id, WWW-Authenticate, Payment-Receipt, Retry-After, Link, Age";

/* Access-Control-Expose-Headers is a response header, yet stock x402 clients send it as a request header. */
static const char allowed[] = "PAYMENT-SIGNATURE, X-PAYMENT, Authorization, Accept-Payment, SIGN-IN-WITH-X, Content-Type, Idempotency-Key, "
                              "Access-Control-Expose-Headers, Payonce-Retry-Source, traceparent";
static const char methods[] = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

enum { MAX_ASKED = 1024 };

static bool is_token_list(struct slice s)
{
    if (s.n == 0 || s.n > MAX_ASKED)
        return false;
    for (size_t from = 0, i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != ',')
            continue;
        size_t a = from, b = i;
        while (a < b && s.p[a] == ' ')
            a++;
        while (b > a && s.p[b - 1] == ' ')
            b--;
        if (!is_token((struct slice){ s.p + a, b - a }))
            return false;
        from = i + 1;
    }
    return true;
}

struct reply *cors_preflight(const struct request *rq)
{
    struct reply *r = reply_new(204);
    struct slice asked;
    BUF headers = { 0 };
    buf_puts(&headers, allowed);
    if (request_header(rq, "Access-Control-Request-Headers", &asked) == 1 && is_token_list(asked)) {
        buf_puts(&headers, ", ");
        buf_add(&headers, asked.p, asked.n);
    }
    reply_header(r, "Allow", methods);
    reply_header(r, "Access-Control-Allow-Methods", methods);
    reply_header(r, "Access-Control-Allow-Headers", headers.p);
    reply_header(r, "Access-Control-Max-Age", "7200");
    reply_header(r, "Vary", "Access-Control-Request-Headers");
    return r;
}
