// What it costs to learn the end of the many that were released: few calls for all together, and one each where the node
// has no answer for them together.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { now } from '../lib/payment.mjs';
import { Refusal, behindStubs } from '../lib/stub.mjs';

const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';
const STATE = '0xe94a0102', AGGREGATE = '0x82ad56cb';
const COUNT = 30;

const calls = ({ stub }, to) => stub.asked.filter(({ method, params }) => method === 'eth_call' && to(params[0]));
const together = (call) => call.to.toLowerCase() === MULTICALL3 && call.data.startsWith(AGGREGATE);
const alone = (call) => call.data.startsWith(STATE);

// As many authorizations of work that failed, all dead at the same time.
async function released(world) {
    const authorization = { change: { validBefore: String(now() + 25) } };
    const payers = await world.newPayers(COUNT);
    const answers = await Promise.all(payers.map((payer, i) => world.pay(payer, `/test/read?status=500&n=${i}`, { authorization })));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [500], answers[0].text);
    world.stub.asked.length = 0;
}

const allExpired = (world) => world.waitFor(async () =>
    (await world.sql('SELECT DISTINCT state FROM authorizations')).every(({ state }) => state === 'expired'), 'all are proven dead');

describe('looks', { concurrency: 2 }, () => {
    const scenario = (name, body) => test(name, { timeout: 240_000 },
        behindStubs(1, { network: { finality_blocks: 1 }, extra: { wait_ms: 3_000 } }, body));

    scenario('the released are asked for together', async (world) => {
        await released(world);
        await allExpired(world);
        assert.ok(calls(world, together).length > 0);
        assert.ok(calls(world, alone).length < COUNT / 3, `${calls(world, alone).length} alone`);
    });

    scenario('a node that has no answer for them together is asked for each', async (world) => {
        await released(world);
        world.stub.acts.eth_call = ([call, ...rest], pass) => {
            if (together(call))
                throw new Refusal(-32000, 'out of gas');
            return pass([call, ...rest]);
        };
        await allExpired(world);
        assert.ok(calls(world, alone).length >= COUNT);
    });
});
