// The official clients, with nothing told to them but a key, buy every demo tool.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import axios from 'axios';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import * as fetch2 from '@x402/fetch';
import * as axios2 from '@x402/axios';
import * as fetch1 from 'x402-fetch';
import * as axios1 from 'x402-axios';
import { demoTools, toolList } from '../../dev/config.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

const fromFetch = async (response) => ({
    status: response.status, header: (name) => response.headers.get(name), body: await response.json(),
});
const fromAxios = (response) => ({
    status: response.status, header: (name) => response.headers[name] ?? null, body: response.data,
});
const fetchOptions = ({ method, body }) => ({
    method, ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
});

// buy(account, tool) makes one paid call; decode reads the settlement's header; network is what it says there.
const clients = {
    '@x402/fetch': {
        header: 'payment-response', decode: fetch2.decodePaymentResponseHeader, network: 'eip155:84532',
        buy: async (account, tool) => {
            const client = registerExactEvmScheme(new fetch2.x402Client(), { signer: account });
            return fromFetch(await fetch2.wrapFetchWithPayment(fetch, client)(tool.url, fetchOptions(tool)));
        },
    },
    '@x402/axios': {
        header: 'payment-response', decode: axios2.decodePaymentResponseHeader, network: 'eip155:84532',
        buy: async (account, tool) => {
            const client = registerExactEvmScheme(new axios2.x402Client(), { signer: account });
            const paying = axios2.wrapAxiosWithPayment(axios.create(), client);
            return fromAxios(await paying.request({ url: tool.url, method: tool.method, data: tool.body }));
        },
    },
    'x402-fetch': {
        header: 'x-payment-response', decode: fetch1.decodeXPaymentResponse, network: 'base-sepolia',
        buy: async (account, tool) =>
            fromFetch(await fetch1.wrapFetchWithPayment(fetch, account)(tool.url, fetchOptions(tool))),
    },
    'x402-axios': {
        header: 'x-payment-response', decode: axios1.decodeXPaymentResponse, network: 'base-sepolia',
        buy: async (account, tool) => {
            const paying = axios1.withPaymentInterceptor(axios.create(), account);
            return fromAxios(await paying.request({ url: tool.url, method: tool.method, data: tool.body }));
        },
    },
};

const expected = {
    countries: (body) => assert.equal(body.name, 'France'),
    currencies: (body) => assert.equal(body.name, 'Euro'),
    languages: (body) => assert.equal(body.name, 'French'),
    order: (body) => assert.equal(body.item, 'tea'),
};

describe('official clients', () => {
    let world;
    before(async () => {
        world = await startWorld();
    });
    after(() => world && endWorld(world));

    for (const [name, client] of Object.entries(clients))
        for (const { name: toolName } of demoTools)
            test(`${name} buys ${toolName}`, async () => {
                const tool = toolList(world.gateway).find((each) => each.name === toolName);
                const payer = await world.newPayer();
                const before = await Promise.all([payer.address, world.payTo].map((a) => world.chain.balanceOf(a)));
                const answer = await client.buy(payer.account, tool);
                assert.equal(answer.status, tool.method === 'POST' ? 201 : 200, JSON.stringify(answer.body));
                expected[toolName](answer.body);

                const settled = client.decode(answer.header(client.header));
                assert.equal(settled.success, true);
                assert.equal(settled.network, client.network);
                assert.equal(settled.payer.toLowerCase(), payer.address.toLowerCase());
                const receipt = await world.chain.receipt(settled.transaction);
                assert.equal(receipt.status, '0x1');

                const later = await Promise.all([payer.address, world.payTo].map((a) => world.chain.balanceOf(a)));
                assert.equal(later[0] - before[0], -BigInt(tool.price));
                assert.equal(later[1] - before[1], BigInt(tool.price));
            });

    test('each order was placed exactly once', async () => {
        const counts = await world.orderCounts();
        assert.deepEqual(Object.values(counts), Object.keys(clients).map(() => 1));
        for (const key of Object.keys(counts))
            assert.match(key, /^ord_[A-Za-z0-9_-]{22,}$/);
    });
});
