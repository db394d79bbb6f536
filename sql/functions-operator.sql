-- What people ask, and what they decide: the story of an order, the calls that wait for a person, the figures for monitoring; and
-- what may be told to somebody who has a payment id and nothing else. Nothing here sends or takes money.

CREATE FUNCTION hex_text(p bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '0x' || encode(p, 'hex'); $$;
CREATE FUNCTION order_text(p bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'ord_' || encode(p, 'hex'); $$;
CREATE FUNCTION time_text(p timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(p AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
$$;
CREATE FUNCTION age_s(p timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp() - p))::bigint;
$$;

-- A request that names a payment id and brings no payment. verdict: pay (nothing is known, or all that was signed for it is proven
-- dead), in_flight, in_review, paid, done_uncharged, conflict (another request). dead_after: the last deadline of what may still land.
CREATE FUNCTION order_named(p_payment_id text, p_request bytea, OUT verdict text, OUT order_id bytea, OUT receipt bytea,
    OUT network text, OUT dead_after bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE o record; i payment_ids;
BEGIN
    SELECT * INTO i FROM payment_ids x WHERE x.payment_id = p_payment_id;
    SELECT * INTO o FROM order_status s WHERE s.id = i.order_id;
    IF o.id IS NULL OR i.request <> p_request THEN
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

-- ---- the story of an order: no body, no signature ----

CREATE FUNCTION story_events(p_order bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object('seq', seq, 'at', time_text(at), 'actor', actor, 'event', event, 'before', before,
           'after', after, 'request_id', request_id, 'attempt', encode(attempt, 'hex'), 'traceparent', traceparent,
           'retry_source', retry_source, 'facts', facts) ORDER BY seq)
      FROM events WHERE order_id = p_order;
$$;

-- Every hash that ever carried this authorization, oldest first.
CREATE FUNCTION story_transactions(p_authorization bigint) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object('hash', hex_text(t.hash), 'state', t.state, 'relayer', hex_text(t.relayer),
           'account_nonce', t.account_nonce, 'max_fee', t.max_fee::text, 'signed_at', time_text(t.created_at),
           'broadcast_at', time_text(t.broadcast_at), 'mined_at', time_text(t.mined_at), 'block', t.block,
           'block_hash', hex_text(t.block_hash)) ORDER BY t.id)
      FROM relay_calls c JOIN relay_transactions t ON t.id = c.transaction_id WHERE c.authorization_id = p_authorization;
$$;

CREATE FUNCTION story_proofs(p_authorization bigint) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object('tx', hex_text(tx), 'log_index', log_index, 'block', block, 'block_hash', hex_text(block_hash),
           'recorded_at', time_text(recorded_at), 'undone_at', time_text(undone_at)) ORDER BY recorded_at NULLS FIRST, undone_at)
      FROM (SELECT tx, log_index, block, block_hash, recorded_at, NULL::timestamptz AS undone_at FROM proofs
             WHERE authorization_id = p_authorization
            UNION ALL
            SELECT tx, log_index, block, block_hash, NULL, undone_at FROM undone_proofs WHERE authorization_id = p_authorization) x;
$$;

CREATE FUNCTION story_authorizations(p_order bytea) RETURNS json LANGUAGE sql STABLE AS $$
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

CREATE FUNCTION story_debts(p_order bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_object('debt', hex_text(id), 'cause', cause, 'state', state, 'amount', amount::text,
           'payer', hex_text(payer), 'tx', hex_text(tx), 'log_index', log_index, 'made_at', time_text(created_at), 'reason', reason,
           'approved_by', CASE WHEN state <> 'owed' THEN changed_by END, 'refund_nonce', hex_text(refund_nonce), 'tries', tries,
           'refund_tx', hex_text(refund_tx), 'refund_block', refund_block, 'changed_at', time_text(changed_at)) ORDER BY created_at)
      FROM debts WHERE order_id = p_order;
$$;

CREATE FUNCTION story_review(p_order bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object('fact', fact, 'opened_at', time_text(opened_at), 'age_s', age_s(opened_at),
           'resolution', resolution, 'resolved_at', time_text(resolved_at), 'resolved_by', resolved_by, 'note', note,
           'external_id', external_id, 'theirs', theirs)
      FROM reviews WHERE order_id = p_order;
$$;

-- How the webhook of a settlement's seller took the news of its end.
CREATE FUNCTION story_told(p_order bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object('state', CASE WHEN n.told_at IS NOT NULL THEN 'told ' || time_text(n.told_at)
                                           WHEN n.gave_up THEN 'never told' ELSE 'not told yet' END,
           'tries', n.tries, 'last_answer', n.last_answer)
      FROM authorizations a JOIN notices n ON n.authorization_id = a.id WHERE a.order_id = p_order;
$$;

CREATE FUNCTION order_story(p_order bytea) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT json_strip_nulls(json_build_object('order_id', order_text(s.id), 'receipt_id', 'rcp_' || encode(s.receipt, 'hex'),
           'payment_id', s.payment_id, 'status', s.status, 'work', s.work, 'money', s.money, 'tool', s.tool,
           'side_effect', s.side_effect, 'method', s.method, 'target', s.target, 'request', hex_text(s.request),
           'attempts', s.work_epoch, 'payer', hex_text(s.payer), 'payee', hex_text(s.payee), 'network', s.network,
           'asset', hex_text(s.asset), 'amount', s.amount::text, 'made_at', time_text(s.created_at),
           'work_ended_at', time_text(s.work_ended_at), 'work_note', s.work_note, 'delivered_at', time_text(s.delivered_at),
           'answer_status', s.answer_status, 'answer_size', s.answer_size,
           'events', story_events(s.id), 'events_broken', events_broken(s.id), 'authorizations', story_authorizations(s.id),
           'debts', story_debts(s.id), 'review', story_review(s.id), 'seller', (SELECT o.seller FROM orders o WHERE o.id = s.id),
           'webhook', story_told(s.id)))
      FROM order_status s WHERE s.id = p_order);
END $$;

-- Whose story is it: an order's, a receipt's or a payment id, or a nonce's, transaction's or debt's hash.
CREATE FUNCTION orders_named(p_what text) RETURNS SETOF bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
    h bytea := CASE WHEN p_what ~* '^0x[0-9a-f]{64}$' THEN decode(substr(p_what, 3), 'hex') END;
    i bytea := CASE WHEN p_what ~ '^(ord|rcp)_[0-9a-f]{32}$' THEN decode(substr(p_what, 5), 'hex') END;
BEGIN
    RETURN QUERY
    SELECT o.id::bytea FROM orders o WHERE o.payment_id = p_what
    UNION SELECT i.order_id FROM payment_ids i WHERE i.payment_id = p_what
    UNION SELECT o.id FROM orders o WHERE o.id = i AND p_what LIKE 'ord%'
    UNION SELECT o.id FROM orders o WHERE o.receipt = i AND p_what LIKE 'rcp%'
    UNION SELECT a.order_id FROM authorizations a WHERE a.nonce = h
    UNION SELECT a.order_id FROM networks n JOIN relay_transactions t ON t.network = n.id AND t.hash = h
            JOIN relay_calls c ON c.transaction_id = t.id JOIN authorizations a ON a.id = c.authorization_id
    UNION SELECT a.order_id FROM networks n JOIN proofs p ON p.network = n.id AND p.tx = h
            JOIN authorizations a ON a.id = p.authorization_id
    UNION SELECT a.order_id FROM undone_proofs p JOIN authorizations a ON a.id = p.authorization_id WHERE p.tx = h
    UNION SELECT d.order_id FROM debts d WHERE d.id = h;
END $$;

-- {"orders": [story], "transfers": [of this transaction, that belong to no order]}
CREATE FUNCTION explain(p_what text, OUT story text) LANGUAGE plpgsql STABLE AS $$
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
END $$;

-- ---- what waits for a person ----

CREATE FUNCTION review_list(OUT list text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT coalesce(json_agg(json_strip_nulls(json_build_object('order_id', order_text(o.id), 'opened_at', time_text(r.opened_at),
           'age_s', age_s(r.opened_at), 'fact', r.fact, 'theirs', r.theirs, 'tool', o.tool, 'side_effect', o.side_effect, 'method', o.method,
           'target', o.target, 'payer', hex_text(o.payer), 'amount', o.amount::text, 'network', o.network, 'work', o.work,
           'payment_id', o.payment_id)) ORDER BY r.opened_at), '[]')::text
      INTO list FROM reviews r JOIN orders o ON o.id = r.order_id WHERE r.resolved_at IS NULL;
END $$;

-- A payment that was landed by somebody else while nobody knew of the work was booked as owed back; if the work was done after all,
-- it is the price.
CREATE FUNCTION debt_earned(o orders, p_by jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE d debts;
BEGIN
    UPDATE debts SET state = 'earned', reason = NULL, changed_at = now()
     WHERE authorization_id = o.authorization_id AND state IN ('owed', 'approved', 'held') AND cause IN ('late', 'work_failed')
    RETURNING * INTO d;
    IF d.id IS NOT NULL THEN
        UPDATE transfers SET class = 'sale' WHERE network = d.network AND tx = d.tx AND log_index = d.log_index;
        PERFORM event_add(o.id, p_by, 'debt_earned', 'owed', 'earned', jsonb_build_object('debt', encode(d.id, 'hex'),
                          'why', 'the work was done'));
        PERFORM surplus_book(ARRAY[o.authorization_id], p_by);
    END IF;
END $$;

-- A person decides what became of lost work: done (there is no answer to keep, and nothing is charged for it) or failed (it may run
-- again); or, where a payment is in doubt that the chain has used and no log explains, that it is void. verdict: resolved; or nothing
-- changed: unknown, no_review, decided (otherwise, before), not_lost or not_money (that is not what is in doubt). From here on an answer of that run comes too late.
CREATE FUNCTION review_resolve(p_order bytea, p_resolution text, p_note text, p_external_id text, p_who text,
    OUT verdict text, OUT resolution text, OUT resolved_by text) LANGUAGE plpgsql AS $$
DECLARE o orders; r reviews; by_whom jsonb := jsonb_build_object('actor', 'operator:' || p_who);
        said text := format('%s decided: %s', by_whom->>'actor', p_note);
BEGIN
    SELECT * INTO o FROM orders x WHERE x.id = p_order FOR NO KEY UPDATE;
    SELECT * INTO r FROM reviews x WHERE x.order_id = p_order FOR UPDATE;
    resolution := r.resolution;
    resolved_by := r.resolved_by;
    verdict := CASE WHEN o.id IS NULL THEN 'unknown'
                    WHEN p_resolution = 'void' AND EXISTS (SELECT 1 FROM authorizations a WHERE a.order_id = o.id AND a.state = 'void'
                                                              AND a.end_note = said) THEN 'resolved'
                    WHEN r.order_id IS NULL THEN 'no_review'
                    WHEN p_resolution = 'void' AND (r.resolved_at IS NOT NULL OR r.authorization_id IS NULL) THEN 'not_money'
                    WHEN r.resolved_at IS NULL AND o.work <> 'lost' AND p_resolution <> 'void' THEN 'not_lost'
                    WHEN r.resolved_at IS NULL THEN 'resolved'
                    WHEN (r.resolution, r.resolved_by, r.note, o.work) = (p_resolution, by_whom->>'actor', p_note, p_resolution)
                         AND r.external_id IS NOT DISTINCT FROM p_external_id THEN 'resolved' -- our own commit, whose reply was lost
                    ELSE 'decided' END;
    IF p_resolution = 'void' AND verdict = 'resolved' THEN
        resolution := 'void';
        resolved_by := by_whom->>'actor';
        IF r.authorization_id IS NOT NULL THEN
            PERFORM event_add(p_order, by_whom, 'review_resolved', 'money in doubt', 'money void', jsonb_build_object('note', p_note));
            PERFORM authorization_end(r.authorization_id, 'void', said, by_whom::text);
        END IF;
        RETURN;
    ELSIF verdict <> 'resolved' OR r.resolved_at IS NOT NULL THEN
        RETURN;
    ELSIF p_resolution NOT IN ('done', 'failed') THEN
        RAISE EXCEPTION 'a review ends done, failed or void';
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

-- ---- figures ----

-- What happened since p_after (the id of an event; null: from now on) up to until: counters that the caller adds up. Rows that are
-- younger than ten seconds are left to the next call, since one that is written now may carry a smaller id than one already seen.
CREATE FUNCTION metrics_events(p_after bigint, p_buckets numeric[]) RETURNS TABLE (metric text, label text, value text)
LANGUAGE plpgsql STABLE AS $$
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

-- What is, and what happened since. Each part reads an index of what is open, or a bounded number of rows.
CREATE FUNCTION metrics_read(p_after bigint, p_buckets text) RETURNS TABLE (metric text, label text, value text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    WITH alive AS (SELECT a.state, CASE a.state WHEN 'sent' THEN a.sent_at WHEN 'due' THEN a.due_at ELSE a.created_at END AS since,
                          a.order_id FROM authorizations a WHERE a.ended_at IS NULL),
         untold AS (SELECT a.ended_at FROM authorizations a WHERE a.tell IS NOT NULL AND a.ended_at IS NOT NULL),
         waiting AS (SELECT r.opened_at FROM reviews r WHERE r.resolved_at IS NULL),
         newest AS (SELECT t.state FROM relay_transactions t ORDER BY t.id DESC LIMIT 10000)
    SELECT 'open', a.state, count(*)::text FROM alive a GROUP BY a.state
    UNION ALL SELECT 'open_oldest', a.state, age_s(min(a.since))::text FROM alive a GROUP BY a.state
    UNION ALL SELECT 'unknowns', '', count(*)::text FROM alive a WHERE a.state = 'sent'
    UNION ALL SELECT 'unknown_oldest', '', coalesce(age_s(min(a.since)), 0)::text FROM alive a WHERE a.state = 'sent'
    UNION ALL SELECT 'settlements', o.seller, count(*)::text FROM alive a JOIN orders o ON o.id = a.order_id
      WHERE o.seller IS NOT NULL GROUP BY o.seller
    UNION ALL SELECT 'untold', '', count(*)::text FROM untold
    UNION ALL SELECT 'untold_oldest', '', coalesce(age_s(min(u.ended_at)), 0)::text FROM untold u
    UNION ALL SELECT 'reviews', '', count(*)::text FROM waiting
    UNION ALL SELECT 'review_oldest', '', coalesce(age_s(min(w.opened_at)), 0)::text FROM waiting w
    UNION ALL SELECT 'duplicates', '', count(*)::text FROM debts d WHERE d.cause = 'duplicate'
    UNION ALL SELECT 'relay', t.state, count(*)::text FROM newest t GROUP BY t.state
    UNION ALL SELECT 'fee_capped', n.id, (SELECT count(*) FROM relay_transactions t WHERE t.network = n.id
                         AND t.state IN ('signed', 'broadcast') AND t.capped_at IS NOT NULL)::text FROM networks n
    UNION ALL SELECT 'gas', n.id, n.gas_balance::text FROM networks n WHERE n.gas_balance IS NOT NULL
    UNION ALL SELECT 'seen', n.id, age_s(n.seen_at)::text FROM networks n
    UNION ALL SELECT 'rpc_faults', format('network="%s",endpoint="%s",kind="%s"', f.network, f.endpoint, f.kind), f.n::text FROM rpc_faults f
    UNION ALL SELECT 'debts', d.state, count(*)::text FROM debts d WHERE d.state IN ('owed', 'approved', 'paying', 'held') GROUP BY d.state
    UNION ALL SELECT 'debt_oldest', '', coalesce(age_s(min(d.created_at)), 0)::text FROM debts d
               WHERE d.state IN ('owed', 'approved', 'paying', 'held')
    UNION ALL SELECT 'refund_wallet', asset_text(f.asset), f.balance::text FROM refund_funds f
    UNION ALL SELECT 'refund_lacks', asset_text(f.asset), f.lacks::text FROM refund_funds f
    UNION ALL SELECT 'books', '', count(*)::text FROM wallet_checks c WHERE c.on_chain <> c.in_books
    UNION ALL SELECT * FROM metrics_events(p_after, p_buckets::numeric[]);
END $$;
