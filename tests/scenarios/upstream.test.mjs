// Between the gateway and the seller's API: what was asked arrives as it was sent, what was answered comes back as it
// was said, and whatever goes wrong there is not charged: a read may run again, a write whose end nobody knows does
// not.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { authorize, decode, paymentId, paymentV2 } from '../lib/payment.mjs';
import { endWorld, freePort, startWorld, testTools } from '../lib/world.mjs';

const ATOMS = 1_000_000n;
const PRICE = 1_000n;
const LIMIT = 1_000;
const [readTool, , writeTool] = testTools;

// An upstream of our own, which does what the test at hand has it do.
class Seller {
    calls = [];
    act = (request, response) => response.end('ok');

    async open(port) {
        this.server = createServer(async (request, response) => {
            const chunks = [];
            for await (const chunk of request)
                chunks.push(chunk);
            this.calls.push({ method: request.method, target: request.url, headers: request.headers });
            this.act(request, response, Buffer.concat(chunks));
        });
        await new Promise((done) => this.server.listen(port, '127.0.0.1', done));
    }

    async close() {
        this.server?.closeAllConnections();
        await new Promise((done) => this.server ? this.server.close(done) : done());
        this.server = null;
    }
}

describe('the upstream', { concurrency: false }, () => {
    const seller = new Seller();
    let world, port, dying;

    before(async () => {
        port = await freePort();
        const ours = { upstream: `http://127.0.0.1:${port}` };
        world = await startWorld({ beforeConfig: (w) => {
            const read = (name, more) => ({ ...readTool, name, path: `/test/${name}`, ...more });
            const write = (name, more) => ({ ...writeTool, name: `${name} write`, path: `/test/${name}`, ...more });
            const slow = { timeout_ms: 700 };
            w.options.tools = [...w.options.tools, read('slow', slow), write('slow', slow),
                read('small', { max_answer: LIMIT }), write('small', { max_answer: LIMIT }),
                read('echo'), write('echo', { side_effect: 'read', max_body: LIMIT }),
                read('brief', { timeout_ms: 2_000, max_timeout_s: 20 }),
                read('ours', { ...ours, path: '/ours' }), write('ours', { ...ours, path: '/ours' })];
        } });
        await seller.open(port);
        const payer = await world.newPayer();
        dying = { payer, ...await buy(payer, '/test/brief?status=404') };
    });
    after(async () => {
        await seller.close();
        if (world)
            await endWorld(world);
    });

    // Resolves to { answer, signed }: the answer's headers and those that were sent are not the same.
    async function buy(payer, path, options = {}) {
        const signed = await world.sign(payer, path, options);
        return { signed, answer: await world.send(path, signed, options) };
    }

    const callsOf = async (path) => (await world.calls()).filter(({ target }) => target === path).length;
    const untouched = async (payer) => assert.equal(await world.chain.balanceOf(payer.address), ATOMS);
    const charged = async (payer) => assert.equal(await world.chain.balanceOf(payer.address), ATOMS - PRICE);

    async function orderOf(payer) {
        const [row] = await world.sql(`SELECT encode(id, 'hex') AS id FROM orders
            WHERE payer = decode('${payer.address.slice(2)}', 'hex')`);
        return (await world.request(`/orders/ord_${row.id}`)).json;
    }

    function isUncharged(answer) {
        assert.equal(answer.headers['payonce-charged'], 'false', answer.text);
        for (const name of ['payment-required', 'payment-response', 'x-payment-response', 'payonce-receipt'])
            assert.equal(answer.headers[name], undefined, name);
    }

    function isCharged(answer, status = 200) {
        assert.equal(answer.status, status, answer.text);
        assert.equal(answer.headers['payonce-charged'], 'true');
        assert.equal(decode(answer.headers['payment-response']).success, true);
    }

    async function isNotCharged(payer) {
        const order = await orderOf(payer);
        assert.equal(order.status, 'not_charged');
        assert.equal(order.final, false, 'anybody who saw the authorization can still submit it');
        assert.ok(Date.parse(order.known_by) > Date.now());
        assert.equal(order.transaction, undefined);
        await untouched(payer);
    }

    // ---- the upstream says no ----

    const refusals = {
        'an unknown code': ['/iso/countries?code=XX', {}, 404, /no such code: XX/],
        'an order that is none': ['/shop/orders', { method: 'POST', body: '{"n":1}' }, 422, /whole number/],
        'a read that is refused': ['/test/read?status=403&header=x-mine:yes', {}, 403, /"target"/],
        'a write that is refused': ['/test/write?status=409&header=x-mine:yes', { method: 'POST', body: '{}' }, 409,
            /"target"/],
    };
    for (const [name, [path, options, status, text]] of Object.entries(refusals))
        test(`${name}: passed on, not charged`, async () => {
            const payer = await world.newPayer();
            const { answer, signed } = await buy(payer, path, options);
            assert.equal(answer.status, status);
            assert.match(answer.text, text);
            assert.match(answer.headers['content-type'], /^application\/json/);
            if (path.includes('x-mine'))
                assert.equal(answer.headers['x-mine'], 'yes');
            isUncharged(answer);
            await isNotCharged(payer);

            assert.equal((await world.send(path, signed, options)).status, status, 'the same payment asks again');
            assert.equal(await callsOf(path), 2);
            await isNotCharged(payer);
        });

    test('its own 402 is not ours', async () => {
        const payer = await world.newPayer();
        const { answer } = await buy(payer, '/test/read?status=402');
        assert.equal(answer.status, 502);
        assert.equal(answer.json.code, 'upstream_paywall');
        isUncharged(answer);
        await isNotCharged(payer);
    });

    // ---- the upstream breaks ----

    const breaks = {
        'a 500': ['/test/echo?status=500', 500],
        'a 503': ['/test/echo?status=503', 503],
        'no answer in time': ['/test/slow?hang=1', 504, 'upstream_timeout'],
        'an answer cut in its body': ['/test/echo?size=5000&cut=100', 504, 'upstream_timeout'],
        'a connection that closes': ['/test/echo?reset=1', 504, 'upstream_timeout'],
        'an answer over the limit': [`/test/small?size=${LIMIT + 1}`, 502, 'upstream_too_large'],
    };
    for (const [name, [path, status, code]] of Object.entries(breaks))
        test(`a read that gets ${name}: not charged, may run again`, async () => {
            const payer = await world.newPayer();
            const { answer, signed } = await buy(payer, path);
            assert.equal(answer.status, status, answer.text);
            if (code)
                assert.equal(answer.json.code, code);
            isUncharged(answer);
            await isNotCharged(payer);
            assert.equal((await world.send(path, signed)).status, status);
            assert.equal(await callsOf(path), 2);
        });

    for (const [name, [asked]] of Object.entries(breaks))
        test(`a write that gets ${name}: in review, not charged, never repeated`, async () => {
            const path = `${asked.replace('/echo', '/write')}&w`;
            const payer = await world.newPayer();
            const id = paymentId();
            const options = { method: 'POST', body: '{"n":1}', id };
            const { answer, signed } = await buy(payer, path, options);
            const isInReview = (each) => {
                assert.equal(each.status, 409, each.text);
                assert.equal(each.json.code, 'in_review');
                assert.ok(each.json.order_id && each.json.poll);
                isUncharged(each);
            };
            isInReview(answer);
            isInReview(await world.send(path, signed, options));
            const { v2 } = await world.challenge(path, options);
            const fresh = paymentV2(v2, await authorize(payer, v2.accepts[0]), { id });
            isInReview(await world.send(path, { headers: { 'payment-signature': fresh } }, options));
            assert.equal(await callsOf(path), 1);
            assert.equal((await orderOf(payer)).status, 'in_review');
            await untouched(payer);
            assert.deepEqual(await world.sql(`SELECT state FROM authorizations WHERE state IN ('due', 'sent')
                AND payer = decode('${payer.address.slice(2)}', 'hex')`), []);
        });

    test('a write that was never reached: not charged, and runs when the same payment comes again', async () => {
        await seller.close();
        const payer = await world.newPayer();
        const options = { method: 'POST', body: '{"n":1}' };
        const { answer, signed } = await buy(payer, '/ours?unreached', options);
        assert.equal(answer.status, 502, answer.text);
        assert.equal(answer.json.code, 'upstream_unreachable');
        assert.match(answer.headers['retry-after'], /^[0-9]+$/);
        isUncharged(answer);
        await isNotCharged(payer);

        await seller.open(port);
        const again = await world.send('/ours?unreached', signed, options);
        isCharged(again);
        await charged(payer);
        assert.equal(seller.calls.filter(({ target }) => target === '/ours?unreached').length, 1);
        const replay = await world.send('/ours?unreached', signed, options);
        assert.equal(replay.status, 200);
        assert.equal(replay.headers['payonce-charged'], 'false');
        assert.equal(seller.calls.filter(({ target }) => target === '/ours?unreached').length, 1);
    });

    test('copies of a call that fails: it runs once for all of them, and again for a later one', async () => {
        let fails = true;
        seller.act = (request, response) => setTimeout(() => {
            response.statusCode = fails ? 500 : 200;
            response.end(fails ? 'sorry' : 'here');
        }, fails ? 700 : 0);
        const payer = await world.newPayer();
        const signed = await world.sign(payer, '/ours?copies');
        const answers = await Promise.all(Array.from({ length: 16 }, () => world.send('/ours?copies', signed)));
        const ran = () => seller.calls.filter(({ target }) => target === '/ours?copies').length;
        assert.equal(ran(), 1);
        const [one, ...others] = answers.sort((a, b) => a.status - b.status);
        assert.equal(one.status, 500);
        for (const other of others) {
            assert.equal(other.status, 502, other.text);
            assert.equal(other.json.code, 'work_failed');
            assert.equal(other.json.retry, 'same_payment');
        }
        await isNotCharged(payer);

        fails = false;
        const again = await world.send('/ours?copies', signed);
        isCharged(again);
        assert.equal(again.text, 'here');
        assert.equal(ran(), 2);
        await charged(payer);
    });

    // ---- every kind of answer ----

    for (const status of [201, 302, 307])
        test(`a ${status} is passed on and paid`, async () => {
            const payer = await world.newPayer();
            const path = `/test/read?status=${status}&header=location:https://elsewhere.example/x%3Fa`;
            const { answer } = await buy(payer, path);
            isCharged(answer, status);
            assert.equal(answer.headers.location, 'https://elsewhere.example/x?a');
            assert.equal(await callsOf(path), 1);
            await charged(payer);
        });

    for (const status of [204, 304])
        test(`a ${status} has no body, also on a connection that goes on`, async () => {
            const payer = await world.newPayer();
            seller.act = (request, response) => response.writeHead(status, { etag: '"e"' }).end();
            const { answer, signed } = await buy(payer, `/ours?${status}`);
            isCharged(answer, status);
            assert.equal(answer.body.length, 0);
            assert.equal(answer.headers.etag, '"e"');
            const again = await world.send(`/ours?${status}`, signed);
            assert.equal(again.status, status);
            assert.equal(again.headers['payonce-charged'], 'false');
            await charged(payer);
        });

    test('answers before the answer (100, 103) are not the answer', async () => {
        seller.act = (request, response) => {
            response.writeContinue();
            response.writeEarlyHints({ link: '</style.css>; rel=preload' });
            response.setHeader('x-last', 'yes');
            response.end('the answer');
        };
        const payer = await world.newPayer();
        const { answer } = await buy(payer, '/ours?early');
        isCharged(answer);
        assert.equal(answer.text, 'the answer');
        assert.equal(answer.headers['x-last'], 'yes');
        assert.equal(answer.headers.link, undefined);
    });

    test('bytes are bytes, both ways, and again when they are served again', async () => {
        const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
        const payer = await world.newPayer();
        const { answer, signed } = await buy(payer, '/test/read?binary=1');
        isCharged(answer);
        assert.deepEqual(answer.body, all);
        assert.deepEqual((await world.send('/test/read?binary=1', signed)).body, all);

        const options = { method: 'POST', body: all, headers: { 'content-type': 'application/octet-stream' } };
        const sent = (await buy(payer, '/test/echo', options)).answer;
        isCharged(sent);
        assert.deepEqual(Buffer.from(sent.json.body, 'base64'), all);
    });

    test('a large answer, and one of exactly the limit', async () => {
        const payer = await world.newPayer();
        const large = (await buy(payer, '/test/read?size=3000000')).answer;
        isCharged(large);
        assert.deepEqual(large.body, Buffer.alloc(3_000_000, 'x'));
        const exact = (await buy(payer, `/test/small?size=${LIMIT}`)).answer;
        isCharged(exact);
        assert.equal(exact.body.length, LIMIT);
    });

    test('HEAD, paid: its GET\'s headers and no body', async () => {
        const payer = await world.newPayer();
        const path = '/test/read?size=4321';
        const asked = await world.request(path, { method: 'HEAD' });
        const required = decode(asked.headers['payment-required']);
        const headers = { 'payment-signature': paymentV2(required, await authorize(payer, required.accepts[0])) };
        for (const isFirst of [true, false]) {
            const answer = await world.request(path, { method: 'HEAD', headers });
            assert.equal(answer.status, 200);
            assert.equal(answer.body.length, 0);
            assert.equal(answer.headers['content-length'], '4321');
            assert.equal(answer.headers['payonce-charged'], String(isFirst));
        }
        const [call] = (await world.calls()).filter(({ target }) => target === path);
        assert.equal(call.method, 'HEAD');
        await charged(payer);
    });

    // ---- what is forwarded ----

    const targets = ['?', '??', '?=', '?&&', '?a=1&a=2&A=3', '?q=%2f%2F%41%20%C3%A9%00', '?q=%zz%', '?a;b;c=1;d',
        '?a+b=c+d', '?a=b=c', '?x=../../y&z=//', '?u=http://h:1/p?q',
        "?s='(*)!~$,@:[]|^`{}\"\\<>", `?l=${'x'.repeat(3_000)}`];
    test('targets are forwarded exactly as they were sent', async () => {
        const payers = await world.newPayers(targets.length);
        await Promise.all(targets.map(async (query, i) => {
            const { answer } = await buy(payers[i], `/test/echo${query}`);
            isCharged(answer);
            assert.equal(answer.json.target, `/test/echo${query}`);
            await charged(payers[i]);
        }));
    });

    test('a body of exactly the limit, with its length and in chunks; one more is refused', async () => {
        const body = Buffer.alloc(LIMIT, 'b');
        const payer = await world.newPayer();
        for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
            // a request of its own: the same wallet's same read at once would be taken for a repeat
            const path = `/test/echo?as=${headers['transfer-encoding'] ?? 'length'}`;
            const { answer } = await buy(payer, path, { method: 'POST', body, headers });
            isCharged(answer);
            assert.deepEqual(Buffer.from(answer.json.body, 'base64'), body);
            const calls = (await world.calls()).length;
            const signed = await world.sign(payer, '/test/echo', { method: 'POST', body });
            const longer = { method: 'POST', body: Buffer.alloc(LIMIT + 1, 'b'), headers };
            const refused = await world.send('/test/echo', signed, longer).catch(() => null);
            assert.ok(refused === null || refused.status === 413, refused?.text);
            assert.equal((await world.calls()).length, calls);
        }
    });

    // Pairs of [name in lower case, value], as they arrived.
    const pairs = (raw) => raw.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1]]] : []));
    const valuesOf = (list, name) => list.filter(([each]) => each === name).map(([, value]) => value);

    const trace = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;
    test('headers on their way there', async () => {
        const payer = await world.newPayer();
        const id = paymentId();
        const headers = {
            'x-payer': `0x${'66'.repeat(20)}`, 'idempotency-key': id, 'payonce-receipt': 'mine',
            'sign-in-with-x': 'e30=', 'x-payment-response': 'e30=', 'x-forwarded-for': '6.6.6.6',
            forwarded: 'for=6.6.6.6', 'x-real-ip': '6.6.6.6', 'x-request-id': 'mine',
            connection: 'keep-alive, x-hop', 'x-hop': '1', te: 'trailers', 'keep-alive': 'timeout=9',
            'proxy-authorization': 'Basic eDp5', traceparent: trace, tracestate: 'a=b', 'accept-language': 'fr;q=0.5',
            'x-twice': ['1', '2'], cookie: 'a=b; c="d"', authorization: 'Bearer x.y', 'x-odd': 'é',
        };
        const { answer } = await buy(payer, '/test/echo?there', { headers });
        isCharged(answer);
        const there = pairs(answer.json.headers);
        assert.deepEqual(valuesOf(there, 'idempotency-key'), [answer.headers['payonce-order']]);
        assert.deepEqual(valuesOf(there, 'x-payer').map((each) => each.toLowerCase()), [payer.address.toLowerCase()]);
        for (const name of ['payment-signature', 'x-payment', 'x-payment-response', 'sign-in-with-x', 'payonce-receipt',
            'x-hop', 'te', 'keep-alive', 'proxy-authorization', 'forwarded', 'x-real-ip', 'transfer-encoding'])
            assert.deepEqual(valuesOf(there, name), [], name);
        assert.ok(!valuesOf(there, 'x-forwarded-for').join().includes('6.6.6.6'), 'nobody trusts this client');
        assert.notDeepEqual(valuesOf(there, 'x-request-id'), ['mine']);
        assert.deepEqual(valuesOf(there, 'traceparent'), [trace]);
        for (const name of ['tracestate', 'accept-language', 'cookie', 'authorization'])
            assert.deepEqual(valuesOf(there, name), [headers[name]], name);
        assert.deepEqual(valuesOf(there, 'x-twice').join(', '), '1, 2');
        assert.equal(valuesOf(there, 'host').length, 1);
    });

    test('a traceparent that is none is made anew', async () => {
        const payer = await world.newPayer();
        for (const headers of [{}, { traceparent: `00-${'0'.repeat(32)}-${'cd'.repeat(8)}-01`, tracestate: 'a=b' }]) {
            const { answer } = await buy(payer, `/test/echo?trace=${Object.keys(headers).length}`, { headers });
            const there = pairs(answer.json.headers);
            assert.match(valuesOf(there, 'traceparent').join(), /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/);
            assert.doesNotMatch(valuesOf(there, 'traceparent').join(), /-0{32}-/);
            assert.deepEqual(valuesOf(there, 'tracestate'), []);
        }
    });

    test('headers on their way back', async () => {
        seller.act = (request, response) => {
            response.writeHead(200, {
                'content-type': 'text/plain; charset=latin1', 'PAYMENT-RESPONSE': 'c3Bvb2Y=',
                'X-PAYMENT-RESPONSE': 'c3Bvb2Y=', 'PAYMENT-REQUIRED': 'c3Bvb2Y=', 'Payonce-Receipt': 'spoof',
                'Payonce-Charged': 'false', 'Payonce-Order': 'spoof',
                'access-control-allow-origin': 'https://evil.example', connection: 'x-hop', 'x-hop': '1',
                'keep-alive': 'timeout=1',
                'proxy-authenticate': 'Basic', 'set-cookie': ['a=1; HttpOnly', 'b=2; Path=/'], 'content-language': 'fr',
                etag: 'W/"x"', vary: 'Accept-Language', 'cache-control': 'public, max-age=1000',
                'x-request-id': 'spoof', link: '</next>; rel=next', 'retry-after': '7',
            });
            response.end('back');
        };
        const payer = await world.newPayer();
        const { answer, signed } = await buy(payer, '/ours?back');
        const isRight = ({ headers, text }, isFirst) => {
            assert.equal(text, 'back');
            assert.equal(headers['payonce-charged'], String(isFirst));
            assert.match(headers['payonce-order'], /^ord_[0-9a-f]{32}$/);
            assert.match(headers['payonce-receipt'], /\/receipts\/rcp_[0-9a-f]{32}$/);
            assert.equal(decode(headers['payment-response']).success, true);
            for (const name of ['x-payment-response', 'payment-required', 'x-hop', 'proxy-authenticate'])
                assert.equal(headers[name], undefined, name);
            assert.equal(headers['access-control-allow-origin'], '*');
            assert.notEqual(headers['x-request-id'], 'spoof');
            assert.deepEqual(headers['set-cookie'], ['a=1; HttpOnly', 'b=2; Path=/']);
            assert.equal(headers['content-type'], 'text/plain; charset=latin1');
            assert.equal(headers['content-language'], 'fr');
            assert.equal(headers.etag, 'W/"x"');
            assert.equal(headers.link, '</next>; rel=next');
            assert.match(headers.vary, /Accept-Language/);
            assert.match(headers.vary, /PAYMENT-SIGNATURE/);
            assert.equal(headers['cache-control'], 'private, no-store');
        };
        isRight(answer, true);
        isRight(await world.send('/ours?back', signed), false);
    });

    // ---- what becomes of an authorization that was let go ----

    test('not charged becomes final when the authorization is proven dead', async () => {
        assert.equal(dying.answer.status, 404);
        const order = await world.waitFor(async () => {
            const now = await orderOf(dying.payer);
            assert.equal(now.status, 'not_charged');
            if (now.money !== 'expired')
                assert.ok(now.final === false && now.known_by, JSON.stringify(now));
            return now.money === 'expired' && now;
        }, 'it is dead');
        assert.equal(order.known_by, undefined);
        assert.notEqual(order.final, false);
        await untouched(dying.payer);
        const again = await world.send('/test/brief?status=404', dying.signed);
        assert.equal(again.status, 402, 'paying anew is right now');
    });
});
