// A repeated query is not a second sale: the same question of the same wallet is answered again free, for a while, and by whom it must
// not be it never is.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as fetch2 from '@x402/fetch';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import * as fetch1 from 'x402-fetch';
import { bytea } from '../lib/ledger.mjs';
import { decode, paymentId } from '../lib/payment.mjs';
import { endWorld, startWorld, testTools } from '../lib/world.mjs';

const read = '/test/cacheable';
const tool = (name, path, more) => ({ ...testTools[1], name, path, ...more });
const post = (name, path, more) => tool(name, path, { method: 'POST', ...more });
const tools = [
    ...testTools,
    post('post', '/test/post'),
    post('volatile', '/test/volatile', { volatile: ['ts', '/meta/id'] }),
    tool('vary', '/test/vary', { vary: ['accept-language'] }),
    tool('few', '/test/few', { repeat_max: 3 }),
    tool('small', '/test/small', { repeat_max_answer: 500 }),
    tool('short', '/test/short', { repeat_window_s: 4 }),
];

let counter = 0;
const fresh = (path = read) => `${path}?n=${++counter}`;
const spentBy = async (world, payer) => 1_000_000n - await world.chain.balanceOf(payer.address);
const callsOf = async (world, path) =>
    (await world.calls()).filter(({ target }) => decodeURIComponent(target) === decodeURIComponent(path)).length;
const metric = async (world, name) => {
    const { text } = await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` });
    return Number(text.match(new RegExp(`^${name.replace(/[{}]/g, '\\$&')} ([0-9]+)$`, 'm'))?.[1] ?? NaN);
};

// Delivered is noted a moment after the last byte; before that an identical call is taken for a lost reply's.
const untilDelivered = (world, payer) => world.waitFor(async () => {
    const [{ n }] = await world.sql(`SELECT count(*)::int AS n FROM orders WHERE payer = ${bytea(payer.address)} AND delivered_at IS NULL`);
    return n === 0;
}, 'all is delivered');

// The answer's headers, and beside them what was signed.
async function pay(world, payer, path, options) {
    const signed = await world.sign(payer, path, options);
    return Object.assign(await world.send(path, signed, options), { signed });
}

async function paid(world, payer, path, options) {
    const answer = await pay(world, payer, path, options);
    assert.equal(answer.status, options?.status ?? 200, answer.text);
    assert.equal(answer.headers['payonce-charged'], 'true', answer.text);
    await untilDelivered(world, payer);
    return answer;
}

async function isFree(world, payer, path, first, options) {
    const answer = await pay(world, payer, path, options);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers['payonce-charged'], 'false');
    assert.equal(answer.text, first.text);
    assert.equal(answer.headers['payonce-receipt'], first.headers['payonce-receipt']);
    assert.equal(answer.headers['payonce-receipt-id'], first.headers['payonce-receipt'].split('/').at(-1));
    assert.match(answer.headers.age, /^[0-9]+$/);
    assert.ok(Number(answer.headers.age) <= 120, answer.headers.age);
    const header = options?.version === 1 ? 'x-payment-response' : 'payment-response';
    const [original, repeated] = [first, answer].map(({ headers }) =>
        decode(headers['payment-response'] ?? headers['x-payment-response']));
    assert.ok(answer.headers[header]);
    assert.equal(repeated.success, true);
    assert.equal(repeated.transaction, original.transaction);
    return answer;
}

const releasedOf = (world, payer) => world.sql(`SELECT a.state FROM authorizations a JOIN repeats r ON r.authorization_id = a.id
    WHERE a.payer = ${bytea(payer.address)}`);

describe('free repeats', () => {
    let world, second;
    before(async () => {
        world = await startWorld({ tools });
        second = await world.addGateway('gateway2', { extra: { public_url: world.gateway } });
        await world.waitFor(async () => await metric(world, 'payonce_database_figures') === 1, 'the figures are read');
    });
    after(() => world && endWorld(world));

    test('the same question again is free, at either gateway, over either version, with or without an id', async () => {
        const [payer, path] = [await world.newPayer(), fresh()];
        const first = await paid(world, payer, path);
        const served = await metric(world, 'payonce_free_repeats_total');
        const [units] = [await metric(world, 'payonce_not_charged_units_total{network="eip155:84532",token="USDC"}')];
        await isFree(world, payer, path, first);
        await isFree(world, payer, path, first, { id: paymentId() });
        await isFree(world, payer, path, first, { version: 1 });
        await isFree(world, payer, path, first, { base: second });
        assert.equal(await spentBy(world, payer), 1000n);
        assert.equal(await callsOf(world, path), 1);
        assert.equal(await metric(world, 'payonce_free_repeats_total') - served, 3);
        assert.equal(await metric(world, 'payonce_not_charged_units_total{network="eip155:84532",token="USDC"}') - (units || 0), 3000);
        assert.deepEqual(await releasedOf(world, payer), Array(4).fill({ state: 'released' }));
        const receipt = (await world.request(new URL(first.headers['payonce-receipt']).pathname)).json;
        assert.equal(receipt.free_repeats.count, 4);
        assert.equal(receipt.free_repeats.times.length, 4);
    });

    test('a free repeat\'s own payment, sent again, is a replay of its answer; its id names the original', async () => {
        const [payer, path, id] = [await world.newPayer(), fresh(), paymentId()];
        const first = await paid(world, payer, `${path}&b=2&a=1`);
        const free = await isFree(world, payer, `${path}&a=1&b=2`, first, { id });
        const again = await world.send(`${path}&a=1&b=2`, free.signed);
        assert.equal(again.status, 200, again.text);
        assert.equal(again.text, first.text);
        assert.equal(again.headers['payonce-replayed'], 'true');
        assert.equal((await world.request(`/payments/${id}`)).json.order_id, first.headers['payonce-order']);
        const other = await pay(world, payer, `${path}&a=1&b=3`, { id });
        assert.equal(other.status, 409, other.text);
        assert.equal(await spentBy(world, payer), 1000n);
    });

    test('no RPC call is made for a free repeat', async () => {
        const [payer, path] = [await world.newPayer(), fresh()];
        const first = await paid(world, payer, path);
        const calls = async () => (await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` })).text
            .match(/payonce_rpc_calls_total\{[^}]*kind="call"\} [0-9]+/g).join();
        const before = await calls();
        for (let i = 0; i < 5; i++)
            await isFree(world, payer, path, first);
        assert.equal(await calls(), before);
    });

    test('query order and percent-encoding do not make another question', async () => {
        const [payer, n] = [await world.newPayer(), ++counter];
        const first = await paid(world, payer, `${read}?b=%7e&a=1&n=${n}`);
        await isFree(world, payer, `${read}?n=${n}&a=1&b=~`, first);
        await isFree(world, payer, `${read}?a=%31&n=${n}&b=%7E`, first);
    });

    for (const [what, one, other] of [
        ['another argument', (n) => `${read}?n=${n}&q=1`, (n) => `${read}?n=${n}&q=2`],
        ['1.0 instead of 1', (n) => `${read}?n=${n}&q=1`, (n) => `${read}?n=${n}&q=1.0`],
        ['an empty value', (n) => `${read}?n=${n}&q`, (n) => `${read}?n=${n}&q=`],
        ['equal names in another order', (n) => `${read}?n=${n}&q=1&q=2`, (n) => `${read}?n=${n}&q=2&q=1`],
        ['another tool', (n) => `${read}?n=${n}`, (n) => `/test/small?n=${n}`],
    ])
        test(`${what} is another question`, async () => {
            const [payer, n] = [await world.newPayer(), ++counter];
            await paid(world, payer, one(n));
            await paid(world, payer, other(n));
            assert.equal(await spentBy(world, payer), 2000n);
        });

    test('another wallet pays for itself', async () => {
        const path = fresh();
        for (const payer of await world.newPayers(2))
            await paid(world, payer, path);
    });

    test('JSON bodies: key order, blanks and escapes are made one, numbers stay as written', async () => {
        const payer = await world.newPayer();
        const path = fresh('/test/post');
        const json = (body) => ({ method: 'POST', body, headers: { 'content-type': 'application/json' } });
        const first = await paid(world, payer, path, json('{"a":1,"b":{"c":"é","d":[1,2]}}'));
        await isFree(world, payer, path, first, json('{ "b": {"d":[1, 2],"c":"\\u00e9"}, "a": 1 }'));
        await paid(world, payer, path, json('{"a":1.0,"b":{"c":"é","d":[1,2]}}'));
        await paid(world, payer, path, json('{"a":1,"b":{"c":"é","d":[2,1]}}'));
        await paid(world, payer, path, { ...json('{"a":1,"b":{"c":"é","d":[1,2]}}'), headers: { 'content-type': 'text/plain' } });
    });

    test('what is marked volatile does not count', async () => {
        const payer = await world.newPayer();
        const path = fresh('/test/volatile');
        const json = (body) => ({ method: 'POST', body, headers: { 'content-type': 'application/json' } });
        const first = await paid(world, payer, `${path}&ts=1`, json('{"q":1,"meta":{"id":1,"x":1}}'));
        await isFree(world, payer, `${path}&ts=2`, first, json('{"q":1,"meta":{"id":2,"x":1}}'));
        await isFree(world, payer, path, first, json('{"q":1,"meta":{"x":1}}'));
        await paid(world, payer, path, json('{"q":1,"meta":{"x":2}}'));
    });

    test('headers named in vary make another question, others do not', async () => {
        const [payer, path] = [await world.newPayer(), fresh('/test/vary')];
        const first = await paid(world, payer, path, { headers: { 'accept-language': 'de', 'x-any': '1' } });
        await isFree(world, payer, path, first, { headers: { 'accept-language': 'de', 'x-any': '2' } });
        await paid(world, payer, path, { headers: { 'accept-language': 'fr' } });
    });

    test('who asks the upstream by credentials of his own is given no answer of others', async () => {
        const [payer, path] = [await world.newPayer(), fresh()];
        for (const headers of [{}, { authorization: 'Bearer one' }, { authorization: 'Bearer two' }, { cookie: 'session=one' }]) {
            const first = await paid(world, payer, path, { headers });
            await isFree(world, payer, path, first, { headers });
        }
        assert.equal(await callsOf(world, path), 4);
    });

    // Without an id a second signature is taken for a lost reply's, and finds the order that is undecided.
    test('nor is he while the first is at work, of a tool that is not cacheable', async () => {
        const [payer, path] = [await world.newPayer(), fresh('/test/read')];
        const slow = `${path}&delay_ms=1500`;
        const as = (authorization) => pay(world, payer, slow, { headers: { ...(authorization && { authorization }) } });
        const first = as('Bearer one');
        await world.waitFor(async () => await callsOf(world, slow) === 1, 'the first is at work');
        const others = await Promise.all([as('Bearer two'), as(), as('Bearer one')]);
        const [one, two, none, again] = [await first, ...others].map(({ status, headers, text }) => {
            assert.equal(status, 200, text);
            return headers['payonce-order'];
        });
        assert.equal(new Set([one, two, none]).size, 3);
        assert.equal(again, one);
        assert.equal(await callsOf(world, slow), 3);
    });

    // Its payment stands in the calldata for everybody to read; a v1 payment without an id has nothing else to be known by.
    test('the chain\'s readers are not given what depends on its buyer\'s credentials', async () => {
        const [payer, path] = [await world.newPayer(), fresh()];
        const options = { version: 1, headers: { authorization: 'Bearer one' } };
        const first = await paid(world, payer, path, options);
        const own = await world.send(path, first.signed, options);
        assert.deepEqual([own.status, own.text], [200, first.text]);
        const stranger = await world.send(path, first.signed, { version: 1 });
        assert.deepEqual([stranger.status, stranger.json.code], [410, 'answer_not_proven'], stranger.text);
    });

    test('a media type\'s parameter makes another question, its charset UTF-8 does not', async () => {
        const [payer, path] = [await world.newPayer(), fresh('/test/post')];
        const as = (type) => ({ method: 'POST', body: '{"q":"+AOk-"}', headers: { 'content-type': type } });
        const first = await paid(world, payer, path, as('application/json'));
        await isFree(world, payer, path, first, as('application/json; charset=utf-8'));
        await paid(world, payer, path, as('application/json; charset=utf-7'));
        await paid(world, payer, path, as('application/json; odata.metadata=full'));
    });

    for (const [what, query, status] of [
        ['Set-Cookie', 'header=Set-Cookie:a=b'],
        ['Cache-Control: no-store', 'header=Cache-Control:max-age=5,%20no-store'],
        ['Vary on what the tool does not name', 'header=Vary:Accept'],
        ['an encoding', 'header=Content-Encoding:x-any'],
        ['a part of it', 'status=206', 206],
    ])
        test(`an answer with ${what} is not given again`, async () => {
            const [payer, path] = [await world.newPayer(), `${fresh()}&${query}`];
            await paid(world, payer, path, { status });
            await paid(world, payer, path, { status });
            assert.equal(await callsOf(world, path), 2);
        });

    test('an answer over the size limit is not given again', async () => {
        const [payer, path] = [await world.newPayer(), `${fresh('/test/small')}&size=501`];
        await paid(world, payer, path);
        await paid(world, payer, path);
    });

    test('a failed answer is not charged and not given again', async () => {
        const [payer, path] = [await world.newPayer(), `${fresh()}&status=404`];
        for (let i = 1; i <= 2; i++) {
            const answer = await pay(world, payer, path);
            assert.equal(answer.status, 404);
            assert.equal(answer.headers['payonce-charged'], 'false');
            assert.equal(answer.headers.age, undefined);
            assert.equal(await callsOf(world, path), i);
        }
        assert.equal(await spentBy(world, payer), 0n);
    });

    test('tools that are not marked, and writes, are paid for each time', async () => {
        const payer = await world.newPayer();
        for (const options of [{}, { method: 'POST', body: '{}' }]) {
            const path = fresh(options.method ? '/test/write' : '/test/read');
            await paid(world, payer, path, options);
            await paid(world, payer, path, options);
        }
    });

    test('past the window the question is paid for again, by the chain\'s clock', async () => {
        const [payer, path] = [await world.newPayer(), fresh('/test/short')];
        const first = await paid(world, payer, path);
        await isFree(world, payer, path, first);
        const { block } = (await world.request(new URL(first.headers['payonce-receipt']).pathname)).json.payment;
        const { timestamp } = await world.chain.rpc.call('eth_getBlockByNumber', `0x${block.toString(16)}`, false);
        await world.waitFor(async () => (await world.sql('SELECT head_time FROM networks'))[0].head_time >= Number(timestamp) + 6,
            'the window is over');
        await paid(world, payer, path);
        assert.equal(await spentBy(world, payer), 2000n);
    });

    test('over the cap: 429 with Retry-After, never a charge', async () => {
        const [payer, path] = [await world.newPayer(), fresh('/test/few')];
        const first = await paid(world, payer, path);
        const answers = await Promise.all(Array.from({ length: 8 }, () => pay(world, payer, path)));
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 429, 429, 429, 429, 429]);
        for (const answer of answers.filter(({ status }) => status === 429)) {
            assert.equal(answer.json.code, 'repeat_limit');
            assert.ok(Number(answer.headers['retry-after']) > 60 && Number(answer.headers['retry-after']) <= 120, answer.headers['retry-after']);
            assert.equal(answer.headers['payonce-charged'], 'false');
        }
        // refused is watched as well, as many as were answered; whoever sends one of them again is refused again
        assert.deepEqual(await releasedOf(world, payer), Array(6).fill({ state: 'released' }));
        const { signed } = answers.find(({ status }) => status === 429);
        assert.equal((await world.send(path, signed)).status, 429);
        assert.equal(await spentBy(world, payer), 1000n);
        assert.equal((await world.request(new URL(first.headers['payonce-receipt']).pathname)).json.free_repeats.count, 3);
    });

    test('its authorization is released and not looked at before its deadline', async () => {
        const [payer, path] = [await world.newPayer(), fresh()];
        const first = await paid(world, payer, path);
        const free = await isFree(world, payer, path, first);
        const [row] = await world.sql(`SELECT a.state, a.next_look >= to_timestamp(a.valid_before) AS patient
            FROM authorizations a WHERE a.nonce = ${bytea(free.signed.payload.authorization.nonce)}`);
        assert.deepEqual(row, { state: 'released', patient: true });
    });

    for (const [name, buy] of Object.entries({
        '@x402/fetch': (account) => fetch2.wrapFetchWithPayment(fetch, registerExactEvmScheme(new fetch2.x402Client(), { signer: account })),
        'x402-fetch': (account) => fetch1.wrapFetchWithPayment(fetch, account),
    }))
        test(`${name}, unmodified: the same read twice, the balance moves once`, async () => {
            const payer = await world.newPayer();
            const url = `${world.gateway}${fresh()}`;
            const bodies = [];
            for (let i = 0; i < 2; i++) {
                const answer = await buy(payer.account)(url);
                assert.equal(answer.status, 200);
                bodies.push(await answer.text());
                await untilDelivered(world, payer);
            }
            assert.equal(bodies[1], bodies[0]);
            assert.equal(await spentBy(world, payer), 1000n);
        });

    test('after a restart, what was paid before is still free', async () => {
        const [payer, path] = [await world.newPayer(), fresh()];
        const first = await paid(world, payer, path);
        await world.restart('gateway');
        await isFree(world, payer, path, first);
    });
});
