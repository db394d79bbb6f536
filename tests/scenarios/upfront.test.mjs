// Tools with `settle: before_work`: the money is proven before the work begins, failed work leaves a debt, and whatever
// is killed in between, the call is answered, in review, or owed back.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { demoTools } from '../../dev/config.mjs';
import { asOwner, begin, checkSum, debtsOf, eventsOf, isPaid, orderOf, untilMoney } from '../lib/ledger.mjs';
import { paymentId } from '../lib/payment.mjs';
import { booksAgree, debtsTo, liability, paidBack, refunding, untilDebt } from '../lib/refunds.mjs';
import { inWorld, testTools } from '../lib/world.mjs';

const first = (name, path, changes = {}) => ({
    ...testTools[0], name, path, settle: 'before_work', ...changes,
});
const tools = [
    ...demoTools, ...testTools,
    first('first read', '/test/first'),
    first('first cacheable', '/test/first-cacheable', { cacheable: true, repeat_paid_first: true }),
    first('first not opted in', '/test/first-not-opted', { cacheable: true }),
    first('first write', '/test/first-write', { method: 'POST', side_effect: 'write' }),
];
const READ = '/test/first';
const WRITE = ['/test/first-write', { method: 'POST', body: '{"n":1}' }];
const callsTo = async (world, target) => (await world.calls()).filter((call) => call.target === target);

// Of a problem that says: paid, and it failed.
function owes(answer, amount = '1000') {
    assert.equal(answer.status, 502, answer.text);
    assert.equal(answer.json.code, 'work_failed_paid');
    assert.equal(answer.json.money, 'moved');
    assert.equal(answer.headers['payment-required'], undefined);
    assert.equal(answer.headers['payonce-charged'], 'true');
    const [debt, ...more] = answer.json.refunds;
    assert.deepEqual(more, []);
    assert.deepEqual([debt.cause, debt.amount], ['work_failed', amount]);
    assert.match(debt.debt, /^0x[0-9a-f]{64}$/);
    assert.ok(answer.json.receipt && answer.json.asset && answer.json.network);
    return debt;
}

// The sum holds with debts, too.
const beforeConfig = (world) => {
    world.checkBooks = () => checkSum(world);
};
// A person finds out that the lost call was not carried out.
async function foundFailed(world, { payer }) {
    const { id } = await world.waitFor(async () => {
        const order = await orderOf(world, payer);
        return order.work === 'lost' && order;
    }, 'it is lost');
    const { code, stderr } = await world.payonce(['review', 'resolve', `ord_${id}`, 'failed', '--note', 'not done']);
    assert.equal(code, 0, stderr);
}

const scenario = (name, options, body) =>
    test(name, { timeout: 300_000 }, inWorld({ tools, beforeConfig, ...options }, body));
const officialFetch = ({ account }) =>
    wrapFetchWithPayment(fetch, registerExactEvmScheme(new x402Client(), { signer: account }));

function answered() {
    scenario('the answer follows the work at once: its money is there already', {}, async (world) => {
        const spare = [];
        for (let i = 0; i < 3; i++) {
            const payer = await world.newPayer();
            assert.equal((await world.pay(payer, READ)).status, 200);
            const [{ since }] = await world.sql(`SELECT extract(epoch FROM now() - max(work_ended_at))::float8 AS since FROM orders`);
            spare.push(since);
        }
        assert.ok(Math.min(...spare) < 1, `${spare} s after its work had ended`);
    });

    scenario('the money is proven while the call runs, the answer follows, and the same payment gets it again', {},
        async (world) => {
            const payer = await world.newPayer();
            const path = `${READ}?delay_ms=2500`;
            const { required } = await world.sign(payer, path);
            assert.deepEqual(required.accepts.map(({ extra }) => extra.paymentFlow), ['upfront']);
            const call = await begin(world, path, { payer });
            await world.waitFor(async () => (await callsTo(world, path)).length === 1, 'the upstream is called');
            const order = await orderOf(world, payer);
            assert.deepEqual([order.work, order.money], ['running', 'settled']);
            const answer = await call.answer;
            assert.equal(answer.status, 200, answer.text);
            assert.equal(answer.headers['payonce-charged'], 'true');
            const again = await world.send(path, call.signed);
            assert.deepEqual([again.status, again.headers['payonce-replayed'], again.text], [200, 'true', answer.text]);
            assert.equal((await callsTo(world, path)).length, 1);
            assert.deepEqual((await eventsOf(world, payer)).slice(0, 5),
                ['accepted_first', 'sent', 'settled', 'work_begun', 'work_done']);
            assert.deepEqual(await debtsOf(world, payer), []);
        });

    scenario('the official client pays, and a tool that is not upfront says nothing of it', {}, async (world) => {
        const payer = await world.newPayer();
        const pay = officialFetch(payer);
        const answer = await pay(`${world.gateway}${READ}`);
        assert.equal(answer.status, 200);
        assert.equal(answer.headers.get('payonce-charged'), 'true');
        const { v2, v1 } = await world.challenge('/test/read');
        assert.equal(v2.accepts[0].extra.paymentFlow, undefined);
        assert.equal(v1.accepts[0].extra.paymentFlow, undefined);
        const old = await world.challenge(READ);
        assert.equal(old.v1.accepts[0].extra.paymentFlow, 'upfront');
        const v1Answer = await world.pay(payer, `${READ}?v=1`, { version: 1 });
        assert.equal(v1Answer.status, 200, v1Answer.text);
        const fails = await pay(`${world.gateway}${READ}?status=500`);
        assert.equal(fails.status, 502);
        await untilDebt(world, payer, 'owed');
    });

    scenario('what was accepted for the other flow is refused, and nothing moves', {}, async (world) => {
        const payer = await world.newPayer();
        const { v2 } = await world.challenge(READ);
        const accepted = structuredClone(v2.accepts[0]);
        delete accepted.extra.paymentFlow;
        const answer = await world.pay(payer, READ, { payment: { accepted } });
        assert.equal(answer.status, 402, answer.text);
        assert.equal(answer.json.reason, 'No matching payment requirements');
        assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n);
    });

    scenario('a question that may be repeated is free the second time', {}, async (world) => {
        const payer = await world.newPayer();
        assert.equal((await world.pay(payer, '/test/first-cacheable?a=1')).status, 200);
        const again = await world.pay(payer, '/test/first-cacheable?a=1');
        assert.deepEqual([again.status, again.headers['payonce-charged']], [200, 'false']);
        assert.equal(await world.chain.balanceOf(payer.address), 999_000n);
    });

    scenario('cacheable is not enough where the money comes first', {}, async (world) => {
        const payer = await world.newPayer();
        for (let i = 1n; i <= 2n; i++) {
            const answer = await world.pay(payer, '/test/first-not-opted?a=1');
            assert.deepEqual([answer.status, answer.headers['payonce-charged']], [200, 'true']);
            assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n - 1_000n * i);
            await world.waitFor(async () => (await world.sql('SELECT id FROM orders WHERE delivered_at IS NULL')).length === 0, 'it is delivered');
        }
    });
}

function failed() {
    scenario('work that fails behind the money is one debt, named in the problem, and paid back once', refunding(),
        async (world) => {
            for (const query of ['status=500', 'status=404', 'reset=1', 'status=402']) {
                const call = await begin(world, `${READ}?${query}`);
                const debt = owes(await call.answer);
                const again = owes(await world.send(call.path, call.signed));
                assert.equal(again.debt, debt.debt);
                if (query !== 'reset=1') // a read that was cut is asked once more
                    assert.equal((await callsTo(world, call.path)).length, 1, query);
                await untilDebt(world, call.payer, 'refunded');
                assert.equal((await paidBack(world, call.payer)).length, 1);
                assert.equal(await world.chain.balanceOf(call.payer.address), 1_000_000n);
                const told = await world.send(call.path, call.signed);
                assert.equal(told.json.refunds[0].state, 'refunded');
            }
            await booksAgree(world);
            assert.equal(await liability(world), 0n);
        });

    scenario('a write whose outcome is lost is in review; found failed, it is owed back', {}, async (world) => {
        const [path, options] = WRITE;
        const call = await begin(world, `${path}?reset=1`, options);
        assert.equal((await call.answer).json.code, 'in_review');
        assert.deepEqual(await debtsOf(world, call.payer), []);
        await foundFailed(world, call);
        owes(await world.send(call.path, call.signed, options));
        assert.equal((await debtsTo(world, call.payer)).length, 1);
    });
}

function late() {
    scenario('a proof that does not come in time: 409, and the work runs when the client asks again', {
        extra: { wait_ms: 1500 }, roles: ['gateway'],
    }, async (world) => {
        const call = await begin(world, READ);
        const answer = await call.answer;
        assert.equal(answer.status, 409, answer.text);
        assert.equal(answer.json.code, 'payment_in_flight');
        assert.deepEqual(await world.calls(), []);
        await world.startRole('settler');
        await untilMoney(world, call.payer, 'settled');
        assert.equal((await orderOf(world, call.payer)).work, 'waiting');
        assert.deepEqual(await world.calls(), []);
        await isPaid(world, { ...call, answer: null });
        assert.equal((await world.calls()).length, 1);
    });

    scenario('a request that is still parked when the proof comes is served at once', { roles: ['gateway'] }, async (world) => {
        const call = await begin(world, READ);
        await untilMoney(world, call.payer, 'due');
        await world.startRole('settler');
        assert.equal((await call.answer).status, 200);
    });

    scenario('nobody comes for it within 15 minutes: it is owed back', { extra: { wait_ms: 1000 }, roles: ['gateway'] },
        async (world) => {
            const call = await begin(world, READ);
            assert.equal((await call.answer).status, 409);
            await world.startRole('settler');
            await untilMoney(world, call.payer, 'settled');
            await world.pause(2_500); // a sweep goes by, and leaves it alone
            assert.equal((await orderOf(world, call.payer)).work, 'waiting');
            await asOwner(world, `UPDATE orders SET created_at = created_at - interval '16 minutes';
                UPDATE proofs SET recorded_at = recorded_at - interval '16 minutes'`);
            const [debt] = await untilDebt(world, call.payer, 'owed');
            assert.equal(debt.cause, 'work_failed');
            owes(await world.send(call.path, call.signed));
            assert.deepEqual(await world.calls(), []);
        });
}

// ---- kill -9 between the money and the work ----

const lastWord = (world, call) => world.waitFor(async () => {
    const answer = await world.send(call.path, call.signed, call.options).catch(() => null);
    const again = !answer || answer.status === 503 || answer.json?.code === 'payment_in_flight';
    return !again && answer;
}, `the call of ${call.path} ends`, 90_000);

function killed() {
    const steps = ['gateway-before-begin', 'gateway-after-begin', 'gateway-before-work', 'gateway-before-finish', 'gateway-before-answer'];
    for (const step of steps)
        scenario(`kill -9 at ${step}`, {}, async (world) => {
            for (const [path, options] of [[READ, { method: 'GET' }], WRITE]) {
                await world.restart('gateway', { env: { PAYONCE_FAILPOINT: step } });
                const call = await begin(world, `${path}?at=${step}`, { ...options, id: paymentId() });
                assert.equal(await world.ended('gateway', 60_000), 'SIGKILL', `${step} was never passed`);
                await call.answer;
                assert.equal((await orderOf(world, call.payer)).money, 'settled');
                await world.restart('gateway');
                const answer = await lastWord(world, call);
                const runs = (await callsTo(world, call.path)).length;
                const begun = !['gateway-before-begin', 'gateway-before-answer'].includes(step);
                if (options.method === 'POST' && begun) {
                    assert.equal(answer.json.code, 'in_review', answer.text);
                    assert.ok(runs <= 1, `the write ran ${runs} times`);
                    await foundFailed(world, call);
                    owes(await world.send(call.path, call.signed, call.options));
                    assert.equal((await debtsOf(world, call.payer)).length, 1);
                } else {
                    assert.equal(answer.status, 200, answer.text);
                    assert.ok(runs >= 1);
                    assert.deepEqual(await debtsOf(world, call.payer), []);
                }
            }
            const rows = await world.sql(`SELECT count(*) AS n FROM orders o JOIN authorizations a ON a.id = o.authorization_id
                JOIN debts d ON d.authorization_id = a.id WHERE o.work = 'done'`);
            assert.equal(Number(rows[0].n), 0, 'answered and owed back');
        });
}

describe('money before work', { concurrency: 2 }, () => {
    answered();
    failed();
    late();
    killed();
});
