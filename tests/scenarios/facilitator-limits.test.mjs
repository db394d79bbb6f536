// What one seller does is no other's trouble, a limit is one also in a crowd, and a clock that is wrong makes no wrong answer.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { secretFile } from '../../dev/place.mjs';
import { cancel } from '../drills/lib/payer.mjs';
import { ask, inWorldOf, requirements, rival, rivalKey, sellers, settle, shop, status, submitBySomebody, transfers } from '../lib/facilitator.mjs';
import { asOwner } from '../lib/ledger.mjs';
import { behindStubs } from '../lib/stub.mjs';
import { inWorld } from '../lib/world.mjs';

const secret = `whsec_${randomBytes(32).toString('base64')}`;

async function listen(answer) {
    const heard = [];
    const server = createServer((rq, rs) => {
        const chunks = [];
        rq.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
            heard.push(JSON.parse(Buffer.concat(chunks).toString('utf8')));
            answer?.(rs);
        });
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const close = () => {
        server.closeAllConnections();
        return new Promise((done) => server.close(done));
    };
    return { heard, url: `http://127.0.0.1:${server.address().port}/hook`, close };
}

// A world whose sellers have webhooks that answer so: world.hooks, by the seller's name.
const hooked = (answers, options, body) => inWorld({
    ...options,
    beforeConfig: async (world) => {
        const file = secretFile(join(world.dir, 'whsec'), secret);
        world.hooks = {};
        for (const [name, answer] of Object.entries(answers))
            world.hooks[name] = await listen(answer);
        world.options.extra = { sellers: sellers().map((each) => ({ ...each, webhook: world.hooks[each.name].url, webhook_key_file: file })) };
    },
}, async (world) => {
    try {
        await body(world);
    } finally {
        for (const hook of Object.values(world.hooks))
            await hook.close();
    }
});
const hangs = undefined;
const hears = (rs) => rs.writeHead(204).end();

test('a webhook that hangs keeps no other seller\'s news waiting', hooked(
    { shop: hangs, rival: hears }, {}, async (world) => {
        const { hooks } = world;
        const payers = await world.newPayers(40);
        const settled = await Promise.all(payers.map(async (payer) => settle(world, await ask(payer))));
        assert.deepEqual(settled.filter(({ json }) => !json.success), []);
        await world.waitFor(() => hooks.shop.heard.length >= 8, 'the one that hangs is being told');
        const theirs = await ask(payers[0], { required: requirements({ payTo: rival }) });
        const { json } = await settle(world, theirs, { key: rivalKey });
        await world.waitFor(() => hooks.rival.heard.length > 0, 'the other is told meanwhile', 8_000);
        const [{ seller, data }] = hooks.rival.heard;
        assert.deepEqual([seller, data.transaction], ['rival', json.transaction]);
        assert.ok(hooks.shop.heard.every((each) => each.seller === 'shop'));
    }));

test('a nonce that the payer cancelled is told as void, to the webhook too', hooked(
    { shop: hears, rival: hears }, { roles: ['gateway'] }, async (world) => {
        const { heard } = world.hooks.shop;
        const payer = await world.newPayer();
        const body = await ask(payer);
        const first = settle(world, body, { signal: AbortSignal.timeout(2_000), agent: false }).catch(() => null);
        await world.waitFor(async () => (await status(world, body)).status === 200, 'it is stored');
        await first;
        assert.ok(await cancel(world, payer, body.paymentPayload.payload));
        await world.startRole('settler');
        await world.waitFor(() => heard.length > 0, 'it is told', 60_000);
        assert.equal(heard[0].type, 'settlement.void');
        const { json } = await settle(world, body);
        assert.deepEqual([json.success, json.errorReason], [false, 'invalid_exact_evm_nonce_already_used']);
    }));

test('a day\'s limit is one also when many ask at once, of two gateways', inWorld(inWorldOf({ shop: { max_per_day: 10 } }), async (world) => {
    const second = await world.addGateway('gateway2', { extra: world.options.extra });
    const payers = await world.newPayers(40);
    const bodies = await Promise.all(payers.map((payer) => ask(payer)));
    const answers = await Promise.all(bodies.map((body, i) => settle(world, body, { base: i % 2 ? second : world.gateway })));
    assert.equal(answers.filter(({ json }) => json.success).length, 10);
    const refused = answers.filter(({ json }) => !json.success);
    assert.deepEqual([...new Set(refused.map(({ json }) => json.errorReason))], ['seller_limit_reached']);
    const made = await Promise.all(payers.map((payer) => transfers(world, payer)));
    assert.equal(made.flat().length, 10);
}));

test('dead by the chain\'s clock, with time left by ours: it is told why', inWorld(
    inWorldOf({ shop: { wait_ms: 300, repeat_wait_ms: 30_000 } }, { roles: ['gateway'] }), async (world) => {
        const payer = await world.newPayer();
        const body = await ask(payer, { required: requirements({ maxTimeoutSeconds: 30 }) });
        assert.equal((await settle(world, body)).json.errorReason, 'settlement_pending');
        const { nonce, validBefore } = body.paymentPayload.payload.authorization;
        const later = await ask(payer, { authorization: { change: { nonce, validBefore: String(Number(validBefore) + 80) } } });
        const waiting = settle(world, later);
        await world.waitFor(async () => (await world.sql('SELECT 1 FROM other_signatures')).length === 1, 'it is kept');
        await world.chain.warp(300);
        await world.chain.mine(3);
        await world.startRole('settler');
        const { status: http, json } = await waiting;
        assert.deepEqual([http, json.success, json.errorReason],
            [200, false, 'invalid_exact_evm_payload_authorization_valid_before'], JSON.stringify(json));
    }));

test('the facts of a nonce that was used before are told also by a node that denies receipts', behindStubs(1, inWorldOf(), async (world) => {
    const payer = await world.newPayer();
    const body = await ask(payer);
    const receipt = await submitBySomebody(world, body.paymentPayload.payload);
    (world.notOurs ??= new Set()).add(receipt.transactionHash);
    world.stub.acts.eth_getTransactionReceipt = () => null;
    const { json } = await settle(world, body);
    assert.deepEqual([json.success, json.transaction, json.extra?.payTo], [false, receipt.transactionHash, shop], JSON.stringify(json));
    world.stub.honest();
}));

// Far from its limit a gateway goes by a count some seconds old. Meanwhile others may take all that was left.
test('a day\'s limit that others reached since it was counted is passed by a few hundred at most', inWorld(
    inWorldOf({ shop: { max_per_day: 20_000 } }, { gasLimit: 100_000_000 }), async (world) => {
        const payers = await world.newPayers(64);
        const first = await settle(world, await ask(payers[0]));
        assert.equal(first.json.success, true, first.text);
        const bodies = await Promise.all(Array.from({ length: 960 }, (_, i) => ask(payers[i % payers.length])));
        await world.restart('gateway');
        await asOwner(world, `INSERT INTO orders (id, receipt, rail, wire_version, tool, side_effect, cacheable, idempotent, method, target,
                request, payer, network, asset, payee, amount, work, seller)
            SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), decode(lpad(to_hex(n), 32, '0'), 'hex'), rail, wire_version, 'of others',
                side_effect, cacheable, idempotent, method, target, request, payer, network, asset, payee, amount, work, seller
              FROM orders, generate_series(1, 20000) n`);
        const answers = await Promise.all(bodies.map((body) => settle(world, body)));
        await asOwner(world, `SET session_replication_role = replica; DELETE FROM orders WHERE tool = 'of others'`);
        const refused = answers.filter(({ json }) => json.errorReason === 'seller_limit_reached');
        const [{ n }] = await world.sql(`SELECT count(*)::int - 1 AS n FROM orders WHERE seller = 'shop'`);
        assert.equal(n + refused.length, bodies.length);
        assert.ok(n <= 500, `${n} were taken over the limit`);
    }));
