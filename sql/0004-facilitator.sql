-- Settlements that a seller's own server asks for: orders whose work is `none`. The nonce finds them; nothing else of
-- what was asked makes another one.

ALTER TABLE orders ADD COLUMN seller text;
COMMENT ON COLUMN orders.seller IS 'whose settlement it is (work `none`); null: a call of our own tools';
CREATE INDEX orders_seller ON orders (seller, created_at) WHERE seller IS NOT NULL;

-- The seller who is to be told when this authorization ends. Only what has ended and was not told stands in the index,
-- each seller's apart: one who does not listen is in nobody's way.
ALTER TABLE authorizations ADD COLUMN tell text;
CREATE INDEX authorizations_untold ON authorizations (tell, ended_at) WHERE tell IS NOT NULL AND ended_at IS NOT NULL;

-- How the telling goes. Its id is made of the order and of how it ended, so that the same news has the same id.
CREATE TABLE notices (
    authorization_id bigint PRIMARY KEY REFERENCES authorizations,
    tries           integer NOT NULL DEFAULT 0,
    next_at         timestamptz NOT NULL DEFAULT '-infinity',
    told_at         timestamptz,
    gave_up         boolean NOT NULL DEFAULT false,
    last_answer     text
);
COMMENT ON COLUMN notices.last_answer IS 'what came of the last try: an HTTP status, or why there was none';
