// Sellers' servers and buyers' clients, both stock, with Payonce between them as the facilitator.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import axios from 'axios';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import * as fetch2 from '@x402/fetch';
import * as axios2 from '@x402/axios';
import * as fetch1 from 'x402-fetch';
import * as axios1 from 'x402-axios';
import { inWorldOf, rival, rivalKey, shop, transfers } from '../lib/facilitator.mjs';
import { authorize, decode, paymentV1, paymentV2 } from '../lib/payment.mjs';
import { servers } from '../lib/servers.mjs';
import { endWorld, inWorld, startWorld } from '../lib/world.mjs';

const client2 = (make, account) => registerExactEvmScheme(make, { signer: account });
const fromFetch = async (response) => ({ status: response.status, header: (name) => response.headers.get(name), body: await response.json() });
const fromAxios = ({ status, headers, data }) => ({ status, header: (name) => headers[name], body: data });
// Each buys from servers of these versions.
const clients = {
    '@x402/fetch': { versions: [1, 2], buy: async (account, url) =>
        fromFetch(await fetch2.wrapFetchWithPayment(fetch, client2(new fetch2.x402Client(), account))(url)) },
    '@x402/axios': { versions: [2], buy: async (account, url) =>
        fromAxios(await axios2.wrapAxiosWithPayment(axios.create(), client2(new axios2.x402Client(), account)).get(url)) },
    'x402-fetch': { versions: [1], buy: async (account, url) =>
        fromFetch(await fetch1.wrapFetchWithPayment(fetch, account)(url)) },
    'x402-axios': { versions: [1], buy: async (account, url) =>
        fromAxios(await axios1.withPaymentInterceptor(axios.create(), account).get(url)) },
};

// A payment for the server's own offer, made by hand: the header to send, again and again.
async function signFor(payer, url, version, authorization) {
    const answer = await fetch(url);
    assert.equal(answer.status, 402);
    const required = version === 2 ? decode(answer.headers.get('payment-required')) : await answer.json();
    const payload = await authorize(payer, required.accepts[0], authorization);
    return version === 2 ? { 'PAYMENT-SIGNATURE': paymentV2(required, payload) } : { 'X-PAYMENT': paymentV1(required, payload) };
}
const settlementOf = (answer, version) =>
    decode(answer.headers.get(version === 2 ? 'payment-response' : 'x-payment-response'));

for (const [name, { version, start }] of Object.entries(servers))
    describe(`${name} on Payonce`, () => {
        let world, server, runs, work;
        before(async () => {
            world = await startWorld(inWorldOf());
            runs = 0;
            server = await start({
                facilitator: world.gateway, payTo: shop, handler: async () => {
                    runs++;
                    return work?.();
                },
            });
        });
        after(async () => {
            await server?.close();
            await (world && endWorld(world));
        });

        for (const [client, { versions, buy }] of Object.entries(clients).filter(([, each]) => each.versions.includes(version)))
            test(`${client} buys, without a word of configuration`, async () => {
                const payer = await world.newPayer();
                const answer = await buy(payer.account, server.url);
                assert.equal(answer.status, 200, JSON.stringify(answer.body));
                assert.deepEqual(answer.body, { paid: true });
                const settled = decode(answer.header(version === 2 ? 'payment-response' : 'x-payment-response'));
                assert.equal(settled.success, true);
                const [paid, ...more] = await transfers(world, payer);
                assert.deepEqual([paid.tx, paid.amount, more.length], [settled.transaction, 1000n, 0]);
                assert.ok(versions.includes(version));
            });

        // The official facilitator tells one of the two that it failed, although the money moved.
        test('one payment presented twice at once: both are served, one transfer', async () => {
            const payer = await world.newPayer();
            const headers = await signFor(payer, server.url, version);
            const answers = await Promise.all([fetch(server.url, { headers }), fetch(server.url, { headers })]);
            assert.deepEqual(answers.map(({ status }) => status), [200, 200]);
            const hashes = answers.map((answer) => settlementOf(answer, version).transaction);
            assert.equal(hashes[0], hashes[1]);
            assert.equal((await transfers(world, payer)).length, 1);
        });

        test('a settled payment presented again is refused before the work', async () => {
            const payer = await world.newPayer();
            const headers = await signFor(payer, server.url, version);
            assert.equal((await fetch(server.url, { headers })).status, 200);
            const before = runs;
            assert.equal((await fetch(server.url, { headers })).status, 402);
            assert.equal(runs, before);
            assert.equal((await transfers(world, payer)).length, 1);
        });

        test('work that failed is not settled', async () => {
            const payer = await world.newPayer();
            const headers = await signFor(payer, server.url, version);
            work = () => 500;
            assert.equal((await fetch(server.url, { headers })).status, 500);
            work = undefined;
            assert.equal((await fetch(server.url, { headers })).status, 200, 'and may be tried again with the same payment');
            assert.equal((await transfers(world, payer)).length, 1);
        });

        test('a payment that is no good is refused', async () => {
            const payer = await world.newPayer();
            const before = runs;
            for (const authorization of [{ change: { value: '999' } }, { domain: { name: 'Wrong' } }, { change: { validBefore: '1' } }]) {
                const headers = await signFor(payer, server.url, version, authorization);
                const answer = await fetch(server.url, { headers });
                assert.equal(answer.status, 402);
                const { error } = version === 2 ? decode(answer.headers.get('payment-required')) : await answer.json();
                assert.match(error, /^invalid_exact_evm_/);
            }
            assert.equal(runs, before);
        });

        test('the balance is drained between /verify and /settle', async () => {
            const payer = await world.newPayer();
            const headers = await signFor(payer, server.url, version);
            work = () => world.chain.fund(payer.address, 1n).then(() => 200);
            const answer = await fetch(server.url, { headers });
            work = undefined;
            assert.equal(answer.status, 402);
            assert.equal((await transfers(world, payer)).length, 0);
        });
    });

test('a server with its seller\'s key, and one without', inWorld(inWorldOf(), async (world) => {
    const { start } = servers['@x402/express'];
    const common = { facilitator: world.gateway, payTo: rival, handler: () => {} };
    const [keyed, keyless] = [await start({ ...common, key: rivalKey }), await start(common)];
    const payer = await world.newPayer();
    const headers = await signFor(payer, keyed.url, 2);
    assert.equal((await fetch(keyless.url, { headers })).status, 402);
    assert.equal((await fetch(keyed.url, { headers })).status, 200);
    assert.equal((await transfers(world, payer, rival)).length, 1);
    await Promise.all([keyed.close(), keyless.close()]);
}));

// Blocks come too late for the first answer: the official server asks once more by itself, and gets the hash.
test('settlement_pending, and @x402/express asks again by itself', inWorld(
    inWorldOf({ shop: { wait_ms: 1500 } }, { blockTime: 0 }), async (world) => {
        const server = await servers['@x402/express'].start({ facilitator: world.gateway, payTo: shop, handler: () => {} });
        const payer = await world.newPayer();
        const headers = await signFor(payer, server.url, 2);
        const call = fetch(server.url, { headers });
        await world.waitFor(async () => {
            const [{ n }] = await world.sql(`SELECT count(*)::int AS n FROM events WHERE event = 'told_pending'`);
            return n > 0;
        }, 'the first answer was pending');
        await world.chain.mine();
        const answer = await call;
        assert.equal(answer.status, 200, await answer.text());
        const settled = settlementOf(answer, 2);
        assert.deepEqual([settled.success, settled.extra], [true, { replayed: true }]);
        assert.equal((await transfers(world, payer)).length, 1);
        await server.close();
    }));
