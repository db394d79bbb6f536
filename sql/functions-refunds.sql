-- Paying debts back. What decides is the token: a debt's nonce moves money once, whatever is asked for here and how often.

-- The payment that bought an answer is on its way back: its answer is not served any more. (A surplus or a second payment blocks nothing.)
CREATE FUNCTION refund_claimed(p_authorization bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM debts d WHERE d.authorization_id = p_authorization AND d.state IN ('paying', 'refunded')
                      AND d.cause IN ('late', 'work_failed'));
END $$;

-- May this debt be paid now, as far as its own story goes? No refund before its source is final. A surplus waits for the end of the
-- work, since work that fails makes all of it a debt; a call in review waits for its decision.
CREATE FUNCTION debt_ripe(d debts) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE o orders;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM transfers t JOIN networks n ON n.id = t.network WHERE t.network = d.network AND t.tx = d.tx
                      AND t.log_index = d.log_index AND t.block <= n.final AND t.booked = t.class) THEN
        RETURN false;
    END IF;
    SELECT * INTO o FROM orders WHERE id = d.order_id;
    RETURN CASE d.cause WHEN 'overpaid' THEN o.work IN ('done', 'none') WHEN 'late' THEN o.work = 'failed'
                        WHEN 'work_failed' THEN o.work = 'failed' ELSE true END;
END $$;

-- By policy: old and large enough, and not over what a person must approve. Returns how many.
CREATE FUNCTION debts_approve(p_network text, p_asset bytea, p_after_s bigint, p_minimum numeric, p_approve_above numeric, p_by text,
    OUT approved integer) LANGUAGE plpgsql AS $$
DECLARE d debts;
BEGIN
    approved := 0;
    FOR d IN SELECT * FROM debts x WHERE x.network = p_network AND x.asset = p_asset AND x.state = 'owed' AND x.amount >= p_minimum
                AND x.amount <= p_approve_above AND x.created_at <= now() - make_interval(secs => p_after_s)
              ORDER BY x.created_at LIMIT 500
    LOOP
        CONTINUE WHEN NOT debt_ripe(d);
        PERFORM 1 FROM orders o WHERE o.id = d.order_id FOR NO KEY UPDATE;
        UPDATE debts x SET state = 'approved', changed_at = now(), changed_by = 'policy', next_try = '-infinity'
         WHERE x.id = d.id AND x.state = 'owed';
        CONTINUE WHEN NOT FOUND;
        PERFORM debt_told(d.order_id, p_by::jsonb, 'debt_approved', 'owed', 'approved', d.id, '{"by": "policy"}');
        approved := approved + 1;
    END LOOP;
END $$;

-- Is something of it on its way: a transaction of ours that carries it and is not over?
CREATE FUNCTION payout_open(p_debt bytea) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM payout_calls c JOIN relay_transactions t ON t.id = c.transaction_id
                    WHERE c.debt_id = p_debt AND t.state IN ('signed', 'broadcast', 'replaced'));
END $$;

-- What a batch would hold now: oldest first, as far as the wallet, the run and the day reach. What was claimed before is paid for already
-- (its nonce may be spent), so it comes first and counts against no limit but the wallet. p_each: what sending one costs the wallet at most,
-- beside its amount.
CREATE FUNCTION payouts_due(p_network text, p_asset bytea, p_limit integer, p_have numeric, p_run_max numeric, p_day_max numeric,
    p_each numeric DEFAULT 0)
RETURNS TABLE (id bytea, payer bytea, amount text, nonce bytea, state text, tries integer, valid_before bigint, created bigint, looked bigint,
    key_count bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE d debts; left_have numeric := p_have; left_run numeric := p_run_max; left_day numeric; n integer := 0;
BEGIN
    left_have := left_have - coalesce((SELECT sum(x.amount + p_each) FROM debts x WHERE x.network = p_network AND x.asset = p_asset
                                          AND x.state = 'paying' AND (payout_open(x.id) OR refund_open(x))), 0);
    left_day := p_day_max - coalesce((SELECT sum(x.amount) FROM debts x WHERE x.network = p_network AND x.asset = p_asset
                                         AND x.claimed_at > now() - interval '24 hours'), 0);
    FOR d IN SELECT * FROM debts x WHERE x.network = p_network AND x.asset = p_asset AND x.state IN ('approved', 'paying')
                AND x.next_try <= now() ORDER BY x.state = 'approved', x.created_at, x.id
    LOOP
        EXIT WHEN n >= p_limit;
        CONTINUE WHEN CASE d.state WHEN 'paying' THEN payout_open(d.id) OR refund_open(d) ELSE NOT debt_ripe(d) END;
        EXIT WHEN d.amount + p_each > left_have OR (d.state = 'approved' AND (d.amount > left_run OR d.amount > left_day));
        left_have := left_have - d.amount - p_each;
        IF d.state = 'approved' THEN
            left_run := left_run - d.amount;
            left_day := left_day - d.amount;
        END IF;
        n := n + 1;
        RETURN QUERY SELECT d.id::bytea, d.payer::bytea, d.amount::text, d.refund_nonce::bytea, d.state::text, d.tries, d.valid_before,
                            extract(epoch FROM d.created_at)::bigint, coalesce(d.looked, (SELECT t.block - 1 FROM transfers t
                            WHERE t.network = d.network AND t.tx = d.tx AND t.log_index = d.log_index)), refund_count(d);
    END LOOP;
END $$;

-- The wallet's money, and how much more the waiting debts ask for. p_each: as payouts_due has it.
CREATE FUNCTION refund_funds_seen(p_network text, p_asset bytea, p_balance numeric, p_each numeric DEFAULT 0) RETURNS void LANGUAGE plpgsql AS $$
DECLARE asked numeric;
BEGIN
    SELECT coalesce(sum(d.amount + p_each), 0) INTO asked FROM debts d WHERE d.network = p_network AND d.asset = p_asset AND d.state IN ('approved', 'paying');
    INSERT INTO refund_funds (network, asset, balance, lacks) VALUES (p_network, p_asset, p_balance, greatest(asked - p_balance, 0))
    ON CONFLICT (network, asset) DO UPDATE SET balance = excluded.balance, lacks = excluded.lacks, seen_at = now();
END $$;

-- The chain was asked for their nonces up to a block: a JSON array of hex ids.
CREATE FUNCTION payouts_looked(p_debts text, p_block bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE debts d SET looked = p_block WHERE d.id = ANY (hex_ids(p_debts)) AND coalesce(d.looked, -1) < p_block;
END $$;

-- Its nonce has paid its payer, and not from the refund wallet of today. From a wallet that refunds were paid from: its scan will find it.
-- From one that is not known here: a person says whose it is, and until then nothing is paid.
CREATE FUNCTION payout_elsewhere(p_debt bytea, p_wallet text, p_tx text, p_block bigint, p_by text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE d debts; ours boolean;
BEGIN
    SELECT * INTO d FROM debts x WHERE x.id = p_debt;
    PERFORM 1 FROM orders o WHERE o.id = d.order_id FOR NO KEY UPDATE;
    ours := EXISTS (SELECT 1 FROM wallets w WHERE w.network = d.network AND w.address = decode(p_wallet, 'hex')
                       AND w.role IN ('refund', 'former'));
    UPDATE debts x SET state = CASE WHEN ours THEN x.state ELSE 'held' END,
           reason = CASE WHEN ours THEN 'it was paid by a refund wallet of ours, which is being read'
                         ELSE 'its payer was paid with its nonce by a wallet that is not known here: whose is 0x' || p_wallet || '?' END,
           next_try = now() + interval '10 seconds', foreign_wallet = decode(p_wallet, 'hex'), foreign_tx = decode(p_tx, 'hex'),
           foreign_block = p_block, changed_at = now()
     WHERE x.id = p_debt AND x.state IN ('approved', 'paying');
    IF FOUND AND NOT ours THEN
        PERFORM debt_told(d.order_id, p_by::jsonb, 'refund_foreign', d.state, 'held', d.id,
                          jsonb_build_object('wallet', p_wallet, 'tx', p_tx));
    END IF;
END $$;

-- Claimed: from here on the chain alone decides. The orders' locks come first, so that of serving the answer and claiming its refund one
-- is refused. [{"id", "signature", "valid_before"}]. Returns which were (also when asked again with them).
CREATE FUNCTION payouts_sign(p_network text, p_wallet bytea, p_debts text, p_by text) RETURNS TABLE (id bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE s record; d debts;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM wallets w WHERE w.network = p_network AND w.address = p_wallet AND w.role = 'refund') THEN
        RETURN;
    END IF;
    PERFORM 1 FROM orders o WHERE o.id IN (SELECT x.order_id FROM debts x WHERE x.id IN (
        SELECT decode(v->>'id', 'hex') FROM jsonb_array_elements(p_debts::jsonb) v)) ORDER BY o.id FOR NO KEY UPDATE;
    FOR s IN SELECT decode(v->>'id', 'hex') AS debt, decode(v->>'signature', 'hex') AS signature, (v->>'valid_before')::bigint AS valid_before
               FROM jsonb_array_elements(p_debts::jsonb) v ORDER BY v->>'id'
    LOOP
        SELECT * INTO d FROM debts x WHERE x.id = s.debt FOR UPDATE;
        CONTINUE WHEN d.id IS NULL OR d.network <> p_network OR coalesce(d.wallet, p_wallet) <> p_wallet
                   OR NOT (d.state = 'paying' OR (d.state = 'approved' AND debt_ripe(d)));
        UPDATE debts x SET state = 'paying', wallet = p_wallet, signature = s.signature, valid_before = s.valid_before, reason = NULL,
               claimed_at = coalesce(x.claimed_at, now()), changed_at = now(), tries = x.tries + 1,
               next_try = now() + make_interval(secs => least(3600, 15 * (1 << least(x.tries, 8))))
         WHERE x.id = s.debt;
        IF d.state = 'approved' THEN
            PERFORM debt_told(d.order_id, p_by::jsonb, 'refund_signed', 'approved', 'paying', d.id,
                              jsonb_build_object('nonce', encode(d.refund_nonce, 'hex'), 'wallet', encode(p_wallet, 'hex')));
        END IF;
        RETURN QUERY SELECT s.debt;
    END LOOP;
END $$;

-- The batch's transaction before its first byte is broadcast, with the relayer's lease and account nonce as relay_store has them.
CREATE FUNCTION payout_store(p_network text, p_relayer bytea, p_owner bytea, p_epoch bigint, p_account_nonce bigint, p_hash bytea,
    p_raw bytea, p_gas bigint, p_max_fee numeric, p_max_tip numeric, p_call_to bytea, p_call_data bytea, p_what text, p_by text)
RETURNS TABLE (verdict text, id bigint, hash bytea, raw bytea, next_nonce bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE r relayers; found_id bigint; debt bytea;
BEGIN
    SELECT * INTO r FROM relayers x WHERE x.network = p_network AND x.address = p_relayer FOR UPDATE;
    SELECT t.id INTO found_id FROM relay_transactions t WHERE t.network = p_network AND t.hash = p_hash;
    IF found_id IS NULL AND (r.owner IS DISTINCT FROM p_owner OR r.epoch <> p_epoch OR r.until < now()) THEN
        RETURN QUERY SELECT 'fenced', NULL::bigint, NULL::bytea, NULL::bytea, r.next_nonce;
        RETURN;
    ELSIF found_id IS NULL AND r.next_nonce <> p_account_nonce THEN
        RETURN QUERY SELECT 'stale', NULL::bigint, NULL::bytea, NULL::bytea, r.next_nonce;
        RETURN;
    ELSIF found_id IS NULL THEN
        INSERT INTO relay_transactions (network, relayer, account_nonce, hash, raw, gas, max_fee, max_tip, call_to, call_data, state)
        VALUES (p_network, p_relayer, p_account_nonce, p_hash, p_raw, p_gas, p_max_fee, p_max_tip, p_call_to, p_call_data, 'signed')
        RETURNING relay_transactions.id INTO found_id;
        INSERT INTO payout_calls SELECT found_id, decode(v, 'hex') FROM jsonb_array_elements_text(p_what::jsonb) v;
        r.next_nonce := relay_free_nonce(p_network, p_relayer, p_account_nonce + 1);
        UPDATE relayers x SET next_nonce = r.next_nonce WHERE x.network = p_network AND x.address = p_relayer;
        PERFORM debt_told(d.order_id, p_by::jsonb, 'refund_sent', NULL, 'paying', d.id, jsonb_build_object('tx', encode(p_hash, 'hex')))
           FROM debts d WHERE d.id IN (SELECT decode(v, 'hex') FROM jsonb_array_elements_text(p_what::jsonb) v) ORDER BY d.order_id, d.id;
    END IF;
    RETURN QUERY SELECT 'stored', found_id, p_hash, p_raw, r.next_nonce;
END $$;

-- It cannot be paid now (blacklisted, paused): the debt stays open, with the reason, and is asked about less and less often.
CREATE FUNCTION payout_put_off(p_debt bytea, p_reason text, p_by text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE d debts;
BEGIN
    SELECT * INTO d FROM debts x WHERE x.id = p_debt;
    PERFORM 1 FROM orders o WHERE o.id = d.order_id FOR NO KEY UPDATE;
    UPDATE debts x SET reason = p_reason, tries = x.tries + 1, changed_at = now(),
           next_try = now() + make_interval(secs => least(21600, 30 * (1 << least(x.tries, 12))))
     WHERE x.id = p_debt AND x.state IN ('approved', 'paying');
    IF FOUND AND d.reason IS DISTINCT FROM p_reason THEN
        PERFORM debt_told(d.order_id, p_by::jsonb, 'refund_put_off', d.state, d.state, d.id, jsonb_build_object('why', p_reason));
    END IF;
END $$;

-- Its nonce is used at the final block p_final. If the scan of the wallet has passed that block and found no refund in it, the nonce was
-- cancelled or spent elsewhere: a person looks, and may allow one more (part).
CREATE FUNCTION payout_spent(p_debt bytea, p_final bigint, p_by text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE d debts;
BEGIN
    SELECT * INTO d FROM debts x WHERE x.id = p_debt;
    PERFORM 1 FROM orders o WHERE o.id = d.order_id FOR NO KEY UPDATE;
    UPDATE debts x SET state = 'held', reason = 'its nonce was used at a final block, and no refund: cancelled or spent elsewhere', changed_at = now()
     WHERE x.id = p_debt AND x.state = 'paying'
       AND EXISTS (SELECT 1 FROM movement_scans s WHERE s.network = x.network AND s.wallet = x.wallet AND s.block >= p_final);
    IF FOUND THEN
        PERFORM debt_told(d.order_id, p_by::jsonb, 'refund_lost', 'paying', 'held', d.id, jsonb_build_object('nonce', encode(d.refund_nonce, 'hex')));
    END IF;
END $$;

-- ---- what a person asks and decides ----

-- Every transaction that carried it: the relayer's, or the refund wallet's own.
CREATE FUNCTION debt_sent_in(p_debt bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_strip_nulls(json_build_object('hash', hex_text(x.hash), 'state', x.state, 'nonce_key', hex_text(x.nonce_key),
                    'key_count', x.key_count)) ORDER BY x.id)
      FROM (SELECT t.id, t.hash, t.state::text, NULL::bytea AS nonce_key, NULL::bigint AS key_count
              FROM payout_calls c JOIN relay_transactions t ON t.id = c.transaction_id WHERE c.debt_id = p_debt
             UNION ALL SELECT r.id, r.hash, r.state::text, r.nonce_key, r.key_count FROM refund_transactions r WHERE r.debt_id = p_debt) x;
$$;
CREATE FUNCTION debt_json(d debts) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_strip_nulls(json_build_object('debt', hex_text(d.id), 'state', d.state, 'cause', d.cause, 'network', d.network,
           'asset', hex_text(d.asset), 'amount', d.amount::text, 'payer', hex_text(d.payer), 'order_id', order_text(d.order_id),
           'source_transaction', hex_text(d.tx), 'source_log', d.log_index, 'source_nonce', (SELECT hex_text(a.nonce) FROM authorizations a WHERE a.id = d.authorization_id),
           'made_at', time_text(d.created_at), 'age_s', age_s(d.created_at), 'changed_at', time_text(d.changed_at), 'changed_by', d.changed_by,
           'reason', d.reason, 'tries', d.tries, 'next_try', CASE WHEN d.next_try > now() THEN time_text(d.next_try) END,
           'foreign_wallet', hex_text(d.foreign_wallet), 'foreign_transaction', hex_text(d.foreign_tx), 'refund_wallet', hex_text(d.wallet), 'refund_nonce', hex_text(d.refund_nonce), 'part', nullif(d.part, 0),
           'refund_transaction', hex_text(d.refund_tx), 'refund_log', d.refund_log, 'refund_block', d.refund_block,
           'refunded_at', time_text(to_timestamp(d.refund_time)),
           'sent_in', debt_sent_in(d.id)));
$$;
CREATE FUNCTION debts_list(p_all boolean, OUT list text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT coalesce(json_agg(debt_json(d) ORDER BY d.created_at, d.id), '[]')::text INTO list FROM debts d
     WHERE p_all OR d.state IN ('owed', 'approved', 'paying', 'held');
END $$;
CREATE FUNCTION debt_show(p_debt bytea, OUT story text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT coalesce((SELECT debt_json(d) FROM debts d WHERE d.id = p_debt), '{}')::text INTO story;
END $$;

-- verdict: changed; same (it is so already); unknown; or the state that does not let it be. approve: owed or held; hold: owed or approved,
-- only before a refund is signed; pay: approved now, and due now; again: a held one whose nonce was lost gets the next part. foreign: paid
-- by a wallet that is not known here. Then paid: that wallet was ours, and is read from where it paid on; or again: it was not.
CREATE FUNCTION debt_decide(p_debt bytea, p_what text, p_note text, p_who text, OUT verdict text) LANGUAGE plpgsql AS $$
DECLARE d debts; by_whom jsonb := jsonb_build_object('actor', 'operator:' || p_who); goal text;
BEGIN
    PERFORM 1 FROM orders o WHERE o.id = (SELECT order_id FROM debts WHERE id = p_debt) FOR NO KEY UPDATE;
    SELECT * INTO d FROM debts x WHERE x.id = p_debt FOR UPDATE;
    goal := CASE p_what WHEN 'hold' THEN 'held' ELSE 'approved' END;
    verdict := CASE WHEN d.id IS NULL THEN 'unknown'
                    WHEN d.state = goal AND p_what <> 'pay' THEN 'same'
                    WHEN p_what = 'pay' AND d.state IN ('paying', 'refunded') THEN d.state
                    WHEN p_what IN ('paid', 'again') AND d.state = 'held' AND d.foreign_wallet IS NOT NULL THEN 'changed'
                    WHEN p_what = 'paid' THEN 'not_found'
                    WHEN p_what IN ('approve', 'pay') AND d.state = 'held' AND d.foreign_wallet IS NOT NULL THEN 'foreign'
                    WHEN p_what IN ('approve', 'pay') AND d.state IN ('owed', 'approved') THEN 'changed'
                    WHEN p_what = 'approve' AND d.state = 'held' AND d.claimed_at IS NULL THEN 'changed'
                    WHEN p_what = 'again' AND d.state = 'held' AND d.claimed_at IS NOT NULL THEN 'changed'
                    WHEN p_what = 'hold' AND d.state IN ('owed', 'approved') THEN 'changed'
                    ELSE d.state END;
    IF verdict <> 'changed' THEN
        RETURN;
    END IF;
    IF p_what = 'paid' THEN
        INSERT INTO wallets (network, address, role) VALUES (d.network, d.foreign_wallet, 'former') ON CONFLICT DO NOTHING;
    END IF;
    UPDATE debts x SET state = goal, reason = CASE goal WHEN 'held' THEN p_note END, changed_at = now(), changed_by = by_whom->>'actor',
           looked = CASE p_what WHEN 'paid' THEN x.foreign_block - 1 WHEN 'again' THEN NULL ELSE x.looked END,
           foreign_wallet = CASE p_what WHEN 'again' THEN NULL ELSE x.foreign_wallet END,
           foreign_tx = CASE p_what WHEN 'again' THEN NULL ELSE x.foreign_tx END,
           foreign_block = CASE p_what WHEN 'again' THEN NULL ELSE x.foreign_block END,
           next_try = '-infinity', part = CASE p_what WHEN 'again' THEN x.part + 1 ELSE x.part END,
           refund_nonce = CASE p_what WHEN 'again' THEN refund_nonce(x.id, x.part + 1) ELSE x.refund_nonce END
     WHERE x.id = p_debt;
    PERFORM debt_told(d.order_id, by_whom, CASE goal WHEN 'held' THEN 'debt_held' ELSE 'debt_approved' END, d.state, goal, d.id,
                      jsonb_strip_nulls(jsonb_build_object('note', p_note)));
END $$;

-- What a person knows of a transfer that nobody announced: it goes back to who sent it. verdict: changed, same, unknown, or its class.
CREATE FUNCTION suspense_return(p_network text, p_tx bytea, p_log bigint, p_who text, OUT verdict text, OUT debt bytea) LANGUAGE plpgsql AS $$
DECLARE t transfers;
BEGIN
    SELECT * INTO t FROM transfers x WHERE x.network = p_network AND x.tx = p_tx AND x.log_index = p_log FOR UPDATE;
    SELECT d.id INTO debt FROM debts d WHERE d.network = p_network AND d.tx = p_tx AND d.log_index = p_log;
    verdict := CASE WHEN t.tx IS NULL THEN 'unknown' WHEN debt IS NOT NULL THEN 'same' WHEN t.class <> 'suspense' THEN t.class ELSE 'changed' END;
    IF verdict <> 'changed' THEN
        RETURN;
    END IF;
    debt := sha256(convert_to('payonce debt' || p_network, 'UTF8') || p_tx || int8send(p_log));
    UPDATE transfers x SET class = 'debt' WHERE x.network = p_network AND x.tx = p_tx AND x.log_index = p_log;
    INSERT INTO debts (id, cause, network, asset, payer, amount, tx, log_index, refund_nonce, changed_by)
    VALUES (debt, 'unclaimed', t.network, t.asset, t.sender, t.amount, t.tx, t.log_index, refund_nonce(debt, 0), 'operator:' || p_who);
END $$;
