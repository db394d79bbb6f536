-- Orders whose money comes first: accepted, the authorization is due at once and the work is `waiting`; proven, somebody who may have
-- the answer begins it. From there on the work fails, or is lost, with the money in: that is a debt.

-- May its work run once more, or for the first time? Once it began, only where a second run does no harm.
CREATE FUNCTION order_may_begin(o orders) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN o.pay_first AND (o.work = 'waiting' OR (o.work = 'running' AND NOT lease_alive(o) AND order_harmless(o)));
END $$;
CREATE FUNCTION order_harmless(o orders) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT o.side_effect IN ('none', 'read') OR o.idempotent;
$$;

-- Its money is proven: the work's lease, for whoever asks first. verdict: accepted (run the work, with this epoch), or how the order
-- stands, in order_find's words. Whether the caller may have the answer was decided before.
CREATE FUNCTION order_begin(p_order bytea, p_attempt bytea, p_instance bytea, p_lease_s integer, p_now_ms bigint, p_by text DEFAULT NULL,
    OUT verdict text, OUT receipt bytea, OUT epoch integer) LANGUAGE plpgsql AS $$
DECLARE o orders;
BEGIN
    SELECT * INTO STRICT o FROM orders WHERE id = p_order FOR NO KEY UPDATE;
    receipt := o.receipt;
    epoch := o.work_epoch;
    IF o.work = 'running' AND o.begun_by = p_attempt THEN
        verdict := 'accepted';                   -- our own commit, whose reply was lost
        RETURN;
    END IF;
    verdict := order_decide(o, NULL, NULL, NULL, 0, 0, p_now_ms);
    IF verdict <> 'begin' THEN
        RETURN;
    END IF;
    epoch := o.work_epoch + 1;
    UPDATE orders SET work = 'running', work_epoch = order_begin.epoch, work_by = p_instance, begun_by = p_attempt,
           work_until = now() + make_interval(secs => p_lease_s), work_began_at = now(), work_note = NULL
     WHERE id = p_order;
    PERFORM event_add(p_order, p_by::jsonb, 'work_begun', 'work ' || o.work || ', money settled', 'work running, money settled', '{}',
                      p_attempt);
    verdict := 'accepted';
END $$;

-- A lease that died behind the money: what may run again waits for whoever asks next. Returns whether it does.
CREATE FUNCTION order_put_back(o orders, p_by jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (o.pay_first AND order_harmless(o)) THEN
        RETURN false;
    END IF;
    UPDATE orders SET work = 'waiting', work_epoch = work_epoch + 1, work_until = NULL WHERE id = o.id;
    PERFORM event_add(o.id, p_by, 'work_put_back', 'work running', 'work waiting', jsonb_build_object('why', 'the instance that ran it ended'));
    PERFORM pg_notify('payonce_order', encode(o.id, 'hex'));
    RETURN true;
END $$;

-- Paid, and nobody came for the work within p_wait_s of the proof: it is owed back. Returns how many.
CREATE FUNCTION orders_unbegun(p_limit integer, p_wait_s integer, p_by jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE o orders; n integer := 0;
BEGIN
    FOR o IN SELECT x.* FROM orders x JOIN authorizations a ON a.id = x.authorization_id JOIN proofs p ON p.authorization_id = a.id
              WHERE x.work = 'waiting' AND x.created_at < now() - make_interval(secs => p_wait_s)
                AND p.recorded_at < now() - make_interval(secs => p_wait_s)
              ORDER BY x.created_at LIMIT p_limit FOR NO KEY UPDATE OF x SKIP LOCKED
    LOOP
        PERFORM order_work_end(o.id, 'failed', 'paid, and never asked for again', p_by);
        n := n + 1;
    END LOOP;
    RETURN n;
END $$;
