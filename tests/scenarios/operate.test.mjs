// What an operator does to a running installation, and what happens to it: nothing is paid twice, booked wrongly or
// forgotten, and what is refused is refused in words.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { relayer } from '../../dev/accounts.mjs';
import { startChain, stopChain } from '../../dev/chain.mjs';
import { portTaken } from '../../dev/place.mjs';
import { run } from '../../dev/process.mjs';
import { root } from '../lib/paths.mjs';
import { ownerOf, psql } from '../lib/psql.mjs';
import { inWorld, program, testTools } from '../lib/world.mjs';

const PATH = '/test/read';
const FUNDS = 1_000_000n;
const TAKEOVER_MS = 30_000;

const statusOf = async (world) => (await world.sql('SELECT status FROM order_status')).map(({ status }) => status);
const log = (world, name) => readFileSync(join(world.dir, `${name}.log`), 'utf8');
const children = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
    .map(Number);

// Sends the same payment until it gets its answer.
const resolve = (world, path, signed, options) => world.waitFor(async () => {
    const answer = await world.send(path, signed, options).catch(() => null);
    return answer?.status === 200 && answer;
}, 'the same payment gets its answer');

async function paidOnce(world, payer) {
    assert.equal(await world.chain.balanceOf(payer.address), FUNDS - 1000n);
    assert.equal((await world.calls()).length, 1, 'the upstream did not run exactly once');
    assert.equal(await world.checkBooks(), 1);
}

const superuser = (world, text) => psql(ownerOf(world.conninfo), text);

const scenario = (name, options, body) => test(name, { timeout: 300_000 }, inWorld(options, body));

// ---- SIGTERM ----

scenario('SIGTERM: what is under way is answered, nobody new is let in, no lease is left', {}, async (world) => {
    const payer = await world.newPayer();
    const path = `${PATH}?hold=1`;
    const signed = await world.sign(payer, path);
    const pending = world.send(path, signed);
    await world.waitFor(async () => (await world.calls()).length === 1, 'the upstream is at work');
    const stopped = world.stop('gateway');
    await world.waitFor(async () => !await portTaken(world.ports.gateway), 'new connections are refused');
    assert.ok(world.isUp('gateway'), 'it did not wait for the work');
    const began = Date.now();
    await world.letGo();
    const answer = await pending;
    await stopped;
    assert.ok(Date.now() - began < 10_000, 'idle connections held the end up');
    assert.ok(answer.status === 200 || answer.json.code === 'payment_in_flight', answer.text);
    assert.deepEqual(await world.sql(`SELECT * FROM instances WHERE role = 'gateway' AND until > now()`), []);
    assert.deepEqual(await world.sql(`SELECT * FROM orders WHERE work = 'running'`), []);

    await world.restart('gateway');
    await resolve(world, path, signed);
    await paidOnce(world, payer);
});

scenario('SIGTERM: a parked request is told to wait, and the same payment gets the answer later', {}, async (world) => {
    const payer = await world.newPayer();
    await world.stop('settler');
    const signed = await world.sign(payer, PATH);
    const pending = world.send(PATH, signed);
    await world.waitFor(async () => (await statusOf(world))[0] === 'settling', 'the work is done');
    const began = Date.now();
    await world.stop('gateway');
    const answer = await pending;
    assert.ok(Date.now() - began < 5_000, `${Date.now() - began} ms`);
    assert.equal(answer.status, 409, answer.text);
    assert.equal(answer.json.code, 'payment_in_flight');
    for (const key of ['poll', 'order_id', 'known_by', 'retry_after'])
        assert.ok(answer.json[key], `no ${key}`);

    await world.restart('gateway');
    await world.restart('settler');
    const paid = await resolve(world, PATH, signed);
    assert.equal(paid.headers['payonce-order'], answer.json.order_id);
    await paidOnce(world, payer);
});

// ---- the chain is another ----

scenario('a replaced chain is refused in words, and nothing is booked', {}, async (world) => {
    const payer = await world.newPayer();
    assert.equal((await world.pay(payer, PATH)).status, 200);
    const { number } = await world.chain.block();
    await world.waitFor(async () => (await world.sql('SELECT final FROM networks'))[0].final >= number, 'it is final');
    const books = () => world.sql('SELECT * FROM order_books');
    const facts = () => world.sql('SELECT genesis, final, final_hash FROM networks');
    for (const role of ['gateway', 'settler'])
        await world.stop(role);
    const before = [await books(), await facts()];
    await stopChain(world.chain);

    // Once with a genesis of its own, once with the same genesis and another history.
    const copied = join(world.dir, 'same genesis');
    mkdirSync(copied);
    writeFileSync(join(copied, 'genesis-time'), readFileSync(join(world.dir, 'chain', 'genesis-time')));
    const cases = [[join(world.dir, 'fresh'), 'the genesis block'], [copied, 'the block at our last final height']];
    for (const [dir, what] of cases) {
        const fresh = await startChain({ dir, port: world.ports.node, blockTime: 1 });
        await fresh.mine(number + 5);
        try {
            for (const role of ['gateway', 'settler']) {
                const { code, stdout, stderr } = await run('timeout',
                    ['-s', 'KILL', '20', program, '--config', world.config, role], { env: world.env, cwd: world.dir });
                assert.equal(code, 1, `${role} against ${what}`);
                const said = 'The chain behind the RPC of eip155:84532 is not the one in this database: ';
                assert.ok((stdout + stderr).includes(`${said}${what} differs`), stdout + stderr);
            }
        } finally {
            await stopChain(fresh, 'SIGKILL');
        }
        assert.deepEqual([await books(), await facts()], before);
    }

    world.chain = await world.startNode();
    for (const role of ['gateway', 'settler'])
        await world.restart(role);
    assert.equal((await world.pay(await world.newPayer(), `${PATH}?again`)).status, 200);
});

// ---- migrations ----

scenario('migrate: twice is once, two at a time too, and a newer schema is refused', { roles: [] }, async (world) => {
    const rows = () => world.sql('SELECT version, sha256, applied_at FROM migrations ORDER BY version');
    const before = await rows();
    const runs = await Promise.all([world.payonce(['migrate']), world.payonce(['migrate'])]);
    for (const { code, stdout } of runs) {
        assert.equal(code, 0);
        assert.match(stdout, /at version \d+/);
    }
    assert.deepEqual(await rows(), before);

    await superuser(world, `INSERT INTO payonce.migrations (version, name, sha256) VALUES (9999, 'the future', 'x')`);
    const { code, stderr } = await world.payonce(['migrate']);
    assert.equal(code, 1);
    assert.match(stderr, /newer Payonce, nothing was changed: .*version 9999/);
});

// ---- more than one of a kind ----

scenario('two settlers with one key: one sends, account nonces without a gap; killed, the other takes over',
    {}, async (world) => {
    await world.startRole('settler2');
    const payers = await world.newPayers(20);
    for (let i = 0; i < payers.length; i += 4) {
        const wave = payers.slice(i, i + 4).map((payer, n) => world.pay(payer, `${PATH}?n=${i + n}`));
        assert.deepEqual((await Promise.all(wave)).map(({ status }) => status), [200, 200, 200, 200]);
    }
    const sent = () => world.sql(`SELECT account_nonce, state, '0x' || encode(hash, 'hex') AS hash
                                    FROM relay_transactions ORDER BY id`);
    const noGap = async (list) => {
        assert.deepEqual(list.map((t) => t.account_nonce), list.map((t, n) => n));
        for (const { hash } of list)
            assert.equal((await world.chain.receipt(hash)).status, '0x1');
    };
    await noGap(await sent());

    const owns = (name) => log(world, name).includes('settler.wallet');
    assert.notEqual(owns('settler'), owns('settler2'), 'the wallet has not exactly one owner');
    const [owner, other] = owns('settler') ? ['settler', 'settler2'] : ['settler2', 'settler'];
    await world.kill9(owner);
    const killed = Date.now();
    const payer = await world.newPayer();
    const signed = await world.sign(payer, `${PATH}?n=after`);
    await resolve(world, `${PATH}?n=after`, signed);
    assert.ok(Date.now() - killed < TAKEOVER_MS, `${Date.now() - killed} ms`);
    assert.ok(owns(other));
    await noGap(await sent());
    await world.checkBooks();
});

scenario('two gateways on one database: 64 copies of one payment over both buy once', {}, async (world) => {
    const bases = [world.gateway, await world.addGateway('gateway2')];
    await world.waitFor(() => log(world, 'gateway2').includes('chain=ok'), 'the second has seen the chain');
    const payer = await world.newPayer();
    const path = `${PATH}?delay_ms=500`;
    const signed = await world.sign(payer, path);
    const first = await Promise.all(Array.from({ length: 64 }, (_, n) =>
        world.send(path, signed, { base: bases[n % 2] })));
    const answers = await Promise.all(first.map((answer, n) =>
        answer.status === 200 ? answer : resolve(world, path, signed, { base: bases[n % 2] })));
    for (const answer of first)
        assert.ok(answer.status === 200 || answer.json.code === 'payment_in_flight', answer.text);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1, 'the copies got different answers');
    assert.equal(new Set(answers.map(({ headers }) => headers['payonce-order'])).size, 1);
    await paidOnce(world, payer);
});

// ---- behind a proxy ----

const PUBLIC = 'https://api.example';
const freeTool = { ...testTools[0], name: 'free', path: '/test/free', prices: [] };
const proxied = {
    extra: { public_url: PUBLIC, trusted_proxies: ['127.0.0.2', '10.0.0.0/8'] }, tools: [...testTools, freeTool],
};

// The client's address as the upstream was told it. `from` is the address that the gateway is called from.
function clientSeen(world, from, forwarded) {
    const { port } = new URL(world.gateway);
    const headers = forwarded ? { 'x-forwarded-for': forwarded } : {};
    return new Promise((done, failed) => {
        const options = { port, host: '127.0.0.1', localAddress: from, path: '/test/free', headers, agent: false };
        const sent = httpRequest(options, (answer) => {
            let text = '';
            answer.on('data', (part) => { text += part; });
            answer.on('end', () => {
                const words = JSON.parse(text).headers.map((word) => word.toLowerCase());
                done(words.filter((_, i) => i % 2 === 1 && words[i - 1] === 'x-forwarded-for'));
            });
        });
        sent.on('error', failed);
        sent.end();
    });
}

scenario('behind a proxy every address is public_url\'s, whatever Host says', proxied, async (world) => {
    const payer = await world.newPayer();
    const headers = { host: 'internal:1', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'ftp' };
    const { v1, v2 } = await world.challenge(`${PATH}?x=1`, { headers });
    assert.equal(v2.resource.url, `${PUBLIC}${PATH}?x=1`);
    assert.equal(v1.accepts[0].resource, `${PUBLIC}${PATH}?x=1`);

    await world.stop('settler');
    const signed = await world.sign(payer, PATH, { headers });
    const pending = world.send(PATH, signed, { headers });
    await world.waitFor(async () => (await statusOf(world))[0] === 'settling', 'the work is done');
    await world.stop('gateway');
    const told = await pending;
    assert.ok(told.json.poll.startsWith(`${PUBLIC}/orders/ord_`), told.text);
    await world.restart('gateway');
    await world.restart('settler');
    const answer = await resolve(world, PATH, signed, { headers });
    const url = answer.headers['payonce-receipt'];
    assert.ok(url.startsWith(`${PUBLIC}/receipts/rcp_`), url);
    const receipt = (await world.request(url.slice(PUBLIC.length))).json;
    assert.equal(receipt.self, url);
    assert.equal(receipt.order, told.json.poll);
    assert.equal((await world.request(told.json.poll.slice(PUBLIC.length))).json.receipt, url);

    const cases = [
        ['127.0.0.1', undefined, '127.0.0.1'],
        ['127.0.0.1', '203.0.113.7', '127.0.0.1'],
        ['127.0.0.2', undefined, '127.0.0.2'],
        ['127.0.0.2', '203.0.113.7', '203.0.113.7'],
        ['127.0.0.2', '6.6.6.6, 203.0.113.7', '203.0.113.7'],
        ['127.0.0.2', '6.6.6.6, 203.0.113.7, 10.1.2.3', '203.0.113.7'],
        ['127.0.0.2', '6.6.6.6, unknown, 10.1.2.3', '10.1.2.3'],
        ['127.0.0.2', '2001:db8::1', '2001:db8::1'],
    ];
    for (const [from, forwarded, client] of cases)
        assert.deepEqual(await clientSeen(world, from, forwarded), [client], `from ${from}, for ${forwarded}`);
});

// ---- depth ----

scenario('depth 3: not paid before three blocks', { depth: 3, blockTime: 0 }, async (world) => {
    const payer = await world.newPayer();
    const signed = await world.sign(payer, PATH);
    const pending = world.send(PATH, signed);
    const transaction = async () => (await world.sql(`SELECT state FROM relay_transactions`))[0]?.state === 'broadcast';
    await world.waitFor(transaction, 'it is broadcast');
    for (let depth = 1; depth <= 3; depth++) {
        assert.deepEqual(await statusOf(world), ['settling'], `paid at depth ${depth - 1}`);
        await world.chain.mine();
        const { number } = await world.chain.block();
        const seen = async () => (await world.sql('SELECT head FROM networks'))[0].head === number;
        await world.waitFor(seen, 'the settler sees it');
        if (depth < 3)
            await world.pause(700); // a wrong "paid" needs time to be said
    }
    const answer = await pending;
    assert.equal(answer.status, 200);
    const { payment } = (await world.request(new URL(answer.headers['payonce-receipt']).pathname)).json;
    assert.equal(payment.depth, 3);
    await paidOnce(world, payer);
});

// ---- what fails under us ----

scenario('PostgreSQL dies while a payment is on its way: it ends paid, once', { blockTime: 0 }, async (world) => {
    const payer = await world.newPayer();
    const signed = await world.sign(payer, PATH);
    const pending = world.send(PATH, signed).catch(() => null);
    await world.waitFor(async () => (await world.sql('SELECT 1 FROM relay_transactions')).length === 1, 'it is stored');
    process.kill(world.postgres, 'SIGQUIT');
    await world.waitFor(() => !existsSync(`/proc/${world.postgres}`), 'the database is gone');
    await world.chain.mine(3);
    await world.pause(1_500); // both roles meet the outage
    await world.startDatabase();
    const answer = await pending;
    assert.ok(!answer || [200, 409, 503].includes(answer.status), answer?.text);
    await resolve(world, PATH, signed);
    await paidOnce(world, payer);
});

scenario('gas money that ran out between the look and the sending: the stored bytes go out once it is there',
    { blockTime: 0, extra: { wait_ms: 60_000 } }, async (world) => {
    const payer = await world.newPayer();
    const signed = await world.sign(payer, PATH);
    await world.restart('settler', { env: { PAYONCE_FAILPOINT: 'settler-before-broadcast' } });
    const pending = world.send(PATH, signed).catch(() => null);
    await world.ended('settler');
    await world.chain.giveGas(relayer.address, 0n);
    await world.restart('settler');
    const refused = () => /node_says.*funds/.test(log(world, 'settler'));
    await world.waitFor(refused, 'the node refuses it');
    await world.chain.giveGas(relayer.address);
    let answer;
    pending.then((value) => { answer = value; });
    await world.waitFor(async () => await world.chain.mine() || answer, 'it is answered');
    assert.equal(answer.status, 200, answer.text);
    assert.equal((await world.sql('SELECT * FROM relay_transactions')).length, 1);
    await paidOnce(world, payer);
});

scenario('a relayer without gas money: wait, not pay again; the log says so; funded, it ends paid',
    { extra: { wait_ms: 2_000 } }, async (world) => {
    await world.chain.giveGas(relayer.address, 0n);
    await world.waitFor(() => /out_of_gas.*hint=/.test(log(world, 'settler')), 'the log says so');
    const payer = await world.newPayer();
    const signed = await world.sign(payer, PATH);
    for (let i = 0; i < 2; i++) {
        const answer = await world.send(PATH, signed);
        assert.equal(answer.status, 409, answer.text);
        assert.equal(answer.json.code, 'payment_in_flight');
    }
    assert.deepEqual(await world.sql('SELECT * FROM relay_transactions'), []);
    await world.chain.giveGas(relayer.address);
    await resolve(world, PATH, signed);
    await paidOnce(world, payer);
});

// ---- all in one, and installed ----

scenario('payonce all: starts everything, serves a paid call, mends a killed child, stops on SIGTERM',
    { roles: [] }, async (world) => {
    assert.equal((await world.payonce(['database', 'stop'])).code, 0);
    world.postgres = null;
    await world.startRole('all');
    const admin = `http://127.0.0.1:${world.ports.admin}`;
    const ready = () => world.request('/readyz', { base: admin }).then(({ status }) => status === 200, () => false);
    const serves = () => world.waitFor(ready, 'the gateway is ready');
    await serves();
    const payer = await world.newPayer();
    assert.equal((await world.pay(payer, PATH)).status, 200);

    const nameOf = (pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').at(-2);
    const before = children(world.pid('all'));
    assert.deepEqual(before.map(nameOf).sort(), ['auditor', 'gateway', 'settler']);
    for (const pid of before)
        process.kill(pid, 'SIGKILL');
    await world.waitFor(() => children(world.pid('all')).filter((pid) => !before.includes(pid)).length === 3,
        'all are started again');
    await serves();
    assert.equal((await world.pay(payer, `${PATH}?n=2`)).status, 200);

    const after = children(world.pid('all'));
    await world.stop('all');
    assert.deepEqual(after.filter((pid) => existsSync(`/proc/${pid}`)), [], 'children outlive it');
    assert.equal((await world.payonce(['database', 'status'])).code, 1, 'its own database still runs');
    await world.startDatabase();
    assert.equal(await world.checkBooks(), 2);
});

const found = (dir) => readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? found(join(dir, entry.name)) : [join(dir, entry.name)]);

scenario('meson install puts everything in its place', { roles: [] }, async (world) => {
    const dest = join(world.dir, 'dest');
    const args = ['install', '-C', dirname(program), '--no-rebuild', '--destdir', dest];
    const { code, stdout, stderr } = await run('meson', args, { cwd: root });
    assert.equal(code, 0, stdout + stderr);
    const files = found(dest);
    const one = (end) => {
        const path = files.filter((file) => file.endsWith(end));
        assert.equal(path.length, 1, `${end}: ${path}`);
        return path[0];
    };
    assert.ok(statSync(one('/bin/payonce')).mode & 0o100);
    assert.match(readFileSync(one('/sysusers.d/payonce.conf'), 'utf8'), /^u payonce_gateway.*\nu payonce_settler/m);
    assert.ok(JSON.parse(readFileSync(one('/payonce/config.schema.json'), 'utf8')).properties.networks);

    // The example is a configuration: what the settler then misses is its key.
    const config = one('/payonce/payonce.example.json');
    const settler = await world.payonce(['settler'], { config, env: { PAYONCE_RELAYER_KEY_FILE: '/nowhere' } });
    assert.match(settler.stderr, /^payonce settler: \/nowhere cannot be read/);

    const units = ['gateway', 'settler', 'auditor'].map((role) => one(`/system/payonce-${role}.service`));
    for (const unit of units) {
        const text = readFileSync(unit, 'utf8');
        assert.doesNotMatch(text, /@\w+@/);
        const [, binary] = text.match(/^ExecStart=(\S+)/m);
        assert.ok(existsSync(join(dest, binary)), `${binary} is not what was installed`);
    }
    const verify = spawnSync('systemd-analyze', ['verify', ...units], { encoding: 'utf8' });
    if (verify.error)
        return;
    const complaints = verify.stderr.split('\n').filter((line) => line.includes('payonce')
        && !/Command .* is not executable: No such file/.test(line));
    assert.deepEqual(complaints, []);
});
