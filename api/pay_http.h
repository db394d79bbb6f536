/* One HTTP exchange of the agent, waited for, and what it needs of an answer. */
#ifndef API_PAY_HTTP_H
#define API_PAY_HTTP_H

#include "api/pay.h"

struct answer {
    enum fetch_end end;
    int status;
    char *why;                       /* when there was no answer */
    /* Header values, or NULL. */
    char *challenge, *payment_response, *receipt, *order, *charged, *replayed, *content_type;
    char *authenticate, *payment_receipt; /* MPP's: WWW-Authenticate, all of them in one; Payment-Receipt */
    int64_t retry_after_s;           /* 0: not said */
    struct buf body;
    json_t *json;                    /* the body, when it is a JSON object that says so */
};
void answer_done(struct answer *a);
#define ANSWER SCOPE(answer_done) struct answer

struct http { struct loop *loop; struct fetcher *fetcher; };
struct http http_open(void) MUST_CHECK;
void http_close(struct http *h);
void http_exchange(struct http *h, const struct fetch_request *rq, struct answer *ret); /* deadline_ms must be set */

const char *answer_text(const struct answer *a, const char *key); /* of the JSON body; NULL */
bool answer_is(const struct answer *a, const char *key, const char *text);

#endif
