/* The error registry as an enum; err.def is the one place where a code, its HTTP status and its text stand. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum err {
    ERR_NONE = 0,
#define ERR(name, code, http, retry, money, title, detail) ERR_##name,
#include "base/err.def"
#undef ERR
};

struct err_info { const char *code; int http; const char *retry, *money, *title, *detail; };
const struct err_info *err_info(enum err e);             /* e must not be ERR_NONE */

#endif
