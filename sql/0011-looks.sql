-- What may still be sent or is on its way is looked at before the many that were released and only wait for their deadlines.
DROP INDEX authorizations_look;
CREATE INDEX authorizations_look ON authorizations (network, next_look) WHERE ended_at IS NULL AND state <> 'released';
CREATE INDEX authorizations_look_released ON authorizations (network, next_look) WHERE ended_at IS NULL AND state = 'released';
