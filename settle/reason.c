#include "settle/reason.h"

static const struct { const char *v2, *v1, *text; } table[] = {
    { "", "", "" },
#define REASON(name, v2, v1, text) { v2, v1, text },
#include "settle/reason.def"
#undef REASON
};

const char *reason_code(enum reason r, int version)
{
    return version == 1 ? table[r].v1 : table[r].v2;
}

const char *reason_text(enum reason r)
{
    return table[r].text;
}
