// kill -9 between any two steps of a payment on Tempo, whose money comes before the work: whoever had asked asks on, is charged
// once, and served; or, of a write that may have run, told that a person looks at it.
import assert from 'node:assert/strict';
import { Agent } from '../lib/agent.mjs';
import { TEMPO, challenge, mppTools, onTempo, push, signPull, tempoPayer } from '../lib/tempo.mjs';
import { allDecided } from './lib/audit.mjs';
import { drill, sideBySide } from './lib/drill.mjs';
import { diesAt, points } from './lib/failpoints.mjs';

const PRICE = 250n;
const FUNDS = 1_000_000n;
const READ = ['/test/tempo', { method: 'GET' }];
const WRITE = ['/test/both-write', { method: 'POST', body: '{}' }];
const options = onTempo({ tools: mppTools.map((tool) => ({ ...tool, timeout_ms: 2_500 })), extra: { wait_ms: 4_000 } });

async function isSilent(world, asked) {
    const answer = await asked.catch(() => null);
    assert.ok(!answer || answer.status !== 402, `a price for what is paid: ${answer?.text}`);
    const last = answer && (![409, 503].includes(answer.status) || answer.json.code === 'in_review');
    return last ? answer : world.pause(300).then(() => null);
}

// Pays, and asks until there is a last word, while the role dies at the point.
async function paysWhile(world, role, point, [path, how], pay) {
    const payer = await tempoPayer(world, { atoms: FUNDS });
    const target = `${path}?at=${point}-${pay.name}`;
    const offer = await challenge(world, target, how);
    const { answer } = await diesAt(world, role, point, async () => {
        const { authorization } = await pay(world, payer, offer);
        const ask = () => isSilent(world, world.request(target, { ...how, headers: { authorization } }));
        return { answer: world.waitFor(ask, `${target} ends`, 120_000) };
    });
    return { point, payer, target, how, answer: await answer };
}

const killed = (role, list, ways) => async (world) => {
    const ends = [];
    for (const point of list)
        for (const [what, pay] of ways)
            ends.push(await paysWhile(world, role, point, what, pay));
    await allDecided(world);
    const ran = await world.calls();
    for (const { point, target, how, answer } of ends) {
        const runs = ran.filter((call) => call.target === target).length;
        const lost = how.method === 'POST' && point === 'gateway-after-begin';
        assert.equal(answer.json.code, lost ? 'in_review' : undefined, `${target}: ${answer.text}`);
        assert.equal(answer.status, lost ? 409 : 200, `${target}: ${answer.text}`);
        assert.equal(runs, lost ? 0 : 1, `${target} ran ${runs} times`);
    }
    assert.equal(await world.tempo.balanceOf(world.payTo), PRICE * BigInt(ends.length));
    return { kills: ends.length };
};

const agentKilled = async (world) => {
    let kills = 0;
    for (const point of [...points.push, ...points.agent]) {
        const payer = await tempoPayer(world, { atoms: FUNDS });
        const agent = new Agent(world, payer);
        const args = ['--network', TEMPO, '--rpc', world.tempo.rpc.url];
        const target = `/test/tempo?at=${point}`;
        const killed = await world.payonce(['pay', '--json', '--key-file', agent.keyFile, '--store', agent.store, ...args,
            `${world.gateway}${target}`], { env: { PAYONCE_FAILPOINT: point } });
        assert.notEqual(killed.code, 0, `${point} was never passed`);
        await world.waitFor(async () => (await agent.pay(target, args)).code === 0, 'it is answered', 60_000);
        assert.equal((await world.calls()).filter((call) => call.target === target).length, 1);
        kills++;
        assert.equal(await world.tempo.balanceOf(world.payTo), PRICE * BigInt(kills), point);
    }
    return { kills };
};

sideBySide('failpoints of MPP', () => {
    drill('failpoints: money before work', options,
        killed('gateway', points.first, [[READ, push], [READ, signPull], [WRITE, signPull]]));
    drill('failpoints: a charge', options, killed('settler', points.charge, [[READ, signPull]]));
    drill('failpoints: the agent on Tempo', options, agentKilled);
});
