-- Settlements for sellers: an authorization is stored and due in one commit, and there is no work to wait for. From
-- there on it is sent, proven and resolved like any other.

-- What is said of a settlement that is known. p_request: a digest over what was asked for (asset, payee, price).
-- settled; settling (undecided, also in review); expired, void: proven dead; again: dead by its deadline, and these
-- terms are another signature over the same nonce, with time left; other: not this seller's; other_payee, other_amount:
-- this seller asked for something else when he presented it first.
CREATE FUNCTION settlement_judge(a authorizations, p_seller text, p_request bytea, p_payee bytea,
    p_valid_before numeric,
    p_need_s integer) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE o orders;
BEGIN
    SELECT * INTO STRICT o FROM orders x WHERE x.id = a.order_id;
    IF o.seller IS DISTINCT FROM p_seller THEN
        RETURN 'other';
    ELSIF o.request <> p_request THEN
        RETURN CASE WHEN o.payee <> p_payee THEN 'other_payee' ELSE 'other_amount' END;
    ELSIF a.state IN ('expired', 'released') THEN
        RETURN CASE WHEN p_valid_before > a.valid_before AND p_valid_before >= extract(epoch
            FROM now()) + p_need_s THEN 'again'
                    WHEN a.state = 'expired' THEN 'expired' ELSE 'settling' END;
    END IF;
    RETURN CASE a.state WHEN 'settled' THEN 'settled' WHEN 'void' THEN 'void' ELSE 'settling' END;
END $$;

-- The first look: no row, no lock. known: whether these terms are stored: all, nonce (others over it), none. As in
-- order_find, a signature that only the chain can judge finds nothing unless it is the very one that is stored.
CREATE FUNCTION settlement_find(p_seller text, p_request bytea, p_asked_payee bytea, p_network text, p_asset bytea,
    p_payer bytea,
    p_nonce bytea, p_payee bytea, p_amount numeric, p_valid_after numeric, p_valid_before numeric, p_signature bytea,
    p_proven boolean, p_need_s integer, OUT verdict text, OUT order_id bytea, OUT known text, OUT tx bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE a authorizations;
BEGIN
    SELECT * INTO a FROM authorizations x
     WHERE x.network = p_network AND x.asset = p_asset AND x.payer = p_payer AND x.nonce = p_nonce;
    IF a.id IS NULL OR (NOT p_proven AND a.signature <> p_signature) THEN
        verdict := 'new';
        known := 'none';
        RETURN;
    END IF;
    verdict := settlement_judge(a, p_seller, p_request, p_asked_payee, p_valid_before, p_need_s);
    known := CASE WHEN same_terms(a, p_payee, p_amount, p_valid_after, p_valid_before) THEN 'all' ELSE 'nonce' END;
    IF verdict NOT LIKE 'other%' THEN
        order_id := a.order_id;
        SELECT p.tx INTO tx FROM proofs p WHERE p.authorization_id = a.id;
    END IF;
END $$;

-- Durable before act: the authorization is stored, and due. verdict: accepted, or settlement_find's words. What was not
-- verified on the chain (p_verified) makes no row; it is only kept beside one that is there. p_tell: somebody waits to
-- hear how it ends. p_most: so many the seller may have in 24 hours; then it is limit, and nothing is stored.
CREATE FUNCTION settlement_accept(p_attempt bytea, p_order bytea, p_receipt bytea, p_rail text, p_version integer,
    p_tell boolean,
    p_seller text, p_request bytea, p_asked_payee bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea,
        p_payee bytea,
    p_amount numeric, p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean,
        p_need_s integer,
    p_verified boolean, p_most bigint, p_by text, OUT verdict text, OUT order_id bytea, OUT tx bytea)
        LANGUAGE plpgsql AS $$
DECLARE
    a authorizations; done boolean;
    facts jsonb := jsonb_build_object('nonce', encode(p_nonce, 'hex'), 'amount', p_amount::text, 'valid_before',
        p_valid_before);
BEGIN
    done := lock_identities(NULL, NULL, p_payer, p_network, p_asset, p_nonce) IS NULL;
    SELECT * INTO a FROM authorizations x
     WHERE x.network = p_network AND x.asset = p_asset AND x.payer = p_payer AND x.nonce = p_nonce;
    IF a.id IS NULL THEN
        verdict := CASE WHEN NOT p_verified THEN 'new' WHEN seller_room(p_seller, p_most) THEN 'accepted'
            ELSE 'limit' END;
        IF verdict = 'accepted' THEN
            order_id := p_order;
            done := settlement_store(p_attempt, p_order, p_receipt, p_rail, p_version, p_tell, p_seller, p_request,
                p_network, p_asset,
                                     p_payer, p_nonce, p_payee, p_amount, p_valid_after, p_valid_before, p_signature,
                                         p_has_code) IS NULL;
            done := event_add(p_order, p_by::jsonb, 'accepted', NULL, 'work none, money due',
                              facts || jsonb_build_object('seller', p_seller), p_attempt) IS NULL;
        END IF;
        RETURN;
    END IF;

    PERFORM 1 FROM orders x WHERE x.id = a.order_id FOR NO KEY UPDATE;
    SELECT * INTO STRICT a FROM authorizations x WHERE x.id = a.id FOR UPDATE;
    PERFORM signature_keep(a, p_payee, p_amount, p_valid_after, p_valid_before, p_signature);
    PERFORM notices_undone(ARRAY[a.id]) FROM authorizations x
        WHERE x.id = a.id AND a.ended_at IS NOT NULL AND x.ended_at IS NULL;
    verdict := settlement_judge(a, p_seller, p_request, p_asked_payee, p_valid_before, p_need_s);
    IF verdict LIKE 'other%' THEN
        RETURN;
    END IF;
    order_id := a.order_id;
    SELECT p.tx INTO tx FROM proofs p WHERE p.authorization_id = a.id;
    IF a.attempt = p_attempt THEN
        verdict := 'accepted';                   -- our own commit, whose reply was lost
    ELSIF verdict = 'again' AND p_verified THEN
        SELECT * INTO STRICT a FROM authorizations x WHERE x.id = a.id;
        PERFORM authorization_rearm(a, p_payee, p_amount, p_valid_after, p_valid_before, p_signature, p_has_code,
            p_attempt);
        PERFORM authorization_due(a.id);
        PERFORM event_add(a.order_id, p_by::jsonb, 'accepted_again', 'money ' || a.state, 'money due', facts,
            p_attempt);
        verdict := 'accepted';
    END IF;
END $$;

CREATE FUNCTION settlement_store(p_attempt bytea, p_order bytea, p_receipt bytea, p_rail text, p_version integer,
    p_tell boolean,
    p_seller text, p_request bytea, p_network text, p_asset bytea, p_payer bytea, p_nonce bytea, p_payee bytea,
        p_amount numeric,
    p_valid_after numeric, p_valid_before bigint, p_signature bytea, p_has_code boolean) RETURNS void
        LANGUAGE plpgsql AS $$
DECLARE paying bigint := nextval('payonce.authorizations_id_seq'); done boolean;
BEGIN
    INSERT INTO orders (id, receipt, rail, wire_version, tool, side_effect, cacheable, idempotent, method, target,
        request, payer,
                        network, asset, payee, amount, authorization_id, work, seller)
    VALUES (p_order, p_receipt, p_rail, p_version, 'settlement', 'none', false, false, '', '', p_request, p_payer,
        p_network,
            p_asset, p_payee, p_amount, paying, 'none', p_seller);
    paying := authorization_store(p_order, p_network, p_asset, p_payer, p_nonce, p_payee, p_amount, p_valid_after,
        p_valid_before,
                                  p_signature, p_has_code, 'held', p_attempt, paying);
    done := authorization_due(paying) IS NULL;
    IF p_tell THEN
        UPDATE authorizations SET tell = p_seller WHERE id = paying;
        INSERT INTO notices (authorization_id) VALUES (paying);
    END IF;
END $$;

-- One settlement, by the payer and the nonce, for who may see these sellers' (a JSON array of names). p_assets: one of
-- hex.
CREATE FUNCTION settlement_read(p_sellers text, p_network text, p_assets text, p_payer bytea, p_nonce bytea)
RETURNS SETOF order_wire LANGUAGE plpgsql STABLE AS $$
DECLARE ids bytea[];
BEGIN
    SELECT array_agg(a.order_id) INTO ids FROM unnest(hex_ids(p_assets)) x(asset) JOIN authorizations a
        ON a.network = p_network AND a.asset = x.asset AND a.payer = p_payer AND a.nonce = p_nonce;
    RETURN QUERY SELECT w.* FROM order_wire w
      WHERE w.id = ANY (ids) AND EXISTS (SELECT 1 FROM orders o WHERE o.id = w.id AND p_sellers::jsonb ? o.seller)
      ORDER BY w.created DESC;
END $$;

-- One more within the cap? One after the other counts; who is far from his cap has none here (NULL) and waits for
-- nobody.
CREATE FUNCTION seller_room(p_seller text, p_most bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF p_most IS NULL THEN
        RETURN true;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('seller:' || p_seller, 0));
    RETURN (SELECT count(*) FROM orders o WHERE o.seller = p_seller AND o.created_at > now() - interval '24 hours')
        < p_most;
END $$;

-- How many settlements each of these sellers (a JSON array) was given in the last 24 hours.
CREATE FUNCTION sellers_load(p_sellers text) RETURNS TABLE (seller text, today bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT s, (SELECT count(*) FROM orders o WHERE o.seller = s
        AND o.created_at > now() - interval '24 hours')
      FROM jsonb_array_elements_text(p_sellers::jsonb) s;
END $$;

-- Who submits, as far as settlers have shown themselves.
CREATE FUNCTION relayer_addresses() RETURNS TABLE (address bytea) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT r.address::bytea FROM relayers r ORDER BY 1;
END $$;

-- ---- telling how it ended ----

-- What a block's news is called, so that who hears it twice knows: the order, its end and its transaction.
CREATE FUNCTION notice_id(p_order bytea, p_state text, p_tx bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN substr(sha256(convert_to('payonce notice ' || p_state, 'UTF8') || p_order || coalesce(p_tx, ''::bytea)), 1,
        16);
END $$;

-- News that nobody was told yet, claimed for p_claim_s seconds: p_each at most of each of p_sellers, a JSON array.
CREATE FUNCTION notices_claim(p_sellers text, p_each integer, p_claim_s integer)
RETURNS TABLE (authorization_id bigint, notice bytea, seller text, tries integer, order_id bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH claimed AS (
        UPDATE notices n SET tries = n.tries + 1, next_at = now() + make_interval(secs => p_claim_s)
         WHERE n.authorization_id IN (
            SELECT y.authorization_id FROM jsonb_array_elements_text(p_sellers::jsonb) s CROSS JOIN LATERAL (
                SELECT x.authorization_id FROM authorizations a JOIN notices x ON x.authorization_id = a.id
                 WHERE a.tell = s AND a.ended_at IS NOT NULL AND x.next_at <= now()
                 ORDER BY a.ended_at LIMIT p_each FOR UPDATE OF x SKIP LOCKED) y)
        RETURNING n.authorization_id, n.tries)
    SELECT c.authorization_id, notice_id(o.id, a.state, p.tx), o.seller, c.tries, o.id::bytea
      FROM claimed c JOIN authorizations a ON a.id = c.authorization_id JOIN orders o ON o.id = a.order_id
      LEFT JOIN proofs p ON p.authorization_id = a.id WHERE a.ended_at IS NOT NULL;
END $$;

-- What came of it. Told counts only if the news is still the same; else it is tried again later, for three days.
CREATE FUNCTION notice_end(p_authorization bigint, p_notice bytea, p_told boolean, p_answer text, p_again_s integer)
    RETURNS void
LANGUAGE plpgsql AS $$
DECLARE over boolean;
BEGIN
    PERFORM 1 FROM authorizations WHERE id = p_authorization FOR UPDATE;
    SELECT p_told OR a.ended_at < now() - interval '3 days' INTO over
      FROM authorizations a LEFT JOIN proofs p ON p.authorization_id = a.id
     WHERE a.id = p_authorization AND a.ended_at IS NOT NULL AND notice_id(a.order_id, a.state, p.tx) = p_notice;
    UPDATE notices SET last_answer = left(p_answer, 200), next_at = now() + make_interval(secs => p_again_s),
           told_at = CASE WHEN over AND p_told THEN now() END, gave_up = coalesce(over AND NOT p_told, false)
     WHERE authorization_id = p_authorization;
    UPDATE authorizations SET tell = NULL WHERE id = p_authorization AND over;
END $$;

-- The end that was told is none any more (its block left the chain, or its nonce was signed anew): the next one is news
-- again.
CREATE FUNCTION notices_undone(p_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE notices SET tries = 0, next_at = '-infinity', told_at = NULL, gave_up = false
        WHERE authorization_id = ANY (p_ids);
    UPDATE authorizations a SET tell = o.seller FROM orders o
     WHERE a.id = ANY (p_ids) AND o.id = a.order_id AND EXISTS (SELECT 1 FROM notices n
         WHERE n.authorization_id = a.id);
END $$;
