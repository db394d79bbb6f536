-- What can be on its way is looked at before the many that were released and only wait for their deadlines: each state in its own turn.
DROP INDEX authorizations_look;
CREATE INDEX authorizations_look ON authorizations (network, state, next_look) WHERE ended_at IS NULL;

-- Whoever stores an authorization has made its order, or read it, in the same transaction, and nobody deletes orders. As a foreign key
-- the order of many free repeats was locked by each of them.
ALTER TABLE authorizations DROP CONSTRAINT authorizations_order_id_fkey;
