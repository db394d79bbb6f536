-- What the settler knows of its network and of its own transactions.

ALTER TABLE networks ADD COLUMN finality_s bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN networks.finality_s IS
    'seconds that the final block was behind the head: the most seen lately; 0: never seen';

ALTER TABLE relay_transactions ADD COLUMN capped_at timestamptz;
COMMENT ON COLUMN relay_transactions.capped_at IS 'its fee ought to be raised, and fee_max leaves no room';

-- With those that were replaced: any hash of a nonce may be the one that is mined.
DROP INDEX relay_open;
CREATE INDEX relay_open ON relay_transactions (network, relayer, account_nonce)
    WHERE state IN ('signed', 'broadcast', 'replaced');
-- Which account nonces are ours, for the next one that is nobody's.
CREATE INDEX relay_nonces ON relay_transactions (network, relayer, account_nonce);

-- Words in domains and not in checks of the table, which are read from their text again at each statement. The views of
-- the program before go first; views and functions are made anew behind this.
DROP VIEW IF EXISTS order_status CASCADE;
CREATE DOMAIN side_effect AS text CHECK (VALUE IN ('none', 'read', 'write', 'irreversible'));
CREATE DOMAIN work_state AS text CHECK (VALUE IN ('none', 'waiting', 'running', 'done', 'failed', 'lost'));
CREATE DOMAIN money_state AS text CHECK (VALUE IN ('held', 'due', 'sent', 'released', 'settled', 'expired', 'void'));
CREATE DOMAIN relay_state AS text CHECK (VALUE IN ('signed', 'broadcast', 'mined', 'final', 'replaced', 'dropped'));
CREATE DOMAIN payment_id AS text CHECK (VALUE ~ '^[A-Za-z0-9_-]{16,128}$');
CREATE DOMAIN retry_source AS text CHECK (VALUE IN ('llm', 'framework', 'http'));
ALTER TABLE orders DROP CONSTRAINT orders_side_effect_check, DROP CONSTRAINT orders_payment_id_check,
    DROP CONSTRAINT orders_work_check,
    ALTER COLUMN side_effect TYPE side_effect, ALTER COLUMN payment_id TYPE payment_id,
        ALTER COLUMN work TYPE work_state;
ALTER TABLE authorizations DROP CONSTRAINT authorizations_state_check, ALTER COLUMN state TYPE money_state;
ALTER TABLE relay_transactions DROP CONSTRAINT relay_transactions_state_check, ALTER COLUMN state TYPE relay_state;
ALTER TABLE events DROP CONSTRAINT events_retry_source_check, DROP CONSTRAINT events_order_id_fkey,
    ALTER COLUMN retry_source TYPE retry_source;
