// The second local chain: anvil as a Tempo node, with its four test dollars. Used by ./up, and by the tests.
//
//     node dev/tempo.mjs --port 8546 --dir DIR [--block-time S] [--interval S]
//
// prints one line of JSON when the chain answers, and keeps it until it is told to stop. Its state is in DIR.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem';
import { buyers, payTo, relayer } from './accounts.mjs';
import { anvilPath, genesisTime, nodeAnswers, sleep, stopChain } from './chain.mjs';
import { Rpc } from './rpc.mjs';

export const TEMPO_ID = 42431; // as Moderato, the public test network
export const PATH_USD = '0x20c0000000000000000000000000000000000000';
export const ALPHA_USD = '0x20c0000000000000000000000000000000000001';
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
export const TRANSFER_WITH_MEMO = '0x57bc7354aa85aed339e000bccffabbc529466af35f0772c8f8ee1145927de7f0';
export const FEE_MANAGER = '0xfeec000000000000000000000000000000000000';

export const tokenAbi = parseAbi([
    'function balanceOf(address) view returns (uint256)',
    'function transfer(address, uint256) returns (bool)',
    'function transferWithMemo(address, uint256, bytes32)',
]);

const topicOf = (address) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;

export class Tempo {
    constructor(url, pid) {
        this.rpc = new Rpc(url);
        this.pid = pid;
    }

    async block(tag = 'latest') {
        const block = await this.rpc.call('eth_getBlockByNumber', tag, false);
        return { number: Number(block.number), time: Number(block.timestamp), hash: block.hash };
    }

    async balanceOf(address, token = PATH_USD) {
        const data = encodeFunctionData({ abi: tokenAbi, functionName: 'balanceOf', args: [address] });
        const result = await this.rpc.call('eth_call', { to: token, data }, 'latest');
        return decodeFunctionResult({ abi: tokenAbi, functionName: 'balanceOf', data: result });
    }

    async receipt(hash, deadlineMs = 20_000) {
        for (const end = Date.now() + deadlineMs; Date.now() < end; await sleep(50)) {
            const receipt = await this.rpc.call('eth_getTransactionReceipt', hash);
            if (receipt)
                return receipt;
        }
        throw new Error(`no receipt for ${hash} within ${deadlineMs} ms`);
    }

    // Every Transfer log of the token (null: of any) to an address (to any, without one), fees left out, oldest first.
    async allTransfers(token = PATH_USD, to = null) {
        const topics = to ? [TRANSFER, null, topicOf(to)] : [TRANSFER];
        const logs = await this.rpc.call('eth_getLogs', { ...(token && { address: token }), topics, fromBlock: '0x0', toBlock: 'latest' });
        return logs.map((log) => ({
            from: `0x${log.topics[1].slice(26)}`, to: `0x${log.topics[2].slice(26)}`, amount: BigInt(log.data),
            tx: log.transactionHash, logIndex: Number(log.logIndex), block: Number(log.blockNumber),
        })).filter((log) => log.to !== FEE_MANAGER);
    }

    // ---- what only the owner of the node can do ----

    // From one of the node's own accounts, which are rich. There is no coin but the tokens: fees are paid in them too.
    async fund(addresses, atoms, token = PATH_USD) {
        const [, from] = await this.rpc.call('eth_accounts');
        const hashes = [];
        for (const address of [addresses].flat()) {
            const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [address, BigInt(atoms)] });
            hashes.push(await this.rpc.call('eth_sendTransaction', { from, to: token, data }));
        }
        for (const hash of hashes)
            if ((await this.receipt(hash)).status !== '0x1')
                throw new Error('funding failed');
    }

    mine(blocks = 1) {
        return this.rpc.call('anvil_mine', `0x${blocks.toString(16)}`, '0x0');
    }
}

// The pins are what this version of anvil can do: under its default fork a payer's second expiring nonce hangs. Without a
// block time its head lags behind the clock, and clients take their own deadlines for too far away.
export async function startTempo({ dir, port, blockTime = 1, gasLimit = 0, interval = 0, log, detached = false }) {
    mkdirSync(dir, { recursive: true });
    rmSync(join(dir, 'cache'), { recursive: true, force: true });
    const state = join(dir, 'tempo.json');
    const fresh = !existsSync(state);
    const args = ['--network', 'tempo', '--hardfork', 'T4', '--chain-id', TEMPO_ID, '--block-time', blockTime,
        ...(gasLimit ? ['--gas-limit', gasLimit] : []),
        '--host', '127.0.0.1', '--port', port, '--state', state, '--quiet', '--cache-path', join(dir, 'cache'),
        '--timestamp', genesisTime(dir), ...(interval ? ['--state-interval', interval] : [])];
    const out = log ? openSync(log, 'a', 0o600) : 'ignore';
    const child = spawn(anvilPath(), args.map(String), { stdio: ['ignore', out, out], detached });
    const failed = new Promise((_, no) => child.once('error', no));
    const chain = new Tempo(`http://127.0.0.1:${port}`, child.pid);
    chain.child = child;
    await Promise.race([nodeAnswers(chain, child, TEMPO_ID), failed]);
    await chain.rpc.call('anvil_setTime', Math.floor(Date.now() / 1000));
    if (fresh)
        await chain.fund([relayer.address, ...buyers.map(({ address }) => address)], 1_000_000_000n);
    chain.genesis = (await chain.block('0x0')).hash;
    return chain;
}

async function main() {
    const { values } = parseArgs({
        options: {
            port: { type: 'string', default: '8546' },
            dir: { type: 'string' },
            'block-time': { type: 'string', default: '1' },
            interval: { type: 'string', default: '2' },
        },
    });
    if (!values.dir)
        throw new Error('--dir DIR is missing');
    const chain = await startTempo({
        dir: values.dir, port: Number(values.port), blockTime: Number(values['block-time']), interval: Number(values.interval),
    });
    process.stdout.write(`${JSON.stringify({
        rpc: chain.rpc.url, chain_id: TEMPO_ID, token: PATH_USD, genesis: chain.genesis, pay_to: payTo, accounts: buyers,
        pid: chain.pid,
    })}\n`);
    chain.child.once('exit', (code) => process.exit(code ?? 1));
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.on(signal, () => stopChain(chain, 'SIGTERM'));
}

if (process.argv[1] === fileURLToPath(import.meta.url))
    await main();
