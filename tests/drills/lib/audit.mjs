// What every drill ends with, whatever was done: the chain and the books agree to the last log, and nothing is
// forgotten.
import assert from 'node:assert/strict';
import { toHex } from 'viem';
import { relayer } from '../../../dev/accounts.mjs';
import { PATH_USD } from '../../../dev/tempo.mjs';
import { wallets } from '../../lib/books.mjs';
import { ownerOf, rowsOf } from '../../lib/psql.mjs';

const plain = (bytes) => bytes?.replace('\\x', '0x').toLowerCase();
const same = (a, b) => a.toLowerCase() === b.toLowerCase();

async function onChain(world) {
    const lists = await Promise.all(world.tokens.map(async (asset) =>
        (await world.chain.allTransfers(asset)).map((log) => ({ ...log, asset }))));
    const ours = wallets(world);
    const tempo = (await world.tempo?.allTransfers() ?? []).map((log) => ({ ...log, asset: PATH_USD }));
    return [...lists.flat(), ...tempo].filter((log) => ours.has(log.to.toLowerCase()) && !world.notOurs?.has(log.tx))
        .map(({ tx, logIndex, asset, from, amount }) => `${tx} ${logIndex} ${asset} ${from} ${amount}`.toLowerCase());
}

const lineOf = (row) => [plain(row.tx), row.log_index, plain(row.asset), plain(row.sender), row.amount].join(' ');

// Each Transfer to the wallet is, once: the proof of a paid order, or a debt's source, or in suspense.
async function inBooks(world) {
    const sales = await world.sql(`SELECT tx, log_index, asset, payer AS sender, amount::text FROM order_books b
        WHERE tx IS NOT NULL AND NOT EXISTS (SELECT 1 FROM debts d WHERE d.network = b.network AND d.tx = b.tx
                                                AND d.log_index = b.log_index AND d.state NOT IN ('earned', 'cancelled'))`);
    // of one that is overpaid only the surplus is owed, but it is one transfer
    const debts = await world.sql(`SELECT tx, log_index, d.asset, payer AS sender, t.amount::text
        FROM debts d JOIN transfers t USING (network, tx, log_index) WHERE state <> 'cancelled'`);
    const suspense = await world.sql(`SELECT tx, log_index, asset, sender, amount::text FROM transfers
        WHERE class = 'suspense'`);
    const transfers = await world.sql('SELECT tx, log_index, asset, sender, amount::text FROM transfers');
    return { sales, debts, suspense, transfers };
}

const total = (rows) => rows.reduce((sum, row) => sum + BigInt(row.amount), 0n);

async function compare(world, deadlineMs) {
    for (const end = Date.now() + deadlineMs; ; await world.pause(300)) {
        const chain = (await onChain(world)).sort();
        const { sales, debts, suspense, transfers } = await inBooks(world);
        const books = [...sales, ...debts, ...suspense].map(lineOf).sort();
        const rows = transfers.map(lineOf).sort();
        if (Date.now() < end && JSON.stringify([chain, chain]) !== JSON.stringify([books, rows]))
            continue;
        assert.deepEqual(books, chain, 'the transfers on the chain are not the sales, debts and suspense of the books');
        assert.deepEqual(rows, chain, 'the transfers on the chain are not the rows of `transfers`');
        const sum = chain.reduce((s, line) => s + BigInt(line.split(' ')[4]), 0n);
        assert.equal(total(sales) + total(debts) + total(suspense), sum);
        return { transfers: chain.length, sales: sales.length, debts: debts.length, suspense: suspense.length };
    }
}

// Every transaction that the relayer has on the chain was stored before it was sent.
export async function relayedOnChain(world) {
    const { number } = await world.chain.block();
    const hashes = [];
    for (let n = 0; n <= number; n += 500) {
        const calls = Array.from({ length: Math.min(500, number + 1 - n) }, (_, i) =>
            ['eth_getBlockByNumber', toHex(n + i), true]);
        for (const block of await world.chain.rpc.batch(calls))
            for (const tx of block.transactions)
                if (same(tx.from, relayer.address))
                    hashes.push(tx.hash.toLowerCase());
    }
    return hashes;
}

async function lostHashes(world) {
    const stored = new Set((await world.sql('SELECT hash FROM relay_transactions')).map(({ hash }) => plain(hash)));
    return (await relayedOnChain(world)).filter((hash) => !stored.has(hash));
}

// Asked by the owner of the tables: some of it is nobody's to ask in operation.
async function none(world, what, query) {
    assert.deepEqual(await rowsOf(ownerOf(world.conninfo), query), [], what);
}

// What must never be so, at any moment.
export async function alwaysTrue(world) {
    await none(world, 'an order is called paid and has no transfer',
        `SELECT order_id FROM order_books WHERE status = 'paid' AND tx IS NULL`);
    await none(world, 'an order has two transfers, and the second is no debt',
        `SELECT a.order_id FROM proofs p JOIN authorizations a ON a.id = p.authorization_id
          WHERE NOT EXISTS (SELECT 1 FROM debts d WHERE d.authorization_id = a.id AND d.state NOT IN ('earned', 'cancelled'))
          GROUP BY 1 HAVING count(*) > 1`);
    await none(world, 'a proof and its authorization disagree',
        `SELECT a.id FROM authorizations a LEFT JOIN proofs p ON p.authorization_id = a.id
          WHERE (p.authorization_id IS NOT NULL) <> (a.state = 'settled')`);
    await none(world, 'a chain of events is broken',
        `SELECT id, payonce.events_broken(id) AS broken FROM orders WHERE payonce.events_broken(id) > 0`);
    await none(world, 'an order has no story', 'SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM events e '
        + 'WHERE e.order_id = o.id)');
    await none(world, 'an authorization has no order',
        'SELECT a.id FROM authorizations a WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = a.order_id)');
    await none(world, 'an authorization has neither an end nor a next visit',
        `SELECT id, state, next_look FROM authorizations WHERE ended_at IS NULL AND
            (next_look IS NULL OR next_look > greatest(now() + interval '90 s', to_timestamp(dead_after + 90)))`);
}

// The end of a drill: everything is decided or waits for a known moment, and all agrees.
// `foreign`: transactions that a test made with the relayer's key behind the settler's back.
export async function audit(world, deadlineMs = 60_000, { foreign = [] } = {}) {
    const counts = await compare(world, deadlineMs);
    await alwaysTrue(world);
    await none(world, 'an authorization missed its visit', `SELECT id, state, next_look, now() FROM authorizations
        WHERE ended_at IS NULL AND next_look < now() - interval '60 s'`);
    await none(world, 'work runs on a lease that is long dead',
        `SELECT id, work_until FROM orders WHERE work = 'running' AND work_until < now() - interval '90 s'`);
    const lost = (await lostHashes(world)).filter((hash) => !foreign.includes(hash));
    assert.deepEqual(lost, [], 'the relayer has transactions on the chain that are in no row');
    return counts;
}

// Waits until every order is paid, unpaid, not charged or in review.
export const allDecided = (world, deadlineMs = 120_000) => world.waitFor(async () => {
    const open = await world.sql(`SELECT id FROM order_status WHERE status IN ('processing', 'settling')`);
    return open.length === 0;
}, 'every order is decided', deadlineMs);
