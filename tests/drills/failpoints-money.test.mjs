// kill -9 between any two steps of a refund, of the books and of the agent that pays: paid back once, charged once.
import assert from 'node:assert/strict';
import { newAgent } from '../lib/agent.mjs';
import { booksAgree, late, liability, paidBack, policy, refunding, untilDebt } from '../lib/refunds.mjs';
import { testTools } from '../lib/world.mjs';
import { drill, sideBySide } from './lib/drill.mjs';
import { diesAt, points } from './lib/failpoints.mjs';

const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 2_500, max_timeout_s: 30 }));
const options = { tools, extra: { wait_ms: 4_000 } };

const refundsKilled = (list) => async (world) => {
    const owed = [];
    for (const point of list) {
        const { payer } = await late(world);
        const [{ id }] = await untilDebt(world, payer, 'owed');
        await diesAt(world, 'settler', point, () => world.payonce(['refunds', 'pay', id]));
        owed.push(payer);
    }
    for (const payer of owed) {
        await untilDebt(world, payer, 'refunded', 120_000);
        assert.equal((await paidBack(world, payer)).length, 1);
        assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n);
    }
    await booksAgree(world, 120_000);
    assert.equal(await liability(world), 0n);
    return { kills: list.length };
};

const agentKilled = async (world) => {
    for (const point of points.agent) {
        const agent = await newAgent(world);
        const url = `${world.gateway}/test/write?at=${point}`;
        const args = ['pay', '--json', '--key-file', agent.keyFile, '--store', agent.store, '--id', `the-agent-dies-at-${point}`,
            '--data', '{}', url];
        const killed = await world.payonce(args, { env: { PAYONCE_FAILPOINT: point } });
        assert.notEqual(killed.code, 0, `${point} was never passed`);
        await world.waitFor(async () => (await world.payonce(args)).code === 0, 'it is answered', 60_000);
        assert.equal(await agent.spent(), 1_000n);
        assert.equal((await world.calls()).filter(({ target }) => target.endsWith(point)).length, 1);
    }
    return { kills: points.agent.length };
};

sideBySide('failpoints of money', () => {
    const half = points.refunds.length / 2;
    for (const list of [points.refunds.slice(0, half), points.refunds.slice(half)])
        drill(`failpoints: ${list.join(', ')}`, refunding({ tools, refunds: policy({ mode: 'manual' }) }), refundsKilled(list));
    drill('failpoints: the agent', options, agentKilled);
});
