// Debts on a real Tempo node: paid back once by transactions of the refund wallet's own, whatever happens on the way.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { debtsTo, liability, refundWallet, untilDebt } from '../lib/refunds.mjs';
import { PRICE, back, bothAgree, failed, refundsOf, tempoRefunding } from '../lib/tempo-refunds.mjs';
import { inWorld } from '../lib/world.mjs';

const scenario = (name, options, body) => test(name, { timeout: 400_000 }, inWorld(tempoRefunding(options), body));

// The debt is closed by one Transfer to its payer, of the debt's amount.
async function once(world, payer, count = 1) {
    const [debt] = await untilDebt(world, payer, 'refunded');
    const transfers = await back(world, payer);
    assert.deepEqual(transfers.map(({ amount }) => amount), Array(count).fill(PRICE));
    assert.equal(transfers.at(-1).tx, debt.refund_tx);
    return debt;
}

function found() {
    scenario('work that failed: one debt, one refund under its own key, its fee in the books', {}, async (world) => {
        const before = await world.tempo.balanceOf(refundWallet.address);
        const { payer } = await failed(world);
        const debt = await once(world, payer);
        const sent = await refundsOf(world, payer);
        assert.deepEqual(sent.map(({ count, hash }) => [count, hash]), [[0, debt.refund_tx]]);
        assert.equal(sent[0].key, `0x01${debt.nonce.slice(4)}`);
        await bothAgree(world);
        assert.equal(await liability(world), 0n);
        const fee = before - PRICE - await world.tempo.balanceOf(refundWallet.address);
        const [{ sum }] = await world.sql(`SELECT sum(p.amount)::text AS sum FROM postings p JOIN accounts a ON a.id = p.account_id
            WHERE a.name = 'expenses:gas'`);
        assert.ok(fee > 0n);
        assert.equal(BigInt(sum), fee);
    });
}

describe('refunds on Tempo', { concurrency: 2 }, () => {
    found();
});
