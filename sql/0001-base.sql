-- Tables of the main job: orders (work), authorizations (money), relay transactions, proofs.
-- Work and money never share a state; a public status is derived from both (views.sql) and stored nowhere.
-- Amounts are atomic units in numeric(78,0); ids, addresses and hashes are bytea of fixed length, never joined text.

CREATE DOMAIN amount AS numeric(78,0)
    CHECK (VALUE >= 0 AND VALUE <= 115792089237316195423570985008687907853269984665640564039457584007913129639935);
CREATE DOMAIN address AS bytea CHECK (octet_length(VALUE) = 20);
CREATE DOMAIN hash AS bytea CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN public_id AS bytea CHECK (octet_length(VALUE) = 16);

-- One row a network: which chain it is, and the newest block that the settler has seen.
CREATE TABLE networks (
    id              text PRIMARY KEY,
    genesis         hash NOT NULL,
    head            bigint NOT NULL DEFAULT 0,
    head_hash       hash,
    head_time       bigint NOT NULL DEFAULT 0,
    final           bigint NOT NULL DEFAULT 0,
    final_hash      hash,
    final_time      bigint NOT NULL DEFAULT 0,
    seen_at         timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN networks.genesis IS 'hash of block 0; a node that tells another one serves a replaced chain and is refused';
COMMENT ON COLUMN networks.final_hash IS 'hash of block `final`; the same check for a chain that shares its genesis';

-- Processes that hold leases. A lease is worth what its instance''s heartbeat is worth.
CREATE TABLE instances (
    id              public_id PRIMARY KEY,
    role            text NOT NULL CHECK (role IN ('gateway', 'settler')),
    started_at      timestamptz NOT NULL DEFAULT now(),
    until           timestamptz NOT NULL
);

CREATE TABLE orders (
    id              public_id PRIMARY KEY,
    receipt         public_id NOT NULL UNIQUE,
    created_at      timestamptz NOT NULL DEFAULT now(),
    rail            text NOT NULL,
    wire_version    smallint NOT NULL,
    tool            text NOT NULL,
    side_effect     text NOT NULL CHECK (side_effect IN ('none', 'read', 'write', 'irreversible')),
    cacheable       boolean NOT NULL,
    idempotent      boolean NOT NULL,
    method          text NOT NULL,
    target          text NOT NULL,
    request         hash NOT NULL,
    payment_id      text UNIQUE CHECK (payment_id ~ '^[A-Za-z0-9_-]{16,128}$'),
    quote           public_id,
    payer           address NOT NULL,
    network         text NOT NULL REFERENCES networks,
    asset           address NOT NULL,
    payee           address NOT NULL,
    amount          amount NOT NULL,
    work            text NOT NULL CHECK (work IN ('none', 'waiting', 'running', 'done', 'failed', 'lost')),
    work_epoch      integer NOT NULL DEFAULT 1,
    work_by         public_id,
    work_until      timestamptz,
    work_began_at   timestamptz,
    work_ended_at   timestamptz,
    work_note       text,
    authorization_id bigint,
    delivered_at    timestamptz,
    UNIQUE (quote, payer)
);
COMMENT ON COLUMN orders.request IS 'SHA-256 over method, raw target and body; what the payment was meant for';
COMMENT ON COLUMN orders.idempotent IS 'its upstream honours the order''s Idempotency-Key';
COMMENT ON COLUMN orders.work_epoch IS 'rises with each takeover of the work; an answer of an older epoch changes nothing';
COMMENT ON COLUMN orders.authorization_id IS 'the authorization that is to pay this order now; earlier ones keep their rows';
CREATE INDEX orders_running ON orders (work_until) WHERE work = 'running';
CREATE INDEX orders_payer ON orders (payer, request, created_at);

CREATE TABLE answers (
    order_id        public_id PRIMARY KEY REFERENCES orders,
    status          integer NOT NULL,
    headers         text NOT NULL,
    body            bytea NOT NULL,
    digest          hash NOT NULL,
    stored_at       timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE answers IS 'what the upstream said; deleted after its retention, the order and its receipt stay';

-- One row an authorization, identified by (network, asset, payer, nonce): the nonce guards the money.
-- `due` is the outbox: what stands here and nowhere else will be sent.
CREATE TABLE authorizations (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id        public_id NOT NULL REFERENCES orders,
    network         text NOT NULL REFERENCES networks,
    asset           address NOT NULL,
    payer           address NOT NULL,
    nonce           hash NOT NULL,
    payee           address NOT NULL,
    amount          amount NOT NULL,
    valid_after     amount NOT NULL,
    valid_before    bigint NOT NULL,
    dead_after      bigint NOT NULL,
    signature       bytea NOT NULL,
    has_code        boolean NOT NULL DEFAULT false,
    state           text NOT NULL CHECK (state IN ('held', 'due', 'sent', 'released', 'settled', 'expired', 'void')),
    attempt         public_id NOT NULL,
    alone           boolean NOT NULL DEFAULT false,
    from_block      bigint NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now(),
    due_at          timestamptz,
    sent_at         timestamptz,
    ended_at        timestamptz,
    end_note        text,
    claimed_until   timestamptz NOT NULL DEFAULT '-infinity',
    looks           integer NOT NULL DEFAULT 0,
    next_look       timestamptz NOT NULL,
    UNIQUE (network, asset, payer, nonce),
    CHECK ((state IN ('settled', 'expired', 'void')) = (ended_at IS NOT NULL)),
    CHECK (dead_after >= valid_before)
);
COMMENT ON COLUMN authorizations.dead_after IS 'unix seconds: the latest validBefore of all signatures known over this nonce';
COMMENT ON COLUMN authorizations.attempt IS 'the accept call that made or re-armed the row; asked again with it, accept answers the same';
COMMENT ON COLUMN authorizations.alone IS 'failed in a batch once: goes in a transaction of its own';
COMMENT ON COLUMN authorizations.from_block IS 'the head when it was first seen; no log of it can be older';
CREATE INDEX authorizations_due ON authorizations (network, due_at) WHERE state = 'due';
CREATE INDEX authorizations_look ON authorizations (network, next_look) WHERE ended_at IS NULL;
CREATE INDEX authorizations_order ON authorizations (order_id);
ALTER TABLE orders ADD FOREIGN KEY (authorization_id) REFERENCES authorizations DEFERRABLE INITIALLY DEFERRED;

-- Further valid signatures over a known nonce: kept, because each of them can be submitted by anybody.
CREATE TABLE other_signatures (
    authorization_id bigint NOT NULL REFERENCES authorizations,
    payee           address NOT NULL,
    amount          amount NOT NULL,
    valid_after     amount NOT NULL,
    valid_before    bigint NOT NULL,
    signature       bytea NOT NULL,
    seen_at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (authorization_id, signature)
);

-- A relayer wallet has one owner at a time; the epoch fences the one before. Account nonces come from here.
CREATE TABLE relayers (
    network         text NOT NULL REFERENCES networks,
    address         address NOT NULL,
    next_nonce      bigint NOT NULL DEFAULT 0,
    owner           public_id,
    epoch           bigint NOT NULL DEFAULT 0,
    until           timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (network, address)
);

CREATE TABLE relay_transactions (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    network         text NOT NULL,
    relayer         address NOT NULL,
    account_nonce   bigint NOT NULL,
    hash            hash NOT NULL,
    raw             bytea NOT NULL,
    gas             bigint NOT NULL,
    max_fee         amount NOT NULL,
    max_tip         amount NOT NULL,
    state           text NOT NULL CHECK (state IN ('signed', 'broadcast', 'mined', 'final', 'replaced', 'dropped')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    broadcast_at    timestamptz,
    mined_at        timestamptz,
    block           bigint,
    block_hash      hash,
    UNIQUE (network, hash),
    FOREIGN KEY (network, relayer) REFERENCES relayers
);
COMMENT ON TABLE relay_transactions IS 'committed before the first byte is broadcast; recovery sends these very bytes again';
CREATE INDEX relay_open ON relay_transactions (network, relayer, account_nonce) WHERE state IN ('signed', 'broadcast');

CREATE TABLE relay_calls (
    transaction_id  bigint NOT NULL REFERENCES relay_transactions,
    authorization_id bigint NOT NULL REFERENCES authorizations,
    PRIMARY KEY (transaction_id, authorization_id)
);
CREATE INDEX relay_calls_authorization ON relay_calls (authorization_id);

-- What makes an order paid: one Transfer log, proving one authorization.
CREATE TABLE proofs (
    authorization_id bigint PRIMARY KEY REFERENCES authorizations,
    network         text NOT NULL,
    tx              hash NOT NULL,
    log_index       bigint NOT NULL,
    block           bigint NOT NULL,
    block_hash      hash NOT NULL,
    block_time      bigint NOT NULL,
    recorded_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (network, tx, log_index)
);
