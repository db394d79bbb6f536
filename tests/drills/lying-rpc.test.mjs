// Endpoints that lag, lie and break: what is true is found out all the same, what is false is never booked, and where
// nobody tells the truth an unknown stays one.
import assert from 'node:assert/strict';
import { freePort, testTools } from '../lib/world.mjs';
import { allDecided } from './lib/audit.mjs';
import { Buyer, inTurn, judge } from './lib/buyers.mjs';
import { drill, long, sideBySide } from './lib/drill.mjs';
import { LIES, Liar } from './lib/liar.mjs';

const ENDPOINTS = 3;
const PHASES = long ? 27 : 6;
const BUYERS = 6;
const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 3_000, max_timeout_s: 90 }));
const options = {
    tools, roles: [], extra: { wait_ms: 5_000 },
    network: { rpc_timeout_ms: 1_000, finality_blocks: 12 },
};

async function start(world) {
    const liars = [];
    for (let i = 0; i < ENDPOINTS; i++)
        liars.push(await new Liar(world.chain).start(await freePort()));
    const rpc = liars.map(({ url }) => url);
    const config = world.writeConfig('liars', world.ports, { network: { rpc, quorum: 2 } });
    await world.startRole('settler', { config });
    await world.startRole('gateway', { config });
    return liars;
}

const lies = (liars) => liars.reduce((sum, { told }) => sum + told, 0);

const orderOf = async (world, payer) => (await world.sql(`SELECT status, money, tx FROM order_status
    WHERE payer = '\\x${payer.address.slice(2)}'`))[0];

const oneOfThree = async (world, chance) => {
    const liars = await start(world);
    const buyers = [];
    const told = {};
    for (let phase = 0; phase < PHASES; phase++) {
        const liar = chance.pick(liars);
        liar.lie = LIES[phase % LIES.length];
        if (phase >= LIES.length || PHASES < LIES.length)
            liar.lie = chance.pick(LIES);
        const payers = await world.newPayers(BUYERS);
        await world.chain.mine(10);     // so that an endpoint that is late knows of their money
        const now = payers.map((payer, i) => {
            const n = phase * BUYERS + i;
            return new Buyer(world, payer, { path: `/test/read?n=${n}`, method: 'GET' },
                { mode: 'same', chance: chance.stream(`buyer ${n}`), base: () => world.gateway });
        });
        buyers.push(...now);
        await inTurn(BUYERS, BUYERS, (i) => now[i].buy());
        told[liar.lie] = (told[liar.lie] ?? 0) + 1;
        liar.lie = null;
    }
    await allDecided(world);
    return { ...await judge(world, buyers), lies: lies(liars), ...Object.fromEntries(Object.entries(told).map(([k, v]) =>
        [k.replace(' ', '_'), v])) };
};

// Payments that are sent and cannot be mined, so that whatever is told of them is false or nothing. A gateway that had no answer in
// time (a busy machine) says so; while no block comes it stays blind, so that others are tried.
async function sentAndStuck(world, count) {
    for (const end = Date.now() + 120_000; ;) {
        const payers = await world.newPayers(count);
        const calls = await Promise.all(payers.map(async (payer, i) => {
            const path = `/test/read?payer=${payer.address}&i=${i}`;
            return { payer, path, signed: await world.sign(payer, path) };
        }));
        await world.chain.rpc.call('evm_setIntervalMining', 0);
        const answers = await Promise.all(calls.map(({ path, signed }) => world.send(path, signed)));
        if (answers.every(({ json }) => json.code === 'payment_in_flight')) {
            const isSent = async ({ payer }) => (await orderOf(world, payer)).money === 'sent';
            await Promise.all(calls.map((call) => world.waitFor(() => isSent(call), 'it is sent')));
            return calls;
        }
        for (const { json, text } of answers)
            assert.ok(Date.now() < end && ['payment_in_flight', 'chain_unavailable'].includes(json.code), text);
        await world.chain.rpc.call('evm_setIntervalMining', 1);
    }
}

async function staysUnknown(world, calls, ms) {
    for (const end = Date.now() + ms; Date.now() < end; await world.pause(500))
        for (const { payer } of calls)
            assert.equal((await orderOf(world, payer)).status, 'settling');
}

async function allPaid(world, calls) {
    await world.chain.rpc.call('evm_setIntervalMining', 1);
    for (const { payer, path, signed } of calls) {
        const paid = async () => (await orderOf(world, payer)).status === 'paid';
        await world.waitFor(paid, 'the truth is found out', 90_000);
        assert.equal((await world.send(path, signed)).status, 200);
    }
}

const forged = (lie) => async (world, chance) => {
    const liars = await start(world);
    const calls = await sentAndStuck(world, 4);
    chance.pick(liars).lie = lie;
    await staysUnknown(world, calls, 15_000);
    await allPaid(world, calls);
    return { payments: calls.length, lies: lies(liars) };
};

const allOfThem = async (world, chance) => {
    const liars = await start(world);
    const calls = await sentAndStuck(world, 4);
    // not 'other': until it is asked for its chain again, what it tells is true
    const silent = ['null', 'html', 'wrong id', 'error', 'hang'];
    liars.forEach((liar) => {
        liar.lie = chance.pick(silent);
    });
    await world.chain.rpc.call('evm_setIntervalMining', 1);
    await staysUnknown(world, calls, 15_000);
    for (const { path, signed } of calls) {
        const answer = await world.send(path, signed);
        assert.ok(answer.status === 409 || answer.status === 503, answer.text);
    }
    const told = async () => (await world.send(calls[0].path, calls[0].signed)).json;
    const first = Date.parse((await world.waitFor(async () => (await told()).known_by_note && told(), 'it says why the time moves',
        90_000)).known_by);
    await world.waitFor(async () => Date.parse((await told()).known_by) > first, 'the time moves', 30_000);
    liars.forEach((liar) => {
        liar.lie = null;
    });
    await allPaid(world, calls);
    return { payments: calls.length, lies: lies(liars) };
};

sideBySide('lying rpc', () => {
    drill('lying rpc: one of three', options, oneOfThree);
    for (const lie of ['paid', 'cancelled'])
        drill(`lying rpc: one forges that all is ${lie}`, options, forged(lie));
    drill('lying rpc: all of them', options, allOfThem);
});
