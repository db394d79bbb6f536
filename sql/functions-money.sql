-- What follows from money that arrived: which order it pays, or to whom it is owed back.

-- Whichever authorization lands first pays its order, also one that was released. A second one, and one for work that failed or was
-- decided otherwise, is owed back: one debt a source, under an id that is a hash of the source.
CREATE FUNCTION debt_id(a authorizations) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN sha256(convert_to('payonce debt' || a.network, 'UTF8') || a.asset || a.payer || a.nonce);
END $$;

-- Locks, in the one order, whatever an order's story may need: orders, all their authorizations, their chains.
CREATE FUNCTION story_lock(p_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE o bytea[] := ARRAY(SELECT DISTINCT order_id::bytea FROM authorizations WHERE id = ANY (p_ids) ORDER BY 1);
BEGIN
    PERFORM 1 FROM orders WHERE id = ANY (o) ORDER BY id FOR NO KEY UPDATE;
    PERFORM 1 FROM authorizations WHERE order_id = ANY (o) ORDER BY id FOR NO KEY UPDATE;
    PERFORM pg_advisory_xact_lock(hashtextextended('events:' || encode(x, 'hex'), 0)) FROM unnest(o) x;
END $$;

-- Once a part: the token lets this nonce of the refund wallet move money one time.
CREATE FUNCTION refund_nonce(p_debt bytea, p_part integer) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(convert_to('payonce refund', 'UTF8') || int2send(p_part::smallint) || p_debt);
$$;

-- All of what came in is owed back. Once its refund is signed nothing here changes it any more.
CREATE FUNCTION debt_book(a authorizations, p_cause text, p_by jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE p proofs; came_in numeric;
BEGIN
    SELECT * INTO STRICT p FROM proofs WHERE authorization_id = a.id;
    UPDATE transfers SET class = 'debt' WHERE network = a.network AND tx = p.tx AND log_index = p.log_index RETURNING amount INTO came_in;
    INSERT INTO debts AS d (id, order_id, authorization_id, cause, network, asset, payer, amount, tx, log_index, refund_nonce)
    VALUES (debt_id(a), a.order_id, a.id, p_cause, a.network, a.asset, a.payer, came_in, p.tx, p.log_index, refund_nonce(debt_id(a), 0))
    ON CONFLICT (id) DO UPDATE SET state = 'owed', cause = p_cause, amount = came_in, tx = excluded.tx, log_index = excluded.log_index,
        reason = NULL, changed_at = now() WHERE d.state IN ('owed', 'approved', 'held', 'cancelled', 'earned');
    PERFORM event_add(a.order_id, p_by, 'debt_owed', NULL, 'owed', jsonb_build_object('debt', encode(debt_id(a), 'hex'),
                      'cause', p_cause, 'amount', came_in::text));
END $$;

-- More came in than was asked for: the surplus is owed back, and the price is the sale.
CREATE FUNCTION surplus_book(p_ids bigint[], p_by jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE x record;
BEGIN
    FOR x IN SELECT y.* FROM unnest(p_ids) i CROSS JOIN LATERAL (
                 SELECT a.*, t.amount - a.amount AS surplus, p.tx, p.log_index, debt_id(a) AS debt
                   FROM authorizations a JOIN proofs p ON p.authorization_id = a.id
                   JOIN transfers t ON t.network = p.network AND t.tx = p.tx AND t.log_index = p.log_index
                  WHERE a.id = i AND t.amount > a.amount AND t.class = 'sale' OFFSET 0) y ORDER BY y.order_id, y.id
    LOOP
        UPDATE transfers SET class = 'overpaid' WHERE network = x.network AND tx = x.tx AND log_index = x.log_index;
        INSERT INTO debts AS d (id, order_id, authorization_id, cause, network, asset, payer, amount, tx, log_index, refund_nonce)
        VALUES (x.debt, x.order_id, x.id, 'overpaid', x.network, x.asset, x.payer, x.surplus, x.tx, x.log_index, refund_nonce(x.debt, 0))
        ON CONFLICT (id) DO UPDATE SET state = 'owed', cause = 'overpaid', amount = x.surplus, tx = x.tx, log_index = x.log_index,
            changed_at = now() WHERE d.state IN ('owed', 'approved', 'held', 'cancelled', 'earned');
        PERFORM event_add(x.order_id, p_by, 'debt_owed', NULL, 'owed', jsonb_build_object('debt', encode(x.debt, 'hex'),
                          'cause', 'overpaid', 'amount', x.surplus::text));
    END LOOP;
END $$;

CREATE FUNCTION authorization_landed(p_id bigint, p_by jsonb, p_before text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE a authorizations; o orders; p proofs; paying text; cause text; freed bytea;
BEGIN
    SELECT * INTO STRICT a FROM authorizations WHERE id = p_id;
    SELECT * INTO STRICT o FROM orders WHERE id = a.order_id;
    SELECT * INTO STRICT p FROM proofs WHERE authorization_id = p_id;
    SELECT state INTO paying FROM authorizations WHERE id = o.authorization_id;
    INSERT INTO transfers (network, tx, log_index, asset, sender, receiver, amount, block, block_hash, block_time, nonce, class,
                           authorization_id)
    VALUES (a.network, p.tx, p.log_index, a.asset, a.payer, a.payee, a.amount, p.block, p.block_hash, p.block_time, a.nonce, 'sale', a.id)
    ON CONFLICT (network, tx, log_index) DO UPDATE SET class = 'sale', authorization_id = a.id;
    DELETE FROM reviews WHERE authorization_id = p_id;
    SELECT x.nonce INTO freed FROM authorizations x WHERE x.id = o.authorization_id AND x.id <> p_id AND x.state IN ('held', 'due') AND paying <> 'settled';
    PERFORM event_add(o.id, p_by, 'settled', 'money ' || p_before, 'money settled', jsonb_build_object('tx', encode(p.tx, 'hex'),
                      'block', p.block, 'log_index', p.log_index, 'nonce', encode(a.nonce, 'hex'), 'released', encode(freed, 'hex')));
    IF a.id <> o.authorization_id AND paying <> 'settled' THEN
        PERFORM order_paid_by(o.id, a.id);
    ELSIF a.id <> o.authorization_id THEN
        cause := 'duplicate';
    END IF;
    IF cause IS NULL AND (o.work = 'failed' OR (o.work = 'lost' AND p_before = 'released')) THEN
        cause := CASE WHEN p_before = 'released' THEN 'late' ELSE 'work_failed' END;
    END IF;
    IF cause IS NOT NULL THEN
        PERFORM debt_book(a, cause, p_by);
    END IF;
END $$;

-- Lists are looked up row by row (LATERAL, kept apart by OFFSET 0): plans are made while tables are empty, and a join that begins at
-- the table would go on reading all of it.

-- The ordinary case, for all of a batch at once: what we sent pays its own order, whose work is done. Returns which.
CREATE FUNCTION sales_book(p_ids bigint[], p_by jsonb) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE ids bigint[]; stories jsonb;
BEGIN
    SELECT coalesce(array_agg(x.id), '{}'),
           jsonb_agg(jsonb_build_object('order', encode(x.order_id, 'hex'), 'before', 'money sent', 'after', 'money settled', 'facts',
               jsonb_build_object('tx', encode(x.tx, 'hex'), 'block', x.block, 'log_index', x.log_index, 'nonce', encode(x.nonce, 'hex')))
               ORDER BY x.order_id)
      INTO ids, stories
      FROM unnest(p_ids) i CROSS JOIN LATERAL (
            SELECT a.id, a.order_id, a.nonce, p.tx, p.block, p.log_index
              FROM authorizations a JOIN proofs p ON p.authorization_id = a.id JOIN orders o ON o.id = a.order_id
             WHERE a.id = i AND p.before = 'sent' AND o.authorization_id = a.id AND o.work IN ('done', 'none', 'waiting')
               AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.authorization_id = a.id) OFFSET 0) x;
    INSERT INTO transfers (network, tx, log_index, asset, sender, receiver, amount, block, block_hash, block_time, nonce, class,
                           authorization_id)
    SELECT x.*
      FROM unnest(ids) i CROSS JOIN LATERAL (
            SELECT a.network, p.tx, p.log_index, a.asset, a.payer, a.payee, a.amount, p.block, p.block_hash, p.block_time, a.nonce, 'sale', a.id
              FROM authorizations a JOIN proofs p ON p.authorization_id = a.id WHERE a.id = i OFFSET 0) x
    ON CONFLICT (network, tx, log_index) DO UPDATE SET class = 'sale', authorization_id = excluded.authorization_id;
    PERFORM events_add(p_by, 'settled', stories) WHERE cardinality(ids) > 0;
    RETURN ids;
END $$;

-- Proofs in, one commit, behind story_lock: [{"id", "tx", "log_index", "block", "block_hash", "block_time"}]. Returns the ids that are new.
CREATE FUNCTION proofs_add(p_network text, p_proofs jsonb, p_by jsonb) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE ids bigint[]; befores text[]; sales bigint[];
BEGIN
    WITH made AS (
        INSERT INTO proofs (authorization_id, network, tx, log_index, block, block_hash, block_time, before)
        SELECT a.id, p_network, decode(v->>'tx', 'hex'), (v->>'log_index')::bigint, (v->>'block')::bigint,
               decode(v->>'block_hash', 'hex'), (v->>'block_time')::bigint, a.state
          FROM jsonb_array_elements(p_proofs) v
         CROSS JOIN LATERAL (SELECT x.* FROM authorizations x WHERE x.id = (v->>'id')::bigint OFFSET 0) a WHERE a.ended_at IS NULL
        ON CONFLICT DO NOTHING RETURNING authorization_id, before)
    SELECT array_agg(authorization_id ORDER BY authorization_id), array_agg(before ORDER BY authorization_id)
      INTO ids, befores FROM made;
    UPDATE authorizations SET state = 'settled', ended_at = now() WHERE id = ANY (ids);
    sales := sales_book(ids, p_by);
    PERFORM authorization_landed(x.id, p_by, x.before) FROM unnest(ids, befores) AS x(id, before)
       JOIN authorizations a ON a.id = x.id WHERE x.id <> ALL (sales) ORDER BY a.order_id, x.id;
    RETURN ids;
END $$;
