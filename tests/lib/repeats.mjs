// How long a repeat takes that the database alone answers: the same payment again once it is paid, while it is in
// flight, and on another route. Median milliseconds, one request after the other over one connection.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

async function timed(count, send, check) {
    const times = [];
    for (let i = 0; i < count; i++) {
        const began = performance.now();
        const answer = await send();
        times.push(performance.now() - began);
        check(answer);
    }
    return median(times);
}

// `base`: a gateway that waits for nothing (wait_ms 0). `around(what, work)` may look at what the work costs besides.
// Blocks come again after it only if the caller wants some.
export async function repeatTimes(world, { base = world.gateway, path, other, count = 200, around = (_, work) => work() }) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const send = (where, signed) => world.request(where, { base, headers: signed.headers, agent });
    const is = (status, code) => (answer) => {
        assert.equal(answer.status, status, answer.text);
        assert.equal(code && answer.json.code, code);
    };
    const paying = async () => world.sign(await world.newPayer(), path);

    const paid = await paying();
    await world.waitFor(async () => (await send(path, paid)).status === 200, 'it is paid', 30_000);
    const replay = () => timed(count, () => send(path, paid), (answer) => {
        is(200)(answer);
        assert.equal(answer.headers['payonce-replayed'], 'true');
    });
    const conflict = () => timed(count, () => send(other, paid), is(409, 'payment_conflict'));
    const figures = { replay_ms: await around('replay', replay), conflict_ms: await around('conflict', conflict) };

    const flying = await paying();
    await world.chain.rpc.call('evm_setIntervalMining', 0);
    is(409, 'payment_in_flight')(await send(path, flying));
    const inFlight = () => timed(count, () => send(path, flying), is(409, 'payment_in_flight'));
    figures.in_flight_ms = await around('in flight', inFlight);
    agent.destroy();
    return figures;
}
