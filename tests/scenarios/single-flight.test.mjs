// One question at a time, whoever asks at once and at whichever gateway: one upstream call, one transfer, the same answer for all. What
// fails is tried again by exactly one of those who wait, and what was set aside stays set aside whoever submits it.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { submitBySomebody } from '../lib/facilitator.mjs';
import { bytea, checkSum } from '../lib/ledger.mjs';
import { paymentId } from '../lib/payment.mjs';
import { freePort, inWorld, testTools } from '../lib/world.mjs';

const CROWD = 256;
const FUNDS = 10_000_000n;
const read = '/test/cacheable';
const tool = (name, path, more) => ({ ...testTools[1], name, path, ...more });

// An upstream that answers when it is told to, and as it is told.
class Upstream {
    calls = [];

    async start() {
        this.port = await freePort();
        this.server = createServer((rq, rs) => this.calls.push((status) => rs.writeHead(status).end(`answer ${status}`)));
        await new Promise((done) => this.server.listen(this.port, '127.0.0.1', done));
        return this;
    }

    close() {
        this.server.closeAllConnections();
        return new Promise((done) => this.server.close(done));
    }
}

const behind = (upstream, body) => async () => {
    await upstream.start();
    const tools = [...testTools, tool('told', '/test/told', { upstream: `http://127.0.0.1:${upstream.port}` })];
    try {
        await inWorld({ tools }, body)();
    } finally {
        await upstream.close();
    }
};

// The payments of `count` clients of one wallet that do not know of each other: each has a quote of its own.
const signed = (world, payer, path, count) => Promise.all(Array.from({ length: count }, () => world.sign(payer, path)));

const spentBy = async (world, payer) => FUNDS - await world.chain.balanceOf(payer.address);
const statuses = (answers) => [...new Set(answers.map(({ status }) => status))];
const charged = (answers) => answers.filter(({ headers }) => headers['payonce-charged'] === 'true');
const callsOf = async (world, path) => (await world.calls()).filter(({ target }) => target === path).length;
const waiting = (world, count) => world.waitFor(async () => {
    const [{ n }] = await world.sql('SELECT count(*)::int AS n FROM repeats WHERE NOT pays');
    return n === count;
}, `${count} wait`);

describe('256 equal reads over two gateways', () => {
    test('by one wallet: one call, one transfer, 256 equal answers', inWorld({}, async (world) => {
        const second = await world.addGateway('gateway2');
        const payer = await world.newPayer({ atoms: FUNDS });
        const path = `${read}?delay_ms=1500`;
        const payments = await signed(world, payer, path, CROWD);
        const answers = await Promise.all(payments.map((each, i) => world.send(path, each, { base: i % 2 ? second : world.gateway })));
        const texts = new Set(answers.map(({ text }) => text));
        assert.deepEqual(statuses(answers), [200], [...texts].join('\n'));
        assert.equal(texts.size, 1);
        assert.equal(charged(answers).length, 1);
        assert.equal(await callsOf(world, path), 1);
        assert.equal(await spentBy(world, payer), 1000n);
    }));

    test('by 16 wallets: one call and one transfer each', inWorld({}, async (world) => {
        const second = await world.addGateway('gateway2');
        const path = `${read}?delay_ms=500`;
        const payers = await world.newPayers(16, { atoms: FUNDS });
        const payments = await Promise.all(payers.map((payer) => signed(world, payer, path, CROWD / payers.length)));
        const answers = await Promise.all(payments.map((list) =>
            Promise.all(list.map((each, i) => world.send(path, each, { base: i % 2 ? second : world.gateway })))));
        assert.deepEqual(statuses(answers.flat()), [200]);
        for (const [i, own] of answers.entries()) {
            assert.equal(charged(own).length, 1);
            assert.equal(new Set(own.map(({ text }) => text)).size, 1);
            assert.equal(await spentBy(world, payers[i]), 1000n);
        }
        assert.equal(await callsOf(world, path), 16);
    }));
});

const failing = new Upstream();
test('the first fails: exactly one of those who wait, over two gateways, becomes the payer', behind(failing, async (world) => {
    const second = await world.addGateway('gateway2');
    const payer = await world.newPayer({ atoms: FUNDS });
    const path = '/test/told?n=1';
    const [leader, ...others] = await signed(world, payer, path, 17);
    const first = world.send(path, leader);
    await world.waitFor(() => failing.calls.length === 1, 'the first is at work');
    const rest = others.map((each, i) => world.send(path, each, { base: i % 2 ? second : world.gateway }));
    await waiting(world, others.length);
    failing.calls[0](503);
    assert.equal((await first).headers['payonce-charged'], 'false');
    await world.waitFor(() => failing.calls.length === 2, 'one of them asks');
    failing.calls[1](200);
    const answers = await Promise.all(rest);
    assert.deepEqual(statuses(answers), [200], answers.map(({ text }) => text).join('\n'));
    assert.equal(charged(answers).length, 1);
    assert.deepEqual([...new Set(answers.map(({ text }) => text))], ['answer 200']);
    assert.equal(failing.calls.length, 2);
    assert.equal(await spentBy(world, payer), 1000n);
}));

const dying = new Upstream();
test('the first\'s gateway is killed: one of those who wait at the other takes it over', behind(dying, async (world) => {
    const second = await world.addGateway('gateway2', { extra: { wait_ms: 60_000 } });
    const payer = await world.newPayer({ atoms: FUNDS });
    const path = '/test/told?n=2';
    const [leader, ...others] = await signed(world, payer, path, 9);
    const first = world.send(path, leader).catch(() => null);
    await world.waitFor(() => dying.calls.length === 1, 'the first is at work');
    const rest = others.map((each) => world.send(path, each, { base: second }));
    await waiting(world, others.length);
    await world.kill9('gateway');
    await first;
    await world.waitFor(() => dying.calls.length === 2, 'one of them asks', 50_000);
    dying.calls[1](200);
    const answers = await Promise.all(rest);
    assert.deepEqual(statuses(answers), [200], answers.map(({ text }) => text).join('\n'));
    assert.equal(charged(answers).length, 1);
    assert.equal(dying.calls.length, 2);
    assert.equal(await spentBy(world, payer), 1000n);
    await world.startRole('gateway');
}));

const busy = new Upstream();
test('an order that failed, asked again by its id while another is at work, waits for that one', behind(busy, async (world) => {
    const second = await world.addGateway('gateway2');
    const payer = await world.newPayer({ atoms: FUNDS });
    const [path, id] = ['/test/told?n=3', paymentId()];
    const failed = await world.sign(payer, path, { id });
    const first = world.send(path, failed);
    await world.waitFor(() => busy.calls.length === 1, 'it is at work');
    busy.calls[0](503);
    assert.equal((await first).status, 503);
    const [fresh] = await signed(world, payer, path, 1);
    const another = world.send(path, fresh);
    await world.waitFor(() => busy.calls.length === 2, 'another is at work');
    const again = world.send(path, failed, { base: second });
    await waiting(world, 1);
    busy.calls[1](200);
    const answers = await Promise.all([another, again]);
    assert.deepEqual(answers.map(({ text }) => text), ['answer 200', 'answer 200']);
    assert.equal(charged(answers).length, 1);
    assert.equal(await spentBy(world, payer), 1000n);
    assert.equal(busy.calls.length, 2);
}));

test('what was set aside and somebody else submits is owed back, once, and the receipt says so', inWorld({}, async (world) => {
    world.checkBooks = () => checkSum(world);
    const payer = await world.newPayer({ atoms: FUNDS });
    const path = `${read}?n=4`;
    const [one, two] = await signed(world, payer, path, 2);
    const first = await world.send(path, one);
    assert.equal(first.headers['payonce-charged'], 'true', first.text);
    await world.waitFor(async () => (await world.sql('SELECT 1 FROM orders WHERE delivered_at IS NOT NULL')).length === 1, 'it is delivered');
    const free = await world.send(path, two);
    assert.equal(free.headers['payonce-charged'], 'false', free.text);
    const { transactionHash } = await submitBySomebody(world, two.payload);
    const receipt = async () => (await world.request(new URL(first.headers['payonce-receipt']).pathname)).json;
    await world.waitFor(async () => (await receipt()).refunds?.length > 0, 'the receipt tells of it');
    const { refunds, free_repeats, payment } = await receipt();
    assert.deepEqual(refunds.map(({ cause, state, amount }) => [cause, state, amount]), [['duplicate', 'owed', '1000']]);
    assert.equal(free_repeats.count, 1);
    assert.notEqual(payment.transaction, transactionHash);
    const debts = await world.sql(`SELECT encode(tx, 'hex') AS tx, encode(payer, 'hex') AS payer FROM debts`);
    assert.deepEqual(debts, [{ tx: transactionHash.slice(2), payer: payer.address.slice(2).toLowerCase() }]);
    // the answer stays bought: by its own payment, and for the next who asks
    assert.equal((await world.send(path, one)).text, first.text);
    const [three] = await signed(world, payer, path, 1);
    const third = await world.send(path, three);
    assert.deepEqual([third.status, third.headers['payonce-charged'], third.text], [200, 'false', first.text]);
    assert.equal((await world.sql('SELECT 1 FROM debts')).length, 1);
    assert.equal(await spentBy(world, payer), 2000n);
}));

test('what waits and somebody else submits pays; the first is then owed back', inWorld({ blockTime: 0 }, async (world) => {
    world.checkBooks = () => checkSum(world);
    const payer = await world.newPayer({ atoms: FUNDS });
    const path = `${read}?n=5`;
    const [one, two] = await signed(world, payer, path, 2);
    const first = world.send(path, one);
    await world.waitFor(async () => (await world.sql(`SELECT 1 FROM authorizations WHERE state = 'sent'`)).length === 1, 'it is sent');
    const second = world.send(path, two);
    await waiting(world, 1);
    const mining = setInterval(() => world.chain.mine().catch(() => {}), 300);
    try {
        await submitBySomebody(world, two.payload);
        const answers = await Promise.all([first, second]);
        assert.deepEqual(statuses(answers), [200]);
        await world.waitFor(async () => (await world.sql('SELECT 1 FROM debts')).length === 1, 'one of the two is owed back');
    } finally {
        clearInterval(mining);
    }
    const [{ cause, receipt }] = await world.sql(`SELECT d.cause, encode(o.receipt, 'hex') AS receipt FROM debts d JOIN orders o ON o.id = d.order_id`);
    assert.equal(cause, 'duplicate');
    assert.equal((await world.request(`/receipts/rcp_${receipt}`)).json.refunds.length, 1);
    assert.equal(await spentBy(world, payer), 2000n);
    assert.equal((await world.sql(`SELECT 1 FROM orders WHERE payer = ${bytea(payer.address)}`)).length, 1);
}));
