-- The settler's functions. Only the owner of a relayer's lease, with its current epoch, stores transactions.

-- Which chain is this? The first caller pins the genesis; everybody else is told whether it is the same.
CREATE FUNCTION network_pin(p_id text, p_genesis bytea, OUT replaced boolean, OUT final bigint, OUT final_hash bytea)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO networks (id, genesis) VALUES (p_id, p_genesis) ON CONFLICT (id) DO NOTHING;
    SELECT n.genesis <> p_genesis, n.final, n.final_hash INTO replaced, final, final_hash FROM networks n WHERE n.id = p_id;
END $$;

CREATE FUNCTION network_seen(p_id text, p_head bigint, p_hash bytea, p_time bigint, p_final bigint, p_final_hash bytea,
    p_final_time bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE networks SET head = p_head, head_hash = p_hash, head_time = p_time, seen_at = now(),
           final = greatest(final, p_final),
           final_hash = CASE WHEN p_final > final THEN p_final_hash ELSE final_hash END,
           final_time = greatest(final_time, p_final_time)
     WHERE id = p_id;
$$;

-- Takes or renews the wallet's lease. chain_nonce: the account's next nonce as the chain has it, counted when taken.
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
    next_nonce := greatest(r.next_nonce, p_chain_nonce);
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
    signature bytea, alone boolean) LANGUAGE sql AS $$
    UPDATE authorizations a SET claimed_until = now() + make_interval(secs => p_claim_s)
     WHERE a.id IN (SELECT x.id FROM authorizations x
                     WHERE x.network = p_network AND x.state = 'due' AND x.claimed_until < now() AND x.fruitless < 3
                       AND x.valid_before >= extract(epoch FROM now()) + p_need_s
                     ORDER BY x.due_at LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING a.id, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text, a.valid_after::text,
              a.valid_before, a.signature, a.alone OR a.has_code;
$$;
CREATE FUNCTION authorizations_unclaim(p_ids text) RETURNS void LANGUAGE sql AS $$
    UPDATE authorizations SET claimed_until = '-infinity'
     WHERE id IN (SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v) AND state = 'due';
$$;

-- The transaction's bytes, hash and account nonce, and the authorizations in it, before the first byte is broadcast.
-- verdict: stored; fenced (another settler owns the wallet now); stale (nonce or an authorization moved on). All or nothing.
CREATE FUNCTION relay_store(p_network text, p_relayer bytea, p_owner bytea, p_epoch bigint, p_account_nonce bigint, p_hash bytea,
    p_raw bytea, p_gas bigint, p_max_fee numeric, p_max_tip numeric, p_authorizations text, p_by text DEFAULT NULL, OUT verdict text,
    OUT id bigint)
LANGUAGE plpgsql AS $$
DECLARE r relayers; ids bigint[]; n integer;
BEGIN
    SELECT * INTO r FROM relayers x WHERE x.network = p_network AND x.address = p_relayer FOR UPDATE;
    SELECT t.id INTO id FROM relay_transactions t WHERE t.network = p_network AND t.hash = p_hash;
    IF FOUND THEN
        verdict := 'stored';                 -- our own commit, whose reply was lost
        RETURN;
    END IF;
    IF r.owner IS DISTINCT FROM p_owner OR r.epoch <> p_epoch OR r.until < now() THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    SELECT array_agg(v::bigint) INTO ids FROM jsonb_array_elements_text(p_authorizations::jsonb) v;
    PERFORM 1 FROM authorizations a WHERE a.id = ANY (ids) AND a.state = 'due' ORDER BY a.id FOR UPDATE;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF r.next_nonce <> p_account_nonce OR n <> cardinality(ids) THEN
        verdict := 'stale';
        RETURN;
    END IF;
    INSERT INTO relay_transactions (network, relayer, account_nonce, hash, raw, gas, max_fee, max_tip, state)
    VALUES (p_network, p_relayer, p_account_nonce, p_hash, p_raw, p_gas, p_max_fee, p_max_tip, 'signed')
    RETURNING relay_transactions.id INTO id;
    INSERT INTO relay_calls SELECT relay_store.id, v FROM unnest(ids) v;
    UPDATE authorizations a SET state = 'sent', sent_at = now(), looks = 0, next_look = now() + interval '2 s'
     WHERE a.id = ANY (ids);
    UPDATE relayers x SET next_nonce = p_account_nonce + 1 WHERE x.network = p_network AND x.address = p_relayer;
    PERFORM event_add(a.order_id, p_by::jsonb, 'sent', 'money due', 'money sent',
                      jsonb_build_object('tx', encode(p_hash, 'hex'), 'account_nonce', p_account_nonce))
       FROM authorizations a WHERE a.id = ANY (ids) ORDER BY a.order_id;
    verdict := 'stored';
END $$;

CREATE FUNCTION relay_broadcast(p_ids text) RETURNS void LANGUAGE sql AS $$
    UPDATE relay_transactions SET state = 'broadcast', broadcast_at = now()
     WHERE id IN (SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v) AND state IN ('signed', 'broadcast');
$$;

-- What is not mined yet, in the order of account nonces. age_s: since it was last broadcast (null: never).
CREATE FUNCTION relay_open(p_network text, p_relayer bytea)
RETURNS TABLE (id bigint, account_nonce bigint, hash bytea, raw bytea, age_s bigint) LANGUAGE sql STABLE AS $$
    SELECT t.id, t.account_nonce, t.hash::bytea, t.raw, extract(epoch FROM now() - t.broadcast_at)::bigint
      FROM relay_transactions t
     WHERE t.network = p_network AND t.relayer = p_relayer AND t.state IN ('signed', 'broadcast')
     ORDER BY t.account_nonce, t.id;
$$;

-- The authorizations that a transaction carries and that are not ended.
CREATE FUNCTION relay_authorizations(p_ids text)
RETURNS TABLE (transaction_id bigint, id bigint, asset bytea, payer bytea, nonce bytea, payee bytea, amount text)
LANGUAGE sql STABLE AS $$
    SELECT c.transaction_id, a.id, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text
      FROM relay_calls c JOIN authorizations a ON a.id = c.authorization_id
     WHERE c.transaction_id = ANY (ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v)) AND a.ended_at IS NULL;
$$;

-- What a mined transaction proves, in one commit: its proofs, the authorizations it left unpaid (due again, alone), its own end.
-- p: {"network", "mined": [{"id", "block", "block_hash"}], "proofs": [{"id", "tx", "log_index", "block", "block_hash",
-- "block_time"}], "unpaid": [id], "by"}. Wakes the requests that wait for these orders. Returns how many proofs were new.
CREATE FUNCTION proofs_record(p_text text, OUT recorded integer) LANGUAGE plpgsql AS $$
DECLARE p jsonb := p_text::jsonb; ids bigint[]; unpaid bigint[];
BEGIN
    ids := proofs_add(p->>'network', p->'proofs', p->'by');
    recorded := coalesce(cardinality(ids), 0);
    WITH again AS (
        UPDATE authorizations SET state = 'due', alone = true, due_at = now(), fruitless = fruitless + 1, looks = 0, next_look = now(),
               claimed_until = now() + make_interval(secs => 3 * fruitless)
         WHERE id IN (SELECT v::bigint FROM jsonb_array_elements_text(p->'unpaid') v) AND state = 'sent' RETURNING id)
    SELECT array_agg(id) INTO unpaid FROM again;
    PERFORM event_add(a.order_id, p->'by', 'not_carried_out', 'money sent', 'money due', jsonb_build_object('mined', true))
       FROM authorizations a WHERE a.id = ANY (unpaid) ORDER BY a.order_id;
    UPDATE relay_transactions t SET state = 'mined', mined_at = now(), block = (v->>'block')::bigint,
           block_hash = decode(v->>'block_hash', 'hex')
      FROM jsonb_array_elements(p->'mined') v WHERE t.id = (v->>'id')::bigint AND t.state IN ('signed', 'broadcast', 'replaced');
    -- of the hashes of one account nonce one is mined, and the others never will be
    UPDATE relay_transactions t SET state = 'dropped'
      FROM relay_transactions m, jsonb_array_elements(p->'mined') v
     WHERE m.id = (v->>'id')::bigint AND t.network = m.network AND t.relayer = m.relayer AND t.account_nonce = m.account_nonce
       AND t.id <> m.id AND t.state IN ('signed', 'broadcast', 'replaced');
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
-- behind it, and then, until a final block has passed it, after half of what has gone by since.
CREATE FUNCTION look_after(p_looks integer, p_dead_after bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT now() + make_interval(secs => CASE
        WHEN x.left_s > 0 THEN least(x.pace, x.left_s + 1)
        ELSE least(60, greatest(2, -x.left_s / 2)) END)
      FROM (SELECT p_dead_after - extract(epoch FROM now()) AS left_s,
                   coalesce((ARRAY[2, 2, 4, 7, 15, 30])[p_looks + 1], 60) AS pace) x;
$$;

-- Unknowns whose next look has come. The one after it is set here, so that a row never loses its visit to a crash.
CREATE FUNCTION authorizations_look(p_network text, p_limit integer)
RETURNS TABLE (id bigint, state text, asset bytea, payer bytea, nonce bytea, payee bytea, amount text, dead_after bigint,
    from_block bigint) LANGUAGE sql AS $$
    UPDATE authorizations a SET looks = a.looks + 1, next_look = look_after(a.looks + 1, a.dead_after)
     WHERE a.id IN (SELECT x.id FROM authorizations x
                     WHERE x.network = p_network AND x.ended_at IS NULL AND x.next_look <= now()
                     ORDER BY x.next_look LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING a.id, a.state, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text, a.dead_after,
              a.from_block;
$$;

-- The node says that it cannot be carried out now: perhaps its nonce is used. To be looked at at once.
CREATE FUNCTION authorization_doubted(p_id bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE authorizations SET next_look = now() WHERE id = p_id AND ended_at IS NULL AND next_look > now() + interval '1 s';
$$;

-- Used, but by no log that says how: neither paid nor void can be proven, so a person decides. It is looked at on.
CREATE FUNCTION authorization_puzzles(p_id bigint, p_fact text, p_by text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE a authorizations; opened boolean;
BEGIN
    SELECT * INTO STRICT a FROM authorizations WHERE id = p_id;
    INSERT INTO reviews (order_id, fact) VALUES (a.order_id, p_fact) ON CONFLICT (order_id) DO NOTHING;
    IF FOUND THEN
        PERFORM event_add(a.order_id, p_by::jsonb, 'review_opened', NULL, 'in_review', jsonb_build_object('why', p_fact,
                          'nonce', encode(a.nonce, 'hex')));
        PERFORM pg_notify('payonce_order', encode(a.order_id, 'hex'));
    END IF;
END $$;

-- Proven dead: expired (unused at a final block past its deadline) or void (a final log says so).
CREATE FUNCTION authorization_end(p_id bigint, p_state text, p_note text, p_by text DEFAULT NULL, OUT ended boolean) LANGUAGE plpgsql AS $$
DECLARE a authorizations;
BEGIN
    SELECT * INTO a FROM authorizations WHERE id = p_id FOR UPDATE;
    ended := a.ended_at IS NULL AND p_state IN ('expired', 'void');
    IF ended THEN
        UPDATE authorizations SET state = p_state, ended_at = now(), end_note = p_note WHERE id = p_id;
        PERFORM event_add(a.order_id, p_by::jsonb, p_state, 'money ' || a.state, 'money ' || p_state,
                          jsonb_build_object('why', p_note, 'nonce', encode(a.nonce, 'hex')));
        PERFORM pg_notify('payonce_order', encode(a.order_id, 'hex'));
    END IF;
END $$;
