-- The books: what moved in and out of our wallets, and the journal of it. Called by the settler, a range of blocks at a time.
-- Amounts in postings are signed, debit positive.

-- ---- the journal's own rules ----

CREATE FUNCTION posting_balances() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = payonce, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM postings p JOIN accounts a ON a.id = p.account_id WHERE p.entry_id = NEW.entry_id
                GROUP BY a.network, a.asset HAVING sum(p.amount) <> 0) THEN
        RAISE EXCEPTION 'entry % does not sum to zero', NEW.entry_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER postings_balance AFTER INSERT ON postings DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION posting_balances();

CREATE FUNCTION journal_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the journal is not changed: a correction is an entry' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER entries_stand BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION journal_stands();
CREATE TRIGGER postings_stand BEFORE UPDATE OR DELETE ON postings FOR EACH ROW EXECUTE FUNCTION journal_stands();

-- A transfer is owed back once (its place is unique among debts), and never more of it than came in.
CREATE FUNCTION debt_covered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.amount > (SELECT t.amount FROM transfers t WHERE t.network = NEW.network AND t.tx = NEW.tx AND t.log_index = NEW.log_index) THEN
        RAISE EXCEPTION 'debt % is more than came in', encode(NEW.id, 'hex') USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER debts_covered BEFORE INSERT OR UPDATE OF amount ON debts FOR EACH ROW EXECUTE FUNCTION debt_covered();

-- ---- accounts and entries ----

CREATE FUNCTION asset_text(p bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '0x' || encode(p, 'hex'); $$;
CREATE FUNCTION wallet_account(p_role text, p_address bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'assets:' || CASE WHEN p_role IN ('refund', 'former') THEN 'refund-wallet' WHEN p_role = 'relayer' THEN 'gas' ELSE 'wallet' END
        || ':0x' || encode(p_address, 'hex');
$$;

CREATE FUNCTION entry_digest(p_network text, p_kind text, p_what text, p_block bigint, p_tx bytea, p_log bigint, p_debt bytea,
    p_reason text, p_actor text, p_lines text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(convert_to(concat_ws(E'\n', p_network, p_kind, p_what, p_block, coalesce(encode(p_tx, 'hex'), '-'),
                                       coalesce(p_log::text, '-'), coalesce(encode(p_debt, 'hex'), '-'), p_reason, p_actor, p_lines),
                             'UTF8'));
$$;

-- Many entries in one statement each: [{"kind", "what", "block", "time", "tx"?, "log"?, "debt"?, "reason"?, "actor"?, "asset", "lines": {account: amount}}].
-- A line of zero is left out; an entry of none is not made. Returns how many postings were.
CREATE FUNCTION entries_add(p_network text, p_entries jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE made integer;
BEGIN
    INSERT INTO accounts (network, asset, name)
    SELECT DISTINCT p_network, v->>'asset', l.key FROM jsonb_array_elements(p_entries) v, jsonb_each_text(v->'lines') l
     WHERE l.value::numeric <> 0
       AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.network = p_network AND a.asset = v->>'asset' AND a.name = l.key)
    ON CONFLICT DO NOTHING;
    WITH given AS (
        SELECT nextval('payonce.entries_id_seq') AS id, v, l.ids, l.amounts, l.text
          FROM jsonb_array_elements(p_entries) v, LATERAL (
               SELECT array_agg(x.account ORDER BY x.name) AS ids, array_agg(x.amount ORDER BY x.name) AS amounts,
                      string_agg(x.name || ' ' || x.amount, E'\n' ORDER BY x.name) AS text
                 FROM (SELECT k.key AS name, k.value::numeric AS amount, (SELECT a.id FROM accounts a WHERE a.network = p_network
                                 AND a.asset = v->>'asset' AND a.name = k.key) AS account
                         FROM jsonb_each_text(v->'lines') k WHERE k.value::numeric <> 0) x) l
         WHERE l.ids IS NOT NULL),
    entered AS (
        INSERT INTO entries (id, network, kind, what, block, block_time, tx, log_index, debt_id, reason, actor, digest)
        OVERRIDING SYSTEM VALUE
        SELECT g.id, p_network, v->>'kind', v->>'what', (v->>'block')::bigint, (v->>'time')::bigint, decode(v->>'tx', 'hex'),
               (v->>'log')::bigint, decode(v->>'debt', 'hex'), v->>'reason', v->>'actor',
               entry_digest(p_network, v->>'kind', v->>'what', (v->>'block')::bigint, decode(v->>'tx', 'hex'), (v->>'log')::bigint,
                            decode(v->>'debt', 'hex'), v->>'reason', v->>'actor', g.text)
          FROM given g ORDER BY g.id)
    INSERT INTO postings (entry_id, account_id, amount) SELECT g.id, x.account, x.amount FROM given g, unnest(g.ids, g.amounts) AS x (account, amount);
    GET DIAGNOSTICS made = ROW_COUNT;
    RETURN made;
END $$;

-- How much of an incoming transfer is whose, under a class.
CREATE FUNCTION share(p_class text, p_account text, p_amount numeric, p_price numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_class = 'overpaid' AND p_account = 'income:sales' THEN p_price
                WHEN p_class = 'overpaid' AND p_account = 'liabilities:refunds-owed' THEN p_amount - p_price
                WHEN (p_class, p_account) IN (('sale', 'income:sales'), ('debt', 'liabilities:refunds-owed'),
                     ('suspense', 'liabilities:suspense'), ('internal', 'assets:clearing')) THEN p_amount
                ELSE 0 END;
$$;

-- Transfers at or below the final block that the journal does not have yet, or has under another class: the first entry takes the money
-- into its wallet, a later one only moves it between the accounts that it belongs to. What came in before the wallet's books began is in
-- their opening balance already, and is taken out of that; until they begin nothing is booked.
CREATE FUNCTION transfers_book(p_network text, p_final bigint, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE made jsonb; how_many integer;
BEGIN
    WITH due AS (
        SELECT t.*, (SELECT s.start FROM movement_scans s WHERE s.network = t.network AND s.wallet = t.receiver) AS start
          FROM transfers t WHERE t.network = p_network AND t.block <= p_final AND t.booked IS DISTINCT FROM t.class
           AND EXISTS (SELECT 1 FROM movement_scans s WHERE s.network = t.network AND s.wallet = t.receiver)
         ORDER BY t.block, t.log_index LIMIT p_limit FOR UPDATE OF t SKIP LOCKED),
    marked AS (
        UPDATE transfers t SET booked = t.class FROM due d
         WHERE t.network = d.network AND t.tx = d.tx AND t.log_index = d.log_index)
    SELECT jsonb_agg(jsonb_build_object('kind', CASE WHEN d.booked IS NULL THEN 'receipt' ELSE 'correction' END,
               'what', CASE WHEN d.booked IS NULL THEN d.class ELSE d.booked || ' is ' || d.class END, 'block', d.block,
               'time', d.block_time, 'tx', encode(d.tx, 'hex'), 'log', d.log_index, 'asset', asset_text(d.asset),
               'debt', (SELECT encode(x.id, 'hex') FROM debts x WHERE x.network = d.network AND x.tx = d.tx AND x.log_index = d.log_index),
               'lines', jsonb_build_object(CASE WHEN d.block <= d.start THEN 'equity:opening' ELSE wallet_account('receive', d.receiver) END,
                   CASE WHEN d.booked IS NULL THEN d.amount ELSE 0 END)
                   || (SELECT jsonb_object_agg(x.name, share(d.booked, x.name, d.amount, a.amount) - share(d.class, x.name, d.amount, a.amount))
                         FROM unnest(ARRAY['income:sales', 'liabilities:refunds-owed', 'liabilities:suspense', 'assets:clearing']) AS x (name)))
               ORDER BY d.block, d.log_index), count(*)
      INTO made, how_many FROM due d LEFT JOIN authorizations a ON a.id = d.authorization_id;
    IF how_many > 0 THEN
        PERFORM entries_add(p_network, made);
    END IF;
    RETURN how_many;
END $$;

-- The account that a movement goes to or comes from, besides our wallet.
CREATE FUNCTION movement_account(p_class text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_class WHEN 'payout' THEN 'liabilities:refunds-owed' WHEN 'withdrawal' THEN 'equity:withdrawals'
                        WHEN 'funding' THEN 'equity:funding' WHEN 'fee' THEN 'expenses:gas' ELSE 'assets:clearing' END;
$$;

CREATE FUNCTION movements_book(p_network text, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE made jsonb; how_many integer;
BEGIN
    WITH due AS (
        SELECT m.* FROM movements m WHERE m.network = p_network AND m.booked IS DISTINCT FROM m.class
         ORDER BY m.block, m.log_index LIMIT p_limit FOR UPDATE SKIP LOCKED),
    marked AS (
        UPDATE movements m SET booked = m.class FROM due d
         WHERE m.network = d.network AND m.tx = d.tx AND m.log_index = d.log_index),
    sides AS (
        SELECT d.*, s.role AS out_role, r.role AS in_role FROM due d
          LEFT JOIN wallets s ON s.network = d.network AND s.address = d.sender
          LEFT JOIN wallets r ON r.network = d.network AND r.address = d.receiver AND r.role IN ('refund', 'former'))
    SELECT jsonb_agg(jsonb_build_object('kind', CASE WHEN s.booked IS NULL THEN 'movement' ELSE 'correction' END,
               'what', CASE WHEN s.booked IS NULL THEN s.class ELSE s.booked || ' is ' || s.class END, 'block', s.block,
               'time', s.block_time, 'tx', encode(s.tx, 'hex'), 'log', s.log_index, 'debt', encode(s.debt_id, 'hex'),
               'asset', asset_text(s.asset), 'lines', CASE
               WHEN s.booked IS NOT NULL THEN jsonb_build_object(movement_account(s.booked), -s.amount, movement_account(s.class), s.amount)
               WHEN s.out_role IS NULL THEN jsonb_build_object(wallet_account(s.in_role, s.receiver), s.amount,
                                                               movement_account(s.class), -s.amount)
               WHEN s.in_role IS NOT NULL THEN jsonb_build_object(wallet_account(s.out_role, s.sender), -s.amount)
                                                 || jsonb_build_object(wallet_account(s.in_role, s.receiver), s.amount)
               ELSE jsonb_build_object(wallet_account(s.out_role, s.sender), -s.amount, movement_account(s.class), s.amount) END)
               ORDER BY s.block, s.log_index), count(*)
      INTO made, how_many FROM sides s;
    IF how_many > 0 THEN
        PERFORM entries_add(p_network, made);
    END IF;
    RETURN how_many;
END $$;

-- A movement that carries the nonce of a debt's refund, with its terms, is that refund: proven, by whoever sent it and whatever this
-- database knew of it.
CREATE FUNCTION payouts_match(p_network text, p_by jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE m record; n integer := 0;
BEGIN
    FOR m IN SELECT x.*, d.id AS debt, d.order_id, d.state FROM movements x JOIN debts d ON d.refund_nonce = x.nonce
              WHERE x.network = p_network AND x.nonce IS NOT NULL AND x.debt_id IS NULL AND d.network = x.network AND d.asset = x.asset
                AND d.payer = x.receiver AND d.amount = x.amount AND d.state <> 'refunded'
                AND EXISTS (SELECT 1 FROM wallets w WHERE w.network = x.network AND w.address = x.sender
                               AND w.role IN ('refund', 'former'))
              ORDER BY d.order_id, d.id
    LOOP
        PERFORM 1 FROM orders o WHERE o.id = m.order_id FOR NO KEY UPDATE;
        UPDATE debts d SET state = 'refunded', refund_tx = m.tx, refund_log = m.log_index, refund_block = m.block,
               refund_time = m.block_time, reason = NULL, changed_at = now(), changed_by = p_by->>'actor', wallet = coalesce(d.wallet, m.sender)
         WHERE d.id = m.debt AND d.state <> 'refunded';
        CONTINUE WHEN NOT FOUND;
        UPDATE movements x SET class = 'payout', debt_id = m.debt WHERE x.network = m.network AND x.tx = m.tx AND x.log_index = m.log_index;
        PERFORM debt_told(m.order_id, p_by, 'debt_refunded', m.state, 'refunded', m.debt,
                          jsonb_build_object('tx', encode(m.tx, 'hex'), 'log_index', m.log_index, 'block', m.block));
        n := n + 1;
    END LOOP;
    RETURN n;
END $$;

-- Into the order's story; a debt of no order (what a person took out of suspense) has its row alone.
CREATE FUNCTION debt_told(p_order bytea, p_by jsonb, p_event text, p_before text, p_after text, p_debt bytea, p_facts jsonb DEFAULT '{}')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_order IS NOT NULL THEN
        PERFORM event_add(p_order, p_by, p_event, p_before, p_after, jsonb_build_object('debt', encode(p_debt, 'hex')) || p_facts);
        PERFORM pg_notify('payonce_order', encode(p_order, 'hex'));
    END IF;
END $$;

-- One at a time a network, so that no fact is booked twice; what somebody is changing right now is left to the next time.
CREATE FUNCTION journal_book(p_network text, p_by jsonb, p_limit integer DEFAULT 5000) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM payouts_match(p_network, p_by);      -- locks orders, which come before the journal
    PERFORM pg_advisory_xact_lock(hashtextextended('journal:' || p_network, 0));
    RETURN transfers_book(p_network, (SELECT final FROM networks WHERE id = p_network), p_limit) + movements_book(p_network, p_limit);
END $$;

-- ---- which wallets are ours, and where they stood when the books began ----

-- [{"address", "role"}]. verdict: ok; wallet_changed: another refund wallet has signed what is not proven dead or done. former: a row each
-- of the other wallets of ours, which are read on: those that refunds were paid from (refund), and those that were paid to.
CREATE FUNCTION wallets_pin(p_network text, p_wallets text) RETURNS TABLE (verdict text, former bytea, refund boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE pays bytea := (SELECT decode(v->>'address', 'hex') FROM jsonb_array_elements(p_wallets::jsonb) v WHERE v->>'role' = 'refund');
BEGIN
    IF EXISTS (SELECT 1 FROM debts d WHERE d.network = p_network AND d.state = 'paying' AND d.wallet <> coalesce(pays, d.wallet)) THEN
        RETURN QUERY SELECT 'wallet_changed', NULL::bytea, NULL::boolean;
        RETURN;
    END IF;
    UPDATE wallets SET role = 'former' WHERE network = p_network AND role = 'refund' AND address <> pays;
    INSERT INTO wallets (network, address, role)
    SELECT p_network, decode(v->>'address', 'hex'), v->>'role' FROM jsonb_array_elements(p_wallets::jsonb) v
    ON CONFLICT (network, address) DO UPDATE SET role = excluded.role
     WHERE wallets.role <> excluded.role AND (excluded.role = 'refund' OR wallets.role NOT IN ('refund', 'former'));
    RETURN QUERY SELECT 'ok', w.address::bytea, w.role <> 'receive' FROM (SELECT 1) one LEFT JOIN wallets w ON w.network = p_network
                    AND (w.role IN ('refund', 'former') OR (w.role = 'receive' AND NOT EXISTS (SELECT 1
                         FROM jsonb_array_elements(p_wallets::jsonb) v WHERE decode(v->>'address', 'hex') = w.address)))
                    AND w.address IS DISTINCT FROM pays;
END $$;
-- What the books know as paid to, also what the configuration does not name any more.
CREATE FUNCTION receiving_wallets(p_network text) RETURNS TABLE (wallet bytea) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT w.address::bytea FROM wallets w WHERE w.network = p_network AND w.role = 'receive';
END $$;

-- Where the scan of what leaves a wallet stands. A new one begins where the scan of what comes in stands, so that one balance opens both.
-- A wallet that a person named as one that paid before: where it did. block: null while that has not begun. opened: false until the balance at `block` is recorded.
CREATE FUNCTION movement_cursor(p_network text, p_wallet bytea, p_final bigint, OUT block bigint, OUT start bigint, OUT opened boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT s.block, s.start, true INTO block, start, opened FROM movement_scans s WHERE s.network = p_network AND s.wallet = p_wallet;
    IF block IS NULL THEN
        SELECT s.block INTO block FROM scans s WHERE s.network = p_network AND s.wallet = p_wallet;
        IF block IS NULL THEN
            SELECT CASE w.role WHEN 'refund' THEN p_final WHEN 'former' THEN coalesce((SELECT min(d.foreign_block) - 1 FROM debts d
                       WHERE d.network = p_network AND d.foreign_wallet = p_wallet), p_final) END
              INTO block FROM wallets w WHERE w.network = p_network AND w.address = p_wallet;
        END IF;
        start := block;
        opened := false;
    END IF;
END $$;

-- The books of a wallet begin: {"asset": balance at p_block}.
CREATE FUNCTION wallet_open(p_network text, p_wallet bytea, p_block bigint, p_time bigint, p_balances text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE account text := wallet_account((SELECT role FROM wallets WHERE network = p_network AND address = p_wallet), p_wallet);
BEGIN
    INSERT INTO movement_scans (network, wallet, start, block) VALUES (p_network, p_wallet, p_block, p_block) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM entries_add(p_network, (
        SELECT jsonb_agg(jsonb_build_object('kind', 'opening', 'what', 'the books begin', 'block', p_block, 'time', p_time, 'asset', b.key,
               'lines', jsonb_build_object(account, b.value::numeric, 'equity:opening', -b.value::numeric)))
          FROM jsonb_each_text(p_balances::jsonb) b));
END $$;

-- The cursor and what was found, in one commit, and into the journal with it. Findings as scan_record has them.
CREATE FUNCTION movements_record(p_network text, p_wallet bytea, p_from bigint, p_to bigint, p_findings text, p_by text, OUT moved boolean)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE movement_scans SET block = p_to WHERE network = p_network AND wallet = p_wallet AND block = p_from;
    moved := FOUND;
    IF NOT moved THEN
        RETURN;
    END IF;
    INSERT INTO movements (network, tx, log_index, asset, sender, receiver, amount, block, block_hash, block_time, nonce, class)
    SELECT p_network, x.tx, x.log_index, x.asset, x.sender, x.receiver, x.amount, x.block, x.block_hash, x.block_time, x.nonce,
           CASE WHEN x.fee THEN 'fee' WHEN s.address IS NULL THEN 'funding' WHEN r.address IS NULL THEN 'withdrawal' ELSE 'internal' END
      FROM (SELECT decode(v->>'tx', 'hex') AS tx, (v->>'log_index')::bigint AS log_index, decode(v->>'asset', 'hex') AS asset,
                   decode(v->>'sender', 'hex') AS sender, decode(v->>'receiver', 'hex') AS receiver, (v->>'amount')::numeric AS amount,
                   (v->>'block')::bigint AS block, decode(v->>'block_hash', 'hex') AS block_hash, (v->>'block_time')::bigint AS block_time,
                   decode(coalesce(v->>'nonce', v->>'mark'), 'hex') AS nonce, v ? 'fee' AS fee FROM jsonb_array_elements(p_findings::jsonb) v) x
      LEFT JOIN wallets s ON s.network = p_network AND s.address = x.sender
      LEFT JOIN wallets r ON r.network = p_network AND r.address = x.receiver
    ON CONFLICT DO NOTHING;
    PERFORM journal_book(p_network, p_by::jsonb);
END $$;

-- The chain's own balance at p_block, against the account with all that is booked up to there. They differ when a node kept a log to
-- itself: then the scans go back to the last block at which all was well, and read on from there. agrees: null while the scans are not
-- that far yet.
CREATE FUNCTION wallet_checked(p_network text, p_wallet bytea, p_asset bytea, p_block bigint, p_balance numeric, OUT agrees boolean,
    OUT in_books text, OUT back_to bigint) LANGUAGE plpgsql AS $$
DECLARE m movement_scans; before wallet_checks; known numeric; last_good bigint; role_is text := (SELECT role FROM wallets WHERE network = p_network AND address = p_wallet);
BEGIN
    SELECT * INTO m FROM movement_scans s WHERE s.network = p_network AND s.wallet = p_wallet FOR UPDATE;
    IF m.block IS NULL OR m.block < p_block OR m.start > p_block
       OR EXISTS (SELECT 1 FROM scans s WHERE s.network = p_network AND s.wallet = p_wallet AND s.block < p_block)
       OR EXISTS (SELECT 1 FROM transfers t WHERE t.network = p_network AND t.block <= p_block AND t.booked IS DISTINCT FROM t.class)
       OR EXISTS (SELECT 1 FROM movements t WHERE t.network = p_network AND t.block <= p_block AND t.booked IS DISTINCT FROM t.class) THEN
        RETURN;
    END IF;
    SELECT * INTO before FROM wallet_checks c WHERE c.network = p_network AND c.wallet = p_wallet AND c.asset = p_asset;
    IF before.on_chain = before.in_books AND before.good <= p_block THEN  -- what was right up to there is not summed again
        known := before.in_books;
    ELSE
        known := 0;
        before.good := -1;
    END IF;
    SELECT known + coalesce(sum(p.amount), 0) INTO known FROM accounts a, entries e, postings p
     WHERE a.network = p_network AND a.asset = asset_text(p_asset) AND a.name = wallet_account(role_is, p_wallet)
       AND e.network = p_network AND e.block > before.good AND e.block <= p_block AND p.entry_id = e.id AND p.account_id = a.id;
    agrees := known = p_balance;
    in_books := known::text;
    last_good := CASE WHEN agrees THEN p_block ELSE coalesce((SELECT c.good FROM wallet_checks c WHERE c.network = p_network
                                                               AND c.wallet = p_wallet AND c.asset = p_asset), m.start) END;
    INSERT INTO wallet_checks (network, wallet, asset, block, on_chain, in_books, good)
    VALUES (p_network, p_wallet, p_asset, p_block, p_balance, known, last_good) ON CONFLICT (network, wallet, asset) DO UPDATE SET block = p_block, on_chain = p_balance, in_books = known, good = last_good, checked_at = now();
    IF NOT agrees AND EXISTS (SELECT 1 FROM wallet_checks c WHERE c.network = p_network AND c.wallet = p_wallet AND c.asset = p_asset
                                 AND c.again_at < now()) THEN
        back_to := last_good;
        UPDATE wallet_checks SET again_at = now() + interval '2 minutes' WHERE network = p_network AND wallet = p_wallet AND asset = p_asset;
        UPDATE movement_scans SET block = back_to WHERE network = p_network AND wallet = p_wallet;
        UPDATE scans SET block = back_to WHERE network = p_network AND wallet = p_wallet;
    END IF;
END $$;

-- ---- gas, in its own asset ----

CREATE FUNCTION gas_due(p_network text, p_limit integer) RETURNS TABLE (id bigint, hash bytea) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT t.id, t.hash::bytea FROM relay_transactions t
      WHERE t.network = p_network AND t.state = 'final' AND t.gas_cost IS NULL ORDER BY t.id LIMIT p_limit;
END $$;

-- [{"id", "cost", "block", "time"}], each once.
CREATE FUNCTION gas_record(p_network text, p_costs text, OUT recorded integer) LANGUAGE plpgsql AS $$
DECLARE made jsonb;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('journal:' || p_network, 0));
    WITH done AS (
        UPDATE relay_transactions t SET gas_cost = (v->>'cost')::numeric FROM jsonb_array_elements(p_costs::jsonb) v
         WHERE t.id = (v->>'id')::bigint AND t.network = p_network AND t.gas_cost IS NULL RETURNING t.*, v->>'time' AS time)
    SELECT jsonb_agg(jsonb_build_object('kind', 'gas', 'what', 'gas', 'block', d.block, 'time', d.time, 'tx', encode(d.hash, 'hex'),
               'asset', 'native', 'lines', jsonb_build_object(wallet_account('relayer', d.relayer), -d.gas_cost, 'expenses:gas', d.gas_cost))
               ORDER BY d.id), count(*) INTO made, recorded FROM done d;
    IF recorded > 0 THEN
        PERFORM entries_add(p_network, made);
    END IF;
END $$;

-- What the relayer has at a final block, when all that it sent up to there is booked. Native money comes without a log: what is more
-- than the books know was given to it; what is less stays a difference.
CREATE FUNCTION gas_balance(p_network text, p_relayer bytea, p_block bigint, p_time bigint, p_balance numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE account text := wallet_account('relayer', p_relayer); known numeric; opened boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('journal:' || p_network, 0));
    IF EXISTS (SELECT 1 FROM relay_transactions t WHERE t.network = p_network AND t.gas_cost IS NULL AND t.block <= p_block
                  AND t.state IN ('mined', 'final')) THEN
        RETURN;
    END IF;
    SELECT coalesce(sum(p.amount) FILTER (WHERE e.block <= p_block), 0),
           coalesce(bool_or(e.kind IN ('opening', 'funding')), false) INTO known, opened
      FROM accounts a JOIN postings p ON p.account_id = a.id JOIN entries e ON e.id = p.entry_id
     WHERE a.network = p_network AND a.asset = 'native' AND a.name = account;
    IF p_balance > known OR NOT opened THEN
        PERFORM entries_add(p_network, jsonb_build_array(jsonb_build_object('kind', CASE WHEN opened THEN 'funding' ELSE 'opening' END,
            'what', CASE WHEN opened THEN 'came in without a log' ELSE 'the books begin' END, 'block', p_block, 'time', p_time,
            'asset', 'native', 'lines', jsonb_build_object(account, p_balance - known,
            CASE WHEN opened THEN 'equity:funding' ELSE 'equity:opening' END, known - p_balance))));
    END IF;
END $$;
