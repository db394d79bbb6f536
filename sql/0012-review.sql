-- What settlers' endpoints were at fault for: a settler has no address of its own where it could be asked.
CREATE TABLE rpc_faults (
    network         text NOT NULL,
    endpoint        text NOT NULL,
    kind            text NOT NULL,
    n               bigint NOT NULL CHECK (n > 0),
    PRIMARY KEY (network, endpoint, kind)
);
COMMENT ON COLUMN rpc_faults.endpoint IS 'scheme, host and port: keys stand in the rest';
COMMENT ON COLUMN rpc_faults.n IS 'of all settlers since the first';

-- A write's answer that leaves its outcome open (a 5xx) still names what was done in the seller's own words.
ALTER TABLE reviews ADD COLUMN theirs text;
COMMENT ON COLUMN reviews.theirs IS 'ids and addresses in the headers of the answer that left it open';
