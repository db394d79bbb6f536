-- A presented payment: which order is it, and what becomes of it. One function a money phase: decide under lock, write only on
-- a yes, return a named verdict. Each may be called again with the same arguments and says the same.

-- Orders stay, whoever asks: what names them is no foreign key where many write at once.
CREATE FUNCTION orders_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an order is never deleted' USING ERRCODE = 'feature_not_supported';
END $$;
CREATE TRIGGER orders_stay BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION orders_stay();

-- Lists travel as JSON arrays: of hex ids, or of numbers. As arrays they are looked up by index, one by one.
CREATE FUNCTION hex_ids(p_ids text) RETURNS bytea[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ARRAY(SELECT decode(v, 'hex') FROM jsonb_array_elements_text(p_ids::jsonb) v);
END $$;
CREATE FUNCTION number_ids(p_ids text) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(p_ids::jsonb) v);
END $$;

-- The advisory locks of a presented payment's identities, in one order for everybody.
CREATE FUNCTION lock_identities(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    a bigint := hashtextextended('nonce:' || p_network || encode(p_asset || p_payer || p_nonce, 'hex'), 0);
    b bigint := coalesce(hashtextextended('quote:' || encode(p_quote || p_payer, 'hex'), 0), a);
    c bigint := coalesce(hashtextextended('id:' || p_payment_id, 0), a);
    locked boolean;
BEGIN
    -- assigned and not PERFORMed, here and wherever each call comes by: an expression needs no query of its own
    locked := pg_advisory_xact_lock(least(a, b, c)) IS NOT NULL;
    locked := pg_advisory_xact_lock(a # b # c # least(a, b, c) # greatest(a, b, c)) IS NOT NULL; -- the one between
    locked := pg_advisory_xact_lock(greatest(a, b, c)) IS NOT NULL;
END $$;

-- Which order do these identities name, and do they agree? verdict: new, found, conflict_payer, conflict_request. Mostly none is known.
CREATE FUNCTION order_match(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea,
    p_request bytea, OUT verdict text, OUT order_id bytea, OUT authorization_id bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE by_nonce bytea; by_id bytea; by_quote bytea;
BEGIN
    SELECT a.id, a.order_id, q.id INTO authorization_id, by_nonce, by_quote FROM (SELECT) one
      LEFT JOIN authorizations a ON a.network = p_network AND a.asset = p_asset AND a.payer = p_payer AND a.nonce = p_nonce
      LEFT JOIN orders q ON q.quote = p_quote AND q.payer = p_payer;
    IF p_payment_id IS NOT NULL THEN
        SELECT x.order_id INTO by_id FROM payment_ids x WHERE x.payment_id = p_payment_id;
    END IF;
    verdict := 'new';
    IF by_nonce IS NOT NULL OR by_id IS NOT NULL OR by_quote IS NOT NULL THEN
        SELECT t.verdict, t.order_id INTO verdict, order_id
          FROM order_agree(by_nonce, authorization_id, by_id, p_payment_id, by_quote, p_payer, p_request) t;
    END IF;
END $$;

-- Do the orders that were found by nonce, by payment id and by quote agree? An authorization that was set aside as a free repeat, and a
-- payment id that came with one, name the original; they agree by their own request.
CREATE FUNCTION order_agree(p_by_nonce bytea, p_authorization bigint, p_by_id bytea, p_payment_id text, p_by_quote bytea, p_payer bytea,
    p_request bytea, OUT verdict text, OUT order_id bytea) LANGUAGE plpgsql STABLE AS $$
DECLARE r repeats; by_nonce orders; by_id orders; by_quote orders; o orders;
BEGIN
    SELECT * INTO by_nonce FROM orders x WHERE x.id = p_by_nonce;
    IF by_nonce.repeat_key IS NOT NULL THEN
        SELECT * INTO r FROM repeats x WHERE x.authorization_id = p_authorization AND x.order_id = p_by_nonce;
        by_nonce.request := coalesce(r.request, by_nonce.request);
        by_nonce.payment_id := CASE WHEN r.order_id IS NULL THEN by_nonce.payment_id ELSE r.payment_id END;
    END IF;
    IF p_by_id IS NOT NULL THEN
        SELECT * INTO by_id FROM orders x WHERE x.id = p_by_id;
        by_id.request := (SELECT x.request FROM payment_ids x WHERE x.payment_id = p_payment_id);
        by_id.payment_id := p_payment_id;
    END IF;
    SELECT * INTO by_quote FROM orders x WHERE x.id = p_by_quote;

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
    verdict := 'found';
END $$;

-- No identity is known, and none was given to be known by: is it an order of this wallet all the same? A stock client that lost a reply
-- signs anew and has no id: the same wallet, the identical request, and an order of it that is undecided, or paid and not delivered. It
-- is meant again, for 180 s; on a write nobody can know that, so it is asked: as long as it is undecided, and for a day after it was
-- paid. A read with other credentials is another one. verdict: new, found, similar (a write).
CREATE FUNCTION order_match_similar(p_payment_id text, p_payer bytea, p_request bytea, p_manner bytea, OUT verdict text, OUT order_id bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE effect text;
BEGIN
    verdict := 'new';
    IF p_payment_id IS NULL THEN
        SELECT o.side_effect INTO effect FROM orders o WHERE o.payer = p_payer AND o.request = p_request ORDER BY o.created_at DESC LIMIT 1;
    END IF;
    IF effect IN ('none', 'read') THEN
        SELECT o.id INTO order_id FROM orders o JOIN authorizations a ON a.id = o.authorization_id
         WHERE o.payer = p_payer AND o.request = p_request AND o.created_at > now() - interval '180 s'
           AND o.work IN ('running', 'waiting', 'done', 'lost') AND o.delivered_at IS NULL
           AND (o.work = 'lost' OR a.state IN ('held', 'due', 'sent', 'settled')) AND o.manner IS NOT DISTINCT FROM p_manner
         ORDER BY o.created_at DESC LIMIT 1;
        verdict := CASE WHEN order_id IS NULL THEN 'new' ELSE 'found' END;
    ELSIF effect IS NOT NULL THEN                -- beside one that is undecided none is made without an id, so it is among the newest
        SELECT o.id INTO order_id
          FROM (SELECT x.* FROM orders x WHERE x.payer = p_payer AND x.request = p_request ORDER BY x.created_at DESC LIMIT 100) o
          JOIN authorizations a ON a.id = o.authorization_id
         WHERE o.work IN ('running', 'waiting', 'done', 'lost') AND o.delivered_at IS NULL
           AND (o.work = 'lost' OR a.state IN ('held', 'due', 'sent', 'settled'))
           AND (o.work <> 'done' OR a.state <> 'settled' OR o.created_at > now() - interval '1 day')
         ORDER BY o.created_at DESC LIMIT 1;
        verdict := CASE WHEN order_id IS NULL THEN 'new' ELSE 'similar' END;
    END IF;
END $$;

CREATE FUNCTION same_terms(a authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT a.payee = p_payee AND a.amount = p_amount AND a.valid_after = p_valid_after AND a.valid_before = p_valid_before;
$$;

-- What a presented authorization gets from an order that was found (design: "What a presented payment gets", c).
-- replay, not_proven, gone, in_flight, in_review, work_failed_paid: nothing is to be done, only said.
-- begin: of a pay_first order the money is proven and the work waits: order_begin may take it.
-- again: the work failed and may run once more on this authorization.  takeover: its lease seems dead, so it may too, but until then
-- its first run may still finish and be paid, so nothing else may be concluded.  resend: the answer is kept, this authorization may pay it.
-- pay_again: proven dead or too short of time: a new payment is right.
CREATE FUNCTION order_decide(o orders, p_authorization bigint, p_payment_id text, p_quote bytea, p_valid_before numeric,
    p_need_s integer, p_now_ms bigint DEFAULT NULL, p_manner bytea DEFAULT NULL) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    mine text := (SELECT state FROM authorizations WHERE id = p_authorization);
    money text := (SELECT state FROM authorizations WHERE id = o.authorization_id);
    -- an authorization that we have not seen is not on the chain: its signature proves the wallet as well as an id does
    secret boolean := coalesce(o.id = order_of_payment_id(p_payment_id), false) OR coalesce(p_quote = o.quote, false) OR p_authorization IS NULL OR mine = 'released';
    usable boolean := (mine IS NULL OR mine IN ('released', 'held')) AND
                      p_valid_before >= extract(epoch FROM now()) + p_need_s;
    -- what is on the chain is public: the nonce alone serves only what a free repeat would
    shown boolean := secret OR (o.cacheable AND o.manner IS NOT DISTINCT FROM p_manner AND EXISTS (SELECT 1 FROM proofs p WHERE p.authorization_id = o.authorization_id
                                AND p.block_time + coalesce(o.repeat_window_s, 120) >= coalesce(p_now_ms / 1000, extract(epoch FROM now()))));
BEGIN
    IF o.work = 'lost' THEN
        RETURN CASE WHEN o.idempotent AND usable AND money <> 'settled' THEN 'again' ELSE 'in_review' END;
    ELSIF EXISTS (SELECT 1 FROM reviews r WHERE r.order_id = o.id AND r.resolved_at IS NULL
                  AND coalesce(r.authorization_id = o.authorization_id, true)) THEN
        RETURN 'in_review';
    ELSIF money = 'settled' AND o.work = 'done' THEN
        IF NOT EXISTS (SELECT 1 FROM answers WHERE order_id = o.id) OR refund_claimed(o.authorization_id) THEN
            RETURN 'gone';
        END IF;
        RETURN CASE WHEN shown THEN 'replay' ELSE 'not_proven' END;
    ELSIF money = 'settled' AND order_may_begin(o) THEN
        RETURN CASE WHEN shown THEN 'begin' ELSE 'not_proven' END;
    ELSIF o.pay_first AND o.work = 'running' AND NOT lease_alive(o) THEN
        RETURN CASE WHEN order_harmless(o) THEN 'in_flight' ELSE 'in_review' END;
    ELSIF 'settled' IN (money, mine) THEN
        RETURN CASE WHEN o.work = 'failed' THEN 'work_failed_paid' ELSE 'in_flight' END;
    ELSIF o.work = 'done' AND NOT EXISTS (SELECT 1 FROM answers WHERE order_id = o.id) THEN
        RETURN 'gone';                           -- a person found it done: it is not charged, and not run again
    ELSIF o.work = 'running' AND NOT lease_alive(o) THEN
        RETURN CASE WHEN o.side_effect NOT IN ('none', 'read') AND NOT o.idempotent THEN 'in_review'
                    WHEN usable THEN 'takeover' ELSE 'in_flight' END;
    ELSIF o.work = 'failed' AND money IN ('due', 'sent') THEN
        RETURN 'in_flight';                      -- its proof left the chain, and it may come again
    ELSIF o.work = 'failed' THEN
        RETURN CASE WHEN usable THEN 'again' ELSE 'pay_again' END;
    ELSIF o.work = 'done' AND money IN ('expired', 'void') THEN
        RETURN CASE WHEN usable THEN 'resend' ELSE 'pay_again' END;
    END IF;
    RETURN 'in_flight';
END $$;

-- The same, read-only, for the gateway's first look: no row, no lock. known: how much of this authorization is stored: all,
-- nonce (other terms over a nonce that is), none. Where only the chain can judge the signature (p_proven is false: a contract's),
-- it must be the very one that is stored, else nothing is known.
CREATE FUNCTION order_find(p_payment_id text, p_quote bytea, p_payer bytea, p_network text, p_asset bytea, p_nonce bytea,
    p_request bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric, p_signature bytea,
    p_proven boolean, p_need_s integer, p_now_ms bigint DEFAULT NULL, p_manner bytea DEFAULT NULL, OUT verdict text, OUT order_id bytea,
    OUT known text)
LANGUAGE plpgsql STABLE AS $$
DECLARE m record; s record; o orders; a authorizations;
BEGIN
    m := order_match(p_payment_id, p_quote, p_payer, p_network, p_asset, p_nonce, p_request);
    IF m.authorization_id IS NOT NULL THEN
        SELECT * INTO a FROM authorizations x WHERE x.id = m.authorization_id;
    END IF;
    IF m.verdict = 'new' THEN
        s := order_match_similar(p_payment_id, p_payer, p_request, p_manner);
        m.verdict := s.verdict;
        m.order_id := s.order_id;
    END IF;
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
        SELECT * INTO o FROM orders x WHERE x.id = m.order_id;
        IF repeat_left(o, a) THEN
            verdict := 'new';
            order_id := NULL;
        ELSE
            verdict := order_decide(o, m.authorization_id, p_payment_id, p_quote, p_valid_before, p_need_s, p_now_ms, p_manner);
        END IF;
    END IF;
END $$;

CREATE FUNCTION authorization_store(p_order bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea,
    p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_state text,
    p_attempt bytea, p_id bigint DEFAULT nextval('payonce.authorizations_id_seq')) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO authorizations (id, order_id, network, asset, payer, nonce, payee, amount, valid_after, valid_before, dead_after,
                                signature, has_code, state, due_at, attempt, from_block, next_look)
    OVERRIDING SYSTEM VALUE
    SELECT p_id, p_order, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after, p_valid_before, p_valid_before,
           p_signature, p_has_code, p_state, CASE WHEN p_state = 'due' THEN now() END, p_attempt, n.head,
           to_timestamp(p_valid_before + CASE WHEN p_state = 'released' AND n.final > 0 THEN n.head_time - n.final_time ELSE 0 END)
      FROM networks n WHERE n.id = p_network;
    RETURN p_id;
END $$;

-- A valid signature over a known nonce with other terms is kept: it can be submitted by anybody, so the end of
-- the nonce is judged by the latest deadline among them.
CREATE FUNCTION signature_keep(a authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint,
    p_signature bytea) RETURNS void LANGUAGE plpgsql AS $$
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

-- A released row is to be sent after all, on the terms that were presented and judged now; what it held before is kept.
CREATE FUNCTION authorization_rearm(a authorizations, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before bigint,
    p_signature bytea, p_has_code boolean, p_attempt bytea) RETURNS void LANGUAGE plpgsql AS $$
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

-- This authorization is to pay the order, or did: the order tells what it pays. One that was to, and was not sent, is released. Of the
-- orders of one question it is now the newest.
CREATE FUNCTION order_paid_by(p_order bytea, p_authorization bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE authorizations a SET state = 'released' FROM orders o
     WHERE o.id = p_order AND a.id = o.authorization_id AND a.id <> p_authorization AND a.state IN ('held', 'due');
    UPDATE orders o SET authorization_id = a.id, network = a.network, asset = a.asset, payee = a.payee, amount = a.amount,
           repeat_no = CASE WHEN o.repeat_key IS NOT NULL THEN nextval('payonce.repeat_numbers') END
      FROM authorizations a WHERE o.id = p_order AND a.id = p_authorization;
END $$;

-- A type and not thirteen OUT parameters: those are put together from their names at each call.
CREATE TYPE order_accepted AS (verdict text, order_id bytea, receipt bytea, epoch integer, similar_order bytea, miss text, retry_after bigint,
    answer_network text, answer_tx bytea, answer_time bigint, answer_status bigint, answer_headers text, answer_body bytea);

-- Durable before act: the authorization is stored, the order made or found, and the work's lease taken, in one commit.
-- verdict: accepted (run the work, with this epoch), to_settle (of a p_pay_first call: it is due now, and its work waits for the
-- proof), resent (the answer is kept, it is due now), or order_find's words. A payment
-- that was not verified on the chain (p_verified) is only stored, beside an order that needs none.
CREATE FUNCTION order_accept(p_attempt bytea, p_instance bytea, p_lease_s integer, p_order bytea, p_receipt bytea,
    p_rail text, p_version integer, p_tool text, p_side_effect text, p_cacheable boolean, p_idempotent boolean,
    p_method text, p_target text, p_request bytea, p_payment_id text, p_quote bytea,
    p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea, p_amount numeric,
    p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean, p_need_s integer, p_verified boolean, p_by text DEFAULT NULL,
    p_repeat_key bytea DEFAULT NULL, p_window_s integer DEFAULT NULL, p_repeat_max integer DEFAULT NULL, p_now_ms bigint DEFAULT NULL,
    p_pay_first boolean DEFAULT false, p_charge text DEFAULT NULL, p_manner bytea DEFAULT NULL, OUT told order_accepted)
LANGUAGE plpgsql AS $$
DECLARE
    m record; r record; o orders; a authorizations; paying bigint; was text; done boolean; left_behind boolean; refused boolean; by_whom jsonb; facts jsonb;
    charge jsonb := p_charge::jsonb;
BEGIN
    done := lock_identities(p_payment_id, p_quote, p_payer, p_network, p_asset, p_nonce) IS NULL;
    m := order_match(p_payment_id, p_quote, p_payer, p_network, p_asset, p_nonce, p_request);
    told.verdict := m.verdict;
    IF m.order_id IS NOT NULL THEN
        SELECT * INTO o FROM orders x WHERE x.id = m.order_id FOR NO KEY UPDATE;
    END IF;
    IF m.authorization_id IS NOT NULL THEN
        SELECT * INTO a FROM authorizations x WHERE x.id = m.authorization_id FOR UPDATE;
        PERFORM signature_keep(a, p_payee, p_amount, p_valid_after, p_valid_before, p_signature);
    END IF;
    left_behind := told.verdict = 'found' AND repeat_left(o, a);
    IF left_behind THEN
        told.verdict := 'new';
        refused := repeat_refused(a.id);
    ELSIF told.verdict = 'found' AND a.attempt = p_attempt AND repeat_of_another(a.id) THEN
        SELECT t.* INTO told.receipt, told.verdict, told.answer_network, told.answer_tx, told.answer_time, told.answer_status,
                        told.answer_headers, told.answer_body
          FROM repeat_tell(o) t;             -- our own commit, whose reply was lost
        told.order_id := o.id;
        RETURN;
    END IF;
    IF told.verdict = 'new' AND p_repeat_key IS NOT NULL AND (NOT left_behind OR refused) THEN
        r := repeat_look(p_repeat_key, NULL, p_window_s, p_now_ms);
        IF r.order_id IS NULL AND p_verified THEN
            PERFORM pg_advisory_xact_lock(hashtextextended('repeat:' || encode(p_repeat_key, 'hex'), 0));
            r := repeat_look(p_repeat_key, NULL, p_window_s, p_now_ms);
        END IF;
        told.miss := r.verdict;
        IF r.order_id IS NOT NULL AND NOT repeat_room(r.order_id, p_repeat_max) THEN
            told.verdict := 'repeat_limit';
            told.retry_after := CASE WHEN r.verdict = 'wait' THEN p_window_s ELSE least(p_window_s, (r.left_ms + 999) / 1000) END;
            -- it can be submitted by whoever saw it, so it is watched; as many as were given an answer, or refusals would fill the disk
            IF a.id IS NULL AND repeat_room(r.order_id, 2 * p_repeat_max) THEN
                paying := authorization_store(r.order_id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                              p_valid_before, p_signature, p_has_code, 'released', p_attempt);
                PERFORM charge_keep(paying, p_network, charge, false) WHERE charge IS NOT NULL;
                PERFORM repeat_keep(paying, r.order_id, p_payer, p_request, NULL, true);
            END IF;
            RETURN;
        ELSIF r.order_id IS NOT NULL THEN
            IF refused THEN
                PERFORM repeat_let_in(a.id, r.order_id, p_payer, p_request, p_payment_id);
            ELSE
                paying := authorization_store(r.order_id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                              p_valid_before, p_signature, p_has_code, 'released', p_attempt);
                IF charge IS NOT NULL THEN
                    done := charge_keep(paying, p_network, charge, false) IS NULL;
                END IF;
                done := repeat_keep(paying, r.order_id, p_payer, p_request, p_payment_id) IS NULL;
            END IF;
            told.verdict := CASE r.verdict WHEN 'repeat' THEN 'repeat' ELSE 'repeat_wait' END;
            told.order_id := r.order_id;
            told.receipt := r.receipt;
            told.answer_network := r.network;
            told.answer_tx := r.tx;
            told.answer_time := r.block_time;
            told.answer_status := r.status;
            told.answer_headers := r.headers;
            told.answer_body := r.body;
            RETURN;
        END IF;
    END IF;
    by_whom := p_by::jsonb; -- not needed any earlier: a free repeat has no event
    facts := jsonb_build_object('nonce', encode(p_nonce, 'hex'), 'amount', p_amount::text, 'valid_before', p_valid_before);
    IF told.verdict = 'new' AND NOT left_behind THEN
        r := order_match_similar(p_payment_id, p_payer, p_request, p_manner);
        told.verdict := r.verdict;
        m.order_id := r.order_id;
        IF m.order_id IS NOT NULL THEN
            SELECT * INTO o FROM orders x WHERE x.id = m.order_id FOR NO KEY UPDATE;
        END IF;
    END IF;

    IF told.verdict = 'new' AND NOT p_verified THEN
        RETURN;
    ELSIF told.verdict = 'new' THEN
        paying := coalesce(a.id, nextval('payonce.authorizations_id_seq'));
        IF p_payment_id IS NOT NULL THEN     -- an older order's, forgotten, so free again
            UPDATE orders x SET payment_id = NULL WHERE x.payment_id = p_payment_id;
        END IF;
        INSERT INTO orders (id, receipt, rail, wire_version, tool, side_effect, cacheable, idempotent, method, target, request,
                            payment_id, quote, payer, network, asset, payee, amount, authorization_id, work, work_by, work_until,
                            work_began_at, repeat_key, repeat_no, repeat_window_s, pay_first, manner)
        VALUES (p_order, p_receipt, p_rail, p_version, p_tool, p_side_effect, p_cacheable, p_idempotent, p_method, p_target,
                p_request, p_payment_id, p_quote, p_payer, p_network, p_asset, p_payee, p_amount, paying,
                CASE WHEN p_pay_first THEN 'waiting' ELSE 'running' END, CASE WHEN NOT p_pay_first THEN p_instance END,
                CASE WHEN NOT p_pay_first THEN now() + make_interval(secs => p_lease_s) END, CASE WHEN NOT p_pay_first THEN now() END,
                p_repeat_key, CASE WHEN p_repeat_key IS NOT NULL THEN nextval('payonce.repeat_numbers') END, p_window_s, p_pay_first,
                p_manner);
        IF a.id IS NULL THEN
            paying := authorization_store(p_order, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                          p_valid_before, p_signature, p_has_code, CASE WHEN p_pay_first THEN 'due' ELSE 'held' END,
                                          p_attempt, paying);
        ELSE
            PERFORM repeat_leave(a.id, p_order);
            PERFORM authorization_rearm(a, p_payee, p_amount, p_valid_after, p_valid_before, p_signature, p_has_code, p_attempt);
            PERFORM authorization_due(a.id) WHERE p_pay_first;
        END IF;
        done := payment_id_keep(p_payment_id, p_order, p_payer, p_request) IS NULL;
        IF charge IS NOT NULL THEN
            done := charge_keep(paying, p_network, charge, true) IS NULL;
        END IF;
        done := event_add(p_order, by_whom, CASE WHEN p_pay_first THEN 'accepted_first' ELSE 'accepted' END, NULL,
                          CASE WHEN charge IS NOT NULL THEN 'work waiting, money sent' WHEN p_pay_first THEN 'work waiting, money due'
                               ELSE 'work running, money held' END,
                          facts || jsonb_build_object('tool', p_tool), p_attempt, true) IS NULL;
        told.verdict := CASE WHEN p_pay_first THEN 'to_settle' ELSE 'accepted' END;
        told.order_id := p_order;
        told.receipt := p_receipt;
        told.epoch := 1;
        IF p_side_effect NOT IN ('none', 'read') AND p_payment_id IS NULL THEN
            SELECT x.id INTO told.similar_order FROM orders x WHERE x.payer = p_payer AND x.request = p_request AND x.id <> p_order
               AND x.delivered_at > now() - interval '300 s' ORDER BY x.created_at DESC LIMIT 1;
        END IF;
        RETURN;
    ELSIF told.verdict = 'similar' THEN
        told.order_id := o.id;
        RETURN;
    ELSIF told.verdict <> 'found' THEN
        RETURN;
    END IF;

    told.order_id := o.id;
    told.receipt := o.receipt;
    told.epoch := o.work_epoch;
    IF EXISTS (SELECT 1 FROM authorizations x WHERE x.id = o.authorization_id AND x.attempt = p_attempt) THEN
        told.verdict := CASE WHEN o.pay_first AND o.work <> 'done' THEN 'to_settle'
                             WHEN o.work = 'running' THEN 'accepted' ELSE 'resent' END; -- our own commit, whose reply was lost
        RETURN;
    END IF;
    told.verdict := order_decide(o, a.id, p_payment_id, p_quote, p_valid_before, p_need_s, p_now_ms, p_manner);
    IF told.verdict IN ('again', 'takeover', 'resend') AND p_repeat_key IS NOT NULL THEN
        -- meanwhile another order of the same question is at work, or was paid: no second charge within its window
        IF p_verified THEN
            PERFORM pg_advisory_xact_lock(hashtextextended('repeat:' || encode(p_repeat_key, 'hex'), 0));
        END IF;
        r := repeat_look(p_repeat_key, o.id, p_window_s, p_now_ms);
        left_behind := r.order_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM repeats x WHERE x.authorization_id = a.id AND x.order_id = r.order_id);
        IF left_behind AND NOT repeat_room(r.order_id, p_repeat_max) THEN
            told.verdict := 'repeat_limit';
            told.retry_after := CASE WHEN r.verdict = 'wait' THEN p_window_s ELSE least(p_window_s, (r.left_ms + 999) / 1000) END;
            IF a.id IS NULL AND repeat_room(r.order_id, 2 * p_repeat_max) THEN
                paying := authorization_store(o.id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                              p_valid_before, p_signature, p_has_code, 'released', p_attempt);
                PERFORM charge_keep(paying, p_network, charge, false) WHERE charge IS NOT NULL;
            END IF;
            RETURN;
        ELSIF r.order_id IS NOT NULL THEN
            paying := a.id;
            IF a.id IS NULL THEN
                paying := authorization_store(o.id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                              p_valid_before, p_signature, p_has_code, 'released', p_attempt);
                PERFORM charge_keep(paying, p_network, charge, false) WHERE charge IS NOT NULL;
            END IF;
            PERFORM repeat_keep(paying, r.order_id, p_payer, p_request, NULL) WHERE left_behind;
            SELECT * INTO o FROM orders x WHERE x.id = r.order_id;
            SELECT t.* INTO told.receipt, told.verdict, told.answer_network, told.answer_tx, told.answer_time, told.answer_status,
                            told.answer_headers, told.answer_body
              FROM repeat_tell(o) t;
            told.order_id := o.id;
            RETURN;
        END IF;
    END IF;
    IF told.verdict = 'in_review' AND o.work = 'running' AND o.side_effect NOT IN ('none', 'read') AND NOT o.idempotent
       AND NOT lease_alive(o) THEN
        PERFORM order_work_end(o.id, 'lost', 'the instance that ran it ended', by_whom);
    END IF;
    was := 'work ' || o.work || ', money ' || (SELECT x.state FROM authorizations x WHERE x.id = o.authorization_id);

    IF told.verdict IN ('again', 'takeover', 'resend') AND NOT p_verified THEN
        RETURN;
    ELSIF told.verdict IN ('again', 'takeover', 'resend') THEN
        IF a.id IS NULL THEN
            paying := authorization_store(o.id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                          p_valid_before, p_signature, p_has_code, 'held', p_attempt);
        ELSE
            paying := a.id;
            PERFORM repeat_pays(a.id);
            PERFORM authorization_rearm(a, p_payee, p_amount, p_valid_after, p_valid_before, p_signature, p_has_code, p_attempt);
        END IF;
        PERFORM order_paid_by(o.id, paying);
        IF told.verdict = 'again' AND o.pay_first THEN
            UPDATE orders SET work = 'waiting', work_epoch = work_epoch + 1, work_ended_at = NULL, work_note = NULL WHERE id = o.id;
            PERFORM authorization_due(paying);
            PERFORM charge_keep(paying, p_network, charge, true) WHERE charge IS NOT NULL;
            PERFORM event_add(o.id, by_whom, 'accepted_first', was, 'work waiting, money due', facts, p_attempt);
            told.verdict := 'to_settle';
        ELSIF told.verdict <> 'resend' THEN
            UPDATE orders SET work = 'running', work_epoch = work_epoch + 1, work_by = p_instance,
                   work_until = now() + make_interval(secs => p_lease_s), work_began_at = now(), work_ended_at = NULL,
                   work_note = NULL
             WHERE id = o.id;
            PERFORM review_close(o.id, 'failed', by_whom->>'actor', 'run again: its upstream is idempotent', NULL);
            PERFORM event_add(o.id, by_whom, 'accepted_again', was, 'work running, money held', facts, p_attempt);
            told.verdict := 'accepted';
            told.epoch := o.work_epoch + 1;
        ELSE
            PERFORM authorization_due(paying);
            PERFORM charge_keep(paying, p_network, charge, true) WHERE charge IS NOT NULL;
            PERFORM event_add(o.id, by_whom, 'resent', was, 'work done, money due', facts, p_attempt);
            told.verdict := 'resent';
        END IF;
    ELSIF a.id IS NULL THEN
        -- not needed, but signed: anybody who saw it can submit it, so it is stored, never sent by us, and watched
        paying := authorization_store(o.id, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
                                      p_valid_before, p_signature, p_has_code, 'released', p_attempt);
        PERFORM charge_keep(paying, p_network, charge, false) WHERE charge IS NOT NULL;
        PERFORM event_add(o.id, by_whom, 'set_aside', NULL, 'money released', facts || jsonb_build_object('answer', told.verdict), p_attempt);
    END IF;
END $$;

-- plpgsql, as every function that others call: it keeps its plan, where SQL would be read and planned at each call.
CREATE FUNCTION authorization_due(p_id bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE authorizations SET state = 'due', due_at = now() WHERE id = p_id AND state = 'held';
END $$;
