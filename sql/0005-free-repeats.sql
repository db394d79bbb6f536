-- Free repeats of cached reads, and answers that wait for their buyer.

-- What is kept for a while lies in rings of eight parts, written one after the other. A part whose time is over is emptied as a whole
-- (TRUNCATE: no row of it is deleted one by one); the little of it that must stay is carried into the newest part before.
CREATE TABLE rings (
    name            text PRIMARY KEY CHECK (name IN ('answers', 'repeats', 'payment_ids', 'sign_ins')),
    oldest          bigint NOT NULL DEFAULT 0,
    newest          bigint NOT NULL DEFAULT 0,
    began           timestamptz[] NOT NULL,
    CHECK (newest >= oldest AND newest - oldest < 8)
);
COMMENT ON TABLE rings IS 'which parts of a ring hold something; part n lies in slot n modulo 8';
COMMENT ON COLUMN rings.began IS 'by slot, from 1: when the part in it was begun';

-- The key of a question: wallet, tool, method, path, canonical arguments. Null: its answer is never given twice.
ALTER TABLE orders ADD COLUMN repeat_key hash, ADD COLUMN repeat_no bigint, ADD COLUMN repeat_window_s integer,
    ADD COLUMN repeatable boolean, ADD COLUMN answer_status integer, ADD COLUMN answer_size bigint, ADD COLUMN answer_digest hash;
COMMENT ON COLUMN orders.repeat_no IS 'rises from order to order of one key, whatever the clocks do';
COMMENT ON COLUMN orders.repeatable IS 'its answer may be given again: null until there is one';
CREATE SEQUENCE repeat_numbers;
CREATE INDEX orders_repeat ON orders (repeat_key, repeat_no DESC) WHERE repeat_key IS NOT NULL;

-- Bodies are sealed by the gateway (AES-256-GCM); what was stored before stays readable to its end, marked by a first byte of 0.
ALTER TABLE answers RENAME TO answers_before;
ALTER TABLE answers_before RENAME CONSTRAINT answers_pkey TO answers_before_pkey;
CREATE TABLE answers (
    order_id        public_id NOT NULL,
    status          integer NOT NULL,
    headers         text NOT NULL,
    body            bytea NOT NULL,
    digest          hash NOT NULL,
    stored_at       timestamptz NOT NULL DEFAULT now(),
    slot            smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (order_id, slot)
) PARTITION BY LIST (slot);
ALTER TABLE answers ALTER COLUMN body SET STORAGE EXTERNAL; -- what is sealed does not compress
COMMENT ON TABLE answers IS 'what the upstream said, sealed; gone after its retention, the order and its receipt stay';

-- Each free repeat, and each that waits to become one: what was asked, and by which authorization.
CREATE TABLE repeats (
    authorization_id bigint NOT NULL,
    order_id        public_id NOT NULL,
    request         hash NOT NULL,
    payment_id      payment_id,
    at              timestamptz NOT NULL DEFAULT now(),
    pays            boolean NOT NULL DEFAULT false,
    slot            smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (authorization_id, slot)
) PARTITION BY LIST (slot);
COMMENT ON COLUMN repeats.request IS 'the digest of its own request, which need not be spelled like the original''s';
COMMENT ON COLUMN repeats.pays IS 'the original was not charged, and this one became the payer';

-- How many free repeats an order's answer has had. A row of its own: nobody who works on the order waits for it.
CREATE TABLE repeat_counts (
    order_id        public_id PRIMARY KEY,
    n               integer NOT NULL CHECK (n >= 0)
) WITH (fillfactor = 50);

-- Which call a payment id names: an order's own, or a free repeat of it.
CREATE TABLE payment_ids (
    payment_id      payment_id NOT NULL,
    order_id        public_id NOT NULL,
    payer           address NOT NULL,
    request         hash NOT NULL,
    at              timestamptz NOT NULL DEFAULT now(),
    slot            smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (payment_id, slot)
) PARTITION BY LIST (slot);

-- Nonces of sign-ins that were used.
CREATE TABLE sign_ins (
    nonce           hash NOT NULL,
    attempt         public_id NOT NULL,
    at              timestamptz NOT NULL DEFAULT now(),
    slot            smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (nonce, slot)
) PARTITION BY LIST (slot);

DO $$
BEGIN
    FOR i IN 0..7 LOOP
        EXECUTE format('CREATE TABLE answers_%s PARTITION OF answers FOR VALUES IN (%s)', i, i);
        EXECUTE format('CREATE TABLE repeats_%s PARTITION OF repeats FOR VALUES IN (%s)', i, i);
        EXECUTE format('CREATE TABLE payment_ids_%s PARTITION OF payment_ids FOR VALUES IN (%s)', i, i);
        EXECUTE format('CREATE TABLE sign_ins_%s PARTITION OF sign_ins FOR VALUES IN (%s)', i, i);
    END LOOP;
END $$;
CREATE INDEX repeats_order ON repeats (order_id);

INSERT INTO answers (order_id, status, headers, body, digest, stored_at)
SELECT order_id, status, headers, '\x00'::bytea || body, digest, stored_at FROM answers_before;
UPDATE orders o SET answer_status = w.status, answer_size = octet_length(w.body), answer_digest = w.digest
  FROM answers_before w WHERE w.order_id = o.id;
INSERT INTO payment_ids (payment_id, order_id, payer, request)
SELECT payment_id, id, payer, request FROM orders WHERE payment_id IS NOT NULL;
DROP VIEW IF EXISTS order_status CASCADE; -- of the program before; views and functions are made anew behind this
DROP TABLE answers_before;
