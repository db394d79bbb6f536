// What public reports say other systems did with refunds, done to ours: each test is named after the cases it repeats.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { publicOrder, submit, untilMoney } from '../lib/ledger.mjs';
import { authorize, paymentV2 } from '../lib/payment.mjs';
import { booksAgree, debtsTo, late, liability, paidBack, policy, refundWallet, refunding, untilDebt } from '../lib/refunds.mjs';
import { CUT, HTML, behindStubs } from '../lib/stub.mjs';

const scenario = (name, options, body, stubs = 0) =>
    test(name, { timeout: 240_000 }, behindStubs(stubs, refunding(options), body));

async function paidBackOnce(world, payer) {
    await untilDebt(world, payer, 'refunded', 90_000);
    assert.equal((await paidBack(world, payer)).length, 1);
    assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n);
}

// How many transactions of the relayer's carried a debt.
const payouts = async (world, payer) => (await world.sql(`SELECT count(*)::int AS n FROM payout_calls c
    JOIN debts d ON d.id = c.debt_id WHERE d.payer = '\\x${payer.address.slice(2)}'`))[0].n;

describe('refunds that went wrong elsewhere', { concurrency: 2 }, () => {
    scenario('B04, E22: three debts, the first payer blacklisted, the settler dead over them: two are paid, one waits with its reason',
        { refunds: policy({ mode: 'manual' }) }, async (world) => {
            const calls = [];
            for (let i = 0; i < 3; i++)
                calls.push(await late(world));
            const [refused, ...others] = calls.map(({ payer }) => payer);
            await Promise.all(calls.map(({ payer }) => untilDebt(world, payer, 'owed')));
            await world.chain.blacklist(refused.address);
            await world.stop('settler');
            await world.startRole('settler', { env: { PAYONCE_FAILPOINT: 'refund-after-sign' } });
            for (const payer of [refused, ...others])
                await world.payonce(['refunds', 'approve', (await debtsTo(world, payer))[0].id, '--note', 'yes']);
            assert.equal(await world.ended('settler', 60_000), 'SIGKILL');
            await world.startRole('settler');
            for (const payer of others)
                await paidBackOnce(world, payer);
            const [debt] = await world.waitFor(async () => {
                const rows = await debtsTo(world, refused);
                return rows[0].reason && rows;
            }, 'it has a reason');
            assert.match(debt.reason, /blacklist/);
            const before = await payouts(world, refused);
            await world.pause(6_000);
            assert.ok(await payouts(world, refused) <= before + 1, 'gas is spent on what is refused');
            await world.chain.unBlacklist(refused.address);
            await world.payonce(['refunds', 'pay', debt.id]);
            await paidBackOnce(world, refused);
            await booksAgree(world);
        });

    scenario('I05, I16, I18: the sending\'s reply is a page, then cut, then cut: one nonce, one transfer', {}, async (world) => {
        const wanted = [HTML, CUT, CUT];
        let lost = 0;
        const carriesRefund = (raw) => raw.includes(refundWallet.address.slice(2).toLowerCase());
        world.stub.acts.eth_sendRawTransaction = async ([raw], pass) => {
            const hash = await pass();
            return carriesRefund(raw) && lost < wanted.length ? wanted[lost++] : hash;
        };
        const { payer } = await late(world);
        await paidBackOnce(world, payer);
        assert.ok(lost > 0, 'no reply was lost');
        const nonces = await world.sql(`SELECT DISTINCT t.account_nonce FROM relay_transactions t
            JOIN payout_calls c ON c.transaction_id = t.id`);
        assert.equal(nonces.length, 1, `${nonces.length} account nonces for one refund`);
        await booksAgree(world);
    }, 1);

    scenario('I09, I10: two refunds of one order are two, each with its transaction, however often they are found', {}, async (world) => {
        const call = await late(world);
        await untilDebt(world, call.payer, 'refunded');
        const again = await authorize(call.payer, call.signed.required.accepts[0]);
        await world.send(call.path, { headers: { 'payment-signature': paymentV2(call.signed.required, again) } });
        await submit(world, again);
        await world.waitFor(async () => (await debtsTo(world, call.payer)).length === 2, 'it is owed', 60_000);
        await untilDebt(world, call.payer, 'refunded', 90_000);
        await untilMoney(world, call.payer, 'settled');
        const told = async () => {
            const order = await publicOrder(world, call.payer);
            return (await world.request(new URL(order.receipt).pathname)).json.refunds;
        };
        const refunds = await told();
        assert.equal(refunds.reduce((sum, { amount }) => sum + BigInt(amount), 0n), 2_000n);
        assert.equal(new Set(refunds.map(({ transaction }) => transaction)).size, 2);
        await world.restart('settler');
        await booksAgree(world);
        assert.deepEqual(await told(), refunds);
        assert.equal((await paidBack(world, call.payer)).length, 2);
        assert.equal(await liability(world), 0n);
    });
});
