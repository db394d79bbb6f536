// What must be refused, in which words, and that nothing came of it: no order, no transfer, no call of the upstream.
// Malformed is 400; refused with provably nothing moved is 402 with the reference's reason; cannot know is 503.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { authorize, decode, encode, freshAccount, now, paymentV1, paymentV2 } from '../lib/payment.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

const PATH = '/iso/countries?code=FR';
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const YEAR = 31_536_000;
const somebody = `0x${'22'.repeat(20)}`;

const replaced = (signature, from, text) => signature.slice(0, from) + text + signature.slice(from + text.length);
const withV = (signature, v) => replaced(signature, 130, v.toString(16).padStart(2, '0'));

// The other signature that the same key could have made: s mirrored, v flipped.
function malleated(signature) {
    const s = (CURVE_ORDER - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
    return withV(replaced(signature, 66, s), signature.endsWith('1b') ? 28 : 27);
}

describe('bad input', () => {
    let world, payer, challenge;
    before(async () => {
        world = await startWorld();
        payer = await world.newPayer();
        challenge = await world.challenge(PATH);
    });
    after(() => world && endWorld(world));

    async function nothingCameOfIt() {
        assert.deepEqual(await world.sql('SELECT * FROM order_books'), [], 'an order was stored');
        assert.deepEqual(await world.calls(), [], 'the upstream was called');
        assert.deepEqual((await world.chain.allTransfers()).filter((log) => log.to === world.payTo.toLowerCase()), []);
    }

    function isProblem(answer, status, code) {
        assert.equal(answer.status, status, answer.text);
        assert.match(answer.headers['content-type'], /^application\/problem\+json/);
        assert.equal(answer.json.status, status);
        assert.equal(answer.json.code, code);
        assert.ok(answer.json.title && answer.json.detail && answer.json.retry, 'a problem says what to do');
    }

    function isRefused(answer, reason) {
        assert.equal(answer.status, 402, answer.text);
        assert.equal(decode(answer.headers['payment-required']).error, reason);
        assert.match(answer.headers['cache-control'], /no-store/);
    }

    // ---- the payment header ----

    const malformed = {
        'not base64': ['!!!', 'payment_encoding'],
        'base64url': [Buffer.from('{"a":"???>>>"}').toString('base64url'), 'payment_encoding'],
        'white space in it': [` ${encode('{}')}`.replace('e', 'e '), 'payment_encoding'],
        'not JSON': [encode('pay me'), 'payment_json'],
        'not an object': [encode('[]'), 'payment_json'],
        'duplicate keys': [encode('{"x402Version":2,"x402Version":2}'), 'payment_json'],
        'nested 10,000 deep': [encode(`{"a":${'['.repeat(10_000)}`), 'payment_json'],
        'an empty object': [encode('{}'), 'payment_field'],
    };
    for (const [name, [header, code]] of Object.entries(malformed))
        for (const field of ['payment-signature', 'x-payment'])
            test(`${field}: ${name}`, async () => {
                isProblem(await world.request(PATH, { headers: { [field]: header } }), 400, code);
                await nothingCameOfIt();
            });

    test('two payment headers', async () => {
        const payload = await authorize(payer, challenge.v2.accepts[0]);
        const header = paymentV2(challenge.v2, payload);
        const headers = { 'payment-signature': header, 'x-payment': paymentV1(challenge.v1, payload) };
        isProblem(await world.request(PATH, { headers }), 400, 'payment_headers');
        const twice = `GET ${PATH} HTTP/1.1\r\nHost: x\r\n${`PAYMENT-SIGNATURE: ${header}\r\n`.repeat(2)}\r\n`;
        isProblem((await world.raw(twice)).answer, 400, 'payment_headers');
        await nothingCameOfIt();
    });

    // ---- fields of the authorization, altered behind the signature ----

    const fields = {
        'value 1e3': ['value', '1e3'],
        'value -1': ['value', '-1'],
        'value with a space': ['value', ' 1'],
        'value in hex': ['value', '0x3e8'],
        'value as a number': ['value', 1000],
        'value with a leading zero': ['value', '01000'],
        'value 2^256': ['value', String(2n ** 256n)],
        'a nonce of 31 bytes': ['nonce', `0x${'11'.repeat(31)}`],
        'a payer of 19 bytes': ['from', `0x${'11'.repeat(19)}`],
        'no validBefore': ['validBefore', undefined],
    };
    for (const [name, [field, value]] of Object.entries(fields))
        test(name, async () => {
            const payload = await authorize(payer, challenge.v2.accepts[0]);
            payload.authorization[field] = value;
            for (const headers of [{ 'payment-signature': paymentV2(challenge.v2, payload) },
                { 'x-payment': paymentV1(challenge.v1, payload) }])
                isProblem(await world.request(PATH, { headers }), 400, 'payment_field');
            await nothingCameOfIt();
        });

    // ---- signatures ----

    const signatures = {
        'high s': malleated,
        'v of 2': (s) => withV(s, 2),
        'v of 26': (s) => withV(s, 26),
        'v of 29': (s) => withV(s, 29),
        'v of 255': (s) => withV(s, 255),
        'a signature of 64 bytes': (s) => s.slice(0, -2),
        'a signature of 66 bytes': (s) => `${s}00`,
        'no signature': () => '0x',
        'all zero': () => `0x${'00'.repeat(65)}`,
        'somebody else\'s': async (s, offer, a) => (await authorize(freshAccount(), offer, { change: a })).signature,
    };
    for (const [name, change] of Object.entries(signatures))
        test(name, async () => {
            const [offer] = challenge.v2.accepts;
            const { authorization, signature } = await authorize(payer, offer);
            const payload = { authorization, signature: await change(signature, offer, authorization) };
            const v2 = { 'payment-signature': paymentV2(challenge.v2, payload) };
            isRefused(await world.request(PATH, { headers: v2 }), 'invalid_exact_evm_signature');
            const v1 = await world.request(PATH, { headers: { 'x-payment': paymentV1(challenge.v1, payload) } });
            assert.equal(v1.status, 402);
            assert.equal(v1.json.error, 'invalid_exact_evm_payload_signature');
            await nothingCameOfIt();
        });

    // ---- what was signed ----

    const signed = {
        'another chain\'s signature': [{ domain: { chainId: 8453 } }, 'invalid_exact_evm_signature'],
        'another token\'s': [{ domain: { verifyingContract: somebody } }, 'invalid_exact_evm_signature'],
        'a payee that is not ours': [{ change: { to: somebody } }, 'invalid_exact_evm_recipient_mismatch'],
        'one less': [{ change: { value: '999' } }, 'invalid_exact_evm_payload_authorization_value_mismatch'],
        'one more': [{ change: { value: '1001' } }, 'invalid_exact_evm_payload_authorization_value_mismatch'],
        'value 2^256-1': [{ change: { value: String(2n ** 256n - 1n) } },
            'invalid_exact_evm_payload_authorization_value_mismatch'],
        'validBefore in 5 s': [() => ({ change: { validBefore: String(now() + 5) } }),
            'invalid_exact_evm_payload_authorization_valid_before'],
        'validBefore in the past': [() => ({ change: { validBefore: String(now() - 60) } }),
            'invalid_exact_evm_payload_authorization_valid_before'],
        'validBefore in a year': [() => ({ change: { validBefore: String(now() + YEAR) } }),
            'invalid_exact_evm_payload_authorization_valid_before'],
        'validAfter in the future': [() => ({ change: { validAfter: String(now() + 60) } }),
            'invalid_exact_evm_payload_authorization_valid_after'],
    };
    for (const [name, [options, reason]] of Object.entries(signed))
        test(name, async () => {
            const made = typeof options === 'function' ? options() : options;
            const payload = await authorize(payer, challenge.v2.accepts[0], made);
            const headers = { 'payment-signature': paymentV2(challenge.v2, payload) };
            isRefused(await world.request(PATH, { headers }), reason);
            await nothingCameOfIt();
        });

    // ---- what was accepted ----

    // Every text that the gateway put into extra beside the token's name and version is its quote.
    function alteredQuote(accepted) {
        for (const [key, value] of Object.entries(accepted.extra))
            if (!['name', 'version'].includes(key) && typeof value === 'string')
                accepted.extra[key] = (value[0] === 'A' ? 'B' : 'A') + value.slice(1);
    }
    const noMatch = 'No matching payment requirements';
    const accepted = {
        'an unknown network': [(a) => { a.network = 'eip155:31337'; }, [noMatch, 'invalid_network']],
        'an unknown scheme': [(a) => { a.scheme = 'upto'; }, [noMatch, 'unsupported_scheme']],
        'an amount of its own': [(a) => { a.amount = '1'; }, [noMatch]],
        'a payee of its own': [(a) => { a.payTo = somebody; }, [noMatch]],
        'an asset of its own': [(a) => { a.asset = somebody; }, [noMatch]],
        'an altered quote': [alteredQuote, ['quote_mismatch']],
    };
    for (const [name, [change, reasons]] of Object.entries(accepted))
        test(`accepted: ${name}`, async () => {
            const payload = await authorize(payer, challenge.v2.accepts[0]);
            const own = structuredClone(challenge.v2.accepts[0]);
            change(own);
            const headers = { 'payment-signature': paymentV2(challenge.v2, payload, { accepted: own }) };
            const answer = await world.request(PATH, { headers });
            assert.equal(answer.status, 402, answer.text);
            assert.ok(reasons.includes(decode(answer.headers['payment-required']).error), answer.text);
            await nothingCameOfIt();
        });

    test('a quote of another route', async () => {
        const other = await world.challenge('/iso/currencies?code=EUR');
        const payload = await authorize(payer, other.v2.accepts[0]);
        const headers = { 'payment-signature': paymentV2(other.v2, payload) };
        isRefused(await world.request(PATH, { headers }), 'quote_mismatch');
        await nothingCameOfIt();
    });

    test('a quote that is expired', async () => {
        const base = await world.addGateway('gateway2', { extra: { quote_ttl_s: 10 } });
        const { headers } = await world.sign(payer, PATH, { base });
        const over = Date.now() + 11_500;
        await world.waitFor(() => Date.now() > over, 'the quote expires');
        isRefused(await world.request(PATH, { headers, base }), 'quote_expired');
        await world.stop('gateway2');
        await nothingCameOfIt();
    });

    test('x402 version 3', async () => {
        const payload = await authorize(payer, challenge.v2.accepts[0]);
        const header = paymentV2(challenge.v2, payload, { change: { x402Version: 3 } });
        const answer = await world.request(PATH, { headers: { 'payment-signature': header } });
        isRefused(answer, 'invalid_x402_version');
        await nothingCameOfIt();
    });

    // ---- what only the chain knows ----

    test('a balance that is one short', async () => {
        const poor = await world.newPayer({ atoms: 999n });
        const { headers } = await world.sign(poor, PATH);
        isRefused(await world.request(PATH, { headers }), 'invalid_exact_evm_insufficient_balance');
        await nothingCameOfIt();
    });

    test('a blacklisted payer', async () => {
        const bad = await world.newPayer();
        await world.chain.blacklist(bad.address);
        const { headers } = await world.sign(bad, PATH);
        isRefused(await world.request(PATH, { headers }), 'invalid_exact_evm_transaction_simulation_failed');
        await nothingCameOfIt();
    });

    test('a chain that is down, slow, another, or talks nonsense is never the payer\'s fault', async (t) => {
        const answers = {
            slow: () => {},
            'of another chain': (request, response) => response.end('{"jsonrpc":"2.0","id":1,"result":"0x1"}'),
            nonsense: (request, response) => response.end('<html>'),
            down: null,
        };
        for (const [name, answer] of Object.entries(answers))
            await t.test(name, async (each) => {
                const server = createServer(answer ?? (() => {}));
                each.after(() => {
                    server.closeAllConnections();
                    server.close();
                });
                await new Promise((done) => server.listen(0, '127.0.0.1', done));
                const rpc = [`http://127.0.0.1:${server.address().port}`];
                if (!answer)
                    await new Promise((done) => server.close(done));
                const base = await world.addGateway('gateway3', { network: { rpc, rpc_timeout_ms: 500 } });
                const { headers } = await world.sign(payer, PATH, { base });
                const refused = await world.request(PATH, { headers, base });
                isProblem(refused, 503, 'chain_unavailable');
                assert.match(refused.headers['retry-after'], /^[0-9]+$/);
                await world.stop('gateway3');
                await nothingCameOfIt();
            });
    });

    // ---- HTTP itself ----

    const head = (first, lines) => [first, ...lines, '', ''].join('\r\n');
    const get = (lines, target = PATH) => head(`GET ${target} HTTP/1.1`, lines);
    const post = (lines, body) => head('POST /shop/orders HTTP/1.1', lines) + body;
    const smuggled = {
        'Content-Length with Transfer-Encoding': post(['Host: x', 'Content-Length: 5', 'Transfer-Encoding: chunked'],
            '0\r\n\r\n'),
        'two Content-Lengths': post(['Host: x', 'Content-Length: 2', 'Content-Length: 3'], '{}'),
        'no Host': get(['Accept: */*']),
        'two Hosts': get(['Host: x', 'Host: y']),
        'a space before the colon': get(['Host: x', 'X-Name : y']),
        'a folded header': get(['Host: x', 'X-Name: y', ' z']),
    };
    for (const [name, bytes] of Object.entries(smuggled))
        test(name, async () => {
            const { answer, closed } = await world.raw(bytes);
            assert.ok(answer ? answer.status === 400 : closed, `${answer?.status} ${answer?.text}`);
            await nothingCameOfIt();
        });

    test('a header of 1 MB: 431, or a closed connection, within a second', async () => {
        const { answer, closed, ms } = await world.raw(get(['Host: x', `X-Long: ${'a'.repeat(1_000_000)}`]));
        assert.ok(answer ? answer.status === 431 : closed, `${answer?.status}`);
        assert.ok(ms < 1_000, `${ms} ms`);
        await nothingCameOfIt();
    });

    test('a body over the limit, by its Content-Length', async () => {
        const { answer, ms } = await world.raw(post(['Host: x', 'Content-Length: 100000000'], ''));
        isProblem(answer, 413, 'body_too_large');
        assert.ok(ms < 1_000, `${ms} ms`);
        await nothingCameOfIt();
    });

    test('a body over the limit, in chunks', async () => {
        const chunk = `10000\r\n${'a'.repeat(65_536)}\r\n`;
        const { answer, closed } = await world.raw(post(['Host: x', 'Transfer-Encoding: chunked'], chunk.repeat(200)));
        assert.ok(answer ? answer.status === 413 : closed, `${answer?.status}`);
        await nothingCameOfIt();
    });

    const variants = ['//iso/countries', '/iso//countries', '/iso/./countries', '/x/../iso/countries', '/ISO/countries',
        '/iso/countries/', '/iso%2Fcountries', '/iso/%63ountries', '/iso/countries%00', '/iso/countries;x',
        '/iso\\countries'];
    for (const target of variants)
        test(`${target} is not a way around the price`, async () => {
            const { answer } = await world.raw(get(['Host: x'], target));
            assert.ok([400, 404].includes(answer.status), `${answer.status} ${answer.text}`);
            await nothingCameOfIt();
        });

    test('HEAD has its GET\'s price, OPTIONS none', async () => {
        const head = await world.request(PATH, { method: 'HEAD' });
        assert.equal(head.status, 402);
        assert.equal(head.body.length, 0);
        assert.ok(decode(head.headers['payment-required']).accepts.length > 0);
        const options = await world.request(PATH, { method: 'OPTIONS',
            headers: { origin: 'https://app.example', 'access-control-request-method': 'GET' } });
        assert.equal(options.status, 204);
        await nothingCameOfIt();
    });

    test('a method that the route has not', async () => {
        const answer = await world.request('/iso/countries', { method: 'DELETE' });
        isProblem(answer, 405, 'method_not_allowed');
        assert.match(answer.headers.allow, /GET/);
        await nothingCameOfIt();
    });
});
