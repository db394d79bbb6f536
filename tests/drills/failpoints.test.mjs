// kill -9 at each named point between two steps (those of the facilitator, of refunds and of the agent have their own
// drills): whoever had asked asks on, and is answered and charged once; no hash is lost, and the books agree with the
// chain.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { toHex } from 'viem';
import { begin } from '../lib/ledger.mjs';
import { root } from '../lib/paths.mjs';
import { testTools } from '../lib/world.mjs';
import { allDecided } from './lib/audit.mjs';
import { Buyer, judge, writesRanOnce } from './lib/buyers.mjs';
import { drill, sideBySide } from './lib/drill.mjs';
import { diesAt, inSources, points } from './lib/failpoints.mjs';

// a dead settler's wallet waits for its lease: writes have time for some of those, reads run out soon
const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 2_500, max_timeout_s: tool.method === 'POST' ? 180 : 30 }));
const options = { tools, network: { finality_blocks: 8 }, extra: { wait_ms: 4_000 } };

test('every crash point of the sources is in a drill, or in the scenario that has what it needs', () => {
    assert.deepEqual(Object.values(points).flat().sort(), inSources().sort());
    const refunds = readFileSync(join(root, 'tests/scenarios/refunds-tempo.test.mjs'), 'utf8');
    assert.deepEqual(points.keyed.filter((point) => !refunds.includes(`'${point}'`)), []);
});

function newBuyer(world, chance, payer, point, kind) {
    const call = kind === 'write'
        ? { path: `/test/write?at=${point}`, method: 'POST', body: '{}' } : { path: `/test/read?at=${point}`, method: 'GET' };
    return new Buyer(world, payer, call, { mode: 'same', chance: chance.stream(`${point} ${kind}`), base: () => world.gateway });
}

const killed = (role, kinds) => async (world, chance) => {
    const buyers = [], ends = [];
    for (const point of points[role])
        for (const kind of kinds) {
            const buyer = newBuyer(world, chance, await world.newPayer(), point, kind);
            buyers.push(buyer);
            await diesAt(world, role, point, () => {
                ends.push(buyer.buy());
            });
        }
    await Promise.all(ends);
    await allDecided(world);
    writesRanOnce(await world.calls(), buyers);
    const reviews = buyers.filter(({ end }) => end === 'in_review').length;
    return { ...await judge(world, buyers), in_review: reviews, kills: ends.length };
};

// What the settler does only when the chain gives it reason to, while somebody buys.
const reasons = {
    'settler-before-scan': async (world, buyer) => {
        const end = buyer.buy();
        await world.chain.mine();
        await end;
    },
    'settler-before-end': async (world, buyer) => {        // a released authorization runs out
        const end = buyer.buy();
        await (await begin(world, '/test/read?status=404')).answer;
        await end;
    },
    'settler-before-undo': async (world, buyer) => {
        await buyer.buy();
        await world.chain.reorg(3);
        await world.waitFor(async () => (await world.sql('SELECT 1 FROM undone_proofs')).length > 0, 'it is withdrawn', 60_000);
    },
    'settler-before-replace': async (world, buyer) => {    // sent, and before it is mined its fee is not enough any more
        const { rpc } = world.chain;
        await rpc.call('evm_setIntervalMining', 0);
        const end = buyer.buy();
        await world.waitFor(async () => (await world.sql("SELECT 1 FROM authorizations WHERE state = 'sent'")).length > 0, 'it is sent');
        const cost = (wei) => rpc.call('anvil_setNextBlockBaseFeePerGas', toHex(wei));
        await cost(10n ** 12n);
        await rpc.call('evm_setIntervalMining', 1);
        for (const limit = Date.now() + 80_000; Date.now() < limit && world.isUp('settler'); await world.pause(300))
            await cost(10n ** 12n);
        await cost(10n ** 9n);
        await end;
    },
};

const reasoned = (point) => async (world, chance) => {
    await world.chain.mine(20);
    const buyer = newBuyer(world, chance, await world.newPayer(), point, 'write');
    await diesAt(world, 'settler', point, () => reasons[point](world, buyer));
    await allDecided(world);
    return { ...await judge(world, [buyer]), kills: 1 };
};

sideBySide('failpoints', () => {
    drill('failpoints: gateway', options, killed('gateway', ['read', 'write']));
    drill('failpoints: settler', options, killed('settler', ['write']));
    for (const point of points.chain)
        drill(`failpoints: ${point}`, options, reasoned(point));
});
