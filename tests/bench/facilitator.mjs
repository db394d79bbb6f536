// The facilitator beside the official one, called as sellers' servers call: /verify under wrk, /settle by callers who each wait for
// their answer, and the RPC calls that both cost.
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { sleep } from '../../dev/process.mjs';
import { USDC } from '../../dev/usdc.mjs';
import { RpcCounter } from '../lib/counter.mjs';
import { authorize, freshAccount } from '../lib/payment.mjs';
import { median } from './measures.mjs';

const BLOCK_S = 2;
const SETTLERS = 1024;                           // payers, of whom none pays twice at once
const total = ({ own, postgres }) => own + postgres;
const medianOf = (runs, key) => median(runs.map((run) => run[key]));

// ---- what is asked ----

const required = (payTo) => ({
    scheme: 'exact', network: 'eip155:84532', amount: '1000', asset: USDC, payTo, maxTimeoutSeconds: 3000,
    extra: { name: 'USDC', version: '2' },
});

async function bodyOf(payer, payTo) {
    const paymentRequirements = required(payTo);
    const payload = await authorize(payer, paymentRequirements);
    return JSON.stringify({ x402Version: 2, paymentRequirements,
        paymentPayload: { x402Version: 2, payload, accepted: paymentRequirements } });
}

let payers;
async function bodies(stage, side, count) {
    if (!payers) {
        payers = Array.from({ length: SETTLERS }, () => freshAccount());
        await stage.chain.fund(payers.map(({ address }) => address), 1_000_000_000n);
    }
    return Promise.all(Array.from({ length: count }, (_, i) => bodyOf(payers[i % SETTLERS], side.payTo)));
}

// ---- /verify ----

const script = (file) => `local bodies, n = {}, 0
for line in io.lines(${JSON.stringify(file)}) do bodies[#bodies + 1] = line end
request = function()
    n = n % #bodies + 1
    return wrk.format("POST", "/verify", { ["Content-Type"] = "application/json" }, bodies[n])
end
`;

async function verifyRun(stage, side, connections, seconds) {
    const before = total(side.cpu());
    const run = await stage.wrkScript(side, connections, seconds, side.script);
    const cpu = total(side.cpu()) - before;
    return { rate: run.rate, p99_ms: run.p99_ms, per_cpu_second: run.rate * seconds / cpu };
}

// Valid payments of 64 payers, none of them settled, verified again and again.
export async function verifications(stage, { rounds, seconds }) {
    const sides = stage.facilitators();
    const runs = {};
    await stage.mineEvery(BLOCK_S);
    for (const side of sides) {
        const file = join(stage.world.dir, `${side.name}-bodies`);
        writeFileSync(file, (await bodies(stage, side, 64)).join('\n'));
        side.script = join(stage.world.dir, `${side.name}.lua`);
        writeFileSync(side.script, script(file));
        await verifyRun(stage, side, 16, 2);     // compiled, connected, its caches filled
    }
    for (let i = 0; i < rounds; i++)
        for (const connections of [16, 64])
            for (const side of sides)
                (runs[`${side.name} ${connections}`] ??= []).push(await verifyRun(stage, side, connections, seconds));
    const of = (connections) => {
        const [payonce, official] = ['payonce', 'official'].map((name) => Object.fromEntries(['rate', 'p99_ms', 'per_cpu_second']
            .map((key) => [key, medianOf(runs[`${name} ${connections}`], key)])));
        return { payonce, official, ratio: payonce.rate / official.rate,
            cpu_ratio: payonce.per_cpu_second / official.per_cpu_second, p99_share: payonce.p99_ms / official.p99_ms };
    };
    return { 16: of(16), 64: of(64), runs };
}

// ---- /settle ----

function post(side, agent, body) {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const began = performance.now();
    return new Promise((done) => {
        const failed = () => done({ success: false, ms: performance.now() - began });
        request({ host: '127.0.0.1', port: side.port, path: '/settle', method: 'POST', headers, agent }, (answer) => {
            let text = '';
            answer.setEncoding('utf8').on('data', (part) => (text += part)).on('error', failed).on('end', () =>
                done({ success: answer.statusCode === 200 && JSON.parse(text).success, ms: performance.now() - began }));
        }).on('error', failed).end(body);
    });
}

// Callers who each send their next payment when the last is answered, until the time is over.
async function callers(side, count, list, untilMs) {
    const agent = new Agent({ keepAlive: true, maxSockets: count });
    const answers = [];
    const one = async () => {
        while (list.length > 0 && Date.now() < untilMs)
            answers.push(await post(side, agent, list.pop()));
    };
    await Promise.all(Array.from({ length: count }, one));
    agent.destroy();
    return answers;
}

async function settledRun(stage, side, count, blocks) {
    const list = await bodies(stage, side, count * (blocks + 5));
    const warm = 2 * BLOCK_S + 1;
    const load = callers(side, count, list, Date.now() + (warm + (blocks + 1) * BLOCK_S) * 1000);
    await sleep(warm * 1000);
    const first = (await stage.chain.block()).number + 1, last = first + blocks - 1;
    await stage.world.waitFor(async () => (await stage.chain.block()).number >= last, 'the blocks are mined', 60_000);
    const settled = await stage.transfers(side.payTo, first, last);
    const answers = await load;
    await stage.quiet(side);
    return { share: settled / (count * blocks), settled, failed: answers.filter(({ success }) => !success).length,
        p50_ms: median(answers.map(({ ms }) => ms)) };
}

// Settlements with a block every 2 seconds, as a share of callers / block time.
export async function settlements(stage, { rounds, blocks }) {
    const runs = {};
    await stage.mineEvery(BLOCK_S);
    for (let i = 0; i < rounds; i++)
        for (const count of [64, 256])
            for (const side of stage.facilitators())
                (runs[`${side.name} ${count}`] ??= []).push(await settledRun(stage, side, count, blocks));
    const of = (name) => Object.fromEntries([64, 256].map((count) => {
        const list = runs[`${name} ${count}`];
        return [count, { share: medianOf(list, 'share'), p50_ms: medianOf(list, 'p50_ms'),
            failed: list.reduce((sum, { failed }) => sum + failed, 0), runs: list }];
    }));
    return { payonce: of('payonce'), official: of('official') };
}

// ---- RPC calls, of instances that ask the node through a counter ----

// Who has just started checks what stands above the final block and books what earlier measures left, and what was set
// aside comes to its deadline: no settlement's cost, so it is waited for. What is under way after that is counted, too.
async function atRest(counter) {
    for (let second = 0, quiet = 0; second < 30 && quiet < 2; second++) {
        const before = counter.total;
        await sleep(1000);
        quiet = counter.total - before < 24 ? quiet + 1 : 0;
    }
}

export async function rpcCalls(stage) {
    const result = {};
    await stage.mineEvery(BLOCK_S);
    for (const name of ['payonce', 'official']) {
        const counter = await new RpcCounter().start(stage.world.rpcUrl);
        const side = await stage.counted(name, counter.url);
        const agent = new Agent({ keepAlive: true, maxSockets: 64 });
        let list;
        const counted = async (call) => {
            const before = counter.total;
            await Promise.all(list.map(call));
            return (counter.total - before) / list.length;
        };
        const verify = (body) => fetch(`http://127.0.0.1:${side.port}/verify`,
            { method: 'POST', headers: { 'content-type': 'application/json' }, body }).then((a) => a.json());
        await verify((await bodies(stage, side, 1))[0]);
        await atRest(counter);
        list = await bodies(stage, side, 64);
        result[name] = { verify: await counted(verify), settle: await counted((body) => post(side, agent, body)) };
        agent.destroy();
        await side.close();
        await counter.close();
    }
    return result;
}

// ---- the table's rows and the bars ----

const times = (ratio) => `${ratio.toFixed(1)}x`;
const percent = (share) => `${(share * 100).toFixed(1)} %`;
const ms = (value) => `${value.toFixed(1)} ms`;

export function facilitatorRows(add, { verifications: v, settlements: s, rpc }) {
    for (const connections of [16, 64]) {
        const { payonce, official, ratio, cpu_ratio, p99_share } = v[connections];
        add(`/verify per second, ${connections} at once`, payonce.rate.toFixed(0), official.rate.toFixed(0), times(ratio));
        add('  per CPU second', payonce.per_cpu_second.toFixed(0), official.per_cpu_second.toFixed(0), times(cpu_ratio));
        add('  99 %', ms(payonce.p99_ms), ms(official.p99_ms), percent(p99_share));
    }
    for (const count of [64, 256]) {
        const [ours, theirs] = [s.payonce[count], s.official[count]];
        add(`/settle with 2 s blocks, ${count} callers`, percent(ours.share), percent(theirs.share));
        add('  median, and failures', `${ms(ours.p50_ms)}, ${ours.failed}`, `${ms(theirs.p50_ms)}, ${theirs.failed}`);
    }
    add('RPC calls, a /verify of 64', rpc.payonce.verify.toFixed(2), rpc.official.verify.toFixed(2));
    add('RPC calls, a /settle of 64', rpc.payonce.settle.toFixed(2), rpc.official.settle.toFixed(2));
}

export const facilitatorBars = ({ verifications: v, settlements: s, rpc }, { atLeast, atMost }) => [
    ...[16, 64].flatMap((connections) => [
        atLeast(`/verify per second at ${connections}, of the official`, v[connections].ratio, 20, times),
        atLeast(`/verify per CPU second at ${connections}, of the official`, v[connections].cpu_ratio, 20, times)]),
    atMost('/verify 99 % at 64, of the official', v[64].p99_share, 0.1, percent),
    ...[64, 256].map((count) => atLeast(`/settle with 2 s blocks at ${count}`, s.payonce[count].share, 0.9, percent)),
    atMost('failed settlements', s.payonce[64].failed + s.payonce[256].failed, 0, String),
    atMost('RPC calls a /verify at 64', rpc.payonce.verify, 0.5, (n) => n.toFixed(2)),
    atMost('RPC calls a /settle at 64', rpc.payonce.settle, 1, (n) => n.toFixed(2)),
];
