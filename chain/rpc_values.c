#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "chain/rpc_internal.h"

/* A quantity: 0x and 1 to 64 digits. Leading zeros are against the specification, but harmless, and seen. */
bool rpc_read_amount(const json_t *j, struct amount *ret)
{
    const char *s = json_string_value(j);
    size_t n = json_string_length(j);
    if (!s || n < 3 || n > 66 || memcmp(s, "0x", 2) != 0)
        return false;
    char padded[66] = "0x";
    uint8_t be[32];
    memset(padded + 2, '0', 64);
    memcpy(padded + 66 - (n - 2), s + 2, n - 2);
    if (!hex_read(padded, sizeof padded, be, sizeof be))
        return false;
    *ret = amount_from_be(be);
    return true;
}

bool rpc_read_u64(const json_t *j, uint64_t *ret)
{
    struct amount a;
    return rpc_read_amount(j, &a) && amount_u64(a, ret);
}

bool rpc_read_hash(const json_t *j, struct hash32 *ret)
{
    const char *s = json_string_value(j);
    return s && hash_read(s, json_string_length(j), ret);
}

bool rpc_read_address(const json_t *j, struct address *ret)
{
    const char *s = json_string_value(j);
    return s && address_read(s, json_string_length(j), ret);
}

uint8_t *rpc_read_data(const json_t *j, size_t *ret_n)
{
    const char *s = json_string_value(j);
    size_t n = json_string_length(j);
    if (!s || n < 2)
        return NULL;
    OWNED uint8_t *data = mem_new(n / 2); /* one more than the bytes: never of size 0 */
    if (!hex_read_any(s, n, data, n / 2 - 1, ret_n))
        return NULL;
    return MOVE(data);
}

json_t *rpc_u64(uint64_t v)
{
    char text[19];
    snprintf(text, sizeof text, "0x%" PRIx64, v);
    return json_string(text);
}

json_t *rpc_hex(const void *p, size_t n)
{
    BUF b = { 0 };
    buf_hex(&b, p, n);
    return json_stringn(b.p, b.n);
}

json_t *call_params(const struct address *to, struct slice data, uint64_t gas, const uint64_t *block)
{
    json_t *call = json_object();
    if (to)
        json_object_set_new(call, "to", rpc_hex(to->b, sizeof to->b));
    json_object_set_new(call, "data", rpc_hex(data.p, data.n));
    json_object_set_new(call, "gas", rpc_u64(gas));
    json_t *params = json_array();
    json_array_append_new(params, call);
    json_array_append_new(params, block ? rpc_u64(*block) : json_string("latest"));
    return params;
}
