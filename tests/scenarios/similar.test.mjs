// Writes without a payment id: the same again may be a retry after a lost reply, or a second one that is meant. A retry is asked about,
// however late it comes; a second one is sold, with a warning.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asOwner } from '../lib/ledger.mjs';
import { paymentId } from '../lib/payment.mjs';
import { inWorld } from '../lib/world.mjs';

const POST = { method: 'POST', body: '{"n":1}' };
const later = (world, order, by) => asOwner(world, `UPDATE orders SET created_at = created_at - interval '${by}',
    delivered_at = delivered_at - interval '${by}' WHERE id = decode('${order.slice(4)}', 'hex')`);

function isAsked(answer, order) {
    assert.deepEqual([answer.status, answer.json?.code, answer.json?.order_id], [409, 'similar_order', order], answer.text);
    assert.equal(answer.headers['payment-required'], undefined);
}

test('one right after the other: both are sold, and the second is warned of', inWorld({}, async (world) => {
    const payer = await world.newPayer();
    const path = '/test/write?twice';
    for (let i = 0, before; i < 5; i++) {
        const answer = await world.pay(payer, path, POST);
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers['payonce-similar-order'], before);
        before = answer.headers['payonce-order'];
    }
    assert.equal((await world.calls()).length, 5);
}));

test('whose reply was lost, or whose outcome is: asked, and never made again, minutes later too', inWorld({}, async (world) => {
    const payer = await world.newPayer();
    const path = '/test/write?delay_ms=300&left';
    const { headers } = await world.sign(payer, path, POST);
    const left = new AbortController();
    const gone = world.request(path, { ...POST, headers, signal: left.signal });
    await world.waitFor(async () => (await world.calls()).length === 1, 'it is at work');
    left.abort();
    await assert.rejects(gone);
    const isPaid = async () => (await world.sql('SELECT status FROM order_status'))[0].status === 'paid';
    await world.waitFor(isPaid, 'it is paid');
    await world.restart('gateway');     // it notes nothing any more
    await asOwner(world, 'UPDATE orders SET delivered_at = NULL'); // the last byte may have got into the socket, and no further
    const [{ id }] = await world.sql(`SELECT 'ord_' || encode(id, 'hex') AS id FROM orders`);
    isAsked(await world.pay(payer, path, POST), id);
    await later(world, id, '10 min');
    isAsked(await world.pay(payer, path, POST), id);

    const dark = '/test/write?reset=1';
    const { json: { order_id: order } } = await world.pay(payer, dark, POST);
    isAsked(await world.pay(payer, dark, POST), order);
    await later(world, order, '3 days');
    isAsked(await world.pay(payer, dark, POST), order);
    assert.equal((await world.calls()).length, 2);

    assert.equal((await world.pay(payer, path, { ...POST, id: paymentId() })).status, 200, 'an id says that it is meant');
}));
