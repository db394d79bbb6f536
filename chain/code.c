#include <string.h>

#include "base/json.h"
#include "chain/rpc_internal.h"

/* Init code that answers "how much code has each of these addresses". It is run by an eth_call without `to`; behind it
 * stand the addresses, one 32-byte word each, and it returns one word each. No contract is needed on the chain.
 *
 *                        stack, top first, after the step (n: bytes of the list, i: place in it)
 *   00  60 23  PUSH1 23    23
 *   02  38     CODESIZE    size 23
 *   03  03     SUB         n
 *   04  80     DUP1        n n
 *   05  60 23  PUSH1 23    23 n n
 *   07  60 00  PUSH1 0     0 23 n n
 *   09  39     CODECOPY    n                the list is at memory 0
 *   0a  60 00  PUSH1 0     i n              i = 0
 *   0c  5b     JUMPDEST    i n
 *   0d  81     DUP2        n i n
 *   0e  81     DUP2        i n i n
 *   0f  10     LT          i<n i n
 *   10  15     ISZERO      i>=n i n
 *   11  60 1f  PUSH1 1f    1f i>=n i n
 *   13  57     JUMPI       i n              to 1f when all are done
 *   14  80     DUP1        i i n
 *   15  51     MLOAD       address i n
 *   16  3b     EXTCODESIZE size i n
 *   17  81     DUP2        i size i n
 *   18  52     MSTORE      i n              in the address's place
 *   19  60 20  PUSH1 20    20 i n
 *   1b  01     ADD         i n              i += 32
 *   1c  60 0c  PUSH1 0c    0c i n
 *   1e  56     JUMP        i n
 *   1f  5b     JUMPDEST    i n              i = n
 *   20  60 00  PUSH1 0     0 i n
 *   22  f3     RETURN                       memory 0 to n
 */
static const uint8_t sizes_code[0x23] = {
    0x60, 0x23, 0x38, 0x03, 0x80, 0x60, 0x23, 0x60, 0x00, 0x39, 0x60, 0x00, 0x5b, 0x81, 0x81, 0x10, 0x15, 0x60,
    0x1f, 0x57, 0x80, 0x51, 0x3b, 0x81, 0x52, 0x60, 0x20, 0x01, 0x60, 0x0c, 0x56, 0x5b, 0x60, 0x00, 0xf3,
};

/* CODE_MAX keeps both sides under the protocol's limits: 49,152 bytes of init code, 24,576 bytes returned. */
json_t *code_params(const struct address *who, size_t n, const uint64_t *block)
{
    static const uint8_t zeros[12];
    BUF b = { 0 };
    buf_add(&b, sizes_code, sizeof sizes_code);
    for (size_t i = 0; i < n; i++) {
        buf_add(&b, zeros, sizeof zeros);
        buf_add(&b, who[i].b, sizeof who[i].b);
    }
    return call_params(NULL, (struct slice){ b.p, b.n }, CALL_GAS, block);
}

bool code_read(const struct rpc_answer *a, size_t n, bool *ret)
{
    size_t got;
    if (a->rc != RPC_OK)
        return false;
    OWNED uint8_t *words = rpc_read_data(a->result, &got);
    if (!words || got != 32 * n)
        return false;
    for (size_t i = 0; i < n; i++)
        ret[i] = !amount_is_zero(amount_from_be(words + 32 * i));
    return true;
}

bool code_wait(struct rpc *r, const struct address *who, size_t n, bool *ret)
{
    for (size_t at = 0; at < n; at += CODE_MAX) {
        size_t some = n - at < CODE_MAX ? n - at : CODE_MAX;
        struct rpc_item item = { "eth_call", code_params(who + at, some, NULL) };
        SCOPE(rpc_answers_done) struct rpc_answers got = rpc_wait(r, &item, 1);
        if (!code_read(&got.a[0], some, ret + at))
            return false;
    }
    return true;
}
