-- Never twice, never lost: what happened to each order, what came in besides, what a person must decide.

-- The story of an order, append-only, one hash chain an order (one for all would be one queue for all).
CREATE TABLE events (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id        public_id NOT NULL REFERENCES orders,
    seq             integer NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor           text NOT NULL,
    event           text NOT NULL,
    before          text,
    after           text,
    request_id      text,
    attempt         public_id,
    traceparent     text,
    retry_source    text CHECK (retry_source IN ('llm', 'framework', 'http')),
    facts           jsonb NOT NULL DEFAULT '{}',
    previous        hash,
    hash            hash NOT NULL,
    UNIQUE (order_id, seq)
);
COMMENT ON TABLE events IS 'who did what to an order, and why; never a body, never a signature';
COMMENT ON COLUMN events.hash IS 'SHA-256 over the previous hash and this row, in the order''s own chain';

-- Every Transfer to one of our wallets, once, with what it was.
CREATE TABLE transfers (
    network         text NOT NULL REFERENCES networks,
    tx              hash NOT NULL,
    log_index       bigint NOT NULL,
    asset           address NOT NULL,
    sender          address NOT NULL,
    receiver        address NOT NULL,
    amount          amount NOT NULL,
    block           bigint NOT NULL,
    block_hash      hash NOT NULL,
    block_time      bigint NOT NULL,
    nonce           hash,
    class           text NOT NULL CHECK (class IN ('sale', 'debt', 'suspense')),
    authorization_id bigint REFERENCES authorizations,
    found_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (network, tx, log_index)
);
COMMENT ON COLUMN transfers.nonce IS 'of the AuthorizationUsed that this Transfer belongs to; null for a plain transfer';
COMMENT ON COLUMN transfers.class IS 'suspense: no order is known; a person decides';

-- Money that came in and must go back. The id is a hash of the source, so that a restored database finds the same debt again.
CREATE TABLE debts (
    id              hash PRIMARY KEY,
    created_at      timestamptz NOT NULL DEFAULT now(),
    order_id        public_id NOT NULL REFERENCES orders,
    authorization_id bigint NOT NULL UNIQUE REFERENCES authorizations,
    cause           text NOT NULL CHECK (cause IN ('late', 'duplicate', 'work_failed', 'overpaid')),
    network         text NOT NULL,
    asset           address NOT NULL,
    payer           address NOT NULL,
    amount          amount NOT NULL,
    tx              hash NOT NULL,
    log_index       bigint NOT NULL,
    state           text NOT NULL DEFAULT 'owed' CHECK (state IN ('owed', 'earned', 'cancelled')),
    UNIQUE (network, tx, log_index)
);

-- Where the log scan of a wallet stands: moved in the transaction that books what was found.
CREATE TABLE scans (
    network         text NOT NULL REFERENCES networks,
    wallet          address NOT NULL,
    block           bigint NOT NULL,
    block_hash      hash NOT NULL,
    PRIMARY KEY (network, wallet)
);

-- Work whose outcome is lost: what is known, and what a person decided.
CREATE TABLE reviews (
    order_id        public_id PRIMARY KEY REFERENCES orders,
    opened_at       timestamptz NOT NULL DEFAULT now(),
    fact            text NOT NULL,
    authorization_id bigint REFERENCES authorizations,
    resolved_at     timestamptz,
    resolution      text CHECK (resolution IN ('done', 'failed')),
    resolved_by     text,
    note            text,
    external_id     text,
    CHECK ((resolved_at IS NULL) = (resolution IS NULL))
);
COMMENT ON COLUMN reviews.fact IS 'the blocking fact: why nobody knows whether the call was carried out';

-- Proofs that left the chain in a reorganisation: the fact that they once stood is kept.
CREATE TABLE undone_proofs (
    authorization_id bigint NOT NULL REFERENCES authorizations,
    network         text NOT NULL,
    tx              hash NOT NULL,
    log_index       bigint NOT NULL,
    block           bigint NOT NULL,
    block_hash      hash NOT NULL,
    undone_at       timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE proofs ADD COLUMN before text NOT NULL DEFAULT 'sent' CHECK (before IN ('held', 'due', 'sent', 'released'));
COMMENT ON COLUMN proofs.before IS 'the authorization''s state before the proof: where a reorganisation returns it';
ALTER TABLE networks ADD COLUMN gas_balance amount;

ALTER TABLE authorizations ADD COLUMN fruitless smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN authorizations.fruitless IS 'how often it was mined without being carried out';

-- What a replacement with a higher fee repeats to the letter.
ALTER TABLE relay_transactions ADD COLUMN call_to address, ADD COLUMN call_data bytea;
CREATE INDEX relay_unfinal ON relay_transactions (network, block) WHERE state = 'mined';
CREATE INDEX proofs_block ON proofs (network, block);
