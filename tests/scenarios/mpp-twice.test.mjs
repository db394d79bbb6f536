// The stock MPP client, told nothing but its key, where it is led to pay twice: it pays once, or what it paid more is owed back, one
// debt a transfer.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { CUT } from '../lib/edge.mjs';
import { CACHEABLE, Faults, buy, noChallenge, present, rawIn, runs, served } from '../lib/mpp-faults.mjs';
import { paymentId } from '../lib/payment.mjs';
import { endsAs, paidBy, untilDebts } from '../lib/tempo.mjs';

const x402Fetch = (payer) => wrapFetchWithPayment(fetch, registerExactEvmScheme(new x402Client(), { signer: payer.account }));

// A cache on the way that gives one 402 to all who bring no payment.
function cached() {
    let first;
    return async (call, pass) => {
        if (call.paid)
            return pass();
        first ??= await pass();
        return first;
    };
}

// The first answers to a payment are lost on the way, and a 402 comes in their place.
const instead = (count, challenge) => async (call, pass) => {
    const answer = await pass();
    return call.turn > 0 && call.turn <= count ? challenge(call) : answer;
};

const lostOnce = async (call, pass) => {
    const answer = await pass();
    return call.turn === 1 ? CUT : answer;
};

describe('MPP, twice', () => {
    const faults = new Faults();
    const fault = faults.fault.bind(faults);
    const more = (mode, n) => mode === 'push' ? Array(n).fill('duplicate') : [];

    fault('D1 a 402 behind the payment: the first one again', async (world, mode, payer) => {
        const path = faults.path();
        const first = await world.request(path);
        const edge = await faults.edge(async (call, pass) => call.paid ? instead(2, () => first)(call, pass) : first);
        const answer = await buy(world, payer, mode, edge.url, path);
        assert.equal(edge.paid.length, 3);
        if (mode === 'pull')
            served(answer); // all three were signed for one challenge, and one of them was sent
        else
            noChallenge(answer, 403, 'payment_owed');
        await endsAs(world, payer, 1, more(mode, 2));
        assert.equal(await runs(world, path), 1);
    });

    fault('D1 a fresh 402 behind the payment of a call that has a payment id', async (world, mode, payer) => {
        const headers = { 'idempotency-key': paymentId() };
        const path = faults.path();
        const edge = await faults.edge(instead(2, () => world.request(path)));
        served(await buy(world, payer, mode, edge.url, path, { headers }));
        assert.equal(edge.paid.length, 3);
        await endsAs(world, payer, 1, more(mode, 2));
        assert.equal(await runs(world, path), 1);
    });

    fault('D1 a fresh 402 behind the payment of a question that is given again', async (world, mode, payer) => {
        const path = faults.path(CACHEABLE);
        const edge = await faults.edge(instead(2, () => world.request(path)));
        served(await buy(world, payer, mode, edge.url, path));
        await endsAs(world, payer, 1, more(mode, 2));
        assert.equal(await runs(world, path), 1);
    });

    // Nothing ties the three together but that somebody asked for each. What is taken for the call before it, whose delivery is not noted
    // yet, is not sent; any other is a call that was bought and made.
    fault('D1 a fresh 402 behind the payment, and nothing else to know the call by', async (world, mode, payer) => {
        const path = faults.path();
        const edge = await faults.edge(instead(2, () => world.request(path)));
        served(await buy(world, payer, mode, edge.url, path));
        const { length } = await paidBy(world, payer);
        assert.ok(mode === 'push' ? length === 3 : length <= 3);
        const duplicates = mode === 'push' ? length - await runs(world, path) : 0;
        await endsAs(world, payer, length - duplicates, more(mode, duplicates));
        assert.equal(await runs(world, path), length - duplicates);
    });

    fault('D2 the answer is lost, and the agent asks again under its payment id', async (world, mode, payer) => {
        const headers = { 'idempotency-key': paymentId() };
        const path = faults.path();
        const lossy = await faults.edge(lostOnce);
        await assert.rejects(buy(world, payer, mode, lossy.url, path, { headers }));
        noChallenge(await buy(world, payer, mode, lossy.url, path, { headers }), 409, 'already_paid');
        await endsAs(world, payer, 1, []);
        const stored = await present(world, world.gateway, path, lossy.paid[0].headers, { headers });
        assert.equal(stored.headers['payonce-replayed'], 'true');
    });

    fault('D2 the answer is lost, and the agent asks again for what is given again', async (world, mode, payer) => {
        const path = faults.path(CACHEABLE);
        const lossy = await faults.edge(lostOnce);
        await assert.rejects(buy(world, payer, mode, lossy.url, path));
        served(await buy(world, payer, mode, lossy.url, path));
        await endsAs(world, payer, 1, more(mode, 1));
        assert.equal(await runs(world, path), 1);
    });

    fault('D3 two transactions for one challenge', async (world, mode, payer) => {
        const path = faults.path();
        const cache = await faults.edge(cached());
        const { reference } = served(await buy(world, payer, mode, cache.url, path));
        const second = await buy(world, payer, mode, cache.url, path);
        if (mode === 'pull')
            assert.equal(served(second).reference, reference);
        else
            assert.deepEqual(noChallenge(second, 403, 'payment_owed').refunds.map(({ amount }) => amount), ['250']);
        await endsAs(world, payer, 1, more(mode, 1));
        assert.equal(await runs(world, path), 1);
    });

    fault('D5 one purchase paid on both rails, x402 first', async (world, mode, payer) => {
        await world.chain.fund(payer.address, 1_000_000n);
        const path = faults.path('/test/both');
        const cache = await faults.edge(cached());
        assert.equal((await x402Fetch(payer)(`${cache.url}${path}`)).status, 200);
        const second = await buy(world, payer, mode, cache.url, path);
        assert.equal(second.status, 200, second.text);
        const debts = await untilDebts(world, payer, more(mode, 1).length);
        assert.deepEqual(debts.map(({ cause }) => cause), more(mode, 1));
        assert.equal((await paidBy(world, payer)).length, debts.length);
        assert.equal(await world.chain.balanceOf(payer.address), 999_000n);
        assert.equal(await runs(world, path), 1);
    });

    fault('D5 one purchase paid on both rails, MPP first', async (world, mode, payer) => {
        await world.chain.fund(payer.address, 1_000_000n);
        const path = faults.path('/test/both');
        const cache = await faults.edge(cached());
        served(await buy(world, payer, mode, cache.url, path));
        assert.equal((await x402Fetch(payer)(`${cache.url}${path}`)).status, 200);
        await endsAs(world, payer, 1, []);
        assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n); // signed, and never sent
        assert.equal(await runs(world, path), 1);
    });

    fault('D6 the client broadcasts what it also handed over', async (world, mode, payer) => {
        const eager = await faults.edge(async (call, pass) => {
            if (call.turn !== 1)
                return pass();
            const answer = pass();
            await world.tempo.rpc.call('eth_sendRawTransaction', rawIn(call)).catch(() => {});
            await answer;
            await world.tempo.rpc.call('eth_sendRawTransaction', rawIn(call)).catch(() => {});
            return answer;
        });
        served(await buy(world, payer, mode, eager.url, faults.path()));
        await endsAs(world, payer, 1, []);
    }, ['pull']);
});
