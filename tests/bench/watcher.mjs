// How fast the watcher books what nobody announced, and in how much memory:
//
//     node tests/bench/watcher.mjs [--transfers 100000] [--halves]
//
// Half of the transfers are a transaction each, half come in hundreds: they take turns, a thousand at a time, or, with
// --halves, all of the hundreds come last. Prints one line; ends with 1 when a bar is missed: 100,000 in under 5 minutes,
// and no more memory for the last of them than for the first tenth. PAYONCE_PROGRAM names the program.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { encodeFunctionData, parseAbi, toHex } from 'viem';
import { labelled } from '../../dev/accounts.mjs';
import { sleep } from '../../dev/process.mjs';
import { MULTICALL3, USDC } from '../../dev/usdc.mjs';
import { root } from '../lib/paths.mjs';

process.env.PAYONCE_PROGRAM ??= join(root, 'build/payonce');
const { World } = await import('../lib/world.mjs');

const ROUND = 1000, EACH = 100, IN_BLOCK = 50, MANY_IN_BLOCK = 5, GAS = '0x186a0', MANY_GAS = '0x989680';
const BAR_S = 300, BAR_SHARE = 1.5;
const abi = parseAbi(['function aggregate3((address target, bool allowFailure, bytes data)[] calls) payable returns ((bool, bytes)[])',
    'function transfer(address to, uint256 value)', 'function transferFrom(address from, address to, uint256 value)',
    'function approve(address spender, uint256 value)']);
const payer = labelled('bench watcher').address;

// ---- what nobody announced ----

async function mineTogether(chain, calls) {
    const first = Number(await chain.rpc.call('eth_getTransactionCount', payer, 'latest'));
    await chain.rpc.batch(calls.map((one, n) => ['eth_sendTransaction', { ...one, nonce: toHex(first + n) }]));
    await chain.rpc.call('anvil_mine', '0x1');
}

const call = (functionName, args) => encodeFunctionData({ abi, functionName, args });
const transfer = (payTo, n) => ({ from: payer, to: USDC, gas: GAS, data: call('transfer', [payTo, BigInt(n + 1)]) });
function hundred(payTo) {
    const one = { target: USDC, allowFailure: false, data: call('transferFrom', [payer, payTo, 3n]) };
    const data = encodeFunctionData({ abi, functionName: 'aggregate3', args: [Array(EACH).fill(one)] });
    return { from: payer, to: MULTICALL3, gas: MANY_GAS, data };
}

async function makeTransfers({ chain, payTo }, count, round) {
    await chain.mint(payer, 10n ** 15n);
    await chain.giveGas(payer, 10n ** 24n);
    await chain.send(payer, USDC, call('approve', [MULTICALL3, 10n ** 15n]));
    for (let made = 0; made < count; made += round) {
        for (let i = 0; i < round / 2; i += IN_BLOCK)
            await mineTogether(chain, Array.from({ length: IN_BLOCK }, (_, n) => transfer(payTo, i + n)));
        for (let i = 0; i < round / 2; i += MANY_IN_BLOCK * EACH)
            await mineTogether(chain, Array(MANY_IN_BLOCK).fill(hundred(payTo)));
    }
    await chain.mine(8);
}

// ---- how it is booked ----

const rss = (pid) => Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+) kB/m)[1]) / 1024;
const cpu = (pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
};

async function booked(world) {
    const [{ n }] = await world.sql('SELECT count(*)::int AS n FROM transfers WHERE booked = class');
    return n;
}

async function watch(world, count) {
    const began = Date.now(), samples = [];
    await world.startRole('settler');
    for (let done = 0; done < count; done = await booked(world)) {
        assert.ok(Date.now() - began < 2 * BAR_S * 1000, `${done} of ${count} are booked`);
        samples.push([done, rss(world.pid('settler'))]);
        await sleep(250);
    }
    const most = (list) => Math.max(...list.map(([, mb]) => mb));
    const first = samples.filter(([done]) => done <= count / 10), last = samples.filter(([done]) => done >= count * 0.9);
    return { seconds: (Date.now() - began) / 1000, cpu_s: cpu(world.pid('settler')), first_mb: most(first), last_mb: most(last),
        most_mb: most(samples) };
}

async function main() {
    const { values } = parseArgs({ options: { transfers: { type: 'string', default: '100000' }, halves: { type: 'boolean' } } });
    const count = Math.ceil(Number(values.transfers) / ROUND) * ROUND;
    const world = new World({ blockTime: 0, gasLimit: 1_000_000_000, network: { block_time_ms: 2000 } });
    try {
        await world.start();
        await world.chain.mine(8);
        await world.waitFor(async () => (await world.sql('SELECT 1 FROM movement_scans')).length === 1, 'the books are open');
        await world.stop('settler');
        await makeTransfers(world, count, values.halves ? count : ROUND);
        const m = await watch(world, count);
        const one = (n) => n.toFixed(1);
        process.stdout.write(`${count} transfers booked in ${one(m.seconds)} s (${(count / m.seconds).toFixed(0)}/s, `
            + `settler's CPU ${one(m.cpu_s)} s); its memory ${one(m.first_mb)} MB in the first tenth, ${one(m.last_mb)} MB in the last, `
            + `${one(m.most_mb)} MB at most\n`);
        return m.seconds < BAR_S * (count / 100_000) && m.last_mb < BAR_SHARE * m.first_mb ? 0 : 1;
    } catch (error) {
        world.dumpLogs();
        throw error;
    } finally {
        await world.close();
        world.remove();
    }
}

process.exit(await main());
