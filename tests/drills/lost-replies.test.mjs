// Replies get lost on every edge, and clients retry as they like: every payment ends, no order is paid twice, and no
// call either, but by somebody who asks anew without an id for what was delivered.
import { testTools } from '../lib/world.mjs';
import { allDecided } from './lib/audit.mjs';
import { Buyer, MODES, inTurn, judge, writesRanOnce } from './lib/buyers.mjs';
import { drill, layWires, long } from './lib/drill.mjs';

const COUNT = Number(process.env.PAYONCE_DRILL_PAYMENTS ?? (long ? 2_000 : 150));
const WIDTH = long ? 100 : 50;
const DEADLINE_MS = long ? 900_000 : 420_000;  // who asks anew each time starts anew each time, too
const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 8_000, max_timeout_s: 60 }));

drill('lost replies', { tools, roles: [], extra: { wait_ms: 6_000 } }, async (world, chance) => {
    const calls = [];               // what the gateway asked of the upstream, as the wire saw it
    const wires = await layWires(world, chance, {
        upstreamOnce: (request) => request.method === 'POST',
        onUpstream: (method, target, headers) => calls.push({ method, target, key: headers['idempotency-key'] }),
    });
    await world.startRole('settler', { config: wires.settlerConfig });
    await world.startRole('gateway', { config: wires.gatewayConfig });

    const payers = await world.newPayers(COUNT);
    const buyers = payers.map((payer, n) => {
        const draw = chance.stream(`buyer ${n}`);
        const write = draw.happens(0.4);
        const call = write
            ? { path: `/test/write?n=${n}`, method: 'POST', body: JSON.stringify({ n }) }
            : { path: `/test/read?n=${n}`, method: 'GET' };
        return new Buyer(world, payer, call, { mode: MODES[n % 3], version: draw.pick([1, 2]), chance: draw,
            base: () => wires.client.url });
    });
    await inTurn(COUNT, WIDTH, (n) => buyers[n].buy(DEADLINE_MS));
    wires.quiet();
    await allDecided(world);
    const figures = await judge(world, buyers);
    await world.stop('gateway');
    await world.stop('settler');
    await wires.close();

    writesRanOnce(calls, buyers);
    const reviews = buyers.filter(({ end }) => end === 'in_review').length;
    return { ...figures, in_review: reviews, ...wires.injected() };
});
