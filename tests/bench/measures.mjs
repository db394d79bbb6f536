// The measures: each runs both sides in turn, several times, and keeps every figure.
import { sleep } from '../../dev/process.mjs';
import { repeatTimes } from '../lib/repeats.mjs';

const BLOCK_S = 2;
const widths = [120, 128, 256, 384, 512, 520];

export const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const medianOf = (runs, key) => median(runs.map((run) => run[key]));
const sum = ({ own, postgres }) => own + postgres;

async function repeated(times, one) {
    const runs = [];
    for (let i = 0; i < times; i++)
        runs.push(await one(i));
    return runs;
}

// Of each side, by its name.
export async function challengesInTurns(stage, sides, { rounds, seconds }) {
    const runs = Object.fromEntries(sides.map(({ name }) => [name, []]));
    for (let i = 0; i < rounds; i++)
        for (const side of sides) {
            const before = sum(side.cpu());
            const rate = await stage.wrk(side, 64, seconds);
            runs[side.name].push({ rate, us: (sum(side.cpu()) - before) / (rate * seconds) * 1e6 });
        }
    return Object.fromEntries(Object.entries(runs).map(([name, list]) =>
        [name, { rate: medianOf(list, 'rate'), cpu_us: medianOf(list, 'us'), runs: list }]));
}

// 402s a second that wrk -t1 gets over 64 connections, and the CPU that one took. The official stack runs once before
// it counts, so that its code is compiled.
export async function challenges(stage, plan) {
    await stage.wrk(stage.peer(), 64, 3);
    const { payonce, official } = await challengesInTurns(stage, [stage.ours(), stage.peer()], plan);
    return { payonce, official, ratio: payonce.rate / official.rate, cpu_ratio: official.cpu_us / payonce.cpu_us };
}

// The same of ours alone where libmicrohttpd's own loop would stall.
export async function manyConnections(stage, { rounds, seconds }) {
    const runs = await repeated(rounds, async () => {
        const rates = {};
        for (const width of widths)
            rates[width] = await stage.wrk(stage.ours(), width, seconds);
        return rates;
    });
    const rates = Object.fromEntries(widths.map((width) => [width, medianOf(runs, width)]));
    const mean = (rates[120] + rates[520]) / 2;
    const shares = Object.fromEntries([128, 256, 384, 512].map((width) => [width, rates[width] / mean]));
    return { rates, shares, least: Math.min(...Object.values(shares)), runs };
}

async function payAtOnce(stage, side, seconds, connections) {
    const before = side.cpu();
    const run = await stage.pay(side, { connections, seconds });
    const report = await run.report;
    const after = side.cpu();
    await stage.quiet(side);
    const cpu = sum(after) - sum(before);
    return {
        per_cpu_second: report.paid / cpu, rate: report.paid / seconds, cpu_ms: cpu / report.paid * 1000,
        postgres_share: (after.postgres - before.postgres) / cpu, ...report,
    };
}

// Paid calls for a second of CPU, PostgreSQL's counted, each transaction mined at once, 64 callers.
export async function paidCalls(stage, plan) {
    await stage.mineAtOnce();
    return paidInTurns(stage, plan);
}

export async function paidInTurns(stage, { rounds, seconds, callers = 64 }) {
    const runs = { payonce: [], official: [] };
    await payAtOnce(stage, stage.peer(), 3, callers);
    for (let i = 0; i < rounds; i++)
        for (const side of [stage.ours(), stage.peer()])
            runs[side.name].push(await payAtOnce(stage, side, seconds, callers));
    const middles = ['per_cpu_second', 'cpu_ms', 'rate', 'p50_ms', 'p99_ms', 'postgres_share'];
    const of = (name) => ({
        ...Object.fromEntries(middles.map((key) => [key, medianOf(runs[name], key)])), runs: runs[name],
    });
    const [payonce, official] = [of('payonce'), of('official')];
    return { payonce, official, ratio: payonce.per_cpu_second / official.per_cpu_second };
}

// Free repeats a second, 64 at once, one wallet each, and what each must cost at least: a recovery and a durable row.
export async function freeRepeats(stage, { rounds, seconds }) {
    await stage.mineAtOnce();
    const floors = { recoveries: await stage.recoveries(2), inserts: await stage.inserts(seconds) };
    const runs = await repeated(rounds, async () => {
        const side = stage.ours();
        const run = await stage.repeat(side, { connections: 64, seconds, warm: 4 });
        await sleep(4000);
        const before = side.cpu();
        const report = await run.report;
        const after = side.cpu();
        await stage.quiet(side);
        const cpu = { own: after.own - before.own, postgres: after.postgres - before.postgres };
        return { rate: report.free / seconds, cpu_us: sum(cpu) / report.free * 1e6, ...report };
    });
    return { rate: medianOf(runs, 'rate'), cpu_us: medianOf(runs, 'cpu_us'), p50_ms: medianOf(runs, 'p50_ms'), p99_ms: medianOf(runs, 'p99_ms'),
        ...floors, share: medianOf(runs, 'rate') / floors.recoveries, runs };
}

// Replays and 409s, which the database alone answers, one after the other.
export async function repeatAnswers(stage) {
    const base = await stage.world.addGateway('gateway4', { extra: { ...stage.world.options.extra, wait_ms: 0 } });
    await stage.mineEvery(BLOCK_S);
    const figures = await repeatTimes(stage.world, { base, path: stage.ours().path, other: '/iso/countries?code=IT', count: 500 });
    await stage.mineEvery(BLOCK_S);
    await stage.quiet(stage.ours());
    await stage.world.stop('gateway4');
    return { ...figures, worst_ms: Math.max(...Object.values(figures)) };
}

// One closed loop over whole blocks. What the chain says was settled in them, of what the callers could have.
async function settledShare(stage, side, callers, blocks) {
    const warm = 2 * BLOCK_S + 1;
    const run = await stage.pay(side, { connections: callers, seconds: (blocks + 1) * BLOCK_S, warm });
    await sleep(warm * 1000);
    const first = (await stage.chain.block()).number + 1;
    const last = first + blocks - 1;
    const began = Date.now();
    await stage.world.waitFor(async () => (await stage.chain.block()).number >= last, 'the blocks are mined', 60_000);
    const block_s = (Date.now() - began) / 1000 / blocks;
    const settled = await stage.transfers(side.payTo, first, last);
    const report = await run.report;
    await stage.quiet(side);
    return { share: settled / (callers * blocks), settled, blocks, block_s, ...report };
}

// Payments settled with a block every 2 seconds, as a share of callers / block time.
export async function settledPayments(stage, { rounds, blocks, peerAt1024 }) {
    const cases = { payonce: [64, 256, 1024], official: [64, 256] };
    const runs = {};
    await stage.mineEvery(BLOCK_S);
    const measure = async (side, callers) => (runs[`${side.name} ${callers}`] ??= [])
        .push(await settledShare(stage, side, callers, blocks));
    for (let i = 0; i < rounds; i++)
        for (const callers of cases.payonce)
            for (const side of [stage.ours(), stage.peer()])
                if (cases[side.name].includes(callers))
                    await measure(side, callers);
    const memory = { payonce: stage.ours().pss(), official: stage.peer().pss() };
    if (peerAt1024)
        await measure(stage.peer(), 1024);
    const of = (name) => Object.fromEntries(Object.entries(runs).filter(([key]) => key.startsWith(name))
        .map(([key, list]) => [key.split(' ')[1], {
            share: medianOf(list, 'share'), rate: medianOf(list, 'share') * Number(key.split(' ')[1]) / BLOCK_S,
            p50_ms: medianOf(list, 'p50_ms'), p99_ms: medianOf(list, 'p99_ms'), runs: list,
        }]));
    return {
        payonce: of('payonce'), official: of('official'),
        memory: { ...memory, share: memory.payonce / memory.official },
    };
}

async function answerTimes(stage, side, count) {
    const times = [];
    for (let i = 0; i < count; i++) {
        const began = performance.now();
        const answer = await stage.world.request(side.path, { agent: false });
        if (answer.status !== 402)
            throw new Error(`a fresh request was answered ${answer.status}`);
        times.push(performance.now() - began);
    }
    return times;
}

// What waits costs memory and not speed: idle connections that were served once, and paid calls while no block
// comes.
export async function waiting(stage, { connections = 10_000, parked = 1_000 } = {}) {
    const side = stage.ours();
    const before = side.gatewayPss();
    await stage.mineNot();
    const idle = await stage.idle(side, connections);
    const withIdle = side.gatewayPss();
    const calls = await stage.pay(side, { connections: parked, payments: parked, seconds: 60 });
    await stage.world.waitFor(async () => await stage.waitingOrders() === parked, `${parked} calls are parked`, 50_000);
    const withBoth = side.gatewayPss();
    const times = await answerTimes(stage, side, 50);
    const stillParked = await stage.waitingOrders();
    await stage.mineEvery(BLOCK_S);
    const report = await calls.report;
    idle.end();
    await stage.quiet(side);
    return {
        before_mb: before, idle_mb: withIdle, both_mb: withBoth, connections, parked: stillParked,
        served_after: report.paid, answer_ms: { median: median(times), worst: Math.max(...times) },
    };
}
