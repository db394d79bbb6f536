/* GET /guide and /guide/sellers: GUIDE.md and SELLERS.md as they were when this program was built. */
#include "api/gateway.h"

/* A string literal longer than the standard asks every compiler to take; gcc and clang do. */
#pragma GCC diagnostic ignored "-Woverlength-strings"
static const char guide[] =
#include "api/guide.inc"
    ;
static const char sellers[] =
#include "api/sellers.inc"
    ;

struct step guide_begin(struct request *rq)
{
    struct reply *r = reply_new(200);
    reply_body(r, "text/markdown; charset=utf-8", slice_is(request_path(rq), "/guide") ? SLICE(guide) : SLICE(sellers));
    reply_header(r, "Cache-Control", "public, max-age=3600");
    return request_reply(rq, r);
}
