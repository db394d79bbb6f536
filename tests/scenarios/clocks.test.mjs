// Wall clocks that are wrong, and that step while they are looked at: of the gateway and the settler, and of the database. Nobody is
// charged for it, and nothing stale is answered.
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bytea } from '../lib/ledger.mjs';
import { inWorld, testTools } from '../lib/world.mjs';

const HOUR = 3_600;
const WINDOW = 8;
const tools = [...testTools, { ...testTools[1], name: 'short', path: '/test/short', repeat_window_s: WINDOW }];
const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';

// `world.step(s)` puts the wall clock of our own processes wrong, `world.stepDatabase(s)` the database's.
const withWrongClocks = (body) => inWorld({
    tools,
    extra: { wait_ms: 5_000 },
    beforeConfig: (world) => {
        const [ours, database] = ['ours', 'database'].map((name) => join(world.dir, `${name}.clock`));
        world.step = (s) => writeFileSync(ours, String(s * 1000));
        world.stepDatabase = (s) => writeFileSync(database, `${s < 0 ? '' : '+'}${s}`);
        world.stepDatabase(0);
        chmodSync(database, 0o644);
        world.env.PAYONCE_WALL_STEP = ours;
        world.databaseEnv = { LD_PRELOAD: faketime, FAKETIME_TIMESTAMP_FILE: database, FAKETIME_NO_CACHE: '1',
            FAKETIME_DONT_FAKE_MONOTONIC: '1', ASAN_OPTIONS: `${world.env.ASAN_OPTIONS}:verify_asan_link_order=0:detect_leaks=0` };
    },
}, body);

const charges = async (world, payer) => Number(1_000_000n - await world.chain.balanceOf(payer.address)) / 1000;
const delivered = (world, payer) => world.waitFor(async () => {
    const [{ n }] = await world.sql(`SELECT count(*)::int AS n FROM orders WHERE payer = ${bytea(payer.address)} AND delivered_at IS NULL`);
    return n === 0;
}, 'all is delivered');

async function buys(world, payer, path) {
    const answer = await world.pay(payer, path);
    assert.deepEqual([answer.status, answer.headers['payonce-charged']], [200, 'true'], answer.text);
    await delivered(world, payer);
    return answer;
}

async function isFree(world, payer, path) {
    const answer = await world.pay(payer, path);
    assert.deepEqual([answer.status, answer.headers['payonce-charged']], [200, 'false'], answer.text);
}

// Until the chain itself says that the payment's window is over.
async function windowIsOver(world, { headers }) {
    const { block } = (await world.request(new URL(headers['payonce-receipt']).pathname)).json.payment;
    const timeOf = async (which) => Number((await world.chain.rpc.call('eth_getBlockByNumber', which, false)).timestamp);
    const paid = await timeOf(`0x${block.toString(16)}`);
    await world.waitFor(async () => await timeOf('latest') >= paid + WINDOW + 2, 'the window is over', 30_000);
}

test('our own clock steps an hour, there and back', withWrongClocks(async (world) => {
    const payer = await world.newPayer();
    await buys(world, payer, '/test/cacheable?n=1');
    const short = await buys(world, payer, '/test/short?n=1');
    for (const s of [HOUR, -HOUR]) {
        world.step(s);
        await isFree(world, payer, '/test/cacheable?n=1');
        // what a right clock signs is not in the range of a wrong one: refused, and nothing is charged
        assert.equal((await world.pay(payer, `/test/cacheable?n=${s}`)).status, 402);
    }
    await windowIsOver(world, short);
    for (const s of [-HOUR, HOUR]) {
        world.step(s);
        const late = await world.pay(payer, '/test/short?n=1');
        assert.deepEqual([late.status, late.headers.age], [402, undefined], late.text);
    }
    world.step(0);
    assert.equal(await charges(world, payer), 2);
    await buys(world, payer, '/test/short?n=1');
    await isFree(world, payer, '/test/cacheable?n=1');
}));

test('the database\'s clock steps an hour, there and back', withWrongClocks(async (world) => {
    const payer = await world.newPayer();
    const stepped = async (s) => {
        world.stepDatabase(s);
        const [{ off }] = await world.sql('SELECT extract(epoch FROM clock_timestamp())::bigint AS off');
        assert.ok(Math.abs(off - Date.now() / 1000 - s) < 5, `the database's clock is off by ${off - Date.now() / 1000} s`);
    };
    await buys(world, payer, '/test/cacheable?n=1');
    await buys(world, payer, '/test/short?n=1');
    const short = await buys(world, payer, '/test/short?n=2');
    const held = [];
    for (const s of [HOUR, -HOUR]) {
        await stepped(s);
        await isFree(world, payer, '/test/cacheable?n=1');
        // by a wrong clock there may be no time left to send it: then it is not final, and is so said
        const path = `/test/cacheable?n=${s}`;
        const answer = await world.pay(payer, path);
        assert.ok(answer.status === 200 || answer.json.code === 'payment_in_flight', answer.text);
        held.push([path, answer.signed]);
    }
    await windowIsOver(world, short);
    for (const [s, path] of [[-HOUR, '/test/short?n=1'], [HOUR, '/test/short?n=2']]) {
        await stepped(s);
        const late = await world.pay(payer, path);
        assert.notEqual(late.headers['payonce-charged'], 'false', late.text);
        held.push([path, late.signed]);
    }
    await stepped(0);
    for (const [path, signed] of held)
        await world.waitFor(async () => (await world.send(path, signed)).status === 200, `${path} is answered`, 30_000);
    assert.equal(await charges(world, payer), 7);
    await isFree(world, payer, '/test/cacheable?n=1');
    assert.deepEqual(await world.sql('SELECT 1 FROM debts'), []);
}));
