#include "chain/internal.h"

#define EIP1559 "\x02"

static void add_fields(struct buf *b, const struct transaction *tx)
{
    const struct buf no_access = { 0 };
    rlp_u64(b, tx->chain_id);
    rlp_u64(b, tx->nonce);
    rlp_amount(b, tx->max_tip);
    rlp_amount(b, tx->max_fee);
    rlp_u64(b, tx->gas);
    rlp_bytes(b, tx->to.b, sizeof tx->to.b);
    rlp_amount(b, tx->value);
    rlp_bytes(b, tx->data.p, tx->data.n);
    rlp_list(b, &no_access);
}

bool transaction_sign(const struct transaction *tx, const struct key *k, struct buf *ret_raw, struct hash32 *ret_hash)
{
    BUF fields = { 0 };
    BUF unsigned_tx = { 0 };
    add_fields(&fields, tx);
    buf_puts(&unsigned_tx, EIP1559);
    rlp_list(&unsigned_tx, &fields);

    struct signature s;
    const struct hash32 digest = keccak256(unsigned_tx.p, unsigned_tx.n);
    if (!key_sign(k, &digest, &s))
        return false;
    rlp_u64(&fields, s.v - 27u);
    rlp_integer(&fields, s.r, sizeof s.r);
    rlp_integer(&fields, s.s, sizeof s.s);

    BUF raw = { 0 };
    buf_puts(&raw, EIP1559);
    rlp_list(&raw, &fields);
    *ret_hash = keccak256(raw.p, raw.n);
    buf_add(ret_raw, raw.p, raw.n);
    return true;
}
