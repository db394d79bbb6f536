-- What can be on its way is looked at before the many that were released and only wait for their deadlines: each state in its own turn.
DROP INDEX authorizations_look;
CREATE INDEX authorizations_look ON authorizations (network, state, next_look) WHERE ended_at IS NULL;
