// 256 at once over two gateways: one execution, one transfer.
import assert from 'node:assert/strict';
import { paymentId, authorize, paymentV2 } from '../lib/payment.mjs';
import { allDecided } from './lib/audit.mjs';
import { drill } from './lib/drill.mjs';
import { grouped } from './lib/grouped.mjs';

const CROWD = 256;

async function twoGateways(world) {
    const second = await world.addGateway('gateway2', { extra: world.options.extra });
    return (n) => (n % 2 === 0 ? world.gateway : second);
}

const brokenOff = () => ({ status: 0, text: 'the connection broke' });

// All at once; who is told to wait sends the same again until it is told more.
async function crowd(world, send) {
    const one = async (n) => {
        for (const end = Date.now() + 120_000; ; await world.pause(500)) {
            const answer = await send(n).catch(brokenOff);
            const wait = answer.status === 503 || (answer.status === 409 && answer.json.code === 'payment_in_flight');
            if (!wait || Date.now() > end)
                return answer;
        }
    };
    return Promise.all(Array.from({ length: CROWD }, (_, n) => one(n)));
}

const tally = (answers) => Object.fromEntries([...grouped(answers, ({ status }) => status)]
    .map(([status, list]) => [`status_${status}`, list.length]));
const figures = (answers) => ({ ...tally(answers), copies: answers.length });

async function paidOnce(world, payer) {
    await allDecided(world);
    assert.equal((await world.calls()).length, 1, 'the upstream did not run exactly once');
    assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n - 1000n);
}

for (const [name, path, options] of [
    ['a read', '/test/read?delay_ms=300', { method: 'GET' }],
    ['a write', '/test/write?delay_ms=300', { method: 'POST', body: '{"n":1}' }],
])
    drill(`crowd: one payment for ${name}`, { extra: { wait_ms: 20_000 } }, async (world) => {
        const at = await twoGateways(world);
        const payer = await world.newPayer();
        const signed = await world.sign(payer, path, options);
        const answers = await crowd(world, (n) => world.send(path, signed, { ...options, base: at(n) }));
        assert.deepEqual(tally(answers), { status_200: CROWD }, answers.find(({ status }) => status !== 200)?.text);
        assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
        await paidOnce(world, payer);
        return figures(answers);
    });

for (const [name, path, options] of [
    ['a read', '/test/read?delay_ms=300', { method: 'GET' }],
    ['a write', '/test/write?delay_ms=300', { method: 'POST', body: '{"n":1}' }],
])
    drill(`crowd: one payment id, a signature each, for ${name}`, { extra: { wait_ms: 20_000 } }, async (world) => {
        const at = await twoGateways(world);
        const payer = await world.newPayer();
        const { v2 } = await world.challenge(path, options);
        const id = paymentId();
        const payments = await Promise.all(Array.from({ length: CROWD }, async () =>
            ({ headers: { 'payment-signature': paymentV2(v2, await authorize(payer, v2.accepts[0]), { id }) } })));
        const answers = await crowd(world, (n) => world.send(path, payments[n], { ...options, base: at(n) }));
        assert.deepEqual(tally(answers), { status_200: CROWD }, answers.find(({ status }) => status !== 200)?.text);
        await paidOnce(world, payer);
        const [{ n }] = await world.sql('SELECT count(*)::int AS n FROM authorizations');
        assert.equal(n, CROWD, 'a signature that anybody may submit is not kept');
        return figures(answers);
    });

drill('crowd: one payment id, a request each', { extra: { wait_ms: 20_000 } }, async (world) => {
    const at = await twoGateways(world);
    const payer = await world.newPayer();
    const id = paymentId();
    const pathOf = (n) => `/test/read?delay_ms=300&n=${n}`;
    const payments = await Promise.all(Array.from({ length: CROWD }, (_, n) => world.sign(payer, pathOf(n), { id })));
    const answers = await crowd(world, (n) => world.send(pathOf(n), payments[n], { base: at(n) }));
    const lost = answers.filter(({ status }) => status !== 200);
    assert.deepEqual(tally(answers), { status_200: 1, status_409: CROWD - 1 }, lost[0]?.text);
    for (const answer of lost) {
        assert.equal(answer.json.code, 'payment_conflict');
        assert.equal(answer.json.reason, 'request');
        assert.equal(answer.json.order_id, undefined);
    }
    await paidOnce(world, payer);
    return figures(answers);
});
