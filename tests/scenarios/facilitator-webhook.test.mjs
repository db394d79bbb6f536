// A seller's webhook hears how each settlement ended: signed, until it says yes, the same news under the same id.
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { secretFile } from '../../dev/place.mjs';
import { ask, requirements, sellers, settle, status, submitBySomebody } from '../lib/facilitator.mjs';
import { inWorld } from '../lib/world.mjs';

const secret = randomBytes(32);

// Answers with the statuses it is given, in turn, then 204. `heard` has every request.
async function listen(statuses = []) {
    const heard = [];
    const server = createServer((rq, rs) => {
        const chunks = [];
        rq.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
            heard.push({ at: Date.now(), headers: rq.headers, text: Buffer.concat(chunks).toString('utf8') });
            rs.writeHead(statuses.shift() ?? 204).end();
        });
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address();
    return { heard, url: `http://127.0.0.1:${port}/hook`, close: () => new Promise((done) => server.close(done)) };
}

function checkSignature({ at, headers, text }) {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
    assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`);
    assert.ok(Math.abs(Number(headers['webhook-timestamp']) - at / 1000) < 30);
    assert.equal(JSON.parse(text).id, headers['webhook-id']);
}

const withHook = (hook, options = {}, more = {}) => ({
    ...options,
    beforeConfig: (world) => {
        const file = secretFile(join(world.dir, 'whsec'), `whsec_${secret.toString('base64')}`);
        world.options.extra = { sellers: sellers({ shop: { webhook: hook.url, webhook_key_file: file, ...more } }) };
    },
});

const hook = await listen([500, 301]);
test('settled is told until it is heard, under one id, also after the gateway was killed', inWorld(withHook(hook), async (world) => {
    const payer = await world.newPayer();
    const body = await ask(payer);
    const { json } = await settle(world, body);
    await world.waitFor(() => hook.heard.length >= 1, 'it is told');
    await world.kill9('gateway');
    await world.startRole('gateway');
    // killed before the first try was noted, it is tried again when its claim is over, a minute later
    await world.waitFor(() => hook.heard.length >= 3, 'it is told until it is heard', 120_000);
    hook.heard.forEach(checkSignature);
    assert.equal(new Set(hook.heard.map(({ headers }) => headers['webhook-id'])).size, 1);
    const { type, data, seller } = JSON.parse(hook.heard[2].text);
    assert.deepEqual([type, seller, data.status, data.transaction], ['settlement.settled', 'shop', 'settled', json.transaction]);
    await world.waitFor(async () => /webhook told .*HTTP 204/.test((await world.payonce(['explain', data.order_id])).stdout), 'it is noted');
    const page = (await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` })).text;
    assert.match(page, /payonce_webhooks_total\{result="told"\} 1/);
    await hook.close();
}));

const busy = await listen([500, 503, 429]);
test('each pause is twice the one before', { timeout: 120_000 }, inWorld(withHook(busy), async (world) => {
    try {
        const { json } = await settle(world, await ask(await world.newPayer()));
        assert.equal(json.success, true);
        await world.waitFor(() => busy.heard.length >= 4, 'it is told until it is heard', 60_000);
        const pauses = busy.heard.slice(1).map(({ at }, i) => (at - busy.heard[i].at) / 1000);
        for (const [i, least] of [5, 10, 20].entries())
            assert.ok(pauses[i] > least - 0.5 && pauses[i] < least + 10, `pauses of ${pauses} s`);
        await world.pause(1_500);
        assert.equal(busy.heard.length, 4, 'then it is told no more');
    } finally {
        await busy.close();
    }
}));

const deaf = await listen();
test('expired is told too, and a payment by somebody else as settled', inWorld(
    withHook(deaf, { roles: ['gateway'] }, { wait_ms: 300 }), async (world) => {
        const [one, two] = await world.newPayers(2);
        const dead = await ask(one, { required: requirements({ maxTimeoutSeconds: 30 }) }), alive = await ask(two);
        for (const body of [dead, alive])
            assert.equal((await settle(world, body)).json.errorReason, 'settlement_pending');
        const receipt = await submitBySomebody(world, alive.paymentPayload.payload);
        assert.equal(deaf.heard.length, 0, 'what is not over is not told');
        await world.chain.warp(60);
        await world.chain.mine(3);
        await world.startRole('settler');
        await world.waitFor(() => deaf.heard.length === 2, 'both are told');
        const told = Object.fromEntries(deaf.heard.map(({ text }) => JSON.parse(text)).map(({ type, data }) => [type, data]));
        assert.equal(told['settlement.settled'].transaction, receipt.transactionHash);
        assert.equal(told['settlement.expired'].payer, one.address.toLowerCase());
        assert.equal((await status(world, dead)).json.status, 'expired');
        await deaf.close();
    }));

test('a gateway without its webhook\'s key does not start, and doctor says so', inWorld({ roles: ['settler'] }, async (world) => {
    const config = world.writeConfig('keyless', world.ports,
        { extra: { sellers: sellers({ shop: { webhook: 'http://127.0.0.1:1/', webhook_key_file: '/nonexistent' } }) } });
    const { code, stderr } = await world.payonce(['gateway'], { config });
    assert.equal(code, 1);
    assert.match(stderr, /sellers\[0\]\.webhook_key_file must name a file of mode 0600/);
    const doctor = await world.payonce(['doctor'], { config });
    assert.match(doctor.stdout, /FAIL +webhook key +shop/);
    assert.match(doctor.stdout, /warn +seller +shop: is open without max_per_day/);
    assert.match(doctor.stdout, /ok +seller +rival: with a key/);
}));
