// Both stacks beside each other on one chain, and the gauges that read them.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { toHex } from 'viem';
import { labelled, payTo, receiptSigner } from '../../dev/accounts.mjs';
import { secretFile } from '../../dev/place.mjs';
import { run, sleep } from '../../dev/process.mjs';
import { USDC } from '../../dev/usdc.mjs';
import { root } from '../lib/paths.mjs';
import { ownerOf, psql } from '../lib/psql.mjs';
import { World, freePort } from '../lib/world.mjs';
import { demoTools } from '../../dev/config.mjs';

export const path = '/iso/countries?code=FR';
const repeatPath = '/iso/languages?code=fr';
// More than any measure has callers, so that no payer pays twice at once. Not one a payment: the node hashes all
// balances for each block.
const PAYERS = 2048;
const peerKey = labelled('bench peer');
export const peerPayTo = labelled('bench peer pay to').address;
const sellerPayTo = labelled('bench seller pay to').address;
// A seller whose own server settles through us.
const sellers = [{
    name: 'bench', key: 'open', accepts: [{ network: 'eip155:84532', token: 'USDC', pay_to: sellerPayTo }],
    wait_ms: 120_000, repeat_wait_ms: 120_000,
}];

// ---- gauges: CPU and memory of processes, from the kernel ----

function stat(pid) {
    try {
        const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
        const fields = text.slice(text.lastIndexOf(')') + 2).split(' ').map(Number);
        return { parent: fields[1], own: fields[11] + fields[12], reaped: fields[13] + fields[14] };
    } catch {
        return null;                             // it ended meanwhile: its parent's `reaped` has it
    }
}

const childrenOf = (pid) => readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))
    .map(Number).filter((other) => stat(other)?.parent === pid);

// Seconds of CPU so far. A family is a process with its children, those that have ended included.
export const seconds = (pids) => pids.reduce((sum, pid) => sum + (stat(pid)?.own ?? 0), 0) / 100;
const familySeconds = (pid) => seconds([pid, ...childrenOf(pid)]) + stat(pid).reaped / 100;

// Memory in MB, what is shared counted once.
const pss = (pids) => pids.reduce((sum, pid) =>
    sum + Number(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').match(/^Pss: +([0-9]+) kB/m)[1]) / 1024, 0);

export const signsOffers = (world) => {
    world.env.PAYONCE_RECEIPT_KEY_FILE = secretFile(join(world.dir, 'receipt'), receiptSigner.key);
};

// Blocks by hand while the parts come up; each measure says how it wants them.
const ofBase = () => new World({
    // Countries are sold each time, languages once: what is measured as paid is paid.
    tools: demoTools.map((tool) => (tool.path === '/iso/countries' ? { ...tool, cacheable: false }
        : tool.cacheable ? { ...tool, repeat_max: 1_000_000, repeat_window_s: 3600 } : tool)),
    blockTime: 0, gasLimit: 1_000_000_000, network: { block_time_ms: 2000 }, extra: { wait_ms: 120_000, sellers },
    beforeConfig: signsOffers,
});

export class Stage {
    #children = [];
    payers = PAYERS;

    constructor(load, world = ofBase()) {
        this.load = load;
        this.world = world;
        process.on('exit', () => this.#children.forEach((child) => child.kill('SIGKILL')));
    }

    async start() {
        await this.world.start();
        this.chain = this.world.chain;
        await this.chain.fund(await this.payerAddresses(), 1_000_000_000n);
        await this.startPeer();
        return this;
    }

    async startPeer() {
        await this.chain.giveGas(peerKey.address);
        const [facilitator, resource] = [await freePort(), await freePort()];
        const facilitatorUrl = `http://127.0.0.1:${facilitator}`;
        this.peerFacilitator = { port: facilitator, pid: await this.#startPeerFacilitator(facilitator, this.world.rpcUrl) };
        const seller = ['--facilitator', facilitatorUrl, '--pay-to', peerPayTo];
        this.launchPeer(['resource', '--port', resource, ...seller]);
        this.peerPort = resource;
        await this.answers(`http://127.0.0.1:${resource}/paid`, 402);
        await this.answers(`${this.world.gateway}${path}`, 402);
    }

    launchPeer(args) {
        const child = spawn(process.execPath, [join(root, 'tests/bench/peer.mjs'), ...args.map(String)], {
            stdio: ['ignore', 'inherit', 'inherit'],
            env: { ...process.env, NODE_ENV: 'production', PEER_KEY: peerKey.key },
        });
        this.#children.push(child);
        return child;
    }

    async #startPeerFacilitator(port, rpc) {
        const child = this.launchPeer(['facilitator', '--port', port, '--rpc', rpc]);
        await this.answers(`http://127.0.0.1:${port}/supported`, 200);
        return child.pid;
    }

    async answers(url, status) {
        const answer = () => fetch(url).then((a) => a.status, () => 0);
        await this.world.waitFor(async () => await answer() === status, `${url} answers ${status}`);
    }

    // ---- the two sides ----

    ours() {
        const { world } = this;
        const pids = [world.pid('gateway'), world.pid('settler')];
        return {
            name: 'payonce', port: world.ports.gateway, path, payTo, options: [],
            pss: () => pss(pids),
            gatewayPss: () => pss([world.pid('gateway')]),
            cpu: () => ({ own: seconds(pids), postgres: familySeconds(world.postgres) }),
        };
    }

    peerPids() {
        return this.#children.map((child) => child.pid);
    }

    peer() {
        const pids = this.peerPids();
        return {
            name: 'official', port: this.peerPort, path: '/paid', payTo: peerPayTo, options: ['--keep-offer'],
            pss: () => pss(pids),
            cpu: () => ({ own: seconds(pids), postgres: 0 }),
        };
    }

    // The two facilitators, as sellers' servers call them.
    facilitators() {
        const { port, pid } = this.peerFacilitator;
        return [
            { ...this.ours(), payTo: sellerPayTo },
            { name: 'official', port, payTo: peerPayTo, cpu: () => ({ own: seconds([pid]), postgres: 0 }) },
        ];
    }

    // One of them, alone, asking the node at another address.
    async counted(name, rpc) {
        if (name === 'official') {
            const port = await freePort();
            const pid = await this.#startPeerFacilitator(port, rpc);
            return { port, payTo: peerPayTo, close: () => process.kill(pid) };
        }
        const changes = { network: { rpc: [rpc] }, extra: this.world.options.extra };
        await this.world.stop('settler');
        const url = await this.world.addGateway('gateway2', changes);
        await this.world.startRole('settler2', { config: this.world.writeConfig('settler2', this.world.ports, changes) });
        return { port: Number(new URL(url).port), payTo: sellerPayTo, close: async () => {
            await this.world.stop('gateway2');
            await this.world.stop('settler2');
            await this.world.startRole('settler');
        } };
    }

    // ---- the chain ----

    // A block for each transaction.
    async mineAtOnce() {
        await this.chain.rpc.call('evm_setIntervalMining', 0);
        await this.chain.rpc.call('evm_setAutomine', true);
    }

    async mineEvery(blockSeconds) {
        await this.chain.rpc.call('evm_setAutomine', false);
        await this.chain.rpc.call('evm_setIntervalMining', blockSeconds);
    }

    // Nothing is mined from here on.
    async mineNot() {
        await this.mineEvery(0);
    }

    // Transfers to `to` in each block from..until.
    async transfers(to, from, until) {
        const topics = ['0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef', null,
            `0x${to.slice(2).toLowerCase().padStart(64, '0')}`];
        const logs = await this.chain.rpc.call('eth_getLogs',
            { address: USDC, topics, fromBlock: toHex(from), toBlock: toHex(until) });
        return logs.length;
    }

    // ---- load ----

    async payerAddresses() {
        const { stdout } = await run(this.load, ['payers', 0, this.payers].map(String));
        return stdout.trim().split('\n');
    }

    // The load program. Resolves when it says ready; then `report` resolves to what it prints at its end.
    async #launch(args) {
        const child = spawn(this.load, args.map(String), { stdio: ['pipe', 'pipe', 'inherit'] });
        this.#children.push(child);
        const lines = createInterface({ input: child.stdout });
        let ready;
        const up = new Promise((done) => (ready = done));
        const report = new Promise((done, failed) => {
            lines.on('line', (line) => (line === 'ready' ? ready() : done(JSON.parse(line))));
            child.once('exit', (code) => {
                this.#children.splice(this.#children.indexOf(child), 1);
                if (code !== 0)
                    failed(new Error(`the load program ended with ${code}`));
            });
        });
        await Promise.race([up, report]);
        return { report, end: () => child.stdin.end(), kill: () => child.kill('SIGKILL') };
    }

    pay(side, { connections, seconds, warm = 0, payments = 0 }) {
        return this.#launch(['pay', '127.0.0.1', side.port, side.path, '--payers', `0:${this.payers}`,
            '--connections', connections, '--seconds', seconds, '--warm', warm, '--payments', payments,
            ...side.options]);
    }

    // The same question again and again: first paid for by each of the payers, then free.
    repeat(side, { connections, seconds, warm }) {
        return this.#launch(['repeat', '127.0.0.1', side.port, repeatPath, '--payers', `0:${connections}`,
            '--connections', connections, '--seconds', seconds, '--warm', warm]);
    }

    // The floors of a free repeat: signatures that one core recovers, and rows that 16 connections commit one by one.
    async recoveries(duration) {
        return Number((await run(this.load, ['recover', String(duration)])).stdout);
    }

    async inserts(duration) {
        const bin = (await run('pg_config', ['--bindir'])).stdout.trim();
        const script = join(this.world.dir, 'insert.sql');
        writeFileSync(script, 'INSERT INTO bench_rows (payer) VALUES (sha256(random()::text::bytea));\n');
        const info = ownerOf(this.world.conninfo);
        await psql(info, 'CREATE TABLE IF NOT EXISTS public.bench_rows (id bigserial PRIMARY KEY, payer bytea)');
        const { stdout, stderr } = await run(join(bin, 'pgbench'), ['-n', '-M', 'prepared', '-c', '16', '-T', String(duration), '-f', script, info]);
        const found = stdout.match(/tps = ([0-9.]+)/);
        if (!found)
            throw new Error(`pgbench: ${stdout}${stderr}`);
        return Number(found[1]);
    }

    idle(side, connections) {
        return this.#launch(['idle', '127.0.0.1', side.port, side.path, '--connections', connections]);
    }

    // Paid calls whose work is done and whose money is not proven.
    async waitingOrders() {
        const [{ n }] = await this.world.sql(`SELECT count(*)::int AS n
            FROM orders o JOIN authorizations a ON a.id = o.authorization_id
            WHERE o.work = 'done' AND a.state IN ('due', 'sent')`);
        return n;
    }

    async #openOrders() {
        const [{ n }] = await this.world.sql(`SELECT count(*)::int AS n FROM authorizations
            WHERE state IN ('held', 'due', 'sent')`);
        return n;
    }

    // Waits until a side has no work left, so that one run leaves nothing to the next.
    async quiet(side) {
        const atRest = async () => {
            if (side.name === 'payonce' && await this.#openOrders() > 0)
                return false;
            const before = side.cpu();
            await sleep(500);
            const after = side.cpu();
            return after.own + after.postgres - before.own - before.postgres < 0.1;
        };
        await this.world.waitFor(atRest, `${side.name} has nothing left to do`, 90_000);
    }

    // The database's settings that make a commit durable.
    async durability() {
        const names = ['fsync', 'synchronous_commit', 'full_page_writes'];
        const values = await Promise.all(names.map((name) => this.world.psql(`SHOW ${name}`)));
        return Object.fromEntries(names.map((name, i) => [name, values[i].trim()]));
    }

    async wrk(side, connections, duration) {
        const args = ['-t1', `-c${connections}`, `-d${duration}s`, `http://127.0.0.1:${side.port}${side.path}`];
        const { stdout, stderr } = await run('wrk', args);
        const found = stdout.match(/Requests\/sec: +([0-9.]+)/);
        if (!found)
            throw new Error(`wrk: ${stdout}${stderr}`);
        return Number(found[1]);
    }

    // wrk with a script that says what is sent. Resolves to { rate, p50_ms, p99_ms }.
    async wrkScript(side, connections, duration, script) {
        const args = ['-t1', `-c${connections}`, `-d${duration}s`, '--latency', '-s', script, `http://127.0.0.1:${side.port}/`];
        const { stdout, stderr } = await run('wrk', args);
        const rate = stdout.match(/Requests\/sec: +([0-9.]+)/);
        const [p50, p99] = ['50', '99'].map((n) => stdout.match(new RegExp(`${n}% +([0-9.]+)(us|ms|s)`)));
        if (!rate || !p50 || !p99 || /Non-2xx/.test(stdout))
            throw new Error(`wrk: ${stdout}${stderr}`);
        const milliseconds = ([, number, unit]) => Number(number) * { us: 0.001, ms: 1, s: 1000 }[unit];
        return { rate: Number(rate[1]), p50_ms: milliseconds(p50), p99_ms: milliseconds(p99) };
    }

    async close() {
        this.#children.forEach((child) => child.kill('SIGKILL'));
        await this.world.close();
        this.world.remove();
    }
}
