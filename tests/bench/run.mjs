// What the service costs beside the official stack, on one machine and one chain, in turns: ./check bench.
//
//     node tests/bench/run.mjs [--quick]
//
// prints a table and writes var/bench.json; ends with 1 when a bar is missed. PAYONCE_PROGRAM names the program; the
// load program is taken from the same build.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../lib/paths.mjs';

process.env.PAYONCE_PROGRAM ??= join(root, 'build/payonce');
const { Stage } = await import('./stage.mjs');
const { facilitatorBars, facilitatorRows, rpcCalls, settlements, verifications } = await import('./facilitator.mjs');
const { mppBars, mppOnTempo, mppRows } = await import('./mpp.mjs');
const { receiptPage } = await import('./receipt.mjs');
const { challenges, freeRepeats, manyConnections, paidCalls, repeatAnswers, settledPayments, waiting } = await import('./measures.mjs');

const full = {
    challenges: { rounds: 7, seconds: 2 },
    manyConnections: { rounds: 3, seconds: 2 },
    paidCalls: { rounds: 3, seconds: 8 },
    freeRepeats: { rounds: 3, seconds: 6 },
    settledPayments: { rounds: 3, blocks: 6, peerAt1024: true },
    verifications: { rounds: 3, seconds: 5 },
    settlements: { rounds: 3, blocks: 5 },
    receipt: { seconds: 5 },
    mpp: { challenges: { rounds: 7, seconds: 2 }, paid: { rounds: 3, seconds: 10, callers: 128 } },
};
const quick = {
    challenges: { rounds: 3, seconds: 2 },
    manyConnections: { rounds: 3, seconds: 1 },
    paidCalls: { rounds: 1, seconds: 6 },
    freeRepeats: { rounds: 3, seconds: 4 },
    settledPayments: { rounds: 1, blocks: 4, peerAt1024: false },
    verifications: { rounds: 1, seconds: 3 },
    settlements: { rounds: 1, blocks: 3 },
    receipt: { seconds: 2 },
    mpp: { challenges: { rounds: 3, seconds: 2 }, paid: { rounds: 1, seconds: 8, callers: 128 } },
};

// ---- what was measured, and where ----

function said(command, args) {
    try {
        return execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
        return 'unknown';
    }
}

const packageVersion = (name) =>
    JSON.parse(readFileSync(join(root, `tests/node_modules/${name}/package.json`), 'utf8')).version;

async function surroundings(stage) {
    const peers = ['@x402/express', '@x402/core', '@x402/evm', 'express', 'mppx', 'viem'];
    return {
        commit: said('git', ['describe', '--always', '--dirty=, changed']),
        cores: cpus().length, cpu: cpus()[0].model, kernel: said('uname', ['-r']),
        node: process.version, chain: await stage.chain.rpc.call('web3_clientVersion'),
        postgres: (await stage.world.psql('SHOW server_version')).trim(),
        ...await stage.durability(),
        official: Object.fromEntries(peers.map((name) => [name, packageVersion(name)])),
    };
}

// ---- bars ----

const percent = (share) => `${(share * 100).toFixed(1)} %`;
const times = (ratio) => `${ratio.toFixed(1)}x`;
const megabytes = (mb) => `${mb.toFixed(0)} MB`;
const atLeast = (name, value, bar, show) =>
    ({ name, value, bar, ok: value >= bar, says: `${show(value)}, at least ${show(bar)}` });
const atMost = (name, value, bar, show) =>
    ({ name, value, bar, ok: value <= bar, says: `${show(value)}, at most ${show(bar)}` });

const judge = (m) => [
    atLeast('402/s at 64 connections, of the official', m.challenges.ratio, 10, times),
    atLeast('402/s at 128 to 512, the least, of 120 and 520', m.connections.least, 0.9, percent),
    atLeast('paid calls per CPU second, of the official', m.paid.ratio, 10, times),
    atMost('a replay or a 409, median of the slowest kind', m.answers.worst_ms, 5, (ms) => `${ms.toFixed(2)} ms`),
    atLeast('free repeats/s, of one core\'s recoveries', m.repeats.share, 0.2, percent),
    ...[[64, 0.9], [256, 0.9], [1024, 0.7]].map(([callers, bar]) =>
        atLeast(`settled with 2 s blocks at ${callers}`, m.settled.payonce[callers].share, bar, percent)),
    atMost('memory, of the official', m.settled.memory.share, 0.25, percent),
    atMost('a receipt\'s page', m.receipt.bytes / 1024, 50, (kb) => `${kb.toFixed(1)} KB`),
    atMost('a receipt\'s page, median', m.receipt.p50_ms, 5, (ms) => `${ms.toFixed(1)} ms`),
    ...facilitatorBars(m.facilitator, { atLeast, atMost }),
    ...mppBars(m.mpp, { atLeast }),
    atLeast('requests parked beside idle connections', m.waiting.parked, 1000, String),
    atLeast('of them served when blocks came again', m.waiting.served_after, 1000, String),
    atMost('gateway\'s memory with them', m.waiting.both_mb, 400, megabytes),
    atMost('a fresh request meanwhile, median', m.waiting.answer_ms.median, 50, (ms) => `${ms.toFixed(1)} ms`),
];

// ---- the table ----

const milliseconds = ({ p50_ms, p99_ms }) => `${p50_ms} / ${p99_ms} ms`;

function table({ challenges: c, connections, paid: p, repeats: f, answers: a, settled: s, receipt: r, facilitator, mpp, waiting: w }) {
    const rows = [['', 'payonce', 'official', 'ratio']];
    const add = (name, ours, theirs = '', ratio = '') => rows.push([name, ours, theirs, ratio]);
    const both = (name, of, show, ratio) => add(name, show(of.payonce), show(of.official), ratio);
    both('402/s, 64 connections', c, ({ rate }) => rate.toFixed(0), times(c.ratio));
    both('  CPU for one', c, ({ cpu_us }) => `${cpu_us.toFixed(1)} us`, times(c.cpu_ratio));
    for (const [width, rate] of Object.entries(connections.rates)) {
        const share = connections.shares[width];
        add(`402/s, ${width} connections`, rate.toFixed(0), '', share ? percent(share) : '');
    }
    both('paid calls per CPU second', p, ({ per_cpu_second }) => per_cpu_second.toFixed(1), times(p.ratio));
    both('  CPU for one', p, ({ cpu_ms }) => `${cpu_ms.toFixed(2)} ms`);
    both('  of it PostgreSQL', p, ({ postgres_share }) => percent(postgres_share));
    both('  a second, 64 callers', p, ({ rate }) => rate.toFixed(0));
    add('free repeats/s, 64 callers', f.rate.toFixed(0), '', `${percent(f.rate / c.payonce.rate)} of 402/s`);
    add('  CPU for one', `${f.cpu_us.toFixed(0)} us`);
    add('  latency, median / 99 %', milliseconds(f));
    add('  floor: recoveries/s, one core', f.recoveries.toFixed(0), '', percent(f.share));
    add('  floor: durable inserts/s', f.inserts.toFixed(0), '', percent(f.rate / f.inserts));
    add('a replay, a conflict, in flight: median', `${[a.replay_ms, a.conflict_ms, a.in_flight_ms].map((ms) => ms.toFixed(2)).join(' / ')} ms`);
    for (const [callers, ours] of Object.entries(s.payonce)) {
        const theirs = s.official[callers];
        add(`settled with 2 s blocks, ${callers} callers`, percent(ours.share), theirs ? percent(theirs.share) : '');
        add('  latency, median / 99 %', milliseconds(ours), theirs ? milliseconds(theirs) : '');
    }
    both('memory after it (PSS)', s.memory, megabytes, percent(s.memory.share));
    add('a receipt\'s page', `${(r.bytes / 1024).toFixed(1)} KB`);
    add('  latency, median / 99 %', milliseconds(r));
    facilitatorRows(add, facilitator);
    mppRows(add, mpp);
    add(`gateway, ${w.connections} idle connections`, megabytes(w.idle_mb));
    add(`  and ${w.parked} parked requests`, megabytes(w.both_mb));
    add('  a fresh request, median / worst', `${w.answer_ms.median.toFixed(1)} / ${w.answer_ms.worst.toFixed(1)} ms`);
    const line = ([name, ...cells]) => name.padEnd(38) + cells.map((cell) => cell.padStart(18)).join('');
    return rows.map(line).join('\n');
}

// ---- the bench ----

async function measure(stage, plan) {
    const step = async (name, work) => {
        process.stdout.write(`${name} ...\n`);
        return work();
    };
    const m = {};
    m.challenges = await step('402 challenges', () => challenges(stage, plan.challenges));
    m.connections = await step('402 challenges over more connections',
        () => manyConnections(stage, plan.manyConnections));
    m.paid = await step('paid calls', () => paidCalls(stage, plan.paidCalls));
    m.repeats = await step('free repeats', () => freeRepeats(stage, plan.freeRepeats));
    m.answers = await step('replays and 409s', () => repeatAnswers(stage));
    m.settled = await step('settled payments', () => settledPayments(stage, plan.settledPayments));
    m.receipt = await step('a receipt\'s page', () => receiptPage(stage, plan.receipt));
    m.facilitator = {
        verifications: await step('/verify', () => verifications(stage, plan.verifications)),
        settlements: await step('/settle', () => settlements(stage, plan.settlements)),
        rpc: await step('RPC calls of the facilitators', () => rpcCalls(stage)),
    };
    m.waiting = await step('idle connections and parked requests', () => waiting(stage));
    m.mpp = await step('MPP on Tempo', () => mppOnTempo(stage.load, plan.mpp));
    return m;
}

function report(result) {
    mkdirSync(join(root, 'var'), { recursive: true });
    writeFileSync(join(root, 'var/bench.json'), `${JSON.stringify(result, null, 2)}\n`);
    const { official, ...facts } = result.where;
    for (const [name, value] of Object.entries({ ...facts, ...official }))
        process.stdout.write(`${name.padEnd(20)} ${value}\n`);
    process.stdout.write(`\n${table(result.measures)}\n\n`);
    for (const { name, ok, says } of result.bars)
        process.stdout.write(`${ok ? 'reached' : 'MISSED '}  ${name}: ${says}\n`);
    process.stdout.write(`\n${result.seconds} s; every run is in var/bench.json\n`);
}

async function main() {
    const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
    const began = Date.now();
    const stage = new Stage(join(dirname(process.env.PAYONCE_PROGRAM), 'tests/bench/bench_load'));
    try {
        const load = loadavg()[0];
        await stage.start();
        const where = { load_before: load, ...await surroundings(stage) };
        if (where.load_before > 0.5 * where.cores)
            process.stdout.write('The machine has other work to do: rates suffer, CPU and shares less.\n');
        const measures = await measure(stage, values.quick ? quick : full);
        const bars = judge(measures);
        const seconds = Math.round((Date.now() - began) / 1000);
        report({ at: new Date(began).toISOString(), seconds, quick: values.quick, where, bars, measures });
        return bars.every(({ ok }) => ok) ? 0 : 1;
    } catch (error) {
        stage.world.dumpLogs();
        throw error;
    } finally {
        await stage.close();
    }
}

process.exit(await main());
