// payonce pay: whatever breaks on its way, one purchase is one signature until the chain itself has buried it, and one
// charge; and its exit status says what to do next.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { USDC } from '../../dev/usdc.mjs';
import { ended, FUNDS, newAgent } from '../lib/agent.mjs';
import { authorize, freshAccount, paymentId } from '../lib/payment.mjs';
import { endWorld, startWorld, testTools } from '../lib/world.mjs';

const SHORT_S = 20;
const READ = '/test/read?n=1';
const SHORT = '/test/short';
const ORDER = ['--data', '{"item":"tea","quantity":2}'];
const shortTool = { ...testTools[0], name: 'short', path: SHORT, timeout_ms: 2_000, max_timeout_s: SHORT_S };
const options = { extra: { wait_ms: 3_000 } };

const runsOf = async (world, target) => (await world.calls()).filter((call) => call.target === target).length;
const ordersOf = (world, agent) => world.sql(`SELECT * FROM order_status
    WHERE payer = decode('${agent.payer.address.slice(2)}', 'hex')`);
const signaturesOf = (world, agent) => world.sql(`SELECT a.nonce, a.state FROM authorizations a
    WHERE payer = decode('${agent.payer.address.slice(2)}', 'hex')`);

describe('payonce pay, all well', () => {
    let world;
    before(async () => { world = await startWorld(options); });
    after(() => world && endWorld(world));

    test('a read: the answer, the price and nothing more, a receipt that can be read', async () => {
        const agent = await newAgent(world);
        const paidBefore = await world.chain.balanceOf(world.payTo);
        const json = ended(await agent.pay('/iso/countries?code=FR'), 0);
        assert.equal(JSON.parse(json.body).alpha_2, 'FR');
        assert.deepEqual([json.status, json.charged, json.replayed, json.attempt], [200, true, false, 0]);
        assert.deepEqual([json.payer, json.network, json.asset, json.amount],
            [agent.payer.address, 'eip155:84532', USDC, '1000']);
        assert.match(json.transaction, /^0x[0-9a-f]{64}$/);
        assert.match(json.order_id, /^ord_[0-9a-f]{32}$/);
        assert.equal(await agent.spent(), 1000n);
        assert.equal(await world.chain.balanceOf(world.payTo), paidBefore + 1000n);

        assert.ok(json.receipt.startsWith(`${world.gateway}/receipts/rcp_`), json.receipt);
        const receipt = (await world.request(json.receipt.slice(world.gateway.length))).json;
        assert.equal(receipt.status, 'paid');
        assert.equal(receipt.payment.transaction, json.transaction);
        assert.equal(receipt.payment_id, json.payment_id);
        assert.equal(agent.intent().state, 'done');
    });

    test('a write: carried out once, also when the same command is run again', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        const first = ended(await agent.pay('/shop/orders', ['--id', id, ...ORDER]), 0);
        const again = ended(await agent.pay('/shop/orders', ['--id', id, ...ORDER]), 0);
        assert.equal(first.payment_id, id);
        assert.equal(again.body, first.body);
        assert.equal(again.replayed, true);
        assert.equal(again.transaction, first.transaction);
        assert.equal(await agent.spent(), 50_000n);
        assert.equal((await world.orderCounts())[first.order_id], 1);
        assert.equal((await signaturesOf(world, agent)).length, 1);
    });

    test('without --json the body alone is on standard output', async () => {
        const agent = await newAgent(world);
        const args = ['pay', '--key-file', agent.keyFile, '--store', agent.store];
        const { code, stdout, stderr } = await world.payonce([...args, `${world.gateway}/iso/currencies?code=EUR`]);
        assert.equal(code, 0, stderr);
        assert.equal(JSON.parse(stdout).alpha_3, 'EUR');
        assert.match(stderr, /stored .*\n[^]*receipt .*\/receipts\/rcp_/);
        assert.ok(!stderr.includes(agent.payer.key.slice(2)), 'the key is shown');
    });

    test('a store that was lost: the same id makes the same nonce, one charge, the same answer', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        const first = ended(await agent.pay(READ, ['--id', id]), 0);
        const { nonce } = agent.intent().authorization;
        rmSync(agent.store, { recursive: true });
        for (const more of [[], ['--rpc', world.rpcUrl]]) {
            const again = ended(await agent.pay(READ, ['--id', id, ...more]), 0);
            assert.equal(agent.intent().authorization.nonce, nonce);
            assert.equal(again.transaction, first.transaction);
            assert.equal(again.body, first.body);
            assert.equal(again.charged, false);
            rmSync(agent.store, { recursive: true });
        }
        assert.equal(await agent.spent(), 1000n);
        assert.equal((await ordersOf(world, agent)).length, 1);
    });

    test('an id is for one call: another one under it is refused before anything is sent', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        ended(await agent.pay(READ, ['--id', id]), 0);
        ended(await agent.pay('/test/read?n=2', ['--id', id]), 2);
        assert.equal(await agent.spent(), 1000n);
    });

    test('a store that cannot be written: nothing is sent', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        const file = join(agent.dir, 'a file');
        writeFileSync(file, '');
        ended(await agent.pay('/test/read?unstored', [], { store: join(file, 'store') }), 1);

        // The directory is fine and the intent's own file is not, which shows only after the price was asked.
        const name = createHash('sha256').update(`${agent.payer.address.toLowerCase()}\n${id}`).digest('hex');
        mkdirSync(join(agent.store, `${name}.json.tmp`), { recursive: true });
        const json = ended(await agent.pay('/test/read?unstored', ['--id', id]), 1);
        assert.match(json.message, /nothing was sent/);
        assert.equal(await runsOf(world, '/test/read?unstored'), 0);
        assert.deepEqual(await ordersOf(world, agent), []);
        assert.equal(await agent.spent(), 0n);
    });

    test('an intent that cannot be read: nothing is signed beside it', async () => {
        const agent = await newAgent(world);
        mkdirSync(agent.store);
        writeFileSync(join(agent.store, `${'0'.repeat(64)}.json`), '{"half');
        ended(await agent.pay(READ), 1);
        assert.equal(await agent.spent(), 0n);
    });

    test('over the caps nothing is signed', async () => {
        const agent = await newAgent(world);
        assert.match(ended(await agent.pay(READ, ['--max', '999']), 5).message, /--max 999/);
        assert.deepEqual(agent.intents(), []);
        ended(await agent.pay(READ, ['--max', '1000', '--max-day', '1999', '--new']), 0);
        assert.match(ended(await agent.pay(READ, ['--max-day', '1999', '--new']), 5).message, /--max-day 1999/);
        assert.equal(agent.intents().length, 1);
        ended(await agent.pay(READ, ['--max-day', '2000', '--new']), 0);
        assert.equal(await agent.spent(), 2000n);
    });

    test('offers outside of --network and --asset are not taken', async () => {
        const agent = await newAgent(world);
        ended(await agent.pay(READ, ['--network', 'eip155:8453']), 3);
        ended(await agent.pay(READ, ['--asset', `0x${'22'.repeat(20)}`]), 3);
        assert.deepEqual(agent.intents(), []);
    });

    test('the upstream says 404: its answer, not charged, and again with the same authorization', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        const json = ended(await agent.pay('/iso/countries?code=XX', ['--id', id]), 3);
        assert.deepEqual([json.status, json.charged], [404, false]);
        const { signature } = agent.intent();
        ended(await agent.pay('/iso/countries?code=XX', ['--id', id]), 3);
        assert.equal(agent.intent().signature, signature);
        assert.equal(await agent.spent(), 0n);
    });

    test('a write whose outcome is unknown: in review, not repeated, not charged', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        const where = '/test/write?status=500&lost';
        const first = ended(await agent.pay(where, ['--id', id, '--data', '{}']), 6);
        const again = ended(await agent.pay(where, ['--id', id, '--data', '{}']), 6);
        assert.equal(again.order_id, first.order_id);
        assert.equal(agent.intent().state, 'review');
        assert.equal(await runsOf(world, where), 1);
        assert.equal(await agent.spent(), 0n);
    });

    test('two runs of one id at once: one charge', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        const where = '/test/read?delay_ms=700&twins';
        const runs = await Promise.all([1, 2, 3].map(() => agent.pay(where, ['--id', id])));
        const codes = runs.map(({ code }) => code);
        assert.ok(codes.includes(0) && codes.every((code) => code === 0 || code === 4), codes.join());
        assert.equal(ended(await agent.pay(where, ['--id', id]), 0).replayed, true);
        assert.equal(await agent.spent(), 1000n);
        assert.equal(await runsOf(world, where), 1);
    });

    test('two runs of one id at once from two stores, as if on two machines: one charge, one answer', async () => {
        const agent = await newAgent(world);
        const id = paymentId();
        const where = '/test/read?delay_ms=700&machines';
        const stores = ['one', 'two'].map((name) => join(agent.dir, name));
        const runs = await Promise.all(stores.map((store) => agent.pay(where, ['--id', id], { store })));
        const [one, two] = runs.map((result) => ended(result, 0));
        assert.equal(one.body, two.body);
        assert.equal(one.transaction, two.transaction);
        assert.equal(await agent.spent(), 1000n);
        assert.equal(await runsOf(world, where), 1);
    });

    test('two runs of one call at once, no id: one purchase', async () => {
        const agent = await newAgent(world);
        const where = '/test/read?delay_ms=700&twins=anonymous';
        const runs = await Promise.all([agent.pay(where), agent.pay(where)]);
        assert.deepEqual(runs.map(({ code }) => code).sort(), [0, 4]);
        assert.equal(await agent.spent(), 1000n);
    });

    test('usage', async () => {
        const agent = await newAgent(world);
        for (const args of [['--id', 'short'], ['--id', paymentId(), '--new'], ['--max', '1e3'], ['--wait', '-1'],
            ['--header', 'Host: x'], ['--header', 'X-PAYMENT: x'], ['--no-such-option']])
            assert.equal((await agent.pay(READ, args)).code, 2, args.join(' '));
        const { code, stdout } = await world.payonce(['pay', '--help']);
        assert.equal(code, 0);
        assert.match(stdout, /^usage: payonce pay /);
    });

    test('a call that the server refuses before any payment: exit 8, nothing signed', async () => {
        const agent = await newAgent(world);
        const large = join(agent.dir, 'large');
        writeFileSync(large, 'x'.repeat(300_000));
        const wrong = [['/nothing', [], 404], ['/test/read', ['--method', 'DELETE'], 405], ['/payments/x', [], 400],
            ['/test/write', ['--data', `@${large}`], 413]];
        for (const [where, args, status] of wrong) {
            const json = ended(await agent.pay(where, args), 8);
            assert.deepEqual([json.status, json.payment_id && json.transaction], [status, null], where);
            assert.match(json.message, /nothing was signed/);
        }
        assert.deepEqual(agent.intents(), []);
        const { stdout } = await world.payonce(['pay', '--help']);
        assert.match(stdout, /8 the server refused the call itself/);
    });

    test('nobody answers: exit 1, nothing signed', async () => {
        const agent = await newAgent(world);
        ended(await agent.pay('http://127.0.0.1:9/x', ['--wait', '0']), 1);
        assert.deepEqual(agent.intents(), []);
    });

    test('the gateway is killed while the payment is at work: the very same is sent again, and it ends', async () => {
        const agent = await newAgent(world);
        await world.stop('settler');
        const running = agent.pay('/test/read?n=killed', ['--wait', '60']);
        await world.waitFor(async () => (await ordersOf(world, agent))[0]?.status === 'settling', 'it waits for money');
        const { signature } = agent.intent();
        await world.kill9('gateway');
        await world.restart('gateway');
        await world.restart('settler');
        const json = ended(await running, 0);
        assert.equal(json.charged, json.replayed === false);
        assert.equal(agent.intent().signature, signature);
        assert.equal((await signaturesOf(world, agent)).length, 1);
        assert.equal(await agent.spent(), 1000n);
        assert.equal(await runsOf(world, '/test/read?n=killed'), 1);
    });
});

// Five purchases begun while no settler runs. Then the payer cancels one's nonce, and spends another's; time passes
// the deadlines of the short ones; the settler comes back.
describe('payonce pay, when the money does not move', () => {
    const names = ['resumed', 'expired', 'expired without --rpc', 'cancelled', 'spent elsewhere'];
    const agents = {}, intents = {}, ids = {};
    const elsewhere = freshAccount();
    let world, early;

    const target = (name) => name === 'resumed' ? '/test/read?resumed' : `${SHORT}?n=${names.indexOf(name)}`;
    const rpc = (name) => name === 'expired without --rpc' ? [] : ['--rpc', world.rpcUrl];
    const buy = (name, wait) => agents[name].pay(target(name), ['--id', ids[name], ...rpc(name), '--wait', wait]);

    async function cancel({ payer }, { nonce }) {
        const signature = await payer.account.signTypedData({
            domain: { name: 'USDC', version: '2', chainId: 84532, verifyingContract: USDC },
            types: {
                CancelAuthorization: [{ name: 'authorizer', type: 'address' }, { name: 'nonce', type: 'bytes32' }],
            },
            primaryType: 'CancelAuthorization', message: { authorizer: payer.address, nonce },
        });
        await world.chain.write(elsewhere.address, 'cancelAuthorization', [payer.address, nonce, signature]);
    }

    async function spend({ payer }, { accepted, authorization: { nonce } }) {
        const { authorization: a, signature } = await authorize(payer, accepted,
            { change: { to: elsewhere.address, value: '7', nonce } });
        await world.chain.write(elsewhere.address, 'transferWithAuthorization',
            [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature]);
    }

    before(async () => {
        world = await startWorld({ ...options, tools: [...testTools, shortTool] });
        await world.stop('settler');
        await world.chain.giveGas(elsewhere.address);
        for (const name of names)
            [agents[name], ids[name]] = [await newAgent(world), paymentId()];
        const begun = await Promise.all(names.map((name) => buy(name, '1')));
        for (const result of begun)
            ended(result, 4);
        for (const name of names)
            intents[name] = agents[name].intent();
        await cancel(agents.cancelled, intents.cancelled.authorization);
        await spend(agents['spent elsewhere'], intents['spent elsewhere']);
        const last = Math.max(...names.slice(1).map((name) => Number(intents[name].authorization.validBefore)));
        early = await buy('expired', '1');
        await world.waitFor(async () => (await world.chain.block('finalized')).time >= last, 'they expire');
        await world.restart('settler');
    });
    after(() => world && endWorld(world));

    test('asked again before its end, the same authorization was sent', () => {
        ended(early, 4);
        assert.equal(early.json.attempt, 0);
    });

    test('the same command resumes: paid once, one signature ever', async () => {
        const json = ended(await buy('resumed', '60'), 0);
        assert.equal(json.attempt, 0);
        assert.equal(agents.resumed.intent().signature, intents.resumed.signature);
        assert.equal((await signaturesOf(world, agents.resumed)).length, 1);
        assert.equal(await agents.resumed.spent(), 1000n);
        assert.equal(await runsOf(world, target('resumed')), 1);
    });

    for (const [name, fate, gone] of [['expired', 'expired', 0n], ['cancelled', 'void', 0n],
        ['spent elsewhere', 'void', 7n]])
        test(`${name}: proven dead, so the next attempt pays, once`, async () => {
            const json = ended(await buy(name, '60'), 0);
            assert.equal(json.attempt, 1);
            const { past, authorization } = agents[name].intent();
            assert.equal(past.length, 1);
            assert.equal(past[0].fate, fate);
            assert.equal(past[0].signature, intents[name].signature);
            assert.notEqual(authorization.nonce, past[0].authorization.nonce);
            assert.equal(await agents[name].spent(), 1000n + gone);
            const states = (await signaturesOf(world, agents[name])).map(({ state }) => state).sort();
            assert.deepEqual(states, [fate, 'settled'].sort());
            assert.equal(await runsOf(world, target(name)), 1, 'the work was repeated');
        });

    test('expired, but no chain to prove it by: no second signature', async () => {
        const name = 'expired without --rpc';
        const json = ended(await buy(name, '60'), 3);
        assert.match(json.message, /--rpc/);
        const { signature, attempt, past } = agents[name].intent();
        assert.deepEqual([signature, attempt, past], [intents[name].signature, 0, undefined]);
        assert.equal(await agents[name].spent(), 0n);
    });
});
