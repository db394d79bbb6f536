// payonce pay before a server that lies, fails or asks it to wait: one signature, the pace that it was asked to keep,
// and the exit status that says what to do.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { USDC } from '../../dev/usdc.mjs';
import { Agent, ended } from '../lib/agent.mjs';
import { decode, encode, freshAccount } from '../lib/payment.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

// A server that answers as it is told: what it is asked without a payment gets the challenge.
class Liar {
    payments = [];
    polls = [];

    static async start(answer) {
        const liar = new Liar();
        liar.server = createServer((request, response) => liar.#serve(request, response, answer));
        await new Promise((done) => liar.server.listen(0, '127.0.0.1', done));
        liar.url = `http://127.0.0.1:${liar.server.address().port}`;
        return liar;
    }

    #serve(request, response, answer) {
        const send = (status, headers, body) => {
            response.writeHead(status, { 'content-type': 'application/json', ...headers });
            response.end(JSON.stringify(body ?? {}));
        };
        if (request.url.startsWith('/orders/')) {
            this.polls.push(Date.now());
            return answer.poll(send, this.polls.length);
        }
        const header = request.headers['payment-signature'];
        if (!header)
            return send(402, { 'payment-required': this.challenge() });
        this.payments.push({ at: Date.now(), header });
        return answer.payment(send, this.payments.length, this);
    }

    challenge(error = 'payment required') {
        return encode({
            x402Version: 2, error, resource: { url: `${this.url}/x` }, accepts: [{
                scheme: 'exact', network: 'eip155:84532', amount: '1000', asset: USDC, payTo: `0x${'33'.repeat(20)}`,
                maxTimeoutSeconds: 60, extra: { name: 'USDC', version: '2', n: this.payments.length },
            }],
        });
    }

    // However often it was sent, it was one payment.
    one() {
        assert.equal(new Set(this.payments.map(({ header }) => header)).size, 1);
        return decode(this.payments[0].header);
    }

    stop() {
        this.server.closeAllConnections?.();
        return new Promise((done) => this.server.close(done));
    }
}

describe('payonce pay, told lies or to wait', () => {
    let world;
    before(async () => { world = await startWorld({ roles: [] }); });
    after(() => world && endWorld(world));

    const against = (answer, body) => async () => {
        const liar = await Liar.start(answer);
        try {
            await body(liar, new Agent(world, freshAccount()));
        } finally {
            await liar.stop();
        }
    };
    const problem = (code, more) => ({ code, title: code, ...more });

    for (const error of ['payment required', 'authorization expired', 'nonce already used'])
        test(`402 for ever, "${error}": one signature`, against({
            payment: (send, n, liar) => send(402, { 'payment-required': liar.challenge(error) }),
        }, async (liar, agent) => {
            for (const more of [[], [], ['--rpc', world.rpcUrl], ['--rpc', world.rpcUrl]]) {
                const { message } = ended(await agent.pay(`${liar.url}/x`, more), 3);
                assert.ok(message.includes(error), message);
            }
            assert.ok(liar.payments.length >= 4);
            assert.equal(liar.one().payload.authorization.nonce, agent.intent().authorization.nonce);
            assert.equal(agent.intent().attempt, 0);
        }));

    test('402, and a chain that cannot be read: nothing new is signed, and it is not final', against({
        payment: (send, n, liar) => send(402, { 'payment-required': liar.challenge('expired') }),
    }, async (liar, agent) => {
        ended(await agent.pay(`${liar.url}/x`, ['--rpc', 'http://127.0.0.1:9']), 4);
        liar.one();
    }));

    test('409: its poll address is asked, at the pace it names, then the same payment is sent', against({
        payment: (send, n, liar) => n === 1
            ? send(409, { 'retry-after': '1' }, problem('payment_in_flight', { poll: `${liar.url}/orders/ord_1` }))
            : send(200, {}, { fine: true }),
        poll: (send, n) => send(200, { 'retry-after': '2' }, { status: n < 3 ? 'settling' : 'paid' }),
    }, async (liar, agent) => {
        ended(await agent.pay(`${liar.url}/x`, ['--wait', '30']), 0);
        liar.one();
        assert.equal(liar.payments.length, 2);
        assert.equal(liar.polls.length, 3);
        const times = [liar.payments[0].at, ...liar.polls];
        const pauses = liar.polls.map((at, i) => at - times[i]);
        for (const [i, least] of [1_000, 2_000, 2_000].entries())
            assert.ok(pauses[i] >= least - 20 && pauses[i] < least + 1_000, pauses.join());
    }));

    test('409 to the end of --wait: exit 4, and the same payment next time', against({
        payment: (send, n, liar) => send(409, {}, problem('payment_in_flight', { poll: `${liar.url}/orders/ord_1` })),
        poll: (send) => send(200, { 'retry-after': '1' }, { status: 'settling' }),
    }, async (liar, agent) => {
        const json = ended(await agent.pay(`${liar.url}/x`, ['--wait', '1']), 4);
        ended(await agent.pay(`${liar.url}/x`, ['--id', json.payment_id, '--wait', '1']), 4);
        assert.equal(liar.payments.length, 2);
        liar.one();
    }));

    test('503 with Retry-After: no sooner', against({
        payment: (send, n) => n < 3 ? send(503, { 'retry-after': '2' }) : send(200),
    }, async (liar, agent) => {
        ended(await agent.pay(`${liar.url}/x`), 0);
        const [a, b, c] = liar.payments.map(({ at }) => at);
        assert.ok(b - a >= 1_980 && c - b >= 1_980, `${b - a} ${c - b}`);
        liar.one();
    }));

    const ends = {
        'a 503 to the end of --wait': [4, (send) => send(503, { 'retry-after': '1' })],
        'a 410': [7, (send) => send(410, {}, problem('answer_gone', { money: 'moved' }))],
        'a 502 that says paid': [7, (send) => send(502, {}, problem('work_failed_paid', { money: 'moved' }))],
        'a 400 by which nothing moved': [3, (send) => send(400, {}, problem('x', { money: 'not_moved' }))],
        'a conflict': [1, (send) => send(409, {}, problem('payment_conflict', { money: 'unknown' }))],
        'an answer that was not charged': [0, (send) => send(200, { 'payonce-charged': 'false' })],
    };
    for (const [name, [code, payment]] of Object.entries(ends))
        test(`${name} is exit ${code}`, against({ payment }, async (liar, agent) => {
            ended(await agent.pay(`${liar.url}/x`, ['--wait', '2']), code);
            liar.one();
        }));

    test('a 402 that is no x402 v2: refused, nothing signed', async () => {
        const server = createServer((request, response) => response.writeHead(402).end('{"x402Version":1}'));
        await new Promise((done) => server.listen(0, '127.0.0.1', done));
        const agent = new Agent(world, freshAccount());
        ended(await agent.pay(`http://127.0.0.1:${server.address().port}/x`), 3);
        assert.deepEqual(agent.intents(), []);
        server.close();
    });
});
