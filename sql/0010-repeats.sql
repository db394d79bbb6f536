-- What an answer depends on beside its request, and free repeats that were refused.

ALTER TABLE orders ADD COLUMN manner hash;
COMMENT ON COLUMN orders.manner IS 'digest of the headers that its answer may depend on: credentials, and what its tool names; null: none was sent';

-- Refused is not harmless: whoever saw the authorization can submit it, so it is watched as the others are.
ALTER TABLE repeats ADD COLUMN refused boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN repeats.refused IS 'over the cap: no answer was given for it, and none is until there is room or its window is over';

-- Counts of repeats that are forgotten already. From now on they go together.
DELETE FROM repeat_counts c WHERE NOT EXISTS (SELECT 1 FROM repeats r WHERE r.order_id = c.order_id);
