SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA payonce;
ALTER SCHEMA payonce OWNER TO payonce_owner;
CREATE DOMAIN payonce.address AS bytea
	CONSTRAINT address_check CHECK ((octet_length(VALUE) = 20));
ALTER DOMAIN payonce.address OWNER TO payonce_owner;
CREATE DOMAIN payonce.amount AS numeric(78,0)
	CONSTRAINT amount_check CHECK (((VALUE >= (0)::numeric) AND (VALUE <= '115792089237316195423570985008687907853269984665640564039457584007913129639935'::numeric)));
ALTER DOMAIN payonce.amount OWNER TO payonce_owner;
CREATE DOMAIN payonce.hash AS bytea
	CONSTRAINT hash_check CHECK ((octet_length(VALUE) = 32));
ALTER DOMAIN payonce.hash OWNER TO payonce_owner;
CREATE DOMAIN payonce.public_id AS bytea
	CONSTRAINT public_id_check CHECK ((octet_length(VALUE) = 16));
ALTER DOMAIN payonce.public_id OWNER TO payonce_owner;
CREATE FUNCTION payonce.age_s(p timestamp with time zone) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
    SELECT floor(extract(epoch FROM clock_timestamp() - p))::bigint;
$$;
ALTER FUNCTION payonce.age_s(p timestamp with time zone) OWNER TO payonce_owner;
CREATE FUNCTION payonce.answer_by_order(p_order bytea) RETURNS TABLE(status bigint, headers text, body bytea)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT status::bigint, headers, body FROM answers WHERE order_id = p_order;
$$;
ALTER FUNCTION payonce.answer_by_order(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorization_doubted(p_id bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE authorizations SET next_look = now() WHERE id = p_id AND ended_at IS NULL AND next_look > now() + interval '1 s';
$$;
ALTER FUNCTION payonce.authorization_doubted(p_id bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorization_due(p_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE authorizations SET state = 'due', due_at = now() WHERE id = p_id AND state = 'held';
END $$;
ALTER FUNCTION payonce.authorization_due(p_id bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorization_end(p_id bigint, p_state text, p_note text, p_by text DEFAULT NULL::text, p_dead_after bigint DEFAULT NULL::bigint, OUT ended boolean) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE a authorizations;
BEGIN
    SELECT * INTO a FROM authorizations WHERE id = p_id FOR UPDATE;
    ended := FOUND AND a.ended_at IS NULL AND (p_state = 'void' OR (p_state = 'expired' AND a.dead_after <= coalesce(p_dead_after, a.dead_after)));
    IF ended THEN
        UPDATE authorizations SET state = p_state, ended_at = now(), end_note = p_note WHERE id = p_id;
        DELETE FROM reviews WHERE authorization_id = p_id;
        PERFORM event_add(a.order_id, p_by::jsonb, p_state, 'money ' || a.state, 'money ' || p_state,
                          jsonb_build_object('why', p_note, 'nonce', encode(a.nonce, 'hex')));
        PERFORM pg_notify('payonce_order', encode(a.order_id, 'hex'));
    END IF;
END $$;
ALTER FUNCTION payonce.authorization_end(p_id bigint, p_state text, p_note text, p_by text, p_dead_after bigint, OUT ended boolean) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorization_landed(p_id bigint, p_by jsonb, p_before text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
ALTER FUNCTION payonce.authorization_landed(p_id bigint, p_by jsonb, p_before text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorization_puzzles(p_id bigint, p_fact text, p_by text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
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
ALTER FUNCTION payonce.authorization_puzzles(p_id bigint, p_fact text, p_by text) OWNER TO payonce_owner;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE payonce.authorizations (
    id bigint NOT NULL,
    order_id payonce.public_id NOT NULL,
    network text NOT NULL,
    asset payonce.address NOT NULL,
    payer payonce.address NOT NULL,
    nonce payonce.hash NOT NULL,
    payee payonce.address NOT NULL,
    amount payonce.amount NOT NULL,
    valid_after payonce.amount NOT NULL,
    valid_before bigint NOT NULL,
    dead_after bigint NOT NULL,
    signature bytea NOT NULL,
    has_code boolean DEFAULT false NOT NULL,
    state text NOT NULL,
    attempt payonce.public_id NOT NULL,
    alone boolean DEFAULT false NOT NULL,
    from_block bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone,
    sent_at timestamp with time zone,
    ended_at timestamp with time zone,
    end_note text,
    claimed_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    looks integer DEFAULT 0 NOT NULL,
    next_look timestamp with time zone NOT NULL,
    fruitless smallint DEFAULT 0 NOT NULL,
    CONSTRAINT authorizations_check CHECK (((state = ANY (ARRAY['settled'::text, 'expired'::text, 'void'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT authorizations_check1 CHECK ((dead_after >= valid_before)),
    CONSTRAINT authorizations_state_check CHECK ((state = ANY (ARRAY['held'::text, 'due'::text, 'sent'::text, 'released'::text, 'settled'::text, 'expired'::text, 'void'::text])))
);
ALTER TABLE payonce.authorizations OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorization_rearm(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_attempt bytea) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT same_terms(a, p_payee, p_amount, p_valid_after, p_valid_before) THEN
        INSERT INTO other_signatures VALUES (a.id, a.payee, a.amount, a.valid_after, a.valid_before, a.signature)
        ON CONFLICT DO NOTHING;
    END IF;
    UPDATE authorizations SET state = 'held', attempt = p_attempt, payee = p_payee, amount = p_amount, valid_after = p_valid_after,
           valid_before = p_valid_before, dead_after = greatest(dead_after, p_valid_before), signature = p_signature,
           has_code = p_has_code, next_look = to_timestamp(greatest(dead_after, p_valid_before))
     WHERE id = a.id AND ended_at IS NULL;
END $$;
ALTER FUNCTION payonce.authorization_rearm(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_attempt bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorization_store(p_order bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_state text, p_attempt bytea) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE a bigint;
BEGIN
    INSERT INTO authorizations (order_id, network, asset, payer, nonce, payee, amount, valid_after, valid_before, dead_after,
                                signature, has_code, state, attempt, from_block, next_look)
    SELECT p_order, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after, p_valid_before, p_valid_before,
           p_signature, p_has_code, p_state, p_attempt, n.head, to_timestamp(p_valid_before)
      FROM networks n WHERE n.id = p_network
    RETURNING id INTO a;
    RETURN a;
END $$;
ALTER FUNCTION payonce.authorization_store(p_order bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_state text, p_attempt bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorizations_claim(p_network text, p_limit integer, p_claim_s integer, p_need_s integer) RETURNS TABLE(id bigint, asset bytea, payer bytea, nonce bytea, payee bytea, amount text, valid_after text, valid_before bigint, signature bytea, alone boolean)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE authorizations a SET claimed_until = now() + make_interval(secs => p_claim_s)
     WHERE a.id IN (SELECT x.id FROM authorizations x
                     WHERE x.network = p_network AND x.state = 'due' AND x.claimed_until < now() AND x.fruitless < 3
                       AND x.valid_before >= extract(epoch FROM now()) + p_need_s
                     ORDER BY x.due_at LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING a.id, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text, a.valid_after::text,
              a.valid_before, a.signature, a.alone OR a.has_code;
$$;
ALTER FUNCTION payonce.authorizations_claim(p_network text, p_limit integer, p_claim_s integer, p_need_s integer) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorizations_look(p_network text, p_limit integer) RETURNS TABLE(id bigint, state text, asset bytea, payer bytea, nonce bytea, payee bytea, amount text, dead_after bigint, from_block bigint)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE authorizations a SET looks = a.looks + 1, next_look = look_after(a.looks + 1, a.dead_after)
     WHERE a.id IN (SELECT x.id FROM authorizations x
                     WHERE x.network = p_network AND x.ended_at IS NULL AND x.next_look <= now()
                     ORDER BY x.next_look LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING a.id, a.state, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text, a.dead_after,
              a.from_block;
$$;
ALTER FUNCTION payonce.authorizations_look(p_network text, p_limit integer) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorizations_notify(p_ids bigint[]) RETURNS void
    LANGUAGE sql
    AS $$
    SELECT pg_notify('payonce_order', string_agg(hex, ',')) FROM (
        SELECT encode(order_id, 'hex') AS hex, (row_number() OVER () - 1) / 200 AS part
          FROM (SELECT DISTINCT order_id FROM authorizations WHERE id = ANY (p_ids)) o) x
     GROUP BY part;
$$;
ALTER FUNCTION payonce.authorizations_notify(p_ids bigint[]) OWNER TO payonce_owner;
CREATE FUNCTION payonce.authorizations_unclaim(p_ids text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE authorizations SET claimed_until = '-infinity'
     WHERE id IN (SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v) AND state = 'due';
$$;
ALTER FUNCTION payonce.authorizations_unclaim(p_ids text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.block_undone(p_network text, p_block bigint, p_block_hash bytea, p_by text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
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
    UPDATE debts SET state = 'cancelled' WHERE authorization_id = ANY (ids);
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
ALTER FUNCTION payonce.block_undone(p_network text, p_block bigint, p_block_hash bytea, p_by text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.blocks_to_check(p_network text) RETURNS TABLE(block bigint, block_hash bytea)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT p.block, p.block_hash::bytea FROM proofs p JOIN networks n ON n.id = p.network WHERE p.network = p_network AND p.block > n.final
    UNION
    SELECT t.block, t.block_hash::bytea FROM relay_transactions t WHERE t.network = p_network AND t.state = 'mined';
$$;
ALTER FUNCTION payonce.blocks_to_check(p_network text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.debt_book(a payonce.authorizations, p_cause text, p_by jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE p proofs;
BEGIN
    SELECT * INTO STRICT p FROM proofs WHERE authorization_id = a.id;
    UPDATE transfers SET class = 'debt' WHERE network = a.network AND tx = p.tx AND log_index = p.log_index;
    INSERT INTO debts (id, order_id, authorization_id, cause, network, asset, payer, amount, tx, log_index)
    VALUES (debt_id(a), a.order_id, a.id, p_cause, a.network, a.asset, a.payer, a.amount, p.tx, p.log_index)
    ON CONFLICT (id) DO UPDATE SET state = 'owed', cause = p_cause, tx = excluded.tx, log_index = excluded.log_index;
    PERFORM event_add(a.order_id, p_by, 'debt_owed', NULL, 'owed', jsonb_build_object('debt', encode(debt_id(a), 'hex'),
                      'cause', p_cause, 'amount', a.amount::text));
END $$;
ALTER FUNCTION payonce.debt_book(a payonce.authorizations, p_cause text, p_by jsonb) OWNER TO payonce_owner;
CREATE TABLE payonce.orders (
    id payonce.public_id NOT NULL,
    receipt payonce.public_id NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    rail text NOT NULL,
    wire_version smallint NOT NULL,
    tool text NOT NULL,
    side_effect text NOT NULL,
    cacheable boolean NOT NULL,
    idempotent boolean NOT NULL,
    method text NOT NULL,
    target text NOT NULL,
    request payonce.hash NOT NULL,
    payment_id text,
    quote payonce.public_id,
    payer payonce.address NOT NULL,
    network text NOT NULL,
    asset payonce.address NOT NULL,
    payee payonce.address NOT NULL,
    amount payonce.amount NOT NULL,
    work text NOT NULL,
    work_epoch integer DEFAULT 1 NOT NULL,
    work_by payonce.public_id,
    work_until timestamp with time zone,
    work_began_at timestamp with time zone,
    work_ended_at timestamp with time zone,
    work_note text,
    authorization_id bigint,
    delivered_at timestamp with time zone,
    CONSTRAINT orders_payment_id_check CHECK ((payment_id ~ '^[A-Za-z0-9_-]{16,128}$'::text)),
    CONSTRAINT orders_side_effect_check CHECK ((side_effect = ANY (ARRAY['none'::text, 'read'::text, 'write'::text, 'irreversible'::text]))),
    CONSTRAINT orders_work_check CHECK ((work = ANY (ARRAY['none'::text, 'waiting'::text, 'running'::text, 'done'::text, 'failed'::text, 'lost'::text])))
);
ALTER TABLE payonce.orders OWNER TO payonce_owner;
CREATE FUNCTION payonce.debt_earned(o payonce.orders, p_by jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE d debts;
BEGIN
    UPDATE debts SET state = 'earned'
     WHERE authorization_id = o.authorization_id AND state = 'owed' AND cause IN ('late', 'work_failed') RETURNING * INTO d;
    IF d.id IS NOT NULL THEN
        UPDATE transfers SET class = 'sale' WHERE network = d.network AND tx = d.tx AND log_index = d.log_index;
        PERFORM event_add(o.id, p_by, 'debt_earned', 'owed', 'earned', jsonb_build_object('debt', encode(d.id, 'hex'),
                          'why', 'the work was done'));
    END IF;
END $$;
ALTER FUNCTION payonce.debt_earned(o payonce.orders, p_by jsonb) OWNER TO payonce_owner;
CREATE FUNCTION payonce.debt_id(a payonce.authorizations) RETURNS bytea
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN sha256(convert_to('payonce debt' || a.network, 'UTF8') || a.asset || a.payer || a.nonce);
END $$;
ALTER FUNCTION payonce.debt_id(a payonce.authorizations) OWNER TO payonce_owner;
CREATE FUNCTION payonce.event_add(p_order bytea, p_by jsonb, p_event text, p_before text, p_after text, p_facts jsonb DEFAULT '{}'::jsonb, p_attempt bytea DEFAULT NULL::bytea) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE e events;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('events:' || encode(p_order, 'hex'), 0));
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
ALTER FUNCTION payonce.event_add(p_order bytea, p_by jsonb, p_event text, p_before text, p_after text, p_facts jsonb, p_attempt bytea) OWNER TO payonce_owner;
CREATE TABLE payonce.events (
    id bigint NOT NULL,
    order_id payonce.public_id NOT NULL,
    seq integer NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor text NOT NULL,
    event text NOT NULL,
    before text,
    after text,
    request_id text,
    attempt payonce.public_id,
    traceparent text,
    retry_source text,
    facts jsonb DEFAULT '{}'::jsonb NOT NULL,
    previous payonce.hash,
    hash payonce.hash NOT NULL,
    CONSTRAINT events_retry_source_check CHECK ((retry_source = ANY (ARRAY['llm'::text, 'framework'::text, 'http'::text])))
);
ALTER TABLE payonce.events OWNER TO payonce_owner;
CREATE FUNCTION payonce.event_hash(e payonce.events) RETURNS bytea
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN sha256(coalesce(e.previous, ''::bytea) || convert_to(concat_ws(E'\n', encode(e.order_id, 'hex'), e.seq,
        extract(epoch FROM e.at), e.actor, e.event, coalesce(e.before, '-'), coalesce(e.after, '-'), coalesce(e.request_id, '-'),
        coalesce(encode(e.attempt, 'hex'), '-'), coalesce(e.traceparent, '-'), coalesce(e.retry_source, '-'), e.facts), 'UTF8'));
END $$;
ALTER FUNCTION payonce.event_hash(e payonce.events) OWNER TO payonce_owner;
CREATE FUNCTION payonce.events_broken(p_order bytea) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
    SELECT count(*) FROM (SELECT e, lag(e.hash) OVER (ORDER BY e.seq) AS before, row_number() OVER (ORDER BY e.seq) AS n
                            FROM events e WHERE e.order_id = p_order) x
     WHERE (x.e).hash <> event_hash(x.e) OR (x.e).previous IS DISTINCT FROM x.before OR (x.e).seq <> x.n;
$$;
ALTER FUNCTION payonce.events_broken(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.events_note(p_notes text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT event_add(decode(v->>'order', 'hex'), v->'by', v->>'event', NULL, NULL)
      FROM jsonb_array_elements(p_notes::jsonb) v
     WHERE EXISTS (SELECT 1 FROM orders WHERE id = decode(v->>'order', 'hex')) ORDER BY v->>'order';
$$;
ALTER FUNCTION payonce.events_note(p_notes text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.explain(p_what text, OUT story text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $_$
BEGIN
    story := json_build_object(
        'orders', (SELECT coalesce(json_agg(order_story(o.id) ORDER BY o.created_at, o.id), '[]') FROM orders o
                    WHERE o.id IN (SELECT orders_named(p_what))),
        'transfers', (SELECT coalesce(json_agg(json_build_object('tx', hex_text(t.tx), 'log_index', t.log_index, 'network', t.network,
                             'asset', hex_text(t.asset), 'from', hex_text(t.sender), 'to', hex_text(t.receiver),
                             'amount', t.amount::text, 'block', t.block, 'class', t.class) ORDER BY t.log_index), '[]')
                        FROM networks n JOIN transfers t ON t.network = n.id
                       WHERE p_what ~* '^0x[0-9a-f]{64}$' AND t.tx = decode(substr(p_what, 3), 'hex')
                         AND t.authorization_id IS NULL))::text;
END $_$;
ALTER FUNCTION payonce.explain(p_what text, OUT story text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.hex_text(p bytea) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT '0x' || encode(p, 'hex'); $$;
ALTER FUNCTION payonce.hex_text(p bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.instance_beat(p_id bytea, p_role text, p_ttl_s integer) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    INSERT INTO instances (id, role, until) VALUES (p_id, p_role, now() + make_interval(secs => p_ttl_s))
    ON CONFLICT (id) DO UPDATE SET until = excluded.until;
$$;
ALTER FUNCTION payonce.instance_beat(p_id bytea, p_role text, p_ttl_s integer) OWNER TO payonce_owner;
CREATE FUNCTION payonce.instance_end(p_id bytea) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE instances SET until = now() WHERE id = p_id;
$$;
ALTER FUNCTION payonce.instance_end(p_id bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.lease_alive(o payonce.orders) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN o.work_until > now() AND (pg_postmaster_start_time() > now() - interval '20 s' OR
                                     EXISTS (SELECT 1 FROM instances i WHERE i.id = o.work_by AND i.until > now()));
END $$;
ALTER FUNCTION payonce.lease_alive(o payonce.orders) OWNER TO payonce_owner;
CREATE FUNCTION payonce.lock_identities(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE k bigint;
BEGIN
    FOR k IN SELECT DISTINCT v FROM unnest(ARRAY[
            hashtextextended('nonce:' || p_network || encode(p_asset || p_payer || p_nonce, 'hex'), 0),
            hashtextextended('quote:' || encode(p_quote || p_payer, 'hex'), 0),
            hashtextextended('id:' || p_payment_id, 0)]) v WHERE v IS NOT NULL ORDER BY v
    LOOP
        PERFORM pg_advisory_xact_lock(k);
    END LOOP;
END $$;
ALTER FUNCTION payonce.lock_identities(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.look_after(p_looks integer, p_dead_after bigint) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
    SELECT now() + make_interval(secs => CASE
        WHEN x.left_s > 0 THEN least(x.pace, x.left_s + 1)
        ELSE least(60, greatest(2, -x.left_s / 2)) END)
      FROM (SELECT p_dead_after - extract(epoch FROM now()) AS left_s,
                   coalesce((ARRAY[2, 2, 4, 7, 15, 30])[p_looks + 1], 60) AS pace) x;
$$;
ALTER FUNCTION payonce.look_after(p_looks integer, p_dead_after bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.metrics_events(p_after bigint, p_buckets numeric[]) RETURNS TABLE(metric text, label text, value text)
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE until bigint;
BEGIN
    IF p_after IS NULL THEN
        SELECT max(id) INTO until FROM events;
    ELSE
        SELECT max(x.id) INTO until FROM (SELECT e.id, e.at FROM events e WHERE e.id > p_after ORDER BY e.id LIMIT 100000) x
         WHERE x.at < clock_timestamp() - interval '10 s';
    END IF;
    until := coalesce(until, p_after, 0);
    RETURN QUERY
    WITH news AS (SELECT e.* FROM events e WHERE e.id > p_after AND e.id <= until),
         resolved AS (SELECT extract(epoch FROM n.at - a.sent_at) AS s FROM news n JOIN authorizations a ON a.order_id = n.order_id
                         AND a.nonce = decode(n.facts->>'nonce', 'hex')
                       WHERE n.event IN ('settled', 'expired', 'void') AND a.sent_at IS NOT NULL)
    SELECT 'until', '', until::text
    UNION ALL SELECT 'resolved', width_bucket(s, p_buckets)::text, count(*)::text FROM resolved GROUP BY 2
    UNION ALL SELECT 'resolved_s', '', round(coalesce(sum(s), 0))::text FROM resolved
    UNION ALL SELECT 'taken_over', CASE n.event WHEN 'accepted_again' THEN 'run_again' ELSE 'ended' END, count(*)::text FROM news n
               WHERE (n.event = 'accepted_again' AND n.before LIKE 'work running%')
                  OR (n.event IN ('work_failed', 'work_lost') AND n.facts->>'why' = 'the instance that ran it ended') GROUP BY 2;
END $$;
ALTER FUNCTION payonce.metrics_events(p_after bigint, p_buckets numeric[]) OWNER TO payonce_owner;
CREATE FUNCTION payonce.metrics_read(p_after bigint, p_buckets text) RETURNS TABLE(metric text, label text, value text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
BEGIN
    RETURN QUERY
    WITH alive AS (SELECT a.state, CASE a.state WHEN 'sent' THEN a.sent_at WHEN 'due' THEN a.due_at ELSE a.created_at END AS since
                     FROM authorizations a WHERE a.ended_at IS NULL),
         waiting AS (SELECT r.opened_at FROM reviews r WHERE r.resolved_at IS NULL),
         newest AS (SELECT t.state FROM relay_transactions t ORDER BY t.id DESC LIMIT 10000)
    SELECT 'open', a.state, count(*)::text FROM alive a GROUP BY a.state
    UNION ALL SELECT 'open_oldest', a.state, age_s(min(a.since))::text FROM alive a GROUP BY a.state
    UNION ALL SELECT 'unknowns', '', count(*)::text FROM alive a WHERE a.state = 'sent'
    UNION ALL SELECT 'unknown_oldest', '', coalesce(age_s(min(a.since)), 0)::text FROM alive a WHERE a.state = 'sent'
    UNION ALL SELECT 'reviews', '', count(*)::text FROM waiting
    UNION ALL SELECT 'review_oldest', '', coalesce(age_s(min(w.opened_at)), 0)::text FROM waiting w
    UNION ALL SELECT 'duplicates', '', count(*)::text FROM debts d WHERE d.cause = 'duplicate'
    UNION ALL SELECT 'relay', t.state, count(*)::text FROM newest t GROUP BY t.state
    UNION ALL SELECT 'gas', n.id, n.gas_balance::text FROM networks n WHERE n.gas_balance IS NOT NULL
    UNION ALL SELECT 'seen', n.id, age_s(n.seen_at)::text FROM networks n
    UNION ALL SELECT * FROM metrics_events(p_after, p_buckets::numeric[]);
END $$;
ALTER FUNCTION payonce.metrics_read(p_after bigint, p_buckets text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.money_counts() RETURNS TABLE(state text, count bigint, oldest_s bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT a.state, count(*), coalesce(extract(epoch FROM now() - min(a.created_at))::bigint, 0)
      FROM authorizations a WHERE a.ended_at IS NULL GROUP BY a.state;
$$;
ALTER FUNCTION payonce.money_counts() OWNER TO payonce_owner;
CREATE FUNCTION payonce.network_pin(p_id text, p_genesis bytea, OUT replaced boolean, OUT final bigint, OUT final_hash bytea) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO networks (id, genesis) VALUES (p_id, p_genesis) ON CONFLICT (id) DO NOTHING;
    SELECT n.genesis <> p_genesis, n.final, n.final_hash INTO replaced, final, final_hash FROM networks n WHERE n.id = p_id;
END $$;
ALTER FUNCTION payonce.network_pin(p_id text, p_genesis bytea, OUT replaced boolean, OUT final bigint, OUT final_hash bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.network_seen(p_id text, p_head bigint, p_hash bytea, p_time bigint, p_final bigint, p_final_hash bytea, p_final_time bigint, p_gas_balance numeric) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
BEGIN
    UPDATE networks SET head = p_head, head_hash = p_hash, head_time = p_time, seen_at = now(), gas_balance = p_gas_balance,
           final = greatest(final, p_final),
           final_hash = CASE WHEN p_final > final THEN p_final_hash ELSE final_hash END,
           final_time = greatest(final_time, p_final_time)
     WHERE id = p_id;
    UPDATE relay_transactions SET state = 'final' WHERE network = p_id AND state = 'mined' AND block <= p_final;
END $$;
ALTER FUNCTION payonce.network_seen(p_id text, p_head bigint, p_hash bytea, p_time bigint, p_final bigint, p_final_hash bytea, p_final_time bigint, p_gas_balance numeric) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_accept(p_attempt bytea, p_instance bytea, p_lease_s integer, p_order bytea, p_receipt bytea, p_rail text, p_version integer, p_tool text, p_side_effect text, p_cacheable boolean, p_idempotent boolean, p_method text, p_target text, p_request bytea, p_payment_id text, p_quote bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_need_s integer, p_verified boolean, p_by text DEFAULT NULL::text, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT epoch integer, OUT similar_order bytea) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE
    m record; o orders; a authorizations; paying bigint; was text; by_whom jsonb := p_by::jsonb;
    facts jsonb := jsonb_build_object('nonce', encode(p_nonce, 'hex'), 'amount', p_amount::text, 'valid_before', p_valid_before);
BEGIN
    PERFORM lock_identities(p_payment_id, p_quote, p_payer, p_network, p_asset, p_nonce);
    m := order_match(p_payment_id, p_quote, p_payer, p_network, p_asset, p_nonce, p_request);
    verdict := m.verdict;
    SELECT * INTO o FROM orders x WHERE x.id = m.order_id FOR NO KEY UPDATE;
    SELECT * INTO a FROM authorizations x WHERE x.id = m.authorization_id FOR UPDATE;
    IF a.id IS NOT NULL THEN
        PERFORM signature_keep(a, p_payee, p_amount, p_valid_after, p_valid_before, p_signature);
    END IF;
    IF verdict = 'new' AND NOT p_verified THEN
        RETURN;
    ELSIF verdict = 'new' THEN
        INSERT INTO orders (id, receipt, rail, wire_version, tool, side_effect, cacheable, idempotent, method, target, request,
                            payment_id, quote, payer, network, asset, payee, amount, work, work_by, work_until, work_began_at)
        VALUES (p_order, p_receipt, p_rail, p_version, p_tool, p_side_effect, p_cacheable, p_idempotent, p_method, p_target,
                p_request, p_payment_id, p_quote, p_payer, p_network, p_asset, p_payee, p_amount, 'running', p_instance,
                now() + make_interval(secs => p_lease_s), now());
        paying := authorization_store(p_order, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                      p_valid_before, p_signature, p_has_code, 'held', p_attempt);
        UPDATE orders SET authorization_id = paying WHERE id = p_order;
        PERFORM event_add(p_order, by_whom, 'accepted', NULL, 'work running, money held', facts || jsonb_build_object('tool', p_tool),
                          p_attempt);
        verdict := 'accepted';
        order_id := p_order;
        receipt := p_receipt;
        epoch := 1;
        IF p_side_effect NOT IN ('none', 'read') AND p_payment_id IS NULL THEN
            SELECT x.id INTO similar_order FROM orders x WHERE x.payer = p_payer AND x.request = p_request AND x.id <> p_order
               AND x.delivered_at > now() - interval '300 s' ORDER BY x.created_at DESC LIMIT 1;
        END IF;
        RETURN;
    ELSIF verdict = 'similar' THEN
        order_id := o.id;
        RETURN;
    ELSIF verdict <> 'found' THEN
        RETURN;
    END IF;
    order_id := o.id;
    receipt := o.receipt;
    epoch := o.work_epoch;
    IF EXISTS (SELECT 1 FROM authorizations x WHERE x.id = o.authorization_id AND x.attempt = p_attempt) THEN
        verdict := CASE o.work WHEN 'running' THEN 'accepted' ELSE 'resent' END; -- our own commit, whose reply was lost
        RETURN;
    END IF;
    verdict := order_decide(o, a.id, p_payment_id, p_quote, p_valid_before, p_need_s);
    IF verdict = 'in_review' AND o.work = 'running' AND o.side_effect NOT IN ('none', 'read') AND NOT o.idempotent
       AND NOT lease_alive(o) THEN
        PERFORM order_work_end(o.id, 'lost', 'the instance that ran it ended', by_whom);
    END IF;
    was := 'work ' || o.work || ', money ' || (SELECT x.state FROM authorizations x WHERE x.id = o.authorization_id);
    IF verdict IN ('again', 'takeover', 'resend') AND NOT p_verified THEN
        RETURN;
    ELSIF verdict IN ('again', 'takeover', 'resend') THEN
        IF a.id IS NULL THEN
            paying := authorization_store(o.id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                          p_valid_before, p_signature, p_has_code, 'held', p_attempt);
        ELSE
            paying := a.id;
            PERFORM authorization_rearm(a, p_payee, p_amount, p_valid_after, p_valid_before, p_signature, p_has_code, p_attempt);
        END IF;
        PERFORM order_paid_by(o.id, paying);
        IF verdict <> 'resend' THEN
            UPDATE orders SET work = 'running', work_epoch = work_epoch + 1, work_by = p_instance,
                   work_until = now() + make_interval(secs => p_lease_s), work_began_at = now(), work_ended_at = NULL,
                   work_note = NULL
             WHERE id = o.id;
            PERFORM review_close(o.id, 'failed', by_whom->>'actor', 'run again: its upstream is idempotent', NULL);
            PERFORM event_add(o.id, by_whom, 'accepted_again', was, 'work running, money held', facts, p_attempt);
            verdict := 'accepted';
            epoch := o.work_epoch + 1;
        ELSE
            PERFORM authorization_due(paying);
            PERFORM event_add(o.id, by_whom, 'resent', was, 'work done, money due', facts, p_attempt);
            verdict := 'resent';
        END IF;
    ELSIF a.id IS NULL THEN
        -- not needed, but signed: anybody who saw it can submit it, so it is stored, never sent by us, and watched
        PERFORM authorization_store(o.id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                    p_valid_before, p_signature, p_has_code, 'released', p_attempt);
        PERFORM event_add(o.id, by_whom, 'set_aside', NULL, 'money released', facts || jsonb_build_object('answer', verdict), p_attempt);
    END IF;
END $$;
ALTER FUNCTION payonce.order_accept(p_attempt bytea, p_instance bytea, p_lease_s integer, p_order bytea, p_receipt bytea, p_rail text, p_version integer, p_tool text, p_side_effect text, p_cacheable boolean, p_idempotent boolean, p_method text, p_target text, p_request bytea, p_payment_id text, p_quote bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_need_s integer, p_verified boolean, p_by text, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT epoch integer, OUT similar_order bytea) OWNER TO payonce_owner;
CREATE TABLE payonce.answers (
    order_id payonce.public_id NOT NULL,
    status integer NOT NULL,
    headers text NOT NULL,
    body bytea NOT NULL,
    digest payonce.hash NOT NULL,
    stored_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE payonce.answers OWNER TO payonce_owner;
CREATE TABLE payonce.networks (
    id text NOT NULL,
    genesis payonce.hash NOT NULL,
    head bigint DEFAULT 0 NOT NULL,
    head_hash payonce.hash,
    head_time bigint DEFAULT 0 NOT NULL,
    final bigint DEFAULT 0 NOT NULL,
    final_hash payonce.hash,
    final_time bigint DEFAULT 0 NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    gas_balance payonce.amount
);
ALTER TABLE payonce.networks OWNER TO payonce_owner;
CREATE TABLE payonce.proofs (
    authorization_id bigint NOT NULL,
    network text NOT NULL,
    tx payonce.hash NOT NULL,
    log_index bigint NOT NULL,
    block bigint NOT NULL,
    block_hash payonce.hash NOT NULL,
    block_time bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT now() NOT NULL,
    before text DEFAULT 'sent'::text NOT NULL,
    CONSTRAINT proofs_before_check CHECK ((before = ANY (ARRAY['held'::text, 'due'::text, 'sent'::text, 'released'::text])))
);
ALTER TABLE payonce.proofs OWNER TO payonce_owner;
CREATE TABLE payonce.relay_calls (
    transaction_id bigint NOT NULL,
    authorization_id bigint NOT NULL
);
ALTER TABLE payonce.relay_calls OWNER TO payonce_owner;
CREATE TABLE payonce.relay_transactions (
    id bigint NOT NULL,
    network text NOT NULL,
    relayer payonce.address NOT NULL,
    account_nonce bigint NOT NULL,
    hash payonce.hash NOT NULL,
    raw bytea NOT NULL,
    gas bigint NOT NULL,
    max_fee payonce.amount NOT NULL,
    max_tip payonce.amount NOT NULL,
    state text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    broadcast_at timestamp with time zone,
    mined_at timestamp with time zone,
    block bigint,
    block_hash payonce.hash,
    call_to payonce.address,
    call_data bytea,
    CONSTRAINT relay_transactions_state_check CHECK ((state = ANY (ARRAY['signed'::text, 'broadcast'::text, 'mined'::text, 'final'::text, 'replaced'::text, 'dropped'::text])))
);
ALTER TABLE payonce.relay_transactions OWNER TO payonce_owner;
CREATE TABLE payonce.reviews (
    order_id payonce.public_id NOT NULL,
    opened_at timestamp with time zone DEFAULT now() NOT NULL,
    fact text NOT NULL,
    authorization_id bigint,
    resolved_at timestamp with time zone,
    resolution text,
    resolved_by text,
    note text,
    external_id text,
    CONSTRAINT reviews_check CHECK (((resolved_at IS NULL) = (resolution IS NULL))),
    CONSTRAINT reviews_resolution_check CHECK ((resolution = ANY (ARRAY['done'::text, 'failed'::text])))
);
ALTER TABLE payonce.reviews OWNER TO payonce_owner;
CREATE VIEW payonce.order_status AS
 SELECT o.id,
    o.receipt,
    o.created_at,
    o.rail,
    o.wire_version,
    o.tool,
    o.side_effect,
    o.cacheable,
    o.method,
    o.target,
    o.request,
    o.payment_id,
    o.payer,
    o.network,
    o.asset,
    o.payee,
    o.amount,
    o.work,
    o.work_epoch,
    o.work_ended_at,
    o.work_note,
    o.delivered_at,
    a.id AS authorization_id,
    a.state AS money,
    a.nonce,
    a.valid_before,
    a.dead_after,
    a.ended_at,
    a.end_note,
    p.tx,
    p.log_index,
    p.block,
    p.block_hash,
    p.block_time,
    n.head,
    n.final,
    ( SELECT t.hash
           FROM (payonce.relay_calls c
             JOIN payonce.relay_transactions t ON ((t.id = c.transaction_id)))
          WHERE (c.authorization_id = a.id)
          ORDER BY t.id DESC
         LIMIT 1) AS last_hash,
    w.status AS answer_status,
    w.digest AS answer_digest,
    octet_length(w.body) AS answer_size,
        CASE
            WHEN ((o.work = 'lost'::text) OR (EXISTS ( SELECT 1
               FROM payonce.reviews r
              WHERE (((r.order_id)::bytea = (o.id)::bytea) AND (r.resolved_at IS NULL) AND COALESCE((r.authorization_id = a.id), true))))) THEN 'in_review'::text
            WHEN ((a.state = 'settled'::text) AND (o.work = 'failed'::text)) THEN 'refund_due'::text
            WHEN ((a.state = 'settled'::text) AND (o.work = ANY (ARRAY['done'::text, 'none'::text]))) THEN 'paid'::text
            WHEN (o.work = ANY (ARRAY['waiting'::text, 'running'::text])) THEN 'processing'::text
            WHEN ((o.work = 'failed'::text) OR (a.state = 'released'::text) OR ((o.work = 'done'::text) AND (w.order_id IS NULL))) THEN 'not_charged'::text
            WHEN (a.state = ANY (ARRAY['expired'::text, 'void'::text])) THEN 'unpaid'::text
            ELSE 'settling'::text
        END AS status
   FROM ((((payonce.orders o
     JOIN payonce.authorizations a ON ((a.id = o.authorization_id)))
     JOIN payonce.networks n ON ((n.id = o.network)))
     LEFT JOIN payonce.proofs p ON ((p.authorization_id = a.id)))
     LEFT JOIN payonce.answers w ON (((w.order_id)::bytea = (o.id)::bytea)));
ALTER TABLE payonce.order_status OWNER TO payonce_owner;
CREATE VIEW payonce.order_wire AS
 SELECT order_status.id,
    order_status.receipt,
    order_status.status,
    order_status.work,
    order_status.work_epoch,
    order_status.money,
    (EXTRACT(epoch FROM order_status.created_at))::bigint AS created,
    order_status.rail,
    order_status.wire_version,
    order_status.tool,
    order_status.side_effect,
    order_status.cacheable,
    order_status.method,
    order_status.target,
    order_status.request,
    order_status.payment_id,
    order_status.payer,
    order_status.network,
    order_status.asset,
    order_status.payee,
    (order_status.amount)::text AS amount,
    order_status.nonce,
    order_status.valid_before,
    order_status.dead_after,
    (EXTRACT(epoch FROM order_status.work_ended_at))::bigint AS work_ended,
    (EXTRACT(epoch FROM order_status.delivered_at))::bigint AS delivered,
    (EXTRACT(epoch FROM order_status.ended_at))::bigint AS money_ended,
    order_status.tx,
    order_status.log_index,
    order_status.block,
    order_status.block_hash,
    order_status.block_time,
    order_status.head,
    order_status.final,
    order_status.last_hash,
    order_status.answer_status,
    order_status.answer_digest,
    order_status.answer_size,
    COALESCE(order_status.work_note, order_status.end_note) AS note
   FROM payonce.order_status;
ALTER TABLE payonce.order_wire OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_by_id(p_order bytea) RETURNS SETOF payonce.order_wire
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT * FROM order_wire WHERE id = p_order;
$$;
ALTER FUNCTION payonce.order_by_id(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_by_payment_id(p_payment_id text) RETURNS SETOF payonce.order_wire
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT * FROM order_wire WHERE payment_id = p_payment_id;
$$;
ALTER FUNCTION payonce.order_by_payment_id(p_payment_id text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_by_receipt(p_receipt bytea) RETURNS SETOF payonce.order_wire
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT * FROM order_wire WHERE receipt = p_receipt;
$$;
ALTER FUNCTION payonce.order_by_receipt(p_receipt bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_decide(o payonce.orders, p_authorization bigint, p_payment_id text, p_quote bytea, p_valid_before numeric, p_need_s integer) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    mine text := (SELECT state FROM authorizations WHERE id = p_authorization);
    money text := (SELECT state FROM authorizations WHERE id = o.authorization_id);
    -- an authorization that we have not seen is not on the chain: its signature proves the wallet as well as an id does
    secret boolean := coalesce(p_payment_id = o.payment_id, false) OR coalesce(p_quote = o.quote, false) OR p_authorization IS NULL OR mine = 'released';
    usable boolean := (mine IS NULL OR mine IN ('released', 'held')) AND
                      p_valid_before >= extract(epoch FROM now()) + p_need_s;
BEGIN
    IF o.work = 'lost' THEN
        RETURN CASE WHEN o.idempotent AND usable AND money <> 'settled' THEN 'again' ELSE 'in_review' END;
    ELSIF EXISTS (SELECT 1 FROM reviews r WHERE r.order_id = o.id AND r.resolved_at IS NULL
                  AND coalesce(r.authorization_id = o.authorization_id, true)) THEN
        RETURN 'in_review';
    ELSIF money = 'settled' AND o.work = 'done' THEN
        IF NOT EXISTS (SELECT 1 FROM answers WHERE order_id = o.id) THEN
            RETURN 'gone';
        END IF;
        -- what is on the chain is public: the nonce alone serves only what a free repeat would
        IF secret OR (o.cacheable AND EXISTS (SELECT 1 FROM proofs p WHERE p.authorization_id = o.authorization_id
                                              AND p.block_time + 120 >= extract(epoch FROM now()))) THEN
            RETURN 'replay';
        END IF;
        RETURN 'not_proven';
    ELSIF 'settled' IN (money, mine) THEN
        RETURN CASE WHEN o.work = 'failed' THEN 'work_failed_paid' ELSE 'in_flight' END;
    ELSIF o.work = 'done' AND NOT EXISTS (SELECT 1 FROM answers WHERE order_id = o.id) THEN
        RETURN 'gone';                           -- a person found it done: it is not charged, and not run again
    ELSIF o.work = 'running' AND NOT lease_alive(o) THEN
        RETURN CASE WHEN o.side_effect NOT IN ('none', 'read') AND NOT o.idempotent THEN 'in_review'
                    WHEN usable THEN 'takeover' ELSE 'in_flight' END;
    ELSIF o.work = 'failed' THEN
        RETURN CASE WHEN usable THEN 'again' ELSE 'pay_again' END;
    ELSIF o.work = 'done' AND money IN ('expired', 'void') THEN
        RETURN CASE WHEN usable THEN 'resend' ELSE 'pay_again' END;
    END IF;
    RETURN 'in_flight';
END $$;
ALTER FUNCTION payonce.order_decide(o payonce.orders, p_authorization bigint, p_payment_id text, p_quote bytea, p_valid_before numeric, p_need_s integer) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_find(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea, p_request bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric, p_signature bytea, p_proven boolean, p_need_s integer, OUT verdict text, OUT order_id bytea, OUT known text) RETURNS record
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE m record; a authorizations;
BEGIN
    m := order_match(p_payment_id, p_quote, p_payer, p_network, p_asset, p_nonce, p_request);
    SELECT * INTO a FROM authorizations x WHERE x.id = m.authorization_id;
    IF NOT p_proven AND a.signature IS DISTINCT FROM p_signature THEN
        verdict := 'new';
        known := 'none';
        RETURN;
    END IF;
    verdict := m.verdict;
    order_id := m.order_id;
    known := CASE WHEN a.id IS NULL THEN 'none'
                  WHEN same_terms(a, p_payee, p_amount, p_valid_after, p_valid_before) THEN 'all' ELSE 'nonce' END;
    IF m.verdict = 'found' THEN
        verdict := order_decide(o, m.authorization_id, p_payment_id, p_quote, p_valid_before, p_need_s)
                   FROM orders o WHERE o.id = m.order_id;
    END IF;
END $$;
ALTER FUNCTION payonce.order_find(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea, p_request bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric, p_signature bytea, p_proven boolean, p_need_s integer, OUT verdict text, OUT order_id bytea, OUT known text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_finish(p_order bytea, p_epoch integer, p_work text, p_note text, p_status integer, p_headers text, p_body bytea, p_digest bytea, p_by text DEFAULT NULL::text, OUT verdict text, OUT landed boolean) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE o orders; money text;
BEGIN
    SELECT * INTO STRICT o FROM orders WHERE id = p_order FOR NO KEY UPDATE;
    IF o.work_epoch <> p_epoch OR NOT (o.work = 'running' OR (p_work = 'done' AND o.work = 'lost')) THEN
        verdict := CASE WHEN o.work_epoch = p_epoch AND o.work = p_work THEN 'ok' ELSE 'late' END;
        RETURN;
    END IF;
    verdict := 'ok';
    IF p_work <> 'done' THEN
        PERFORM order_work_end(p_order, p_work, p_note, p_by::jsonb);
        landed := (SELECT state = 'settled' FROM authorizations WHERE id = o.authorization_id);
        RETURN;
    END IF;
    INSERT INTO answers (order_id, status, headers, body, digest) VALUES (p_order, p_status, p_headers, p_body, p_digest);
    UPDATE orders SET work = 'done', work_ended_at = now(), work_note = NULL WHERE id = p_order;
    UPDATE authorizations SET state = 'due', due_at = now() WHERE id = o.authorization_id AND state IN ('held', 'released')
    RETURNING state INTO money;
    PERFORM review_close(p_order, 'done', p_by::jsonb->>'actor', 'its answer came late', NULL);
    PERFORM debt_earned(o, p_by::jsonb);
    PERFORM event_add(p_order, p_by::jsonb, 'work_done', 'work ' || o.work, 'work done, money ' || coalesce(money, 'as it was'),
                      jsonb_build_object('status', p_status, 'digest', encode(p_digest, 'hex')));
END $$;
ALTER FUNCTION payonce.order_finish(p_order bytea, p_epoch integer, p_work text, p_note text, p_status integer, p_headers text, p_body bytea, p_digest bytea, p_by text, OUT verdict text, OUT landed boolean) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_match(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea, p_request bytea, OUT verdict text, OUT order_id bytea, OUT authorization_id bigint) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    a authorizations; by_nonce orders; by_id orders; by_quote orders; o orders;
BEGIN
    SELECT * INTO a FROM authorizations x
     WHERE x.network = p_network AND x.asset = p_asset AND x.payer = p_payer AND x.nonce = p_nonce;
    IF FOUND THEN
        authorization_id := a.id;
        SELECT * INTO by_nonce FROM orders x WHERE x.id = a.order_id;
    END IF;
    IF p_payment_id IS NOT NULL THEN
        SELECT * INTO by_id FROM orders x WHERE x.payment_id = p_payment_id;
    END IF;
    IF p_quote IS NOT NULL THEN
        SELECT * INTO by_quote FROM orders x WHERE x.quote = p_quote AND x.payer = p_payer;
    END IF;
    IF by_id.id IS NOT NULL AND by_id.payer <> p_payer THEN
        verdict := 'conflict_payer';
        RETURN;
    END IF;
    FOREACH o IN ARRAY ARRAY[by_nonce, by_id, by_quote] LOOP
        CONTINUE WHEN o.id IS NULL;
        IF o.request <> p_request OR (order_id IS NOT NULL AND order_id <> o.id) OR
           (o.payment_id IS NOT NULL AND p_payment_id IS NOT NULL AND o.payment_id <> p_payment_id) THEN
            verdict := 'conflict_request';
            order_id := NULL;
            RETURN;
        END IF;
        order_id := o.id;
    END LOOP;
    verdict := CASE WHEN order_id IS NULL THEN 'new' ELSE 'found' END;
    IF order_id IS NULL AND p_payment_id IS NULL THEN
        o := order_similar(p_payer, p_request);
        IF o.id IS NOT NULL THEN
            order_id := o.id;
            verdict := CASE WHEN o.side_effect IN ('none', 'read') THEN 'found' ELSE 'similar' END;
        END IF;
    END IF;
END $$;
ALTER FUNCTION payonce.order_match(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea, p_request bytea, OUT verdict text, OUT order_id bytea, OUT authorization_id bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_named(p_payment_id text, p_request bytea, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT network text, OUT dead_after bigint) RETURNS record
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE o record;
BEGIN
    SELECT * INTO o FROM order_status s WHERE s.payment_id = p_payment_id;
    IF o.id IS NULL OR o.request <> p_request THEN
        verdict := CASE WHEN o.id IS NULL THEN 'pay' ELSE 'conflict' END;
        RETURN;
    END IF;
    order_id := o.id;
    receipt := o.receipt;
    network := o.network;
    SELECT max(a.dead_after) INTO dead_after FROM authorizations a WHERE a.order_id = o.id AND a.ended_at IS NULL;
    verdict := CASE WHEN o.status IN ('paid', 'refund_due') THEN 'paid'
                    WHEN o.status = 'in_review' THEN 'in_review'
                    WHEN o.work = 'done' AND o.answer_status IS NULL THEN 'done_uncharged'
                    WHEN o.status = 'processing' OR dead_after IS NOT NULL THEN 'in_flight'
                    ELSE 'pay' END;
END $$;
ALTER FUNCTION payonce.order_named(p_payment_id text, p_request bytea, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT network text, OUT dead_after bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_paid_by(p_order bytea, p_authorization bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE authorizations a SET state = 'released' FROM orders o
     WHERE o.id = p_order AND a.id = o.authorization_id AND a.id <> p_authorization AND a.state IN ('held', 'due');
    UPDATE orders o SET authorization_id = a.id, network = a.network, asset = a.asset, payee = a.payee, amount = a.amount
      FROM authorizations a WHERE o.id = p_order AND a.id = p_authorization;
END $$;
ALTER FUNCTION payonce.order_paid_by(p_order bytea, p_authorization bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_similar(p_payer bytea, p_request bytea) RETURNS payonce.orders
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE found orders;
BEGIN
    SELECT o.* INTO found FROM orders o JOIN authorizations a ON a.id = o.authorization_id
     WHERE o.payer = p_payer AND o.request = p_request AND o.created_at > now() - interval '180 s'
       AND o.work IN ('running', 'waiting', 'done', 'lost') AND o.delivered_at IS NULL
       AND (o.work = 'lost' OR a.state IN ('held', 'due', 'sent', 'settled'))
     ORDER BY o.created_at DESC LIMIT 1;
    RETURN found;
END $$;
ALTER FUNCTION payonce.order_similar(p_payer bytea, p_request bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_story(p_order bytea) RETURNS json
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN (SELECT json_strip_nulls(json_build_object('order_id', order_text(s.id), 'receipt_id', 'rcp_' || encode(s.receipt, 'hex'),
           'payment_id', s.payment_id, 'status', s.status, 'work', s.work, 'money', s.money, 'tool', s.tool,
           'side_effect', s.side_effect, 'method', s.method, 'target', s.target, 'request', hex_text(s.request),
           'attempts', s.work_epoch, 'payer', hex_text(s.payer), 'payee', hex_text(s.payee), 'network', s.network,
           'asset', hex_text(s.asset), 'amount', s.amount::text, 'made_at', time_text(s.created_at),
           'work_ended_at', time_text(s.work_ended_at), 'work_note', s.work_note, 'delivered_at', time_text(s.delivered_at),
           'answer_status', s.answer_status, 'answer_size', s.answer_size,
           'events', story_events(s.id), 'events_broken', events_broken(s.id), 'authorizations', story_authorizations(s.id),
           'debts', story_debts(s.id), 'review', story_review(s.id)))
      FROM order_status s WHERE s.id = p_order);
END $$;
ALTER FUNCTION payonce.order_story(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_text(p bytea) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT 'ord_' || encode(p, 'hex'); $$;
ALTER FUNCTION payonce.order_text(p bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.order_work_end(p_order bytea, p_work text, p_note text, p_by jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE was text := (SELECT work FROM orders WHERE id = p_order); paying authorizations;
BEGIN
    UPDATE orders SET work = p_work, work_ended_at = now(), work_note = p_note WHERE id = p_order;
    UPDATE authorizations a SET state = 'released' FROM orders o
     WHERE o.id = p_order AND a.id = o.authorization_id AND a.state = 'held';
    SELECT x.* INTO paying FROM orders o JOIN authorizations x ON x.id = o.authorization_id WHERE o.id = p_order;
    IF p_work = 'lost' THEN
        INSERT INTO reviews (order_id, fact) VALUES (p_order, coalesce(p_note, 'its outcome is unknown'))
        ON CONFLICT (order_id) DO UPDATE SET fact = excluded.fact, opened_at = now(), resolved_at = NULL, resolution = NULL,
            authorization_id = NULL, resolved_by = NULL, note = NULL, external_id = NULL;
    END IF;
    PERFORM event_add(p_order, p_by, 'work_' || p_work, 'work ' || was, 'work ' || p_work || ', money ' || paying.state,
                      jsonb_build_object('why', p_note));
    IF p_work = 'failed' AND paying.state = 'settled' THEN
        PERFORM debt_book(paying, 'work_failed', p_by);
    END IF;
    PERFORM pg_notify('payonce_order', encode(p_order, 'hex'));
END $$;
ALTER FUNCTION payonce.order_work_end(p_order bytea, p_work text, p_note text, p_by jsonb) OWNER TO payonce_owner;
CREATE FUNCTION payonce.orders_by_ids(p_orders text) RETURNS SETOF payonce.order_wire
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT * FROM order_wire WHERE id IN (SELECT decode(v, 'hex') FROM jsonb_array_elements_text(p_orders::jsonb) v);
$$;
ALTER FUNCTION payonce.orders_by_ids(p_orders text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.orders_delivered(p_orders text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE orders SET delivered_at = now()
     WHERE id IN (SELECT decode(v, 'hex') FROM jsonb_array_elements_text(p_orders::jsonb) v) AND delivered_at IS NULL;
$$;
ALTER FUNCTION payonce.orders_delivered(p_orders text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.orders_named(p_what text) RETURNS SETOF bytea
    LANGUAGE plpgsql STABLE
    AS $_$
DECLARE
    h bytea := CASE WHEN p_what ~* '^0x[0-9a-f]{64}$' THEN decode(substr(p_what, 3), 'hex') END;
    i bytea := CASE WHEN p_what ~ '^(ord|rcp)_[0-9a-f]{32}$' THEN decode(substr(p_what, 5), 'hex') END;
BEGIN
    RETURN QUERY
    SELECT o.id::bytea FROM orders o WHERE o.payment_id = p_what
    UNION SELECT o.id FROM orders o WHERE o.id = i AND p_what LIKE 'ord%'
    UNION SELECT o.id FROM orders o WHERE o.receipt = i AND p_what LIKE 'rcp%'
    UNION SELECT a.order_id FROM authorizations a WHERE a.nonce = h
    UNION SELECT a.order_id FROM networks n JOIN relay_transactions t ON t.network = n.id AND t.hash = h
            JOIN relay_calls c ON c.transaction_id = t.id JOIN authorizations a ON a.id = c.authorization_id
    UNION SELECT a.order_id FROM networks n JOIN proofs p ON p.network = n.id AND p.tx = h
            JOIN authorizations a ON a.id = p.authorization_id
    UNION SELECT a.order_id FROM undone_proofs p JOIN authorizations a ON a.id = p.authorization_id WHERE p.tx = h
    UNION SELECT d.order_id FROM debts d WHERE d.id = h;
END $_$;
ALTER FUNCTION payonce.orders_named(p_what text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.orders_sweep(p_limit integer, p_by text DEFAULT NULL::text, OUT swept integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE o orders;
BEGIN
    swept := 0;
    FOR o IN SELECT * FROM orders x WHERE x.work = 'running' AND NOT lease_alive(x)
             ORDER BY x.work_until LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM order_work_end(o.id, CASE WHEN o.side_effect IN ('none', 'read') THEN 'failed' ELSE 'lost' END,
                               'the instance that ran it ended', p_by::jsonb);
        swept := swept + 1;
    END LOOP;
END $$;
ALTER FUNCTION payonce.orders_sweep(p_limit integer, p_by text, OUT swept integer) OWNER TO payonce_owner;
CREATE FUNCTION payonce.proofs_add(p_network text, p_proofs jsonb, p_by jsonb) RETURNS bigint[]
    LANGUAGE plpgsql
    AS $$
DECLARE ids bigint[]; befores text[];
BEGIN
    -- orders before authorizations, as everywhere
    PERFORM 1 FROM orders o WHERE o.id IN (SELECT a.order_id FROM authorizations a JOIN jsonb_array_elements(p_proofs) v
                                             ON a.id = (v->>'id')::bigint) ORDER BY o.id FOR NO KEY UPDATE;
    PERFORM 1 FROM authorizations a
      WHERE a.id IN (SELECT (v->>'id')::bigint FROM jsonb_array_elements(p_proofs) v) ORDER BY a.id FOR UPDATE;
    WITH made AS (
        INSERT INTO proofs (authorization_id, network, tx, log_index, block, block_hash, block_time, before)
        SELECT a.id, p_network, decode(v->>'tx', 'hex'), (v->>'log_index')::bigint, (v->>'block')::bigint,
               decode(v->>'block_hash', 'hex'), (v->>'block_time')::bigint, a.state
          FROM jsonb_array_elements(p_proofs) v JOIN authorizations a ON a.id = (v->>'id')::bigint AND a.ended_at IS NULL
        ON CONFLICT DO NOTHING RETURNING authorization_id, before)
    SELECT array_agg(authorization_id ORDER BY authorization_id), array_agg(before ORDER BY authorization_id)
      INTO ids, befores FROM made;
    UPDATE authorizations SET state = 'settled', ended_at = now() WHERE id = ANY (ids);
    PERFORM authorization_landed(x.id, p_by, x.before) FROM unnest(ids, befores) AS x(id, before)
       JOIN authorizations a ON a.id = x.id ORDER BY a.order_id, x.id;
    RETURN ids;
END $$;
ALTER FUNCTION payonce.proofs_add(p_network text, p_proofs jsonb, p_by jsonb) OWNER TO payonce_owner;
CREATE FUNCTION payonce.proofs_record(p_text text, OUT recorded integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE p jsonb := p_text::jsonb; ids bigint[]; unpaid bigint[];
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
ALTER FUNCTION payonce.proofs_record(p_text text, OUT recorded integer) OWNER TO payonce_owner;
CREATE FUNCTION payonce.reconcile(p_network text, OUT brought bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
BEGIN
    UPDATE authorizations SET next_look = now()
     WHERE network = p_network AND ended_at IS NULL AND state <> 'held' AND next_look > now()
       AND (state = 'sent' OR dead_after < extract(epoch FROM now()));
    GET DIAGNOSTICS brought = ROW_COUNT;
END $$;
ALTER FUNCTION payonce.reconcile(p_network text, OUT brought bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relay_authorizations(p_ids text) RETURNS TABLE(transaction_id bigint, id bigint, asset bytea, payer bytea, nonce bytea, payee bytea, amount text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT c.transaction_id, a.id, a.asset::bytea, a.payer::bytea, a.nonce::bytea, a.payee::bytea, a.amount::text
      FROM relay_calls c JOIN authorizations a ON a.id = c.authorization_id
     WHERE c.transaction_id = ANY (ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v)) AND a.ended_at IS NULL;
$$;
ALTER FUNCTION payonce.relay_authorizations(p_ids text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relay_broadcast(p_ids text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE relay_transactions SET state = 'broadcast', broadcast_at = now()
     WHERE id IN (SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v) AND state IN ('signed', 'broadcast');
$$;
ALTER FUNCTION payonce.relay_broadcast(p_ids text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relay_drop(p_network text, p_relayer bytea, p_account_nonce bigint, p_by text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
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
ALTER FUNCTION payonce.relay_drop(p_network text, p_relayer bytea, p_account_nonce bigint, p_by text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relay_open(p_network text, p_relayer bytea) RETURNS TABLE(id bigint, account_nonce bigint, hash bytea, raw bytea, age_s bigint, stuck_s bigint, newest boolean, gas bigint, max_fee text, max_tip text, call_to bytea, call_data bytea)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT t.id, t.account_nonce, t.hash::bytea, t.raw, extract(epoch FROM now() - t.broadcast_at)::bigint,
           extract(epoch FROM now() - t.created_at)::bigint, t.state <> 'replaced', t.gas, t.max_fee::text, t.max_tip::text,
           t.call_to::bytea, t.call_data
      FROM relay_transactions t
     WHERE t.network = p_network AND t.relayer = p_relayer AND t.state IN ('signed', 'broadcast', 'replaced')
     ORDER BY t.account_nonce, t.id;
$$;
ALTER FUNCTION payonce.relay_open(p_network text, p_relayer bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relay_replace(p_id bigint, p_owner bytea, p_epoch bigint, p_hash bytea, p_raw bytea, p_max_fee numeric, p_max_tip numeric, p_by text, OUT verdict text, OUT id bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
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
    UPDATE relay_transactions x SET state = 'replaced' WHERE x.id = p_id;
    PERFORM event_add(a.order_id, p_by::jsonb, 'fee_raised', NULL, NULL, jsonb_build_object('tx', encode(p_hash, 'hex'),
                      'account_nonce', t.account_nonce, 'instead_of', encode(t.hash, 'hex')))
       FROM relay_calls c JOIN authorizations a ON a.id = c.authorization_id WHERE c.transaction_id = p_id ORDER BY a.order_id;
    verdict := 'stored';
END $$;
ALTER FUNCTION payonce.relay_replace(p_id bigint, p_owner bytea, p_epoch bigint, p_hash bytea, p_raw bytea, p_max_fee numeric, p_max_tip numeric, p_by text, OUT verdict text, OUT id bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relay_store(p_network text, p_relayer bytea, p_owner bytea, p_epoch bigint, p_account_nonce bigint, p_hash bytea, p_raw bytea, p_gas bigint, p_max_fee numeric, p_max_tip numeric, p_call_to bytea, p_call_data bytea, p_authorizations text, p_by text DEFAULT NULL::text, OUT verdict text, OUT id bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
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
    INSERT INTO relay_transactions (network, relayer, account_nonce, hash, raw, gas, max_fee, max_tip, call_to, call_data, state)
    VALUES (p_network, p_relayer, p_account_nonce, p_hash, p_raw, p_gas, p_max_fee, p_max_tip, p_call_to, p_call_data, 'signed')
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
ALTER FUNCTION payonce.relay_store(p_network text, p_relayer bytea, p_owner bytea, p_epoch bigint, p_account_nonce bigint, p_hash bytea, p_raw bytea, p_gas bigint, p_max_fee numeric, p_max_tip numeric, p_call_to bytea, p_call_data bytea, p_authorizations text, p_by text, OUT verdict text, OUT id bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relayer_lease(p_network text, p_address bytea, p_owner bytea, p_ttl_s integer, p_chain_nonce bigint, OUT held boolean, OUT epoch bigint, OUT next_nonce bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
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
ALTER FUNCTION payonce.relayer_lease(p_network text, p_address bytea, p_owner bytea, p_ttl_s integer, p_chain_nonce bigint, OUT held boolean, OUT epoch bigint, OUT next_nonce bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.relayer_leave(p_network text, p_address bytea, p_owner bytea) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    UPDATE relayers SET until = now() WHERE network = p_network AND address = p_address AND owner = p_owner;
$$;
ALTER FUNCTION payonce.relayer_leave(p_network text, p_address bytea, p_owner bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.review_close(p_order bytea, p_resolution text, p_who text, p_note text, p_external_id text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE reviews SET resolved_at = now(), resolution = p_resolution, resolved_by = p_who, note = p_note, external_id = p_external_id
     WHERE order_id = p_order AND resolved_at IS NULL;
END $$;
ALTER FUNCTION payonce.review_close(p_order bytea, p_resolution text, p_who text, p_note text, p_external_id text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.review_list(OUT list text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
BEGIN
    SELECT coalesce(json_agg(json_strip_nulls(json_build_object('order_id', order_text(o.id), 'opened_at', time_text(r.opened_at),
           'age_s', age_s(r.opened_at), 'fact', r.fact, 'tool', o.tool, 'side_effect', o.side_effect, 'method', o.method,
           'target', o.target, 'payer', hex_text(o.payer), 'amount', o.amount::text, 'network', o.network, 'work', o.work,
           'payment_id', o.payment_id)) ORDER BY r.opened_at), '[]')::text
      INTO list FROM reviews r JOIN orders o ON o.id = r.order_id WHERE r.resolved_at IS NULL;
END $$;
ALTER FUNCTION payonce.review_list(OUT list text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.review_resolve(p_order bytea, p_resolution text, p_note text, p_external_id text, p_who text, OUT verdict text, OUT resolution text, OUT resolved_by text) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE o orders; r reviews; by_whom jsonb := jsonb_build_object('actor', 'operator:' || p_who);
BEGIN
    SELECT * INTO o FROM orders x WHERE x.id = p_order FOR NO KEY UPDATE;
    SELECT * INTO r FROM reviews x WHERE x.order_id = p_order FOR UPDATE;
    resolution := r.resolution;
    resolved_by := r.resolved_by;
    verdict := CASE WHEN o.id IS NULL THEN 'unknown'
                    WHEN r.order_id IS NULL THEN 'no_review'
                    WHEN r.resolved_at IS NULL AND o.work <> 'lost' THEN 'not_lost'
                    WHEN r.resolved_at IS NULL THEN 'resolved'
                    WHEN (r.resolution, r.resolved_by, r.note, o.work) = (p_resolution, by_whom->>'actor', p_note, p_resolution)
                         AND r.external_id IS NOT DISTINCT FROM p_external_id THEN 'resolved' -- our own commit, whose reply was lost
                    ELSE 'decided' END;
    IF verdict <> 'resolved' OR r.resolved_at IS NOT NULL THEN
        RETURN;
    ELSIF p_resolution NOT IN ('done', 'failed') THEN
        RAISE EXCEPTION 'a review ends done or failed';
    END IF;
    resolution := p_resolution;
    resolved_by := by_whom->>'actor';
    PERFORM review_close(p_order, p_resolution, by_whom->>'actor', p_note, p_external_id);
    UPDATE orders SET work = p_resolution, work_epoch = work_epoch + 1, work_ended_at = now(),
           work_note = CASE p_resolution WHEN 'done' THEN 'found to have been carried out; its answer is not known'
                                         ELSE 'found not to have been carried out' END
     WHERE id = p_order;
    PERFORM event_add(p_order, by_whom, 'review_resolved', 'work lost', 'work ' || p_resolution,
                      jsonb_build_object('note', p_note, 'external_id', p_external_id));
    IF p_resolution = 'done' THEN
        PERFORM debt_earned(o, by_whom);
    ELSE
        PERFORM debt_book(a, 'work_failed', by_whom) FROM authorizations a
          WHERE a.id = o.authorization_id AND a.state = 'settled' AND NOT EXISTS (SELECT 1 FROM debts d WHERE d.authorization_id = a.id);
    END IF;
    PERFORM pg_notify('payonce_order', encode(p_order, 'hex'));
END $$;
ALTER FUNCTION payonce.review_resolve(p_order bytea, p_resolution text, p_note text, p_external_id text, p_who text, OUT verdict text, OUT resolution text, OUT resolved_by text) OWNER TO payonce_owner;
CREATE FUNCTION payonce.same_terms(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT a.payee = p_payee AND a.amount = p_amount AND a.valid_after = p_valid_after AND a.valid_before = p_valid_before;
$$;
ALTER FUNCTION payonce.same_terms(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric) OWNER TO payonce_owner;
CREATE FUNCTION payonce.scan_cursor(p_network text, p_wallet bytea, p_start bigint, OUT block bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO scans (network, wallet, block, block_hash) VALUES (p_network, p_wallet, p_start, decode(repeat('00', 32), 'hex'))
    ON CONFLICT DO NOTHING;
    SELECT s.block INTO block FROM scans s WHERE s.network = p_network AND s.wallet = p_wallet;
END $$;
ALTER FUNCTION payonce.scan_cursor(p_network text, p_wallet bytea, p_start bigint, OUT block bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.scan_record(p_network text, p_wallet bytea, p_from bigint, p_to bigint, p_to_hash bytea, p_findings text, p_by text, OUT moved boolean) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
DECLARE f jsonb := p_findings::jsonb; proofs jsonb; ids bigint[];
BEGIN
    UPDATE scans SET block = p_to, block_hash = p_to_hash WHERE network = p_network AND wallet = p_wallet AND block = p_from;
    moved := FOUND;
    IF NOT moved THEN
        RETURN;
    END IF;
    SELECT coalesce(jsonb_agg(v || jsonb_build_object('id', a.id)), '[]') INTO proofs
      FROM jsonb_array_elements(f) v JOIN authorizations a
        ON a.network = p_network AND a.asset = decode(v->>'asset', 'hex') AND a.payer = decode(v->>'sender', 'hex')
       AND a.nonce = decode(v->>'nonce', 'hex') AND a.payee = decode(v->>'receiver', 'hex') AND a.amount = (v->>'amount')::numeric
       AND a.ended_at IS NULL;
    ids := proofs_add(p_network, proofs, p_by::jsonb);
    INSERT INTO transfers (network, tx, log_index, asset, sender, receiver, amount, block, block_hash, block_time, nonce, class)
    SELECT p_network, decode(v->>'tx', 'hex'), (v->>'log_index')::bigint, decode(v->>'asset', 'hex'), decode(v->>'sender', 'hex'),
           decode(v->>'receiver', 'hex'), (v->>'amount')::numeric, (v->>'block')::bigint, decode(v->>'block_hash', 'hex'),
           (v->>'block_time')::bigint, decode(v->>'nonce', 'hex'), 'suspense'
      FROM jsonb_array_elements(f) v ON CONFLICT DO NOTHING;
    PERFORM authorizations_notify(ids);
END $$;
ALTER FUNCTION payonce.scan_record(p_network text, p_wallet bytea, p_from bigint, p_to bigint, p_to_hash bytea, p_findings text, p_by text, OUT moved boolean) OWNER TO payonce_owner;
CREATE FUNCTION payonce.server_facts() RETURNS TABLE(schema_version integer, fsync boolean, synchronous_commit text, full_page_writes boolean, in_recovery boolean, server_version text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT (SELECT max(version) FROM migrations)::integer, current_setting('fsync')::boolean, current_setting('synchronous_commit'),
           current_setting('full_page_writes')::boolean, pg_is_in_recovery(), current_setting('server_version');
$$;
ALTER FUNCTION payonce.server_facts() OWNER TO payonce_owner;
CREATE FUNCTION payonce.signature_keep(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF same_terms(a, p_payee, p_amount, p_valid_after, p_valid_before) THEN
        RETURN;
    END IF;
    INSERT INTO other_signatures VALUES (a.id, p_payee, p_amount, p_valid_after, p_valid_before, p_signature)
    ON CONFLICT DO NOTHING;
    UPDATE authorizations SET dead_after = p_valid_before WHERE id = a.id AND dead_after < p_valid_before AND ended_at IS NULL;
    -- proven dead by its deadlines, and now there is a later one: it can land again
    UPDATE authorizations SET dead_after = p_valid_before, state = 'released', ended_at = NULL, looks = 0,
           next_look = to_timestamp(p_valid_before)
     WHERE id = a.id AND dead_after < p_valid_before AND state = 'expired';
END $$;
ALTER FUNCTION payonce.signature_keep(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.still_wanted(a payonce.authorizations) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.id = a.order_id AND o.authorization_id = a.id) THEN 'due' ELSE 'released' END;
END $$;
ALTER FUNCTION payonce.still_wanted(a payonce.authorizations) OWNER TO payonce_owner;
CREATE FUNCTION payonce.story_authorizations(p_order bytea) RETURNS json
    LANGUAGE sql STABLE
    AS $$
    SELECT json_agg(json_build_object('nonce', hex_text(a.nonce), 'state', a.state, 'pays_the_order', a.id = o.authorization_id,
           'network', a.network, 'asset', hex_text(a.asset), 'payee', hex_text(a.payee), 'amount', a.amount::text,
           'valid_before', time_text(to_timestamp(a.valid_before)), 'dead_after', time_text(to_timestamp(a.dead_after)),
           'stored_at', time_text(a.created_at), 'due_at', time_text(a.due_at), 'sent_at', time_text(a.sent_at),
           'ended_at', time_text(a.ended_at), 'why', a.end_note, 'looks', a.looks,
           'next_look', CASE WHEN a.ended_at IS NULL THEN time_text(a.next_look) END,
           'other_signatures', (SELECT nullif(count(*), 0) FROM other_signatures s WHERE s.authorization_id = a.id),
           'transactions', story_transactions(a.id), 'proofs', story_proofs(a.id)) ORDER BY a.id)
      FROM orders o JOIN authorizations a ON a.order_id = o.id WHERE o.id = p_order;
$$;
ALTER FUNCTION payonce.story_authorizations(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.story_debts(p_order bytea) RETURNS json
    LANGUAGE sql STABLE
    AS $$
    SELECT json_agg(json_build_object('debt', hex_text(id), 'cause', cause, 'state', state, 'amount', amount::text,
           'payer', hex_text(payer), 'tx', hex_text(tx), 'log_index', log_index, 'made_at', time_text(created_at)) ORDER BY created_at)
      FROM debts WHERE order_id = p_order;
$$;
ALTER FUNCTION payonce.story_debts(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.story_events(p_order bytea) RETURNS json
    LANGUAGE sql STABLE
    AS $$
    SELECT json_agg(json_build_object('seq', seq, 'at', time_text(at), 'actor', actor, 'event', event, 'before', before,
           'after', after, 'request_id', request_id, 'attempt', encode(attempt, 'hex'), 'traceparent', traceparent,
           'retry_source', retry_source, 'facts', facts) ORDER BY seq)
      FROM events WHERE order_id = p_order;
$$;
ALTER FUNCTION payonce.story_events(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.story_lock(p_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE o bytea[] := ARRAY(SELECT DISTINCT order_id::bytea FROM authorizations WHERE id = ANY (p_ids) ORDER BY 1);
BEGIN
    PERFORM 1 FROM orders WHERE id = ANY (o) ORDER BY id FOR NO KEY UPDATE;
    PERFORM 1 FROM authorizations WHERE order_id = ANY (o) ORDER BY id FOR NO KEY UPDATE;
    PERFORM pg_advisory_xact_lock(hashtextextended('events:' || encode(x, 'hex'), 0)) FROM unnest(o) x;
END $$;
ALTER FUNCTION payonce.story_lock(p_ids bigint[]) OWNER TO payonce_owner;
CREATE FUNCTION payonce.story_proofs(p_authorization bigint) RETURNS json
    LANGUAGE sql STABLE
    AS $$
    SELECT json_agg(json_build_object('tx', hex_text(tx), 'log_index', log_index, 'block', block, 'block_hash', hex_text(block_hash),
           'recorded_at', time_text(recorded_at), 'undone_at', time_text(undone_at)) ORDER BY recorded_at NULLS FIRST, undone_at)
      FROM (SELECT tx, log_index, block, block_hash, recorded_at, NULL::timestamptz AS undone_at FROM proofs
             WHERE authorization_id = p_authorization
            UNION ALL
            SELECT tx, log_index, block, block_hash, NULL, undone_at FROM undone_proofs WHERE authorization_id = p_authorization) x;
$$;
ALTER FUNCTION payonce.story_proofs(p_authorization bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.story_review(p_order bytea) RETURNS json
    LANGUAGE sql STABLE
    AS $$
    SELECT json_build_object('fact', fact, 'opened_at', time_text(opened_at), 'age_s', age_s(opened_at),
           'resolution', resolution, 'resolved_at', time_text(resolved_at), 'resolved_by', resolved_by, 'note', note,
           'external_id', external_id)
      FROM reviews WHERE order_id = p_order;
$$;
ALTER FUNCTION payonce.story_review(p_order bytea) OWNER TO payonce_owner;
CREATE FUNCTION payonce.story_transactions(p_authorization bigint) RETURNS json
    LANGUAGE sql STABLE
    AS $$
    SELECT json_agg(json_build_object('hash', hex_text(t.hash), 'state', t.state, 'relayer', hex_text(t.relayer),
           'account_nonce', t.account_nonce, 'max_fee', t.max_fee::text, 'signed_at', time_text(t.created_at),
           'broadcast_at', time_text(t.broadcast_at), 'mined_at', time_text(t.mined_at), 'block', t.block,
           'block_hash', hex_text(t.block_hash)) ORDER BY t.id)
      FROM relay_calls c JOIN relay_transactions t ON t.id = c.transaction_id WHERE c.authorization_id = p_authorization;
$$;
ALTER FUNCTION payonce.story_transactions(p_authorization bigint) OWNER TO payonce_owner;
CREATE FUNCTION payonce.time_text(p timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT to_char(p AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
$$;
ALTER FUNCTION payonce.time_text(p timestamp with time zone) OWNER TO payonce_owner;
CREATE FUNCTION payonce.transfers_known(p_network text, p_logs text) RETURNS TABLE(tx bytea, log_index bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'payonce', 'pg_temp'
    AS $$
    SELECT t.tx::bytea, t.log_index FROM jsonb_array_elements(p_logs::jsonb) v
      JOIN transfers t ON t.network = p_network AND t.tx = decode(v->>'tx', 'hex') AND t.log_index = (v->>'log_index')::bigint;
$$;
ALTER FUNCTION payonce.transfers_known(p_network text, p_logs text) OWNER TO payonce_owner;
ALTER TABLE payonce.authorizations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME payonce.authorizations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE payonce.debts (
    id payonce.hash NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    order_id payonce.public_id NOT NULL,
    authorization_id bigint NOT NULL,
    cause text NOT NULL,
    network text NOT NULL,
    asset payonce.address NOT NULL,
    payer payonce.address NOT NULL,
    amount payonce.amount NOT NULL,
    tx payonce.hash NOT NULL,
    log_index bigint NOT NULL,
    state text DEFAULT 'owed'::text NOT NULL,
    CONSTRAINT debts_cause_check CHECK ((cause = ANY (ARRAY['late'::text, 'duplicate'::text, 'work_failed'::text, 'overpaid'::text]))),
    CONSTRAINT debts_state_check CHECK ((state = ANY (ARRAY['owed'::text, 'earned'::text, 'cancelled'::text])))
);
ALTER TABLE payonce.debts OWNER TO payonce_owner;
ALTER TABLE payonce.events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME payonce.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE payonce.instances (
    id payonce.public_id NOT NULL,
    role text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    until timestamp with time zone NOT NULL,
    CONSTRAINT instances_role_check CHECK ((role = ANY (ARRAY['gateway'::text, 'settler'::text])))
);
ALTER TABLE payonce.instances OWNER TO payonce_owner;
CREATE TABLE payonce.migrations (
    version integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE payonce.migrations OWNER TO payonce_owner;
CREATE VIEW payonce.order_books AS
 SELECT order_status.id AS order_id,
    order_status.status,
    order_status.network,
    order_status.asset,
    order_status.payer,
    order_status.payee,
    order_status.amount,
    order_status.tx,
    order_status.log_index
   FROM payonce.order_status;
ALTER TABLE payonce.order_books OWNER TO payonce_owner;
CREATE TABLE payonce.other_signatures (
    authorization_id bigint NOT NULL,
    payee payonce.address NOT NULL,
    amount payonce.amount NOT NULL,
    valid_after payonce.amount NOT NULL,
    valid_before bigint NOT NULL,
    signature bytea NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE payonce.other_signatures OWNER TO payonce_owner;
ALTER TABLE payonce.relay_transactions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME payonce.relay_transactions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE payonce.relayers (
    network text NOT NULL,
    address payonce.address NOT NULL,
    next_nonce bigint DEFAULT 0 NOT NULL,
    owner payonce.public_id,
    epoch bigint DEFAULT 0 NOT NULL,
    until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
);
ALTER TABLE payonce.relayers OWNER TO payonce_owner;
CREATE TABLE payonce.scans (
    network text NOT NULL,
    wallet payonce.address NOT NULL,
    block bigint NOT NULL,
    block_hash payonce.hash NOT NULL
);
ALTER TABLE payonce.scans OWNER TO payonce_owner;
CREATE TABLE payonce.transfers (
    network text NOT NULL,
    tx payonce.hash NOT NULL,
    log_index bigint NOT NULL,
    asset payonce.address NOT NULL,
    sender payonce.address NOT NULL,
    receiver payonce.address NOT NULL,
    amount payonce.amount NOT NULL,
    block bigint NOT NULL,
    block_hash payonce.hash NOT NULL,
    block_time bigint NOT NULL,
    nonce payonce.hash,
    class text NOT NULL,
    authorization_id bigint,
    found_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT transfers_class_check CHECK ((class = ANY (ARRAY['sale'::text, 'debt'::text, 'suspense'::text])))
);
ALTER TABLE payonce.transfers OWNER TO payonce_owner;
CREATE TABLE payonce.undone_proofs (
    authorization_id bigint NOT NULL,
    network text NOT NULL,
    tx payonce.hash NOT NULL,
    log_index bigint NOT NULL,
    block bigint NOT NULL,
    block_hash payonce.hash NOT NULL,
    undone_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE payonce.undone_proofs OWNER TO payonce_owner;
COPY payonce.answers (order_id, status, headers, body, digest, stored_at) FROM stdin;
\\x1c9869a8bafc6f59fc22af4461c5480b	200	[["content-type","application/json"]]	\\x7b226d6574686f64223a22474554222c22746172676574223a222f746573742f726561643f70616964222c226b6579223a226f72645f3163393836396138626166633666353966633232616634343631633534383062222c2268656164657273223a5b22486f7374222c223132372e302e302e313a3231333739222c224964656d706f74656e63792d4b6579222c226f72645f3163393836396138626166633666353966633232616634343631633534383062222c22582d5061796572222c22307830323466433238343939646136323332353663433161453836364666654231383632323162373965222c22582d466f727761726465642d466f72222c223132372e302e302e31222c22582d526571756573742d4964222c2236633965616531353865313036663639222c227472616365706172656e74222c2230302d38636539323635663961333138306238396633303566626337636438343830632d633439613234343062343435653461642d3031225d2c22626f6479223a22227d0a	\\x68a9ded3b5d32f2bd15c2ec5eccbfd6773771104bbb11fd543da4fde1a187342	2026-11-30 12:32:39.021905+00
\\x7dd3b73e83a29604f4e9231bb589e40e	200	[["content-type","application/json"]]	\\x7b226d6574686f64223a22504f5354222c22746172676574223a222f746573742f77726974653f70616964222c226b6579223a226f72645f3764643362373365383361323936303466346539323331626235383965343065222c2268656164657273223a5b22486f7374222c223132372e302e302e313a3231333739222c224964656d706f74656e63792d4b6579222c226f72645f3764643362373365383361323936303466346539323331626235383965343065222c22582d5061796572222c22307837466230643531633138393861303438416646456245383636323061323134373539303239333041222c22582d466f727761726465642d466f72222c223132372e302e302e31222c22582d526571756573742d4964222c2266313238353733396362313736333264222c227472616365706172656e74222c2230302d63383164613165313939333863663162313831643562306636653764663638352d633664306365646535333839373533642d3031222c22436f6e74656e742d4c656e677468222c2237225d2c22626f6479223a2265794a75496a6f7866513d3d227d0a	\\xfdb8d330218cd5e7deea31911155f378961c383a6f0e51e282b68f399f578e4a	2026-11-30 12:32:39.634438+00
\\x96970b7c6db3a7e7c922a0d93beceb63	200	[["content-type","application/json"]]	\\x7b226d6574686f64223a22474554222c22746172676574223a222f746573742f726561643f647565222c226b6579223a226f72645f3936393730623763366462336137653763393232613064393362656365623633222c2268656164657273223a5b22486f7374222c223132372e302e302e313a3231333739222c224964656d706f74656e63792d4b6579222c226f72645f3936393730623763366462336137653763393232613064393362656365623633222c22582d5061796572222c22307832343266663445363038343133653631444165424232343335343633463834366335313645313834222c22582d466f727761726465642d466f72222c223132372e302e302e31222c22582d526571756573742d4964222c2236326665663835353431396332373365222c227472616365706172656e74222c2230302d63656637316137353764646534333131633830303835633330333632633634662d346666396536343632356461653832612d3031225d2c22626f6479223a22227d0a	\\xca6af6376e956dce3728b3d9379e1eb8eb4640e817d50455988fbf9476f7350e	2026-11-30 12:32:45.076745+00
\.
COPY payonce.authorizations (id, order_id, network, asset, payer, nonce, payee, amount, valid_after, valid_before, dead_after, signature, has_code, state, attempt, alone, from_block, created_at, due_at, sent_at, ended_at, end_note, claimed_until, looks, next_look, fruitless) FROM stdin;
1	\\x1c9869a8bafc6f59fc22af4461c5480b	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x024fc28499da623256cc1ae866ffeb186221b79e	\\x90d679b513f724e6d0168cd95165c0b7c01f41c0c4e5db30a903ba903bb782e8	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	0	1796042078	1796042078	\\x847a0e3120609ae7f341e4175feb5a98a463201d4f3003e2dcc5bcb322ab1c8c10e0bfd5cb60782f710d8a25d9aeb11270f11fae4fd9b07e44f5b637110a22dd1c	f	settled	\\x8d5800266d760e9f9c03f85c1a8f114b	f	16	2026-11-30 12:32:39.01202+00	2026-11-30 12:32:39.021905+00	2026-11-30 12:32:39.047397+00	2026-11-30 12:32:39.596519+00	\N	2026-11-30 12:32:49.044677+00	0	2026-11-30 12:32:41.047397+00	0
2	\\x7dd3b73e83a29604f4e9231bb589e40e	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x7fb0d51c1898a048affebe86620a21475902930a	\\xf769e425b87b73d35300f55a6ca718ab8f6d44dddb72103cddf8583c716e0df3	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	0	1796042079	1796042079	\\x4ec72b0191e05a00fd2c2c2509621fb2e0cb5111c57db8f892418336dd2b75d57fe92a8251b273bb4a6d47da0bde9bcf51d8e89631e423c8d6097a560adf187f1b	f	settled	\\x9ffa480da3506e8c08f026544449417c	f	17	2026-11-30 12:32:39.626432+00	2026-11-30 12:32:39.634438+00	2026-11-30 12:32:39.646926+00	2026-11-30 12:32:40.602506+00	\N	2026-11-30 12:32:49.644438+00	0	2026-11-30 12:32:41.646926+00	0
3	\\x4f26c5ef963de5b26cc240f1a98aeb9c	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\xeb3dd37b5010a52066120d668e70e07bb0ad6745	\\x2197f7d2369d399cecadb22456be3a2902a043a137e23093eed81c830dd94091	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	0	1796042080	1796042080	\\x853569f528fc6b3703d59f6b89cac1de8bb4a928eecdd61cf9943297ad188ae304b634fa0b88dce645f5a52c0514585b518b96d5948805f44abb99d7d4f14f721b	f	released	\\x4d057ab33e2294f393576da9e71a9ce4	f	19	2026-11-30 12:32:40.616087+00	\N	\N	\N	\N	-infinity	0	2026-11-30 12:34:40+00	0
5	\\xbabc4970bed38f78e723cd64852f55fa	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x9ff60443f0a795ff344755d8746228a28cf6d913	\\x4a0d16fedd8b9c301bc210a7b6dcf6ac6bcf9e7b0959b9eb2fe9e38add74d371	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	0	1796042080	1796042080	\\xe36986f8c0024eb94de94f19615b8c5c422cd6965650dc4b388e50810bce0abd7fbe979f2e36d0a0e4dd2c8a0a76033543383dffc65e6dcd577cebd25b9c3b071c	f	released	\\xb18739295612615bc643940e132412d6	f	19	2026-11-30 12:32:40.653497+00	\N	\N	\N	\N	-infinity	0	2026-11-30 12:34:40+00	0
4	\\x255b9347cdbeaaa862431afeb8d57c86	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x11adf2d8d7d4ed2d157d2acbbdac75b9ed251b99	\\x04ed87d44adaa6625174371ee6fab71a0147c54ba26649a2d7fa44a6eb748b47	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	0	1796042080	1796042080	\\x748cc352e1a4c06721c14abdae606a8782f115442d8259c11aff3dddeeb5c6cb4f84478250991e462400a03719783be5c7bacc5d8ce76fb6cc4dbcc0d402ba6f1b	f	settled	\\x56613f74a464a33c95e8ff16436e1f5e	f	19	2026-11-30 12:32:40.630421+00	\N	\N	2026-11-30 12:32:42.957878+00	\N	-infinity	0	2026-11-30 12:34:40+00	0
6	\\x96970b7c6db3a7e7c922a0d93beceb63	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x242ff4e608413e61daebb2435463f846c516e184	\\x57b41f4680701c56dda7751ac677c4dc4087bf85f4e3506865d169170e5ffd6a	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	0	1796042085	1796042085	\\xbd718bd8023bf3a660658c8a4447022329e5dd66706062a0513041c9a6ae03d6797aa58148cadf252601ffaae7d533f6d05ef0ad565a4810316d34e2f276312a1c	f	due	\\x57ff5b6bb3106784c7ff0e25314930df	f	29	2026-11-30 12:32:45.07469+00	2026-11-30 12:32:45.076745+00	\N	\N	\N	-infinity	0	2026-11-30 12:34:45+00	0
\.
COPY payonce.debts (id, created_at, order_id, authorization_id, cause, network, asset, payer, amount, tx, log_index, state) FROM stdin;
\\x276b5d78d303812f34a09331c13985350783cc48860eccdf1a9cce14bd1c2fd8	2026-11-30 12:32:42.957878+00	\\x255b9347cdbeaaa862431afeb8d57c86	4	late	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x11adf2d8d7d4ed2d157d2acbbdac75b9ed251b99	1000	\\xc8091685fc79febd4c6fab545adaacc965f97a1c9bf82efae2cbe0c50b90a077	1	owed
\.
COPY payonce.events (id, order_id, seq, at, actor, event, before, after, request_id, attempt, traceparent, retry_source, facts, previous, hash) FROM stdin;
1	\\x1c9869a8bafc6f59fc22af4461c5480b	1	2026-11-30 12:32:39.01555+00	gateway:12a3053b	accepted	\N	work running, money held	6c9eae158e106f69	\\x8d5800266d760e9f9c03f85c1a8f114b	\N	\N	{"tool": "test read", "nonce": "90d679b513f724e6d0168cd95165c0b7c01f41c0c4e5db30a903ba903bb782e8", "amount": "1000", "valid_before": 1796042078}	\N	\\xc557d723b3ee41528c959ee9d13424c513bc7a3956b0b832caefb81d0a635f7f
2	\\x1c9869a8bafc6f59fc22af4461c5480b	2	2026-11-30 12:32:39.02735+00	gateway:12a3053b	work_done	work running	work done, money due	6c9eae158e106f69	\N	\N	\N	{"digest": "68a9ded3b5d32f2bd15c2ec5eccbfd6773771104bbb11fd543da4fde1a187342", "status": 200}	\\xc557d723b3ee41528c959ee9d13424c513bc7a3956b0b832caefb81d0a635f7f	\\xa0e7b052b5f2840729b5b964188f5b3c09bd714f771b16dde9f978132464490c
3	\\x1c9869a8bafc6f59fc22af4461c5480b	3	2026-11-30 12:32:39.049703+00	settler:266ebd7d	sent	money due	money sent	\N	\N	\N	\N	{"tx": "55f07340e23b702fdce1f5548fa95c370954552d5166bcd5bca2caa0db3d27f8", "account_nonce": 0}	\\xa0e7b052b5f2840729b5b964188f5b3c09bd714f771b16dde9f978132464490c	\\xd529dfa099400538cca515dffbd80fbd0bb0dbdfd2e296ab781de063bfd7c76a
4	\\x1c9869a8bafc6f59fc22af4461c5480b	4	2026-11-30 12:32:39.599246+00	settler:266ebd7d	settled	money sent	money settled	\N	\N	\N	\N	{"tx": "55f07340e23b702fdce1f5548fa95c370954552d5166bcd5bca2caa0db3d27f8", "block": 17, "nonce": "90d679b513f724e6d0168cd95165c0b7c01f41c0c4e5db30a903ba903bb782e8", "log_index": 1}	\\xd529dfa099400538cca515dffbd80fbd0bb0dbdfd2e296ab781de063bfd7c76a	\\xe20f847db11f60d067188f3b14c37d0d0ed2c48b3a8bc832137011a2f31b33e1
5	\\x7dd3b73e83a29604f4e9231bb589e40e	1	2026-11-30 12:32:39.62744+00	gateway:12a3053b	accepted	\N	work running, money held	f1285739cb17632d	\\x9ffa480da3506e8c08f026544449417c	\N	\N	{"tool": "test write", "nonce": "f769e425b87b73d35300f55a6ca718ab8f6d44dddb72103cddf8583c716e0df3", "amount": "1000", "valid_before": 1796042079}	\N	\\x8a9483c872aed4d0ce804fc82c48db5f8649c45b80ffe2e0fbc5873502856856
6	\\x7dd3b73e83a29604f4e9231bb589e40e	2	2026-11-30 12:32:39.634939+00	gateway:12a3053b	work_done	work running	work done, money due	f1285739cb17632d	\N	\N	\N	{"digest": "fdb8d330218cd5e7deea31911155f378961c383a6f0e51e282b68f399f578e4a", "status": 200}	\\x8a9483c872aed4d0ce804fc82c48db5f8649c45b80ffe2e0fbc5873502856856	\\xfc5858176d04f01943a048195bae9ff24e95ad9c39b00755d12b29911537dd90
7	\\x7dd3b73e83a29604f4e9231bb589e40e	3	2026-11-30 12:32:39.647535+00	settler:266ebd7d	sent	money due	money sent	\N	\N	\N	\N	{"tx": "bbaabdb19676cfa0caa7686891ba01c488eead1313d07a01e3cca4205c3581f1", "account_nonce": 1}	\\xfc5858176d04f01943a048195bae9ff24e95ad9c39b00755d12b29911537dd90	\\x249e366c772769a87b5d7fe0e7bacd39821d3dda2bcd8aecdeb31e1fde5a9d4c
8	\\x7dd3b73e83a29604f4e9231bb589e40e	4	2026-11-30 12:32:40.603604+00	settler:266ebd7d	settled	money sent	money settled	\N	\N	\N	\N	{"tx": "bbaabdb19676cfa0caa7686891ba01c488eead1313d07a01e3cca4205c3581f1", "block": 19, "nonce": "f769e425b87b73d35300f55a6ca718ab8f6d44dddb72103cddf8583c716e0df3", "log_index": 1}	\\x249e366c772769a87b5d7fe0e7bacd39821d3dda2bcd8aecdeb31e1fde5a9d4c	\\x69595ddb279805e0dda0689c21d6cdd8a894014970ebd8fbba9955879876f477
9	\\x4f26c5ef963de5b26cc240f1a98aeb9c	1	2026-11-30 12:32:40.616867+00	gateway:12a3053b	accepted	\N	work running, money held	036ef92029bb985d	\\x4d057ab33e2294f393576da9e71a9ce4	\N	\N	{"tool": "test read", "nonce": "2197f7d2369d399cecadb22456be3a2902a043a137e23093eed81c830dd94091", "amount": "1000", "valid_before": 1796042080}	\N	\\xfe8160e83abc3c6a847e9bbe081fb52fa6824c9613822f5f3345c509a556aada
10	\\x4f26c5ef963de5b26cc240f1a98aeb9c	2	2026-11-30 12:32:40.619155+00	gateway:12a3053b	work_failed	work running	work failed, money released	036ef92029bb985d	\N	\N	\N	{}	\\xfe8160e83abc3c6a847e9bbe081fb52fa6824c9613822f5f3345c509a556aada	\\xec884cea837f0bc9212f34b366c62c7dc551b1fcbbf18376bad5600449c003f6
11	\\x255b9347cdbeaaa862431afeb8d57c86	1	2026-11-30 12:32:40.631179+00	gateway:12a3053b	accepted	\N	work running, money held	23efd31b8fa3d2ed	\\x56613f74a464a33c95e8ff16436e1f5e	\N	\N	{"tool": "test read", "nonce": "04ed87d44adaa6625174371ee6fab71a0147c54ba26649a2d7fa44a6eb748b47", "amount": "1000", "valid_before": 1796042080}	\N	\\xa6940854683448e3a787fccbab3caae8bf8d70dd74cf616dc0cb4d74e759fb5c
12	\\x255b9347cdbeaaa862431afeb8d57c86	2	2026-11-30 12:32:40.639572+00	gateway:12a3053b	work_failed	work running	work failed, money released	23efd31b8fa3d2ed	\N	\N	\N	{}	\\xa6940854683448e3a787fccbab3caae8bf8d70dd74cf616dc0cb4d74e759fb5c	\\xaa92ca2a9464efcfd9434096e264c97421b8aba75f509e925006282809419798
13	\\xbabc4970bed38f78e723cd64852f55fa	1	2026-11-30 12:32:40.654539+00	gateway:12a3053b	accepted	\N	work running, money held	07434a3f48ed51b9	\\xb18739295612615bc643940e132412d6	\N	\N	{"tool": "test write", "nonce": "4a0d16fedd8b9c301bc210a7b6dcf6ac6bcf9e7b0959b9eb2fe9e38add74d371", "amount": "1000", "valid_before": 1796042080}	\N	\\x2b48aecc888674688e464ca95d27c6eecbb1d007b51fb54d406c1eea0abd653c
14	\\xbabc4970bed38f78e723cd64852f55fa	2	2026-11-30 12:32:40.667667+00	gateway:12a3053b	work_lost	work running	work lost, money released	07434a3f48ed51b9	\N	\N	\N	{"why": ""}	\\x2b48aecc888674688e464ca95d27c6eecbb1d007b51fb54d406c1eea0abd653c	\\x20a32eec3b2636d3cda9c50c779c39ab89c29198e666d193028bee398b6d88ad
15	\\x255b9347cdbeaaa862431afeb8d57c86	3	2026-11-30 12:32:42.959308+00	settler:266ebd7d	settled	money released	money settled	\N	\N	\N	\N	{"tx": "c8091685fc79febd4c6fab545adaacc965f97a1c9bf82efae2cbe0c50b90a077", "block": 23, "nonce": "04ed87d44adaa6625174371ee6fab71a0147c54ba26649a2d7fa44a6eb748b47", "log_index": 1}	\\xaa92ca2a9464efcfd9434096e264c97421b8aba75f509e925006282809419798	\\x8343bf34281a1f2da37219ae61dfd9b9e59c1587491a590341c4fc8ec4084eda
16	\\x255b9347cdbeaaa862431afeb8d57c86	4	2026-11-30 12:32:42.960432+00	settler:266ebd7d	debt_owed	\N	owed	\N	\N	\N	\N	{"debt": "276b5d78d303812f34a09331c13985350783cc48860eccdf1a9cce14bd1c2fd8", "cause": "late", "amount": "1000"}	\\x8343bf34281a1f2da37219ae61dfd9b9e59c1587491a590341c4fc8ec4084eda	\\xcf1a9c9e064ab08a678f2673f2189f52649ff9e3efaa46fbc21e170b393287fe
17	\\x96970b7c6db3a7e7c922a0d93beceb63	1	2026-11-30 12:32:45.0754+00	gateway:12a3053b	accepted	\N	work running, money held	62fef855419c273e	\\x57ff5b6bb3106784c7ff0e25314930df	\N	\N	{"tool": "test read", "nonce": "57b41f4680701c56dda7751ac677c4dc4087bf85f4e3506865d169170e5ffd6a", "amount": "1000", "valid_before": 1796042085}	\N	\\xec5f90dcad9e7093b35f32537b3f6abe034a15593db684b3740dd27e24db8709
18	\\x96970b7c6db3a7e7c922a0d93beceb63	2	2026-11-30 12:32:45.077172+00	gateway:12a3053b	work_done	work running	work done, money due	62fef855419c273e	\N	\N	\N	{"digest": "ca6af6376e956dce3728b3d9379e1eb8eb4640e817d50455988fbf9476f7350e", "status": 200}	\\xec5f90dcad9e7093b35f32537b3f6abe034a15593db684b3740dd27e24db8709	\\x10cb7024b8c833abdbc079ea25cf1a6b90fb7a96b806c65cbba765c9dcd49c02
19	\\x96970b7c6db3a7e7c922a0d93beceb63	3	2026-11-30 12:33:15.275118+00	gateway:12a3053b	told_in_flight	\N	\N	62fef855419c273e	\N	\N	\N	{}	\\x10cb7024b8c833abdbc079ea25cf1a6b90fb7a96b806c65cbba765c9dcd49c02	\\x6c96ac6ff917040eaccb62df47e37c2c4e42b152d51b86850e2a4e9bc21c2987
\.
COPY payonce.instances (id, role, started_at, until) FROM stdin;
\\x12a3053ba0f7055619e3adfcdb9c540e	gateway	2026-11-30 12:32:38.907932+00	2026-11-30 12:33:15.39452+00
\.
COPY payonce.migrations (version, name, sha256, applied_at) FROM stdin;
1	0001-base.sql	aadb46c5896e98686f9c214ea8eda329b1686eb2a14644a617db7aff5592beae	2026-11-30 12:32:38.662025+00
2	0002-never-twice.sql	2c0315dd8a2ad4e47b099df614a4da3b611fedf5e0f4d81fc6ac9122898f7fda	2026-11-30 12:32:38.698818+00
0	functions, views, grants	b653b35e2df838d0f6d04de8dacb11f590e97f9f3460146f03b01609191bc16c	2026-11-30 12:32:38.727403+00
\.
COPY payonce.networks (id, genesis, head, head_hash, head_time, final, final_hash, final_time, seen_at, gas_balance) FROM stdin;
eip155:84532	\\xbdf3febae66226de03b5f8c9e31e897601f60dd6325b7c776768408d64e0f55b	29	\\xd8472659787df2a554686f45617aaab0af52a178d400be1697eb6b3b37935015	1796041964	27	\\x3dc17c54eafd3587a302d93e3da549a6b15a0e1eb9a7052ae1d8f6b881d74593	1796041963	2026-11-30 12:32:44.639342+00	99999789991587509488
\.
COPY payonce.orders (id, receipt, created_at, rail, wire_version, tool, side_effect, cacheable, idempotent, method, target, request, payment_id, quote, payer, network, asset, payee, amount, work, work_epoch, work_by, work_until, work_began_at, work_ended_at, work_note, authorization_id, delivered_at) FROM stdin;
\\x1c9869a8bafc6f59fc22af4461c5480b	\\xc66f14bf24656be79dbea1a631360324	2026-11-30 12:32:39.01202+00	x402	2	test read	read	f	f	GET	/test/read?paid	\\x41e031e3eaa7a0c1b7a75421ae74289465aab98ac69fa3decd26432f35df5ab6	a-call-that-was-paid-for	\\x418f37856a4b959d9569ffd2b02f0c62	\\x024fc28499da623256cc1ae866ffeb186221b79e	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	done	1	\\x12a3053ba0f7055619e3adfcdb9c540e	2026-11-30 12:34:29.01202+00	2026-11-30 12:32:39.01202+00	2026-11-30 12:32:39.021905+00	\N	1	2026-11-30 12:32:39.628458+00
\\x4f26c5ef963de5b26cc240f1a98aeb9c	\\x1c555fd909f5ac48f155040c57c6ee22	2026-11-30 12:32:40.616087+00	x402	2	test read	read	f	f	GET	/test/read?status=404	\\xccfde9a5d6ea795cb29569f2ceb887f8d4b2a12a377dabaab3491c637ffb1d64	\N	\\xe95ed6a60016bd4ef0fcb6a6c8c350a9	\\xeb3dd37b5010a52066120d668e70e07bb0ad6745	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	failed	1	\\x12a3053ba0f7055619e3adfcdb9c540e	2026-11-30 12:34:30.616087+00	2026-11-30 12:32:40.616087+00	2026-11-30 12:32:40.618432+00	\N	3	\N
\\x7dd3b73e83a29604f4e9231bb589e40e	\\x6de55f5dd05ec9d9c5713c906b8f2707	2026-11-30 12:32:39.626432+00	x402	2	test write	write	f	f	POST	/test/write?paid	\\xc393d0e1652f4c51439174cf1ba95f7671d5f37632db49675d63d2b503859c07	\N	\\xc9a9968941651a53e9c127d96cbb47d5	\\x7fb0d51c1898a048affebe86620a21475902930a	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	done	1	\\x12a3053ba0f7055619e3adfcdb9c540e	2026-11-30 12:34:29.626432+00	2026-11-30 12:32:39.626432+00	2026-11-30 12:32:39.634438+00	\N	2	2026-11-30 12:32:40.625607+00
\\x255b9347cdbeaaa862431afeb8d57c86	\\x54e56fcb85decffb4f39886dc3f2263f	2026-11-30 12:32:40.630421+00	x402	2	test read	read	f	f	GET	/test/read?status=404&late	\\x9623c1954c44f1545571530ce321b27ff9da2b761aab79a8ad96fb2902a7aa50	\N	\\xff3dcf382b3755e86971741bec7d860e	\\x11adf2d8d7d4ed2d157d2acbbdac75b9ed251b99	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	failed	1	\\x12a3053ba0f7055619e3adfcdb9c540e	2026-11-30 12:34:30.630421+00	2026-11-30 12:32:40.630421+00	2026-11-30 12:32:40.638991+00	\N	4	\N
\\xbabc4970bed38f78e723cd64852f55fa	\\x3a10472bc60da47a7032681d38732a24	2026-11-30 12:32:40.653497+00	x402	2	test write	write	f	f	POST	/test/write?reset=1	\\x0f507f9976762007accd85f301140d8ca5b5c257d6474b24a4ce8b9fb8f8f189	\N	\\x953c32a7a246b3d3bb93f0693e328125	\\x9ff60443f0a795ff344755d8746228a28cf6d913	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	lost	1	\\x12a3053ba0f7055619e3adfcdb9c540e	2026-11-30 12:34:30.653497+00	2026-11-30 12:32:40.653497+00	2026-11-30 12:32:40.66618+00		5	\N
\\x96970b7c6db3a7e7c922a0d93beceb63	\\x6aa60952f2942881c43b19f000e4a5e8	2026-11-30 12:32:45.07469+00	x402	2	test read	read	f	f	GET	/test/read?due	\\xc24e423454ef0dff007b582d5a8fa7acdb2165a93791df1448ce99b3b99428bc	\N	\\xece7f6ce56e3adb121cc21c34e0c795e	\\x242ff4e608413e61daebb2435463f846c516e184	eip155:84532	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	done	1	\\x12a3053ba0f7055619e3adfcdb9c540e	2026-11-30 12:34:35.07469+00	2026-11-30 12:32:45.07469+00	2026-11-30 12:32:45.076745+00	\N	6	\N
\.
COPY payonce.other_signatures (authorization_id, payee, amount, valid_after, valid_before, signature, seen_at) FROM stdin;
\.
COPY payonce.proofs (authorization_id, network, tx, log_index, block, block_hash, block_time, recorded_at, before) FROM stdin;
1	eip155:84532	\\x55f07340e23b702fdce1f5548fa95c370954552d5166bcd5bca2caa0db3d27f8	1	17	\\x8c618a309a702380b1acf76a67cb1093e1f1fb9e942edf10ad6d02994940d41f	1796041959	2026-11-30 12:32:39.596519+00	sent
2	eip155:84532	\\xbbaabdb19676cfa0caa7686891ba01c488eead1313d07a01e3cca4205c3581f1	1	19	\\x3dc894339efd5dafc4decf5e5b531987d729eb55d1c91aaf9ae932abce58a9d1	1796041960	2026-11-30 12:32:40.602506+00	sent
4	eip155:84532	\\xc8091685fc79febd4c6fab545adaacc965f97a1c9bf82efae2cbe0c50b90a077	1	23	\\x13d449d9bd5c6f7d40bd70b51c742d24757a489c8e25979574f566a24743bcf4	1796041960	2026-11-30 12:32:42.957878+00	released
\.
COPY payonce.relay_calls (transaction_id, authorization_id) FROM stdin;
1	1
2	2
\.
COPY payonce.relay_transactions (id, network, relayer, account_nonce, hash, raw, gas, max_fee, max_tip, state, created_at, broadcast_at, mined_at, block, block_hash, call_to, call_data) FROM stdin;
1	eip155:84532	\\x205e620462bca8737f1a87f3565db5990dacbafd	0	\\x55f07340e23b702fdce1f5548fa95c370954552d5166bcd5bca2caa0db3d27f8	\\x02f9019483014a3480843b9aca00844cf6e30c8301fb8394036cbd53842c5426634e7929541ec2318f3dcf7e80b90124e3ee160e000000000000000000000000024fc28499da623256cc1ae866ffeb186221b79e000000000000000000000000233d4b9aac46464a1b05512f093e1ca2ab3be04100000000000000000000000000000000000000000000000000000000000003e80000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000006b0d6d5e90d679b513f724e6d0168cd95165c0b7c01f41c0c4e5db30a903ba903bb782e8000000000000000000000000000000000000000000000000000000000000001c847a0e3120609ae7f341e4175feb5a98a463201d4f3003e2dcc5bcb322ab1c8c10e0bfd5cb60782f710d8a25d9aeb11270f11fae4fd9b07e44f5b637110a22ddc080a0a0c4fa40b1d68b2d6a23c2dc5c8e9fd967d398842c3a5491cd28705d0184818fa032783a3ebd56277661e99ed4f8be88128d5b18070aa0c53fb378c6ef793e1a1f	129923	1291248396	1000000000	final	2026-11-30 12:32:39.047397+00	2026-11-30 12:32:39.051892+00	2026-11-30 12:32:39.596519+00	17	\\x8c618a309a702380b1acf76a67cb1093e1f1fb9e942edf10ad6d02994940d41f	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\xe3ee160e000000000000000000000000024fc28499da623256cc1ae866ffeb186221b79e000000000000000000000000233d4b9aac46464a1b05512f093e1ca2ab3be04100000000000000000000000000000000000000000000000000000000000003e80000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000006b0d6d5e90d679b513f724e6d0168cd95165c0b7c01f41c0c4e5db30a903ba903bb782e8000000000000000000000000000000000000000000000000000000000000001c847a0e3120609ae7f341e4175feb5a98a463201d4f3003e2dcc5bcb322ab1c8c10e0bfd5cb60782f710d8a25d9aeb11270f11fae4fd9b07e44f5b637110a22dd
2	eip155:84532	\\x205e620462bca8737f1a87f3565db5990dacbafd	1	\\xbbaabdb19676cfa0caa7686891ba01c488eead1313d07a01e3cca4205c3581f1	\\x02f9019483014a3401843b9aca00844acb5fec8301a67994036cbd53842c5426634e7929541ec2318f3dcf7e80b90124e3ee160e0000000000000000000000007fb0d51c1898a048affebe86620a21475902930a000000000000000000000000233d4b9aac46464a1b05512f093e1ca2ab3be04100000000000000000000000000000000000000000000000000000000000003e80000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000006b0d6d5ff769e425b87b73d35300f55a6ca718ab8f6d44dddb72103cddf8583c716e0df3000000000000000000000000000000000000000000000000000000000000001b4ec72b0191e05a00fd2c2c2509621fb2e0cb5111c57db8f892418336dd2b75d57fe92a8251b273bb4a6d47da0bde9bcf51d8e89631e423c8d6097a560adf187fc080a06b8983c659b5d43052418f43964e2259a4f7c26f53b531f456974b36c9549324a028e2fd5b57c25249cd2a40390ef0cb6e8fe6c48f82fc6cd343c8a707e4a841c6	108153	1254842348	1000000000	final	2026-11-30 12:32:39.646926+00	2026-11-30 12:32:39.648314+00	2026-11-30 12:32:40.602506+00	19	\\x3dc894339efd5dafc4decf5e5b531987d729eb55d1c91aaf9ae932abce58a9d1	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\xe3ee160e0000000000000000000000007fb0d51c1898a048affebe86620a21475902930a000000000000000000000000233d4b9aac46464a1b05512f093e1ca2ab3be04100000000000000000000000000000000000000000000000000000000000003e80000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000006b0d6d5ff769e425b87b73d35300f55a6ca718ab8f6d44dddb72103cddf8583c716e0df3000000000000000000000000000000000000000000000000000000000000001b4ec72b0191e05a00fd2c2c2509621fb2e0cb5111c57db8f892418336dd2b75d57fe92a8251b273bb4a6d47da0bde9bcf51d8e89631e423c8d6097a560adf187f
\.
COPY payonce.relayers (network, address, next_nonce, owner, epoch, until) FROM stdin;
eip155:84532	\\x205e620462bca8737f1a87f3565db5990dacbafd	2	\\x266ebd7df026857be59335540836cf6f	1	2026-11-30 12:32:45.055067+00
\.
COPY payonce.reviews (order_id, opened_at, fact, authorization_id, resolved_at, resolution, resolved_by, note, external_id) FROM stdin;
\\xbabc4970bed38f78e723cd64852f55fa	2026-11-30 12:32:40.66618+00		\N	\N	\N	\N	\N	\N
\.
COPY payonce.scans (network, wallet, block, block_hash) FROM stdin;
eip155:84532	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	27	\\x3dc17c54eafd3587a302d93e3da549a6b15a0e1eb9a7052ae1d8f6b881d74593
\.
COPY payonce.transfers (network, tx, log_index, asset, sender, receiver, amount, block, block_hash, block_time, nonce, class, authorization_id, found_at) FROM stdin;
eip155:84532	\\x55f07340e23b702fdce1f5548fa95c370954552d5166bcd5bca2caa0db3d27f8	1	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x024fc28499da623256cc1ae866ffeb186221b79e	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	17	\\x8c618a309a702380b1acf76a67cb1093e1f1fb9e942edf10ad6d02994940d41f	1796041959	\\x90d679b513f724e6d0168cd95165c0b7c01f41c0c4e5db30a903ba903bb782e8	sale	1	2026-11-30 12:32:39.596519+00
eip155:84532	\\xbbaabdb19676cfa0caa7686891ba01c488eead1313d07a01e3cca4205c3581f1	1	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x7fb0d51c1898a048affebe86620a21475902930a	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	19	\\x3dc894339efd5dafc4decf5e5b531987d729eb55d1c91aaf9ae932abce58a9d1	1796041960	\\xf769e425b87b73d35300f55a6ca718ab8f6d44dddb72103cddf8583c716e0df3	sale	2	2026-11-30 12:32:40.602506+00
eip155:84532	\\xc8091685fc79febd4c6fab545adaacc965f97a1c9bf82efae2cbe0c50b90a077	1	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x11adf2d8d7d4ed2d157d2acbbdac75b9ed251b99	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	1000	23	\\x13d449d9bd5c6f7d40bd70b51c742d24757a489c8e25979574f566a24743bcf4	1796041960	\\x04ed87d44adaa6625174371ee6fab71a0147c54ba26649a2d7fa44a6eb748b47	debt	4	2026-11-30 12:32:42.957878+00
eip155:84532	\\x4615ab64ca868f2c990f3cfbbb17b2d1630a6173d7de3ee3be224b72bcd4891a	0	\\x036cbd53842c5426634e7929541ec2318f3dcf7e	\\x9af23805aa206e14b786b6552e20baa462ec5cd8	\\x233d4b9aac46464a1b05512f093e1ca2ab3be041	7000	27	\\x3dc17c54eafd3587a302d93e3da549a6b15a0e1eb9a7052ae1d8f6b881d74593	1796041963	\N	suspense	\N	2026-11-30 12:32:44.970489+00
\.
COPY payonce.undone_proofs (authorization_id, network, tx, log_index, block, block_hash, undone_at) FROM stdin;
\.
SELECT pg_catalog.setval('payonce.authorizations_id_seq', 6, true);
SELECT pg_catalog.setval('payonce.events_id_seq', 19, true);
SELECT pg_catalog.setval('payonce.relay_transactions_id_seq', 2, true);
ALTER TABLE ONLY payonce.answers
    ADD CONSTRAINT answers_pkey PRIMARY KEY (order_id);
ALTER TABLE ONLY payonce.authorizations
    ADD CONSTRAINT authorizations_network_asset_payer_nonce_key UNIQUE (network, asset, payer, nonce);
ALTER TABLE ONLY payonce.authorizations
    ADD CONSTRAINT authorizations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payonce.debts
    ADD CONSTRAINT debts_authorization_id_key UNIQUE (authorization_id);
ALTER TABLE ONLY payonce.debts
    ADD CONSTRAINT debts_network_tx_log_index_key UNIQUE (network, tx, log_index);
ALTER TABLE ONLY payonce.debts
    ADD CONSTRAINT debts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payonce.events
    ADD CONSTRAINT events_order_id_seq_key UNIQUE (order_id, seq);
ALTER TABLE ONLY payonce.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payonce.instances
    ADD CONSTRAINT instances_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payonce.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY payonce.networks
    ADD CONSTRAINT networks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payonce.orders
    ADD CONSTRAINT orders_payment_id_key UNIQUE (payment_id);
ALTER TABLE ONLY payonce.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payonce.orders
    ADD CONSTRAINT orders_quote_payer_key UNIQUE (quote, payer);
ALTER TABLE ONLY payonce.orders
    ADD CONSTRAINT orders_receipt_key UNIQUE (receipt);
ALTER TABLE ONLY payonce.other_signatures
    ADD CONSTRAINT other_signatures_pkey PRIMARY KEY (authorization_id, signature);
ALTER TABLE ONLY payonce.proofs
    ADD CONSTRAINT proofs_network_tx_log_index_key UNIQUE (network, tx, log_index);
ALTER TABLE ONLY payonce.proofs
    ADD CONSTRAINT proofs_pkey PRIMARY KEY (authorization_id);
ALTER TABLE ONLY payonce.relay_calls
    ADD CONSTRAINT relay_calls_pkey PRIMARY KEY (transaction_id, authorization_id);
ALTER TABLE ONLY payonce.relay_transactions
    ADD CONSTRAINT relay_transactions_network_hash_key UNIQUE (network, hash);
ALTER TABLE ONLY payonce.relay_transactions
    ADD CONSTRAINT relay_transactions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY payonce.relayers
    ADD CONSTRAINT relayers_pkey PRIMARY KEY (network, address);
ALTER TABLE ONLY payonce.reviews
    ADD CONSTRAINT reviews_pkey PRIMARY KEY (order_id);
ALTER TABLE ONLY payonce.scans
    ADD CONSTRAINT scans_pkey PRIMARY KEY (network, wallet);
ALTER TABLE ONLY payonce.transfers
    ADD CONSTRAINT transfers_pkey PRIMARY KEY (network, tx, log_index);
CREATE INDEX authorizations_due ON payonce.authorizations USING btree (network, due_at) WHERE (state = 'due'::text);
CREATE INDEX authorizations_look ON payonce.authorizations USING btree (network, next_look) WHERE (ended_at IS NULL);
CREATE INDEX authorizations_order ON payonce.authorizations USING btree (order_id);
CREATE INDEX orders_payer ON payonce.orders USING btree (payer, request, created_at);
CREATE INDEX orders_running ON payonce.orders USING btree (work_until) WHERE (work = 'running'::text);
CREATE INDEX proofs_block ON payonce.proofs USING btree (network, block);
CREATE INDEX relay_calls_authorization ON payonce.relay_calls USING btree (authorization_id);
CREATE INDEX relay_open ON payonce.relay_transactions USING btree (network, relayer, account_nonce) WHERE (state = ANY (ARRAY['signed'::text, 'broadcast'::text]));
CREATE INDEX relay_unfinal ON payonce.relay_transactions USING btree (network, block) WHERE (state = 'mined'::text);
ALTER TABLE ONLY payonce.answers
    ADD CONSTRAINT answers_order_id_fkey FOREIGN KEY (order_id) REFERENCES payonce.orders(id);
ALTER TABLE ONLY payonce.authorizations
    ADD CONSTRAINT authorizations_network_fkey FOREIGN KEY (network) REFERENCES payonce.networks(id);
ALTER TABLE ONLY payonce.authorizations
    ADD CONSTRAINT authorizations_order_id_fkey FOREIGN KEY (order_id) REFERENCES payonce.orders(id);
ALTER TABLE ONLY payonce.debts
    ADD CONSTRAINT debts_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id);
ALTER TABLE ONLY payonce.debts
    ADD CONSTRAINT debts_order_id_fkey FOREIGN KEY (order_id) REFERENCES payonce.orders(id);
ALTER TABLE ONLY payonce.events
    ADD CONSTRAINT events_order_id_fkey FOREIGN KEY (order_id) REFERENCES payonce.orders(id);
ALTER TABLE ONLY payonce.orders
    ADD CONSTRAINT orders_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY payonce.orders
    ADD CONSTRAINT orders_network_fkey FOREIGN KEY (network) REFERENCES payonce.networks(id);
ALTER TABLE ONLY payonce.other_signatures
    ADD CONSTRAINT other_signatures_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id);
ALTER TABLE ONLY payonce.proofs
    ADD CONSTRAINT proofs_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id);
ALTER TABLE ONLY payonce.relay_calls
    ADD CONSTRAINT relay_calls_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id);
ALTER TABLE ONLY payonce.relay_calls
    ADD CONSTRAINT relay_calls_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES payonce.relay_transactions(id);
ALTER TABLE ONLY payonce.relay_transactions
    ADD CONSTRAINT relay_transactions_network_relayer_fkey FOREIGN KEY (network, relayer) REFERENCES payonce.relayers(network, address);
ALTER TABLE ONLY payonce.relayers
    ADD CONSTRAINT relayers_network_fkey FOREIGN KEY (network) REFERENCES payonce.networks(id);
ALTER TABLE ONLY payonce.reviews
    ADD CONSTRAINT reviews_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id);
ALTER TABLE ONLY payonce.reviews
    ADD CONSTRAINT reviews_order_id_fkey FOREIGN KEY (order_id) REFERENCES payonce.orders(id);
ALTER TABLE ONLY payonce.scans
    ADD CONSTRAINT scans_network_fkey FOREIGN KEY (network) REFERENCES payonce.networks(id);
ALTER TABLE ONLY payonce.transfers
    ADD CONSTRAINT transfers_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id);
ALTER TABLE ONLY payonce.transfers
    ADD CONSTRAINT transfers_network_fkey FOREIGN KEY (network) REFERENCES payonce.networks(id);
ALTER TABLE ONLY payonce.undone_proofs
    ADD CONSTRAINT undone_proofs_authorization_id_fkey FOREIGN KEY (authorization_id) REFERENCES payonce.authorizations(id);
GRANT USAGE ON SCHEMA payonce TO payonce_gateway;
GRANT USAGE ON SCHEMA payonce TO payonce_settler;
GRANT USAGE ON SCHEMA payonce TO payonce_auditor;
GRANT USAGE ON SCHEMA payonce TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.age_s(p timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.answer_by_order(p_order bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.answer_by_order(p_order bytea) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.authorization_doubted(p_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.authorization_doubted(p_id bigint) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.authorization_due(p_id bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.authorization_end(p_id bigint, p_state text, p_note text, p_by text, p_dead_after bigint, OUT ended boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.authorization_end(p_id bigint, p_state text, p_note text, p_by text, p_dead_after bigint, OUT ended boolean) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.authorization_landed(p_id bigint, p_by jsonb, p_before text) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.authorization_puzzles(p_id bigint, p_fact text, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.authorization_puzzles(p_id bigint, p_fact text, p_by text) TO payonce_settler;
GRANT SELECT ON TABLE payonce.authorizations TO payonce_auditor;
GRANT SELECT ON TABLE payonce.authorizations TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.authorization_rearm(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_attempt bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.authorization_store(p_order bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_state text, p_attempt bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.authorizations_claim(p_network text, p_limit integer, p_claim_s integer, p_need_s integer) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.authorizations_claim(p_network text, p_limit integer, p_claim_s integer, p_need_s integer) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.authorizations_look(p_network text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.authorizations_look(p_network text, p_limit integer) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.authorizations_notify(p_ids bigint[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.authorizations_unclaim(p_ids text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.authorizations_unclaim(p_ids text) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.block_undone(p_network text, p_block bigint, p_block_hash bytea, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.block_undone(p_network text, p_block bigint, p_block_hash bytea, p_by text) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.blocks_to_check(p_network text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.blocks_to_check(p_network text) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.debt_book(a payonce.authorizations, p_cause text, p_by jsonb) FROM PUBLIC;
GRANT SELECT ON TABLE payonce.orders TO payonce_auditor;
GRANT SELECT ON TABLE payonce.orders TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.debt_earned(o payonce.orders, p_by jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.debt_id(a payonce.authorizations) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.event_add(p_order bytea, p_by jsonb, p_event text, p_before text, p_after text, p_facts jsonb, p_attempt bytea) FROM PUBLIC;
GRANT SELECT ON TABLE payonce.events TO payonce_auditor;
GRANT SELECT ON TABLE payonce.events TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.event_hash(e payonce.events) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.events_broken(p_order bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.events_note(p_notes text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.events_note(p_notes text) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.explain(p_what text, OUT story text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.explain(p_what text, OUT story text) TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.hex_text(p bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.instance_beat(p_id bytea, p_role text, p_ttl_s integer) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.instance_beat(p_id bytea, p_role text, p_ttl_s integer) TO payonce_gateway;
GRANT ALL ON FUNCTION payonce.instance_beat(p_id bytea, p_role text, p_ttl_s integer) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.instance_end(p_id bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.instance_end(p_id bytea) TO payonce_gateway;
GRANT ALL ON FUNCTION payonce.instance_end(p_id bytea) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.lease_alive(o payonce.orders) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.lock_identities(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.look_after(p_looks integer, p_dead_after bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.metrics_events(p_after bigint, p_buckets numeric[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.metrics_read(p_after bigint, p_buckets text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.metrics_read(p_after bigint, p_buckets text) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.money_counts() FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.money_counts() TO payonce_gateway;
GRANT ALL ON FUNCTION payonce.money_counts() TO payonce_settler;
GRANT ALL ON FUNCTION payonce.money_counts() TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.network_pin(p_id text, p_genesis bytea, OUT replaced boolean, OUT final bigint, OUT final_hash bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.network_pin(p_id text, p_genesis bytea, OUT replaced boolean, OUT final bigint, OUT final_hash bytea) TO payonce_gateway;
GRANT ALL ON FUNCTION payonce.network_pin(p_id text, p_genesis bytea, OUT replaced boolean, OUT final bigint, OUT final_hash bytea) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.network_seen(p_id text, p_head bigint, p_hash bytea, p_time bigint, p_final bigint, p_final_hash bytea, p_final_time bigint, p_gas_balance numeric) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.network_seen(p_id text, p_head bigint, p_hash bytea, p_time bigint, p_final bigint, p_final_hash bytea, p_final_time bigint, p_gas_balance numeric) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.order_accept(p_attempt bytea, p_instance bytea, p_lease_s integer, p_order bytea, p_receipt bytea, p_rail text, p_version integer, p_tool text, p_side_effect text, p_cacheable boolean, p_idempotent boolean, p_method text, p_target text, p_request bytea, p_payment_id text, p_quote bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_need_s integer, p_verified boolean, p_by text, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT epoch integer, OUT similar_order bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.order_accept(p_attempt bytea, p_instance bytea, p_lease_s integer, p_order bytea, p_receipt bytea, p_rail text, p_version integer, p_tool text, p_side_effect text, p_cacheable boolean, p_idempotent boolean, p_method text, p_target text, p_request bytea, p_payment_id text, p_quote bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_need_s integer, p_verified boolean, p_by text, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT epoch integer, OUT similar_order bytea) TO payonce_gateway;
GRANT SELECT ON TABLE payonce.networks TO payonce_auditor;
GRANT SELECT ON TABLE payonce.networks TO payonce_operator;
GRANT SELECT ON TABLE payonce.proofs TO payonce_auditor;
GRANT SELECT ON TABLE payonce.proofs TO payonce_operator;
GRANT SELECT ON TABLE payonce.relay_calls TO payonce_auditor;
GRANT SELECT ON TABLE payonce.relay_calls TO payonce_operator;
GRANT SELECT ON TABLE payonce.relay_transactions TO payonce_auditor;
GRANT SELECT ON TABLE payonce.relay_transactions TO payonce_operator;
GRANT SELECT ON TABLE payonce.reviews TO payonce_auditor;
GRANT SELECT ON TABLE payonce.reviews TO payonce_operator;
GRANT SELECT ON TABLE payonce.order_status TO payonce_auditor;
GRANT SELECT ON TABLE payonce.order_status TO payonce_operator;
GRANT SELECT ON TABLE payonce.order_wire TO payonce_auditor;
GRANT SELECT ON TABLE payonce.order_wire TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.order_by_id(p_order bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.order_by_id(p_order bytea) TO payonce_gateway;
GRANT ALL ON FUNCTION payonce.order_by_id(p_order bytea) TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.order_by_payment_id(p_payment_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.order_by_payment_id(p_payment_id text) TO payonce_gateway;
GRANT ALL ON FUNCTION payonce.order_by_payment_id(p_payment_id text) TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.order_by_receipt(p_receipt bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.order_by_receipt(p_receipt bytea) TO payonce_gateway;
GRANT ALL ON FUNCTION payonce.order_by_receipt(p_receipt bytea) TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.order_decide(o payonce.orders, p_authorization bigint, p_payment_id text, p_quote bytea, p_valid_before numeric, p_need_s integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.order_find(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea, p_request bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric, p_signature bytea, p_proven boolean, p_need_s integer, OUT verdict text, OUT order_id bytea, OUT known text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.order_find(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea, p_request bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric, p_signature bytea, p_proven boolean, p_need_s integer, OUT verdict text, OUT order_id bytea, OUT known text) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.order_finish(p_order bytea, p_epoch integer, p_work text, p_note text, p_status integer, p_headers text, p_body bytea, p_digest bytea, p_by text, OUT verdict text, OUT landed boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.order_finish(p_order bytea, p_epoch integer, p_work text, p_note text, p_status integer, p_headers text, p_body bytea, p_digest bytea, p_by text, OUT verdict text, OUT landed boolean) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.order_match(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea, p_request bytea, OUT verdict text, OUT order_id bytea, OUT authorization_id bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.order_named(p_payment_id text, p_request bytea, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT network text, OUT dead_after bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.order_named(p_payment_id text, p_request bytea, OUT verdict text, OUT order_id bytea, OUT receipt bytea, OUT network text, OUT dead_after bigint) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.order_paid_by(p_order bytea, p_authorization bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.order_similar(p_payer bytea, p_request bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.order_story(p_order bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.order_text(p bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.order_work_end(p_order bytea, p_work text, p_note text, p_by jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.orders_by_ids(p_orders text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.orders_by_ids(p_orders text) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.orders_delivered(p_orders text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.orders_delivered(p_orders text) TO payonce_gateway;
REVOKE ALL ON FUNCTION payonce.orders_named(p_what text) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.orders_sweep(p_limit integer, p_by text, OUT swept integer) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.orders_sweep(p_limit integer, p_by text, OUT swept integer) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.proofs_add(p_network text, p_proofs jsonb, p_by jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.proofs_record(p_text text, OUT recorded integer) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.proofs_record(p_text text, OUT recorded integer) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.reconcile(p_network text, OUT brought bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.reconcile(p_network text, OUT brought bigint) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relay_authorizations(p_ids text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relay_authorizations(p_ids text) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relay_broadcast(p_ids text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relay_broadcast(p_ids text) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relay_drop(p_network text, p_relayer bytea, p_account_nonce bigint, p_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relay_drop(p_network text, p_relayer bytea, p_account_nonce bigint, p_by text) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relay_open(p_network text, p_relayer bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relay_open(p_network text, p_relayer bytea) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relay_replace(p_id bigint, p_owner bytea, p_epoch bigint, p_hash bytea, p_raw bytea, p_max_fee numeric, p_max_tip numeric, p_by text, OUT verdict text, OUT id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relay_replace(p_id bigint, p_owner bytea, p_epoch bigint, p_hash bytea, p_raw bytea, p_max_fee numeric, p_max_tip numeric, p_by text, OUT verdict text, OUT id bigint) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relay_store(p_network text, p_relayer bytea, p_owner bytea, p_epoch bigint, p_account_nonce bigint, p_hash bytea, p_raw bytea, p_gas bigint, p_max_fee numeric, p_max_tip numeric, p_call_to bytea, p_call_data bytea, p_authorizations text, p_by text, OUT verdict text, OUT id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relay_store(p_network text, p_relayer bytea, p_owner bytea, p_epoch bigint, p_account_nonce bigint, p_hash bytea, p_raw bytea, p_gas bigint, p_max_fee numeric, p_max_tip numeric, p_call_to bytea, p_call_data bytea, p_authorizations text, p_by text, OUT verdict text, OUT id bigint) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relayer_lease(p_network text, p_address bytea, p_owner bytea, p_ttl_s integer, p_chain_nonce bigint, OUT held boolean, OUT epoch bigint, OUT next_nonce bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relayer_lease(p_network text, p_address bytea, p_owner bytea, p_ttl_s integer, p_chain_nonce bigint, OUT held boolean, OUT epoch bigint, OUT next_nonce bigint) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.relayer_leave(p_network text, p_address bytea, p_owner bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.relayer_leave(p_network text, p_address bytea, p_owner bytea) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.review_close(p_order bytea, p_resolution text, p_who text, p_note text, p_external_id text) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.review_list(OUT list text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.review_list(OUT list text) TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.review_resolve(p_order bytea, p_resolution text, p_note text, p_external_id text, p_who text, OUT verdict text, OUT resolution text, OUT resolved_by text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.review_resolve(p_order bytea, p_resolution text, p_note text, p_external_id text, p_who text, OUT verdict text, OUT resolution text, OUT resolved_by text) TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.same_terms(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.scan_cursor(p_network text, p_wallet bytea, p_start bigint, OUT block bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.scan_cursor(p_network text, p_wallet bytea, p_start bigint, OUT block bigint) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.scan_record(p_network text, p_wallet bytea, p_from bigint, p_to bigint, p_to_hash bytea, p_findings text, p_by text, OUT moved boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.scan_record(p_network text, p_wallet bytea, p_from bigint, p_to bigint, p_to_hash bytea, p_findings text, p_by text, OUT moved boolean) TO payonce_settler;
REVOKE ALL ON FUNCTION payonce.server_facts() FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.server_facts() TO payonce_operator;
REVOKE ALL ON FUNCTION payonce.signature_keep(a payonce.authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.still_wanted(a payonce.authorizations) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.story_authorizations(p_order bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.story_debts(p_order bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.story_events(p_order bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.story_lock(p_ids bigint[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.story_proofs(p_authorization bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.story_review(p_order bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.story_transactions(p_authorization bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.time_text(p timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION payonce.transfers_known(p_network text, p_logs text) FROM PUBLIC;
GRANT ALL ON FUNCTION payonce.transfers_known(p_network text, p_logs text) TO payonce_settler;
GRANT SELECT ON TABLE payonce.debts TO payonce_auditor;
GRANT SELECT ON TABLE payonce.debts TO payonce_operator;
GRANT SELECT ON TABLE payonce.instances TO payonce_auditor;
GRANT SELECT ON TABLE payonce.instances TO payonce_operator;
GRANT SELECT ON TABLE payonce.migrations TO payonce_auditor;
GRANT SELECT ON TABLE payonce.migrations TO payonce_operator;
GRANT SELECT ON TABLE payonce.order_books TO payonce_auditor;
GRANT SELECT ON TABLE payonce.order_books TO payonce_operator;
GRANT SELECT ON TABLE payonce.other_signatures TO payonce_auditor;
GRANT SELECT ON TABLE payonce.other_signatures TO payonce_operator;
GRANT SELECT ON TABLE payonce.relayers TO payonce_auditor;
GRANT SELECT ON TABLE payonce.relayers TO payonce_operator;
GRANT SELECT ON TABLE payonce.scans TO payonce_auditor;
GRANT SELECT ON TABLE payonce.scans TO payonce_operator;
GRANT SELECT ON TABLE payonce.transfers TO payonce_auditor;
GRANT SELECT ON TABLE payonce.transfers TO payonce_operator;
GRANT SELECT ON TABLE payonce.undone_proofs TO payonce_auditor;
GRANT SELECT ON TABLE payonce.undone_proofs TO payonce_operator;