-- The story of an order: written in the commit that it tells of. p_by says who and why, as JSON: {"actor", "request",
-- "traceparent", "retry"}; never a body, never a signature.
CREATE FUNCTION event_digest(p_previous bytea, p_order bytea, p_seq integer, p_at timestamptz, p_actor text,
    p_event text, p_before text,
    p_after text, p_request text, p_attempt bytea, p_traceparent text, p_retry text, p_facts jsonb) RETURNS bytea
        LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN sha256(coalesce(p_previous, ''::bytea) || convert_to(concat_ws(E'\n', encode(p_order, 'hex'), p_seq,
        extract(epoch FROM p_at), p_actor, p_event, coalesce(p_before, '-'), coalesce(p_after, '-'),
            coalesce(p_request, '-'),
        coalesce(encode(p_attempt, 'hex'), '-'), coalesce(p_traceparent, '-'), coalesce(p_retry, '-'), p_facts),
            'UTF8'));
END $$;
CREATE FUNCTION event_hash(e events) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN event_digest(e.previous, e.order_id, e.seq, e.at, e.actor, e.event, e.before, e.after, e.request_id,
        e.attempt, e.traceparent,
                        e.retry_source, e.facts);
END $$;

-- p_begins: the order is made in this very transaction, so that nobody else can write its story and nothing stands in
-- it yet.
CREATE FUNCTION event_add(p_order bytea, p_by jsonb, p_event text, p_before text, p_after text,
    p_facts jsonb DEFAULT '{}',
    p_attempt bytea DEFAULT NULL, p_begins boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    locked boolean; previous bytea; last integer := 0; at timestamptz; actor text := coalesce(p_by->>'actor',
        'unknown');
    request text := p_by->>'request'; traceparent text := p_by->>'traceparent'; retry text := p_by->>'retry';
    facts jsonb := jsonb_strip_nulls(p_facts);
BEGIN
    IF NOT p_begins THEN
        locked := pg_advisory_xact_lock(hashtextextended('events:' || encode(p_order, 'hex'), 0)) IS NOT NULL;
        SELECT x.seq, x.hash INTO last, previous FROM events x WHERE x.order_id = p_order ORDER BY x.seq DESC LIMIT 1;
        last := coalesce(last, 0);
    END IF;
    at := clock_timestamp();
    INSERT INTO events (order_id, seq, at, actor, event, before, after, request_id, attempt, traceparent, retry_source,
        facts, previous, hash)
    VALUES (p_order, last + 1, at, actor, p_event, p_before, p_after, request, p_attempt, traceparent, retry, facts,
        previous,
            event_digest(previous, p_order, last + 1, at, actor, p_event, p_before, p_after, request, p_attempt,
                traceparent, retry, facts));
END $$;

-- One event each of many orders, at once: what a batch did to all that was in it. Behind story_lock or the orders' own
-- chain locks. p_stories: [{"order" (hex), "before", "after", "facts"}], an order at most once.
CREATE FUNCTION events_add(p_by jsonb, p_event text, p_stories jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (order_id, seq, at, actor, event, before, after, facts, previous, hash)
    SELECT (x.e).order_id, (x.e).seq, (x.e).at, (x.e).actor, (x.e).event, (x.e).before, (x.e).after, (x.e).facts,
        (x.e).previous,
           event_hash(x.e)
      FROM (SELECT ROW(NULL, s.id, coalesce(l.seq, 0) + 1, clock_timestamp(), coalesce(p_by->>'actor', 'unknown'),
          p_event,
                       s.v->>'before', s.v->>'after', NULL, NULL, NULL, NULL, s.v->'facts', l.hash, NULL)::events AS e
              FROM (SELECT v, decode(v->>'order', 'hex') AS id FROM jsonb_array_elements(p_stories) v) s
              LEFT JOIN LATERAL (SELECT e.seq, e.hash FROM events e WHERE e.order_id = s.id
                  ORDER BY e.seq DESC LIMIT 1) l ON true
            OFFSET 0) x;
END $$;

-- What was told to repeats, noted in bulk: [{"order", "event", "by": {...}}]. A note that is lost costs nothing but the
-- note.
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
