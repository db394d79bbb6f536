// What the database says of money and of the relayer's transactions, for tests that look behind the public answers;
// and the sum that holds whatever happened: transfers in = paid orders + debts + suspense.
import assert from 'node:assert/strict';
import { encodeFunctionData, keccak256 } from 'viem';
import { relayer } from '../../dev/accounts.mjs';
import { USDC, tokenAbi } from '../../dev/usdc.mjs';
import { freshAccount } from './payment.mjs';
import { ownerOf, psql } from './psql.mjs';

export const bytea = (hex) => `decode('${hex.slice(2)}', 'hex')`;

// ---- orders and their money ----

export async function orderOf(world, payer) {
    const [row] = await world.sql(`SELECT encode(id, 'hex') AS id, status, money, work, end_note, dead_after, block,
        '0x' || encode(tx, 'hex') AS tx FROM order_status WHERE payer = ${bytea(payer.address)}`);
    return row;
}

export const authorizationsOf = (world, payer) => world.sql(`SELECT a.id, a.state, a.fruitless,
        '0x' || encode(a.nonce, 'hex') AS nonce
   FROM authorizations a WHERE a.payer = ${bytea(payer.address)} ORDER BY a.id`);

export const untilMoney = (world, payer, states, deadlineMs) => world.waitFor(async () => {
    const order = await orderOf(world, payer);
    return [states].flat().includes(order?.money) && order;
}, `the money of ${payer.address} is ${states}`, deadlineMs);

export async function publicOrder(world, payer) {
    const answer = await world.request(`/orders/ord_${(await orderOf(world, payer)).id}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
}

export const debtsOf = (world, payer) => world.sql(`SELECT cause, state, amount::text, '0x' || encode(tx, 'hex') AS tx
    FROM debts WHERE payer = ${bytea(payer.address)} ORDER BY created_at`);

export const transfersOf = (world, payer) => world.sql(`SELECT class, amount::text, '0x' || encode(tx, 'hex') AS tx
    FROM transfers WHERE sender = ${bytea(payer.address)} ORDER BY block, log_index`);

export async function eventsOf(world, payer) {
    const rows = await world.sql(`SELECT e.event FROM events e JOIN orders o ON o.id = e.order_id
        WHERE o.payer = ${bytea(payer.address)} ORDER BY e.seq`);
    return rows.map(({ event }) => event);
}

export const asOwner = (world, text) => psql(ownerOf(world.conninfo), text);

// A payment on its way: { payer, path, signed, answer (a promise; null when the connection broke) }.
export async function begin(world, path, { payer, ...options } = {}) {
    payer ??= await world.newPayer();
    const signed = await world.sign(payer, path, options);
    return { payer, path, options, signed, answer: world.send(path, signed, options).catch(() => null) };
}

// The same payment is sent again until it has its answer; nothing before it may call it unpaid.
export async function isPaid(world, { payer, path, options, signed, answer }, deadlineMs) {
    let last = await answer;
    await world.waitFor(async () => {
        if (last?.status === 200)
            return true;
        assert.ok(!last || last.status === 409 || last.status >= 500, `${last?.status} ${last?.text}`);
        await world.pause(300);
        last = await world.send(path, signed, options).catch(() => null);
        return last?.status === 200;
    }, `${path} is answered`, deadlineMs);
    assert.equal((await orderOf(world, payer)).status, 'paid');
}

// ---- the relayer's transactions ----

export const relayed = (world) => world.sql(`SELECT t.id, t.account_nonce, '0x' || encode(t.hash, 'hex') AS hash,
        '0x' || encode(t.raw, 'hex') AS raw, '0x' || encode(t.call_data, 'hex') AS call_data, t.max_fee::text,
        t.max_tip::text, t.state
   FROM relay_transactions t WHERE relayer = ${bytea(relayer.address)} ORDER BY t.account_nonce, t.id`);

export const relayedOf = async (world, payer) => {
    const rows = await world.sql(`SELECT c.transaction_id
        FROM relay_calls c JOIN authorizations a ON a.id = c.authorization_id WHERE a.payer = ${bytea(payer.address)}`);
    const ids = new Set(rows.map(({ transaction_id: id }) => id));
    return (await relayed(world)).filter(({ id }) => ids.has(id));
};

const isMined = ({ state }) => state === 'mined' || state === 'final';

// Account nonces follow each other from `first` on, and of the hashes of each exactly one was mined.
export async function isConsecutive(world, first, count) {
    const isOver = (t) => isMined(t) || t.state === 'dropped';
    await world.waitFor(async () => (await relayed(world)).every(isOver), 'all is mined');
    const rows = await relayed(world);
    const nonces = rows.filter(isMined).map(({ account_nonce: nonce }) => nonce);
    const story = rows.map((row) => `${row.account_nonce} ${row.state}`).join(', ');
    assert.deepEqual(nonces, nonces.map((_, i) => first + i), story);
    if (count !== undefined)
        assert.equal(nonces.length, count);
    return rows;
}

// Each transaction of the relayer's that is on the chain, or was to be sent, is in the database, but for `foreign`.
export async function noHashLost(world, foreign = []) {
    const known = new Set((await relayed(world)).map(({ hash }) => hash));
    const { number } = await world.chain.block();
    const blocks = await world.chain.rpc.batch(Array.from({ length: number + 1 }, (_, n) =>
        ['eth_getBlockByNumber', `0x${n.toString(16)}`, true]));
    const mined = blocks.flatMap(({ transactions }) => transactions)
        .filter(({ from }) => from === relayer.address.toLowerCase()).map(({ hash }) => hash);
    const sent = (world.stubs ?? []).flatMap((stub) => stub.sent).map((raw) => keccak256(raw));
    for (const hash of [...mined, ...sent])
        assert.ok(known.has(hash) || foreign.includes(hash), `${hash} is not in the database`);
}

// ---- the chain, as the settler sees it ----

export const seen = async (world) => (await world.sql(`SELECT head, '0x' || encode(head_hash, 'hex') AS hash, final,
    gas_balance::text AS gas FROM networks`))[0] ?? { head: -1, final: -1 };

// The settler has looked at what is the head now, or at `more` blocks behind it.
export async function isSeen(world, more = 0) {
    const { number } = await world.chain.block();
    await world.waitFor(async () => (await seen(world)).head >= number + more, `block ${number + more} is seen`);
}

// ---- strangers ----

export const callOf = ({ authorization: a, signature }) => encodeFunctionData({
    abi: tokenAbi, functionName: 'transferWithAuthorization',
    args: [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature],
});

export async function stranger(world) {
    const { address } = freshAccount();
    await world.chain.giveGas(address);
    return address;
}

// Somebody who saw an authorization submits it; resolves to the transaction's hash.
export async function submit(world, payload) {
    const { transactionHash } = await world.chain.send(await stranger(world), USDC, callOf(payload));
    return transactionHash;
}

// ---- the sum ----

// Instead of world.checkBooks where money came in that pays no order: every Transfer to the seller is in the books
// once, a sale is its order's proof, a debt is in the debts, and what is left is in suspense.
export async function checkSum(world, deadlineMs = 60_000) {
    const keyOf = ({ tx, logIndex, amount }) => `${tx} ${logIndex} ${amount}`;
    const onChain = async () => [await world.chain.allTransfers(), await world.tempo?.allTransfers(null) ?? []].flat()
        .filter(({ to }) => to === world.payTo.toLowerCase()).map(keyOf).sort();
    const rows = async (from) => (await world.sql(`SELECT '0x' || encode(tx, 'hex') AS tx, log_index AS "logIndex",
        amount::text FROM ${from}`)).map(keyOf).sort();
    for (const end = Date.now() + deadlineMs; ; await world.pause(200)) {
        const [chain, books] = [await onChain(), await rows('transfers')];
        if (Date.now() < end && JSON.stringify(chain) !== JSON.stringify(books))
            continue;
        assert.deepEqual(books, chain, 'the transfers on the chain and in the books differ');
        break;
    }
    const [sales, debts] = await Promise.all(['sale', 'debt'].map((kind) => rows(`transfers WHERE class = '${kind}'`)));
    assert.deepEqual(sales, await rows("order_books WHERE status = 'paid'"), 'sales and paid orders differ');
    assert.deepEqual(debts, await rows("debts WHERE state NOT IN ('earned', 'cancelled') AND cause <> 'overpaid'"), 'transfers and debts differ');
    return (await onChain()).length;
}
