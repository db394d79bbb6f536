// The rule that every scenario ends with: no transfer without an order, no paid order without its transfer.
import assert from 'node:assert/strict';
import { PATH_USD } from '../../dev/tempo.mjs';

// The database writes bytes as \x00ff, the chain as 0x00ff.
const keyOf = ({ tx, logIndex, asset, from, to, amount }) =>
    [tx, logIndex, asset, from, to, amount].join(' ').replaceAll('\\x', '0x').toLowerCase();

// Our wallet, and those of the sellers who settle through us.
export function wallets(world) {
    const served = (world.options.extra.sellers ?? []).flatMap(({ accepts }) => accepts.map(({ pay_to }) => pay_to));
    return new Set([world.payTo, ...served].map((address) => address.toLowerCase()));
}

// What the chain says: every Transfer log to these wallets, of every token. What a seller got without us (the test says which
// transactions) is not ours to book.
async function onChain(world, ours) {
    const { chain, tokens, notOurs = new Set() } = world;
    const lists = await Promise.all(tokens.map(async (asset) =>
        (await chain.allTransfers(asset)).map((log) => ({ ...log, asset }))));
    const tempo = (await world.tempo?.allTransfers() ?? []).map((log) => ({ ...log, asset: PATH_USD }));
    return [...lists.flat(), ...tempo].filter((log) => ours.has(log.to.toLowerCase()) && !notOurs.has(log.tx));
}

// What the database says: the proofs of its orders.
async function inBooks(world) {
    const rows = await world.sql(`SELECT order_id, status, asset, payer, payee, amount::text, tx, log_index
                                    FROM order_books`);
    const paid = rows.filter((row) => row.tx !== null);
    const unproven = rows.filter((row) => row.status === 'paid' && row.tx === null);
    assert.deepEqual(unproven, [], 'orders are called paid without a transfer');
    return paid.map((row) => ({
        tx: row.tx, logIndex: row.log_index, asset: row.asset, from: row.payer, to: row.payee, amount: row.amount,
    }));
}

// Compares one to one. What is mined is booked a moment later, so the two get some seconds to agree.
export async function checkBooks(world, deadlineMs = 60_000) {
    for (const end = Date.now() + deadlineMs; ; await world.pause(200)) {
        const chain = (await onChain(world, wallets(world))).map(keyOf).sort();
        const books = (await inBooks(world)).map(keyOf).sort();
        if (Date.now() >= end || JSON.stringify(chain) === JSON.stringify(books)) {
            assert.deepEqual(books, chain, 'the transfers on the chain and the proofs in the books differ');
            return chain.length;
        }
    }
}
