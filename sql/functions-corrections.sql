-- A person corrects the books, by one more entry: nothing that is in them changes.

-- From p_credit to p_debit. verdict: corrected; same: it is corrected so already, for the same reason; not_open: the
-- network's books are not open; account: it is in no entry, and no account of income, expenses or equity; amount: none.
-- entry: its number.
CREATE FUNCTION ledger_correct(p_network text, p_asset text, p_debit text, p_credit text, p_amount numeric,
    p_reason text, p_who text,
    OUT verdict text, OUT entry bigint) LANGUAGE plpgsql AS $$
DECLARE n networks;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('journal:' || p_network, 0));
    SELECT * INTO n FROM networks WHERE id = p_network;
    SELECT e.id INTO entry FROM entries e WHERE e.network = p_network AND e.reason = p_reason
       AND EXISTS (SELECT 1 FROM postings p JOIN accounts a ON a.id = p.account_id
                    WHERE p.entry_id = e.id AND a.asset = p_asset AND a.name = p_debit AND p.amount = p_amount)
       AND EXISTS (SELECT 1 FROM postings p JOIN accounts a ON a.id = p.account_id
                    WHERE p.entry_id = e.id AND a.asset = p_asset AND a.name = p_credit AND p.amount = -p_amount);
    verdict := CASE WHEN entry IS NOT NULL THEN 'same' WHEN books_block(p_network) IS NULL THEN 'not_open'
                    WHEN p_amount <= 0 OR p_debit = p_credit THEN 'amount'
                    WHEN NOT (account_known(p_network, p_asset, p_debit)
                        AND account_known(p_network, p_asset, p_credit)) THEN 'account'
                    ELSE 'corrected' END;
    IF verdict = 'corrected' THEN
        PERFORM entries_add(p_network, jsonb_build_array(jsonb_build_object('kind', 'correction', 'what', 'by a person',
            'block', n.final,
            'time', n.final_time, 'reason', p_reason, 'actor', 'operator:' || p_who, 'asset', p_asset,
            'lines', jsonb_build_object(p_debit, p_amount, p_credit, -p_amount))));
        SELECT max(e.id) INTO entry FROM entries e WHERE e.network = p_network AND e.reason = p_reason;
    END IF;
END $$;

CREATE FUNCTION account_known(p_network text, p_asset text, p_name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM accounts a WHERE a.network = p_network AND a.asset = p_asset AND a.name = p_name)
        OR (p_name ~ '^(income|expenses|equity):[a-z0-9][a-z0-9-]*(:[a-z0-9][a-z0-9-]*)*$'
            AND EXISTS (SELECT 1 FROM accounts a WHERE a.network = p_network AND a.asset = p_asset));
END $$;
