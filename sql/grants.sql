-- Each role may call its own functions and nothing else; no role writes a table directly. The functions run as the owner.
DO $$
DECLARE f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS name FROM pg_proc p WHERE p.pronamespace = 'payonce'::regnamespace LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.name);
    END LOOP;
    FOR f IN SELECT p.oid::regprocedure AS name, r.role
               FROM (VALUES
                ('payonce_gateway', ARRAY['instance_beat', 'instance_end', 'network_pin', 'order_find', 'order_accept', 'order_begin', 'charge_find', 'charge_refuse', 'charge_debts', 'charge_read', 'order_finish',
                    'orders_delivered', 'events_note', 'order_by_id', 'order_by_receipt', 'order_by_payment_id', 'orders_by_ids',
                    'answer_by_order', 'money_counts',
                     'order_named', 'metrics_read', 'networks_finality', 'settlement_find', 'settlement_accept', 'settlement_read',
                     'sellers_load', 'relayer_addresses', 'notices_claim', 'notice_end',
                     'network_heads', 'ring_turn', 'receipt_payer', 'result_read', 'repeats_of',
                     'reconciliations_read', 'authorization_read']),
                ('payonce_settler', ARRAY['instance_beat', 'instance_end', 'network_pin', 'network_seen', 'rpc_faults_add', 'relayer_lease',
                    'relayer_leave', 'authorizations_claim', 'authorizations_unclaim', 'relay_store', 'relay_broadcast',
                    'relay_open', 'relay_authorizations', 'proofs_record', 'authorizations_look', 'authorizations_look_again', 'authorization_end', 'authorizations_end', 'authorization_doubted', 'authorization_puzzles',
                    'orders_sweep', 'relay_replace', 'relay_drop', 'relay_capped', 'relay_carried', 'blocks_to_check', 'block_undone',
                    'scan_cursor', 'charges_look', 'orphans_book', 'transfers_known', 'scan_record', 'reconcile', 'money_counts',
                    'wallets_pin', 'receiving_wallets', 'movement_cursor', 'wallet_open', 'movements_record', 'journal_round', 'wallet_checked', 'gas_due', 'gas_record', 'gas_balance',
                    'debts_approve', 'payouts_due', 'refund_funds_seen', 'payouts_sign', 'payout_store', 'payout_put_off', 'payout_spent', 'payouts_looked', 'payout_elsewhere', 'refund_store', 'refunds_look', 'refund_end',
                    'books_at', 'books_block', 'reconciliation_add']),
                ('payonce_operator', ARRAY['events_broken', 'order_refunds', 'order_timeline', 'repeats_of', 'server_facts', 'order_by_id', 'order_by_receipt', 'order_by_payment_id', 'money_counts',
                    'explain', 'review_list', 'review_resolve', 'debts_list', 'debt_show', 'debt_decide', 'payouts_due', 'suspense_return',
                    'books_at', 'books_block', 'ledger_balance', 'ledger_correct', 'export_rows']),
                ('payonce_auditor', ARRAY['order_refunds', 'order_timeline', 'repeats_of', 'audit_entries', 'audit_debts', 'audit_transfers', 'audit_scans', 'books_at', 'books_block', 'refund_nonce'])
               ) r (role, functions)
               JOIN pg_proc p ON p.pronamespace = 'payonce'::regnamespace AND p.proname = ANY (r.functions)
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = payonce, pg_temp', f.name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f.name, f.role);
    END LOOP;
END $$;
GRANT USAGE ON SCHEMA payonce TO payonce_gateway, payonce_settler, payonce_auditor, payonce_operator;
GRANT SELECT ON ALL TABLES IN SCHEMA payonce TO payonce_auditor, payonce_operator;
DO $$
BEGIN
    EXECUTE (SELECT format('REVOKE SELECT ON %s FROM payonce_auditor, payonce_operator', string_agg(c.oid::regclass::text, ', '))
               FROM pg_class c WHERE c.relnamespace = 'payonce'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname LIKE 'answers%');
END $$;
