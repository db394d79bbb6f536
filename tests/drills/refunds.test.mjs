// A day of sales with debts of all causes, over lossy wires, and gateway and settler killed now and then: in the end
// nothing is owed, nobody was paid back twice, and the auditor finds no difference.
import assert from 'node:assert/strict';
import { isPaid, orderOf, submit } from '../lib/ledger.mjs';
import { authorize, paymentId } from '../lib/payment.mjs';
import { booksAgree, debts, liability, paidBack, policy, refunding } from '../lib/refunds.mjs';
import { inTurn } from './lib/buyers.mjs';
import { drill, layWires, long } from './lib/drill.mjs';
import { grouped } from './lib/grouped.mjs';

const SALES = long ? 1_000 : 20;
const DEBTS = long ? 100 : 4;
const BATCHES = long ? 20 : 2;
const FAULTS = { drop: 0.03, delay: 0.05, cut: 0.01, twice: 0.02 };
const SQL_FAULTS = { drop: 0.01, delay: 0.03, cut: 0.005 };
const READ = '/test/read';

// ---- buyers over a wire that loses replies, at a gateway that is killed ----

const persist = async (world, ask) => {
    let value = null;
    await world.waitFor(async () => {
        value = await ask().catch(() => null);
        return value !== null || world.pause(200).then(() => false);
    }, 'the gateway is heard', 120_000);
    return value;
};

// As begin() of lib/ledger.mjs, but the price is asked for again and again.
async function buy(world, path, { payer, id } = {}) {
    payer ??= await world.newPayer();
    const options = { id, base: world.wire };
    const signed = await persist(world, () => world.sign(payer, path, options));
    return { payer, path, options, signed, answer: world.send(path, signed, options).catch(() => null) };
}

// The last word to a payment, which is sent until there is one.
async function heard(world, call) {
    const isLast = (answer) => answer && answer.status < 500 && answer.status !== 409;
    const first = await call.answer;
    return isLast(first) ? first : persist(world, async () => {
        const answer = await world.send(call.path, call.signed, call.options);
        return isLast(answer) ? answer : null;
    });
}

// Sent by a stranger after the call had failed; a second one for one payment id; more than the price; one that a
// stranger sends while its write is at work, which then fails.
const causes = {
    late: async (world, payer) => {
        const call = await buy(world, `${READ}?status=404`, { payer });
        assert.equal((await heard(world, call)).status, 404);
        await submit(world, call.signed.payload);
    },
    duplicate: async (world, payer) => {
        const id = paymentId();
        await isPaid(world, await buy(world, READ, { payer, id }), 120_000);
        const second = await buy(world, READ, { payer, id });
        await heard(world, second);
        await submit(world, second.signed.payload);
    },
    overpaid: async (world, payer) => {
        const call = await buy(world, `${READ}?delay_ms=2500`, { payer });
        await isStored(world, call);
        const { nonce, value } = call.signed.payload.authorization;
        await submit(world, await authorize(payer, call.signed.required.accepts[0],
            { change: { nonce, value: String(BigInt(value) + 7n) } }));
        await call.answer;
    },
    work_failed: async (world, payer) => {
        const call = await buy(world, `${READ}?status=404&delay_ms=4000`, { payer });
        await isStored(world, call);
        await submit(world, call.signed.payload);
        await call.answer;
    },
};
const kinds = Object.keys(causes);

async function isStored(world, call) {
    await world.waitFor(async () => {
        if (await orderOf(world, call.payer))
            return true;
        const state = await Promise.race([call.answer.then(() => 'over'), world.pause(300)]);
        if (state === 'over')
            call.answer = world.send(call.path, call.signed, call.options).catch(() => null);
        return false;
    }, 'the payment is stored', 60_000);
}

// ---- the drill ----

const KILLS_MOST = long ? 20 : 8;

// The wallet's lease outlives a killed settler by 15 s: who is killed each time before that is over never pays anything.
async function killNowAndThen(world, chance, starts, over) {
    let kills = 0, name = null;
    while (kills < KILLS_MOST) {
        await world.pause(4_000 + chance.below(long ? 12_000 : 8_000) + (name === 'settler' ? 15_000 : 0));
        if (over())
            break;
        name = chance.pick(Object.keys(starts));
        await world.kill9(name);
        await world.startRole(name, starts[name]);
        kills++;
    }
    return kills;
}

async function isPaidBack(world, owed) {
    await world.waitFor(async () => {
        const rows = await debts(world);
        return rows.length === DEBTS && rows.every(({ state }) => state === 'refunded');
    }, 'every debt is paid back', 300_000);
    const byCause = grouped(await debts(world), ({ cause }) => cause);
    for (const payer of owed)
        assert.equal((await paidBack(world, payer)).length, 1);
    return Object.fromEntries([...byCause].map(([cause, rows]) => [cause, rows.length]));
}

drill(`refunds: ${SALES} sales, ${DEBTS} debts`, refunding({
    refunds: policy({ batch_max: DEBTS / BATCHES }), roles: [], extra: { wait_ms: 5_000 },
}), async (world, chance) => {
    const wires = await layWires(world, chance, { faults: FAULTS, sqlFaults: SQL_FAULTS });
    const starts = { gateway: { config: wires.gatewayConfig }, settler: { config: wires.settlerConfig } };
    world.wire = wires.client.url;
    for (const [name, options] of Object.entries(starts))
        await world.startRole(name, options);
    let over = false;
    const killer = killNowAndThen(world, chance.stream('kills'), starts, () => over);
    const owed = await world.newPayers(DEBTS);
    const sale = async () => isPaid(world, await buy(world, READ), 120_000);
    const isDone = async () => {
        await Promise.all([
            inTurn(SALES, long ? 32 : 8, sale),
            inTurn(DEBTS, 4, async (n) => causes[kinds[n % kinds.length]](world, owed[n])),
        ]);
        return isPaidBack(world, owed);
    };
    const found = await isDone().finally(() => {
        over = true;
        return killer;
    });
    const kills = await killer;
    world.checkBooks = () => {};
    await booksAgree(world, 120_000);
    assert.equal(await liability(world), 0n);
    const [{ sum }] = await world.sql('SELECT sum(amount)::text AS sum FROM postings');
    assert.equal(sum, '0');
    const [{ batches }] = await world.sql('SELECT count(DISTINCT transaction_id)::int AS batches FROM payout_calls');
    assert.ok(batches >= BATCHES, `${batches} batches`);
    return { kills, batches, ...found, ...wires.injected() };
});
