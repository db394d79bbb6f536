-- The story of an order: written in the commit that it tells of. p_by says who and why, as JSON: {"actor", "request",
-- "traceparent", "retry"}; never a body, never a signature.
CREATE FUNCTION event_hash(e events) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN sha256(coalesce(e.previous, ''::bytea) || convert_to(concat_ws(E'\n', encode(e.order_id, 'hex'), e.seq,
        extract(epoch FROM e.at), e.actor, e.event, coalesce(e.before, '-'), coalesce(e.after, '-'), coalesce(e.request_id, '-'),
        coalesce(encode(e.attempt, 'hex'), '-'), coalesce(e.traceparent, '-'), coalesce(e.retry_source, '-'), e.facts), 'UTF8'));
END $$;

CREATE FUNCTION event_add(p_order bytea, p_by jsonb, p_event text, p_before text, p_after text, p_facts jsonb DEFAULT '{}',
    p_attempt bytea DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE e events; locked boolean := pg_advisory_xact_lock(hashtextextended('events:' || encode(p_order, 'hex'), 0)) IS NOT NULL;
BEGIN
    SELECT x.seq, x.hash INTO e.seq, e.previous FROM events x WHERE x.order_id = p_order ORDER BY x.seq DESC LIMIT 1;
    e.order_id := p_order;
    e.seq := coalesce(e.seq, 0) + 1;
    e.at := clock_timestamp();
    e.actor := coalesce(p_by->>'actor', 'unknown');
    e.event := p_event;
    e.before := p_before;
    e.after := p_after;
    e.request_id := p_by->>'request';
    e.attempt := p_attempt;
    e.traceparent := p_by->>'traceparent';
    e.retry_source := p_by->>'retry';
    e.facts := jsonb_strip_nulls(p_facts);
    INSERT INTO events (order_id, seq, at, actor, event, before, after, request_id, attempt, traceparent, retry_source, facts, previous, hash)
    VALUES (e.order_id, e.seq, e.at, e.actor, e.event, e.before, e.after, e.request_id, e.attempt, e.traceparent, e.retry_source,
            e.facts, e.previous, event_hash(e));
END $$;

-- One event each of many orders, at once: what a batch did to all that was in it. Behind story_lock or the orders' own chain locks.
-- p_stories: [{"order" (hex), "before", "after", "facts"}], an order at most once.
CREATE FUNCTION events_add(p_by jsonb, p_event text, p_stories jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (order_id, seq, at, actor, event, before, after, facts, previous, hash)
    SELECT (x.e).order_id, (x.e).seq, (x.e).at, (x.e).actor, (x.e).event, (x.e).before, (x.e).after, (x.e).facts, (x.e).previous,
           event_hash(x.e)
      FROM (SELECT ROW(NULL, s.id, coalesce(l.seq, 0) + 1, clock_timestamp(), coalesce(p_by->>'actor', 'unknown'), p_event,
                       s.v->>'before', s.v->>'after', NULL, NULL, NULL, NULL, s.v->'facts', l.hash, NULL)::events AS e
              FROM (SELECT v, decode(v->>'order', 'hex') AS id FROM jsonb_array_elements(p_stories) v) s
              LEFT JOIN LATERAL (SELECT e.seq, e.hash FROM events e WHERE e.order_id = s.id ORDER BY e.seq DESC LIMIT 1) l ON true
            OFFSET 0) x;
END $$;

-- What was told to repeats, noted in bulk: [{"order", "event", "by": {...}}]. A note that is lost costs nothing but the note.
CREATE FUNCTION events_note(p_notes text) RETURNS void LANGUAGE sql AS $$
    SELECT event_add(decode(v->>'order', 'hex'), v->'by', v->>'event', NULL, NULL)
      FROM jsonb_array_elements(p_notes::jsonb) v
     WHERE EXISTS (SELECT 1 FROM orders WHERE id = decode(v->>'order', 'hex')) ORDER BY v->>'order';
$$;

-- Is an order's chain of events whole? The number of rows whose hash or predecessor is wrong.
CREATE FUNCTION events_broken(p_order bytea) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM (SELECT e, lag(e.hash) OVER (ORDER BY e.seq) AS before, row_number() OVER (ORDER BY e.seq) AS n
                            FROM events e WHERE e.order_id = p_order) x
     WHERE (x.e).hash <> event_hash(x.e) OR (x.e).previous IS DISTINCT FROM x.before OR (x.e).seq <> x.n;
$$;
