-- Free repeats: which question was asked before and paid for, and what is kept for how long.

-- ---- rings ----

CREATE FUNCTION ring_slot(p_name text) RETURNS smallint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT r.newest % 8 FROM rings r WHERE r.name = p_name), 0);
END $$;

-- Must what belongs to this order stay? Until it is decided, each of its authorizations is dead or settled, its debts are closed, and
-- p_keep has passed since.
CREATE FUNCTION order_open(p_order bytea, p_keep interval) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM orders o WHERE o.id = p_order AND (o.work IN ('waiting', 'running', 'lost')
                                                                    OR o.work_ended_at > now() - p_keep))
        OR EXISTS (SELECT 1 FROM authorizations a WHERE a.order_id = p_order AND (a.ended_at IS NULL OR a.ended_at > now() - p_keep))
        OR EXISTS (SELECT 1 FROM reviews r WHERE r.order_id = p_order AND r.resolved_at IS NULL)
        OR EXISTS (SELECT 1 FROM authorizations a JOIN debts d ON d.authorization_id = a.id
                    WHERE a.order_id = p_order AND d.state NOT IN ('earned', 'cancelled', 'refunded'));
END $$;

-- A repeat stays as long as its order is open or its own authorization is; an order's count as long as any of its repeats.
CREATE FUNCTION ring_carry(p_name text, p_from integer, p_to integer, p_keep interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_name = 'answers' THEN
        EXECUTE format('INSERT INTO answers (order_id, status, headers, body, digest, stored_at, slot)
                        SELECT order_id, status, headers, body, digest, stored_at, %s FROM answers_%s
                         WHERE payonce.order_open(order_id, $1)', p_to, p_from) USING p_keep;
    ELSIF p_name = 'repeats' THEN
        EXECUTE format('INSERT INTO repeats (authorization_id, order_id, request, payment_id, at, pays, refused, slot)
                        SELECT authorization_id, order_id, request, payment_id, at, pays, refused, %s FROM repeats_%s
                         WHERE payonce.order_open(order_id, $1)', p_to, p_from) USING p_keep;
        DELETE FROM repeat_counts c USING (SELECT DISTINCT x.order_id FROM repeats x WHERE x.slot = p_from) gone
         WHERE c.order_id = gone.order_id AND NOT EXISTS (SELECT 1 FROM repeats r WHERE r.order_id = gone.order_id AND r.slot <> p_from);
    ELSIF p_name = 'payment_ids' THEN
        EXECUTE format('INSERT INTO payment_ids (payment_id, order_id, payer, request, at, slot)
                        SELECT payment_id, order_id, payer, request, at, %s FROM payment_ids_%s
                         WHERE payonce.order_open(order_id, $1)', p_to, p_from) USING p_keep;
    END IF;
END $$;

-- A new part is begun each quarter of the retention; the oldest is emptied once the last that was written into it is older than the
-- retention. Called every now and then by whoever is there. Returns how many parts were emptied.
CREATE FUNCTION ring_turn(p_name text, p_keep_s integer, OUT emptied bigint) LANGUAGE plpgsql AS $$
DECLARE r rings; keep interval := make_interval(secs => p_keep_s);
BEGIN
    emptied := 0;
    INSERT INTO rings (name, began) VALUES (p_name, array_fill(now(), ARRAY[8])) ON CONFLICT DO NOTHING;
    SELECT * INTO r FROM rings x WHERE x.name = p_name FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;                              -- somebody else is at it
    END IF;
    IF r.began[r.newest % 8 + 1] <= now() - keep / 4 AND r.newest - r.oldest < 7 THEN
        r.newest := r.newest + 1;
        r.began[r.newest % 8 + 1] := now();
    END IF;
    PERFORM set_config('lock_timeout', '500', true);
    WHILE r.oldest < r.newest AND r.began[(r.oldest + 1) % 8 + 1] <= now() - keep LOOP
        PERFORM ring_carry(p_name, (r.oldest % 8)::integer, (r.newest % 8)::integer, keep);
        EXECUTE format('TRUNCATE %I', p_name || '_' || r.oldest % 8);
        r.oldest := r.oldest + 1;
        emptied := emptied + 1;
    END LOOP;
    UPDATE rings x SET oldest = r.oldest, newest = r.newest, began = r.began WHERE x.name = p_name;
END $$;

-- ---- ids ----

CREATE FUNCTION payment_id_keep(p_payment_id text, p_order bytea, p_payer bytea, p_request bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_payment_id IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO payment_ids (payment_id, order_id, payer, request, slot)
    SELECT p_payment_id, p_order, p_payer, p_request, ring_slot('payment_ids')
     WHERE NOT EXISTS (SELECT 1 FROM payment_ids i WHERE i.payment_id = p_payment_id);
END $$;

CREATE FUNCTION order_of_payment_id(p_payment_id text) RETURNS bytea LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    RETURN (SELECT i.order_id FROM payment_ids i WHERE i.payment_id = p_payment_id);
END $$;

-- ---- was it asked before? ----

-- verdict: repeat (paid, answered, within its window: left_ms of it remain), wait (at work or settling), or why neither: first,
-- window (past), answer (not to be given again, or no longer kept), failed. p_now_ms: now by the clock of the chain. Of repeat and wait
-- what is to be told: the original, and of repeat its payment and answer.
CREATE FUNCTION repeat_look(p_key bytea, p_except bytea, p_window_s integer, p_now_ms bigint, OUT verdict text, OUT order_id bytea,
    OUT left_ms bigint, OUT receipt bytea, OUT network text, OUT tx bytea, OUT block_time bigint, OUT status bigint, OUT headers text,
    OUT body bytea) LANGUAGE plpgsql STABLE AS $$
DECLARE o record; word text; part smallint;
BEGIN
    FOR o IN SELECT x.*, a.state AS money, p.tx, p.block_time
               FROM (SELECT y.id, y.receipt, y.network, y.work, y.repeatable, y.repeat_window_s, y.repeat_no, y.authorization_id
                       FROM orders y WHERE y.repeat_key = p_key AND y.id IS DISTINCT FROM p_except ORDER BY y.repeat_no DESC LIMIT 3) x
               LEFT JOIN authorizations a ON a.id = x.authorization_id
               LEFT JOIN proofs p ON p.authorization_id = x.authorization_id ORDER BY x.repeat_no DESC
    LOOP
        left_ms := (o.block_time + least(o.repeat_window_s, p_window_s)) * 1000 - p_now_ms;
        word := CASE WHEN o.work IN ('waiting', 'running') THEN 'wait'
                     WHEN o.work <> 'done' THEN 'failed'
                     WHEN NOT coalesce(o.repeatable, false) THEN 'answer'
                     WHEN o.money IN ('held', 'due', 'sent') THEN 'wait'
                     WHEN o.money <> 'settled' THEN 'failed'
                     WHEN left_ms <= 0 THEN 'window'
                     WHEN repeat_disputed(o.id, o.authorization_id) THEN 'answer'
                     ELSE 'repeat' END;
        IF word = 'repeat' THEN
            -- mostly it lies in the newest part, and one part is read for less than eight
            part := coalesce((SELECT x.newest % 8 FROM rings x WHERE x.name = 'answers'), 0); -- as ring_slot has it
            SELECT w.status, w.headers, w.body INTO status, headers, body FROM answers w WHERE w.order_id = o.id AND w.slot = part;
            IF NOT FOUND THEN
                SELECT w.status, w.headers, w.body INTO status, headers, body FROM answers w WHERE w.order_id = o.id;
            END IF;
            word := CASE WHEN FOUND THEN 'repeat' ELSE 'answer' END;
        END IF;
        verdict := coalesce(verdict, word);
        IF word IN ('repeat', 'wait') THEN
            verdict := word;
            order_id := o.id;
            receipt := o.receipt;
            network := o.network;
            tx := o.tx;
            block_time := o.block_time;
            RETURN;
        END IF;
    END LOOP;
    verdict := coalesce(verdict, 'first');
END $$;

-- Is it open whether this order stays sold?
CREATE FUNCTION repeat_disputed(p_order bytea, p_authorization bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM reviews r WHERE r.order_id = p_order AND r.resolved_at IS NULL)
        OR refund_claimed(p_authorization);
END $$;

-- One more within the cap? It is counted here, one after the other.
CREATE FUNCTION repeat_room(p_order bytea, p_max integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO repeat_counts AS c (order_id, n) SELECT p_order, 1 WHERE p_max > 0
    ON CONFLICT (order_id) DO UPDATE SET n = c.n + 1 WHERE c.n < p_max;
    RETURN FOUND;
END $$;

-- It pays after all: none of the free ones any more.
CREATE FUNCTION repeat_pays(p_authorization bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH paying AS (UPDATE repeats r SET pays = true WHERE r.authorization_id = p_authorization AND NOT r.pays RETURNING r.order_id)
    UPDATE repeat_counts c SET n = c.n - 1 FROM paying WHERE c.order_id = paying.order_id;
END $$;

-- Is this authorization set aside as a free repeat?
CREATE FUNCTION repeat_of_another(p_authorization bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM repeats r WHERE r.authorization_id = p_authorization AND NOT r.pays AND NOT r.refused);
END $$;

-- Was it over the cap, and has been given no answer since?
CREATE FUNCTION repeat_refused(p_authorization bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM repeats r WHERE r.authorization_id = p_authorization AND NOT r.pays AND r.refused);
END $$;

-- A waiter whose original's answer may not be given again, and one that was refused: it asks on its own behalf, as if it had come now.
CREATE FUNCTION repeat_left(o orders, a authorizations) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN a.state = 'released' AND o.repeat_key IS NOT NULL
       AND EXISTS (SELECT 1 FROM repeats r WHERE r.authorization_id = a.id AND r.order_id = o.id AND NOT r.pays
                      AND (r.refused OR (o.work = 'done' AND NOT coalesce(o.repeatable, false))));
END $$;

-- There is room by now: it is given the answer of this order, perhaps another than the one that it was refused for.
CREATE FUNCTION repeat_let_in(p_authorization bigint, p_order bytea, p_payer bytea, p_request bytea, p_payment_id text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE authorizations SET order_id = p_order WHERE id = p_authorization;
    UPDATE repeats SET order_id = p_order, payment_id = p_payment_id, at = now(), refused = false WHERE authorization_id = p_authorization;
    PERFORM payment_id_keep(p_payment_id, p_order, p_payer, p_request);
END $$;

CREATE FUNCTION repeat_keep(p_authorization bigint, p_order bytea, p_payer bytea, p_request bytea, p_payment_id text,
    p_refused boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO repeats (authorization_id, order_id, request, payment_id, refused, slot)
    VALUES (p_authorization, p_order, p_request, p_payment_id, p_refused,
            coalesce((SELECT r.newest % 8 FROM rings r WHERE r.name = 'repeats'), 0)); -- as ring_slot has it
    IF p_payment_id IS NOT NULL THEN
        PERFORM payment_id_keep(p_payment_id, p_order, p_payer, p_request);
    END IF;
END $$;

-- It leaves for an order of its own: its authorization, the id that came with it, and what else was signed over its nonce.
CREATE FUNCTION repeat_leave(p_authorization bigint, p_order bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE authorizations SET order_id = p_order WHERE id = p_authorization;
    UPDATE payment_ids i SET order_id = p_order FROM repeats r
     WHERE r.authorization_id = p_authorization AND i.payment_id = r.payment_id AND i.order_id = r.order_id;
    PERFORM repeat_pays(p_authorization);
END $$;

-- What a free repeat of this order is told: repeat, with the answer, or repeat_wait.
CREATE FUNCTION repeat_tell(o orders, OUT receipt bytea, OUT verdict text, OUT network text, OUT tx bytea, OUT block_time bigint,
    OUT status bigint, OUT headers text, OUT body bytea) LANGUAGE plpgsql STABLE AS $$
BEGIN
    receipt := o.receipt;
    network := o.network;
    verdict := 'repeat_wait';
    SELECT p.tx, p.block_time INTO tx, block_time FROM proofs p WHERE p.authorization_id = o.authorization_id;
    IF FOUND AND o.work = 'done' THEN
        SELECT w.status, w.headers, w.body INTO status, headers, body FROM answers w WHERE w.order_id = o.id;
        verdict := CASE WHEN FOUND THEN 'repeat' ELSE 'repeat_wait' END;
    END IF;
END $$;

-- ---- the buyer's own answer, by receipt ----

CREATE FUNCTION receipt_payer(p_receipt bytea, OUT payer bytea) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT o.payer INTO payer FROM orders o WHERE o.receipt = p_receipt;
END $$;

-- A sign-in that was checked, once. verdict: used (its nonce was), wallet (not the one that paid, or no such receipt), in_flight (not
-- paid yet), gone, or result. Behind the order's row lock, as every claim on the payment that bought the answer.
CREATE FUNCTION result_read(p_receipt bytea, p_wallet bytea, p_nonce bytea, p_attempt bytea, p_keep_s integer, p_by text,
    OUT verdict text, OUT order_id bytea,
    OUT network text, OUT answer_status bigint, OUT answer_headers text, OUT answer_body bytea, OUT answer_tx bytea) LANGUAGE plpgsql AS $$
DECLARE o orders; money text; proven timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('sign-in:' || encode(p_nonce, 'hex'), 0));
    IF EXISTS (SELECT 1 FROM sign_ins s WHERE s.nonce = p_nonce AND s.attempt <> p_attempt) THEN
        verdict := 'used';
        RETURN;
    END IF;
    INSERT INTO sign_ins (nonce, attempt, slot) VALUES (p_nonce, p_attempt, ring_slot('sign_ins')) ON CONFLICT DO NOTHING;
    SELECT * INTO o FROM orders x WHERE x.receipt = p_receipt AND x.payer = p_wallet FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        verdict := 'wallet';
        RETURN;
    END IF;
    order_id := o.id;
    network := o.network;
    SELECT a.state, p.tx, p.recorded_at INTO money, answer_tx, proven
      FROM authorizations a LEFT JOIN proofs p ON p.authorization_id = a.id WHERE a.id = o.authorization_id;
    IF o.work = 'done' AND money = 'settled' AND proven > now() - make_interval(secs => p_keep_s) AND NOT refund_claimed(o.authorization_id) THEN
        SELECT w.status, w.headers, w.body INTO answer_status, answer_headers, answer_body FROM answers w WHERE w.order_id = o.id;
    END IF;
    verdict := CASE WHEN answer_body IS NOT NULL THEN 'result'
                    WHEN o.work IN ('waiting', 'running') OR (o.work = 'done' AND money IN ('held', 'due', 'sent')) THEN 'in_flight'
                    ELSE 'gone' END;
    IF verdict = 'result' THEN
        PERFORM event_add(o.id, p_by::jsonb, 'fetched', NULL, NULL);
    END IF;
END $$;

-- ---- what is seen of it ----

-- The free repeats of an order, and the first hundred's times.
CREATE FUNCTION repeats_of(p_order bytea) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT json_build_object('count', (SELECT count(*) FROM repeats r WHERE r.order_id = p_order AND NOT r.pays AND NOT r.refused),
                                     'times', coalesce(json_agg(time_text(x.at) ORDER BY x.at), '[]'))
              FROM (SELECT r.at FROM repeats r WHERE r.order_id = p_order AND NOT r.pays AND NOT r.refused ORDER BY r.at LIMIT 100) x)::text;
END $$;

-- The head of each network: what the gateways set their chain clock by.
CREATE FUNCTION network_heads() RETURNS TABLE (network text, head bigint, head_time bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT n.id, n.head, n.head_time FROM networks n WHERE n.head > 0;
END $$;
