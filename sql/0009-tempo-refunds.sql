-- Refunds that are transactions of the refund wallet's own, each under a nonce key that is made of its debt.

CREATE DOMAIN refund_state AS text CHECK (VALUE IN ('signed', 'paid', 'reverted', 'astray', 'expired', 'lost'));

-- Every one that was ever signed, before its first byte is sent.
CREATE TABLE refund_transactions (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    debt_id         hash NOT NULL REFERENCES debts,
    network         text NOT NULL,
    wallet          address NOT NULL,
    refund_nonce    hash NOT NULL,
    nonce_key       hash NOT NULL,
    key_count       bigint NOT NULL CHECK (key_count >= 0),
    hash            hash NOT NULL,
    raw             bytea NOT NULL,
    valid_before    bigint NOT NULL,
    fee_token       address NOT NULL,
    state           refund_state NOT NULL DEFAULT 'signed',
    signed_at       timestamptz NOT NULL DEFAULT now(),
    looks           integer NOT NULL DEFAULT 0,
    next_look       timestamptz NOT NULL DEFAULT '-infinity',
    ended_at        timestamptz,
    CHECK ((state = 'signed') = (ended_at IS NULL)),
    UNIQUE (network, hash)
);
COMMENT ON COLUMN refund_transactions.refund_nonce IS 'the debt''s, when it was signed: its transfer carries it';
COMMENT ON COLUMN refund_transactions.key_count IS 'how many transactions under nonce_key go before it: the chain mines one of each count. It rises when one was mined and reverted';
COMMENT ON COLUMN refund_transactions.valid_before IS 'the chain''s time from which on it is never mined';
COMMENT ON COLUMN refund_transactions.state IS 'paid, reverted: mined, final. astray: it succeeded, and the money went to somebody else. expired: never mined. lost: its count was used by a transaction that is not known here';
-- One of a debt at a time, and of a count at most one that was mined.
CREATE UNIQUE INDEX refund_transactions_open ON refund_transactions (debt_id) WHERE state = 'signed';
CREATE UNIQUE INDEX refund_transactions_mined ON refund_transactions (network, wallet, nonce_key, key_count) WHERE state IN ('paid', 'reverted', 'astray');
CREATE INDEX refund_transactions_debt ON refund_transactions (debt_id, id);
CREATE INDEX refund_transactions_look ON refund_transactions (network, next_look) WHERE state = 'signed';
ALTER TABLE refund_transactions ALTER COLUMN raw SET STORAGE EXTERNAL;

-- What a transaction of ours cost, where that is paid in tokens.
ALTER DOMAIN movement_class DROP CONSTRAINT movement_class_check;
ALTER DOMAIN movement_class ADD CONSTRAINT movement_class_check CHECK (VALUE IN ('payout', 'withdrawal', 'internal', 'funding', 'fee'));
