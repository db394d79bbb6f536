// One payment presented many times at once buys once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paymentId } from '../lib/payment.mjs';
import { Stub } from '../lib/stub.mjs';
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

        assert.deepEqual(answers.filter(({ status }) => status !== 200).map(({ text }) => text), []);
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

// A copy that nobody knew asks the chain, and by the time that it has its answer another copy was taken and settled.
test('a copy that is overtaken while it asks the chain gets the answer, too', inWorld({}, async (world) => {
    const stub = await Stub.start(world.rpcUrl);
    try {
        const slow = await world.addGateway('gateway2', { network: { rpc: [stub.url] } });
        const payer = await world.newPayer();
        const path = '/test/read?n=3';
        const signed = await world.sign(payer, path);
        let goOn, asked = 0;
        const held = new Promise((done) => {
            goOn = done;
        });
        stub.acts.eth_call = async (params, pass) => {
            asked += 1;
            await held;
            return pass();
        };
        const copy = world.send(path, signed, { base: slow });
        await world.waitFor(() => asked > 0, 'the copy asks the chain');
        const first = await world.send(path, signed);
        assert.equal(first.status, 200, first.text);
        goOn();
        const second = await copy;
        assert.equal(second.status, 200, second.text);
        assert.equal(second.text, first.text);
        assert.equal((await world.calls()).length, 1);
        await world.stop('gateway2');
    } finally {
        await stub.stop();
    }
}));
