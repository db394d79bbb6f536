#include "base/json.h"
#include "settle/x402.h"

void x402_response(int version, const struct net *net, const struct address *payer, const struct hash32 *tx, const char *error,
                   json_t *extra, json_t *extensions, struct buf *ret)
{
    JSON *o = json_pack("{s:b, s:s, s:s, s:s}", "success", tx != NULL && !error, "payer", address_checksum(payer).s, "transaction",
                        tx ? hash_text(tx).s : "", "network", version == 1 && net->v1_name ? net->v1_name : net->id);
    if (error)
        json_object_set_new(o, "errorReason", json_string(error));
    if (extra)
        json_object_set_new(o, "extra", extra);
    if (extensions)
        json_object_set_new(o, "extensions", extensions);
    OWNED char *text = json_write(o);
    base64_add(ret, text, slice_of(text).n);
}
