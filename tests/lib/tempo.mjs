// Worlds with a Tempo node beside the other chain, and MPP payments: by the stock client, or made by hand.
import assert from 'node:assert/strict';
import { encodeFunctionData, hexToBytes, keccak256, stringToBytes, toHex } from 'viem';
import { prepareTransactionRequest, sendTransactionSync, signTransaction } from 'viem/actions';
import { Actions } from 'viem/tempo';
import { TEMPO } from '../../dev/config.mjs';
import { PATH_USD, TEMPO_ID, tokenAbi } from '../../dev/tempo.mjs';
import { asOwner, bytea, checkSum } from './ledger.mjs';
import { mppClient, tempoClient } from './mpp.mjs';
import { freshAccount } from './payment.mjs';
import { testTools } from './world.mjs';

export { PATH_USD, TEMPO };
const { token: tokens } = Actions;
export const mppPrice = (amount = '250', changes = {}) => ({ network: TEMPO, token: 'pathUSD', amount, ...changes });

// What tests buy on both rails, or on Tempo alone.
export const mppTools = [
    { ...testTools[0], name: 'both read', path: '/test/both', prices: [...testTools[0].prices, mppPrice()] },
    { ...testTools[2], name: 'both write', path: '/test/both-write', prices: [...testTools[2].prices, mppPrice()] },
    { ...testTools[0], name: 'tempo read', path: '/test/tempo', prices: [mppPrice()] },
    { ...testTools[1], name: 'tempo cacheable', path: '/test/tempo-cacheable', repeat_paid_first: true, prices: [mppPrice()] },
];

// Options of a world that sells on both chains.
export function onTempo(options = {}) {
    return {
        tools: [...testTools, ...mppTools], tempo: {}, ...options,
        beforeConfig: async (world) => {
            world.checkBooks = () => checkSum(world);
            await options.beforeConfig?.(world);
        },
    };
}

export async function tempoPayer(world, { atoms = 1_000_000n, token = PATH_USD } = {}) {
    const payer = freshAccount();
    await world.tempo.fund(payer.address, atoms, token);
    return payer;
}

// The stock client. mode: 'push' or 'pull'; undefined: as it chooses.
export const mppFetch = (world, { key }, { mode } = {}) => mppClient(world, key, { mode }).fetch;

// ---- by hand ----

const b64 = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

// The Payment challenges of a 402.
export function challengesOf(answer) {
    const header = answer.headers['www-authenticate'];
    return [header ?? []].flat().join(', ').split(/,?\s*Payment /).filter(Boolean).map((text) => {
        const params = Object.fromEntries([...text.matchAll(/([a-z]+)="((?:\\.|[^"\\])*)"/g)].map(([, key, value]) => [key, value]));
        return { ...params, charge: JSON.parse(Buffer.from(params.request, 'base64url').toString('utf8')) };
    });
}

export function memoOf({ realm, id }) {
    const part = (text, n) => hexToBytes(keccak256(stringToBytes(text))).slice(0, n);
    return toHex(Buffer.concat([Buffer.from('ef1ed71201', 'hex'), part(realm, 10), Buffer.alloc(10), part(id, 7)]));
}

export async function challenge(world, path, options) {
    const answer = await world.request(path, options);
    if (answer.status !== 402)
        throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    return challengesOf(answer)[0];
}

// Sends a token's transferWithMemo as its payer, mined. Resolves to the hash.
export async function sendMemo(world, payer, { to, amount, memo, token = PATH_USD, calls }) {
    const data = (call) => encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithMemo', args: [call.to, BigInt(call.amount), call.memo] });
    const client = tempoClient(world, payer.account);
    const list = calls ?? [{ to, amount, memo, token }];
    const receipt = await sendTransactionSync(client, {
        calls: list.map((call) => ({ to: call.token ?? PATH_USD, data: data(call) })), gas: 2_000_000n, feeToken: PATH_USD,
    });
    return receipt.transactionHash;
}

export const credential = (ch, payload, payer) => {
    const { charge, ...echo } = ch;
    const source = payer && `did:pkh:eip155:${TEMPO_ID}:${payer.address}`;
    return `Payment ${b64({ challenge: echo, payload, ...(source && { source }) })}`;
};

// Pays a challenge as it asks, or with changes; resolves to the header that presents it.
export async function push(world, payer, ch, change = {}) {
    const { amount, recipient, currency } = ch.charge;
    const hash = await sendMemo(world, payer, { to: recipient, amount, token: currency, memo: memoOf(ch), ...change });
    return { hash, authorization: credential(ch, { type: 'hash', hash }, payer) };
}

// Signs for a challenge, for the server to send. Resolves to the header and the transaction's deadline.
export async function signPull(world, payer, ch, { amount = ch.charge.amount, memo = memoOf(ch), to = ch.charge.recipient } = {}) {
    const client = tempoClient(world, payer.account);
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithMemo', args: [to, BigInt(amount), memo] });
    const validBefore = Math.min(Math.floor(Date.now() / 1000) + 25, Math.floor(Date.parse(ch.expires) / 1000));
    const prepared = await prepareTransactionRequest(client, {
        calls: [{ to: ch.charge.currency, data }], nonceKey: 'expiring', validBefore,
    });
    const signature = await signTransaction(client, { ...prepared, gas: 500_000n });
    return { authorization: credential(ch, { type: 'transaction', signature }, payer), signature, validBefore };
}

// ---- what became of it ----

// Every transfer of a payer's to the seller, of any token, oldest first.
export const paidBy = async (world, payer) => (await world.tempo.allTransfers(null, world.payTo))
    .filter(({ from }) => from === payer.address.toLowerCase());

export const debtsTo = (world, payer) => world.sql(`SELECT '0x' || encode(id, 'hex') AS id, cause, state, amount::text, network,
        '0x' || encode(asset, 'hex') AS asset, '0x' || encode(tx, 'hex') AS tx, log_index, order_id IS NOT NULL AS has_order
   FROM debts WHERE payer = ${bytea(payer.address)} ORDER BY created_at, amount`);

export const untilDebts = (world, payer, count) => world.waitFor(async () => {
    const rows = await debtsTo(world, payer);
    return rows.length === count && rows;
}, `${count} debt(s) to ${payer.address}`, 30_000);

// A quarter of an hour passes for what somebody might still come with, and for work that nobody asked for.
export async function quarterLater(world, payer) {
    await world.waitFor(async () => (await world.sql(`SELECT 1 FROM transfers WHERE sender = ${bytea(payer.address)}`)).length
        === (await paidBy(world, payer)).length, 'all that was paid is seen', 30_000);
    const orders = `SELECT id FROM orders WHERE payer = ${bytea(payer.address)}`;
    await asOwner(world, `UPDATE transfers SET block_time = block_time - 1000 WHERE sender = ${bytea(payer.address)} AND class = 'suspense';
        UPDATE proofs SET recorded_at = recorded_at - interval '16 minutes'
         WHERE authorization_id IN (SELECT authorization_id FROM orders WHERE id IN (${orders}));
        UPDATE orders SET created_at = created_at - interval '16 minutes' WHERE id IN (${orders})`);
}

// Each of a payer's transfers is one sale or one debt: `sold` of them sales that were served, the rest debts of these causes.
export async function endsAs(world, payer, sold, causes) {
    const debts = await untilDebts(world, payer, causes.length);
    const transfers = await paidBy(world, payer);
    const keyOf = (row) => `${row.tx} ${row.logIndex ?? row.log_index}`;
    assert.deepEqual(debts.map(({ cause }) => cause).sort(), causes.toSorted());
    assert.equal(new Set(debts.map(keyOf)).size, causes.length, 'one debt a transfer');
    assert.equal(transfers.length, sold + causes.length, 'transfers that are neither');
    const sales = await world.sql(`SELECT '0x' || encode(b.tx, 'hex') AS tx, b.log_index FROM order_books b JOIN orders o ON o.id = b.order_id
        WHERE o.payer = ${bytea(payer.address)} AND b.status = 'paid' AND o.work = 'done'`);
    assert.deepEqual([...sales, ...debts].map(keyOf).sort(), transfers.map(keyOf).sort());
    return { debts, transfers };
}

// `payonce reconcile` and `payonce auditor` find nothing, once all that is final on Tempo now is booked.
export async function tempoBooksAgree(world, deadlineMs = 60_000) {
    const { number } = await world.tempo.block();
    await world.waitFor(async () => {
        const rows = await world.sql(`SELECT least(m.block, s.block) AS block FROM movement_scans m LEFT JOIN scans s USING (network, wallet)
            WHERE network = '${TEMPO}'`);
        return rows.length > 0 && rows.every(({ block }) => block >= number);
    }, `Tempo's books reach block ${number}`, deadlineMs);
    const { code, stdout, stderr } = await world.payonce(['reconcile', '--json']);
    const reports = stdout.trim().split('\n').map((line) => JSON.parse(line)); // one a network
    assert.deepEqual(reports.flatMap(({ differences }) => differences), [], `payonce reconcile: ${code} ${stderr}`);
    assert.equal(reports.length, 2);
    const audit = await world.payonce(['auditor', '--once']);
    assert.equal(audit.code, 0, `payonce auditor --once:\n${audit.stdout}${audit.stderr}`);
}

// A dollar that nobody configured, made by the node's own factory; all of it is the payer's.
export async function strangeToken(world, payer, atoms = 1_000_000n) {
    const client = tempoClient(world, payer.account);
    const fees = { feeToken: PATH_USD, gas: 20_000_000n };
    const { token } = await tokens.createSync(client, { name: 'StrangeUSD', symbol: 'STRANGE', currency: 'USD', ...fees });
    await tokens.grantRolesSync(client, { token, roles: ['issuer'], to: payer.address, ...fees });
    await tokens.mintSync(client, { token, to: payer.address, amount: atoms, ...fees });
    return token.toLowerCase();
}
