// Debts on a real Tempo node: paid back once by transactions of the refund wallet's own, whatever happens on the way.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { labelled } from '../../dev/accounts.mjs';
import { privateKeyToAccount } from 'viem/accounts';
import { backup, restore } from '../lib/backup.mjs';
import { asOwner, bytea } from '../lib/ledger.mjs';
import { sendOnTempo } from '../lib/mpp.mjs';
import { debtsTo, liability, refundWallet, untilDebt } from '../lib/refunds.mjs';
import { PRICE, back, booksOfTempo, failed, refundsOf, settleTempo, tempoRefunding } from '../lib/tempo-refunds.mjs';
import { inWorld } from '../lib/world.mjs';

const both = (name, options, body) => test(name, { timeout: 400_000 }, inWorld(tempoRefunding(options), body));
// A world in which the tests start the settler.
const scenario = (name, options, body) => both(name, { roles: ['gateway'], ...options }, body);
const HOLD = { PAYONCE_FAILPOINT: 'refund-after-due:1=600000' };
const wallet = privateKeyToAccount(refundWallet.key);

// The debts are closed, and of the payer's one Transfer each reached him.
async function once(world, payer, count = 1) {
    const debts = await untilDebt(world, payer, 'refunded');
    const transfers = await back(world, payer);
    assert.deepEqual(transfers.map(({ amount }) => amount), Array(count).fill(PRICE));
    assert.deepEqual(transfers.map(({ tx }) => tx).sort(), debts.map(({ refund_tx: tx }) => tx).sort());
    return debts[0];
}

const states = async (world, payer) => (await refundsOf(world, payer)).map(({ count, state }) => `${count} ${state}`);
const untilStates = (world, payer, wanted, deadlineMs) => world.waitFor(async () =>
    JSON.stringify(await states(world, payer)) === JSON.stringify(wanted), `the refunds are ${wanted}`, deadlineMs);
const isOwed = (world, payer) => world.waitFor(async () => (await debtsTo(world, payer))[0], 'it is owed');

// Owed, and the settler that was about to pay it is gone.
async function owed(world, options) {
    await settleTempo(world, HOLD);
    const { payer } = await failed(world, undefined, options);
    const { id, nonce } = await isOwed(world, payer);
    await world.waitFor(async () => (await debtsTo(world, payer))[0].state === 'approved', 'it is approved');
    await world.kill9('settler');
    return { payer, id, nonce };
}

function paid() {
    both('work that failed: one debt, one refund under its own key, its fee in the books', {}, async (world) => {
        const before = await world.tempo.balanceOf(refundWallet.address);
        const { payer } = await failed(world);
        const debt = await once(world, payer);
        const [sent, ...more] = await refundsOf(world, payer);
        assert.deepEqual([sent.count, sent.hash, sent.key, more], [0, debt.refund_tx, `0x01${debt.nonce.slice(4)}`, []]);
        await booksOfTempo(world);
        assert.equal(await liability(world), 0n);
        const fee = before - PRICE - await world.tempo.balanceOf(refundWallet.address);
        const [{ sum }] = await world.sql(`SELECT sum(p.amount)::text AS sum FROM postings p JOIN accounts a ON a.id = p.account_id
            WHERE a.name = 'expenses:gas'`);
        assert.ok(fee > 0n);
        assert.equal(BigInt(sum), fee);
        const { stdout } = await world.payonce(['doctor', '--json']);
        const said = JSON.parse(stdout).checks.filter(({ text }) => /refund wallet .* pathUSD, for refunds and their fees/.test(text));
        assert.deepEqual(said.map(({ result }) => result), ['ok']);
    });

    scenario('two settlers, and a person who asks for it ten times: paid once', {}, async (world) => {
        await settleTempo(world);
        await settleTempo(world, {}, 'settler2');
        const { payer } = await failed(world);
        const { id } = await isOwed(world, payer);
        const asked = await Promise.all(Array.from({ length: 10 }, () => world.payonce(['refunds', 'pay', id])));
        for (const { code, stderr } of asked)
            assert.ok(code === 0 || /chain alone decides|paid back already/.test(stderr), stderr);
        await world.kill9((await world.sql('SELECT 1 FROM refund_transactions')).length > 0 ? 'settler' : 'settler2');
        await once(world, payer);
        await booksOfTempo(world);
    });
}

const steps = ['refund-after-due', 'refund-before-sign', 'refund-after-sign', 'settler-before-broadcast', 'settler-after-broadcast',
    'refund-after-send', 'refund-before-end', 'refund-after-end', 'ledger-before-movements', 'ledger-after-movements'];

function killed() {
    for (const part of [steps.slice(0, 4), steps.slice(4, 7), steps.slice(7)])
        scenario(`killed at ${part.join(', ')}: paid once`, {}, async (world) => {
            for (const step of part) {
                const { payer } = await owed(world);
                if (step.startsWith('ledger')) { // the wallet's scan has not seen it yet, and the refund is mined
                    await settleTempo(world, { PAYONCE_FAILPOINT: 'refund-before-end' });
                    assert.equal(await world.ended('settler'), 'SIGKILL', step);
                }
                await settleTempo(world, { PAYONCE_FAILPOINT: step });
                assert.equal(await world.ended('settler'), 'SIGKILL', step);
                await settleTempo(world);
                await once(world, payer);
                await world.stop('settler');
            }
            await settleTempo(world);
            await booksOfTempo(world);
            assert.equal(await liability(world), 0n);
        });
}

const payByHand = (world, account, payer, { nonce, amount = PRICE }) =>
    sendOnTempo(world, account, 'transferWithMemo', [payer.address, amount, nonce]);

// The settler starts with a wallet scan that will not see what was paid by hand: the logs are asked before anything is signed.
async function beforeTheScan(world, payer) {
    const scan = `payonce.movement_scans SET block`, ours = `WHERE wallet = ${bytea(refundWallet.address)}`;
    const [{ block }] = await world.sql(`SELECT block::int FROM movement_scans ${ours}`);
    await asOwner(world, `UPDATE ${scan} = block + 1000 ${ours}`);
    await settleTempo(world);
    await world.waitFor(async () => {
        const [{ state, reason }] = await debtsTo(world, payer);
        return state === 'refunded' || /being read/.test(reason ?? '');
    }, 'it is found to be paid');
    await asOwner(world, `UPDATE ${scan} = ${block} ${ours}`);
}

function forgotten() {
    scenario('the database comes back from before the payout, or from between its commit and its sending: paid once', {},
        async (world) => {
            for (const held of [HOLD, { PAYONCE_FAILPOINT: 'refund-after-sign:1=600000' }]) {
                await settleTempo(world, held);
                const { payer } = await failed(world);
                const wanted = held === HOLD ? 'approved' : 'paying';
                await world.waitFor(async () => (await debtsTo(world, payer))[0]?.state === wanted, wanted);
                await world.kill9('settler');
                const before = await backup(world);
                await settleTempo(world);
                const debt = await once(world, payer);
                await world.stop('settler');
                await restore(world, before);
                assert.equal((await debtsTo(world, payer))[0].state, wanted);
                await settleTempo(world);
                assert.equal((await once(world, payer)).refund_tx, debt.refund_tx);
                await booksOfTempo(world);
                assert.equal(await liability(world), 0n);
                await world.stop('settler');
            }
        });

    scenario('a person pays by hand, with the debt\'s own memo: it is found, and not paid again', {}, async (world) => {
        for (const held of [true, false]) {
            const { payer, id, nonce } = await owed(world);
            if (held) {
                assert.equal((await world.payonce(['refunds', 'hold', id, '--note', 'I pay it'])).code, 0);
                await settleTempo(world);
            }
            assert.equal((await payByHand(world, wallet, payer, { nonce })).status, 'success');
            if (!held)
                await beforeTheScan(world, payer);
            const debt = await once(world, payer);
            assert.deepEqual(await refundsOf(world, payer), []);
            assert.match((await world.payonce(['refunds', 'show', id])).stdout, new RegExp(`refunded in ${debt.refund_tx}`));
            await booksOfTempo(world);
            await world.stop('settler');
        }
    });

    scenario('a person pays by hand what is paid already: nothing stops him, and the auditor tells', {}, async (world) => {
        await settleTempo(world);
        const { payer } = await failed(world);
        const { nonce } = await once(world, payer);
        await booksOfTempo(world);
        await payByHand(world, wallet, payer, { nonce });
        const { code, stdout } = await world.waitFor(async () => {
            const audit = await world.payonce(['auditor', '--once'], { config: world.tempoConfig });
            return audit.code !== 0 && /wrong state|doubled refund/.test(audit.stdout) && audit;
        }, 'the auditor tells of it');
        assert.equal(code, 1, stdout);
    });

    scenario('a wallet that is not known paid it: a person says whose it was, and it is paid no more', {}, async (world) => {
        const other = labelled('another refund wallet');
        await world.tempo.fund(other.address, 1_000_000n);
        const { payer, id, nonce } = await owed(world);
        await payByHand(world, privateKeyToAccount(other.key), payer, { nonce });
        await settleTempo(world);
        const [{ reason }] = await untilDebt(world, payer, 'held');
        assert.match(reason, new RegExp(other.address, 'i'));
        assert.equal((await world.payonce(['refunds', 'paid', id, '--note', 'the wallet of November'])).code, 0);
        const [debt] = await untilDebt(world, payer, 'refunded');
        const got = (await world.tempo.allTransfers(undefined, payer.address)).filter(({ amount }) => amount === PRICE);
        assert.deepEqual(got.map(({ tx }) => tx), [debt.refund_tx]);
        await booksOfTempo(world);
    });

    scenario('the stored bytes, sent by hand after the refund: the chain takes them no second time', {}, async (world) => {
        const { payer } = await owed(world);
        await settleTempo(world);
        await once(world, payer);
        const [{ raw }] = await refundsOf(world, payer);
        await world.tempo.rpc.call('eth_sendRawTransaction', raw).catch(() => {});
        const { number } = await world.tempo.block();
        await world.waitFor(async () => (await world.tempo.block()).number >= number + 3, 'some blocks pass');
        await once(world, payer);
        await booksOfTempo(world);
    });
}

describe('refunds on Tempo', { concurrency: 3 }, () => {
    paid();
    killed();
    forgotten();
});
