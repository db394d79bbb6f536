// payonce pay on MPP, against the official server on a Tempo node: in both modes one purchase is one transaction, whatever
// breaks on its way, until the chain itself has buried it.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Mppx, tempo } from 'mppx/server';
import { stopChain } from '../../dev/chain.mjs';
import { run } from '../../dev/process.mjs';
import { PATH_USD, startTempo, TRANSFER_WITH_MEMO } from '../../dev/tempo.mjs';
import { Agent, ended } from '../lib/agent.mjs';
import { credentialOf, sendOnTempo, tempoClient } from '../lib/mpp.mjs';
import { freshAccount, paymentId } from '../lib/payment.mjs';
import { endWorld, freePort, program, startWorld } from '../lib/world.mjs';

const PRICE = 1000n;
const SECRET = 'a secret of the test server, thirty-two bytes or more';

// The official server, and a hand on its answers: `fault` is asked first, with the request's credential (null without).
class Shop {
    seen = [];
    fault = () => null;

    async open(world) {
        this.port = await freePort();
        this.merchant = freshAccount();
        const charge = tempo.charge({ currency: PATH_USD, recipient: this.merchant.address, getClient: () => tempoClient(world) });
        this.server = Mppx.create({ methods: [charge], secretKey: SECRET, realm: `127.0.0.1:${this.port}` });
        this.http = createServer((rq, answer) => this.#serve(rq, answer));
        await new Promise((done) => this.http.listen(this.port, '127.0.0.1', done));
        this.url = `http://127.0.0.1:${this.port}`;
    }

    async #serve(rq, answer) {
        const paid = rq.headers.authorization?.split(', ').find((each) => each.startsWith('Payment ')) ?? null;
        if (paid)
            this.seen.push(credentialOf(paid));
        const fault = await this.fault(paid && this.seen.at(-1));
        if (fault === 'cut')
            return answer.destroy();
        if (fault)
            return answer.writeHead(fault.status, fault.headers).end(fault.body ?? '');
        const headers = Object.entries(rq.headers).map(([name, value]) => [name, String(value)]);
        const result = await this.server.charge({ amount: rq.url.includes('dear') ? '0.5' : '0.001', chainId: 42431 })(new Request(this.url + rq.url, { headers }));
        const response = result.status === 402 ? result.challenge : result.withReceipt(Response.json({ bought: rq.url }));
        answer.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
    }
}

describe('payonce pay on MPP', () => {
    const world = { dir: mkdtempSync(join(tmpdir(), 'payonce-')) };
    const shop = new Shop();

    before(async () => {
        world.tempo = await startTempo({ dir: join(world.dir, 'tempo'), port: await freePort() });
        world.payonce = (args, { env = {} } = {}) => run(program, args.map(String), { env, cwd: world.dir });
        await shop.open(world);
        world.gateway = shop.url;
    });
    after(async () => {
        shop.http?.close();
        if (world.tempo)
            await stopChain(world.tempo, 'SIGKILL');
        rmSync(world.dir, { recursive: true, force: true });
    });

    async function newAgent() {
        const agent = new Agent(world, freshAccount());
        await world.tempo.fund(agent.payer.address, 1_000_000n);
        shop.seen = [];
        shop.fault = () => null;
        return agent;
    }
    const buy = (agent, where, args = [], options) => agent.pay(where, ['--rpc', world.tempo.rpc.url, ...args], options);
    const paymentsOf = async (agent) => (await world.tempo.allTransfers(PATH_USD, shop.merchant.address))
        .filter(({ from }) => from === agent.payer.address.toLowerCase());

    for (const mode of ['push', 'pull'])
        test(`${mode}: bought once, also when the same command is run again`, async () => {
            const agent = await newAgent();
            const id = paymentId();
            const first = ended(await buy(agent, `/${mode}`, ['--id', id, '--mode', mode]), 0);
            assert.deepEqual(JSON.parse(first.body), { bought: `/${mode}` });
            assert.deepEqual([first.status, first.mode, first.network, first.amount, first.asset.toLowerCase()],
                [200, mode, 'eip155:42431', '1000', PATH_USD]);
            assert.equal(shop.seen[0].payload.type, mode === 'push' ? 'hash' : 'transaction');
            const receipt = await world.tempo.receipt(first.transaction);
            assert.equal(receipt.status, '0x1');
            assert.ok(receipt.logs.some(({ topics }) => topics[0] === TRANSFER_WITH_MEMO));
            assert.equal(agent.intent().state, 'done');

            // The official server refuses the credential that it has served; nothing new is signed for that.
            const again = ended(await buy(agent, `/${mode}`, ['--id', id]), 7);
            assert.match(again.message, /this one was paid/);
            assert.equal(shop.seen[1].payload.hash ?? shop.seen[1].payload.signature,
                shop.seen[0].payload.hash ?? shop.seen[0].payload.signature);
            assert.deepEqual((await paymentsOf(agent)).map(({ amount }) => amount), [PRICE]);
        });

    test('push is chosen where both are taken; without a node nothing is signed', async () => {
        const agent = await newAgent();
        assert.match(ended(await agent.pay('/bare'), 2).message, /--rpc/);
        assert.deepEqual(agent.intents(), []);
        assert.equal(ended(await buy(agent, '/bare'), 0).mode, 'push');
    });

    test('caps and filters hold before anything is signed', async () => {
        const agent = await newAgent();
        ended(await buy(agent, '/caps', ['--max', '999']), 5);
        ended(await buy(agent, '/caps', ['--max-day', '999']), 5);
        ended(await buy(agent, '/caps', ['--network', 'eip155:4217']), 3);
        ended(await buy(agent, '/caps', ['--asset', `0x${'22'.repeat(20)}`]), 3);
        assert.deepEqual(agent.intents(), []);
        assert.deepEqual(await paymentsOf(agent), []);
    });

    for (const mode of ['push', 'pull'])
        test(`${mode}: answers that are lost, 503s and a cut connection: the same payment again, one charge`, async () => {
            const agent = await newAgent();
            const faults = ['cut', { status: 503, headers: { 'retry-after': '1' } }, 'cut'];
            shop.fault = (credential) => (credential && faults.length > 0 ? faults.shift() : null);
            const json = ended(await buy(agent, `/faults/${mode}`, ['--mode', mode]), 0);
            assert.equal(json.attempt, 0);
            assert.equal(shop.seen.length, 4);
            assert.equal(new Set(shop.seen.map(({ payload }) => payload.hash ?? payload.signature)).size, 1);
            assert.equal((await paymentsOf(agent)).length, 1);
        });

    test('a 402 after the payment: the chain shows it paid, and nothing new is signed', async () => {
        const agent = await newAgent();
        shop.fault = (credential) => (credential ? { status: 402, headers: { 'content-type': 'application/problem+json' } } : null);
        assert.match(ended(await buy(agent, '/lies'), 7).message, /was paid/);
        assert.equal((await paymentsOf(agent)).length, 1);
        shop.fault = () => null;
        ended(await buy(agent, '/lies'), 0); // another purchase: the first is over, as far as the agent can tell
        assert.equal((await paymentsOf(agent)).length, 2);
    });

    test('pull: a server that never sends it; past its deadline the chain proves it dead, and one other is signed', async () => {
        const agent = await newAgent();
        const id = paymentId();
        let sit = true;
        shop.fault = (credential) => (credential && sit ? { status: 503, headers: { 'retry-after': '1' } } : null);
        ended(await buy(agent, '/idle', ['--mode', 'pull', '--id', id, '--wait', '2']), 4);
        const first = agent.intent();
        const deadline = Number(first.authorization.validBefore);
        while ((await world.tempo.block()).time < deadline)
            await new Promise((done) => setTimeout(done, 500));
        sit = false;
        const json = ended(await buy(agent, '/idle', ['--id', id, '--mode', 'pull']), 0);
        assert.equal(json.attempt, 1);
        assert.equal(agent.intent().past[0].fate, 'expired');
        assert.equal(agent.intent().past[0].transaction, first.transaction);
        assert.equal((await paymentsOf(agent)).length, 1);
    });

    test('push: the store is lost and the id is kept: the chain says so, and nothing is paid twice', async () => {
        const agent = await newAgent();
        const id = paymentId();
        ended(await buy(agent, '/lost', ['--id', id]), 0);
        rmSync(agent.store, { recursive: true });
        assert.match(ended(await buy(agent, '/lost', ['--id', id]), 7).message, /sent its transaction before/);
        assert.equal((await paymentsOf(agent)).length, 1);
    });

    test('push: two stores, one id, at once: the chain takes one of the two', async () => {
        const agent = await newAgent();
        const id = paymentId();
        const stores = ['one', 'two'].map((name) => join(agent.dir, name));
        const runs = await Promise.all(stores.map((store) => buy(agent, '/twins', ['--id', id, '--wait', '8'], { store })));
        const codes = runs.map(({ code }) => code);
        assert.ok(codes.includes(0) && codes.every((code) => [0, 4, 7].includes(code)), codes.join());
        assert.equal((await paymentsOf(agent)).length, 1);
    });

    test('push: killed before and after it is broadcast: the next run sends the same transaction', async (t) => {
        for (const point of ['pay_push', 'pay_pushed', 'pay_stored', 'pay_answered']) {
            const agent = await newAgent();
            const env = { PAYONCE_FAILPOINT: point };
            const args = ['pay', '--json', '--key-file', agent.keyFile, '--store', agent.store, '--rpc', world.tempo.rpc.url];
            const killed = await world.payonce([...args, `${shop.url}/killed`], { env });
            if (killed.code === 0)
                return t.skip('no failpoints in this build');
            const { transaction } = agent.intent();
            const json = ended(await buy(agent, '/killed'), point === 'pay_answered' ? 7 : 0);
            assert.equal(agent.intent().transaction, transaction);
            assert.equal(json.attempt, 0);
            assert.equal((await paymentsOf(agent)).length, 1, point);
        }
    });

    test('push: the transaction is mined and fails: dead as well, and the next attempt pays', async (t) => {
        const agent = await newAgent();
        const id = paymentId();
        const more = ['--id', id, '--max', '500000', '--rpc', world.tempo.rpc.url];
        const running = world.payonce(['pay', '--json', '--key-file', agent.keyFile, '--store', agent.store, ...more,
            '--wait', '20', `${shop.url}/dear`], { env: { PAYONCE_FAILPOINT: 'pay_push=4000' } });
        for (const end = Date.now() + 20_000; agent.intents().length === 0 && Date.now() < end;)
            await new Promise((done) => setTimeout(done, 50));
        const drained = await sendOnTempo(world, agent.payer.account, 'transfer', [shop.merchant.address, 700_000n]);
        assert.equal(drained.status, 'success');
        const first = await running;
        if (first.code === 0)
            return t.skip('no failpoints in this build');
        assert.equal(first.code, 3, first.stdout);
        assert.match(JSON.parse(first.stdout).message, /mined and failed/);
        assert.deepEqual([agent.intent().attempt, shop.seen.length], [0, 0]);
        await world.tempo.fund(agent.payer.address, 1_000_000n);
        const json = ended(await buy(agent, '/dear', ['--id', id, '--max', '500000']), 0);
        assert.equal(json.attempt, 1);
        assert.equal(agent.intent().past[0].fate, 'void');
        const paid = (await paymentsOf(agent)).map(({ amount }) => amount).filter((amount) => amount !== 700_000n);
        assert.deepEqual(paid, [500_000n]);
    });

    test("the caller's own Authorization stays beside the payment", async () => {
        const agent = await newAgent();
        const headers = [];
        shop.http.on('request', (rq) => headers.push(rq.headers.authorization));
        ended(await buy(agent, '/both', ['--header', 'Authorization: Bearer abc']), 0);
        assert.equal(headers[0], 'Bearer abc');
        assert.match(headers[1], /^Bearer abc, Payment [A-Za-z0-9_-]+$/);
    });
});

describe('payonce pay on MPP, at a gateway of ours that sells on both rails', () => {
    let world;
    before(async () => { world = await startWorld({ tempo: {} }); });
    after(() => world && endWorld(world));

    async function newAgent() {
        const agent = new Agent(world, freshAccount());
        await world.tempo.fund(agent.payer.address, 1_000_000n);
        return agent;
    }

    for (const mode of ['push', 'pull'])
        test(`${mode}: an order is placed once; the same command again has the same answer`, async () => {
            const agent = await newAgent();
            const args = ['--id', paymentId(), '--data', '{"item":"tea","quantity":2}', '--mode', mode, '--rpc', world.tempo.rpc.url];
            const first = ended(await agent.pay('/shop/orders', args), 0);
            assert.deepEqual([first.status, first.mode, first.network, first.amount], [201, mode, 'eip155:42431', '50000']);
            const again = ended(await agent.pay('/shop/orders', args), 0);
            assert.equal(again.body, first.body);
            assert.equal(again.replayed, true);
            assert.equal(again.transaction, first.transaction);
            assert.equal((await world.orderCounts())[first.order_id], 1);
            const paid = (await world.tempo.allTransfers(PATH_USD, world.payTo))
                .filter(({ from }) => from === agent.payer.address.toLowerCase());
            assert.deepEqual(paid.map(({ amount }) => amount), [50_000n]);
        });

    test('without --mode and --network it is paid as before, over x402', async () => {
        const agent = new Agent(world, await world.newPayer());
        const json = ended(await agent.pay('/iso/countries?code=FR'), 0);
        assert.deepEqual([json.network, json.mode], ['eip155:84532', undefined]);
    });
});
