// Between the check and the block anything may happen, here many things at once and in any order: payers cancel, spend
// what they promised, spend the nonce elsewhere, strangers send what they saw, the token pauses, the chain stops or its
// clock jumps. Whatever it is, money and answers agree in the end.
import assert from 'node:assert/strict';
import { testTools } from '../lib/world.mjs';
import { allDecided } from './lib/audit.mjs';
import { drill, long } from './lib/drill.mjs';
import { grouped } from './lib/grouped.mjs';
import { cancel, spendAll, spendElsewhere, submit } from './lib/payer.mjs';

const ROUNDS = long ? 30 : 3;
const CROWD = 24;
const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 3_000, max_timeout_s: 25 }));

const acts = {
    honest: async () => {},
    cancel: (world, { payer, signed }) => cancel(world, payer, signed.payload),
    spend: (world, { payer }) => spendAll(world, payer),
    elsewhere: (world, { payer, signed }) => spendElsewhere(world, payer, signed.required.accepts[0], signed.payload),
    stranger: (world, { signed }) => submit(world, signed.payload),
};

// What the weather of a round is: it is there when the settler gets to work, and goes away again.
const weather = {
    fair: async () => {},
    paused: async (world, chance) => {
        await world.chain.pause();
        await world.pause(chance.between(1_000, 8_000));
        await world.chain.unpause();
    },
    // sometimes past every deadline of the round: mined after the request gave up, just before validBefore, or never
    still: async (world, chance) => {
        await world.chain.rpc.call('evm_setIntervalMining', 0);
        await world.pause(chance.between(2_000, 28_000));
        await world.chain.rpc.call('evm_setIntervalMining', 1);
    },
    jump: async (world, chance) => {
        await world.chain.warp(chance.between(1, 40));
    },
};

async function makeCall(world, chance, n) {
    const payer = await world.newPayer();
    const write = chance.happens(0.4);
    const path = `/test/${write ? 'write' : 'read'}?n=${n}`;
    const options = write ? { method: 'POST', body: '{}' } : {};
    const validBefore = chance.happens(0.3) ? 12 : 25;
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

drill('hostile settlement', { tools, roles: ['gateway'], extra: { wait_ms: 3_000 } }, async (world, chance) => {
    const ends = [];
    let n = 0;
    for (let round = 0; round < ROUNDS; round++) {
        const draw = chance.stream(`round ${round}`);
        const sky = draw.pick(Object.keys(weather));
        const calls = [];
        for (let i = 0; i < CROWD; i++)
            calls.push(await makeCall(world, draw.stream(`call ${i}`), n++));
        await Promise.all(calls.map((call) => begin(world, call)));
        await world.waitFor(async () => {
            const [{ held }] = await world.sql(`SELECT count(*)::int AS held FROM authorizations WHERE state = 'due'`);
            return held >= CROWD;
        }, 'all are at the settler\'s door', 8_000).catch(() => {});     // a chain whose clock ran ahead refuses some
        await Promise.all(calls.filter(({ early }) => early).map((call) => acts[call.act](world, call)));
        await Promise.all([world.startRole('settler'), weather[sky](world, draw),
            ...calls.filter(({ early }) => !early).map(async (call) => {
                await world.pause(draw.below(1_000));
                return acts[call.act](world, call);
            })]);
        for (const call of calls)
            ends.push(await judge(world, call));
        await Promise.all(calls.map(({ answer }) => answer));
        await world.stop('settler');
    }
    await world.startRole('settler');
    await allDecided(world);
    const runs = grouped(await world.calls(), ({ target }) => target);
    assert.ok([...runs.values()].every((list) => list.length === 1), 'work ran twice');
    const counts = grouped(ends, ({ act, end }) => `${act}_${end}`);
    return { payments: ends.length, ...Object.fromEntries([...counts].map(([key, list]) => [key, list.length])) };
});
