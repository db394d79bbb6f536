// Endpoints that are late, early, of another chain or of none: each is set aside, and /metrics says which it was and why, for
// settlers too, which have no address of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Liar } from '../drills/lib/liar.mjs';
import { Stub } from '../lib/stub.mjs';
import { freePort, inWorld } from '../lib/world.mjs';

const READ = '/test/read';
const lies = {
    other: 'other_chain', html: 'not_json', 'wrong id': 'mismatch', null: 'null', error: 'refused', hang: 'cut', behind: 'behind',
    ahead: 'ahead', fork: 'differs',
};

async function faults(world, name, endpoint) {
    const { text } = await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` });
    const lines = text.matchAll(/^(\w+)\{network="eip155:84532",endpoint="([^"]+)",kind="(\w+)"\} (\d+)$/mg);
    return new Map([...lines].filter(([, n, e]) => n === name && e === endpoint).map(([, , , kind, n]) => [kind, Number(n)]));
}

test('what an endpoint is at fault for is counted by kind', { timeout: 300_000 }, inWorld({ roles: [] }, async (world) => {
    const liars = [];
    for (let i = 0; i < 3; i++)
        liars.push(await new Liar(world.chain).start(await freePort()));
    const config = world.writeConfig('liars', world.ports, {
        network: { rpc: liars.map(({ url }) => `${url}/v2/secretkey`), quorum: 2, rpc_timeout_ms: 1_000 },
    });
    const [liar] = liars;
    liar.lie = 'other';                          // a chain is asked for before an endpoint's first use
    for (const role of ['settler', 'gateway'])
        await world.startRole(role, { config });
    const payer = await world.newPayer();
    const bought = async (path) => {
        const signed = await world.sign(payer, path);
        await world.waitFor(async () => (await world.send(path, signed)).status === 200, `${path} is bought`, 40_000);
    };
    await world.chain.mine(10);                  // an endpoint that is late knows of the money
    for (const [lie, kind] of Object.entries(lies)) {
        const counted = async () => (await faults(world, 'payonce_settler_rpc_faults_total', liar.url)).get(kind) ?? 0;
        const before = lie === 'other' ? 0 : await counted();
        liar.lie = lie;
        await bought(`${READ}?lie=${kind}`);         // two of three tell the truth
        await world.waitFor(async () => await counted() > before, `${lie} is counted as ${kind}`, 30_000);
        liar.lie = null;                         // its chain is known again
        await bought(`${READ}?lie=${kind}-over`);
    }
    liar.lie = null;
    const own = await faults(world, 'payonce_rpc_faults_total', liar.url);
    assert.ok([...own.values()].some((n) => n > 0), 'the gateway counts its own');
    assert.equal((await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` })).text.includes('secretkey'), false);
}));

// The node as it was at a block, for ever.
function standStill(stub, block) {
    const past = (number) => number !== null && Number(number) > block;
    stub.acts.eth_getBlockByNumber = ([tag, full], pass) => {
        if (past(Number(tag)))
            return null;
        return pass(['latest', 'pending'].includes(tag) ? [`0x${block.toString(16)}`, full] : [tag, full]);
    };
    stub.acts.eth_getTransactionReceipt = async (params, pass) => {
        const receipt = await pass();
        return receipt && past(receipt.blockNumber) ? null : receipt;
    };
    stub.acts.eth_getLogs = async (params, pass) => (await pass()).filter(({ blockNumber }) => !past(blockNumber));
}

test('each endpoint is believed alone, and the first stands still', { timeout: 300_000 }, (t) => inWorld({ roles: [] }, async (world) => {
    const stub = await Stub.start(world.rpcUrl);
    t.after(() => stub.stop());
    const config = world.writeConfig('two', world.ports, { network: { rpc: [stub.url, world.rpcUrl], rpc_timeout_ms: 2_000 } });
    for (const role of ['settler', 'gateway'])
        await world.startRole(role, { config });
    const payer = await world.newPayer();
    assert.equal((await world.pay(payer, READ)).status, 200);
    standStill(stub, Number(await world.chain.rpc.call('eth_blockNumber')));
    const signed = await world.sign(payer, `${READ}?later`);
    await world.waitFor(async () => (await world.send(`${READ}?later`, signed)).status === 200, 'the other endpoint is asked', 60_000);
    const counted = async () => (await faults(world, 'payonce_settler_rpc_faults_total', stub.url)).get('behind') > 0;
    await world.waitFor(counted, 'it is counted', 30_000);
})());
