-- Refunds that the refund wallet sends itself. What decides is the chain: of one count of a debt's nonce key it mines one transaction.

-- How many under the debt's key were mined and reverted: the count that the next one is signed for.
CREATE FUNCTION refund_count(d debts) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(*) FROM refund_transactions x WHERE x.debt_id = d.id AND x.refund_nonce = d.refund_nonce AND x.state = 'reverted');
END $$;

-- Signed and not over, or mined and its log not read yet.
CREATE FUNCTION refund_open(d debts) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM refund_transactions x WHERE x.debt_id = d.id
                      AND (x.state = 'signed' OR (x.state = 'paid' AND x.refund_nonce = d.refund_nonce)));
END $$;

-- Claimed as payouts_sign does, and the transaction's bytes, hash, key and deadline with it, before the first byte is sent. stored: also
-- when asked again with the same.
CREATE FUNCTION refund_store(p_network text, p_wallet bytea, p_debt bytea, p_nonce bytea, p_key bytea, p_count bigint, p_hash bytea,
    p_raw bytea, p_valid_before bigint, p_fee_token bytea, p_by text, OUT stored boolean) LANGUAGE plpgsql AS $$
DECLARE d debts;
BEGIN
    PERFORM 1 FROM orders o WHERE o.id = (SELECT x.order_id FROM debts x WHERE x.id = p_debt) FOR NO KEY UPDATE;
    SELECT * INTO d FROM debts x WHERE x.id = p_debt FOR UPDATE;
    stored := EXISTS (SELECT 1 FROM refund_transactions x WHERE x.network = p_network AND x.hash = p_hash);
    IF stored OR d.id IS NULL OR d.refund_nonce <> p_nonce OR refund_open(d) OR refund_count(d) <> p_count THEN
        RETURN;
    END IF;
    stored := EXISTS (SELECT 1 FROM payouts_sign(p_network, p_wallet, jsonb_build_array(jsonb_build_object('id', encode(p_debt, 'hex'),
                      'signature', encode(p_raw, 'hex'), 'valid_before', p_valid_before))::text, p_by));
    IF NOT stored THEN
        RETURN;
    END IF;
    UPDATE debts x SET reason = d.reason WHERE x.id = p_debt AND d.state = 'paying';  -- why the one before failed, until one succeeds
    INSERT INTO refund_transactions (debt_id, network, wallet, refund_nonce, nonce_key, key_count, hash, raw, valid_before, fee_token)
    VALUES (p_debt, p_network, p_wallet, p_nonce, p_key, p_count, p_hash, p_raw, p_valid_before, p_fee_token);
    PERFORM debt_told(d.order_id, p_by::jsonb, 'refund_sent', NULL, 'paying', d.id,
                      jsonb_build_object('tx', encode(p_hash, 'hex'), 'key_count', p_count));
END $$;

-- What is to be looked at on the chain now.
CREATE FUNCTION refunds_look(p_network text, p_limit integer)
RETURNS TABLE (id bigint, asset bytea, payer bytea, amount text, wallet bytea, nonce bytea, key_count bigint, hash bytea, raw bytea,
    valid_before bigint, looks bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH due AS (
        UPDATE refund_transactions x SET looks = x.looks + 1,
               next_look = now() + make_interval(secs => CASE WHEN x.looks < 60 THEN 0.5 ELSE 5 END)
         WHERE x.id IN (SELECT y.id FROM refund_transactions y WHERE y.network = p_network AND y.state = 'signed' AND y.next_look <= now()
                         ORDER BY y.next_look LIMIT p_limit FOR UPDATE SKIP LOCKED)
        RETURNING x.*)
    SELECT t.id, d.asset::bytea, d.payer::bytea, d.amount::text, t.wallet::bytea, t.refund_nonce::bytea, t.key_count, t.hash::bytea, t.raw,
           t.valid_before, t.looks::bigint FROM due t JOIN debts d ON d.id = t.debt_id;
END $$;

-- What the chain has made of one. p_why: for people. A count that is lost, with p_final its final block: until the wallet's own scan has
-- passed that, and p_dead says that nothing signed before this one can be mined any more, it is not said.
CREATE FUNCTION refund_end(p_id bigint, p_state text, p_why text, p_final bigint, p_dead boolean, p_by text, OUT ended boolean)
LANGUAGE plpgsql AS $$
DECLARE t refund_transactions; d debts; goal text := p_state;
BEGIN
    ended := false;
    SELECT * INTO t FROM refund_transactions x WHERE x.id = p_id;
    PERFORM 1 FROM orders o WHERE o.id = (SELECT x.order_id FROM debts x WHERE x.id = t.debt_id) FOR NO KEY UPDATE;
    SELECT * INTO d FROM debts x WHERE x.id = t.debt_id FOR UPDATE;
    IF p_state = 'lost' AND d.refund_tx = t.hash THEN
        goal := 'paid';
    ELSIF p_state = 'lost' AND d.state = 'paying' AND NOT (p_dead AND EXISTS (SELECT 1 FROM movement_scans s
            WHERE s.network = t.network AND s.wallet = t.wallet AND s.block >= p_final)) THEN
        RETURN;
    END IF;
    UPDATE refund_transactions x SET state = goal, ended_at = now() WHERE x.id = p_id AND x.state = 'signed';
    ended := FOUND;
    IF NOT ended OR d.state <> 'paying' OR d.refund_nonce <> t.refund_nonce OR goal = 'paid' THEN
        RETURN;
    END IF;
    UPDATE debts x SET reason = p_why, changed_at = now(), state = CASE WHEN goal IN ('astray', 'lost') THEN 'held' ELSE 'paying' END,
           next_try = CASE goal WHEN 'reverted' THEN now() + make_interval(secs => least(21600, 30 * (1 << least(t.key_count::integer, 12))))
                                ELSE '-infinity' END
     WHERE x.id = d.id;
    PERFORM debt_told(d.order_id, p_by::jsonb, 'refund_' || goal, 'paying', CASE WHEN goal IN ('astray', 'lost') THEN 'held' ELSE 'paying' END,
                      d.id, jsonb_build_object('tx', encode(t.hash, 'hex'), 'why', p_why));
END $$;
