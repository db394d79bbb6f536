// What may be asked without paying: an order's state by its payment id, the price of a call whose id is known, and the
// operator's figures. None of it tells an answer, moves money or asks for money that may be moving.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { portTaken } from '../../dev/place.mjs';
import { run } from '../../dev/process.mjs';
import { hex32, now, paymentId } from '../lib/payment.mjs';
import { root } from '../lib/paths.mjs';
import { freePort, inWorld, program } from '../lib/world.mjs';

const READ = '/test/read';
const POST = { method: 'POST', body: '{"n":1}' };
const WRITE = '/test/write';
const scenario = (name, options, body) => test(name, { timeout: 300_000 }, inWorld(options, body));

const withKey = (id, options = {}) => ({ ...options, headers: { 'idempotency-key': id } });
const payment = async (world, id) => (await world.request(`/payments/${id}`)).json;

async function metrics(world, options = {}) {
    const answer = await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}`, ...options });
    assert.equal(answer.status, 200, answer.text);
    const values = {};
    for (const line of answer.text.split('\n').filter((each) => each && !each.startsWith('#'))) {
        const [, name, value] = line.match(/^(\S+) (\S+)$/) ?? assert.fail(`not a metric: ${line}`);
        assert.ok(!(name in values), `${name} twice`);
        values[name] = Number(value);
        assert.ok(Number.isFinite(values[name]), line);
    }
    return values;
}

// A call whose work is done and whose payment nobody sends.
async function unsent(world, path, options) {
    await world.stop('settler');
    const payer = await world.newPayer();
    const signed = await world.sign(payer, path, options);
    const answer = await world.send(path, signed, options);
    assert.equal(answer.status, 409, answer.text);
    assert.equal(answer.json.code, 'payment_in_flight');
    return signed;
}

// ---- GET /payments/{payment id} ----

scenario('/payments: not found, malformed, on its way, paid; never an answer', { extra: { wait_ms: 1_000 } },
    async (world) => {
    const id = paymentId();
    const unknown = await world.request(`/payments/${id}`);
    assert.equal(unknown.status, 404);
    assert.match(unknown.headers['content-type'], /^application\/json/);
    assert.deepEqual(unknown.json, { payment_id: id, status: 'not_found', retry_after: 5 });
    assert.equal(unknown.headers['retry-after'], '5');
    for (const bad of ['short', 'x'.repeat(129), 'a-payment-id.with-a-dot', 'a-payment-id/with-a-slash', '']) {
        const { status, json } = await world.request(`/payments/${bad}`);
        assert.deepEqual([status, json.code], [400, 'payment_id_form'], bad);
    }
    const posted = await world.request(`/payments/${id}`, { method: 'POST', body: '{}' });
    assert.deepEqual([posted.status, posted.headers.allow], [405, 'GET, HEAD']);

    const secret = hex32().slice(2);
    const options = { id, ...POST, body: secret };
    const signed = await unsent(world, WRITE, options);
    const settling = await payment(world, id);
    assert.equal(settling.status, 'settling');
    assert.equal(settling.payment_id, id);
    assert.equal(settling.final, false);
    assert.ok(Date.parse(settling.known_by) > Date.now());
    assert.ok(settling.retry_after > 0);
    const byOrder = (await world.request(`/orders/${settling.order_id}`)).json;
    assert.deepEqual(byOrder, settling);

    await world.restart('settler');
    const paid = await world.waitFor(async () => {
        const now = await world.request(`/payments/${id}`);
        return now.json.status === 'paid' && now;
    }, 'it is paid');
    assert.equal(paid.status, 200);
    assert.equal((await world.request(new URL(paid.json.receipt).pathname)).status, 200);
    assert.equal(paid.json.known_by, undefined);
    const head = await world.request(`/payments/${id}`, { method: 'HEAD' });
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', String(paid.body.length)]);

    const answer = await world.send(WRITE, signed, options);
    assert.equal(answer.status, 200);
    const kept = Buffer.from(secret).toString('base64');
    assert.ok(answer.text.includes(kept), 'the answer does not hold what this test looks for');
    for (const text of [JSON.stringify(settling), paid.text])
        assert.ok(!text.includes(kept) && !text.includes(secret), 'a status tells the answer');
    assert.equal((await world.calls()).length, 1);
});

// ---- an Idempotency-Key and no payment ----

scenario('a known payment id without a payment is never a 402 while money may move', {
    extra: { wait_ms: 1_000 }, network: { finality_blocks: 1 },
}, async (world) => {
    const ask = (path, id, options) => world.request(path, withKey(id, options));
    const [id, failed, lost] = [paymentId(), paymentId(), paymentId()];
    const fresh = await ask(WRITE, id, POST);
    assert.equal(fresh.status, 402, 'an id that nobody used');
    assert.ok(fresh.headers['payment-required']);
    assert.equal((await ask(WRITE, 'no id', POST)).json.code, 'payment_id_form');

    const signed = await unsent(world, WRITE, { id, ...POST });
    const flying = await ask(WRITE, id, POST);
    assert.equal(flying.status, 409);
    assert.equal(flying.json.code, 'payment_in_flight');
    assert.equal(flying.json.retry_after, 5);
    assert.equal(flying.headers['retry-after'], '5');
    assert.equal(flying.json.poll, `${world.gateway}/orders/${flying.json.order_id}`);
    assert.ok(Date.parse(flying.json.known_by) > Date.now());
    assert.equal(flying.headers['payment-required'], undefined);

    for (const [path, options] of [[`${WRITE}?x`, POST], [WRITE, { ...POST, body: '{"n":2}' }], [READ, {}]]) {
        const other = await ask(path, id, options);
        assert.deepEqual([other.status, other.json.code, other.json.reason], [409, 'payment_conflict', 'request']);
        assert.equal(other.json.order_id, undefined);
    }
    await world.restart('settler');
    await world.waitFor(async () => (await payment(world, id)).status === 'paid', 'it is paid');
    const paid = await ask(WRITE, id, POST);
    const { code, retry, money } = paid.json;
    assert.deepEqual([paid.status, code, retry, money], [409, 'already_paid', 'same_payment', 'moved']);
    assert.equal((await world.request(new URL(paid.json.receipt).pathname)).json.order_id, flying.json.order_id);
    assert.equal(paid.json.order_id, flying.json.order_id);
    assert.equal((await world.send(WRITE, signed, POST)).status, 200, 'the very same payment still gets the answer');

    const dark = await world.pay(await world.newPayer(), `${WRITE}?reset=1`, { id: lost, ...POST });
    assert.equal(dark.json.code, 'in_review');
    const reviewed = await ask(`${WRITE}?reset=1`, lost, POST);
    assert.deepEqual([reviewed.status, reviewed.json.code, reviewed.json.retry_after], [409, 'in_review', 60]);
    assert.equal((await payment(world, lost)).retry_after, 60);

    // Not charged is not final before its authorization is dead: somebody else may submit it.
    const soon = { change: { validBefore: String(now() + 20) } };
    const broken = await world.pay(await world.newPayer(), `${READ}?status=500`, { id: failed, authorization: soon });
    assert.equal(broken.status, 500, broken.text);
    const open = await ask(`${READ}?status=500`, failed);
    assert.deepEqual([open.status, open.json.code, open.json.final], [409, 'payment_in_flight', false]);
    assert.equal((await payment(world, failed)).status, 'not_charged');
    const dead = async () => (await world.sql(`SELECT state FROM authorizations a JOIN orders o ON o.id = a.order_id
        WHERE o.payment_id = '${failed}'`))[0].state === 'expired';
    await world.waitFor(dead, 'the authorization is proven dead');
    assert.equal((await ask(`${READ}?status=500`, failed)).status, 402);
});

scenario('what was set aside counts too; a database that is away is no reason to name a price', {
    extra: { wait_ms: 500 }, network: { finality_blocks: 1 },
}, async (world) => {
    const id = paymentId();
    const payer = await world.newPayer();
    const deadline = now() + 14;
    await world.stop('settler');
    await world.pay(payer, READ, { id, authorization: { change: { validBefore: String(deadline) } } });
    // Presented for the same order and not needed: it is stored, and anybody who saw it can submit it.
    assert.equal((await world.pay(payer, READ, { id })).json.code, 'payment_in_flight');
    await world.waitFor(() => now() > deadline, 'the first is past its deadline');
    await world.restart('settler');
    const rows = () => world.sql('SELECT state FROM authorizations ORDER BY id');
    const states = async () => (await rows()).map(({ state }) => state);
    await world.waitFor(async () => (await states())[0] === 'expired', 'the first is proven dead');
    assert.deepEqual(await states(), ['expired', 'released']);
    assert.equal((await payment(world, id)).status, 'unpaid');
    const answer = await world.request(READ, withKey(id));
    assert.deepEqual([answer.status, answer.json.code], [409, 'payment_in_flight'], answer.text);

    assert.equal((await metrics(world)).payonce_unknowns, 0);
    process.kill(world.postgres, 'SIGQUIT');
    await world.waitFor(() => !existsSync(`/proc/${world.postgres}`), 'the database is gone');
    const away = await world.request(READ, withKey(paymentId()));
    assert.deepEqual([away.status, away.json.code], [503, 'store_unavailable']);
    assert.equal((await world.request(READ)).status, 402, 'without an id no database is needed');
    const figures = await metrics(world);
    assert.equal(figures.payonce_database_figures, 0);
    assert.equal(figures.payonce_unknowns, undefined, 'old figures are shown as if they were of now');
    await world.startDatabase();
});

// ---- figures ----

scenario('/metrics counts what happened', { extra: { wait_ms: 8_000 } }, async (world) => {
    const source = (from) => ({ headers: { 'payonce-retry-source': from } });
    const before = await metrics(world);
    assert.equal(before['payonce_requests_total{outcome="paid"}'], 0);
    const payer = await world.newPayer();
    const signed = await world.sign(payer, READ, { id: paymentId() });
    assert.equal((await world.send(READ, signed)).status, 200);
    for (const from of ['llm', 'llm', 'http', 'something else'])
        assert.equal((await world.send(READ, signed, source(from))).headers['payonce-replayed'], 'true');
    assert.equal((await world.pay(await world.newPayer(), `${WRITE}?reset=1`, POST)).json.code, 'in_review');
    const two = await world.send(READ, { headers: { ...signed.headers, 'idempotency-key': paymentId() } });
    assert.equal(two.json.code, 'payment_id_differs');
    const other = await world.send(`${READ}?other`, signed);
    assert.deepEqual([other.status, other.json.code], [409, 'payment_conflict']);

    const all = await world.waitFor(async () => {
        const figures = await metrics(world);
        return figures.payonce_resolution_seconds_count === 1 && figures;
    }, 'the resolution is counted');
    const expected = {
        'payonce_requests_total{outcome="paid"}': 1, 'payonce_requests_total{outcome="replayed"}': 4,
        'payonce_requests_total{outcome="in_review"}': 1, 'payonce_requests_total{outcome="conflict"}': 1,
        'payonce_retries_total{source="llm"}': 2, 'payonce_retries_total{source="http"}': 1,
        'payonce_retries_total{source="framework"}': 0, payonce_presentations_total: 7,
        payonce_known_presentations_total: 5, payonce_unknowns: 0, payonce_reviews_open: 1,
        payonce_duplicate_charges_total: 0, 
        'payonce_resolution_seconds_bucket{le="+Inf"}': 1, payonce_upstream_seconds_count: 2,
        'payonce_database_seconds_count{call="accept"}': 2, 'payonce_database_seconds_count{call="finish"}': 2,
        'payonce_database_seconds_count{call="find"}': 7, 'payonce_authorizations_open{state="released"}': 1,
        payonce_database_figures: 1,
    };
    for (const [name, value] of Object.entries(expected))
        assert.equal(all[name], value, name);
    assert.ok(all['payonce_resolution_seconds_bucket{le="2"}'] <= all['payonce_resolution_seconds_bucket{le="60"}']);
    assert.ok(all['payonce_gas_balance_wei{network="eip155:84532"}'] > 0);
    assert.ok(all['payonce_network_seen_age_seconds{network="eip155:84532"}'] < 10);
    const relayed = Object.entries(all).filter(([name]) => name.startsWith('payonce_relay_transactions{'));
    assert.deepEqual(relayed.map(([, count]) => count), [1]);
    assert.ok(all.payonce_review_oldest_seconds < 60);

    // Cheap to ask: for two seconds all get the same figures.
    const reads = async () => (await metrics(world))['payonce_database_calls_total{result="all"}'];
    const many = [await reads()];
    for (let i = 0; i < 20; i++)
        many.push(await reads());
    assert.ok(Math.max(...many) - Math.min(...many) <= 3, `${many}`);
});

scenario('leases that died are counted', {}, async (world) => {
    await world.addGateway('gateway2', { env: { PAYONCE_FAILPOINT: 'gateway-after-work' } }).then(async (base) => {
        const signed = await world.sign(await world.newPayer(), READ);
        await world.send(READ, signed, { base }).catch(() => null);
        assert.equal(await world.ended('gateway2'), 'SIGKILL');
    });
    await world.waitFor(async () => {
        const figures = await metrics(world);
        return figures['payonce_leases_taken_over_total{how="ended"}'] === 1;
    }, 'the sweep is counted');
});

scenario('an admin address that others reach asks for a token, or there is no gateway', {}, async (world) => {
    const token = 'a-token-of-the-operator';
    const file = join(world.dir, 'token');
    writeFileSync(file, `${token}\n`);
    chmodSync(file, 0o644);
    const ports = { ...world.ports, gateway: await freePort(), admin: await freePort() };
    const config = world.writeConfig('open', ports, { extra: { admin_listen: `0.0.0.0:${ports.admin}` } });
    const bad = [[{}, /admin_listen is no loopback address/], [{ PAYONCE_ADMIN_TOKEN_FILE: file }, /mode 0600/],
        [{ PAYONCE_ADMIN_TOKEN_FILE: join(world.dir, 'none') }, /mode 0600/]];
    for (const [env, why] of bad) {
        const args = ['10', program, '--config', config, 'gateway'];
        const { code, stderr } = await run('timeout', args, { env: { ...world.env, ...env } });
        assert.equal(code, 2, stderr);
        assert.match(stderr, why);
        assert.ok(!await portTaken(ports.gateway));
    }
    chmodSync(file, 0o600);
    await world.startRole('gateway3', { config, port: ports.gateway, env: { PAYONCE_ADMIN_TOKEN_FILE: file } });
    const base = `http://127.0.0.1:${ports.admin}`;
    const wrong = [undefined, token, `Basic ${token}`, 'Bearer ', `Bearer ${token}x`, `Bearer ${token.slice(1)}`];
    for (const authorization of wrong) {
        const answer = await world.request('/metrics', { base, headers: authorization ? { authorization } : {} });
        assert.equal(answer.status, 401, authorization);
        assert.equal(answer.json.code, 'admin_token');
        assert.equal(answer.headers['www-authenticate'], 'Bearer');
    }
    await metrics(world, { base, headers: { authorization: `Bearer ${token}` } });
    assert.equal((await world.request('/readyz', { base })).status, 200, 'a load balancer has no token');
});

scenario('the guide is served as it is in the repository', { roles: ['gateway'] }, async (world) => {
    const answer = await world.request('/guide');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'text/markdown; charset=utf-8');
    assert.equal(answer.text, readFileSync(join(root, 'GUIDE.md'), 'utf8'));
});
