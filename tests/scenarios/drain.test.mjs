// Asked to stop, a part finishes what it began, and ends in order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inWorld } from '../lib/world.mjs';

test('a gateway that is asked to stop answers the call that it has begun', inWorld({}, async (world) => {
    const payer = await world.newPayer();
    const signed = await world.sign(payer, '/test/read?delay_ms=1500');
    const answer = world.send('/test/read?delay_ms=1500', signed);
    await world.waitFor(async () => (await world.calls()).length === 1, 'the work begins');
    const stopped = world.stop('gateway');
    assert.equal((await answer).status, 200);
    await stopped;
    assert.equal(await world.checkBooks(), 1);
}));

test('asked to stop as soon as it is up, each role ends in order', inWorld({}, async (world) => {
    for (let i = 0; i < 5; i++)
        for (const role of ['gateway', 'settler'])
            await world.restart(role);
}));
