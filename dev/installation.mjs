// The parts of a local installation, each of which can be started, found again and stopped by itself.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buyers, payTo, receiptSigner, refundWallet, relayer, sellerPayTo } from './accounts.mjs';
import { CHAIN_ID, Chain, startChain } from './chain.mjs';
import { NETWORK, TEMPO, makeConfig, toolList } from './config.mjs';
import {
    folderAboveDatabase, keepSecret, portTaken, ports, privateFolder, root, secretFile, stateFolder,
} from './place.mjs';
import { forget, launch, recall, remember, run, stop, tail, until } from './process.mjs';
import { PATH_USD, TEMPO_ID, Tempo, startTempo } from './tempo.mjs';
import { USDC } from './usdc.mjs';

export const BLOCK_TIME = 2;
const TEMPO_BLOCK_TIME = 1;
const REFUND_ATOMS = 100_000_000n;
// In the order of their start; they stop in the other one.
export const parts = ['node', 'tempo', 'postgres', 'upstream', 'settler', 'gateway'];

// Trouble that is told in words, without a stack.
export class Trouble extends Error {}

export class Installation {
    constructor() {
        this.vars = process.env.PAYONCE_VAR ?? join(root, 'var');
        this.program = process.env.PAYONCE_PROGRAM ?? join(root, 'build/payonce');
        this.stateDir = stateFolder(this.vars);
        this.chainDir = join(this.vars, 'chain');
        this.config = join(this.vars, 'payonce.json');
        this.ports = ports();
        const url = ([name, port]) => [name, `http://127.0.0.1:${port}`];
        this.urls = Object.fromEntries(Object.entries(this.ports).map(url));
    }

    prepare() {
        folderAboveDatabase(this.vars);
        folderAboveDatabase(this.stateDir);
        for (const name of ['run', 'log', 'keys', 'chain', 'tempo', 'shop', 'buyer'])
            privateFolder(join(this.vars, name));
        this.env = {
            PAYONCE_RELAYER_KEY_FILE: secretFile(join(this.vars, 'keys/relayer'), relayer.key),
            PAYONCE_QUOTE_KEY_FILE: keepSecret(join(this.vars, 'keys/quote')),
            PAYONCE_REFUND_KEY_FILE: secretFile(join(this.vars, 'keys/refund'), refundWallet.key),
            PAYONCE_RECEIPT_KEY_FILE: secretFile(join(this.vars, 'keys/receipt'), receiptSigner.key),
        };
        this.buyerKey = secretFile(join(this.vars, 'keys/buyer'), buyers[0].key);
        const network = { block_time_ms: BLOCK_TIME * 1000 };
        const accepts = [{ network: NETWORK, token: 'USDC', pay_to: sellerPayTo }];
        const refunds = [[NETWORK, 'USDC'], [TEMPO, 'pathUSD']]
            .map(([at, token]) => ({ network: at, token, mode: 'automatic', after_s: 0, every_s: 2 }));
        const extra = { sellers: [{ name: 'demo', key: 'open', accepts }], refunds };
        const tempo = { block_time_ms: TEMPO_BLOCK_TIME * 1000, finality_blocks: 1 };
        const config = makeConfig({ ports: this.ports, stateDir: this.stateDir, network, extra, tempo });
        writeFileSync(this.config, `${JSON.stringify(config, null, 2)}\n`);
    }

    pidFile(part) {
        return join(this.vars, `run/${part}.pid`);
    }

    logFile(part) {
        return join(this.vars, `log/${part}.log`);
    }

    pid(part) {
        return recall(this.pidFile(part));
    }

    // In a session of its own: what it leaves running (the database server) is not to get the terminal's Ctrl-C.
    payonce(args) {
        return run(this.program, ['--config', this.config, ...args], { env: this.env, cwd: root, detached: true });
    }

    async insist(args) {
        const { code, stdout, stderr } = await this.payonce(args);
        if (code !== 0)
            throw new Trouble(`payonce ${args.join(' ')} failed (${code}):\n${(stderr + stdout).trim()}`);
        return stdout;
    }

    // Ports that somebody else holds, as [part, port].
    async strangers() {
        const taken = [];
        for (const [name, port] of Object.entries(this.ports)) {
            const part = name === 'admin' ? 'gateway' : name;
            if (this.pid(part) === null && await portTaken(port))
                taken.push([name, port]);
        }
        return taken;
    }

    // ---- starting ----

    async startNode() {
        if (this.pid('node') === null) {
            const chain = await startChain({
                dir: this.chainDir, port: this.ports.node, blockTime: BLOCK_TIME, interval: 2,
                log: this.logFile('node'), detached: true,
            });
            remember(this.pidFile('node'), chain.pid);
            chain.child.unref();
        }
        this.chain = new Chain(this.urls.node, this.pid('node'));
        if (await this.chain.balanceOf(refundWallet.address) === 0n)
            await this.chain.mint(refundWallet.address, REFUND_ATOMS);
        const { number } = await this.chain.block();
        return `chain ${CHAIN_ID} at ${this.urls.node}, at block ${number}, one every ${BLOCK_TIME} s`;
    }

    async startTempo() {
        if (this.pid('tempo') === null) {
            const chain = await startTempo({
                dir: join(this.vars, 'tempo'), port: this.ports.tempo, blockTime: TEMPO_BLOCK_TIME, interval: 2,
                log: this.logFile('tempo'), detached: true,
            });
            remember(this.pidFile('tempo'), chain.pid);
            chain.child.unref();
        }
        this.tempo = new Tempo(this.urls.tempo, this.pid('tempo'));
        if (await this.tempo.balanceOf(refundWallet.address) === 0n)
            await this.tempo.fund(refundWallet.address, REFUND_ATOMS);
        const { number } = await this.tempo.block();
        return `chain ${TEMPO_ID} (Tempo) at ${this.urls.tempo}, at block ${number}, one every ${TEMPO_BLOCK_TIME} s`;
    }

    // Also when it runs: the program then only says where.
    async startPostgres() {
        const { conninfo, pid } = JSON.parse(await this.insist(['database', 'start']));
        this.database = conninfo;
        remember(this.pidFile('postgres'), pid);
        await this.insist(['migrate']);
        return `PostgreSQL, ${conninfo}`;
    }

    async #start(part, command, args, answers) {
        if (this.pid(part) === null) {
            const child = await launch(command, args, { log: this.logFile(part), env: this.env, cwd: root });
            remember(this.pidFile(part), child.pid);
        }
        const ready = await until(async () => this.pid(part) === null || await answers(), 20_000);
        if (!ready || this.pid(part) === null)
            throw this.ended(part);
    }

    async startUpstream() {
        const { upstream } = this.ports;
        const args = [join(root, 'dev/upstream.mjs'), '--port', String(upstream), '--dir', join(this.vars, 'shop')];
        await this.#start('upstream', process.execPath, args, () => portTaken(upstream));
        return `the demo's API at ${this.urls.upstream}`;
    }

    async startSettler() {
        await this.#start('settler', this.program, ['--config', this.config, 'settler'], () => true);
        return `relayer ${relayer.address}`;
    }

    async startGateway() {
        const args = ['--config', this.config, 'gateway'];
        await this.#start('gateway', this.program, args, () => portTaken(this.ports.gateway));
        return this.urls.gateway;
    }

    start(part) {
        return {
            node: () => this.startNode(), tempo: () => this.startTempo(), postgres: () => this.startPostgres(), upstream: () => this.startUpstream(),
            settler: () => this.startSettler(), gateway: () => this.startGateway(),
        }[part]();
    }

    // A part that should run and does not: its last words.
    ended(part) {
        return new Trouble(`${part} does not run. The end of ${this.logFile(part)}:\n${tail(this.logFile(part))}`);
    }

    // ---- stopping ----

    async stop(part) {
        if (part !== 'postgres' || this.pid(part) === null)
            return stop(this.pidFile(part));
        const { code } = await this.payonce(['database', 'stop']);
        if (code !== 0)
            return stop(this.pidFile(part));
        forget(this.pidFile(part));
        return 'stopped';
    }

    running() {
        return parts.filter((part) => this.pid(part) !== null);
    }

    // ---- var/dev.json ----

    get description() {
        return join(this.vars, 'dev.json');
    }

    describe() {
        const { gateway, admin, node, tempo } = this.urls;
        writeFileSync(this.description, `${JSON.stringify({
            gateway, admin, rpc: node, chain_id: CHAIN_ID, token: USDC, pay_to: payTo, accounts: buyers,
            tempo: { rpc: tempo, chain_id: TEMPO_ID, token: PATH_USD },
            refund_wallet: refundWallet.address, receipt_signer: receiptSigner.address,
            facilitator: { url: gateway, pay_to: sellerPayTo },
            tools: toolList(gateway), database: this.database,
            pids: Object.fromEntries(['gateway', 'settler', 'postgres', 'node', 'tempo'].map((part) => [part, this.pid(part)])),
        }, null, 2)}\n`, { mode: 0o600 });
    }

    described() {
        return existsSync(this.description) ? JSON.parse(readFileSync(this.description, 'utf8')) : null;
    }
}
