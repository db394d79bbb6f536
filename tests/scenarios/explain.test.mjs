// What a person is told of an order, and what a person decides: the whole story by any of its names, with nothing of
// bodies and signatures in it, and reviews that end by a decision that is on record.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asOwner } from '../lib/ledger.mjs';
import { hex32, paymentId } from '../lib/payment.mjs';
import { inWorld } from '../lib/world.mjs';

const READ = '/test/read';
const LOST = '/test/write?reset=1';
const POST = { method: 'POST', body: '{"n":1}' };
const FUNDS = 1_000_000n;
const scenario = (name, options, body) => test(name, { timeout: 300_000 }, inWorld(options, body));

async function ok(world, ...args) {
    const { code, stdout, stderr } = await world.payonce(args);
    assert.equal(code, 0, stderr);
    return stdout;
}

const explain = async (world, what) => JSON.parse(await ok(world, 'explain', what, '--json'));

async function refused(world, words, ...args) {
    const { code, stdout, stderr } = await world.payonce(args);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, words);
}

const names = (story) => story.events.map(({ event }) => event);

// ---- explain ----

scenario('explain tells the same story by every name, and nothing of bodies and signatures', {}, async (world) => {
    const id = paymentId();
    const payer = await world.newPayer();
    const secret = hex32().slice(2);
    const options = { id, method: 'POST', body: secret };
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const signed = await world.sign(payer, '/test/write', options);
    assert.equal((await world.send('/test/write', signed, { ...options, headers: { traceparent } })).status, 200);
    const retry = { ...options, headers: { 'payonce-retry-source': 'framework', traceparent: secret.slice(0, 55) } };
    assert.equal((await world.send('/test/write', signed, retry)).headers['payonce-replayed'], 'true');
    const whole = async () => {
        const { orders: [order] } = await explain(world, id);
        return names(order).includes('replayed') && order.authorizations[0].transactions[0].state === 'final';
    };
    await world.waitFor(whole, 'the repeat is noted, and the transaction is final');

    const all = await explain(world, id);
    const [story] = all.orders;
    assert.equal(all.orders.length, 1);
    assert.equal(story.status, 'paid');
    assert.deepEqual(names(story), ['accepted', 'work_done', 'sent', 'settled', 'replayed']);
    assert.equal(story.events_broken, 0);
    const [accepted, done, sent, settled, replayed] = story.events;
    assert.equal(accepted.traceparent, traceparent);
    assert.match(accepted.request_id, /^[0-9a-f]{16}$/);
    assert.match(accepted.actor, /^gateway:/);
    assert.match(sent.actor, /^settler:/);
    assert.equal(done.before, 'work running');
    assert.equal(settled.after, 'money settled');
    assert.equal(replayed.retry_source, 'framework');
    assert.equal(replayed.traceparent, undefined, 'it was none');
    const times = story.events.map(({ at }) => Date.parse(at));
    assert.deepEqual(times, times.toSorted((a, b) => a - b));

    const { nonce } = signed.payload.authorization;
    const [authorization] = story.authorizations;
    const { state, pays_the_order } = authorization;
    assert.deepEqual([authorization.nonce, state, pays_the_order], [nonce, 'settled', true]);
    const [transaction] = authorization.transactions;
    const [proof] = authorization.proofs;
    assert.equal(proof.tx, transaction.hash);
    assert.equal((await world.chain.receipt(transaction.hash)).status, '0x1');

    const shouted = nonce.toUpperCase().replace('X', 'x');
    for (const name of [story.order_id, story.receipt_id, nonce, shouted, transaction.hash])
        assert.deepEqual(await explain(world, name), all, name);
    const text = await ok(world, 'explain', story.order_id);
    for (const part of [story.order_id, id, nonce, transaction.hash, 'retry=framework', 'work running -> work done',
        'the chain of 5 events is whole'])
        assert.ok(text.includes(part), `${part} is not in\n${text}`);
    const { signature } = signed.payload;
    const bare = signature.slice(2);
    for (const hidden of [secret, Buffer.from(secret).toString('base64'), bare, bare.toUpperCase()])
        for (const told of [text, JSON.stringify(all)])
            assert.ok(!told.includes(hidden), 'the story tells a body or a signature');

    for (const nobody of [paymentId(), hex32(), `ord_${'0'.repeat(32)}`, "x' OR 1=1 --"])
        await refused(world, /nothing here has that/, 'explain', nobody);
    assert.equal((await world.payonce(['explain'])).code, 2);
});

scenario('many orders of one transaction; a record that was tampered with says so', { blockTime: 0 }, async (world) => {
    await world.stop('settler');
    const payers = await world.newPayers(3);
    const paths = payers.map((_, i) => `${READ}?n=${i}`);
    const signed = await Promise.all(payers.map((payer, i) => world.sign(payer, paths[i])));
    const answers = paths.map((path, i) => world.send(path, signed[i]));
    const due = async () => (await world.sql(`SELECT 1 FROM authorizations WHERE state = 'due'`)).length === 3;
    await world.waitFor(due, 'all wait to be sent');
    await world.restart('settler');
    const sent = async () => (await world.sql('SELECT hash FROM relay_transactions'))[0];
    const { hash } = await world.waitFor(sent, 'they are sent');
    const proven = async () => await world.chain.mine() || (await world.sql('SELECT 1 FROM proofs')).length === 3;
    await world.waitFor(proven, 'they are proven');
    await Promise.all(answers);
    const tx = hash.replace('\\x', '0x');
    const { orders } = await explain(world, tx);
    assert.equal(orders.length, 3);

    const [order] = orders;
    const hex = order.order_id.slice(4);
    const tampered = async (text, broken) => {
        await asOwner(world, text);
        const { code, stdout } = await world.payonce(['explain', order.order_id]);
        assert.equal(code, 1, text);
        assert.match(stdout, /THE CHAIN OF EVENTS IS BROKEN/);
        const told = JSON.parse((await world.payonce(['explain', order.order_id, '--json'])).stdout);
        assert.equal(told.orders[0].events_broken, broken);
    };
    await tampered(`UPDATE events SET actor = 'nobody' WHERE order_id = decode('${hex}', 'hex') AND seq = 2`, 1);
    await tampered(`DELETE FROM events WHERE order_id = decode('${hex}', 'hex') AND seq = 2`, 2);
    assert.equal((await explain(world, orders[1].order_id)).orders[0].events_broken, 0, 'one order, one chain');
});

// ---- review ----

async function lostWrite(world, path = LOST) {
    const id = paymentId();
    const payer = await world.newPayer({ atoms: FUNDS });
    const signed = await world.sign(payer, path, { id, ...POST });
    const answer = await world.send(path, signed, POST);
    assert.equal(answer.json.code, 'in_review', answer.text);
    return { id, payer, signed, order: answer.json.order_id, again: () => world.send(path, signed, POST) };
}

scenario('a lost write: listed, shown, found done, and never charged or run again', {}, async (world) => {
    const list = async () => JSON.parse(await ok(world, 'review', 'list', '--json'));
    assert.deepEqual(await list(), []);
    assert.match(await ok(world, 'review', 'list'), /nothing waits/);
    const { id, order, payer, again } = await lostWrite(world);
    const [waiting] = await list();
    assert.deepEqual([waiting.order_id, waiting.tool, waiting.payment_id], [order, 'test write', id]);
    assert.ok((await ok(world, 'review', 'list')).includes(order));
    assert.match(waiting.fact, /\w+ \w+/, 'why nobody knows');
    const shown = await ok(world, 'review', 'show', order);
    for (const part of [order, `Idempotency-Key ${order}`, 'fact', 'what remains', 'what was done'])
        assert.ok(shown.includes(part), shown);
    assert.equal(JSON.parse(await ok(world, 'review', 'show', order, '--json')).review.fact, waiting.fact);

    const decide = ['review', 'resolve', order];
    for (const args of [[], ['done'], ['perhaps', '--note', 'x'], ['done', '--note'], ['done', '--note', ''],
        ['done', '--note', 'x', '--note', 'y'], ['done', '--note', 'x', '--other', 'y']])
        assert.equal((await world.payonce([...decide, ...args])).code, 2, args.join(' '));
    await refused(world, /no such order/, 'review', 'resolve', `ord_${'0'.repeat(32)}`, 'done', '--note', 'x');
    const done = [...decide, 'done', '--note', 'their log has it', '--external-id', 'shop-77'];
    await ok(world, ...done);
    await ok(world, ...done); // the same decision again
    await refused(world, /decided already: done, by operator:/, ...decide, 'failed', '--note', 'no');
    assert.deepEqual(await list(), []);

    const { orders: [story] } = await explain(world, order);
    assert.equal(story.status, 'not_charged');
    assert.equal(names(story).filter((event) => event === 'review_resolved').length, 1);
    const event = story.events.find((each) => each.event === 'review_resolved');
    assert.match(event.actor, /^operator:\S+$/);
    assert.deepEqual([event.before, event.after], ['work lost', 'work done']);
    assert.deepEqual([event.facts.note, event.facts.external_id], ['their log has it', 'shop-77']);
    const { text } = await world.request(`/orders/${order}`);
    assert.ok(!text.includes('their log'), 'a note is the operator\'s');
    assert.match(await ok(world, 'review', 'show', order), /because +their log has it[^]*shop-77[^]*it is decided/);

    const final = async (answer) => {
        const { code, retry } = answer.json;
        assert.deepEqual([answer.status, code, retry], [410, 'done_uncharged', 'stop'], answer.text);
        assert.equal(answer.headers['payment-required'], undefined);
    };
    await final(await again());
    await final(await world.request(LOST, { ...POST, headers: { 'idempotency-key': id } }));
    const fresh = await world.sign(payer, LOST, { id, ...POST });
    await final(await world.send(LOST, fresh, POST));
    assert.equal((await world.calls()).length, 1);
    assert.equal(await world.chain.balanceOf(payer.address), FUNDS);
});

scenario('a lost write that was answered: what the answer named is shown, and only to the operator', {}, async (world) => {
    const path = '/test/write?status=503&header=X-Order-Id:SHOP-9&header=Location:/orders/9';
    const answer = await world.pay(await world.newPayer(), path, { id: paymentId(), ...POST });
    assert.equal(answer.json.code, 'in_review', answer.text);
    const order = answer.json.order_id;
    const told = [await ok(world, 'review', 'list'), await ok(world, 'review', 'show', order), await ok(world, 'explain', order)];
    for (const text of told)
        for (const part of ['answered 503', 'X-Order-Id: SHOP-9', 'Location: /orders/9'])
            assert.ok(text.toLowerCase().includes(part.toLowerCase()), `${part} is not in\n${text}`);
    assert.doesNotMatch(answer.text + (await world.request(`/orders/${order}`)).text, /SHOP-9/);
});

scenario('a lost write, found not carried out: it may run again', {}, async (world) => {
    const { order, again } = await lostWrite(world);
    await ok(world, 'review', 'resolve', order, 'failed', '--note', 'nothing there');
    assert.equal((await explain(world, order)).orders[0].status, 'not_charged');
    assert.equal((await again()).json.code, 'in_review', 'it runs once more, and is lost once more');
    const { orders: [story] } = await explain(world, order);
    assert.deepEqual(names(story).slice(-4), ['work_lost', 'review_resolved', 'accepted_again', 'work_lost']);
    assert.equal((await world.calls()).length, 2);
    assert.equal((JSON.parse(await ok(world, 'review', 'list', '--json'))).length, 1);
});

scenario('an order that was never in review is not decided', {}, async (world) => {
    const signed = await world.sign(await world.newPayer(), READ);
    const answer = await world.send(READ, signed);
    const order = answer.headers['payonce-order'];
    await refused(world, /never in review/, 'review', 'resolve', order, 'failed', '--note', 'x');
    await refused(world, /never in review/, 'review', 'show', order);
    await refused(world, /no such order/, 'review', 'show', 'ord_unknown');
    assert.equal((await world.send(READ, signed)).status, 200);
});
