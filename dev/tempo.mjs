// The local Tempo chain: anvil in its Tempo mode, under Moderato's chain id, so that stock MPP clients need no more than its address.
// Its TIP-20 tokens are there from the beginning, and ten accounts of the node's own hold plenty of each.
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { decodeAbiParameters, encodeFunctionData, parseAbi, toHex } from 'viem';
import { anvilPath, genesisTime, nodeAnswers, sleep } from './chain.mjs';
import { Rpc } from './rpc.mjs';

export const TEMPO_CHAIN_ID = 42431;
export const TEMPO = `eip155:${TEMPO_CHAIN_ID}`;
export const PATH_USD = '0x20c0000000000000000000000000000000000000';
export const ALPHA_USD = '0x20c0000000000000000000000000000000000001';
// keccak256 of "Transfer(address,address,uint256)"
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const FEE_MANAGER = '0xfeec000000000000000000000000000000000000';

export const tipAbi = parseAbi([
    'function transfer(address,uint256) returns (bool)',
    'function transferWithMemo(address,uint256,bytes32)',
    'function balanceOf(address) view returns (uint256)',
]);

export class Tempo {
    constructor(url, pid) {
        this.rpc = new Rpc(url);
        this.pid = pid;
    }

    async block(tag = 'latest') {
        const block = await this.rpc.call('eth_getBlockByNumber', tag, false);
        return { number: Number(block.number), time: Number(block.timestamp), hash: block.hash };
    }

    async receipt(hash, deadlineMs = 20_000) {
        for (const end = Date.now() + deadlineMs; Date.now() < end; await sleep(50)) {
            const receipt = await this.rpc.call('eth_getTransactionReceipt', hash);
            if (receipt)
                return receipt;
        }
        throw new Error(`no receipt for ${hash} within ${deadlineMs} ms`);
    }

    async balanceOf(address, token = PATH_USD) {
        const data = encodeFunctionData({ abi: tipAbi, functionName: 'balanceOf', args: [address] });
        return BigInt(await this.rpc.call('eth_call', { to: token, data }, 'latest'));
    }

    // From one of the node's own accounts, mined.
    async write(from, functionName, args, token = PATH_USD) {
        const data = encodeFunctionData({ abi: tipAbi, functionName, args });
        const hash = await this.rpc.call('eth_sendTransaction', { from, to: token, data, gas: toHex(1_000_000) });
        const receipt = await this.receipt(hash);
        if (receipt.status !== '0x1')
            throw new Error(`transaction ${hash} failed`);
        return receipt;
    }

    async fund(addresses, atoms, token = PATH_USD) {
        const [rich] = await this.rpc.call('eth_accounts');
        for (const address of [addresses].flat())
            await this.write(rich, 'transfer', [address, BigInt(atoms)], token);
    }

    // Every Transfer log, of any token, oldest first, but for fees.
    async allTransfers() {
        const logs = await this.rpc.call('eth_getLogs', { topics: [TRANSFER], fromBlock: '0x0', toBlock: 'latest' });
        return logs.map((log) => ({
            from: `0x${log.topics[1].slice(26)}`, to: `0x${log.topics[2].slice(26)}`,
            amount: decodeAbiParameters([{ type: 'uint256' }], log.data)[0], tx: log.transactionHash,
            logIndex: Number(log.logIndex), block: Number(log.blockNumber),
        })).filter(({ to }) => to !== FEE_MANAGER);
    }
}

// hardfork T4: the newest that this anvil and the stock clients agree on. Without a block time the head's clock lags, and clients'
// deadlines are refused as too far ahead.
export async function startTempo({ dir, port, blockTime = 1, log, detached = false }) {
    mkdirSync(dir, { recursive: true });
    rmSync(join(dir, 'cache'), { recursive: true, force: true });
    const args = ['--network', 'tempo', '--hardfork', 'T4', '--host', '127.0.0.1', '--port', port, '--chain-id', TEMPO_CHAIN_ID,
        '--block-time', blockTime, '--slots-in-an-epoch', 1, '--state', join(dir, 'tempo.json'), '--timestamp', genesisTime(dir),
        '--quiet', '--cache-path', join(dir, 'cache')];
    const out = log ? openSync(log, 'a', 0o600) : 'ignore';
    const child = spawn(anvilPath(), args.map(String), { stdio: ['ignore', out, out], detached });
    const failed = new Promise((_, no) => child.once('error', no));
    const chain = new Tempo(`http://127.0.0.1:${port}`, child.pid);
    chain.child = child;
    await Promise.race([nodeAnswers(chain, child, TEMPO_CHAIN_ID), failed]);
    await chain.rpc.call('anvil_setTime', Math.floor(Date.now() / 1000));
    chain.genesis = (await chain.block('0x0')).hash;
    return chain;
}
