// The official clients behind a wire that loses replies, used as applications use them: an error is followed by the
// same call again. Writes carry a payment id; reads are cut before their last byte. One charge each.
import assert from 'node:assert/strict';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import * as fetch2 from '@x402/fetch';
import * as fetch1 from 'x402-fetch';
import { paymentId } from '../lib/payment.mjs';
import { freePort, testTools } from '../lib/world.mjs';
import { allDecided } from './lib/audit.mjs';
import { inTurn } from './lib/buyers.mjs';
import { drill, long } from './lib/drill.mjs';
import { grouped } from './lib/grouped.mjs';
import { CutWire, HttpWire } from './lib/wire.mjs';

const options = { tools: testTools.map((tool) => ({ ...tool, max_answer: 24_000_000, max_timeout_s: 60 })),
    extra: { wait_ms: 5_000 } };
const COUNT = long ? 100 : 20;
const SIZE = 12_000_000;

function paying(name, account, id) {
    if (name === 'x402-fetch')
        return fetch1.wrapFetchWithPayment(fetch, account);
    const client = registerExactEvmScheme(new fetch2.x402Client(), { signer: account });
    if (id)
        client.onBeforePaymentCreation(async ({ paymentRequired }) => {
            paymentRequired.extensions['payment-identifier'].info.id = id;
        });
    return fetch2.wrapFetchWithPayment(fetch, client);
}

// As an application does: again after an error, and after an answer that is none. Resolves to how often it called.
async function callUntil(world, call, url, init) {
    for (let calls = 1; calls < 100; calls++) {
        const response = await call(url, init).catch(() => null);
        const body = response?.ok ? await response.arrayBuffer().catch(() => null) : null;
        if (body)
            return calls;
        if (response && !response.ok) {
            assert.ok([402, 409, 502, 503].includes(response.status), `${url} answered ${response.status}`);
            const { code } = await response.json().catch(() => ({}));
            if (code === 'already_paid')    // v1 asks with the id alone: it is told so, once and for all
                return calls;
        }
        await world.pause(500);
    }
    throw new Error(`${url} got no answer in 100 calls`);
}

// One order, one charge and one execution each. Where the kernel took all of an answer before the wire cut it, the last
// byte had left, and the call after that is another one: resolves to how many such there were.
async function oneChargeEach(world, wallets) {
    await allDecided(world);
    const spent = await Promise.all(wallets.map(({ address }) => world.chain.balanceOf(address)));
    const orders = grouped(await world.sql(`SELECT '0x' || encode(payer, 'hex') AS payer, status, created_at, delivered_at
        FROM order_status WHERE money = 'settled' ORDER BY created_at`), ({ payer }) => payer);
    let after = 0;
    for (const [i, { address }] of wallets.entries()) {
        const paid = orders.get(address.toLowerCase()) ?? [];
        assert.equal(spent[i], 1_000_000n - 1_000n * BigInt(paid.length), `${address} paid for what is no order`);
        assert.ok(paid.length >= 1, `${address} was not charged`);
        const again = paid.slice(1).filter((later, k) => paid[k].delivered_at === null || paid[k].delivered_at > later.created_at);
        assert.deepEqual(again, [], `${address} was charged twice for what was not delivered`);
        after += paid.length - 1;
    }
    const calls = grouped(await world.calls(), ({ key }) => key);
    assert.ok([...calls.values()].every((list) => list.length === 1), 'work ran twice');
    return after;
}

for (const name of ['@x402/fetch', 'x402-fetch']) {
    drill(`${name}: writes with a payment id, replies lost`, options, async (world, chance) => {
        const wire = await new HttpWire(chance.stream('wire'), world.ports.gateway).start(await freePort());
        const payers = await world.newPayers(COUNT);
        let called = 0;
        await inTurn(COUNT, 6, async (n) => {
            const id = paymentId();
            const named = name === 'x402-fetch' && { 'idempotency-key': id };
            const init = { method: 'POST', headers: { 'content-type': 'application/json', ...named }, body: '{}' };
            const call = paying(name, payers[n].account, id);
            const calls = await callUntil(world, call, `${wire.url}/test/write?n=${n}`, init);
            called += calls;
        });
        assert.equal(await oneChargeEach(world, payers), 0, 'with a payment id there is one order');
        await wire.close();
        assert.ok(wire.injected.drop + wire.injected.cut > 0, 'the wire lost nothing');
        return { payments: COUNT, retries: called - COUNT, ...wire.injected };
    });

    drill(`${name}: reads cut before their last byte`, options, async (world, chance) => {
        const wire = await new CutWire(chance.stream('wire'), world.ports.gateway,
            { share: 0.5, least: 1_000, most: 500_000 }).start(await freePort());
        const payers = await world.newPayers(COUNT);
        let called = 0;
        await inTurn(COUNT, 3, async (n) => {
            const call = paying(name, payers[n].account);
            const calls = await callUntil(world, call, `${wire.url}/test/read?size=${SIZE}&n=${n}`, { method: 'GET' });
            called += calls;
        });
        const after = await oneChargeEach(world, payers);
        await wire.close();
        assert.ok(wire.injected.cut > 2 * after, 'hardly anything was cut before its last byte');
        return { payments: COUNT, retries: called - COUNT, ...wire.injected, cut_after_last_byte: after };
    });
}
