-- The work of an order: whose it is, how it ends, and what becomes of it when its instance dies. Work and money never share a state.

-- Who is alive. A work lease is alive while its instance is.
CREATE FUNCTION instance_beat(p_id bytea, p_role text, p_ttl_s integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO instances (id, role, until) VALUES (p_id, p_role, now() + make_interval(secs => p_ttl_s))
    ON CONFLICT (id) DO UPDATE SET until = excluded.until;
$$;
CREATE FUNCTION instance_end(p_id bytea) RETURNS void LANGUAGE sql AS $$
    UPDATE instances SET until = now() WHERE id = p_id;
$$;

-- After a restart of the server nobody could have shown signs of life, so nobody is dead yet.
CREATE FUNCTION lease_alive(o orders) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN o.work_until > now() AND (pg_postmaster_start_time() > now() - interval '20 s' OR
                                     EXISTS (SELECT 1 FROM instances i WHERE i.id = o.work_by AND i.until > now()));
END $$;

-- The work's end when there is no answer to keep: its authorization is not sent. A lost write is a person's to decide.
CREATE FUNCTION order_work_end(p_order bytea, p_work text, p_note text, p_by jsonb, p_theirs text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE was text := (SELECT work FROM orders WHERE id = p_order); paying authorizations;
BEGIN
    UPDATE orders SET work = p_work, work_ended_at = now(), work_note = p_note WHERE id = p_order;
    UPDATE authorizations a SET state = 'released' FROM orders o
     WHERE o.id = p_order AND a.id = o.authorization_id AND a.state = 'held';
    SELECT x.* INTO paying FROM orders o JOIN authorizations x ON x.id = o.authorization_id WHERE o.id = p_order;
    IF p_work = 'lost' THEN
        INSERT INTO reviews (order_id, fact, theirs) VALUES (p_order, coalesce(p_note, 'its outcome is unknown'), p_theirs)
        ON CONFLICT (order_id) DO UPDATE SET fact = excluded.fact, opened_at = now(), resolved_at = NULL, resolution = NULL,
            authorization_id = NULL, resolved_by = NULL, note = NULL, external_id = NULL,
            theirs = coalesce(excluded.theirs, reviews.theirs);
    END IF;
    PERFORM event_add(p_order, p_by, 'work_' || p_work, 'work ' || was, 'work ' || p_work || ', money ' || paying.state,
                      jsonb_build_object('why', p_note, 'theirs', p_theirs));
    IF p_work = 'failed' AND paying.state = 'settled' THEN
        PERFORM debt_book(paying, 'work_failed', p_by);
    END IF;
    PERFORM pg_notify('payonce_order', encode(p_order, 'hex'));
END $$;

CREATE FUNCTION review_close(p_order bytea, p_resolution text, p_who text, p_note text, p_external_id text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE reviews SET resolved_at = now(), resolution = p_resolution, resolved_by = p_who, note = p_note, external_id = p_external_id
     WHERE order_id = p_order AND resolved_at IS NULL;
END $$;

-- The work's end. done: the answer is kept and the authorization is due, in one commit. failed, lost: it is released.
-- landed: its money came in all the same (somebody else submitted it), so it is owed back.
-- verdict: ok, or late (another epoch has the lease, or the work ended otherwise; nothing changed). An answer that comes after the
-- lease was taken for dead, but before anybody ran the work again, is the work's outcome after all.
CREATE FUNCTION order_finish(p_order bytea, p_epoch integer, p_work text, p_note text, p_status integer, p_headers text,
    p_body bytea, p_digest bytea, p_by text DEFAULT NULL, p_repeatable boolean DEFAULT false, p_size bigint DEFAULT NULL,
    p_theirs text DEFAULT NULL, OUT verdict text, OUT landed boolean) LANGUAGE plpgsql AS $$
DECLARE o record; money text; told boolean;
BEGIN
    SELECT x.work, x.work_epoch, x.authorization_id INTO STRICT o FROM orders x WHERE x.id = p_order FOR NO KEY UPDATE;
    IF o.work_epoch <> p_epoch OR NOT (o.work = 'running' OR (p_work = 'done' AND o.work = 'lost')) THEN
        verdict := CASE WHEN o.work_epoch = p_epoch AND o.work = p_work THEN 'ok' ELSE 'late' END;
        RETURN;
    END IF;
    verdict := 'ok';
    IF p_work <> 'done' THEN
        PERFORM order_work_end(p_order, p_work, p_note, p_by::jsonb, p_theirs);
        landed := (SELECT state = 'settled' FROM authorizations WHERE id = o.authorization_id);
        RETURN;
    END IF;
    UPDATE authorizations SET state = 'due', due_at = now() WHERE id = o.authorization_id AND state IN ('held', 'released')
    RETURNING state INTO money;
    IF money IS NULL AND refund_claimed(o.authorization_id) THEN
        verdict := 'late';                       -- kept or refunded, never both: the refund was signed first
        RETURN;
    END IF;
    INSERT INTO answers (order_id, status, headers, body, digest, slot)
    VALUES (p_order, p_status, p_headers, p_body, p_digest, coalesce((SELECT r.newest % 8 FROM rings r WHERE r.name = 'answers'), 0));
    UPDATE orders SET work = 'done', work_ended_at = now(), work_note = NULL, repeatable = p_repeatable, answer_status = p_status,
           answer_size = coalesce(p_size, octet_length(p_body)), answer_digest = p_digest WHERE id = p_order;
    IF o.work = 'lost' THEN
        PERFORM review_close(p_order, 'done', p_by::jsonb->>'actor', 'its answer came late', NULL);
        PERFORM debt_earned(x, p_by::jsonb) FROM orders x WHERE x.id = p_order;
    END IF;
    told := event_add(p_order, p_by::jsonb, 'work_done', 'work ' || o.work, 'work done, money ' || coalesce(money, 'as it was'),
                      jsonb_build_object('status', p_status, 'digest', encode(p_digest, 'hex'))) IS NULL;
END $$;

-- The last byte went to the socket. (It does not prove that the client has it.) A JSON array of hex ids.
CREATE FUNCTION orders_delivered(p_orders text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE orders SET delivered_at = now() WHERE id = ANY (hex_ids(p_orders)) AND delivered_at IS NULL;
END $$;

-- Leases whose instance died: a read may be asked again, a write's outcome is unknown; and what was paid p_unbegun_s ago and never
-- begun. Returns how many.
CREATE FUNCTION orders_sweep(p_limit integer, p_by text DEFAULT NULL, p_unbegun_s integer DEFAULT 900, OUT swept integer) LANGUAGE plpgsql AS $$
DECLARE o orders;
BEGIN
    swept := 0;
    FOR o IN SELECT * FROM orders x WHERE x.work = 'running' AND NOT lease_alive(x)
             ORDER BY x.work_until LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        swept := swept + 1;
        CONTINUE WHEN order_put_back(o, p_by::jsonb);
        PERFORM order_work_end(o.id, CASE WHEN o.side_effect IN ('none', 'read') THEN 'failed' ELSE 'lost' END,
                               'the instance that ran it ended', p_by::jsonb);
    END LOOP;
    swept := swept + orders_unbegun(p_limit, p_unbegun_s, p_by::jsonb);
END $$;
