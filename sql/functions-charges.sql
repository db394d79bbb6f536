-- Payments that are a transaction of the payer's own. What was presented stands in `charges` before anything of it is sent; what was
-- not is found by the log scan, and its memo says that it was meant for us.

-- The lock of one such transaction: it is taken for a call, or owed back.
CREATE FUNCTION charge_lock(p_network text, p_tx bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('charge:' || p_network || encode(p_tx, 'hex'), 0));
END $$;

-- verdict: new; known (this challenge was presented; payer and terms are those of then), owed (the transaction is owed back), used (it
-- pays another challenge).
CREATE FUNCTION charge_find(p_challenge bytea, p_network text, p_tx bytea, OUT verdict text, OUT payer bytea, OUT tx bytea,
    OUT valid_before bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT 'known', a.payer, c.tx, a.valid_before INTO verdict, payer, tx, valid_before
      FROM charges c JOIN authorizations a ON a.id = c.authorization_id WHERE c.challenge = p_challenge;
    IF FOUND THEN
        RETURN;
    END IF;
    verdict := CASE WHEN EXISTS (SELECT 1 FROM charges c WHERE c.network = p_network AND c.tx = p_tx) THEN 'used'
                    WHEN EXISTS (SELECT 1 FROM debts d WHERE d.network = p_network AND d.tx = p_tx) THEN 'owed' ELSE 'new' END;
END $$;

-- Its row, in the commit that stores its authorization. p_pays: it is to pay its order, and may be sent from here on. One that its payer
-- sent is looked at at once, wanted or not.
CREATE FUNCTION charge_keep(p_authorization bigint, p_network text, p_charge jsonb, p_pays boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE hash bytea := decode(p_charge->>'tx', 'hex');
BEGIN
    PERFORM charge_lock(p_network, hash);
    IF EXISTS (SELECT 1 FROM debts d WHERE d.network = p_network AND d.tx = hash) THEN
        RAISE EXCEPTION 'this transaction is owed back' USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO charges (authorization_id, network, challenge, tx, memo, raw)
    VALUES (p_authorization, p_network, decode(p_charge->>'challenge', 'hex'), hash, decode(p_charge->>'memo', 'hex'),
            decode(p_charge->>'raw', 'hex')) ON CONFLICT (authorization_id) DO NOTHING;
    UPDATE authorizations SET state = CASE WHEN p_pays THEN 'sent' ELSE state END, sent_at = CASE WHEN p_pays THEN now() ELSE sent_at END,
           due_at = NULL, looks = 0, next_look = now()
     WHERE id = p_authorization AND (p_pays OR p_charge->>'raw' IS NULL);
END $$;

-- What is to be looked at on the chain now, and what of it may be sent (again). Young ones each quarter of a second, then as any other.
CREATE FUNCTION charges_look(p_network text, p_limit integer)
RETURNS TABLE (id bigint, state text, asset bytea, payer bytea, payee bytea, amount text, dead_after bigint, from_block bigint, looks bigint,
    tx bytea, memo bytea, raw bytea, ours boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH due AS (
        UPDATE authorizations a SET looks = a.looks + 1,
               next_look = CASE WHEN a.looks < 240 THEN now() + interval '250 ms' ELSE look_after(a.looks - 240, a.dead_after) END
         WHERE a.id = ANY (ARRAY(SELECT looks_due(p_network, p_limit)))
        RETURNING a.*)
    SELECT d.id, d.state::text, d.asset::bytea, d.payer::bytea, d.payee::bytea, d.amount::text, d.dead_after, d.from_block, d.looks::bigint,
           c.tx::bytea, c.memo::bytea, CASE WHEN d.state = 'sent' THEN c.raw END, c.raw IS NOT NULL
      FROM due d JOIN charges c ON c.authorization_id = d.id;
END $$;

-- It paid for a challenge of ours, and not what that asked for. Only said of what the chain shows.
CREATE FUNCTION charge_refuse(p_network text, p_tx bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO refused_charges (network, tx) VALUES (p_network, p_tx) ON CONFLICT DO NOTHING;
END $$;

-- Transfers that nobody came with, or that came beside the one that pays: each is owed back to whoever made it, once the chain is final
-- there and, where somebody may still come with it, p_grace_s have passed. Returns how many.
CREATE FUNCTION orphans_book(p_network text, p_grace_s bigint, p_by text, OUT booked integer) LANGUAGE plpgsql AS $$
DECLARE t record; debt bytea;
BEGIN
    booked := 0;
    FOR t IN SELECT x.*, own.authorization_id AS own, coalesce(oa.order_id, ta.order_id) AS of_order, oa.ended_at AS own_ended
               FROM transfers x JOIN networks n ON n.id = x.network
               LEFT JOIN charges own ON own.network = x.network AND own.tx = x.tx
               LEFT JOIN authorizations oa ON oa.id = own.authorization_id
               LEFT JOIN LATERAL (SELECT c.authorization_id FROM charges c WHERE c.network = x.network
                                     AND substr(c.memo::bytea, 26) = substr(x.memo::bytea, 26) LIMIT 1) twin ON true
               LEFT JOIN authorizations ta ON ta.id = twin.authorization_id
              WHERE x.network = p_network AND x.class = 'suspense' AND x.block <= n.final
                AND (x.memo IS NOT NULL OR own.authorization_id IS NOT NULL) ORDER BY x.block, x.log_index LIMIT 500
    LOOP
        PERFORM charge_lock(t.network, t.tx);
        CONTINUE WHEN t.own IS NOT NULL AND t.own_ended IS NULL;
        CONTINUE WHEN t.own IS NULL AND (EXISTS (SELECT 1 FROM charges c WHERE c.network = t.network AND c.tx = t.tx)
                      OR (t.of_order IS NULL AND t.block_time > extract(epoch FROM now()) - p_grace_s
                          AND NOT EXISTS (SELECT 1 FROM refused_charges r WHERE r.network = t.network AND r.tx = t.tx)));
        debt := sha256(convert_to('payonce debt' || t.network, 'UTF8') || t.tx || int8send(t.log_index));
        UPDATE transfers x SET class = 'debt' WHERE x.network = t.network AND x.tx = t.tx AND x.log_index = t.log_index AND x.class = 'suspense';
        CONTINUE WHEN NOT FOUND;
        INSERT INTO debts (id, order_id, cause, network, asset, payer, amount, tx, log_index, refund_nonce, changed_by)
        VALUES (debt, t.of_order, CASE WHEN t.of_order IS NULL THEN 'unclaimed' ELSE 'duplicate' END, t.network, t.asset, t.sender, t.amount,
                t.tx, t.log_index, refund_nonce(debt, 0), p_by::jsonb->>'actor') ON CONFLICT DO NOTHING;
        PERFORM debt_told(t.of_order, p_by::jsonb, 'debt_owed', NULL, 'owed', debt, jsonb_build_object('amount', t.amount::text));
        booked := booked + 1;
    END LOOP;
END $$;

-- What of a transaction is owed back, as receipts say it; null: nothing (yet).
CREATE FUNCTION charge_debts(p_network text, p_tx bytea, OUT debts text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    debts := (SELECT json_agg(json_build_object('debt', hex_text(d.id), 'cause', d.cause, 'state', d.state, 'asset', hex_text(d.asset),
                     'amount', d.amount::text, 'to', hex_text(d.payer), 'source_transaction', hex_text(d.tx), 'source_log', d.log_index)
                     ORDER BY d.log_index)::text FROM debts d WHERE d.network = p_network AND d.tx = p_tx);
END $$;

-- What authorization_read says of others, of one transaction of a payer's: presented here, or found on the chain.
CREATE FUNCTION charge_read(p_network text, p_payer bytea, p_tx bytea)
RETURNS TABLE (state text, dead_after bigint, ended boolean, receipt bytea, tx bytea, block bigint, why text, head bigint, final bigint,
    final_time bigint, scanned bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT CASE WHEN t.tx IS NOT NULL THEN 'settled' ELSE x.state END, x.dead_after, x.ended, x.receipt, coalesce(x.tx, t.tx),
           coalesce(x.block, t.block), x.why, n.head, n.final, n.final_time,
           (SELECT min(s.block) FROM scans s WHERE s.network = p_network)
      FROM networks n
      LEFT JOIN LATERAL (
           SELECT a.state::text, a.dead_after, a.ended_at IS NOT NULL AS ended, o.receipt::bytea, p.tx::bytea, p.block, a.end_note AS why
             FROM charges c JOIN authorizations a ON a.id = c.authorization_id JOIN orders o ON o.id = a.order_id
             LEFT JOIN proofs p ON p.authorization_id = a.id
            WHERE c.network = p_network AND c.tx = p_tx AND a.payer = p_payer) x ON true
      LEFT JOIN LATERAL (
           SELECT v.tx::bytea, v.block FROM transfers v WHERE v.network = p_network AND v.tx = p_tx AND v.sender = p_payer
            ORDER BY v.log_index LIMIT 1) t ON true
     WHERE n.id = p_network;
END $$;
