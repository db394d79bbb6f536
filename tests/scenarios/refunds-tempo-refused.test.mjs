// Debts on a real Tempo node whose refund the chain or the token will not carry out, or not as it was meant: open with a
// reason, tried again where that is safe, and for a person where it is not. The payer gets the money once.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PATH_USD, TRANSFER, TRANSFER_WITH_MEMO } from '../../dev/tempo.mjs';
import { backup, restore } from '../lib/backup.mjs';
import { debtsTo, liability, refundWallet, untilDebt } from '../lib/refunds.mjs';
import { Stub } from '../lib/stub.mjs';
import { mppPrice, tempoPayer } from '../lib/tempo.mjs';
import { PRICE, back, booksOfTempo, failed, refundsOf, settleTempo, tempoPolicy, tempoRefunding } from '../lib/tempo-refunds.mjs';
import { OwnToken } from '../lib/tempo-token.mjs';
import { inWorld, testTools } from '../lib/world.mjs';

const scenario = (name, options, body) =>
    test(name, { timeout: 400_000 }, inWorld(tempoRefunding({ roles: ['gateway'], ...options }), body));
const HOLD = { PAYONCE_FAILPOINT: 'refund-after-due:1=600000' };
const UNSENT = { PAYONCE_FAILPOINT: 'refund-after-sign' };
const states = async (world, payer) => (await refundsOf(world, payer)).map(({ count, state }) => `${count} ${state}`);
const untilStates = (world, payer, wanted, deadlineMs) => world.waitFor(async () =>
    JSON.stringify(await states(world, payer)) === JSON.stringify(wanted), `the refunds are ${wanted}`, deadlineMs);
const untilReason = (world, payer, words) => world.waitFor(async () => {
    const [debt] = await debtsTo(world, payer);
    return words.test(debt?.reason ?? '') && debt;
}, `the debt's reason is ${words}`);
const gotOnce = async (world, payer, token) =>
    assert.deepEqual((await back(world, payer, token)).map(({ amount }) => amount), [PRICE]);

// Signed and stored, and not a byte of it sent yet; the settler is gone.
async function unsent(world, payer, options) {
    await settleTempo(world, UNSENT);
    const call = await failed(world, payer, options);
    assert.equal(await world.ended('settler'), 'SIGKILL');
    assert.deepEqual(await states(world, call.payer), ['0 signed']);
    return call.payer;
}

// ---- a token that says no ----

// What the tool costs is in a token that can be paused; fees are paid in another.
const withToken = () => ({
    refunds: tempoPolicy({ token: 'TestUSD', fee_token: 'pathUSD' }),
    beforeConfig: async (world) => {
        const token = world.token = await OwnToken.create(world);
        await token.mint(refundWallet.address, 10_000_000n);
        const tokens = [[PATH_USD, 'pathUSD'], [token.address, token.symbol]];
        world.options.tempo = { tokens: tokens.map(([address, symbol]) => ({ address, name: symbol, version: '1', symbol, decimals: 6 })) };
        world.options.tools = [...world.options.tools, { ...testTools[0], name: 'own token', path: '/test/own',
            prices: [mppPrice('250', { token: token.symbol })] }];
    },
});
const PATH = '/test/own?status=500';
async function ownPayer(world) {
    const payer = await tempoPayer(world);
    await world.token.mint(payer.address, 1_000_000n);
    return payer;
}

function refused() {
    scenario('a paused token, a payer whom its policy forbids: open with the reason, paid once when it may be', withToken(),
        async (world) => {
            const { token } = world;
            const cases = [[() => token.pause(), () => token.unpause(), /^paused$/],
                [(payer) => token.forbid(payer.address), (payer) => token.allow(payer.address), /^policy_forbids$/]];
            for (const [close, open, words] of cases) {
                await settleTempo(world, HOLD);
                const { payer } = await failed(world, await ownPayer(world), { path: PATH });
                await world.waitFor(async () => (await debtsTo(world, payer))[0]?.state === 'approved', 'it is approved');
                await world.kill9('settler');
                await close(payer);
                await settleTempo(world);
                const { id, state } = await untilReason(world, payer, words);
                assert.equal(state, 'approved');
                assert.deepEqual(await refundsOf(world, payer), [], 'nothing is sent that the token refuses');
                await open(payer);
                assert.equal((await world.payonce(['refunds', 'pay', id])).code, 0);
                await untilDebt(world, payer, 'refunded');
                await gotOnce(world, payer, token.address);
                await booksOfTempo(world);
                await world.stop('settler');
            }
        });

    // Measured: a transaction that was mined and reverted has used its count up.
    scenario('a refund that is mined and reverts has used its count: the debt is paid under the next', withToken(), async (world) => {
        const payer = await unsent(world, await ownPayer(world), { path: PATH });
        await world.token.pause();
        await settleTempo(world);
        await untilStates(world, payer, ['0 reverted']);
        const [{ hash }] = await refundsOf(world, payer);
        assert.equal((await world.tempo.receipt(hash)).status, '0x0');
        await untilReason(world, payer, /reverted/);
        assert.deepEqual(await back(world, payer, world.token.address), []);
        await world.token.unpause();
        const [debt] = await untilDebt(world, payer, 'refunded', 120_000);
        await untilStates(world, payer, ['0 reverted', '1 paid']);
        await gotOnce(world, payer, world.token.address);
        assert.equal((await refundsOf(world, payer))[1].hash, debt.refund_tx);
        await booksOfTempo(world); // with the fee of the one that failed
        assert.equal(await liability(world), 0n);
    });
}

// ---- a deadline, and a count that somebody else used ----

const later = async (world, seconds) => {
    await world.tempo.rpc.call('evm_increaseTime', seconds);
    await world.tempo.mine();
};

function late() {
    scenario('never mined before its deadline: signed again under the same count, and paid once', {}, async (world) => {
        const payer = await unsent(world);
        await later(world, 700);
        await settleTempo(world);
        await untilDebt(world, payer, 'refunded');
        await untilStates(world, payer, ['0 expired', '0 paid']);
        await gotOnce(world, payer);
        await booksOfTempo(world);
    });

    scenario('a database that forgot a refund that reverted: a person looks, and asks for one more', withToken(), async (world) => {
        await settleTempo(world, HOLD);
        const { payer } = await failed(world, await ownPayer(world), { path: PATH });
        await world.waitFor(async () => (await debtsTo(world, payer))[0]?.state === 'approved', 'it is approved');
        await world.kill9('settler');
        const before = await backup(world);
        await settleTempo(world, UNSENT);
        assert.equal(await world.ended('settler'), 'SIGKILL');
        const [{ raw, hash }] = await refundsOf(world, payer);
        await world.token.pause();
        await world.tempo.rpc.call('eth_sendRawTransaction', raw);
        assert.equal((await world.tempo.receipt(hash)).status, '0x0');
        await world.token.unpause();
        await restore(world, before);
        await settleTempo(world);
        await untilStates(world, payer, ['0 signed']);
        await later(world, 700);
        const [{ id, reason }] = await untilDebt(world, payer, 'held');
        assert.match(reason, /count of its nonce key/);
        assert.deepEqual(await back(world, payer, world.token.address), []);
        assert.equal((await world.payonce(['refunds', 'again', id, '--note', 'it had reverted'])).code, 0);
        await untilDebt(world, payer, 'refunded');
        await untilStates(world, payer, ['0 lost', '0 paid']);
        const keys = (await refundsOf(world, payer)).map(({ key }) => key);
        assert.notEqual(keys[0], keys[1]);
        await gotOnce(world, payer, world.token.address);
        await booksOfTempo(world);
    });
}

// ---- success that is none ----

const GUARD = '0xb10c000000000000000000000000000000000000';
const topicOf = (address) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;

// The node as it is where the payer has a receive policy (no local node has those): what is sent to the payer is logged
// as sent to the guard.
function divert(world, payer) {
    const topic = topicOf(payer.address);
    const changed = (log) => ([TRANSFER, TRANSFER_WITH_MEMO].includes(log.topics[0]) && log.topics[2] === topic
        ? { ...log, topics: log.topics.with(2, topicOf(GUARD)) } : log);
    world.stub.acts.eth_getLogs = async (params, pass) => (await pass()).map(changed);
    world.stub.acts.eth_getTransactionReceipt = async (params, pass) => {
        const receipt = await pass();
        return receipt && { ...receipt, logs: receipt.logs.map(changed) };
    };
}

function astray() {
    test('a refund that succeeded and went to somebody else: open, for a person, and not sent again', { timeout: 400_000 }, async () => {
        let stub;
        const options = tempoRefunding({ roles: ['gateway'], beforeConfig: async (world) => {
            stub = world.stub = await Stub.start(world.tempo.rpc.url);
            world.options.tempo = { rpc: [stub.url] };
        } });
        await inWorld(options, async (world) => {
            await settleTempo(world, HOLD);
            const { payer } = await failed(world);
            await world.waitFor(async () => (await debtsTo(world, payer))[0]?.state === 'approved', 'it is approved');
            await world.kill9('settler');
            divert(world, payer);
            await settleTempo(world);
            const [{ reason, id }] = await untilDebt(world, payer, 'held');
            assert.match(reason, new RegExp(`went to ${GUARD}`, 'i'));
            assert.deepEqual(await states(world, payer), ['0 astray']);
            assert.equal((await world.payonce(['refunds', 'approve', id])).code, 1);
            const { number } = await world.tempo.block();
            await world.waitFor(async () => (await world.tempo.block()).number >= number + 4, 'some blocks pass');
            assert.deepEqual(await states(world, payer), ['0 astray']);
            await gotOnce(world, payer); // what the node really did
            await booksOfTempo(world);
            assert.equal(await liability(world), -PRICE);
        })().finally(() => stub?.stop());
    });
}

// ---- a wallet that is short ----

function short() {
    scenario('a wallet that is short: the debt waits, what is lacking is told with the fee, and it is paid when there is more',
        { atoms: 300n }, async (world) => {
            await settleTempo(world);
            const { payer } = await failed(world);
            const lacks = async () => BigInt((await world.sql('SELECT lacks::text FROM refund_funds'))[0]?.lacks ?? 0);
            const missing = await world.waitFor(async () => (await lacks()) > 0n && lacks(), 'it tells what it lacks');
            assert.ok(missing > 1_000n, `${missing}`); // the fee, since the amount alone is there
            assert.deepEqual(await refundsOf(world, payer), []);
            assert.match((await world.payonce(['refunds', 'pay', '--dry-run'])).stdout, /1 refund\(s\)/);
            await world.tempo.fund(refundWallet.address, 1_000_000n);
            await untilDebt(world, payer, 'refunded');
            await gotOnce(world, payer);
            await booksOfTempo(world);
        });
}

describe('refunds on Tempo that are refused', { concurrency: 3 }, () => {
    refused();
    late();
    astray();
    short();
});
