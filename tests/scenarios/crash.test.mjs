// kill -9 between any two steps leaves an order that ends rightly: paid and answered, or not charged, or in review;
// a write is never run twice, and the books agree with the chain in the end.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inWorld } from '../lib/world.mjs';

const gatewayPoints = ['gateway-before-accept', 'gateway-after-accept', 'gateway-before-work', 'gateway-after-work',
    'gateway-before-finish', 'gateway-after-finish', 'gateway-before-answer'];
const settlerPoints = ['settler-after-claim', 'settler-before-store', 'settler-after-store', 'settler-before-broadcast',
    'settler-after-broadcast', 'settler-before-proof', 'settler-after-proof'];
const tools = {
    read: ['/test/read', { method: 'GET' }],
    write: ['/test/write', { method: 'POST', body: '{"n":1}' }],
};

// The longest that an order may take: its authorization's 120 s, the chain's finality, and the resolver's pace.
const LONGEST_MS = 280_000;

const answered = (world, call) => world.send(call.path, call.signed, call.options).catch(() => null);
const inReview = (answer) => answer.status === 409 && answer.json.code === 'in_review';

// The last word on a payment: sends the same again while it is told to wait.
async function lastWord(world, call) {
    const undecided = (answer) => !answer || answer.status >= 500 || (answer.status === 409 && !inReview(answer));
    return world.waitFor(async () => {
        const answer = await answered(world, call);
        if (undecided(answer))
            await world.pause(2_000);
        return !undecided(answer) && answer;
    }, `the call that died at ${call.point} ends`, LONGEST_MS);
}

async function judge(world, call) {
    const answer = await lastWord(world, call);
    const { from, nonce } = call.signed.payload.authorization;
    const used = await world.chain.authorizationState(from, nonce);
    const runs = (await world.calls()).filter(({ target }) => target === call.path).length;
    const what = `${call.point}: ${answer.status} ${answer.text.slice(0, 300)}`;
    assert.ok(answer.status === 200 || answer.status === 402 || inReview(answer), what);
    assert.equal(used, answer.status === 200, `the money and the answer disagree at ${what}`);
    if (answer.status === 200)
        assert.ok(runs >= 1, `answered without work at ${what}`);
    if (call.options.method === 'POST')
        assert.ok(runs <= 1, `the write ran ${runs} times at ${what}`);
    return answer;
}

async function newCall(world, point, kind) {
    const [path, options] = tools[kind];
    const payer = await world.newPayer();
    const call = { point: `${point} (${kind})`, path: `${path}?at=${point}`, options };
    call.signed = await world.sign(payer, call.path, options);
    return call;
}

async function killGateway(world) {
    const calls = [];
    for (const point of gatewayPoints)
        for (const kind of Object.keys(tools)) {
            await world.restart('gateway', { env: { PAYONCE_FAILPOINT: point } });
            const call = await newCall(world, point, kind);
            const answer = answered(world, call);
            assert.equal(await world.ended('gateway'), 'SIGKILL', `${point} was never passed`);
            await answer;
            await world.restart('gateway');
            calls.push(call);
        }
    const answers = await Promise.all(calls.map((call) => judge(world, call)));
    const before = answers.slice(0, 2).map((answer) => answer.status);
    assert.deepEqual(before, [200, 200], 'a payment that was never stored is simply made again');
    const after = answers.slice(-4).map((answer) => answer.status);
    assert.deepEqual(after, [200, 200, 200, 200], 'finished work is paid for and its answer is there');
}

async function killSettler(world, points) {
    for (const point of points) {
        await world.restart('settler', { env: { PAYONCE_FAILPOINT: point } });
        const call = await newCall(world, point, 'write');
        const answer = answered(world, call);
        assert.equal(await world.ended('settler'), 'SIGKILL', `${point} was never passed`);
        await world.restart('settler');
        await answer;
        assert.equal((await judge(world, call)).status, 200, point);
    }
    assert.equal(await world.checkBooks(), points.length);
}

describe('kill -9', { concurrency: 3 }, () => {
    test('of the gateway at each of its steps', { timeout: 900_000 }, inWorld({}, killGateway));
    for (const points of [settlerPoints.slice(0, 3), settlerPoints.slice(3)])
        test(`of the settler at ${points.join(', ')}`, { timeout: 900_000 }, inWorld({}, (world) => killSettler(world, points)));
});
