-- Money before work.

ALTER TABLE orders ADD COLUMN pay_first boolean NOT NULL DEFAULT false, ADD COLUMN begun_by public_id;
COMMENT ON COLUMN orders.pay_first IS 'its work begins only once its money is proven: until then the work is `waiting`';
COMMENT ON COLUMN orders.begun_by IS 'of a pay_first order: the attempt that began its work last; asked again with it, order_begin answers the same';
-- What may wait too long: its money is proven and nobody comes for the work.
CREATE INDEX orders_waiting ON orders (created_at) WHERE work = 'waiting';

-- A payment that is a transaction of the payer's own, made for one challenge of ours: each of the two serves once, for ever.
CREATE TABLE charges (
    authorization_id bigint PRIMARY KEY REFERENCES authorizations,
    network         text NOT NULL,
    challenge       hash NOT NULL UNIQUE,
    tx              hash NOT NULL,
    memo            hash NOT NULL,
    raw             bytea,
    UNIQUE (network, tx)
);
COMMENT ON COLUMN charges.challenge IS 'digest of the challenge''s id; the authorization''s nonce, too';
COMMENT ON COLUMN charges.memo IS 'what its transfer carries: it names the challenge, whoever looks at the chain';
COMMENT ON COLUMN charges.raw IS 'the signed transaction, for us to send; null: its payer sent it';
ALTER TABLE charges ALTER COLUMN raw SET STORAGE EXTERNAL;
CREATE INDEX charges_memo ON charges (network, substr(memo::bytea, 26));

ALTER TABLE transfers ADD COLUMN memo hash;
COMMENT ON COLUMN transfers.memo IS 'it names a challenge of ours, presented or not';
CREATE INDEX transfers_suspense ON transfers (network, block) WHERE class = 'suspense';

-- Transactions that paid for a challenge of ours, but not what it asked for: their presenter was told that they are owed back.
CREATE TABLE refused_charges (
    network         text NOT NULL,
    tx              hash NOT NULL,
    at              timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (network, tx)
);
