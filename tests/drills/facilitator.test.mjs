// The facilitator under crowds, kills and doubles: every settlement that was stored is told, once paid, by whichever instance.
import assert from 'node:assert/strict';
import { ask, inWorldOf, settle, shop, transfers } from '../lib/facilitator.mjs';
import { drill, long, sideBySide } from './lib/drill.mjs';
import { points } from './lib/failpoints.mjs';
import { grouped } from './lib/grouped.mjs';
import { allDecided } from './lib/audit.mjs';

const CROWD = 256;
const ROUNDS = long ? 10 : 5;

async function toShop(world) {
    return (await world.chain.allTransfers()).filter(({ to }) => to.toLowerCase() === shop.toLowerCase());
}

// Sends until it is told a success. What it was told before that must not be a failure.
async function insist(world, send) {
    const told = [];
    for (const end = Date.now() + 180_000; Date.now() < end; await world.pause(200)) {
        const answer = await send().catch(() => null);
        if (answer?.json?.success)
            return { ...answer.json, told };
        if (answer?.status === 200) {
            assert.equal(answer.json.errorReason, 'settlement_pending', answer.text);
            told.push(answer.json.transaction);
        }
    }
    throw new Error(`never settled; told ${JSON.stringify(told)}`);
}

drill(`facilitator: ${CROWD} settlements at once of ${CROWD} payers, ${ROUNDS} rounds`, inWorldOf({}, { blockTime: 2, gasLimit: 100_000_000 }),
    async (world) => {
        const payers = await world.newPayers(CROWD);
        const worst = [];
        for (let round = 0; round < ROUNDS; round++) {
            const bodies = await Promise.all(payers.map((payer) => ask(payer)));
            const began = Date.now();
            const answers = await Promise.all(bodies.map((body) => settle(world, body)));
            worst.push(Date.now() - began);
            const failed = answers.filter(({ status, json }) => status !== 200 || !json.success);
            assert.deepEqual(failed.map(({ text }) => text), []);
        }
        assert.equal((await toShop(world)).length, CROWD * ROUNDS);
        return { settled: CROWD * ROUNDS, failures: 0, slowest_round_ms: Math.max(...worst) };
    });

const twoOfIt = async (world) => {
    const second = await world.addGateway('gateway2', { extra: world.options.extra });
    await world.startRole('settler2');
    const payers = await world.newPayers(64);
    const answers = await Promise.all(payers.map(async (payer) => {
        const body = await ask(payer);
        return Promise.all([world.gateway, second, second, world.gateway].map((base) =>
            insist(world, () => settle(world, body, { base }))));
    }));
    for (const [i, copies] of answers.entries()) {
        const made = await transfers(world, payers[i]);
        assert.equal(made.length, 1);
        assert.deepEqual([...new Set(copies.map(({ transaction }) => transaction))], [made[0].tx]);
        assert.equal(copies.filter(({ extra }) => !extra?.replayed).length, 1);
    }
    return { payers: payers.length, copies: 4 * payers.length };
};

const killed = (role, list) => async (world) => {
    for (const point of list) {
        await world.restart(role, { env: { PAYONCE_FAILPOINT: point } });
        const payer = await world.newPayer();
        const body = await ask(payer);
        const first = settle(world, body).catch(() => null);
        assert.equal(await world.ended(role, 60_000), 'SIGKILL', `${point} was never passed`);
        await world.restart(role);
        const cut = await first;
        assert.ok(!cut || cut.json.success || cut.json.errorReason === 'settlement_pending', `${point}: ${cut?.text}`);
        const { transaction } = await insist(world, () => settle(world, body));
        const made = await transfers(world, payer);
        assert.deepEqual(made.map(({ tx }) => tx), [transaction], point);
    }
    return { kills: list.length };
};

// Gateways and settlers die at random while sellers insist.
const killedAtRandom = async (world, chance) => {
    const payers = await world.newPayers(16);
    let over = false;
    const results = [];
    const lane = async (payer) => {
        while (!over) {
            const body = await ask(payer);
            results.push(await insist(world, () => settle(world, body)));
        }
    };
    const lanes = Promise.all(payers.map(lane));
    lanes.catch(() => {});
    for (let i = 0; i < 12; i++) {
        await world.pause(chance.between(300, 1_500));
        const role = chance.pick(['gateway', 'settler']);
        await world.kill9(role);
        await world.startRole(role);
    }
    over = true;
    await lanes;
    await allDecided(world);
    const hashes = grouped(await toShop(world), ({ tx, logIndex }) => `${tx} ${logIndex}`);
    assert.equal(hashes.size, results.length, 'as many transfers as settlements');
    return { settlements: results.length, kills: 12 };
};

sideBySide('facilitator', () => {
    drill('facilitator: two of it and two settlers, each settlement asked of both', inWorldOf({}, { blockTime: 1 }), twoOfIt);
    const half = Math.ceil(points.settler.length / 2);
    for (const [role, list] of [['gateway', points.facilitator], ['settler', points.settler.slice(0, half)],
        ['settler', points.settler.slice(half)]])
        drill(`facilitator: killed at ${list.join(', ')}, then asked again: the hash`, inWorldOf({ shop: { wait_ms: 4_000 } }),
            killed(role, list));
    drill('facilitator: random kills under load', inWorldOf({ shop: { wait_ms: 4_000, repeat_wait_ms: 6_000 } }), killedAtRandom);
});
