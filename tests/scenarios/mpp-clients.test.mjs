// The official MPP client, with nothing told to it but a key and where the local node is, buys every demo tool: in pull
// mode, which it chooses, and in push mode. The official x402 client buys at the same addresses.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { demoTools, toolList } from '../../dev/config.mjs';
import { FEE_MANAGER, PATH_USD, TEMPO_ID, TRANSFER, TRANSFER_WITH_MEMO } from '../../dev/tempo.mjs';
import { checkSum } from '../lib/ledger.mjs';
import { challengeOf, credentialOf, mppClient, receiptOf, watchedFetch } from '../lib/mpp.mjs';
import { freshAccount } from '../lib/payment.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

const expected = {
    countries: (body) => assert.equal(body.name, 'France'),
    currencies: (body) => assert.equal(body.name, 'Euro'),
    languages: (body) => assert.equal(body.name, 'French'),
    order: (body) => assert.equal(body.item, 'tea'),
};

const init = ({ method, body }) => ({
    method, ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
});

// What the fee took, in the token's atoms: the log to the fee manager.
const feeOf = (receipt) => receipt.logs
    .filter(({ topics }) => topics[0] === TRANSFER && topics[2].endsWith(FEE_MANAGER.slice(2)))
    .reduce((sum, { data }) => sum + BigInt(data), 0n);

describe('official MPP client', () => {
    let world;
    before(async () => {
        world = await startWorld({ tempo: {} });
        world.checkBooks = () => checkSum(world);
    });
    after(() => world && endWorld(world));

    const toolOf = (name) => toolList(world.gateway).find((each) => each.name === name);

    async function newPayer() {
        const payer = freshAccount();
        await world.tempo.fund(payer.address, 1_000_000n);
        return payer;
    }

    const balances = (payer) => Promise.all([payer.address, world.payTo].map((a) => world.tempo.balanceOf(a)));

    for (const mode of ['pull', 'push'])
        for (const { name } of demoTools)
            test(`mppx (${mode}) buys ${name}`, async () => {
                const tool = toolOf(name);
                const payer = await newPayer();
                const before = await balances(payer);
                const { seen, fetch } = watchedFetch();
                const client = mppClient(world, payer.key, { fetch, ...(mode === 'push' && { mode }) });
                const response = await client.fetch(tool.url, init(tool));
                const body = await response.json();
                assert.equal(response.status, tool.method === 'POST' ? 201 : 200, JSON.stringify(body));
                expected[name](body);
                assert.deepEqual(seen.map(({ status }) => status), [402, response.status]);
                assert.match(response.headers.get('cache-control'), /private/);

                const sent = credentialOf(seen[1].sent.get('authorization'));
                assert.equal(sent.payload.type, mode === 'pull' ? 'transaction' : 'hash');
                const settled = receiptOf(response.headers.get('payment-receipt'));
                assert.equal(settled.method, 'tempo');
                assert.equal(settled.status, 'success');
                if (mode === 'push')
                    assert.equal(settled.reference, sent.payload.hash);
                const receipt = await world.tempo.receipt(settled.reference);
                assert.equal(receipt.status, '0x1');
                assert.equal(receipt.logs.filter(({ topics }) => topics[0] === TRANSFER_WITH_MEMO).length, 1);

                const later = await balances(payer);
                assert.equal(later[0] - before[0], -BigInt(tool.price) - feeOf(receipt));
                assert.equal(later[1] - before[1], BigInt(tool.price));
            });

    test('the x402 client buys at the same address, and sees MPP beside it', async () => {
        const tool = toolOf('countries');
        const { answer, v2 } = await world.challenge('/iso/countries?code=FR');
        const challenge = challengeOf(answer);
        assert.equal(challenge.method, 'tempo');
        assert.equal(challenge.intent, 'charge');
        assert.equal(challenge.request.amount, tool.price);
        assert.equal(challenge.request.currency, PATH_USD);
        assert.equal(challenge.request.recipient.toLowerCase(), world.payTo.toLowerCase());
        assert.deepEqual(challenge.request.methodDetails, { chainId: TEMPO_ID, supportedModes: ['pull', 'push'] });
        assert.ok(challenge.request.externalId);
        assert.ok(v2.accepts.length > 0 && v2.accepts.every(({ network }) => network !== `eip155:${TEMPO_ID}`));
        assert.match(answer.headers['cache-control'], /no-store/);
        const payer = await world.newPayer();
        const client = registerExactEvmScheme(new x402Client(), { signer: payer.account });
        const response = await wrapFetchWithPayment(fetch, client)(tool.url);
        assert.equal(response.status, 200);
        expected.countries(await response.json());
    });

    test('the same credential again: the same answer and receipt, no second payment, no second order', async () => {
        const tool = toolOf('order');
        for (const mode of ['pull', 'push']) {
            const payer = await newPayer();
            const { seen, fetch: watched } = watchedFetch();
            const client = mppClient(world, payer.key, { fetch: watched, mode });
            const first = await client.fetch(tool.url, init(tool));
            assert.equal(first.status, 201);
            const body = await first.text();
            const [before, orders] = await Promise.all([balances(payer), world.orderCounts()]);
            const { headers, ...rest } = init(tool);
            const again = await fetch(tool.url,
                { ...rest, headers: { ...headers, authorization: seen[1].sent.get('authorization') } });
            assert.equal(again.status, 201);
            assert.equal(await again.text(), body);
            assert.equal(again.headers.get('payment-receipt'), first.headers.get('payment-receipt'));
            assert.deepEqual(await balances(payer), before);
            assert.deepEqual(await world.orderCounts(), orders);
        }
    });

    test('one challenge buys once: its credential at another address, and another transaction for it, buy nothing', async () => {
        const tool = toolOf('countries');
        const payer = await newPayer();
        const { seen, fetch: watched } = watchedFetch();
        const bought = await mppClient(world, payer.key, { fetch: watched }).fetch(tool.url);
        assert.equal(bought.status, 200);
        const authorization = seen[1].sent.get('authorization');
        const elsewhere = await world.request('/iso/countries?code=DE', { headers: { authorization } });
        assert.notEqual(elsewhere.status, 200);
        assert.equal(elsewhere.headers['payment-receipt'], undefined);
        const before = await balances(payer);
        const path = '/test/read?once'; // no answer is kept for others there
        const first = await world.request(path);
        const replay = new Response(null, { status: 402, headers: { 'www-authenticate': first.headers['www-authenticate'] } });
        const client = mppClient(world, payer.key, { mode: 'push' });
        const paid = [await client.createCredential(replay.clone()), await client.createCredential(replay.clone())];
        const answers = [];
        for (const credential of paid)
            answers.push(await world.request(path, { headers: { authorization: credential } }));
        assert.equal(answers[0].status, 200);
        assert.equal(answers[1].status, 403, answers[1].text);
        assert.equal(answers[1].headers['www-authenticate'], undefined);
        const later = await balances(payer);
        assert.equal(later[1] - before[1], 2n * BigInt(tool.price));
        const [debts] = await world.waitFor(async () => {
            const rows = await world.sql(`SELECT count(*)::int AS n, sum(amount)::text AS sum FROM debts WHERE cause = 'duplicate'`);
            return rows[0].n > 0 && rows;
        }, 'it is booked');
        assert.deepEqual(debts, { n: 1, sum: tool.price }); // test read costs the same
    });

    test('a client that would not pay so is not asked to', async () => {
        for (const [accept, offered] of [['stripe/charge', false], ['tempo/charge;q=0, */*', false], ['*/*', true], ['tempo/charge', true]]) {
            const answer = await world.request('/iso/countries?code=FR', { headers: { 'accept-payment': accept } });
            assert.equal(answer.status, 402);
            assert.equal(answer.headers['www-authenticate'] !== undefined, offered, accept);
            assert.ok(answer.headers['payment-required']);
        }
    });
});
