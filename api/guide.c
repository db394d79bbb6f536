/* GET /guide: GUIDE.md as it was when this program was built. */
#include "api/gateway.h"

/* A string literal longer than the standard asks every compiler to take; gcc and clang do. */
#pragma GCC diagnostic ignored "-Woverlength-strings"
static const char guide[] =
#include "api/guide.inc"
    ;

struct step guide_begin(struct request *rq)
{
    struct reply *r = reply_new(200);
    reply_body(r, "text/markdown; charset=utf-8", SLICE(guide));
    reply_header(r, "Cache-Control", "public, max-age=3600");
    return request_reply(rq, r);
}
