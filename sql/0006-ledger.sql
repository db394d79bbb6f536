-- The ledger: debts until they are paid back, what left our wallets, and the journal of all of it.

CREATE DOMAIN debt_state AS text CHECK (VALUE IN ('owed', 'approved', 'paying', 'refunded', 'held', 'earned',
    'cancelled'));
CREATE DOMAIN debt_cause AS text CHECK (VALUE IN ('late', 'duplicate', 'work_failed', 'overpaid', 'unclaimed'));
CREATE DOMAIN transfer_class AS text CHECK (VALUE IN ('sale', 'debt', 'overpaid', 'suspense', 'internal'));
CREATE DOMAIN movement_class AS text CHECK (VALUE IN ('payout', 'withdrawal', 'internal', 'funding'));

-- ---- debts ----

ALTER TABLE debts DROP CONSTRAINT debts_cause_check, DROP CONSTRAINT debts_state_check;
ALTER TABLE debts
    ALTER COLUMN cause TYPE debt_cause,
    ALTER COLUMN state DROP DEFAULT,
    ALTER COLUMN state TYPE debt_state,
    ALTER COLUMN state SET DEFAULT 'owed',
    ALTER COLUMN order_id DROP NOT NULL,
    ALTER COLUMN authorization_id DROP NOT NULL,
    ADD COLUMN part smallint NOT NULL DEFAULT 0 CHECK (part >= 0),
    ADD COLUMN refund_nonce hash UNIQUE,
    ADD COLUMN changed_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN changed_by text,
    ADD COLUMN reason text,
    ADD COLUMN wallet address,
    ADD COLUMN signature bytea,
    ADD COLUMN valid_before bigint,
    ADD COLUMN claimed_at timestamptz,
    ADD COLUMN tries integer NOT NULL DEFAULT 0,
    ADD COLUMN next_try timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN refund_tx hash,
    ADD COLUMN refund_log bigint,
    ADD COLUMN refund_block bigint,
    ADD COLUMN refund_time bigint,
    ADD COLUMN looked bigint,
    ADD COLUMN foreign_wallet address,
    ADD COLUMN foreign_tx hash,
    ADD COLUMN foreign_block bigint;
UPDATE debts SET refund_nonce = sha256(convert_to('payonce refund', 'UTF8') || '\x0000'::bytea || id);
ALTER TABLE debts
    ALTER COLUMN refund_nonce SET NOT NULL,
    ADD CHECK ((state = 'refunded') = (refund_tx IS NOT NULL)),
    ADD CHECK (state <> 'paying' OR (wallet IS NOT NULL AND signature IS NOT NULL)),
    ADD CHECK (state <> 'held' OR reason IS NOT NULL),
    ADD CHECK (amount > 0),
    ADD UNIQUE (network, refund_tx, refund_log);
COMMENT ON COLUMN debts.refund_nonce IS
    'hash of (domain, part, debt id): the token lets it move money once, whatever this database says';
COMMENT ON COLUMN debts.part IS
    'rises when a nonce was found spent elsewhere or cancelled at a final block, and a person says so';
COMMENT ON COLUMN debts.wallet IS
    'which wallet signed the refund first: another may not, until what this one signed is proven dead';
COMMENT ON COLUMN debts.looked IS
    'up to which block the chain was asked whether any wallet has used its nonce; null: from its source on';
COMMENT ON COLUMN debts.foreign_wallet IS
    'not a wallet of ours as far as this database knows, and it has paid this debt: a person says whose it is';
CREATE INDEX debts_order ON debts (order_id);
CREATE INDEX debts_open ON debts (network, asset, created_at) WHERE state IN ('owed', 'approved', 'paying', 'held');
CREATE INDEX debts_claimed ON debts (network, asset, claimed_at) WHERE claimed_at IS NOT NULL;

-- Every transaction that ever carried a refund.
CREATE TABLE payout_calls (
    transaction_id  bigint NOT NULL REFERENCES relay_transactions,
    debt_id         hash NOT NULL REFERENCES debts,
    PRIMARY KEY (transaction_id, debt_id)
);
CREATE INDEX payout_calls_debt ON payout_calls (debt_id);

-- ---- wallets and what moves in and out of them ----

CREATE TABLE wallets (
    network         text NOT NULL REFERENCES networks,
    address         address NOT NULL,
    role            text NOT NULL CHECK (role IN ('receive', 'refund', 'former', 'relayer')),
    PRIMARY KEY (network, address)
);
COMMENT ON COLUMN wallets.role IS 'former: it paid refunds before; its movements are read on';
CREATE UNIQUE INDEX wallets_refund ON wallets (network) WHERE role = 'refund';

-- What the refund wallet holds, and what it lacks for the debts that wait.
CREATE TABLE refund_funds (
    network         text NOT NULL REFERENCES networks,
    asset           address NOT NULL,
    balance         amount NOT NULL,
    lacks           amount NOT NULL,
    seen_at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (network, asset)
);

ALTER TABLE transfers DROP CONSTRAINT transfers_class_check, ALTER COLUMN class TYPE transfer_class,
    ADD COLUMN booked transfer_class;
COMMENT ON COLUMN transfers.booked IS 'the class that the journal has it under; null: not in the journal yet';
CREATE INDEX transfers_strange ON transfers (sender, nonce) WHERE authorization_id IS NULL AND nonce IS NOT NULL;
CREATE INDEX transfers_unbooked ON transfers (network, block) WHERE booked IS DISTINCT FROM class;

-- What left one of our wallets, and what came into the refund wallet: with `transfers` every movement of ours, up to
-- the final block.
CREATE TABLE movements (
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
    class           movement_class NOT NULL,
    debt_id         hash UNIQUE REFERENCES debts,
    booked          movement_class,
    found_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (network, tx, log_index)
);
COMMENT ON COLUMN movements.nonce IS 'of the AuthorizationUsed that it belongs to: a refund is known by it';
CREATE INDEX movements_unbooked ON movements (network, block) WHERE booked IS DISTINCT FROM class;
CREATE INDEX movements_nonce ON movements (nonce) WHERE nonce IS NOT NULL AND debt_id IS NULL;

CREATE TABLE movement_scans (
    network         text NOT NULL REFERENCES networks,
    wallet          address NOT NULL,
    start           bigint NOT NULL,
    block           bigint NOT NULL,
    PRIMARY KEY (network, wallet)
);

-- The last comparison of a wallet's account with its balance on the chain; good: the newest block at which they agreed.
CREATE TABLE wallet_checks (
    network         text NOT NULL REFERENCES networks,
    wallet          address NOT NULL,
    asset           address NOT NULL,
    block           bigint NOT NULL,
    on_chain        amount NOT NULL,
    in_books        numeric(79,0) NOT NULL,
    good            bigint NOT NULL,
    checked_at      timestamptz NOT NULL DEFAULT now(),
    again_at        timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (network, wallet, asset)
);

ALTER TABLE relay_transactions ADD COLUMN gas_cost numeric(78,0);
COMMENT ON COLUMN relay_transactions.gas_cost IS 'wei, from its receipt at a final block; booked in the same commit';
CREATE INDEX relay_ungassed ON relay_transactions (network, id) WHERE state = 'final' AND gas_cost IS NULL;

-- ---- the journal ----

CREATE TABLE accounts (
    id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    network         text NOT NULL REFERENCES networks,
    asset           text NOT NULL CHECK (asset = 'native' OR asset ~ '^0x[0-9a-f]{40}$'),
    name            text NOT NULL,
    UNIQUE (network, asset, name)
);
CREATE TABLE entries (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    made_at         timestamptz NOT NULL DEFAULT now(),
    network         text NOT NULL REFERENCES networks,
    kind            text NOT NULL CHECK (kind IN ('opening', 'receipt', 'movement', 'gas', 'funding', 'correction')),
    what            text NOT NULL,
    block           bigint NOT NULL,
    block_time      bigint NOT NULL,
    tx              hash,
    log_index       bigint,
    debt_id         hash,
    reason          text,
    actor           text,
    digest          hash NOT NULL,
    CHECK ((reason IS NULL) = (actor IS NULL) AND (reason IS NULL OR kind = 'correction'))
);
COMMENT ON TABLE entries IS 'final facts: never changed, never removed; a correction is an entry';
COMMENT ON COLUMN entries.reason IS 'of a correction that a person made: why, and actor: who';
COMMENT ON COLUMN entries.digest IS 'SHA-256 over the entry and its postings, as entry_digest has them';
CREATE UNIQUE INDEX entries_source ON entries (network, tx, log_index, kind)
    WHERE kind IN ('receipt', 'movement') AND tx IS NOT NULL;
CREATE UNIQUE INDEX entries_payout ON entries (debt_id) WHERE kind = 'movement' AND what = 'payout';
CREATE INDEX entries_tx ON entries (network, tx, log_index);
CREATE INDEX entries_time ON entries (block_time, id);
CREATE INDEX entries_corrected ON entries (network, reason) WHERE reason IS NOT NULL;
CREATE INDEX entries_block ON entries (network, block);
CREATE TABLE postings (
    entry_id        bigint NOT NULL REFERENCES entries,
    account_id      integer NOT NULL REFERENCES accounts,
    amount          numeric(79,0) NOT NULL CHECK (amount <> 0),
    PRIMARY KEY (entry_id, account_id)
);
COMMENT ON COLUMN postings.amount IS 'minor units; debit positive';
CREATE INDEX postings_account ON postings (account_id);

-- Each day's comparison of books and chain.
CREATE TABLE reconciliations (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    network         text NOT NULL REFERENCES networks,
    block           bigint NOT NULL,
    made_at         timestamptz NOT NULL DEFAULT now(),
    differences     integer NOT NULL,
    report          jsonb NOT NULL
);
CREATE INDEX reconciliations_newest ON reconciliations (network, made_at);
