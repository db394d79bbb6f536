-- The settler's functions. Only the owner of a relayer's lease, with its current epoch, stores transactions.

-- Which chain is this? The first caller pins the genesis; everybody else is told whether it is the same.
CREATE FUNCTION network_pin(p_id text, p_genesis bytea, OUT replaced boolean, OUT final bigint, OUT final_hash bytea)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO networks (id, genesis) VALUES (p_id, p_genesis) ON CONFLICT (id) DO NOTHING;
    SELECT n.genesis <> p_genesis, n.final, n.final_hash INTO replaced, final, final_hash FROM networks n WHERE n.id = p_id;
END $$;

-- How far behind the head the final block was at most, as seen lately: the distance moves in steps where a layer below decides it. And
-- how far behind the clock the newest one is now: more, while the chain stands still or nobody can read it.
CREATE FUNCTION networks_finality() RETURNS TABLE (id text, finality_s bigint, behind_s bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT n.id, n.finality_s, CASE WHEN n.final_time > 0 THEN age_s(to_timestamp(n.final_time)) ELSE 0 END FROM networks n;
END $$;

CREATE FUNCTION network_seen(p_id text, p_head bigint, p_hash bytea, p_head_time bigint, p_final bigint, p_final_hash bytea,
    p_final_time bigint, p_gas_balance numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE networks SET head = p_head, head_hash = p_hash, head_time = p_head_time, seen_at = now(), gas_balance = p_gas_balance,
           final = greatest(final, p_final),
           final_hash = CASE WHEN p_final > final THEN p_final_hash ELSE final_hash END,
           final_time = greatest(final_time, p_final_time),
           finality_s = greatest(p_head_time - p_final_time, finality_s - (finality_s + 999) / 1000)
     WHERE id = p_id;
    UPDATE relay_transactions SET state = 'final' WHERE network = p_id AND state = 'mined' AND block <= p_final;
END $$;

-- What came since the last call: [{"endpoint", "kind", "n"}].
CREATE FUNCTION rpc_faults_add(p_network text, p_faults text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rpc_faults AS f (network, endpoint, kind, n)
    SELECT p_network, v->>'endpoint', v->>'kind', sum((v->>'n')::bigint) FROM jsonb_array_elements(p_faults::jsonb) v GROUP BY 2, 3 ORDER BY 2, 3
    ON CONFLICT (network, endpoint, kind) DO UPDATE SET n = f.n + excluded.n;
END $$;

-- The lowest account nonce from p_from on that the chain has not used and no transaction of ours carries. Below p_from are the
-- chain's; a chain that is said to be behind what we saw mined is not believed. A gap is found by this, too: it is what comes next.
CREATE FUNCTION relay_free_nonce(p_network text, p_relayer bytea, p_from bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE n bigint;
BEGIN
    SELECT t.account_nonce + 1 INTO n FROM relay_transactions t
     WHERE t.network = p_network AND t.relayer = p_relayer AND t.state IN ('mined', 'final') ORDER BY t.account_nonce DESC LIMIT 1;
    n := greatest(n, p_from);
    WHILE EXISTS (SELECT 1 FROM relay_transactions t WHERE t.network = p_network AND t.relayer = p_relayer AND t.account_nonce = n) LOOP
        n := n + 1;
    END LOOP;
    RETURN n;
END $$;

-- Takes or renews the wallet's lease. chain_nonce: the account's next nonce as the chain has it. What it says is not kept: a count
-- that was too large once leaves a gap, and the next look at it finds that.
CREATE FUNCTION relayer_lease(p_network text, p_address bytea, p_owner bytea, p_ttl_s integer, p_chain_nonce bigint,
    OUT held boolean, OUT epoch bigint, OUT next_nonce bigint) LANGUAGE plpgsql AS $$
DECLARE r relayers;
BEGIN
    INSERT INTO relayers (network, address) VALUES (p_network, p_address) ON CONFLICT DO NOTHING;
    SELECT * INTO r FROM relayers x WHERE x.network = p_network AND x.address = p_address FOR UPDATE;
    held := r.owner IS NOT DISTINCT FROM p_owner OR r.until < now();
    IF NOT held THEN
        RETURN;
    END IF;
    epoch := r.epoch + CASE WHEN r.owner IS NOT DISTINCT FROM p_owner THEN 0 ELSE 1 END;
    next_nonce := relay_free_nonce(p_network, p_address, p_chain_nonce);
    UPDATE relayers x SET owner = p_owner, epoch = relayer_lease.epoch, until = now() + make_interval(secs => p_ttl_s),
           next_nonce = relayer_lease.next_nonce
     WHERE x.network = p_network AND x.address = p_address;
END $$;
CREATE FUNCTION relayer_leave(p_network text, p_address bytea, p_owner bytea) RETURNS void LANGUAGE sql AS $$
    UPDATE relayers SET until = now() WHERE network = p_network AND address = p_address AND owner = p_owner;
$$;

-- Due authorizations with enough time left, oldest first; claimed so that another settler takes others. What was mined three times
-- without being carried out burns our gas for nothing: it is left to the resolver.
CREATE FUNCTION authorizations_claim(p_network text, p_limit integer, p_claim_s integer, p_need_s integer)
RETURNS TABLE (id bigint, asset bytea, payer bytea, nonce bytea, payee bytea, amount text, valid_after text, valid_before bigint,
    signature bytea, alone boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    UPDATE authorizations a SET claimed_until = now() + make_interval(secs => p_claim_s)
     WHERE a.id IN (SELECT x.id FROM authorizations x
                     WHERE x.network = p_network AND x.state = 'due' AND x.claimed_until < now() AND x.fruitless < 3
                       AND x.valid_before >= extract(epoch FROM now()) + p_need_s
                     ORDER BY x.due_at LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING a.id, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text, a.valid_after::text,
              a.valid_before, a.signature, a.alone OR a.has_code;
END $$;
CREATE FUNCTION authorizations_unclaim(p_ids text) RETURNS void LANGUAGE sql AS $$
    UPDATE authorizations SET claimed_until = '-infinity'
     WHERE id IN (SELECT unnest(number_ids(p_ids))) AND state = 'due';
$$;

-- The transaction's bytes, hash and account nonce, and the authorizations in it, before the first byte is broadcast. Without any it
-- fills a gap. next_nonce: the one to use after it.
-- verdict: stored; fenced (another settler owns the wallet now); stale (nonce or an authorization moved on). All or nothing.
CREATE FUNCTION relay_store(p_network text, p_relayer bytea, p_owner bytea, p_epoch bigint, p_account_nonce bigint, p_hash bytea,
    p_raw bytea, p_gas bigint, p_max_fee numeric, p_max_tip numeric, p_call_to bytea, p_call_data bytea, p_authorizations text,
    p_by text DEFAULT NULL, OUT verdict text, OUT id bigint, OUT next_nonce bigint)
LANGUAGE plpgsql AS $$
DECLARE r relayers; ids bigint[]; n integer;
BEGIN
    SELECT * INTO r FROM relayers x WHERE x.network = p_network AND x.address = p_relayer FOR UPDATE;
    next_nonce := r.next_nonce;
    SELECT t.id INTO id FROM relay_transactions t WHERE t.network = p_network AND t.hash = p_hash;
    IF FOUND THEN
        verdict := 'stored';                 -- our own commit, whose reply was lost
        RETURN;
    END IF;
    IF r.owner IS DISTINCT FROM p_owner OR r.epoch <> p_epoch OR r.until < now() THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    SELECT coalesce(array_agg(v::bigint), '{}') INTO ids FROM jsonb_array_elements_text(p_authorizations::jsonb) v;
    SELECT count(*) FILTER (WHERE x.state = 'due') INTO n
      FROM (SELECT a.state FROM authorizations a WHERE a.id = ANY (ids) ORDER BY a.id FOR UPDATE) x;
    IF r.next_nonce <> p_account_nonce OR n <> cardinality(ids) THEN
        verdict := 'stale';
        RETURN;
    END IF;
    INSERT INTO relay_transactions (network, relayer, account_nonce, hash, raw, gas, max_fee, max_tip, call_to, call_data, state)
    VALUES (p_network, p_relayer, p_account_nonce, p_hash, p_raw, p_gas, p_max_fee, p_max_tip, p_call_to, p_call_data, 'signed')
    RETURNING relay_transactions.id INTO id;
    INSERT INTO relay_calls SELECT relay_store.id, v FROM unnest(ids) v;
    UPDATE authorizations a SET state = 'sent', sent_at = now(), looks = 0, next_look = now() + interval '2 s'
     WHERE a.id = ANY (ids);
    next_nonce := relay_free_nonce(p_network, p_relayer, p_account_nonce + 1);
    UPDATE relayers x SET next_nonce = relay_store.next_nonce WHERE x.network = p_network AND x.address = p_relayer;
    PERFORM pg_advisory_xact_lock(hashtextextended('events:' || encode(x.o, 'hex'), 0))
       FROM (SELECT DISTINCT a.order_id::bytea AS o FROM authorizations a WHERE a.id = ANY (ids) ORDER BY 1) x;
    PERFORM events_add(p_by::jsonb, 'sent', (SELECT jsonb_agg(jsonb_build_object('order', encode(a.order_id, 'hex'), 'before', 'money due',
                       'after', 'money sent', 'facts', jsonb_build_object('tx', encode(p_hash, 'hex'), 'account_nonce', p_account_nonce))
                       ORDER BY a.order_id) FROM authorizations a WHERE a.id = ANY (ids)));
    verdict := 'stored';
END $$;

CREATE FUNCTION relay_broadcast(p_ids text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE relay_transactions SET state = 'broadcast', broadcast_at = now()
     WHERE id = ANY (number_ids(p_ids)) AND state IN ('signed', 'broadcast');
END $$;

-- The same account nonce and call at a higher fee, committed before it is sent; the hash before it is kept, and may still be the
-- one that is mined. verdict: stored, fenced, stale (it was mined or replaced meanwhile).
CREATE FUNCTION relay_replace(p_id bigint, p_owner bytea, p_epoch bigint, p_hash bytea, p_raw bytea, p_max_fee numeric, p_max_tip numeric,
    p_by text, OUT verdict text, OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE t relay_transactions; r relayers;
BEGIN
    SELECT * INTO STRICT t FROM relay_transactions x WHERE x.id = p_id;
    SELECT * INTO r FROM relayers x WHERE x.network = t.network AND x.address = t.relayer FOR UPDATE;
    SELECT x.id INTO id FROM relay_transactions x WHERE x.network = t.network AND x.hash = p_hash;
    IF FOUND THEN
        verdict := 'stored';
        RETURN;
    END IF;
    SELECT * INTO STRICT t FROM relay_transactions x WHERE x.id = p_id FOR UPDATE;
    IF r.owner IS DISTINCT FROM p_owner OR r.epoch <> p_epoch OR r.until < now() THEN
        verdict := 'fenced';
        RETURN;
    ELSIF t.state NOT IN ('signed', 'broadcast') THEN
        verdict := 'stale';
        RETURN;
    END IF;
    INSERT INTO relay_transactions (network, relayer, account_nonce, hash, raw, gas, max_fee, max_tip, call_to, call_data, state)
    VALUES (t.network, t.relayer, t.account_nonce, p_hash, p_raw, t.gas, p_max_fee, p_max_tip, t.call_to, t.call_data, 'signed')
    RETURNING relay_transactions.id INTO id;
    INSERT INTO relay_calls SELECT relay_replace.id, c.authorization_id FROM relay_calls c WHERE c.transaction_id = p_id;
    INSERT INTO payout_calls SELECT relay_replace.id, c.debt_id FROM payout_calls c WHERE c.transaction_id = p_id;
    UPDATE relay_transactions x SET state = 'replaced' WHERE x.id = p_id;
    PERFORM event_add(a.order_id, p_by::jsonb, 'fee_raised', NULL, NULL, jsonb_build_object('tx', encode(p_hash, 'hex'),
                      'account_nonce', t.account_nonce, 'instead_of', encode(t.hash, 'hex')))
       FROM relay_calls c JOIN authorizations a ON a.id = c.authorization_id WHERE c.transaction_id = p_id ORDER BY a.order_id;
    verdict := 'stored';
END $$;

-- Its fee ought to be raised and cannot be. first: it was not said before.
CREATE FUNCTION relay_capped(p_id bigint, OUT first boolean) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE relay_transactions SET capped_at = now() WHERE id = p_id AND capped_at IS NULL;
    first := FOUND;
END $$;

-- Whatever transactions of this account nonce carry, ended or not: what the chain says of them tells whether one of ours was mined.
CREATE FUNCTION relay_carried(p_network text, p_relayer bytea, p_account_nonce bigint)
RETURNS TABLE (asset bytea, payer bytea, nonce bytea, from_block bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.from_block FROM authorizations a
      WHERE a.id IN (SELECT c.authorization_id FROM relay_transactions t JOIN relay_calls c ON c.transaction_id = t.id
                      WHERE t.network = p_network AND t.relayer = p_relayer AND t.account_nonce = p_account_nonce);
END $$;

-- The account nonce was used, in the final chain, by none of our hashes: they will never be mined. What they carried is due again.
CREATE FUNCTION relay_drop(p_network text, p_relayer bytea, p_account_nonce bigint, p_by text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE ids bigint[];
BEGIN
    UPDATE relay_transactions SET state = 'dropped'
     WHERE network = p_network AND relayer = p_relayer AND account_nonce = p_account_nonce AND state IN ('signed', 'broadcast', 'replaced');
    WITH again AS (
        UPDATE authorizations a SET state = still_wanted(a), due_at = now(), claimed_until = '-infinity', looks = 0, next_look = now()
          FROM relay_calls c JOIN relay_transactions t ON t.id = c.transaction_id
         WHERE a.id = c.authorization_id AND a.state = 'sent' AND t.network = p_network AND t.relayer = p_relayer
           AND t.account_nonce = p_account_nonce RETURNING a.id)
    SELECT array_agg(DISTINCT id) INTO ids FROM again;
    PERFORM event_add(a.order_id, p_by::jsonb, 'account_nonce_taken', 'money sent', 'money ' || a.state,
                      jsonb_build_object('account_nonce', p_account_nonce))
       FROM authorizations a WHERE a.id = ANY (ids) ORDER BY a.order_id;
END $$;

-- What is not mined yet, in the order of account nonces, every hash of each. age_s: since it was last broadcast (null: never);
-- stuck_s: since its nonce's newest hash was made.
CREATE FUNCTION relay_open(p_network text, p_relayer bytea)
RETURNS TABLE (id bigint, account_nonce bigint, hash bytea, raw bytea, age_s bigint, stuck_s bigint, newest boolean, gas bigint,
    max_fee text, max_tip text, call_to bytea, call_data bytea) LANGUAGE sql STABLE AS $$
    SELECT t.id, t.account_nonce, t.hash::bytea, t.raw, extract(epoch FROM now() - t.broadcast_at)::bigint,
           extract(epoch FROM now() - t.created_at)::bigint, t.state <> 'replaced', t.gas, t.max_fee::text, t.max_tip::text,
           t.call_to::bytea, t.call_data
      FROM relay_transactions t
     WHERE t.network = p_network AND t.relayer = p_relayer AND t.state IN ('signed', 'broadcast', 'replaced')
     ORDER BY t.account_nonce, t.id;
$$;

-- The authorizations that a transaction carries and that are not ended.
CREATE FUNCTION relay_authorizations(p_ids text)
RETURNS TABLE (transaction_id bigint, id bigint, asset bytea, payer bytea, nonce bytea, payee bytea, amount text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT c.transaction_id, a.id, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text
      FROM (SELECT x.* FROM relay_calls x WHERE x.transaction_id = ANY (number_ids(p_ids)) OFFSET 0) c
     CROSS JOIN LATERAL (SELECT x.* FROM authorizations x WHERE x.id = c.authorization_id OFFSET 0) a
     WHERE a.ended_at IS NULL;
END $$;

-- Due again only while it is the one that is to pay its order: another may have paid it meanwhile.
CREATE FUNCTION still_wanted(a authorizations) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.id = a.order_id AND o.authorization_id = a.id) THEN 'due' ELSE 'released' END;
END $$;

-- What a mined transaction proves, in one commit: its proofs, the authorizations it left unpaid (due again, alone), its own end.
-- p: {"network", "mined": [{"id", "block", "block_hash"}], "proofs": [{"id", "tx", "log_index", "block", "block_hash",
-- "block_time"}], "unpaid": [id], "by"}. Wakes the requests that wait for these orders. Returns how many proofs were new.
CREATE FUNCTION proofs_record(p_text text, OUT recorded integer) LANGUAGE plpgsql AS $$
DECLARE p jsonb := p_text::jsonb; mined jsonb; m relay_transactions; ids bigint[]; unpaid bigint[];
BEGIN
    PERFORM story_lock(ARRAY(SELECT (v->>'id')::bigint FROM jsonb_array_elements(p->'proofs') v
                             UNION SELECT v::bigint FROM jsonb_array_elements_text(p->'unpaid') v));
    ids := proofs_add(p->>'network', p->'proofs', p->'by');
    recorded := coalesce(cardinality(ids), 0);
    WITH again AS (
        UPDATE authorizations a SET state = still_wanted(a), alone = true, due_at = now(), fruitless = fruitless + 1, looks = 0,
               next_look = now(), claimed_until = now() + make_interval(secs => 3 * fruitless)
         WHERE id IN (SELECT v::bigint FROM jsonb_array_elements_text(p->'unpaid') v) AND state = 'sent' RETURNING id)
    SELECT array_agg(id) INTO unpaid FROM again;
    PERFORM event_add(a.order_id, p->'by', 'not_carried_out', 'money sent', 'money ' || a.state, jsonb_build_object('mined', true))
       FROM authorizations a WHERE a.id = ANY (unpaid) ORDER BY a.order_id;
    FOR mined IN SELECT * FROM jsonb_array_elements(p->'mined') LOOP
        UPDATE relay_transactions SET state = 'mined', mined_at = now(), block = (mined->>'block')::bigint,
               block_hash = decode(mined->>'block_hash', 'hex')
         WHERE id = (mined->>'id')::bigint AND state IN ('signed', 'broadcast', 'replaced');
        -- of the hashes of one account nonce one is mined, and the others never will be
        SELECT * INTO STRICT m FROM relay_transactions WHERE id = (mined->>'id')::bigint;
        UPDATE relay_transactions SET state = 'dropped'
         WHERE network = m.network AND relayer = m.relayer AND account_nonce = m.account_nonce AND id <> m.id
           AND state IN ('signed', 'broadcast', 'replaced');
    END LOOP;
    PERFORM authorizations_notify(ids);
END $$;

-- Wakes requests parked on the orders of these authorizations: payloads of at most 200 ids (8,000 bytes is the limit).
CREATE FUNCTION authorizations_notify(p_ids bigint[]) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('payonce_order', string_agg(hex, ',')) FROM (
        SELECT encode(order_id, 'hex') AS hex, (row_number() OVER () - 1) / 200 AS part
          FROM (SELECT DISTINCT order_id FROM authorizations WHERE id = ANY (p_ids)) o) x
     GROUP BY part;
$$;

-- When to look next: 2, 4, 8, 15, 30, 60 s after it was sent, then each minute; never past the last deadline without a look just
-- behind it, and then, until a final block has passed it, after a quarter of what has gone by since: a look that gets no answer must
-- not cost the time that was promised.
CREATE FUNCTION look_after(p_looks integer, p_dead_after bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT now() + make_interval(secs => CASE
        WHEN x.left_s > 0 THEN least(x.pace, x.left_s + 1)
        ELSE least(60, greatest(2, -x.left_s / 4)) END)
      FROM (SELECT p_dead_after - extract(epoch FROM now()) AS left_s,
                   coalesce((ARRAY[2, 2, 4, 7, 15, 30])[p_looks + 1], 60) AS pace) x;
$$;

-- Whose next look has come, locked: of each state at most so many, so that the crowd of the released keeps nothing waiting that can be on
-- its way.
CREATE FUNCTION looks_due(p_network text, p_limit integer) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE s text;
BEGIN
    FOREACH s IN ARRAY ARRAY['held', 'due', 'sent', 'released'] LOOP
        RETURN QUERY SELECT a.id FROM authorizations a
          WHERE a.network = p_network AND a.ended_at IS NULL AND a.state = s AND a.next_look <= now()
          ORDER BY a.next_look LIMIT p_limit FOR UPDATE SKIP LOCKED;
    END LOOP;
END $$;

-- Unknowns whose next look has come. The one after it is set here, so that a row never loses its visit to a crash.
CREATE FUNCTION authorizations_look(p_network text, p_limit integer)
RETURNS TABLE (id bigint, state text, asset bytea, payer bytea, nonce bytea, payee bytea, amount text, dead_after bigint,
    from_block bigint) LANGUAGE sql AS $$
    UPDATE authorizations a SET looks = a.looks + 1, next_look = look_after(a.looks + 1, a.dead_after)
     WHERE a.id = ANY (ARRAY(SELECT looks_due(p_network, p_limit)))
    RETURNING a.id, a.state, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text, a.dead_after,
              a.from_block;
$$;

-- These looks had no answer: soon again.
CREATE FUNCTION authorizations_look_again(p_ids text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE authorizations SET next_look = now() + interval '2 s'
     WHERE id IN (SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v) AND ended_at IS NULL AND next_look > now() + interval '2 s';
END $$;

-- The node says that it cannot be carried out now: perhaps its nonce is used. To be looked at at once.
CREATE FUNCTION authorization_doubted(p_id bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE authorizations SET next_look = now() WHERE id = p_id AND ended_at IS NULL AND next_look > now() + interval '1 s';
$$;

-- Used, but by no log that says how: neither paid nor void can be proven, so a person decides. It is looked at on.
CREATE FUNCTION authorization_puzzles(p_id bigint, p_fact text, p_by text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE a authorizations; opened boolean;
BEGIN
    SELECT * INTO STRICT a FROM authorizations WHERE id = p_id;
    INSERT INTO reviews AS r (order_id, fact, authorization_id) VALUES (a.order_id, p_fact, p_id)
    ON CONFLICT (order_id) DO UPDATE SET fact = excluded.fact, authorization_id = p_id, opened_at = now(), resolved_at = NULL,
        resolution = NULL, resolved_by = NULL, note = NULL, external_id = NULL
     WHERE r.resolved_at IS NOT NULL AND r.authorization_id IS NULL;
    IF FOUND THEN
        PERFORM event_add(a.order_id, p_by::jsonb, 'review_opened', NULL, 'in_review', jsonb_build_object('why', p_fact,
                          'nonce', encode(a.nonce, 'hex')));
        PERFORM pg_notify('payonce_order', encode(a.order_id, 'hex'));
    END IF;
END $$;

-- Proven dead: expired (unused at a final block past p_dead_after, which must still be its last deadline) or void (a final log says so).
CREATE FUNCTION authorization_end(p_id bigint, p_state text, p_note text, p_by text DEFAULT NULL, p_dead_after bigint DEFAULT NULL,
    OUT ended boolean) LANGUAGE plpgsql AS $$
DECLARE a authorizations;
BEGIN
    PERFORM 1 FROM orders o WHERE o.id = (SELECT x.order_id FROM authorizations x WHERE x.id = p_id) FOR NO KEY UPDATE;
    SELECT * INTO a FROM authorizations WHERE id = p_id FOR UPDATE;
    ended := FOUND AND a.ended_at IS NULL AND (p_state = 'void' OR (p_state = 'expired' AND a.dead_after <= coalesce(p_dead_after, a.dead_after)));
    IF ended THEN
        UPDATE authorizations SET state = p_state, ended_at = now(), end_note = p_note WHERE id = p_id;
        DELETE FROM reviews WHERE authorization_id = p_id;
        -- a free repeat's is no news of the order that it repeated, which may have thousands
        IF p_state = 'expired' AND a.state = 'released' AND EXISTS (SELECT 1 FROM repeats r WHERE r.authorization_id = p_id AND NOT r.pays) THEN
            RETURN;
        END IF;
        PERFORM event_add(a.order_id, p_by::jsonb, p_state, 'money ' || a.state, 'money ' || p_state,
                          jsonb_build_object('why', p_note, 'nonce', encode(a.nonce, 'hex')));
        PERFORM order_work_end(o.id, 'failed', 'its payment is proven dead', p_by::jsonb)
           FROM orders o WHERE o.id = a.order_id AND o.authorization_id = p_id AND o.work = 'waiting';
        PERFORM pg_notify('payonce_order', encode(a.order_id, 'hex'));
    END IF;
END $$;

-- Many at once: a list of { id, state, note, dead_after }. Orders are locked in their own order, as everywhere.
CREATE FUNCTION authorizations_end(p_ends text, p_by text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM authorization_end(e.id, e.state, e.note, p_by, e.dead_after)
       FROM (SELECT l.* FROM jsonb_to_recordset(p_ends::jsonb) AS l (id bigint, state text, note text, dead_after bigint)
               JOIN authorizations a ON a.id = l.id ORDER BY a.order_id, l.id) e;
END $$;

-- ---- reorganisations ----

-- The blocks above the final one that something of ours stands in.
CREATE FUNCTION blocks_to_check(p_network text) RETURNS TABLE (block bigint, block_hash bytea) LANGUAGE sql STABLE AS $$
    SELECT p.block, p.block_hash::bytea FROM proofs p JOIN networks n ON n.id = p.network WHERE p.network = p_network AND p.block > n.final
    UNION
    SELECT t.block, t.block_hash::bytea FROM relay_transactions t WHERE t.network = p_network AND t.state = 'mined';
$$;

-- This block left the chain: its proofs with it. Each authorization returns to what it was, so that what was released is never sent
-- by us; its transaction is open again; a debt of it is cancelled until the money is there again.
CREATE FUNCTION block_undone(p_network text, p_block bigint, p_block_hash bytea, p_by text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE ids bigint[];
BEGIN
    PERFORM 1 FROM orders o JOIN authorizations a ON a.order_id = o.id JOIN proofs p ON p.authorization_id = a.id
      WHERE p.network = p_network AND p.block = p_block AND p.block_hash = p_block_hash ORDER BY o.id FOR NO KEY UPDATE OF o;
    WITH gone AS (
        DELETE FROM proofs p WHERE p.network = p_network AND p.block = p_block AND p.block_hash = p_block_hash RETURNING p.*)
    , kept AS (
        INSERT INTO undone_proofs (authorization_id, network, tx, log_index, block, block_hash)
        SELECT authorization_id, network, tx, log_index, block, block_hash FROM gone)
    , back AS (
        UPDATE authorizations a SET ended_at = NULL, looks = 0, next_look = now(), claimed_until = '-infinity',
               state = CASE WHEN g.before = 'held' AND o.work = 'done' THEN 'due'
                            WHEN g.before = 'held' AND o.work <> 'running' THEN 'released' ELSE g.before END
          FROM gone g, orders o WHERE a.id = g.authorization_id AND o.id = a.order_id RETURNING a.id)
    SELECT array_agg(id) INTO ids FROM back;
    PERFORM notices_undone(ids);
    UPDATE debts SET state = 'cancelled', reason = NULL, changed_at = now()
     WHERE authorization_id = ANY (ids) AND state IN ('owed', 'approved', 'held');
    PERFORM order_paid_by(o.id, y.id) FROM orders o JOIN authorizations x ON x.id = o.authorization_id
       JOIN authorizations y ON y.order_id = o.id AND y.state IN ('sent', 'settled')
      WHERE x.id = ANY (ids) AND x.state = 'released';
    DELETE FROM transfers WHERE network = p_network AND block = p_block AND block_hash = p_block_hash;
    UPDATE relay_transactions SET state = 'broadcast', block = NULL, block_hash = NULL, mined_at = NULL
     WHERE network = p_network AND state = 'mined' AND block = p_block AND block_hash = p_block_hash;
    PERFORM event_add(a.order_id, p_by::jsonb, 'proof_undone', 'money settled', 'money ' || a.state,
                      jsonb_build_object('block', p_block, 'block_hash', encode(p_block_hash, 'hex')))
       FROM authorizations a WHERE a.id = ANY (ids) ORDER BY a.order_id;
    PERFORM authorizations_notify(ids);
END $$;

-- ---- the log scan ----

-- Where the scan of a wallet stands; a new one begins at p_start, or where what was accepted before can have landed first. (No block was
-- known of those that a gateway accepted before any settler had looked: ten blocks a second, then, is more than any network has.)
CREATE FUNCTION scan_cursor(p_network text, p_wallet bytea, p_start bigint, OUT block bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT s.block INTO block FROM scans s WHERE s.network = p_network AND s.wallet = p_wallet;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT greatest(0, least(p_start, min(CASE WHEN a.from_block > 0 THEN a.from_block
                ELSE p_start - 10 * (1 + ceil(extract(epoch FROM now() - a.created_at)))::bigint END))) INTO block
      FROM authorizations a WHERE a.network = p_network AND a.payee = p_wallet AND a.ended_at IS NULL;
    INSERT INTO scans (network, wallet, block, block_hash) VALUES (p_network, p_wallet, block, decode(repeat('00', 32), 'hex'))
    ON CONFLICT DO NOTHING;
    SELECT s.block INTO block FROM scans s WHERE s.network = p_network AND s.wallet = p_wallet;
END $$;

-- Of [{"tx", "log_index"}] those that are booked already. missing: how many that are proven, in the blocks after p_from up to p_to, are
-- not among them: then the list is not whole.
CREATE FUNCTION transfers_known(p_network text, p_wallet bytea, p_from bigint, p_to bigint, p_logs text)
RETURNS TABLE (tx bytea, log_index bigint, missing bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE lost bigint; l jsonb := p_logs::jsonb;
BEGIN
    SELECT count(*) INTO lost
      FROM (SELECT x.authorization_id AS id FROM proofs x WHERE x.network = p_network AND x.block > p_from AND x.block <= p_to OFFSET 0) p
     CROSS JOIN LATERAL (SELECT a.payee FROM authorizations a WHERE a.id = p.id OFFSET 0) a WHERE a.payee = p_wallet;
    SELECT lost - count(*) INTO lost
      FROM (SELECT DISTINCT decode(v->>'tx', 'hex') AS tx, (v->>'log_index')::bigint AS log_index FROM jsonb_array_elements(l) v) v
     CROSS JOIN LATERAL (SELECT x.block, a.payee FROM proofs x JOIN authorizations a ON a.id = x.authorization_id
                          WHERE x.network = p_network AND x.tx = v.tx AND x.log_index = v.log_index OFFSET 0) p
     WHERE p.block > p_from AND p.block <= p_to AND p.payee = p_wallet;
    RETURN QUERY SELECT t.tx::bytea, t.log_index, lost FROM jsonb_array_elements(l) v
     CROSS JOIN LATERAL (SELECT x.tx, x.log_index FROM transfers x WHERE x.network = p_network AND x.tx = decode(v->>'tx', 'hex')
                            AND x.log_index = (v->>'log_index')::bigint OFFSET 0) t
     UNION ALL SELECT NULL, NULL, lost WHERE lost > 0;
END $$;

-- The cursor and what was found, in one commit. Each finding is {"tx", "log_index", "block", "block_hash", "block_time", "asset",
-- "sender", "receiver", "amount", "nonce"?, "memo"?}. With the nonce of an authorization that we know, and its terms (or more money), it is that
-- one's proof, whoever submitted it; anything else is suspense: no order is known, and a person decides. A wallet that is a seller's own
-- (p_ours is false) has income that is none of our business: nothing else is booked there.
CREATE FUNCTION scan_record(p_network text, p_wallet bytea, p_from bigint, p_to bigint, p_to_hash bytea, p_findings text, p_by text,
    p_ours boolean DEFAULT true, OUT moved boolean) LANGUAGE plpgsql AS $$
DECLARE f jsonb := p_findings::jsonb; proofs jsonb; ids bigint[];
BEGIN
    UPDATE scans SET block = p_to, block_hash = p_to_hash WHERE network = p_network AND wallet = p_wallet AND block = p_from;
    moved := FOUND;
    IF NOT moved THEN
        RETURN;
    END IF;
    INSERT INTO transfers (network, tx, log_index, asset, sender, receiver, amount, block, block_hash, block_time, nonce, memo, class)
    SELECT p_network, decode(v->>'tx', 'hex'), (v->>'log_index')::bigint, decode(v->>'asset', 'hex'), decode(v->>'sender', 'hex'),
           decode(v->>'receiver', 'hex'), (v->>'amount')::numeric, (v->>'block')::bigint, decode(v->>'block_hash', 'hex'),
           (v->>'block_time')::bigint, decode(v->>'nonce', 'hex'), decode(v->>'memo', 'hex'), CASE WHEN w.address IS NULL THEN 'suspense' ELSE 'internal' END
      FROM jsonb_array_elements(f) v LEFT JOIN wallets w ON w.network = p_network AND w.address = decode(v->>'sender', 'hex')
     WHERE p_ours ON CONFLICT DO NOTHING;
    SELECT coalesce(jsonb_agg(v || jsonb_build_object('id', a.id)), '[]') INTO proofs
      FROM jsonb_array_elements(f) v CROSS JOIN LATERAL (SELECT x.* FROM authorizations x
     WHERE x.network = p_network AND x.asset = decode(v->>'asset', 'hex') AND x.payer = decode(v->>'sender', 'hex')
       AND x.nonce = decode(v->>'nonce', 'hex') OFFSET 0) a
     WHERE a.payee = decode(v->>'receiver', 'hex') AND a.amount <= (v->>'amount')::numeric AND a.ended_at IS NULL;
    PERFORM story_lock(ARRAY(SELECT (v->>'id')::bigint FROM jsonb_array_elements(proofs) v));
    ids := proofs_add(p_network, proofs, p_by::jsonb);
    PERFORM surplus_book(ids, p_by::jsonb);
    PERFORM journal_book(p_network, p_by::jsonb);
    PERFORM authorizations_notify(ids);
END $$;

-- Every five minutes: whatever is not ended and would not be looked at soon is looked at now. Returns how many.
CREATE FUNCTION reconcile(p_network text, OUT brought bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE authorizations SET next_look = now()
     WHERE network = p_network AND ended_at IS NULL AND state <> 'held' AND next_look > now()
       AND (state = 'sent' OR dead_after < extract(epoch FROM now()));
    GET DIAGNOSTICS brought = ROW_COUNT;
END $$;
