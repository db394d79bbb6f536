/* A gap: an account nonce that the chain waits for and that no transaction of ours carries, so that all behind it wait for ever. A
 * node that once counted too many makes one. The next authorizations that are due fill it; where none are, a transfer of nothing to
 * ourselves does, stored before it is sent like any other. */
#include <inttypes.h>

#include "base/json.h"
#include "base/log.h"
#include "settle/desk.h"

enum { WAIT_S = 10, PLAIN_GAS = 21000 };

void desk_fill_gap(struct desk *d, const struct db_rows *open)
{
    int64_t first = row_int(open, 0, "account_nonce");
    if ((int64_t)d->next_nonce >= first || row_int(open, 0, "stuck_s") < WAIT_S || !d->new_head ||
        amount_cmp(desk_fee(d), d->net->fee_max) > 0)
        return;
    log_warn("settler.gap", "network=%s nonce=%" PRIu64 " before=%" PRId64, d->net->id, d->next_nonce, first);
    struct transaction tx = { .gas = PLAIN_GAS, .to = d->relayer->address };
    JSON *none = json_array();
    (void)desk_send(d, &tx, none);
}
