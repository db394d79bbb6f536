/* The public face of an order: built from one SQL view, by field, with digests and never a body. */
#ifndef RECEIPTS_RECEIPTS_H
#define RECEIPTS_RECEIPTS_H

#include <jansson.h>

#include "sql/sql.h"

struct receipt_links { const char *public_url; int64_t known_by; /* 0: nothing is unknown */ };

/* GET /orders/{id}: status on both axes, when to ask again, where the receipt is. */
json_t *order_json(const struct db_rows *rows, int row, const struct receipt_links *l) MUST_CHECK;
/* GET /receipts/{id}: what was asked for, what was paid, by whom, to whom, where on the chain, how deep. */
json_t *receipt_json(const struct db_rows *rows, int row, const struct receipt_links *l) MUST_CHECK;

#endif
