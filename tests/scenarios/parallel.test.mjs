// One payment presented many times at once buys once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paymentId } from '../lib/payment.mjs';
import { inWorld } from '../lib/world.mjs';

const COPIES = 64;

// A copy that was told to wait gets its answer by sending the very same payment again.
async function resolve(world, path, signed, options, answer) {
    if (answer.status !== 409)
        return answer;
    assert.equal(answer.json.code, 'payment_in_flight');
    return world.waitFor(async () => {
        const again = await world.send(path, signed, options);
        return again.status !== 409 && again;
    }, 'a copy in flight resolves');
}

const cases = [
    ['a read', '/test/read?delay_ms=300', { method: 'GET' }],
    ['a write', '/test/write?delay_ms=300', { method: 'POST', body: '{"n":1}' }],
    ['a read, presented with a payment id', '/test/read?delay_ms=300&n=2', { method: 'GET', id: paymentId() }],
];

for (const [name, path, options] of cases)
    test(`${COPIES} copies of one payment for ${name}`, inWorld({}, async (world) => {
        const payer = await world.newPayer();
        const signed = await world.sign(payer, path, options);
        const copies = Array.from({ length: COPIES }, () => world.send(path, signed, options));
        const first = await Promise.all(copies);
        const answers = await Promise.all(first.map((answer) => resolve(world, path, signed, options, answer)));

        assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [200]);
        assert.equal(new Set(answers.map((answer) => answer.text)).size, 1, 'the copies got different answers');
        assert.equal((await world.calls()).length, 1, 'the upstream did not run exactly once');
        assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n - 1000n);
        assert.equal(await world.checkBooks(), 1);
    }));

test('many payments of many payers at once, each with its own transfer', inWorld({}, async (world) => {
    const payers = await world.newPayers(COPIES);
    const answers = await Promise.all(payers.map((payer, n) => world.pay(payer, `/test/read?n=${n}`)));
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [200]);
    assert.equal((await world.calls()).length, COPIES);
    assert.equal(await world.checkBooks(), COPIES);
}));
