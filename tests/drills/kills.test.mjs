// Under load, gateway and settler are killed at random moments, PostgreSQL is stopped as by a power cut, and the
// node stands still: what was sent is known, and all of it ends.
import { testTools } from '../lib/world.mjs';
import { allDecided, relayedOnChain } from './lib/audit.mjs';
import { Buyer, judge, writesRanOnce } from './lib/buyers.mjs';
import { drill, long, restartPostgres } from './lib/drill.mjs';

const KILLS = long ? 200 : 20;
const POSTGRES = long ? 20 : 3;
const HALT_MS = long ? 60_000 : 10_000;
const LANES = 8;
const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 4_000, max_timeout_s: 60 }));

// What happens to the installation, in an order of the seed's.
function blows(chance) {
    const list = [...Array(KILLS).fill('kill'), ...Array(POSTGRES).fill('postgres'), 'halt'];
    for (let i = list.length - 1; i > 0; i--) {
        const j = chance.below(i + 1);
        [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
}

async function halt(world) {
    process.kill(world.chain.pid, 'SIGSTOP');
    await world.pause(HALT_MS);
    process.kill(world.chain.pid, 'SIGCONT');
}

drill('kills', { tools, extra: { wait_ms: 4_000 } }, async (world, chance) => {
    const buyers = [];
    let over = false;
    const lane = async (i) => {
        const payer = await world.newPayer({ atoms: 100_000_000n });
        for (let k = 0; !over; k++) {
            const n = i + k * LANES;
            const draw = chance.stream(`buyer ${n}`);
            const call = draw.happens(0.4)
                ? { path: `/test/write?n=${n}&delay_ms=${draw.below(300)}`, method: 'POST', body: '{}' }
                : { path: `/test/read?n=${n}&delay_ms=${draw.below(300)}`, method: 'GET' };
            const buyer = new Buyer(world, payer, call, { mode: draw.pick(['same', 'same-id']),
                version: 2, chance: draw, base: () => world.gateway });
            buyers.push(buyer);
            await buyer.buy();
        }
    };
    const lanes = Promise.all(Array.from({ length: LANES }, (_, i) => lane(i)));
    lanes.catch(() => {});
    const killed = { gateway: 0, settler: 0 };
    for (const blow of blows(chance.stream('blows'))) {
        await world.pause(chance.between(200, 2_500));
        if (blow === 'halt')
            await halt(world);
        if (blow === 'postgres')
            await restartPostgres(world);
        if (blow === 'kill') {
            const role = chance.pick(['gateway', 'settler']);
            killed[role] += 1;
            await world.kill9(role);
            await world.startRole(role);
        }
    }
    over = true;
    await lanes;
    await allDecided(world);

    writesRanOnce(await world.calls(), buyers);
    const figures = await judge(world, buyers);
    const reviews = buyers.filter(({ end }) => end === 'in_review').length;
    return { ...figures, in_review: reviews, kills_gateway: killed.gateway, kills_settler: killed.settler,
        postgres: POSTGRES, halted_ms: HALT_MS, relayed: (await relayedOnChain(world)).length };
});
