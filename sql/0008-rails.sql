-- Money before work.

ALTER TABLE orders ADD COLUMN pay_first boolean NOT NULL DEFAULT false, ADD COLUMN begun_by public_id;
COMMENT ON COLUMN orders.pay_first IS 'its work begins only once its money is proven: until then the work is `waiting`';
COMMENT ON COLUMN orders.begun_by IS 'of a pay_first order: the attempt that began its work last; asked again with it, order_begin answers the same';
-- What may wait too long: its money is proven and nobody comes for the work.
CREATE INDEX orders_waiting ON orders (created_at) WHERE work = 'waiting';
