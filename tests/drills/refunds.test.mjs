// A day of sales with debts of all causes, over lossy wires and a settler that is killed now and then: in the end nothing
// is owed, nobody was paid back twice, and the auditor finds no difference.
import assert from 'node:assert/strict';
import { begin, isPaid, submit } from '../lib/ledger.mjs';
import { authorize, paymentId } from '../lib/payment.mjs';
import { booksAgree, debts, liability, paidBack, policy, refunding } from '../lib/refunds.mjs';
import { inTurn } from './lib/buyers.mjs';
import { drill, layWires, long } from './lib/drill.mjs';

const SALES = long ? 1_000 : 30;
const DEBTS = long ? 100 : 6;
const BATCH = long ? 5 : 2;

// Sent by a stranger after the call had failed; a second one for one payment id; more than the price.
const causes = {
    late: async (world, payer) => {
        const call = await begin(world, '/test/read?status=404', { payer });
        await call.answer;
        await submit(world, call.signed.payload);
    },
    duplicate: async (world, payer) => {
        const id = paymentId();
        await isPaid(world, await begin(world, '/test/read', { payer, id }));
        const second = await begin(world, '/test/read', { payer, id });
        await second.answer;
        await submit(world, second.signed.payload);
    },
    overpaid: async (world, payer) => {
        const signed = await world.sign(payer, '/test/read?delay_ms=2500');
        const answer = world.send('/test/read?delay_ms=2500', signed).catch(() => null);
        await world.pause(500);
        const { nonce, value } = signed.payload.authorization;
        await submit(world, await authorize(payer, signed.required.accepts[0], { change: { nonce, value: String(BigInt(value) + 7n) } }));
        await answer;
    },
};
const kinds = Object.keys(causes);

async function killNowAndThen(world, chance, config, over) {
    let kills = 0;
    while (!over()) {
        await world.pause(4_000 + chance.below(8_000));
        if (over())
            break;
        await world.kill9('settler');
        await world.startRole('settler', { config });
        kills++;
    }
    return kills;
}

drill(`refunds: ${SALES} sales, ${DEBTS} debts`, refunding({
    refunds: policy({ batch_max: BATCH }), roles: ['gateway'], extra: { wait_ms: 5_000 },
}), async (world, chance) => {
    const wires = await layWires(world, chance, { faults: { drop: 0.03, delay: 0.05, cut: 0.01, twice: 0.02 } });
    await world.startRole('settler', { config: wires.settlerConfig });
    let over = false;
    const killer = killNowAndThen(world, chance.stream('kills'), wires.settlerConfig, () => over);
    const owed = await world.newPayers(DEBTS);
    await Promise.all([
        inTurn(SALES, 8, async () => isPaid(world, await begin(world, '/test/read'), 120_000)),
        inTurn(DEBTS, 3, async (n) => causes[kinds[n % kinds.length]](world, owed[n])),
    ]);
    await world.waitFor(async () => {
        const rows = await debts(world);
        return rows.length === DEBTS && rows.every(({ state }) => state === 'refunded');
    }, 'every debt is paid back', 240_000);
    over = true;
    const kills = await killer;
    for (const payer of owed)
        assert.equal((await paidBack(world, payer)).length, 1);
    world.checkBooks = () => {};
    await booksAgree(world, 120_000);
    assert.equal(await liability(world), 0n);
    const [{ sum }] = await world.sql('SELECT sum(amount)::text AS sum FROM postings');
    assert.equal(sum, '0');
    const [{ batches }] = await world.sql('SELECT count(DISTINCT transaction_id)::int AS batches FROM payout_calls');
    return { kills, batches };
});
