// Each way that money comes late, twice or too much, on the real chain: one debt, in its receipt, paid back once. And a
// node that keeps logs to itself.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { begin, isSeen, orderOf, publicOrder, stranger, submit, untilMoney } from '../lib/ledger.mjs';
import { USDC } from '../../dev/usdc.mjs';
import { authorize, paymentV2 } from '../lib/payment.mjs';
import { booksAgree, debtsTo, late, liability, paidBack, policy, refunding, untilDebt } from '../lib/refunds.mjs';
import { behindStubs } from '../lib/stub.mjs';

const scenario = (name, options, body, stubs = 0) =>
    test(name, { timeout: 400_000 }, behindStubs(stubs, refunding(options), body));
const setBlockTime = (world, seconds) => world.chain.rpc.call('evm_setIntervalMining', seconds);

// In the receipt the debt is told, with its cause, and that it went back.
async function isTold(world, payer, cause, amount) {
    const order = await publicOrder(world, payer);
    const { refunds } = (await world.request(new URL(order.receipt).pathname)).json;
    const mine = refunds.filter((debt) => debt.cause === cause);
    assert.deepEqual(mine.map((debt) => [debt.state, debt.amount]), [['refunded', amount]]);
    assert.deepEqual(order.refunds, refunds);
}

describe('money that must go back', { concurrency: 2 }, () => {
    scenario('overpaid (J05): the surplus goes back, the price is kept', {}, async (world) => {
        const payer = await world.newPayer();
        const path = '/test/read?hold=1';
        const signed = await world.sign(payer, path);
        const answer = world.send(path, signed);
        await world.waitFor(async () => (await world.calls()).length === 1, 'the work runs');
        const { nonce, value } = signed.payload.authorization;
        await submit(world, await authorize(payer, signed.required.accepts[0], { change: { nonce, value: String(BigInt(value) + 500n) } }));
        await untilMoney(world, payer, 'settled');
        await world.letGo();
        const { status } = await answer;
        assert.ok(status === 200 || status === 409, `${status}`);
        await untilDebt(world, payer, 'refunded');
        await world.waitFor(async () => (await orderOf(world, payer)).status === 'paid', 'it is paid');
        await isTold(world, payer, 'overpaid', '500');
        assert.equal(await world.chain.balanceOf(payer.address), 999_000n);
        await booksAgree(world);
        world.checkBooks = () => {}; // its one transfer is a sale and a debt, which the auditor has just compared
    });

    scenario('believed void below finality; the cancellation leaves the chain and the payment lands (J08)', {
        network: { finality_blocks: 8 },
    }, async (world) => {
        await world.chain.mine(20);
        const call = await begin(world, '/test/read?status=404');
        await call.answer;
        const { nonce } = call.signed.payload.authorization;
        const signature = await call.payer.account.signTypedData({
            domain: { name: 'USDC', version: '2', chainId: 84532, verifyingContract: USDC },
            types: { CancelAuthorization: [{ name: 'authorizer', type: 'address' }, { name: 'nonce', type: 'bytes32' }] },
            primaryType: 'CancelAuthorization', message: { authorizer: call.payer.address, nonce },
        });
        await setBlockTime(world, 0);
        const before = await world.chain.block();
        await world.chain.write(await stranger(world), 'cancelAuthorization', [call.payer.address, nonce, signature]);
        assert.equal(await world.chain.authorizationState(call.payer.address, nonce), true);
        await isSeen(world);
        await world.chain.mine();
        await isSeen(world);
        assert.deepEqual([(await publicOrder(world, call.payer)).status, (await publicOrder(world, call.payer)).final],
            ['not_charged', false]);
        const { number } = await world.chain.block();
        await world.chain.reorg(number - before.number);
        await setBlockTime(world, 1);
        await submit(world, call.signed.payload);
        await untilDebt(world, call.payer, 'refunded');
        assert.equal((await paidBack(world, call.payer)).length, 1);
        await isTold(world, call.payer, 'late', '1000');
        await booksAgree(world);
    });

    scenario('released, landed and refunded; then one more lands for the same order: it goes back too (J01, J08)', {}, async (world) => {
        const call = await late(world);
        await untilDebt(world, call.payer, 'refunded');
        const offer = call.signed.required.accepts[0];
        const again = await authorize(call.payer, offer);
        // presented under the order's own quote, it is stored and set aside; then a stranger sends it
        const signed = { ...call.signed, payload: again };
        signed.headers = { 'payment-signature': paymentV2(call.signed.required, again) };
        const answer = await world.send(call.path, signed);
        assert.ok(answer.status >= 400 && answer.status !== 402, `${answer.status} ${answer.text}`);
        await submit(world, again);
        await world.waitFor(async () => (await debtsTo(world, call.payer)).length === 2, 'it is owed');
        await untilDebt(world, call.payer, 'refunded');
        assert.equal((await paidBack(world, call.payer)).length, 2);
        assert.equal(await world.chain.balanceOf(call.payer.address), 1_000_000n);
        await booksAgree(world);
        assert.equal(await liability(world), 0n);
    });

    scenario('a refund whose block leaves the chain (I14): open again, the same refund once more, one in the end', {
        refunds: policy({ every_s: 1 }), network: { finality_blocks: 8 },
    }, async (world) => {
        await world.chain.mine(20);
        const { payer } = await late(world);
        await untilDebt(world, payer, 'paying');
        await world.waitFor(async () => (await paidBack(world, payer)).length === 1, 'the refund is on the chain');
        const [{ tx }] = await paidBack(world, payer);
        await setBlockTime(world, 0);
        const { blockNumber } = await world.chain.receipt(tx);
        const { number } = await world.chain.block();
        await world.chain.reorg(number - Number(blockNumber) + 1);
        assert.equal((await paidBack(world, payer)).length, 0);
        assert.equal((await debtsTo(world, payer))[0].state, 'paying');
        await setBlockTime(world, 1);
        await untilDebt(world, payer, 'refunded');
        assert.equal((await paidBack(world, payer)).length, 1);
        assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n);
        await booksAgree(world);
    });

    scenario('a node that leaves a transfer out: the balance gives it away, and the scan goes back', {}, async (world) => {
        const hide = (logs, pass) => pass().then((found) => (logs ? found : []));
        let hidden = true;
        world.stub.acts.eth_getLogs = (params, pass) => hide(!hidden, pass);
        const payer = await world.newPayer();
        await world.chain.giveGas(payer.address);
        await world.chain.write(payer.address, 'transfer', [world.payTo, 7_000n]);
        const { number } = await world.chain.block();
        await world.waitFor(async () => (await world.sql('SELECT min(block) AS block FROM scans'))[0].block >= number,
            'the scan passes it');
        assert.deepEqual(await world.sql('SELECT tx FROM transfers'), []);
        hidden = false;
        await world.waitFor(async () => (await world.sql("SELECT 1 FROM transfers WHERE class = 'suspense' AND booked = class")).length === 1,
            'it is found after all');
        await booksAgree(world);
    }, 1);
});
