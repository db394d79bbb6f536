// Kinds of faults that users of other systems reported, against the real program: each test is named after its case.
// drills/lib/cases-shown.mjs says where the others are.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { relayer } from '../../dev/accounts.mjs';
import { relayedOf, untilMoney } from '../lib/ledger.mjs';
import { authorize, decode, encode, now, paymentId, paymentV1, paymentV2 } from '../lib/payment.mjs';
import { HTML, Refusal, behindStubs } from '../lib/stub.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

const PATH = '/test/read';
const WRITE = '/test/write';
const POST = { method: 'POST', body: '{"n":1}' };

const ordersOf = (world, payer) => world.sql(`SELECT encode(id, 'hex') AS id, status, money FROM order_status
    WHERE payer = decode('${payer.address.slice(2)}', 'hex')`);
const spent = async (world, payer) => 1_000_000n - await world.chain.balanceOf(payer.address);

describe('cases', () => {
    let world, payer;
    before(async () => {
        world = await startWorld();
        payer = await world.newPayer();
    });
    after(() => world && endWorld(world));

    const withHeader = (path, header) => world.request(path, { headers: { 'payment-signature': header } });

    // A 400 or 402 that says why, and nothing came of it.
    async function refuses(answer, who = payer) {
        assert.ok([400, 402].includes(answer.status), `${answer.status} ${answer.text}`);
        const { code, detail, reason } = answer.json;
        assert.ok(answer.status === 400 ? detail : reason, answer.text);
        assert.notEqual(code, 'internal');
        assert.deepEqual(await ordersOf(world, who), []);
    }

    // ---- what is the same payment, and what is not ----

    test('F08: a settled transaction is no proof for another nonce', async () => {
        const buyer = await world.newPayer();
        const first = await world.pay(buyer, `${PATH}?f08`);
        const { transaction } = decode(first.headers['payment-response']);
        const { required, payload } = first.signed;
        const other = await authorize(buyer, required.accepts[0]);
        const named = { transaction, txHash: transaction, hash: transaction };
        const { v2 } = await world.challenge(`${PATH}?f08=2`);
        const forged = { ...named, authorization: other.authorization, signature: payload.signature };
        const headers = [
            paymentV2(v2, forged),                                 // the old signature beside the new nonce
            paymentV2(v2, { ...named, authorization: other.authorization, signature: '0x' }),
            paymentV2(v2, named),                                  // the transaction instead of an authorization
            paymentV2(v2, forged, { change: named }),
        ];
        for (const header of headers) {
            const answer = await withHeader(`${PATH}?f08=2`, header);
            assert.ok([400, 402].includes(answer.status), answer.text);
        }
        assert.equal((await ordersOf(world, buyer)).length, 1);
        assert.equal(await spent(world, buyer), 1_000n);
    });

    test('F23: the quote of a cheaper route, and one whose amount was altered', async () => {
        const buyer = await world.newPayer();
        const cheap = await world.challenge('/iso/countries?code=FR');
        const dear = await world.challenge('/shop/orders', POST);
        const [low, high] = [cheap.v2.accepts[0], dear.v2.accepts[0]];
        assert.ok(BigInt(low.amount) < BigInt(high.amount));
        const tries = [[low, low.amount], [low, high.amount], [{ ...low, amount: high.amount }, high.amount],
            [{ ...high, amount: low.amount }, low.amount], [{ ...high, extra: low.extra }, low.amount],
            [{ ...high, extra: low.extra }, high.amount],
            [{ ...high, amount: low.amount, extra: low.extra }, low.amount]];
        for (const [accepted, value] of tries) {
            const payload = await authorize(buyer, accepted, { change: { value } });
            const headers = { 'payment-signature': paymentV2(dear.v2, payload, { accepted }) };
            const answer = await world.request('/shop/orders', { ...POST, headers });
            assert.equal(answer.status, 402, answer.text);
        }
        assert.deepEqual(await ordersOf(world, buyer), []);
        assert.equal(await spent(world, buyer), 0n);
    });

    test('L01: base64 with and without padding is one payment; other alphabets and loose ends are none', async () => {
        const buyer = await world.newPayer();
        const path = `${PATH}?l01`;
        const { headers } = await world.sign(buyer, path);
        const value = Buffer.from(headers['payment-signature'], 'base64').toString();
        const padded = [value, `${value} `, `${value}  `].map(encode).filter((text) => text.endsWith('='));
        assert.equal(padded.length, 2);
        const answers = [];
        for (const text of padded)
            for (const each of [text, text.replace(/=+$/, '')])
                answers.push(await withHeader(path, each));
        assert.ok(answers.every(({ status, text }) => status === 200 && text === answers[0].text));
        assert.equal((await ordersOf(world, buyer)).length, 1);
        assert.equal(await spent(world, buyer), 1_000n);

        const odd = encode(JSON.stringify({ ...JSON.parse(value), x: '???>>>' }));
        const bare = padded[0].replace(/=+$/, '');
        const last = bare.at(-1);
        const junk = [odd.replaceAll('+', '-').replaceAll('/', '_'), `${bare}=====`,
            `${bare.slice(0, 80)} ${bare.slice(80)}`, `data:application/json;base64,${bare}`, value,
            bare.slice(0, -1) + String.fromCharCode(last.charCodeAt(0) + 1)];
        assert.notEqual(junk[0], odd);
        for (const text of junk) {
            const answer = await withHeader(path, text);
            assert.deepEqual([answer.status, answer.json.code], [400, 'payment_encoding'], text);
            assert.match(answer.json.detail, /base64/);
        }
    });

    // ---- values that are none ----

    test('L14: networks that nobody has', async () => {
        const { v1, v2 } = await world.challenge(PATH);
        for (const network of ['eip155:999999', '', 'base', 'eip155:84532 ', 'EIP155:84532', 17, null, {}, undefined]) {
            const accepted = { ...v2.accepts[0], network };
            const payload = await authorize(payer, v2.accepts[0]);
            await refuses(await withHeader(PATH, paymentV2(v2, payload, { accepted })));
            const header = paymentV1(v1, payload, { change: { network } });
            await refuses(await world.request(PATH, { headers: { 'x-payment': header } }));
        }
    });

    test('L17: amounts that a lenient reader would take', async () => {
        const { v1, v2 } = await world.challenge(PATH);
        const [offer] = v2.accepts;
        const lenient = ['1000abc', ' 1000', '1000 ', '+1000', '1e3', '0x3e8', '1000.0', '-0', '', '01000', 1000];
        for (const amount of lenient) {
            const payload = await authorize(payer, offer);
            const altered = structuredClone(payload);
            altered.authorization.value = amount;
            const headers = [{ 'payment-signature': paymentV2(v2, altered) }, { 'x-payment': paymentV1(v1, altered) },
                { 'payment-signature': paymentV2(v2, payload, { accepted: { ...offer, amount } }) }];
            for (const each of headers) {
                const answer = await world.request(PATH, { headers: each });
                assert.deepEqual([answer.status, answer.json.code], [400, 'payment_field'], `${amount}`);
            }
            const config = world.writeConfig('amounts', world.ports, { extra: { tools: [{
                name: 'x', method: 'GET', path: '/x', upstream: world.upstream, side_effect: 'read',
                prices: [{ network: 'eip155:84532', token: 'USDC', amount }],
            }] } });
            const { code, stderr } = await world.payonce(['migrate'], { config });
            assert.notEqual(code, 0, `a price of "${amount}" is taken`);
            assert.match(stderr, /tools\[0\]\.prices\[0\]\.amount: /);
        }
        await refuses(await withHeader(PATH, 'e30='));
    });

    test('H21: what is refused is refused again, in the same words and at once', async () => {
        const expired = { authorization: { change: { validBefore: String(now() - 60) } } };
        const poor = await world.newPayer({ atoms: 10n });
        for (const [who, options] of [[payer, expired], [poor, {}]]) {
            const id = paymentId();
            const signed = await world.sign(who, PATH, { id, ...options });
            const [one, two] = [await world.send(PATH, signed), await world.send(PATH, signed)];
            assert.equal(one.status, 402, one.text);
            for (const part of ['code', 'reason', 'detail', 'retry', 'money'])
                assert.equal(two.json[part], one.json[part]);
            const named = await world.request(PATH, { headers: { 'idempotency-key': id } });
            assert.equal(named.status, 402, 'a refusal leaves the id free');
            assert.equal((await world.request(`/payments/${id}`)).json.status, 'not_found');
            assert.deepEqual(await ordersOf(world, who), []);
        }
    });

    // ---- clients that do not behave ----

    test('M01: hundreds of connections that say nothing, or little', async () => {
        const base = await world.addGateway('gateway2', { extra: { idle_ms: 1_000 } });
        const { hostname, port } = new URL(base);
        const closed = new Set();
        const sockets = Array.from({ length: 400 }, (_, i) => {
            const socket = connect({ host: hostname, port: Number(port) });
            socket.on('error', () => {}).on('close', () => closed.add(i));
            return socket;
        });
        const all = 'GET /test/read HTTP/1.1\r\nHost: x\r\nX-Slow: ';
        const talkers = sockets.slice(0, 50);
        talkers.forEach((socket) => socket.write(all));
        const drip = setInterval(() => talkers.forEach((socket) => socket.writable && socket.write('a')), 200);
        try {
            for (let i = 0; i < 5; i++) {
                const began = Date.now();
                assert.equal((await world.request(PATH, { base, agent: false })).status, 402);
                assert.ok(Date.now() - began < 2_000, `${Date.now() - began} ms`);
            }
            await world.waitFor(() => closed.size >= 350, 'those that are silent are closed', 15_000);
            await world.waitFor(() => closed.size === 400, 'those that say a byte at a time are closed', 40_000);
        } finally {
            clearInterval(drip);
            sockets.forEach((socket) => socket.destroy());
        }
        await world.stop('gateway2');
    });

    // Writes and resets, before the answer can be read.
    function reset(bytes) {
        const { hostname, port } = new URL(world.gateway);
        return new Promise((done) => {
            const socket = connect({ host: hostname, port: Number(port) });
            socket.on('error', () => {}).on('close', done);
            socket.on('connect', () => socket.write(bytes, () => socket.resetAndDestroy()));
        });
    }

    test('M07: clients, upstream and database that are gone while they are written to', async () => {
        const pids = ['gateway', 'settler'].map((name) => world.pid(name));
        const buyer = await world.newPayer();
        const path = `${PATH}?size=1000000`;
        const signed = await world.sign(buyer, path);
        assert.equal((await world.send(path, signed)).status, 200);
        const header = `PAYMENT-SIGNATURE: ${signed.headers['payment-signature']}`;
        const ask = `GET ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`;
        for (let i = 0; i < 20; i++)
            await Promise.all(Array.from({ length: 20 }, (_, n) =>
                reset(n % 2 ? ask.repeat(3) : ask.slice(0, 60 + n))));
        for (let i = 0; i < 10; i++)
            for (const how of ['reset=1', 'cut=10']) {
                const answer = await world.pay(buyer, `${PATH}?${how}&m07=${i}`);
                assert.ok(answer.status >= 500, answer.text);
            }
        let over = false;
        const cuts = (async () => {
            for (; !over; await world.pause(100)) {
                const ours = "usename IN ('payonce_gateway', 'payonce_settler')";
                for (const { pid } of await world.sql(`SELECT pid FROM pg_stat_activity WHERE ${ours}`))
                    process.kill(pid, 'SIGTERM');
            }
        })();
        const calls = await Promise.all(Array.from({ length: 20 }, async (_, n) => {
            const target = `${PATH}?m07=db${n}`;
            return [target, await world.sign(buyer, target)];
        }));
        const first = await Promise.all(calls.map(([target, each]) => world.send(target, each)));
        over = true;
        await cuts;
        for (const { status, text } of first)
            assert.ok([200, 409, 503].includes(status), text);
        for (const [target, each] of calls)
            await world.waitFor(async () => (await world.send(target, each)).status === 200, `${target} is paid`);
        assert.deepEqual(['gateway', 'settler'].map((name) => world.isUp(name) && world.pid(name)), pids);
        for (const pid of pids) {
            const [, ignored] = readFileSync(`/proc/${pid}/status`, 'utf8').match(/^SigIgn:\s*([0-9a-f]+)$/m);
            assert.ok(BigInt(`0x${ignored}`) & (1n << 12n), 'SIGPIPE is not ignored');
        }
        assert.equal(await spent(world, buyer), 21n * 1_000n);
    });
});

// ---- what a node says ----

const behind = (name, options, body) => test(name, { timeout: 300_000 }, behindStubs(1, options, body));

behind('D01: a node that has not seen the payer\'s money yet', {}, async (world) => {
    // Told of the latest block, this node answers for one that is 30 older.
    const old = async (params, pass) => {
        const head = Number((await world.chain.block()).number);
        return pass([params[0], `0x${Math.max(0, head - 30).toString(16)}`]);
    };
    await world.chain.mine(40);
    const one = await world.newPayer();
    let lies = 1;
    const signed = await world.sign(one, PATH);
    world.stub.acts.eth_call = (params, pass) => (params[0].to && lies-- > 0 ? old(params, pass) : pass());
    const answer = await world.send(PATH, signed);
    assert.equal(answer.status, 200, `one stale view is no reason to refuse: ${answer.text}`);

    // Behind what this gateway has just seen, and nobody else to ask: try again, which is no new price.
    const two = await world.newPayer();
    const again = await world.sign(two, PATH);
    world.stub.acts.eth_call = old;
    const unknown = await world.send(PATH, again);
    const { code, retry } = unknown.json;
    assert.deepEqual([unknown.status, code, retry], [503, 'chain_unavailable', 'same_payment']);
    world.stub.honest();
    assert.equal((await world.send(PATH, again)).status, 200);
});

behind('F33: refused before anything was sent, the same payment may be tried again; unreadable, it stays locked', {
    extra: { wait_ms: 2_000 },
}, async (world) => {
    const poor = await world.newPayer({ atoms: 1n });
    const id = paymentId();
    const signed = await world.sign(poor, WRITE, { id, ...POST });
    for (let i = 0; i < 2; i++)
        assert.equal((await world.send(WRITE, signed, POST)).status, 402);
    await world.chain.fund(poor.address, 5_000n);
    const paid = await world.send(WRITE, signed, POST);
    assert.equal(paid.status, 200, paid.text);
    assert.equal(await world.chain.balanceOf(poor.address), 4_000n);

    const payer = await world.newPayer();
    const path = `${PATH}?unreadable`;
    const locked = await world.sign(payer, path, { id: paymentId() });
    for (const method of ['eth_getTransactionReceipt', 'eth_getLogs', 'eth_call', 'eth_getBlockByNumber'])
        world.stub.acts[method] = async (params, pass) => {
            if ((await relayedOf(world, payer)).length === 0)
                return pass();
            throw new Refusal(-32603, 'internal error');
        };
    const sent = world.stub.sent.length;
    for (let i = 0; i < 3; i++) {
        const answer = await world.send(path, locked);
        assert.deepEqual([answer.status, answer.json.code], [409, 'payment_in_flight'], answer.text);
    }
    assert.equal(world.stub.sent.length, sent + 1, 'it was sent a second time');
    world.stub.honest();
    await untilMoney(world, payer, 'settled');
    assert.equal((await world.send(path, locked)).status, 200);
    assert.equal(await spent(world, payer), 1_000n);
});

// ---- secrets ----

const MARKS = ['mark-user', 'mark-password', 'mark-path', 'mark-query', 'mark-bearer', 'mark-body'];
const secretUrl = ({ stub }) => stub.url.replace('://', '://mark-user:mark-password@') + '/v2/mark-path?key=mark-query';

behind('M12: no key, token, signature or body in any log, error, figure, receipt or story', {
    rpc: (world) => [secretUrl(world)], extra: { wait_ms: 3_000 },
}, async (world) => {
    const payer = await world.newPayer();
    const told = [];
    const secrets = [...MARKS, relayer.key.slice(2), payer.key.slice(2),
        readFileSync(join(world.dir, 'quote'), 'utf8').trim()];
    const hear = (answer) => {
        told.push(answer.text, JSON.stringify(answer.headers));
        return answer;
    };
    const keep = (signed) => {
        secrets.push(signed.payload.signature.slice(2), signed.headers['payment-signature'].slice(-40));
        return signed;
    };
    const options = { ...POST, body: '"mark-body"', headers: { authorization: 'Bearer mark-bearer' } };
    const send = async (path, signed) => hear(await world.send(path, signed, options));

    const bought = keep(await world.sign(payer, `${WRITE}?status=201`, options));
    const paid = await world.send(`${WRITE}?status=201`, bought, options);
    assert.equal(paid.status, 201);                       // the answer itself is the payer's, and echoes all of it
    told.push(JSON.stringify(paid.headers));
    for (const path of [new URL(paid.headers['payonce-receipt']).pathname, `/orders/${paid.headers['payonce-order']}`])
        hear(await world.request(path));
    assert.equal((await send(`${WRITE}?other`, bought)).status, 409);
    const lost = keep(await world.sign(payer, `${WRITE}?reset=1`, options));
    assert.equal((await send(`${WRITE}?reset=1`, lost)).status, 409);
    const bad = 'mark-bearer!mark-body';
    for (const name of ['payment-signature', 'x-payment', 'idempotency-key'])
        hear(await world.request(PATH, { headers: { [name]: bad, authorization: bad } }));
    const junk = keep(await world.sign(payer, PATH, { authorization: { domain: { chainId: 1 } } }));
    hear(await world.send(PATH, junk));

    world.stub.acts.all = () => HTML;                     // the node's faults are logged
    const blind = keep(await world.sign(payer, `${WRITE}?blind`, options));
    assert.equal((await send(`${WRITE}?blind`, blind)).status, 503);
    const log = () => readFileSync(join(world.dir, 'settler.log'), 'utf8');
    await world.waitFor(() => log().includes('settler.blind'), 'it is logged');
    const doctor = await world.payonce(['doctor']);
    world.stub.honest();
    await world.stop('settler');
    await world.restart('gateway');
    const rows = await world.sql("SELECT 'ord_' || encode(id, 'hex') AS id FROM orders");
    for (const { id } of rows) {
        const { code, stdout, stderr } = await world.payonce(['explain', id]);
        assert.equal(code, 0, stderr);
        told.push(stdout, stderr);
    }
    hear(await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` }));
    hear(await world.request('/readyz', { base: `http://127.0.0.1:${world.ports.admin}` }));
    told.push(doctor.stdout, doctor.stderr);
    const ofPostgres = readdirSync(world.stateDir, { recursive: true }).filter((name) => name.endsWith('postgres.log'));
    assert.ok(ofPostgres.length === 1 && rows.length >= 2, `${ofPostgres} ${rows.length}`);
    for (const path of [...world.logs, join(world.stateDir, ofPostgres[0])])
        told.push(readFileSync(path, 'utf8'));
    for (const secret of secrets)
        for (const text of told)
            assert.ok(!text.toLowerCase().includes(secret.toLowerCase()), `"${secret}" in:\n${text.slice(0, 4_000)}`);
});
