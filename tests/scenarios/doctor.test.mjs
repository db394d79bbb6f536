// payonce doctor: each thing that can be wrong between the configuration and the world is found, named, and told how to
// mend it; and a sound installation gets no complaint.
import assert from 'node:assert/strict';
import { createServer as httpServer } from 'node:http';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { labelled, receiptSigner, refundWallet, relayer } from '../../dev/accounts.mjs';
import { NETWORK } from '../../dev/config.mjs';
import { secretFile } from '../../dev/place.mjs';
import { MULTICALL3, USDC } from '../../dev/usdc.mjs';
import { freshAccount } from '../lib/payment.mjs';
import { ownerOf, psql } from '../lib/psql.mjs';
import { endWorld, freePort, startWorld } from '../lib/world.mjs';

const RELAYER = 'PAYONCE_RELAYER_KEY_FILE';
const QUOTE = 'PAYONCE_QUOTE_KEY_FILE';
const RECEIPT = 'PAYONCE_RECEIPT_KEY_FILE';
const REFUND = 'PAYONCE_REFUND_KEY_FILE';
const nowhere = 'http://127.0.0.1:9';

// A node that passes every question on to the real one, and changes what comes back: twist(method, result, params).
async function twistedNode(url, twist) {
    const one = async (item) => {
        const answer = await fetch(url, {
            method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(item),
        });
        const reply = await answer.json();
        const result = twist(item.method, reply.result, item.params ?? []);
        return result instanceof Error
            ? { jsonrpc: '2.0', id: item.id, error: { code: -32000, message: result.message } }
            : { ...reply, result };
    };
    const server = httpServer(async (request, response) => {
        let text = '';
        for await (const chunk of request)
            text += chunk;
        const asked = JSON.parse(text);
        const answer = Array.isArray(asked) ? await Promise.all(asked.map(one)) : await one(asked);
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(answer));
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return { url: `http://127.0.0.1:${server.address().port}`, stop: () => stop(server) };
}

function stop(server) {
    server.closeAllConnections?.();
    return new Promise((done) => server.close(done));
}

describe('payonce doctor', () => {
    let world;
    before(async () => {
        world = await startWorld({ roles: [], beforeConfig: (w) => {
            w.env[RECEIPT] = secretFile(join(w.dir, 'receipt'), receiptSigner.key);
        } });
    });
    after(() => world && endWorld(world));

    let count = 0;
    // The world's configuration with a change, written to a file of its own.
    function config(change) {
        const c = JSON.parse(readFileSync(world.config, 'utf8'));
        change(c);
        const path = join(world.dir, `doctor-${count += 1}.json`);
        writeFileSync(path, JSON.stringify(c));
        return path;
    }

    async function examine({ change, env } = {}) {
        const { code, stdout, stderr } = await world.payonce(['doctor', '--json'],
            { env, ...(change && { config: config(change) }) });
        assert.doesNotMatch(stderr, /Sanitizer|runtime error/);
        const { ok, checks } = JSON.parse(stdout);
        assert.equal(code, ok ? 0 : 1);
        assert.equal(ok, checks.every(({ result }) => result !== 'FAIL'));
        return { ok, checks, troubles: checks.filter(({ result }) => result !== 'ok') };
    }

    // One trouble and no other, with these words.
    async function finds(result, check, words, options) {
        const { ok, troubles } = await examine(options);
        assert.equal(troubles.length, 1, JSON.stringify(troubles));
        const [trouble] = troubles;
        assert.equal(trouble.result, result, trouble.text);
        assert.match(trouble.check, check);
        assert.match(trouble.text, words);
        assert.equal(ok, result === 'warn');
    }

    const rpc = /^eip155:84532 rpc\[0\]$/;
    const network = (changes) => (c) => Object.assign(c.networks[0], changes);
    const usdc = { address: USDC, name: 'USDC', version: '2', decimals: 6, symbol: 'USDC' };
    const tokens = (...list) => network({ tokens: list.map((changes) => ({ ...usdc, ...changes })) });

    async function twisted(result, words, twist) {
        const node = await twistedNode(world.rpcUrl, twist);
        try {
            await finds(result, rpc, words, { change: network({ rpc: [node.url] }) });
        } finally {
            await node.stop();
        }
    }

    async function superuser(text, database = 'payonce') {
        const info = ownerOf(world.conninfo).replace(/dbname=\S+/, `dbname=${database}`);
        await psql(info, text);
        return info.replace(/ user=\S+/, '');
    }

    test('all is well: exit 0, every line ok, as text too', async () => {
        const { ok, troubles, checks } = await examine();
        assert.deepEqual([ok, troubles], [true, []]);
        for (const name of ['configuration', 'relayer key', 'quote key', 'refund wallet', 'receipt key', 'database', 'schema', 'durability',
            'eip155:84532 rpc[0]', 'public_url', 'listen', 'admin_listen', 'upstream'])
            assert.ok(checks.some(({ check }) => check === name), `nothing is said of ${name}`);
        const { code, stdout } = await world.payonce(['doctor']);
        assert.equal(code, 0);
        assert.equal(stdout.trimEnd().split('\n').length, checks.length);
        assert.ok(stdout.split('\n').every((line) => line === '' || line.startsWith('ok ')), stdout);
    });

    describe('what pays debts back, and what signs receipts', () => {
        const refunds = (c) => Object.assign(c, { refunds: [{ network: NETWORK, token: 'USDC', mode: 'automatic' }] });
        const keyFile = (variable, { key }) => ({ [variable]: secretFile(join(world.dir, `key-${count += 1}`), key) });

        test('a policy and no key; a wallet that is the relayer\'s, or a seller\'s', async () => {
            await finds('FAIL', /^refund wallet$/, /REFUND_KEY_FILE is not set/, { change: refunds });
            await finds('FAIL', /^refund wallet$/, /is the relayer's wallet/, { change: refunds, env: keyFile(REFUND, relayer) });
            await finds('FAIL', /^refund wallet$/, /is a seller's \(pay_to\) wallet/,
                { change: refunds, env: keyFile(REFUND, labelled('pay to')) });
            await finds('warn', /^refund wallet$/, /pays nothing/, { env: keyFile(REFUND, refundWallet) });
        });

        test('an empty refund wallet, and a filled one', async () => {
            const env = keyFile(REFUND, refundWallet);
            await finds('warn', rpc, /refund wallet 0x\w+ has 0 USDC: send it some/, { change: refunds, env });
            await world.chain.mint(refundWallet.address, 1_500_000n);
            const { ok, checks } = await examine({ change: refunds, env });
            assert.ok(ok && checks.some(({ text }) => /has 1.5 USDC$/.test(text)), JSON.stringify(checks));
        });

        test('a receipt key that is missing, loose, or moves money', async () => {
            await finds('warn', /^receipt key$/, /receipts are not signed/, { env: { [RECEIPT]: '' } });
            const { [RECEIPT]: loose } = keyFile(RECEIPT, receiptSigner);
            chmodSync(loose, 0o644);
            await finds('FAIL', /^receipt key$/, /chmod 600/, { env: { [RECEIPT]: loose } });
            await finds('FAIL', /^receipt key$/, /moves money/, { env: keyFile(RECEIPT, relayer) });
        });

        test('a key that is published, and one that is not', async () => {
            for (const address of [receiptSigner.address, relayer.address]) {
                const server = httpServer((_, response) => {
                    response.setHeader('content-type', 'application/json');
                    response.end(JSON.stringify({ keys: [{ address, use: 'receipts', status: 'current' }] }));
                });
                await new Promise((done) => server.listen(0, '127.0.0.1', done));
                const change = (c) => Object.assign(c, { public_url: `http://127.0.0.1:${server.address().port}` });
                if (address === receiptSigner.address)
                    assert.ok((await examine({ change })).checks.some(({ text }) => /, published at /.test(text)));
                else
                    await finds('FAIL', /^receipt key$/, /is not the current key at/, { change });
                await stop(server);
            }
        });
    });

    test('an argument that it does not know: exit 2', async () => {
        assert.equal((await world.payonce(['doctor', '--jsno'])).code, 2);
    });

    test('a tool that is paid before the work, and nobody who pays back what fails', async () => {
        const policy = { network: 'eip155:84532', token: 'USDC', mode: 'manual' };
        const first = (c) => Object.assign(c.tools[0], { settle: 'before_work' });
        await finds('warn', /^refunds$/, /countries: .*no policy for USDC on eip155:84532/, { change: first });
        const { troubles } = await examine({ change: (c) => Object.assign(c, { refunds: [policy] }, void first(c)) });
        assert.ok(!troubles.some(({ check }) => check === 'refunds'), JSON.stringify(troubles));
    });

    // ---- keys ----

    test('a key file that is not named, not there, readable by others, too short', async () => {
        const place = (name, text, mode = 0o600) => {
            const path = join(world.dir, name);
            writeFileSync(path, text);
            chmodSync(path, mode);
            return path;
        };
        const key = '11'.repeat(32);
        const cases = [
            ['', /is not set/],
            [join(world.dir, 'no such key'), /cannot be read/],
            [place('loose', key, 0o644), /read by others: chmod 600/],
            [place('short', key.slice(2)), /64 hex digits/],
            [place('long', `${key}00`), /64 hex digits/],
            [place('no hex', 'z'.repeat(64)), /64 hex digits/],
        ];
        for (const [path, words] of cases) {
            await finds('FAIL', /^relayer key$/, words, { env: { [RELAYER]: path } });
            await finds('FAIL', /^quote key$/, words, { env: { [QUOTE]: path } });
        }
        await finds('FAIL', /^relayer key$/, /64 hex digits/, { env: { [RELAYER]: place('zero', '00'.repeat(32)) } });
        const two = place('two', `${key}\n${'22'.repeat(32)}\n`);
        await finds('FAIL', /^relayer key$/, /64 hex digits/, { env: { [RELAYER]: two } });
        const { ok, checks } = await examine({ env: { [QUOTE]: two } });
        assert.ok(ok && checks.some(({ check, text }) => check === 'quote key' && text === 'present'));
    });

    // ---- the database ----

    test('a database that is down', async () => {
        const empty = join(world.dir, 'other state');
        mkdirSync(empty);
        await finds('FAIL', /^database$/, /payonce database start/, { change: (c) => { c.state_dir = empty; } });
        await finds('FAIL', /^database$/, /cannot be reached/,
            { change: (c) => { c.database = 'host=127.0.0.1 port=9 dbname=x connect_timeout=2'; } });
    });

    test('a database without the schema, of an older version, of a newer one', async () => {
        await superuser('CREATE DATABASE bare');
        await superuser('CREATE DATABASE other TEMPLATE payonce');
        const bare = await superuser('SELECT', 'bare');
        await finds('FAIL', /^database$/, /payonce migrate/, { change: (c) => { c.database = bare; } });

        const other = await superuser(`INSERT INTO payonce.migrations (version, name, sha256) VALUES (9999, 'x', 'x')`,
            'other');
        await finds('FAIL', /^schema$/, /9999 is newer/, { change: (c) => { c.database = other; } });
        await superuser('DELETE FROM payonce.migrations WHERE version > 0', 'other');
        await finds('FAIL', /^schema$/, /payonce migrate/, { change: (c) => { c.database = other; } });
    });

    test('commits that a power cut would lose', async () => {
        await superuser('CREATE DATABASE careless TEMPLATE payonce');
        const careless = await superuser('ALTER DATABASE careless SET synchronous_commit = off', 'careless');
        await finds('FAIL', /^durability$/, /synchronous_commit=off/, { change: (c) => { c.database = careless; } });
    });

    // ---- the chain ----

    test('an RPC that is down', () =>
        finds('FAIL', rpc, /no usable answer/, { change: network({ rpc: [nowhere] }) }));

    test('one endpoint of two is down: that one is named', () =>
        finds('FAIL', /^eip155:84532 rpc\[1\]$/, /no usable answer/,
            { change: network({ rpc: [world.rpcUrl, nowhere] }) }));

    test('an RPC of another chain', async () => {
        await twisted('FAIL', /another chain than eip155:84532/,
            (method, result) => method === 'eth_chainId' ? '0x2105' : result);
        // the same by the other end: the configuration says Base, the node is Base Sepolia
        await finds('FAIL', /^eip155:8453 rpc\[0\]$/, /another chain than eip155:8453/, {
            change: (c) => {
                c.networks[0].id = 'eip155:8453';
                for (const { prices } of c.tools)
                    prices[0].network = 'eip155:8453';
            },
        });
    });

    test('a clock that is not the chain\'s, either way', async () => {
        const shifted = (seconds) => (method, result) => method === 'eth_getBlockByNumber'
            ? { ...result, timestamp: `0x${(Number(result.timestamp) + seconds).toString(16)}` } : result;
        await twisted('FAIL', /1[12]\d s behind this clock/, shifted(-120));
        await twisted('FAIL', /1[12]\d s ahead of this clock/, shifted(120));
        await twisted('warn', /behind this clock/, shifted(-30));
    });

    test('a node that does not know `finalized`', async () => {
        const twist = (method, result, [tag]) =>
            method === 'eth_getBlockByNumber' && tag === 'finalized' ? new Error('unknown block') : result;
        await twisted('FAIL', /finality_blocks/, twist);
        const node = await twistedNode(world.rpcUrl, twist);
        const { troubles } = await examine({ change: network({ rpc: [node.url], finality_blocks: 10 }) });
        assert.deepEqual(troubles, [], 'with a distance of its own the tag is not needed');
        await node.stop();
    });

    test('no Multicall3', async () => {
        const code = await world.chain.rpc.call('eth_getCode', MULTICALL3, 'latest');
        await world.chain.setCode(MULTICALL3, '0x');
        await finds('FAIL', rpc, /no Multicall3 at 0xcA11/);
        await world.chain.setCode(MULTICALL3, code);
    });

    // ---- tokens ----

    test('a token without code, of another name, version or decimals', async () => {
        const second = { symbol: 'SECOND' };
        await finds('FAIL', rpc, /SECOND: no code at 0x2222/,
            { change: tokens({}, { ...second, address: `0x${'22'.repeat(20)}` }) });
        await finds('FAIL', rpc, /"USD Coin", version "2"; it calls itself "USDC", version "2": correct/,
            { change: tokens({ name: 'USD Coin' }) });
        await finds('FAIL', rpc, /"USDC", version "1"; it calls itself "USDC", version "2": correct/,
            { change: tokens({ version: '1' }) });
        await finds('FAIL', rpc, /has 6 decimals, the configuration says 18/, { change: tokens({ decimals: 18 }) });
    });

    test('a contract that is no EIP-3009 token', async () => {
        const { troubles } = await examine({ change: tokens({}, { symbol: 'OTHER', address: MULTICALL3 }) });
        assert.ok(troubles.some(({ result, text }) => result === 'FAIL' && /OTHER: .*no EIP-3009 token/.test(text)),
            JSON.stringify(troubles));
    });

    test('a payee that is a contract, which is worth a look', () =>
        finds('warn', rpc, /pay_to 0xcA11.* has code/, { change: network({ pay_to: MULTICALL3 }) }));

    // ---- gas ----

    test('a relayer with no gas money, with little, and gas above the limit', async () => {
        const poor = freshAccount();
        const env = { [RELAYER]: secretFile(join(world.dir, 'poor'), poor.key) };
        await finds('FAIL', rpc, new RegExp(`relayer ${poor.address} has 0 .*send it some`), { env });
        await world.chain.giveGas(poor.address, 10n ** 9n);
        await finds('warn', rpc, new RegExp(`relayer ${poor.address} has 0\\.0+1 .*send it some`), { env });
        await finds('warn', rpc, /over fee_max_wei/, { change: network({ fee_max_wei: '1', tip_min_wei: '0' }) });
    });

    // ---- HTTP ----

    test('an upstream that is down', () => finds('warn', /^upstream$/, /127\.0\.0\.1:9: .*nobody is charged/, {
        change: (c) => {
            for (const tool of c.tools)
                tool.upstream = nowhere;
        },
    }));

    test('an address that is in use, by a stranger and by our own gateway', async () => {
        const stranger = createServer((socket) => socket.destroy());
        const port = await freePort();
        await new Promise((done) => stranger.listen(port, '127.0.0.1', done));
        const use = (key) => ({ change: (c) => { c[key] = `127.0.0.1:${port}`; } });
        await finds('FAIL', /^listen$/, /in use by another program/, use('listen'));
        await finds('FAIL', /^admin_listen$/, /in use by another program/, use('admin_listen'));
        await new Promise((done) => stranger.close(done));

        await world.startRole('gateway');
        const { checks, troubles } = await examine();
        assert.deepEqual(troubles, []);
        assert.match(checks.find(({ check }) => check === 'listen').text, /in use, by a gateway/);
        await world.stop('gateway');
    });

    test('an address that is not ours, or no address', async () => {
        const listen = (where) => ({ change: (c) => { c.listen = where; } });
        await finds('FAIL', /^listen$/, /192\.0\.2\.1:80: Cannot assign/, listen('192.0.2.1:80'));
        await finds('FAIL', /^listen$/, /no such host name/, listen('no.such.host.invalid:80'));
    });

    test('a public_url without TLS', () => finds('warn', /^public_url$/, /not https/,
        { change: (c) => { c.public_url = 'http://api.example'; } }));

    test('a price that x402 v1 clients would refuse', () => finds('warn', /^prices$/, /over 18 digits/,
        { change: (c) => { c.tools[0].prices[0].amount = '1'.repeat(19); } }));

    test('several troubles are told at once', async () => {
        const { ok, troubles } = await examine({
            env: { [QUOTE]: '' },
            change: (c) => {
                c.networks[0].rpc = [nowhere];
                c.public_url = 'http://api.example';
            },
        });
        assert.equal(ok, false);
        assert.deepEqual(troubles.map(({ check }) => check).sort(), ['eip155:84532 rpc[0]', 'public_url', 'quote key']);
    });
});
