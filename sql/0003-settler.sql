-- What the settler knows of its network and of its own transactions.

ALTER TABLE networks ADD COLUMN finality_s bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN networks.finality_s IS 'seconds that the final block was behind the head: the most seen lately; 0: never seen';

ALTER TABLE relay_transactions ADD COLUMN capped_at timestamptz;
COMMENT ON COLUMN relay_transactions.capped_at IS 'its fee ought to be raised, and fee_max leaves no room';

-- With those that were replaced: any hash of a nonce may be the one that is mined.
DROP INDEX relay_open;
CREATE INDEX relay_open ON relay_transactions (network, relayer, account_nonce) WHERE state IN ('signed', 'broadcast', 'replaced');
-- Which account nonces are ours, for the next one that is nobody's.
CREATE INDEX relay_nonces ON relay_transactions (network, relayer, account_nonce);
