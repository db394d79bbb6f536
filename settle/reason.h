/* The reasons for refusing a payment, in both wire vocabularies (reason.def). */
#ifndef SETTLE_REASON_H
#define SETTLE_REASON_H

enum reason {
    REASON_NONE = 0,
#define REASON(name, v2, v1, text) REASON_##name,
#include "settle/reason.def"
#undef REASON
};

const char *reason_code(enum reason r, int version);     /* version 1 or 2; r must not be REASON_NONE */
const char *reason_text(enum reason r);

#endif
