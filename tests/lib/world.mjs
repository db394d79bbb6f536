// A private world for tests: chain, database, upstream, gateways and settlers of their own, on free ports, in a
// folder that goes away with them.
//
//     test('...', inWorld({ blockTime: 1 }, async (world) => { ... }));
//
// ends with the books compared to the chain, the logs searched for a sanitizer's words, and, when anything failed,
// the logs' ends printed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, statSync,
    writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { payTo, relayer } from '../../dev/accounts.mjs';
import { startChain, stopChain } from '../../dev/chain.mjs';
import { demoTools, makeConfig } from '../../dev/config.mjs';
import { iAmRoot, keepSecret, portTaken, secretFile } from '../../dev/place.mjs';
import { run, sleep, tail, until } from '../../dev/process.mjs';
import { startTempo } from '../../dev/tempo.mjs';
import { USDC } from '../../dev/usdc.mjs';
import { checkBooks } from './books.mjs';
import { copyCluster } from './cluster.mjs';
import { raw, request } from './http.mjs';
import { root } from './paths.mjs';
import { authorize, decode, freshAccount, paymentV1, paymentV2 } from './payment.mjs';
import { Session, psql } from './psql.mjs';

// How long a test waits for what has to come about: longer than that takes on a busy machine. What passes waits no longer than
// it must.
export const PATIENCE_MS = 90_000;

export const program = process.env.PAYONCE_PROGRAM ?? join(root, 'build-check/asan/payonce');

// A port is ours, among all test files on this machine, while this process holds the abstract socket of its name.
const heldPorts = [];
function holdPort(port) {
    return new Promise((done) => {
        const holder = createServer();
        holder.once('error', () => done(false));
        holder.listen({ path: `\0payonce-test-port-${port}` }, () => {
            holder.unref();
            heldPorts.push(holder);
            done(true);
        });
    });
}

// Below the kernel's own range for outgoing connections, so that none of those is in the way.
let nextPort = 12_000 + Math.floor(Math.random() * 19_000);
export async function freePort() {
    for (;;) {
        const port = nextPort++;
        if (nextPort > 31_000)
            nextPort = 12_000;
        if (await holdPort(port) && !await portTaken(port))
            return port;
    }
}

const readPrice = (amount) => [{ network: 'eip155:84532', token: 'USDC', amount }];

// Routes of the upstream's that answer as the query string says (dev/upstream.mjs).
export const testTools = [
    {
        name: 'test read', description: 'Reads, or misbehaves', method: 'GET', path: '/test/read', side_effect: 'read',
        cacheable: false, mime_type: 'application/json', prices: readPrice('1000'),
    },
    {
        name: 'test cacheable', description: 'Reads what may be kept', method: 'GET', path: '/test/cacheable',
        side_effect: 'read', cacheable: true, mime_type: 'application/json', prices: readPrice('1000'),
    },
    {
        name: 'test write', description: 'Writes, or misbehaves', method: 'POST', path: '/test/write',
        side_effect: 'write', cacheable: false, mime_type: 'application/json', prices: readPrice('1000'),
    },
];

export class World {
    #children = new Map();
    #starts = new Map();
    #seenEnd = new Set();
    #session = null;
    logs = [];
    pause = sleep;
    payTo = payTo;
    tokens = [USDC];

    constructor(options) {
        const tools = [...demoTools, ...testTools];
        this.options = { blockTime: 1, tools, extra: {}, network: {}, env: {}, ...options };
        this.dir = mkdtempSync(join(tmpdir(), 'payonce-'));
        chmodSync(this.dir, iAmRoot ? 0o711 : 0o700);
        this.stateDir = join(this.dir, 'state');
        mkdirSync(this.stateDir, { mode: iAmRoot ? 0o711 : 0o700 });
        process.on('exit', this.#killAll);
    }

    #killAll = () => {
        for (const pid of [...[...this.#children.values()].map((child) => child.pid), this.chain?.pid, this.tempo?.pid,
            this.postgres])
            try {
                if (pid)
                    process.kill(pid, 'SIGKILL');
            } catch {
                // it is gone
            }
    };

    // ---- the parts ----

    async start() {
        this.ports = {};
        for (const name of ['gateway', 'admin', 'upstream', 'node', ...(this.options.tempo ? ['tempo'] : [])])
            this.ports[name] = await freePort();
        this.rpcUrl = `http://127.0.0.1:${this.ports.node}`;
        this.gateway = `http://127.0.0.1:${this.ports.gateway}`;
        this.upstream = `http://127.0.0.1:${this.ports.upstream}`;
        this.env = {
            PAYONCE_RELAYER_KEY_FILE: secretFile(join(this.dir, 'relayer'), relayer.key),
            PAYONCE_QUOTE_KEY_FILE: keepSecret(join(this.dir, 'quote')),
            ASAN_OPTIONS: 'exitcode=99',
            UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1:exitcode=99',
        };
        this.chain = await this.startNode();
        if (this.options.tempo)
            this.tempo = await this.startTempo();
        await this.options.beforeConfig?.(this);
        this.config = this.writeConfig('payonce', this.ports);
        await copyCluster(this.stateDir);
        await this.startDatabase();
        await this.#expectOk(['migrate']);
        await this.startUpstream();
        for (const role of this.options.roles ?? ['settler', 'gateway'])
            await this.startRole(role, { env: this.options.env[role] });
        return this;
    }

    async startUpstream() {
        const args = ['--port', this.ports.upstream, '--dir', join(this.dir, 'shop'), '--test'];
        await this.#launch('upstream', process.execPath, [join(root, 'dev/upstream.mjs'), ...args]);
        await this.#listens('upstream', this.ports.upstream);
    }

    // Also after the node was killed: it comes back with what it had saved (option `interval`).
    startNode() {
        const { blockTime, gasLimit, interval } = this.options;
        return startChain({ dir: join(this.dir, 'chain'), port: this.ports.node, blockTime, gasLimit, interval });
    }

    // The second rail's chain, in worlds with the option `tempo`: settings of its network.
    startTempo() {
        const { tempoBlockTime, interval } = this.options;
        return startTempo({ dir: join(this.dir, 'tempo'), port: this.ports.tempo, blockTime: tempoBlockTime, interval });
    }

    writeConfig(name, ports, { extra = {}, network = {} } = {}) {
        const path = join(this.dir, `${name}.json`);
        const { tools, depth, database } = this.options;
        const config = makeConfig({
            ports, stateDir: this.stateDir, tools, depth, database, rpc: this.options.rpc?.(this),
            network: { block_time_ms: Math.max(1, this.options.blockTime) * 1000, ...this.options.network, ...network },
            extra: { ...this.options.extra, ...extra },
            tempo: this.options.tempo && { depth: 1, finality_blocks: 1, block_time_ms: 1000, ...this.options.tempo },
        });
        writeFileSync(path, JSON.stringify(config, null, 2));
        return path;
    }

    payonce(args, { config = this.config, env = {} } = {}) {
        return run(program, ['--config', config, ...args].map(String), { env: { ...this.env, ...env }, cwd: this.dir });
    }

    async #expectOk(args, env) {
        const { code, stdout, stderr } = await this.payonce(args, { env });
        assert.equal(code, 0, `payonce ${args.join(' ')}:\n${stderr}${stdout}`);
        return stdout;
    }

    async startDatabase() {
        const { conninfo, pid } = JSON.parse(await this.#expectOk(['database', 'start'], this.databaseEnv));
        Object.assign(this, { conninfo, postgres: pid });
    }

    #log(name) {
        const path = join(this.dir, `${name}.log`);
        if (!this.logs.includes(path))
            this.logs.push(path);
        return path;
    }

    async #launch(name, command, args, env = {}) {
        assert.equal(this.isUp(name), false, `${name} runs already`);
        const fd = openSync(this.#log(name), 'a');
        const options = { stdio: ['ignore', fd, fd], env: { ...process.env, ...this.env, ...env }, cwd: this.dir };
        const child = spawn(command, args.map(String), options);
        closeSync(fd);
        this.#children.set(name, child);
        this.#seenEnd.delete(name);
        await new Promise((done, failed) => child.once('spawn', done).once('error', failed));
    }

    async #listens(name, port) {
        const up = await until(async () => !this.isUp(name) || await portTaken(port), PATIENCE_MS);
        assert.ok(up && this.isUp(name), `${name} does not come up:\n${tail(this.#log(name))}`);
    }

    // A role by name: 'gateway', 'settler', or further ones, 'gateway2', 'settler2', with a `config` of their own.
    async startRole(name, { env = {}, config = this.config, port = this.ports.gateway } = {}) {
        const role = name.replace(/[0-9]+$/, '');
        this.#starts.set(name, { config, port });
        const told = existsSync(this.#log(name)) ? statSync(this.#log(name)).size : 0;
        await this.#launch(name, program, ['--config', config, role], env);
        if (role === 'gateway')
            await this.#listens(name, port);
        else
            await this.#ready(name, told);
    }

    // A settler that is asked to stop before it can hear that ends by the signal, which is no fault.
    async #ready(name, told) {
        const says = () => readFileSync(this.#log(name)).subarray(told).includes('settler.ready');
        await until(() => !this.isUp(name) || says(), PATIENCE_MS);
    }

    // Another gateway on the same database, its configuration changed by `extra` and `network`; resolves to its URL.
    async addGateway(name, { env, ...changes } = {}) {
        const ports = { ...this.ports, gateway: await freePort(), admin: await freePort() };
        const config = this.writeConfig(name, ports, changes);
        await this.startRole(name, { env, config, port: ports.gateway });
        return `http://127.0.0.1:${ports.gateway}`;
    }

    isUp(name) {
        const child = this.#children.get(name);
        return child !== undefined && child.exitCode === null && child.signalCode === null;
    }

    pid(name) {
        return this.#children.get(name)?.pid;
    }

    // Waits for a part to end; resolves to its exit status or the signal's name.
    async ended(name, deadlineMs = PATIENCE_MS) {
        assert.ok(await until(() => !this.isUp(name), deadlineMs), `${name} did not end within ${deadlineMs} ms`);
        this.#seenEnd.add(name);
        return this.#endOf(name);
    }

    #endOf(name) {
        const child = this.#children.get(name);
        return child.signalCode ?? child.exitCode;
    }

    async kill9(name) {
        this.#children.get(name).kill('SIGKILL');
        return this.ended(name);
    }

    // Asked to stop, a part ends in order; a sanitizer's findings at exit are not order.
    async stop(name) {
        if (!this.isUp(name))
            return;
        this.#children.get(name).kill('SIGTERM');
        const end = await this.ended(name);
        assert.equal(end, 0, `${name} ended with ${end} when it was asked to stop`);
    }

    // Starts a part again as it was, with other environment if given.
    async restart(name, { env } = {}) {
        await this.stop(name);
        await this.startRole(name, { ...this.#starts.get(name), env });
    }

    // ---- what tests do with it ----

    sql(query) {
        if (this.#session?.conninfo !== this.conninfo)
            this.#session = new Session(this.conninfo);
        return this.#session.rows(query);
    }

    psql(text) {
        return psql(this.conninfo, text);
    }

    async newPayer({ atoms = 1_000_000n, key } = {}) {
        const payer = freshAccount(key);
        if (atoms > 0n)
            await this.chain.fund(payer.address, atoms);
        return payer;
    }

    async newPayers(count, { atoms = 1_000_000n } = {}) {
        const payers = Array.from({ length: count }, () => freshAccount());
        await this.chain.fund(payers.map((payer) => payer.address), atoms);
        return payers;
    }

    request(path, options) {
        return request(options?.base ?? this.gateway, path, options);
    }

    raw(bytes, options) {
        return raw(options?.base ?? this.gateway, bytes, options);
    }

    // What the gateway asks for: { answer, v2, v1 }.
    async challenge(path, options) {
        const answer = await this.request(path, options);
        assert.equal(answer.status, 402, `${path} answered ${answer.status}: ${answer.text}`);
        return { answer, v2: decode(answer.headers['payment-required']), v1: answer.json };
    }

    // The headers that pay for a request: a challenge, an authorization and its encoding. Options: version (2), id,
    // authorization ({ change, domain } of authorize()), payment (options of paymentV2/paymentV1), and the request's.
    async sign(payer, path, { version = 2, id, authorization = {}, payment = {}, ...options } = {}) {
        const { v1, v2 } = await this.challenge(path, options);
        const required = version === 2 ? v2 : v1;
        const payload = await authorize(payer, payment.accepted ?? required.accepts[0], authorization);
        const headers = version === 2
            ? { 'payment-signature': paymentV2(required, payload, { id, ...payment }) }
            : { 'x-payment': paymentV1(required, payload, payment), ...(id && { 'idempotency-key': id }) };
        return { headers, required, payload };
    }

    // Pays and calls. Resolves to the answer, with what was signed, so that it can be sent again.
    async pay(payer, path, options = {}) {
        const signed = await this.sign(payer, path, options);
        return Object.assign(await this.send(path, signed, options), { signed });
    }

    send(path, signed, { method, body, headers = {}, base } = {}) {
        return this.request(path, { method, body, base, headers: { ...headers, ...signed.headers } });
    }

    // The calls that reached the upstream, oldest first.
    async calls() {
        return (await request(this.upstream, '/test/calls')).json;
    }

    // What the upstream was asked with hold=1 gets its answer.
    async letGo() {
        assert.ok((await request(this.upstream, '/test/held', { method: 'DELETE' })).json > 0, 'nothing is held');
    }

    async orderCounts() {
        return (await request(this.upstream, '/shop/counts')).json;
    }

    async waitFor(condition, what, deadlineMs = PATIENCE_MS) {
        const value = await until(condition, deadlineMs, 50);
        assert.ok(value, `within ${deadlineMs} ms it did not come about that ${what}`);
        return value;
    }

    checkBooks(deadlineMs) {
        return checkBooks(this, deadlineMs);
    }

    // ---- the end ----

    checkLogs() {
        const words = /ERROR: (Address|Leak)Sanitizer|runtime error:|WARNING: ThreadSanitizer/;
        for (const path of this.logs)
            assert.doesNotMatch(readFileSync(path, 'utf8'), words, path);
    }

    dumpLogs() {
        const all = readdirSync(this.stateDir, { recursive: true });
        const postgres = all.filter((name) => name.endsWith('postgres.log'));
        for (const path of [...this.logs, ...postgres.map((name) => join(this.stateDir, name))])
            process.stderr.write(`---- the end of ${path}\n${tail(path, 40)}\n`);
    }

    // A part that ended without a test having asked for it, or having seen it.
    checkAlive() {
        for (const name of this.#children.keys())
            if (!this.isUp(name) && !this.#seenEnd.has(name))
                assert.fail(`${name} ended by itself with ${this.#endOf(name)}`);
    }

    async close() {
        const troubles = [];
        for (const name of [...this.#children.keys()].reverse())
            await this.stop(name).catch((error) => troubles.push(error));
        this.#session?.close();
        if (this.postgres)
            await this.payonce(['database', 'stop']);
        this.postgres = null;
        if (this.chain)
            await stopChain(this.chain, 'SIGKILL');
        if (this.tempo)
            await stopChain(this.tempo, 'SIGKILL');
        process.off('exit', this.#killAll);
        if (troubles.length > 0)
            throw troubles[0];
    }

    remove() {
        rmSync(this.dir, { recursive: true, force: true });
    }
}

export async function startWorld(options = {}) {
    const world = new World(options);
    try {
        return await world.start();
    } catch (error) {
        await abandon(world);
        throw error;
    }
}

async function abandon(world) {
    world.dumpLogs();
    await world.close().catch((error) => process.stderr.write(`${error.message}\n`));
}

// Ends a world that several tests shared: every part alive, the books right, orderly exits, nothing in the logs.
export async function endWorld(world) {
    try {
        world.checkAlive();
        await world.checkBooks();
        await world.close();
        world.checkLogs();
    } catch (error) {
        await abandon(world);
        throw error;
    }
    world.remove();
}

export function inWorld(options, body) {
    return async () => {
        const world = await startWorld(options);
        try {
            await body(world);
        } catch (error) {
            await abandon(world);
            throw error;
        }
        await endWorld(world);
    };
}
