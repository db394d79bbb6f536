#include "base/err.h"

#include <stdlib.h>

#define RETRY_FIX_REQUEST "fix_request"
#define RETRY_SAME_PAYMENT "same_payment"
#define RETRY_NEW_PAYMENT "new_payment"
#define RETRY_POLL "poll"
#define RETRY_STOP "stop"

#define MONEY_NOT_MOVED "not_moved"
#define MONEY_UNKNOWN "unknown"
#define MONEY_MOVED "moved"

static const struct err_info registry[] = {
#define ERR(name, code, http, retry, money, title, detail)                                                             \
    [ERR_##name] = { code, http, RETRY_##retry, MONEY_##money, title, detail },
#include "base/err.def"
#undef ERR
};

const struct err_info *err_info(enum err e)
{
    if (e == ERR_NONE)
        abort();
    return &registry[e];
}
