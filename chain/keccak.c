#include <nettle/sha3.h>

#include "chain/chain.h"

/* Keccak-256 as Ethereum has it: SHA3-256 but for the padding, which is the original 0x01 and not 0x06. */
#define RATE 136

static void absorb(struct sha3_state *state, const uint8_t block[RATE])
{
    for (size_t i = 0; i < RATE; i++)
        state->a[i / 8] ^= (uint64_t)block[i] << 8 * (i % 8);
    sha3_permute(state);
}

struct hash32 keccak256(const void *p, size_t n)
{
    struct sha3_state state = { { 0 } };
    const uint8_t *bytes = p;
    for (; n >= RATE; bytes += RATE, n -= RATE)
        absorb(&state, bytes);

    uint8_t last[RATE] = { 0 };
    for (size_t i = 0; i < n; i++)
        last[i] = bytes[i];
    last[n] |= 0x01;
    last[RATE - 1] |= 0x80;
    absorb(&state, last);

    struct hash32 h;
    for (size_t i = 0; i < sizeof h.b; i++)
        h.b[i] = (uint8_t)(state.a[i / 8] >> 8 * (i % 8));
    return h;
}
