-- Reading the books: what stands in which account at a block, the register, what exports are made of, and what the auditor compares.
-- Nothing here changes anything but reconciliation_add, which keeps a report.

-- From the settler's round: what became final or changed its class since.
CREATE FUNCTION journal_round(p_network text, p_by text, OUT booked integer) LANGUAGE plpgsql AS $$
BEGIN
    booked := journal_book(p_network, p_by::jsonb);
END $$;

-- ---- books at a block ----

-- Up to which block everything is booked; null: the books are not open yet.
CREATE FUNCTION books_block(p_network text, OUT block bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT min(least(m.block, s.block)) INTO block FROM movement_scans m
      LEFT JOIN scans s ON s.network = m.network AND s.wallet = m.wallet WHERE m.network = p_network;
    SELECT least(books_block.block, min(x.block) - 1) INTO block FROM (
        SELECT min(t.block) AS block FROM transfers t WHERE t.network = p_network AND t.booked IS DISTINCT FROM t.class
        UNION ALL SELECT min(m.block) FROM movements m WHERE m.network = p_network AND m.booked IS DISTINCT FROM m.class
        UNION ALL SELECT min(r.block) FROM relay_transactions r WHERE r.network = p_network AND r.gas_cost IS NULL AND r.state IN ('mined', 'final')
        -- mined as what it moved shows, and not noticed yet: its gas is in no entry
        UNION ALL SELECT min(t.block) FROM relay_transactions r JOIN transfers t ON t.network = r.network AND t.tx = r.hash
          WHERE r.network = p_network AND r.state IN ('signed', 'broadcast', 'replaced')
        UNION ALL SELECT min(m.block) FROM relay_transactions r JOIN movements m ON m.network = r.network AND m.tx = r.hash
          WHERE r.network = p_network AND r.state IN ('signed', 'broadcast', 'replaced')) x;
END $$;

-- Each account of the network as it stands with the entries up to a block, and, beside the liability account that must equal them, the
-- debts that were open then.
CREATE FUNCTION books_at(p_network text, p_block bigint)
RETURNS TABLE (asset text, name text, opening text, entries text, closing text, count bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT a.asset, a.name, coalesce(sum(p.amount) FILTER (WHERE e.kind = 'opening'), 0)::text,
           coalesce(sum(p.amount) FILTER (WHERE e.kind <> 'opening'), 0)::text, coalesce(sum(p.amount), 0)::text, count(p.entry_id)
      FROM accounts a LEFT JOIN (postings p JOIN entries e ON e.id = p.entry_id AND e.block <= p_block) ON p.account_id = a.id
     WHERE a.network = p_network GROUP BY a.asset, a.name
    UNION ALL
    SELECT asset_text(d.asset), 'open debts', '0', '0', sum(d.amount)::text, count(*) FROM debts d
      JOIN transfers t ON t.network = d.network AND t.tx = d.tx AND t.log_index = d.log_index AND t.booked IS NOT NULL
     WHERE d.network = p_network AND t.block <= p_block
       AND (d.state IN ('owed', 'approved', 'paying', 'held') OR (d.state = 'refunded' AND d.refund_block > p_block)) GROUP BY d.asset
     ORDER BY 1, 2;
END $$;

CREATE FUNCTION reconciliation_add(p_network text, p_block bigint, p_differences integer, p_report text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reconciliations (network, block, differences, report) VALUES (p_network, p_block, p_differences, p_report::jsonb);
END $$;
-- The newest of each network.
CREATE FUNCTION reconciliations_read(OUT reports text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT coalesce(json_agg(x.report ORDER BY x.network), '[]')::text INTO reports
      FROM (SELECT n.id AS network, (SELECT r.report FROM reconciliations r WHERE r.network = n.id ORDER BY r.made_at DESC LIMIT 1) AS report
              FROM networks n) x WHERE x.report IS NOT NULL;
END $$;

-- ---- for people ----

CREATE FUNCTION ledger_balance(p_until bigint) RETURNS TABLE (network text, asset text, name text, debit text, credit text, balance text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT a.network, a.asset, a.name, coalesce(sum(p.amount) FILTER (WHERE p.amount > 0), 0)::text,
           coalesce(-sum(p.amount) FILTER (WHERE p.amount < 0), 0)::text, coalesce(sum(p.amount), 0)::text
      FROM accounts a JOIN postings p ON p.account_id = a.id JOIN entries e ON e.id = p.entry_id
     WHERE e.block_time < p_until GROUP BY a.network, a.asset, a.name ORDER BY a.network, a.asset, a.name;
END $$;

-- One row a posting, in the order of the chain, with its source: what register and the exports print. p_name: of accounts that begin so.
CREATE FUNCTION export_rows(p_from bigint, p_until bigint, p_name text DEFAULT '')
RETURNS TABLE (entry bigint, at bigint, network text, block bigint, kind text, what text, tx bytea, log_index bigint, debt bytea,
    order_id bytea, receipt bytea, asset text, account text, amount text, reason text, actor text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT e.id, e.block_time, e.network, e.block, e.kind, e.what, e.tx::bytea, e.log_index, e.debt_id::bytea, o.id::bytea, o.receipt::bytea,
           a.asset, a.name, p.amount::text, e.reason, e.actor
      FROM entries e JOIN postings p ON p.entry_id = e.id JOIN accounts a ON a.id = p.account_id
      LEFT JOIN debts d ON d.id = e.debt_id
      LEFT JOIN transfers t ON e.tx IS NOT NULL AND t.network = e.network AND t.tx = e.tx AND t.log_index = e.log_index
      LEFT JOIN authorizations x ON x.id = t.authorization_id
      LEFT JOIN orders o ON o.id = coalesce(d.order_id, x.order_id)
     WHERE e.block_time >= p_from AND e.block_time < p_until AND starts_with(a.name, p_name)
     ORDER BY e.block_time, e.id, a.name;
END $$;

-- ---- for the auditor: what is there, to be compared with what the chain says; it trusts none of it ----

CREATE FUNCTION audit_scans(p_network text) RETURNS TABLE (wallet bytea, role text, start bigint, block bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT w.address::bytea, CASE w.role WHEN 'former' THEN 'refund' ELSE w.role END, m.start, least(m.block, s.block)
      FROM wallets w JOIN movement_scans m ON m.network = w.network AND m.wallet = w.address
      LEFT JOIN scans s ON s.network = w.network AND s.wallet = w.address WHERE w.network = p_network;
END $$;

-- Each entry with its postings as one text, and whether its digest is still right; p_after pages.
CREATE FUNCTION audit_entries(p_network text, p_after bigint, p_limit integer)
RETURNS TABLE (id bigint, kind text, what text, block bigint, tx bytea, log_index bigint, debt bytea, asset text, lines text, sum text, whole boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT e.id, e.kind, e.what, e.block, e.tx::bytea, e.log_index, e.debt_id::bytea, coalesce(l.asset, ''), coalesce(l.lines, '{}'),
           coalesce(l.sum, '0'), coalesce(entry_digest(e.network, e.kind, e.what, e.block, e.tx, e.log_index, e.debt_id, e.reason, e.actor, l.text) = e.digest, false)
      FROM entries e LEFT JOIN LATERAL (
           SELECT min(a.asset) AS asset, json_object_agg(a.name, p.amount::text)::text AS lines, sum(p.amount)::text AS sum,
                  string_agg(a.name || ' ' || p.amount, E'\n' ORDER BY a.name) AS text
             FROM postings p JOIN accounts a ON a.id = p.account_id WHERE p.entry_id = e.id) l ON true
     WHERE e.network = p_network AND e.id > p_after ORDER BY e.id LIMIT p_limit;
END $$;

CREATE FUNCTION audit_debts(p_network text) RETURNS TABLE (id bytea, state text, cause text, asset bytea, payer bytea, amount text, tx bytea,
    log_index bigint, part integer, refund_nonce bytea, refund_tx bytea, refund_log bigint, source_nonce bytea, source_block bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT d.id::bytea, d.state::text, d.cause::text, d.asset::bytea, d.payer::bytea, d.amount::text, d.tx::bytea, d.log_index,
           d.part::integer, d.refund_nonce::bytea, d.refund_tx::bytea, d.refund_log, a.nonce::bytea, t.block
      FROM debts d LEFT JOIN authorizations a ON a.id = d.authorization_id
      LEFT JOIN transfers t ON t.network = d.network AND t.tx = d.tx AND t.log_index = d.log_index AND t.booked IS NOT NULL WHERE d.network = p_network;
END $$;

-- What an incoming transfer should be, from the orders themselves and not from the class that it was given: the price of an order that
-- it pays; owed back; or neither.
CREATE FUNCTION audit_transfers(p_network text) RETURNS TABLE (tx bytea, log_index bigint, price text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT p.tx::bytea, p.log_index, a.amount::text FROM proofs p JOIN authorizations a ON a.id = p.authorization_id
      WHERE p.network = p_network;
END $$;

-- ---- one authorization: did you take my money? ----

-- Always one row. state null: never presented here, and no money came in under it up to block `scanned`.
CREATE FUNCTION authorization_read(p_network text, p_assets text, p_payer bytea, p_nonce bytea)
RETURNS TABLE (state text, dead_after bigint, ended boolean, receipt bytea, tx bytea, block bigint, why text, head bigint, final bigint,
    final_time bigint, scanned bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT coalesce(x.state, CASE WHEN t.tx IS NOT NULL THEN 'settled' END), x.dead_after, x.ended, x.receipt, coalesce(x.tx, t.tx),
           coalesce(x.block, t.block), x.why, n.head, n.final, n.final_time,
           (SELECT min(s.block) FROM scans s WHERE s.network = p_network)
      FROM networks n
      LEFT JOIN LATERAL (
           SELECT a.state::text, a.dead_after, a.ended_at IS NOT NULL AS ended, o.receipt::bytea, p.tx::bytea, p.block, a.end_note AS why
             FROM authorizations a JOIN orders o ON o.id = a.order_id LEFT JOIN proofs p ON p.authorization_id = a.id
            WHERE a.network = p_network AND a.asset = ANY (hex_ids(p_assets)) AND a.payer = p_payer AND a.nonce = p_nonce
            ORDER BY a.state = 'settled' DESC, a.id LIMIT 1) x ON true
      LEFT JOIN LATERAL (
           SELECT v.tx::bytea, v.block FROM transfers v WHERE v.network = p_network AND v.sender = p_payer AND v.nonce = p_nonce
              AND v.authorization_id IS NULL AND v.nonce IS NOT NULL LIMIT 1) t ON true
     WHERE n.id = p_network;
END $$;
