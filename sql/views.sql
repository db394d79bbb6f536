-- What is told of an order, derived from its two axes and stored nowhere.
CREATE VIEW order_status AS
SELECT o.id, o.receipt, o.created_at, o.rail, o.wire_version, o.tool, o.side_effect, o.cacheable, o.method, o.target, o.request,
       o.payment_id, o.payer, o.network, o.asset, o.payee, o.amount, o.work, o.work_epoch, o.work_ended_at, o.work_note,
       o.delivered_at, a.id AS authorization_id, a.state AS money, a.nonce, a.valid_before, a.dead_after, a.ended_at, a.end_note,
       p.tx, p.log_index, p.block, p.block_hash, p.block_time, n.head, n.final,
       (SELECT t.hash FROM relay_calls c JOIN relay_transactions t ON t.id = c.transaction_id
         WHERE c.authorization_id = a.id ORDER BY t.id DESC LIMIT 1) AS last_hash,
       o.answer_status, o.answer_digest, o.answer_size, EXISTS (SELECT 1 FROM answers w WHERE w.order_id = o.id) AS answer_kept,
       CASE WHEN o.work = 'lost' OR EXISTS (SELECT 1 FROM reviews r WHERE r.order_id = o.id AND r.resolved_at IS NULL
                                               AND coalesce(r.authorization_id = a.id, true)) THEN 'in_review'
            WHEN a.state = 'settled' AND o.work = 'failed' THEN
                 CASE WHEN EXISTS (SELECT 1 FROM debts d WHERE d.authorization_id = a.id AND d.state = 'refunded') THEN 'refunded' ELSE 'refund_due' END
            WHEN a.state = 'settled' AND o.work IN ('done', 'none') THEN 'paid'
            WHEN o.work IN ('waiting', 'running') THEN 'processing'
            WHEN o.work = 'failed' OR a.state = 'released' OR (o.work = 'done' AND o.answer_status IS NULL) THEN 'not_charged'
            WHEN a.state IN ('expired', 'void') THEN 'unpaid'
            ELSE 'settling' END AS status
  FROM orders o
  JOIN authorizations a ON a.id = o.authorization_id
  JOIN networks n ON n.id = o.network
  LEFT JOIN proofs p ON p.authorization_id = a.id;

-- What is owed back of an order and how far that is, as anybody who has its receipt may know it; null: nothing is.
CREATE FUNCTION order_refunds(p_order bytea) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT json_agg(json_strip_nulls(json_build_object('debt', hex_text(d.id), 'cause', d.cause, 'state', d.state,
            'amount', d.amount::text, 'to', hex_text(d.payer), 'owed_since', time_text(d.created_at),
            'source_transaction', hex_text(d.tx), 'source_log', d.log_index, 'reason', CASE WHEN d.state <> 'held' THEN d.reason END,
            'transaction', coalesce(hex_text(d.refund_tx), (SELECT hex_text(t.hash) FROM payout_calls c JOIN relay_transactions t
                                    ON t.id = c.transaction_id WHERE c.debt_id = d.id ORDER BY t.id DESC LIMIT 1),
                                    (SELECT hex_text(x.hash) FROM refund_transactions x WHERE x.debt_id = d.id ORDER BY x.id DESC LIMIT 1)),
            'block', d.refund_block, 'refunded_at', time_text(to_timestamp(d.refund_time)))) ORDER BY d.created_at, d.id)::text
              FROM debts d WHERE d.order_id = p_order);
END $$;

-- For books: one row an order, with the Transfer that paid it.
CREATE VIEW order_books AS
SELECT id AS order_id, status, network, asset, payer, payee, amount, tx, log_index FROM order_status;

-- The same in types that travel: text for amounts, unix seconds for times.
CREATE VIEW order_bare AS
SELECT id, receipt, status, work, work_epoch, money, extract(epoch FROM created_at)::bigint AS created, rail, wire_version, tool,
       side_effect, cacheable, method, target, request, payment_id, payer, network, asset, payee, amount::text AS amount, nonce,
       valid_before, dead_after, extract(epoch FROM work_ended_at)::bigint AS work_ended,
       extract(epoch FROM delivered_at)::bigint AS delivered, extract(epoch FROM ended_at)::bigint AS money_ended,
       tx, log_index, block, block_hash, block_time, head, final, last_hash, answer_status, answer_digest, answer_size,
       answer_kept, coalesce(work_note, end_note) AS note
  FROM order_status;
CREATE VIEW order_wire AS SELECT b.*, order_refunds(b.id) AS refunds FROM order_bare b;

CREATE FUNCTION order_by_id(p_order bytea) RETURNS SETOF order_wire LANGUAGE sql STABLE AS $$
    SELECT * FROM order_wire WHERE id = p_order;
$$;
-- Of a long story the beginning and the end.
CREATE FUNCTION order_timeline(p_order bytea) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT json_agg(json_strip_nulls(json_build_object('at', time_text(e.at), 'event', e.event, 'became', e.after,
                    'transaction', CASE WHEN e.facts ? 'tx' THEN '0x' || (e.facts->>'tx') END)) ORDER BY e.seq)::text
               FROM (SELECT x.*, row_number() OVER (ORDER BY x.seq) AS nth, row_number() OVER (ORDER BY x.seq DESC) AS from_end
                       FROM events x WHERE x.order_id = p_order AND x.event NOT LIKE 'told\_%') e WHERE e.nth <= 40 OR e.from_end <= 40);
END $$;
-- A receipt: the same, with what happened when, and the free repeats of its answer. Nobody's names, and no request of anybody's.
CREATE VIEW receipt_wire AS
SELECT w.*, order_timeline(w.id) AS timeline, repeats_of(w.id) AS free_repeats,
       (SELECT n.final_time FROM networks n WHERE n.id = w.network) AS final_time
  FROM order_wire w;
CREATE FUNCTION order_by_receipt(p_receipt bytea) RETURNS SETOF receipt_wire LANGUAGE sql STABLE AS $$
    SELECT * FROM receipt_wire WHERE receipt = p_receipt;
$$;
CREATE FUNCTION order_by_payment_id(p_payment_id text) RETURNS SETOF order_wire LANGUAGE sql STABLE AS $$
    SELECT * FROM order_wire WHERE id = order_of_payment_id(p_payment_id);
$$;
-- For many parked requests at once: a JSON array of hex ids. Each paid call comes by here, so its refunds are not asked for.
CREATE FUNCTION orders_by_ids(p_orders text) RETURNS SETOF order_wire LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT b.*, NULL::text FROM order_bare b WHERE b.id = ANY (hex_ids(p_orders));
END $$;
CREATE FUNCTION answer_by_order(p_order bytea)
RETURNS TABLE (status bigint, headers text, body bytea) LANGUAGE sql STABLE AS $$
    SELECT status::bigint, headers, body FROM answers WHERE order_id = p_order;
$$;
-- Counts for the metrics page.
CREATE FUNCTION money_counts() RETURNS TABLE (state text, count bigint, oldest_s bigint) LANGUAGE sql STABLE AS $$
    SELECT a.state, count(*), coalesce(extract(epoch FROM now() - min(a.created_at))::bigint, 0)
      FROM authorizations a WHERE a.ended_at IS NULL GROUP BY a.state;
$$;
-- What `payonce doctor` asks of the server: is a commit durable here, and which schema is this?
CREATE FUNCTION server_facts() RETURNS TABLE (schema_version integer, fsync boolean, synchronous_commit text, full_page_writes boolean,
    in_recovery boolean, server_version text) LANGUAGE sql STABLE AS $$
    SELECT (SELECT max(version) FROM migrations)::integer, current_setting('fsync')::boolean, current_setting('synchronous_commit'),
           current_setting('full_page_writes')::boolean, pg_is_in_recovery(), current_setting('server_version');
$$;
