// Worlds with a refund wallet, and what their tests ask of books and debts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { privateKeyToAddress } from 'viem/accounts';
import { refundWallet } from '../../dev/accounts.mjs';
import { NETWORK } from '../../dev/config.mjs';
import { secretFile } from '../../dev/place.mjs';
import { begin, bytea, checkSum, orderOf, submit, untilMoney } from './ledger.mjs';

export { refundWallet };
export const policy = (changes = {}) => ({
    network: NETWORK, token: 'USDC', mode: 'automatic', after_s: 0, every_s: 1, ...changes,
});

// Options of a world whose settler pays refunds from a wallet that holds `atoms`.
export function refunding({ refunds = policy(), atoms = 10_000_000n, extra = {}, ...options } = {}) {
    return {
        ...options,
        extra: { refunds: [refunds], ...extra },
        beforeConfig: async (world) => {
            world.env.PAYONCE_REFUND_KEY_FILE = secretFile(join(world.dir, 'refund'), refundWallet.key);
            assert.equal(privateKeyToAddress(refundWallet.key), refundWallet.address);
            if (atoms > 0n)
                await world.chain.mint(refundWallet.address, atoms);
            world.checkBooks = () => checkSum(world);
            await options.beforeConfig?.(world);
        },
    };
}

export const debts = (world, where = 'true') => world.sql(`SELECT '0x' || encode(id, 'hex') AS id, cause, state, amount::text,
        reason, tries, '0x' || encode(refund_tx, 'hex') AS refund_tx, '0x' || encode(refund_nonce, 'hex') AS nonce,
        '0x' || encode(payer, 'hex') AS payer
   FROM debts WHERE ${where} ORDER BY created_at, id`);
export const debtsTo = (world, payer) => debts(world, `payer = ${bytea(payer.address)}`);

export const untilDebt = (world, payer, state, deadlineMs) => world.waitFor(async () => {
    const rows = await debtsTo(world, payer);
    return rows.length > 0 && rows.every((row) => row.state === state) && rows;
}, `the debts to ${payer.address} are ${state}`, deadlineMs);

// Work that failed, whose released authorization somebody sent all the same: one debt, cause late.
export async function late(world, { payer, query = 'status=404', path = '/test/read' } = {}) {
    const call = await begin(world, `${path}?${query}`, { payer });
    assert.equal((await call.answer).headers['payonce-charged'], 'false');
    assert.equal((await orderOf(world, call.payer)).status, 'not_charged');
    call.tx = await submit(world, call.signed.payload);
    await untilMoney(world, call.payer, 'settled');
    return call;
}

// Every Transfer that reached the payer.
export const paidBack = async (world, payer) => (await world.chain.allTransfers())
    .filter(({ to }) => to === payer.address.toLowerCase());

// Books and chain, by the two programs that compare them, once all that is final is booked.
// `gas` false: but for what a transaction that a database has forgotten cost.
export async function booksAgree(world, deadlineMs, { gas = true } = {}) {
    const { number } = await world.chain.block('finalized');
    await world.waitFor(async () => {
        const [row] = await world.sql(`SELECT min(least(m.block, s.block)) AS block FROM movement_scans m
            LEFT JOIN scans s USING (network, wallet)`);
        return row.block >= number;
    }, `the books reach block ${number}`, deadlineMs);
    const { stdout: report } = await world.payonce(['reconcile', '--json']);
    const differences = JSON.parse(report).differences.filter(({ asset }) => gas || asset !== 'native');
    assert.deepEqual(differences, []);
    const { code, stdout, stderr } = await world.payonce(['auditor', '--once']);
    assert.equal(code, 0, `payonce auditor --once:\n${stdout}${stderr}`);
}

export async function liability(world) {
    const [row] = await world.sql(`SELECT coalesce(sum(p.amount), 0)::text AS sum FROM postings p JOIN accounts a
        ON a.id = p.account_id WHERE a.name = 'liabilities:refunds-owed'`);
    return BigInt(row.sum);
}

export const logOf = (world, name) => readFileSync(join(world.dir, `${name}.log`), 'utf8');
