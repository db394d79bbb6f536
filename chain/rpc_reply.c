#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "chain/rpc_internal.h"

/* Codes by which providers say "not now" or "not from me". */
enum { CODE_INTERNAL = -32603, CODE_LIMIT = -32005, CODE_RATE = -32016 };

bool method_sends(const char *method)
{
    return strcmp(method, "eth_sendRawTransaction") == 0;
}

void request_add(struct buf *b, uint64_t id, const char *method, const json_t *params)
{
    OWNED char *text = params ? json_write(params) : str_copy("[]");
    buf_printf(b, "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64 ",\"method\":\"%s\",\"params\":", id, method);
    buf_puts(b, text);
    buf_puts(b, "}");
}

/* Revert bytes: most nodes give a string, some an object that holds one. */
static const char *error_data(const json_t *error)
{
    const json_t *data = json_object_get(error, "data");
    if (json_is_object(data))
        data = json_object_get(data, "data");
    const char *s = json_string_value(data);
    return s && strncmp(s, "0x", 2) == 0 ? s : NULL;
}

/* Anvil spells an execution that ran out of gas as an internal error; it is an answer, and the same on every node. */
static bool is_internal(const struct rpc_answer *a)
{
    return a->code == CODE_INTERNAL && !a->data && !strcasestr(a->message, "out of gas") &&
           !strcasestr(a->message, "OutOfGas");
}

static enum reply_worth item_read(json_t *item, bool sends, struct rpc_answer *ret)
{
    json_t *error = json_object_get(item, "error");
    if (!error || json_is_null(error)) {
        json_t *result = json_object_get(item, "result");
        if (!result)
            return REPLY_JUNK;
        *ret = (struct rpc_answer){ .rc = RPC_OK, .result = result, .object = item };
        return REPLY_GOOD;
    }
    const json_t *code = json_object_get(error, "code");
    if (!json_is_integer(code))
        return REPLY_JUNK;
    const char *message = json_str(error, "message");
    *ret = (struct rpc_answer){
        .rc = RPC_ERROR,
        .code = json_integer_value(code),
        .message = message ? message : "",
        .data = error_data(error),
        .object = item,
    };
    if (ret->code == CODE_LIMIT || ret->code == CODE_RATE)
        return REPLY_LIMIT;
    return !sends && is_internal(ret) ? REPLY_LIMIT : REPLY_GOOD;
}

static bool id_read(const json_t *item, uint64_t first, size_t n, size_t *ret)
{
    const json_t *id = json_object_get(item, "id");
    uint64_t at = (uint64_t)json_integer_value(id) - first; /* below first: wraps to a large number */
    if (!json_is_integer(id) || at >= n)
        return false;
    *ret = (size_t)at;
    return true;
}

static bool is_refusal(const json_t *root)
{
    return json_is_object(json_object_get(root, "error")) && !json_is_integer(json_object_get(root, "id"));
}

enum reply_worth reply_read(json_t *root, uint64_t first, size_t n, bool sends, struct rpc_answer *ret)
{
    if (json_is_object(root) && is_refusal(root))
        return REPLY_TROUBLE;
    if (n == 1 ? !json_is_object(root) : json_array_size(root) != n)
        return REPLY_JUNK;
    enum reply_worth worst = REPLY_GOOD;
    for (size_t i = 0; i < n; i++)
        ret[i] = (struct rpc_answer){ .rc = RPC_UNAVAILABLE };
    for (size_t i = 0; i < n; i++) {
        json_t *item = n == 1 ? root : json_array_get(root, i);
        size_t at;
        if (!id_read(item, first, n, &at) || ret[at].object)
            return REPLY_JUNK;
        enum reply_worth worth = item_read(item, sends, &ret[at]);
        if (worth == REPLY_JUNK)
            return REPLY_JUNK;
        if (worth == REPLY_LIMIT)
            worst = REPLY_LIMIT;
    }
    return worst;
}
