// The local chain: a real EVM node (anvil) with the real USDC contract. Used by ./up, and by the tests, which
// also use what the class below can do to a chain that nobody can do to a public one.
//
//     node dev/chain.mjs --port 8545 --dir DIR [--block-time S] [--gas-limit N] [--interval S]
//
// prints one line of JSON when the chain answers, and keeps it until it is told to stop. Its state is in DIR.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { decodeAbiParameters, decodeFunctionResult, encodeFunctionData, toHex } from 'viem';
import { buyers, payTo, relayer } from './accounts.mjs';
import { Rpc } from './rpc.mjs';
import { MULTICALL3, USDC, balanceSlot, putContracts, tokenAbi } from './usdc.mjs';

export const CHAIN_ID = 84532;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const BLACKLISTED = 1n << 255n;
const here = dirname(fileURLToPath(import.meta.url));

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class Chain {
    constructor(url, pid) {
        this.rpc = new Rpc(url);
        this.pid = pid;
    }

    // ---- what anybody can do ----

    async block(tag = 'latest') {
        const block = await this.rpc.call('eth_getBlockByNumber', tag, false);
        return { number: Number(block.number), time: Number(block.timestamp), hash: block.hash };
    }

    async read(functionName, args, { token = USDC, abi = tokenAbi, block = 'latest' } = {}) {
        const data = encodeFunctionData({ abi, functionName, args });
        const result = await this.rpc.call('eth_call', { to: token, data }, block);
        return decodeFunctionResult({ abi, functionName, data: result });
    }

    balanceOf(address, token = USDC) {
        return this.read('balanceOf', [address], { token });
    }

    authorizationState(payer, nonce, token = USDC) {
        return this.read('authorizationState', [payer, nonce], { token });
    }

    async receipt(hash, deadlineMs = 60_000) {
        for (const end = Date.now() + deadlineMs; Date.now() < end; await sleep(50)) {
            const receipt = await this.rpc.call('eth_getTransactionReceipt', hash);
            if (receipt)
                return receipt;
        }
        throw new Error(`no receipt for ${hash} within ${deadlineMs} ms`);
    }

    // Every Transfer log of the token, oldest first.
    async allTransfers(token = USDC, fromBlock = 0) {
        const logs = await this.rpc.call('eth_getLogs',
            { address: token, topics: [TRANSFER], fromBlock: toHex(fromBlock), toBlock: 'latest' });
        return logs.map((log) => ({
            from: `0x${log.topics[1].slice(26)}`,
            to: `0x${log.topics[2].slice(26)}`,
            amount: decodeAbiParameters([{ type: 'uint256' }], log.data)[0],
            tx: log.transactionHash,
            logIndex: Number(log.logIndex),
            block: Number(log.blockNumber),
        }));
    }

    // ---- what only the owner of the node can do ----

    // Sends from an address without its key, mines a block, and insists on success.
    async send(from, to, data, { gas = 6_000_000, value = 0n, mayFail = false } = {}) {
        await this.rpc.call('anvil_impersonateAccount', from);
        const hash = await this.rpc.call('eth_sendTransaction',
            { from, ...(to && { to }), data, gas: toHex(gas), value: toHex(value) });
        await this.mine();
        const receipt = await this.receipt(hash);
        if (receipt.status !== '0x1' && !mayFail)
            throw new Error(`transaction ${hash} failed`);
        return receipt;
    }

    async create(from, bytecode) {
        return (await this.send(from, null, bytecode)).contractAddress;
    }

    write(from, functionName, args, token = USDC) {
        return this.send(from, token, encodeFunctionData({ abi: tokenAbi, functionName, args }));
    }

    // The clock stays the machine's: blocks mined in one second carry the same time.
    mine(blocks = 1) {
        return this.rpc.call('anvil_mine', toHex(blocks), '0x0');
    }

    // From here on the chain's clock runs ahead of the machine's by so many seconds more.
    async warp(seconds) {
        await this.rpc.call('evm_increaseTime', toHex(seconds));
        await this.mine();
    }

    // Balances appear out of nothing (no Transfer log), and a block is mined so that every later block has them.
    async fund(addresses, atoms, token = USDC) {
        const value = toHex(BigInt(atoms), { size: 32 });
        const list = [addresses].flat();
        for (let i = 0; i < list.length; i += 500)
            await this.rpc.batch(list.slice(i, i + 500)
                .map((address) => ['anvil_setStorageAt', token, balanceSlot(address), value]));
        await this.mine();
    }

    async giveGas(address, wei = 100n * 10n ** 18n) {
        await this.rpc.call('anvil_setBalance', address, toHex(wei));
    }

    setCode(address, code) {
        return this.rpc.call('anvil_setCode', address, code);
    }

    // The last `depth` blocks are replaced by empty ones; what they held is dropped, not mined again.
    reorg(depth) {
        return this.rpc.call('anvil_reorg', depth, []);
    }

    async #owner() {
        return (await this.rpc.call('eth_accounts'))[1];
    }

    async mint(address, atoms) {
        await this.write(await this.#owner(), 'mint', [address, BigInt(atoms)]);
    }

    async pause() {
        await this.write(await this.#owner(), 'pause', []);
    }

    async unpause() {
        await this.write(await this.#owner(), 'unpause', []);
    }

    async blacklist(address) {
        await this.write(await this.#owner(), 'blacklist', [address]);
    }

    async unBlacklist(address) {
        await this.write(await this.#owner(), 'unBlacklist', [address]);
    }

    async isBlacklisted(address) {
        const slot = await this.rpc.call('eth_getStorageAt', USDC, balanceSlot(address), 'latest');
        return (BigInt(slot) & BLACKLISTED) !== 0n;
    }
}

export function anvilPath() {
    const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch];
    return join(here, `node_modules/@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`);
}

export async function nodeAnswers(chain, child, chainId, deadlineMs = 60_000) {
    for (const end = Date.now() + deadlineMs; Date.now() < end; await sleep(30)) {
        if (child.exitCode !== null || child.signalCode !== null)
            throw new Error(`the chain's node ended at once (${child.exitCode ?? child.signalCode})`);
        const id = await chain.rpc.call('eth_chainId').catch(() => null);
        if (Number(id) === chainId)
            return;
    }
    throw new Error('the chain does not answer');
}

// The node makes a genesis block at each start, also when it loads a state. Payonce knows a chain by its genesis, so
// it has to come out the same.
export function genesisTime(dir) {
    const path = join(dir, 'genesis-time');
    if (!existsSync(path))
        writeFileSync(path, String(Math.floor(Date.now() / 1000)));
    return readFileSync(path, 'utf8');
}

// blockTime: seconds, or 0 for blocks only by mine(). interval: seconds between saves of the state, so that a
// killed node comes back; 0 saves only when it is told to stop. The demo's accounts are funded on a new chain.
export async function startChain(
    { dir, port, blockTime = 2, gasLimit = 30_000_000, interval = 0, log, detached = false },
) {
    mkdirSync(dir, { recursive: true });
    rmSync(join(dir, 'cache'), { recursive: true, force: true }); // states of a node that is gone, a gigabyte an hour
    const state = join(dir, 'chain.json');
    const fresh = !existsSync(state);
    const args = ['--host', '127.0.0.1', '--port', port, '--chain-id', CHAIN_ID, '--slots-in-an-epoch', 1,
        '--accounts', 2, '--gas-limit', gasLimit, '--state', state, '--quiet', '--cache-path', join(dir, 'cache'),
        ...(blockTime ? ['--block-time', blockTime] : ['--no-mining']),
        '--timestamp', genesisTime(dir), ...(interval ? ['--state-interval', interval] : [])];
    const out = log ? openSync(log, 'a', 0o600) : 'ignore';
    const child = spawn(anvilPath(), args.map(String), { stdio: ['ignore', out, out], detached });
    const failed = new Promise((_, no) => child.once('error', no));
    const chain = new Chain(`http://127.0.0.1:${port}`, child.pid);
    chain.child = child;
    await Promise.race([nodeAnswers(chain, child, CHAIN_ID), failed]);
    await chain.rpc.call('anvil_setTime', Math.floor(Date.now() / 1000));
    if (fresh)
        await populate(chain);
    chain.genesis = (await chain.block('0x0')).hash;
    return chain;
}

async function populate(chain) {
    const [admin, owner] = await chain.rpc.call('eth_accounts');
    await putContracts(chain, { admin, owner });
    await chain.giveGas(relayer.address);
    for (const { address } of buyers)
        await chain.mint(address, 1_000_000_000n);
}

// Told to stop, the node saves its state first.
export function stopChain(chain, signal = 'SIGTERM') {
    const { child } = chain;
    if (child.exitCode !== null || child.signalCode !== null)
        return Promise.resolve();
    return new Promise((done) => {
        child.once('exit', done);
        child.kill(signal);
    });
}

async function main() {
    const { values } = parseArgs({
        options: {
            port: { type: 'string', default: '8545' },
            dir: { type: 'string' },
            'block-time': { type: 'string', default: '2' },
            'gas-limit': { type: 'string', default: '30000000' },
            interval: { type: 'string', default: '2' },
        },
    });
    if (!values.dir)
        throw new Error('--dir DIR is missing');
    const chain = await startChain({
        dir: values.dir, port: Number(values.port), blockTime: Number(values['block-time']),
        gasLimit: Number(values['gas-limit']), interval: Number(values.interval),
    });
    process.stdout.write(`${JSON.stringify({
        rpc: chain.rpc.url, chain_id: CHAIN_ID, token: USDC, multicall: MULTICALL3, genesis: chain.genesis,
        pay_to: payTo, relayer, accounts: buyers, pid: chain.pid,
    })}\n`);
    chain.child.once('exit', (code) => process.exit(code ?? 1));
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.on(signal, () => chain.child.kill('SIGTERM'));
}

if (process.argv[1] === fileURLToPath(import.meta.url))
    await main();
