// A wallet that the configuration does not name any more: what was signed for it can still land there, and its books go
// on to their end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelled } from '../../dev/accounts.mjs';
import { begin, isPaid, isSeen, submit, untilMoney } from '../lib/ledger.mjs';
import { booksAgree, debtsTo, late, liability, logOf, paidBack, refundWallet, refunding, untilDebt } from '../lib/refunds.mjs';
import { inWorld } from '../lib/world.mjs';

const next = labelled('the wallet after');
const report = async (world) => JSON.parse((await world.payonce(['reconcile', '--json'])).stdout);

test('another wallet is paid to: the one before is read on, its debts are found and paid, and the report says so', {
    timeout: 240_000,
}, inWorld(refunding(), async (world) => {
    const before = world.payTo;
    await isPaid(world, await begin(world, '/test/read'));
    const released = await begin(world, '/test/read?status=404');
    assert.equal((await released.answer).headers['payonce-charged'], 'false');
    await booksAgree(world);

    world.config = world.writeConfig('payonce', world.ports, { network: { pay_to: next.address } });
    world.payTo = next.address;
    await world.restart('settler');
    await world.restart('gateway');
    await isPaid(world, await begin(world, '/test/read'));
    assert.equal(await world.chain.balanceOf(next.address), 1_000n);

    await submit(world, released.signed.payload);
    await untilMoney(world, released.payer, 'settled');
    await untilDebt(world, released.payer, 'refunded');
    assert.equal((await paidBack(world, released.payer)).length, 1);
    await world.chain.giveGas(before);
    await world.chain.write(before, 'transfer', [next.address, 1_500n]);
    await isSeen(world, 3);
    await booksAgree(world);
    assert.equal(await liability(world), 0n);

    const { wallets } = await report(world);
    const noteOf = (address) => wallets.find(({ account }) => account === `assets:wallet:${address.toLowerCase()}`).note;
    assert.match(noteOf(before), /read on/);
    assert.equal(noteOf(next.address), '');
    assert.equal(wallets.find(({ account }) => account.includes(before.toLowerCase())).closing, '500');
    assert.match(logOf(world, 'settler'), new RegExp(`ledger.read_on .*${before.toLowerCase()}`));
    const { address } = refundWallet;
    assert.ok(wallets.every(({ account, note }) => !account.includes(address.toLowerCase()) || note === ''));
    const again = await late(world);
    await untilDebt(world, again.payer, 'refunded');
    assert.equal((await debtsTo(world, again.payer)).length, 1);
    await booksAgree(world);
    world.checkBooks = () => {}; // booksAgree has compared both wallets
}));
