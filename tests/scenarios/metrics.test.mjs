// Every answered request on a priced route is counted once, under what it ended as.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paymentId } from '../lib/payment.mjs';
import { inWorld } from '../lib/world.mjs';

const READ = '/test/read';
const WRITE = '/test/write';
const POST = { method: 'POST', body: '{"n":1}' };

async function outcomes(world) {
    const { text } = await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` });
    const lines = [...text.matchAll(/^payonce_requests_total\{outcome="(\w+)"\} (\d+)$/mg)];
    return new Map(lines.map(([, name, count]) => [name, Number(count)]));
}

test('one request of each outcome is one count, of that outcome alone', { timeout: 300_000 }, inWorld({
    extra: { wait_ms: 3_000 },
}, async (world) => {
    const seen = new Set();

    // What `act` resolves to is `outcome` in the counters, once, and nothing else is.
    async function counts(outcome, act, status, code) {
        const before = await outcomes(world);
        const answer = await act();
        assert.deepEqual([answer.status, code && answer.json.code], [status, code], answer.text);
        const changed = [...await outcomes(world)].filter(([name, count]) => count !== before.get(name))
            .map(([name, count]) => [name, count - before.get(name)]);
        assert.deepEqual(changed, [[outcome, 1]], `${status} ${code}`);
        seen.add(outcome);
        return answer;
    }
    const keyed = (path, id, options = {}) => world.request(path, { ...options, headers: { 'idempotency-key': id } });
    const payer = await world.newPayer();
    const sign = (path, options) => world.sign(payer, path, options);
    const sent = (path, signed, options) => () => world.send(path, signed, options);

    // ---- asked, bought, asked again ----

    await counts('challenged', () => world.request(READ), 402, 'payment_required');
    const empty = { headers: { 'payment-signature': '' } };
    await counts('malformed', () => world.request(READ, empty), 400, 'payment_encoding');
    await counts('malformed', () => keyed(READ, 'short'), 400, 'payment_id_form');

    const id = paymentId();
    const bought = await sign(READ, { id });
    await counts('paid', sent(READ, bought), 200);
    await counts('replayed', sent(READ, bought), 200);
    await counts('already_paid', () => keyed(READ, id), 409, 'already_paid');
    await counts('conflict', () => keyed(`${READ}?x`, id), 409, 'payment_conflict');
    await counts('conflict', sent(`${READ}?x`, bought), 409, 'payment_conflict');

    const v1 = await sign(`${READ}?v1`, { version: 1 });
    await counts('paid', sent(`${READ}?v1`, v1), 200);
    await counts('gone', sent(`${READ}?v1`, v1), 410, 'answer_not_proven');

    const asked = '/iso/countries?code=FR';
    const [once, again] = [await sign(asked), await sign(asked)];
    await counts('paid', sent(asked, once), 200);
    await counts('free_repeat', sent(asked, again), 200);

    const poor = await world.newPayer({ atoms: 1n });
    const unfunded = await world.sign(poor, READ);
    await counts('refused', sent(READ, unfunded), 402, 'payment_refused');

    // ---- work that failed, and work that nobody knows of ----

    for (const [how, status, code] of [['status=404', 404], ['status=500', 500], ['reset=1', 504, 'upstream_timeout'],
        ['status=402', 502, 'upstream_paywall']]) {
        const signed = await sign(`${READ}?${how}`);
        await counts('not_charged', sent(`${READ}?${how}`, signed), status, code);
    }
    const lost = paymentId();
    const dark = await sign(`${WRITE}?reset=1`, { id: lost, ...POST });
    await counts('in_review', sent(`${WRITE}?reset=1`, dark, POST), 409, 'in_review');
    await counts('in_review', sent(`${WRITE}?reset=1`, dark, POST), 409, 'in_review');
    await counts('in_review', () => keyed(`${WRITE}?reset=1`, lost, POST), 409, 'in_review');

    // ---- money that is on its way ----

    await world.stop('settler');
    const flying = paymentId();
    const unsettled = await sign(`${WRITE}?fly`, { id: flying, ...POST });
    await counts('in_flight', sent(`${WRITE}?fly`, unsettled, POST), 409, 'payment_in_flight');
    await counts('in_flight', sent(`${WRITE}?fly`, unsettled, POST), 409, 'payment_in_flight');
    await counts('in_flight', () => keyed(`${WRITE}?fly`, flying, POST), 409, 'payment_in_flight');
    const anonymous = await sign(`${WRITE}?same`, POST);
    await counts('in_flight', sent(`${WRITE}?same`, anonymous, POST), 409, 'payment_in_flight');
    const twin = await sign(`${WRITE}?same`, POST);
    await counts('similar', sent(`${WRITE}?same`, twin, POST), 409, 'similar_order');
    await world.restart('settler');
    const landed = async () => (await world.request(`/payments/${flying}`)).json.status === 'paid';
    await world.waitFor(landed, 'it is paid');
    await counts('replayed', sent(`${WRITE}?fly`, unsettled, POST), 200);

    // ---- a released authorization that lands after all: paid for work that failed ----

    const failed = paymentId();
    const released = await sign(`${READ}?status=500&owed`, { id: failed });
    await counts('not_charged', sent(`${READ}?status=500&owed`, released), 500);
    const a = released.payload.authorization;
    await world.chain.giveGas(poor.address);
    await world.stop('settler');
    await world.chain.write(poor.address, 'transferWithAuthorization',
        [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, released.payload.signature]);
    await counts('in_flight', sent(`${READ}?status=500&owed`, released), 409, 'payment_in_flight');
    await world.startRole('settler');
    await world.waitFor(async () => (await world.sql('SELECT state FROM authorizations'))
        .filter(({ state }) => state === 'settled').length === 6, 'it is booked');
    await counts('owed', sent(`${READ}?status=500&owed`, released), 502, 'work_failed_paid');

    // ---- a chain that cannot be read ----

    const blind = await sign(`${READ}?blind`);
    process.kill(world.chain.pid, 'SIGSTOP');
    try {
        await counts('unavailable', sent(`${READ}?blind`, blind), 503, 'chain_unavailable');
    } finally {
        process.kill(world.chain.pid, 'SIGCONT');
    }
    await counts('paid', sent(`${READ}?blind`, blind), 200);

    const all = [...(await outcomes(world)).keys()];
    assert.deepEqual(all.filter((name) => !seen.has(name)), [], 'an outcome that this test does not bring about');
}));

test('copies of a call, and a client that left: each answer counts', { timeout: 300_000 }, inWorld({}, async (world) => {
    const payer = await world.newPayer();
    const path = `${READ}?delay_ms=300&copies`;
    const signed = await world.sign(payer, path);
    const before = await outcomes(world);
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.send(path, signed)));
    assert.ok(answers.every(({ status }) => status === 200));
    const after = await outcomes(world);
    assert.equal(after.get('paid') - before.get('paid'), 1);
    assert.equal(after.get('replayed') - before.get('replayed'), 19);

    const gone = await world.sign(payer, `${path}2`);
    const left = new AbortController();
    const broken = world.request(`${path}2`, { headers: gone.headers, signal: left.signal });
    await world.waitFor(async () => (await world.calls()).some(({ target }) => target === `${path}2`), 'it is at work');
    left.abort();
    await assert.rejects(broken);
    const paid = async () => (await outcomes(world)).get('paid');
    await world.waitFor(async () => await paid() === after.get('paid') + 1, 'it is counted too');
}));
