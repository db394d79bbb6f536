// What browsers, caches, proxies and official decoders read of us, and connections that behave oddly and are in order.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import * as fetch2 from '@x402/fetch';
import * as fetch1 from 'x402-fetch';
import { decode, paymentV2 } from '../lib/payment.mjs';
import { endWorld, freePort, startWorld, testTools } from '../lib/world.mjs';

const PATH = '/test/read';
const ORIGIN = { origin: 'https://app.example' };
const SPOKEN = '¥ "naïve" café 🫖 <b>';
const nobody = (prefix) => `/${prefix === 'ord' ? 'orders' : 'receipts'}/${prefix}_${'0'.repeat(32)}`;

const words = (text) => (text ?? '').toLowerCase().split(/\s*,\s*/);
function hasWords(text, ...wanted) {
    for (const word of wanted)
        assert.ok(words(text).includes(word.toLowerCase()), `"${word}" is not in "${text}"`);
}

describe('the wire', () => {
    let world, payer, answers;

    const buy = async (path, options) => world.send(path, await world.sign(payer, path, options), options);

    before(async () => {
        const closed = await freePort();
        const network = { rpc: [`http://127.0.0.1:${closed}`], rpc_timeout_ms: 500 };
        world = await startWorld({ beforeConfig: (w) => {
            const spoken = { ...testTools[0], name: 'spoken', path: '/test/spoken', description: SPOKEN };
            w.options.tools = [...w.options.tools, spoken];
        } });
        payer = await world.newPayer();
        const blind = await world.addGateway('gateway2', { network });
        const signed = await world.sign(payer, PATH, { headers: ORIGIN });
        const elsewhere = async (path) => {
            const { v2 } = await world.challenge(path);
            return world.request(path, { headers: { ...ORIGIN, 'payment-signature': paymentV2(v2, signed.payload) } });
        };
        answers = {
            402: await world.request(PATH, { headers: ORIGIN }),
            503: await world.request(PATH, { headers: { ...signed.headers, ...ORIGIN }, base: blind }),
            200: await world.send(PATH, signed, { headers: ORIGIN }),
            409: await elsewhere(`${PATH}?other`),
            404: await world.request('/nothing', { headers: ORIGIN }),
            405: await world.request(PATH, { method: 'DELETE', headers: ORIGIN }),
            400: await world.request(PATH, { headers: { ...ORIGIN, 'x-payment': '!' } }),
            replayed: await world.send(PATH, signed, { headers: ORIGIN }),
            order: await world.request(nobody('ord'), { headers: ORIGIN }),
        };
        await world.stop('gateway2');
    });
    after(() => world && endWorld(world));

    // ---- browsers ----

    test('every answer may be read by a browser', () => {
        for (const [name, { status, headers }] of Object.entries(answers)) {
            if (Number(name))
                assert.equal(status, Number(name));
            assert.equal(headers['access-control-allow-origin'], '*', name);
            assert.equal(headers['access-control-allow-credentials'], undefined, name);
            hasWords(headers['access-control-expose-headers'], 'PAYMENT-REQUIRED', 'PAYMENT-RESPONSE',
                'X-PAYMENT-RESPONSE', 'Retry-After', 'Payonce-Receipt', 'Payonce-Charged');
        }
    });

    test('a preflight is answered here, for every path, and costs nothing', async () => {
        const calls = (await world.calls()).length;
        for (const path of [PATH, '/shop/orders', '/nothing', nobody('ord')])
            for (const [method, asked] of [['GET', 'payment-signature,access-control-expose-headers'],
                ['POST', 'content-type, x-payment, idempotency-key'], ['GET', 'sign-in-with-x, x-my-own']]) {
                const answer = await world.request(path, { method: 'OPTIONS', headers: { ...ORIGIN,
                    'access-control-request-method': method, 'access-control-request-headers': asked } });
                assert.ok([200, 204].includes(answer.status), `${answer.status}`);
                assert.equal(answer.headers['access-control-allow-origin'], '*');
                hasWords(answer.headers['access-control-allow-methods'], method);
                hasWords(answer.headers['access-control-allow-headers'], ...words(asked), 'PAYMENT-SIGNATURE',
                    'X-PAYMENT', 'SIGN-IN-WITH-X', 'Content-Type', 'Access-Control-Expose-Headers', 'Idempotency-Key');
            }
        assert.equal((await world.calls()).length, calls);
    });

    test('a browser gets PAYMENT-REQUIRED too', async () => {
        const headers = { accept: 'text/html,application/xhtml+xml', 'user-agent': 'Mozilla/5.0 (X11) Firefox/128.0' };
        const answer = await world.request(PATH, { headers });
        assert.equal(answer.status, 402);
        assert.equal(decode(answer.headers['payment-required']).x402Version, 2);
    });

    // ---- caches ----

    test('no cache keeps what was refused, and none shares what was paid for', () => {
        for (const [name, { headers }] of Object.entries(answers)) {
            hasWords(headers['cache-control'], 'no-store');
            if (['200', 'replayed'].includes(name))
                hasWords(headers['cache-control'], 'private');
            if (['200', '402', '409', '503', '400', 'replayed'].includes(name))
                hasWords(headers.vary, 'PAYMENT-SIGNATURE', 'X-PAYMENT', 'Idempotency-Key');
        }
        for (const status of [402, 409, 503])
            assert.match(answers[status].headers['content-type'], /^application\/problem\+json/);
        assert.match(answers[503].headers['retry-after'], /^[0-9]+$/);
    });

    // ---- what the official packages read ----

    test('PAYMENT-RESPONSE and X-PAYMENT-RESPONSE, by the official decoders', async () => {
        const settled = fetch2.decodePaymentResponseHeader(answers[200].headers['payment-response']);
        assert.equal(settled.success, true);
        assert.equal(settled.network, 'eip155:84532');
        assert.equal(settled.payer.toLowerCase(), payer.address.toLowerCase());
        assert.equal((await world.chain.receipt(settled.transaction)).status, '0x1');
        assert.equal(answers[200].headers['x-payment-response'], undefined);
        const replayed = fetch2.decodePaymentResponseHeader(answers.replayed.headers['payment-response']);
        assert.equal(replayed.transaction, settled.transaction);

        const v1 = await buy(PATH, { version: 1 });
        assert.equal(v1.headers['payment-response'], undefined);
        const old = fetch1.decodeXPaymentResponse(v1.headers['x-payment-response']);
        assert.equal(old.success, true);
        assert.equal(old.network, 'base-sepolia');
        assert.match(old.transaction, /^0x[0-9a-f]{64}$/);
    });

    test('a description that is not ASCII: headers are', async () => {
        const answer = await world.request('/test/spoken');
        const header = answer.headers['payment-required'];
        assert.match(header, /^[A-Za-z0-9+/]+={0,2}$/);
        const text = Buffer.from(header, 'base64').toString('latin1');
        assert.match(text, /^[\x20-\x7e]+$/, 'v1 peers read Latin-1');
        assert.equal(JSON.parse(text).resource.description, SPOKEN);
        assert.match(answer.text, /^[\x20-\x7e\n]+$/);
        assert.equal(answer.json.accepts[0].description, SPOKEN);
        assert.equal((await buy('/test/spoken')).status, 200);
    });

    // ---- connections ----

    test('one connection carries a 402, a paid call, a 404 and another paid call', async () => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        const sockets = new Set();
        agent.on('free', (socket) => sockets.add(socket));
        const ask = (path, headers) => world.request(path, { agent, headers });
        for (let n = 0; n < 2; n++) {
            const path = `${PATH}?kept=${n}`;
            assert.equal((await ask(path)).status, 402);
            const { headers } = await world.sign(payer, path);
            assert.equal((await ask(path, headers)).status, 200);
            assert.equal((await ask('/nothing')).status, 404);
        }
        assert.equal(sockets.size, 1);
        agent.destroy();
    });

    const post = (headers, body) =>
        ['POST /test/write HTTP/1.1', 'Host: x', `Content-Length: ${body.length}`, ...headers, '', ''].join('\r\n');

    // Writes each piece once the condition on what came before it holds; resolves to all that was received.
    function talk(pieces, enough, deadlineMs = 15_000) {
        const { hostname, port } = new URL(world.gateway);
        return new Promise((done, failed) => {
            let received = '';
            const socket = connect({ host: hostname, port: Number(port) });
            const timer = setTimeout(() => socket.destroy(new Error(`too slow: ${received}`)), deadlineMs);
            const next = () => {
                while (pieces.length > 0 && pieces[0][0](received))
                    socket.write(pieces.shift()[1]);
                if (pieces.length === 0 && enough(received))
                    socket.end();
            };
            socket.on('connect', next);
            socket.on('data', (chunk) => {
                received += chunk.toString('latin1');
                next();
            });
            socket.on('error', failed);
            socket.on('close', () => {
                clearTimeout(timer);
                done(received);
            });
        });
    }
    const at = (text) => (received) => received.includes(text);
    const heads = (received) => [...received.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));

    test('Expect: 100-continue', async () => {
        const body = '{"n":1}';
        const { headers } = await world.sign(payer, '/test/write', { method: 'POST', body });
        const head = post(['Expect: 100-continue', `PAYMENT-SIGNATURE: ${headers['payment-signature']}`], body);
        const received = await talk([[() => true, head], [at('100 Continue\r\n\r\n'), body]], at('"body"'));
        assert.deepEqual(heads(received), [100, 200], received);
        assert.ok(received.includes(Buffer.from(body).toString('base64')), 'the body arrived');
    });

    test('HTTP/1.0: answered, and closed', async () => {
        const { headers } = await world.sign(payer, `${PATH}?old`);
        for (const [extra, status] of [['', 402], [`PAYMENT-SIGNATURE: ${headers['payment-signature']}\r\n`, 200]]) {
            const text = `GET ${PATH}?old HTTP/1.0\r\n${extra}\r\n`;
            const { answer, closed } = await world.raw(text, { deadlineMs: 15_000 });
            assert.equal(answer.status, status, answer.text);
            assert.equal(answer.headers['transfer-encoding'], undefined);
            assert.ok(closed || answer.headers['content-length']);
        }
    });

    const first = (line, ...more) => [line, 'Host: x', ...more, '', ''].join('\r\n');
    const isProblem = ({ answer }, status, code, detail) => {
        assert.deepEqual([answer?.status, answer?.json.code], [status, code], answer?.text);
        assert.match(answer.json.detail, detail);
    };

    test('an Expect that nobody can meet: 417, before a body is read; HTTP/1.0 has none', async () => {
        const { headers } = await world.sign(payer, `${PATH}?expect`);
        const calls = (await world.calls()).length;
        for (const expect of ['foo', '100-continue, foo', '', '100-continue\r\nExpect: 100-continue']) {
            const paying = `PAYMENT-SIGNATURE: ${headers['payment-signature']}`;
            const text = first(`GET ${PATH}?expect HTTP/1.1`, paying, `Expect: ${expect}`);
            isProblem(await world.raw(text), 417, 'expectation_failed', /100-continue/);
        }
        const unread = await world.raw(post(['Expect: foo'], 'x'.repeat(1000)));
        isProblem(unread, 417, 'expectation_failed', /100-continue/);
        assert.equal((await world.calls()).length, calls);
        assert.equal((await world.raw(first(`GET ${PATH} HTTP/1.0`, 'Expect: foo'))).answer.status, 402);
    });

    test('HTTP/1.2 is answered as 1.1; what is no HTTP/1 is refused', async () => {
        const newer = await world.raw(first(`GET ${PATH} HTTP/1.2`));
        assert.equal(newer.answer.status, 402);
        const statuses = {
            'HTTP/1.10': 400, 'HTTP/2.0': 505, 'HTTP/0.9': 505, 'http/1.1': 400, 'HTTP/1.': 400, 'FTP/1.1': 400,
        };
        for (const [version, status] of Object.entries(statuses))
            assert.equal((await world.raw(first(`GET ${PATH} ${version}`))).answer.status, status, version);
        for (const text of [`GET ${PATH}\r\n\r\n`, `GET ${PATH}\r\nHost: x\r\n\r\n`, first(`GET  HTTP/1.1`)])
            assert.equal((await world.raw(text)).answer.status, 400, text);
        for (const text of ['GET\r\n\r\n', '\x16\x03\x01\x02\r\n\r\n']) {
            const { answer, closed } = await world.raw(text);
            assert.ok(closed && !answer, text);
        }
    });

    test('a target with scheme and host is no way to a route', async () => {
        const targets = [`http://x${PATH}`, `https://x${PATH}?n`, `HTTP://elsewhere${PATH}`, 'http://x', `//x${PATH}`];
        for (const target of targets) {
            const { answer } = await world.raw(first(`GET ${target} HTTP/1.1`));
            assert.equal(answer.status, target.startsWith('//') ? 404 : 400, `${target} ${answer.text}`);
            assert.equal(answer.headers['payment-required'], undefined);
        }
        isProblem(await world.raw(first(`GET ${targets[0]} HTTP/1.1`)), 400, 'bad_target', /without scheme and host/);
        isProblem(await world.raw(first('CONNECT x:443 HTTP/1.1')), 400, 'bad_target', /without scheme and host/);
    });

    test('an empty payment header is told as that, not as a price', async () => {
        const ask = (header) => world.raw(first(`GET ${PATH} HTTP/1.1`, header));
        for (const name of ['PAYMENT-SIGNATURE', 'X-PAYMENT'])
            for (const value of ['', ' ', ' \t '])
                isProblem(await ask(`${name}:${value}`), 400, 'payment_encoding', /is empty/);
        isProblem(await ask('Idempotency-Key:'), 400, 'payment_id_form', /16 to 128/);
    });

    test('requests in a row, not waiting for answers: answered in order', async () => {
        const paths = [`${PATH}?a`, '/nothing', `${PATH}?b`, nobody('ord')];
        const { headers } = await world.sign(payer, paths[2]);
        const lines = (path, i) => [`GET ${path} HTTP/1.1`, 'Host: x',
            ...(i === 2 ? [`PAYMENT-SIGNATURE: ${headers['payment-signature']}`] : []), '', ''].join('\r\n');
        const received = await talk([[() => true, paths.map(lines).join('')]], (r) => heads(r).length === 4);
        assert.deepEqual(heads(received), [402, 404, 200, 404], received);
    });

    test('a client that writes a few bytes at a time', async () => {
        const body = '{"slow":true}';
        const { headers } = await world.sign(payer, '/test/write', { method: 'POST', body });
        const text = post([`PAYMENT-SIGNATURE: ${headers['payment-signature']}`], body) + body;
        const { hostname, port } = new URL(world.gateway);
        const socket = connect({ host: hostname, port: Number(port), noDelay: true });
        const received = new Promise((done) => {
            let all = '';
            socket.on('data', (chunk) => {
                all += chunk.toString('latin1');
                if (all.includes('"body"'))
                    done(all);
            });
            socket.on('close', () => done(all));
        });
        for (let i = 0; i < text.length; i += 37) {
            socket.write(text.slice(i, i + 37));
            await world.pause(5);                      // the client's pace, not a wait for anything
        }
        assert.deepEqual(heads(await received), [200]);
        socket.destroy();
    });

    test('Authorization: Bearer is the seller\'s and no payment', async () => {
        const headers = { authorization: 'Bearer eyJhbGciOi.J9.x' };
        const unpaid = await world.request(PATH, { headers });
        assert.equal(unpaid.status, 402);
        const { headers: paying } = await world.sign(payer, `${PATH}?bearer`);
        const paid = await world.request(`${PATH}?bearer`, { headers: { ...headers, ...paying } });
        assert.equal(paid.status, 200, paid.text);
        const passed = paid.json.headers.map((each) => each.toLowerCase());
        assert.equal(paid.json.headers[passed.indexOf('authorization') + 1], headers.authorization);
    });

    // ---- orders and receipts ----

    test('ids are 128 bits, and say nothing of each other', async () => {
        const rows = await world.sql("SELECT encode(id, 'hex') AS id, encode(receipt, 'hex') AS receipt FROM orders");
        const all = rows.flatMap(({ id, receipt }) => [id, receipt]);
        assert.ok(rows.length >= 5);
        assert.equal(new Set(all).size, all.length);
        // of random ids, any two differ in about 64 of their 128 bits
        for (let i = 1; i < all.length; i++) {
            const difference = BigInt(`0x${all[i]}`) ^ BigInt(`0x${all[i - 1]}`);
            const differing = difference.toString(2).replaceAll('0', '').length;
            assert.ok(differing > 30 && differing < 98, `${all[i - 1]} ${all[i]}`);
        }
        assert.match(answers[200].headers['payonce-order'], /^ord_[0-9a-f]{32}$/);
        assert.match(answers[200].headers['payonce-receipt'], /\/receipts\/rcp_[0-9a-f]{32}$/);
    });

    test('an order and its receipt: who paid what, and never the answer', async () => {
        const secret = 'sesame-open-and-shut';
        const path = `${PATH}?word=${secret}`;
        const paid = await buy(path);
        assert.equal(paid.status, 200);
        assert.ok(paid.text.includes(secret));
        const order = await world.request(`/orders/${paid.headers['payonce-order']}`);
        const receipt = await world.request(paid.headers['payonce-receipt'].slice(world.gateway.length));
        for (const answer of [order, receipt]) {
            assert.equal(answer.status, 200, answer.text);
            assert.match(answer.headers['content-type'], /^application\/json/);
            hasWords(answer.headers['cache-control'], 'no-store');
            assert.equal(answer.json.status, 'paid');
            assert.ok(!answer.text.includes(secret));
            assert.ok(!answer.text.includes('signature'));
        }
        assert.equal(order.json.amount, '1000');
        assert.equal(receipt.json.payment.amount, '1000');
        assert.match(receipt.json.answer.digest, /^0x[0-9a-f]{64}$/);
        const settled = fetch2.decodePaymentResponseHeader(paid.headers['payment-response']);
        assert.equal(receipt.json.payment.transaction, settled.transaction);
    });

    test('an id has one spelling, and is no way to anything else', async () => {
        const id = answers[200].headers['payonce-order'].slice(4);
        const receipt = answers[200].headers['payonce-receipt'].split('rcp_')[1];
        const wrong = [`/orders/ord_${id.toUpperCase()}`, `/orders/ORD_${id}`, `/orders/ord_${id}/`,
            `/orders/ord_${id}0`, `/orders/ord_${id.slice(1)}`, `/orders/${id}`, `/orders//ord_${id}`,
            `/orders/ord_${id}/result`, `/orders/ord%5F${id}`, `/Orders/ord_${id}`, `/orders/rcp_${id}`,
            `/orders/ord_${receipt}`, `/receipts/rcp_${id}`, `/receipts/ord_${receipt}`, `/receipts/rcp_${receipt}%00`,
            `/orders/ord_${'g'.repeat(32)}`, '/orders/', '/orders', "/orders/ord_'%20OR%201=1--",
            nobody('ord'), nobody('rcp')];
        for (const path of wrong) {
            const answer = await world.request(path);
            assert.equal(answer.status, 404, `${path} ${answer.text}`);
            assert.equal(answer.json.code, 'not_found');
        }
        assert.equal((await world.request(`/orders/ord_${id}`)).status, 200);
        assert.equal((await world.request(`/receipts/rcp_${receipt}`)).status, 200);
    });

    test('HEAD of an order is its GET without the body; other methods have no meaning', async () => {
        for (const path of [`/orders/${answers[200].headers['payonce-order']}`, nobody('rcp')]) {
            const get = await world.request(path), head = await world.request(path, { method: 'HEAD' });
            assert.equal(head.status, get.status);
            assert.equal(head.body.length, 0);
            assert.equal(head.headers['content-type'], get.headers['content-type']);
            for (const method of ['POST', 'PUT', 'DELETE']) {
                const answer = await world.request(path, { method, ...(method !== 'DELETE' && { body: '{}' }) });
                assert.equal(answer.status, 405);
                hasWords(answer.headers.allow, 'GET', 'HEAD');
            }
        }
    });
});
