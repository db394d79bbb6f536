// Between the check and the block anything may happen, here many things at once and in any order: payers cancel, spend
// what they promised, spend the nonce elsewhere, strangers send what they saw, the token pauses, the chain stops, for
// a while or past every deadline, or its clock jumps. Whatever it is, money and answers agree in the end.
import assert from 'node:assert/strict';
import { testTools } from '../lib/world.mjs';
import { allDecided } from './lib/audit.mjs';
import { drill, long, sideBySide } from './lib/drill.mjs';
import { Chance } from './lib/seed.mjs';
import { grouped } from './lib/grouped.mjs';
import { cancel, spendAll, spendElsewhere, submit } from './lib/payer.mjs';

const ROUNDS = long ? 12 : 6;        // each weather once, or twice
const WORLDS = ROUNDS / 2;
const CROWD = long ? 24 : 12;
const SHORT_S = 12, LONG_S = 25;      // how long a payment is good
const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 3_000, max_timeout_s: 25 }));

const acts = {
    honest: async () => {},
    cancel: (world, { payer, signed }) => cancel(world, payer, signed.payload),
    spend: (world, { payer }) => spendAll(world, payer),
    elsewhere: (world, { payer, signed }) => spendElsewhere(world, payer, signed.required.accepts[0], signed.payload),
    stranger: (world, { signed }) => submit(world, signed.payload),
};

const stopMining = (world) => world.chain.rpc.call('evm_setIntervalMining', 0);
const goOn = (world) => world.chain.rpc.call('evm_setIntervalMining', 1);
const deadline = ({ signed }) => Number(signed.payload.authorization.validBefore);
const latest = (calls) => Math.max(...calls.map(deadline));
const nothingIsDue = (world) => world.waitFor(async () =>
    (await world.sql("SELECT 1 FROM authorizations WHERE state = 'due' LIMIT 1")).length === 0, 'all is sent', 8_000).catch(() => {});

// What the weather of a round is: it is there when the settler gets to work, and goes away again.
const weather = {
    fair: async () => {},
    paused: async (world, chance) => {
        await world.chain.pause();
        await world.pause(chance.between(1_000, 8_000));
        await world.chain.unpause();
    },
    jump: async (world, chance) => {
        await world.chain.warp(chance.between(1, 40));
    },
    // mined only after every request gave up
    late: async (world, _, calls) => {
        await stopMining(world);
        const honest = await Promise.all(calls.filter(({ act }) => act === 'honest').map(({ answer }) => answer));
        assert.ok(honest.every((answer) => answer?.status !== 200), 'an answer before a block');
        await Promise.all(calls.map(({ answer }) => answer));
        await goOn(world);
    },
    // mined in the last second before validBefore
    brink: async (world, _, calls) => {
        await stopMining(world);
        await nothingIsDue(world);
        await world.chain.rpc.call('evm_setNextBlockTimestamp', latest(calls) - 1);
        await goOn(world);
    },
    // no block before the last deadline, and then without what was sent
    never: async (world, _, calls) => {
        await stopMining(world);
        await nothingIsDue(world);
        await world.chain.rpc.call('anvil_dropAllTransactions');
        await world.chain.rpc.call('evm_setNextBlockTimestamp', latest(calls));
        await goOn(world);
    },
};

// In these no block is mined but the weather's: who acts, which mines one, does so before.
const still = ['late', 'brink', 'never'];

// The weathers in an order of the seed's.
function forecast(chance) {
    const list = Array.from({ length: ROUNDS }, (_, i) => Object.keys(weather)[i % Object.keys(weather).length]);
    for (let i = list.length - 1; i > 0; i--) {
        const j = chance.below(i + 1);
        [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
}

async function makeCall(world, chance, n) {
    const payer = await world.newPayer();
    const write = chance.happens(0.4);
    const path = `/test/${write ? 'write' : 'read'}?n=${n}`;
    const options = write ? { method: 'POST', body: '{}' } : {};
    const validBefore = chance.happens(0.3) ? SHORT_S : LONG_S;
    return { n, payer, path, options, act: chance.pick(Object.keys(acts)), early: chance.happens(0.5), validBefore };
}

async function begin(world, call) {
    const { time } = await world.chain.block();
    const start = Math.max(time, Math.floor(Date.now() / 1000));
    call.signed = await world.sign(call.payer, call.path, { ...call.options,
        authorization: { change: { validBefore: String(start + call.validBefore) } } });
    call.answer = world.send(call.path, call.signed, call.options).catch(() => null);
}

// The last word on the very payment that was sent.
const lastWord = (world, call) => world.waitFor(async () => {
    const answer = await world.send(call.path, call.signed, call.options).catch(() => null);
    const told = answer && (answer.status === 200 || answer.status === 402 || answer.json.code === 'in_review');
    if (!told)
        await world.pause(1_000);
    return told && answer;
}, `${call.act} ${call.path} ends`, 150_000);

async function judge(world, call) {
    const answer = await lastWord(world, call);
    const { from, nonce } = call.signed.payload.authorization;
    const rows = await world.sql(`SELECT a.state, p.tx IS NOT NULL AS proven FROM authorizations a
        LEFT JOIN proofs p ON p.authorization_id = a.id
        WHERE a.payer = '\\x${from.slice(2)}' AND a.nonce = '\\x${nonce.slice(2)}'`);
    const log = (await world.chain.allTransfers()).filter((l) => l.from === from.toLowerCase()
        && l.to === world.payTo.toLowerCase());
    const what = `${call.act} ${call.path}: ${answer.status} ${answer.text.slice(0, 300)} ${JSON.stringify(rows)}`;
    assert.ok(log.length <= 1, what);
    assert.equal(answer.status === 200, log.length === 1, what);
    if (rows.length > 0)
        assert.equal(rows[0].proven, log.length === 1, what);
    return { act: call.act, end: rows[0]?.state ?? 'refused' };
}

const under = (skies) => async (world, chance) => {
    const ends = [];
    let n = 0;
    for (const [round, sky] of skies.entries()) {
        const draw = chance.stream(`round ${round}`);
        const calls = [];
        for (let i = 0; i < CROWD; i++)
            calls.push(await makeCall(world, draw.stream(`call ${i}`), n++));
        await Promise.all(calls.map((call) => begin(world, call)));
        await world.waitFor(async () => {
            const [{ held }] = await world.sql(`SELECT count(*)::int AS held FROM authorizations WHERE state = 'due'`);
            return held >= CROWD;
        }, 'all are at the settler\'s door', 8_000).catch(() => {});     // a chain whose clock ran ahead refuses some
        const isFirst = ({ early }) => early || still.includes(sky);
        await Promise.all(calls.filter(isFirst).map((call) => acts[call.act](world, call)));
        await Promise.all([world.startRole('settler'), weather[sky](world, draw, calls),
            ...calls.filter((call) => !isFirst(call)).map(async (call) => {
                await world.pause(draw.below(1_000));
                return acts[call.act](world, call);
            })]);
        for (const call of calls)
            ends.push({ sky, validBefore: call.validBefore, ...await judge(world, call) });
        await Promise.all(calls.map(({ answer }) => answer));
        await world.stop('settler');
    }
    await world.startRole('settler');
    await allDecided(world);
    const runs = grouped(await world.calls(), ({ target }) => target);
    assert.ok([...runs.values()].every((list) => list.length === 1), 'work ran twice');
    const honest = (weather) => ends.filter(({ sky, act }) => sky === weather && act === 'honest');
    assert.ok(honest('never').every(({ end }) => end !== 'settled'), 'paid by what was never mined');
    for (const sky of ['fair', 'late', 'brink']) {
        const inTime = honest(sky).filter(({ validBefore }) => validBefore === LONG_S);     // the others may run out there
        assert.ok(inTime.length === 0 || inTime.some(({ end }) => end === 'settled'), `nobody paid: ${sky}`);
    }
    const counts = grouped(ends, ({ act, end }) => `${act}_${end}`);
    return { payments: ends.length, acts: ends.filter(({ act, sky }) => act !== 'honest' || sky !== 'fair').length,
        ...Object.fromEntries([...counts].map(([key, list]) => [key, list.length])) };
};

sideBySide('hostile settlement', () => {
    const skies = forecast(new Chance('weather'));
    for (let i = 0; i < WORLDS; i++) {
        const mine = skies.filter((_, k) => k % WORLDS === i);
        drill(`hostile settlement: ${i + 1}, ${mine.join(', ')}`, { tools, roles: ['gateway'], extra: { wait_ms: 3_000 } }, under(mine));
    }
});
