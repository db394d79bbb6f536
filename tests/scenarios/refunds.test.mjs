// Debts on the real chain: found, paid back once, and closed in the books. The tests named after cases do what those
// reports did to other systems.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { labelled } from '../../dev/accounts.mjs';
import { NETWORK } from '../../dev/config.mjs';
import { secretFile } from '../../dev/place.mjs';
import { showRefund } from '../../dev/refund.mjs';
import { USDC } from '../../dev/usdc.mjs';
import { backup, restore } from '../lib/backup.mjs';
import { begin, isPaid, isSeen, orderOf, publicOrder, submit } from '../lib/ledger.mjs';
import { authorize, paymentId } from '../lib/payment.mjs';
import { booksAgree, debtsTo, late, liability, paidBack, policy, refundWallet, refunding, untilDebt } from '../lib/refunds.mjs';
import { behindStubs } from '../lib/stub.mjs';

const scenario = (name, options, body, stubs = 0) =>
    test(name, { timeout: 400_000 }, behindStubs(stubs, refunding(options), body));
const PATH = '/test/read';

function found() {
    scenario('a released authorization that somebody sent: one debt, one refund, and the books close', {}, async (world) => {
        const call = await late(world);
        const [debt] = await untilDebt(world, call.payer, 'refunded');
        assert.equal(debt.cause, 'late');
        const back = await paidBack(world, call.payer);
        assert.deepEqual(back.map(({ tx, amount }) => [tx, amount]), [[debt.refund_tx, 1_000n]]);
        assert.equal(await world.chain.balanceOf(call.payer.address), 1_000_000n);
        assert.equal((await orderOf(world, call.payer)).status, 'refunded');
        const order = await publicOrder(world, call.payer);
        assert.equal(order.refunds[0].state, 'refunded');
        await booksAgree(world);
        assert.equal(await liability(world), 0n);
    });

    scenario('two authorizations of one payment id, and both land: the second is paid back', {}, async (world) => {
        const id = paymentId();
        const first = await begin(world, PATH, { id });
        await isPaid(world, first);
        const second = await begin(world, PATH, { payer: first.payer, id });
        assert.equal((await second.answer).headers['payonce-charged'], 'false');
        await submit(world, second.signed.payload);
        const [debt] = await untilDebt(world, first.payer, 'refunded');
        assert.equal(debt.cause, 'duplicate');
        assert.equal((await orderOf(world, first.payer)).status, 'paid');
        assert.equal(await world.chain.balanceOf(first.payer.address), 999_000n);
        await booksAgree(world);
    });
}


function shown() {
    scenario('what ./up shows: a stranger sends what was set aside, and it goes back', {}, async (world) => {
        const said = [];
        const receipt = await showRefund({ gateway: world.gateway, chain: world.chain, say: (text) => said.push(text) });
        assert.match(said.at(-1), /Refunded in full: nothing was charged\. 0\.001 USDC refunded\. Final at block/);
        assert.match(receipt, /\/receipts\/rcp_/);
        await booksAgree(world);
    });
}

// ---- whatever happens to a payout, the payer's balance rises once ----

const steps = ['refund-after-due', 'refund-before-sign', 'refund-after-sign', 'carry-before-store', 'carry-after-store',
    'settler-before-broadcast', 'settler-after-broadcast', 'refund-after-send', 'ledger-before-movements',
    'ledger-after-movements'];

const balanceIs = async (world, payer, atoms = 1_000_000n) =>
    assert.equal(await world.chain.balanceOf(payer.address), atoms);

async function once(world, payer) {
    await untilDebt(world, payer, 'refunded');
    assert.equal((await paidBack(world, payer)).length, 1);
    await balanceIs(world, payer);
}

function killed() {
    for (const part of [0, 2, 4, 6, 8].map((i) => steps.slice(i, i + 2)))
        scenario(`killed at ${part.join(', ')} (I03, I07, I16, I24): paid once`, {}, async (world) => {
            for (const step of part) {
                await world.stop('settler');
                await world.startRole('settler', { env: { PAYONCE_FAILPOINT: 'refund-after-due:1=600000' } });
                const { payer } = await late(world);
                await world.waitFor(async () => (await debtsTo(world, payer)).length === 1, 'it is owed');
                await world.kill9('settler');
                await world.startRole('settler', { env: { PAYONCE_FAILPOINT: step } });
                assert.equal(await world.ended('settler'), 'SIGKILL', step);
                await world.startRole('settler');
                await once(world, payer);
            }
            await booksAgree(world);
            assert.equal(await liability(world), 0n);
        });

    scenario('two settlers, and a person who asks for it ten times (I01, I04, I05, I27): paid once', {}, async (world) => {
        await world.startRole('settler2');
        const { payer } = await late(world);
        const [{ id }] = await world.waitFor(async () => {
            const rows = await debtsTo(world, payer);
            return rows.length > 0 && rows;
        }, 'it is owed');
        const asked = await Promise.all(Array.from({ length: 10 }, () => world.payonce(['refunds', 'pay', id])));
        for (const { code, stderr } of asked)
            assert.ok(code === 0 || /chain alone decides|paid back already/.test(stderr), stderr);
        await once(world, payer);
        const late2 = await world.payonce(['refunds', 'pay', id]);
        assert.match(late2.stderr, /paid back already/);
        await isSeen(world, 3);
        assert.equal((await paidBack(world, payer)).length, 1);
        await booksAgree(world);
    });

    scenario('the database comes back from a backup made before the payout: the token refuses the second', {},
        async (world) => {
            await world.restart('settler', { env: { PAYONCE_FAILPOINT: 'refund-after-due:1=600000' } });
            const { payer } = await late(world);
            await world.waitFor(async () => (await debtsTo(world, payer)).length === 1, 'it is owed');
            await world.kill9('settler');
            const before = await backup(world);
            await world.startRole('settler');
            await once(world, payer);
            const [paid] = await debtsTo(world, payer);
            await world.stop('settler');
            await restore(world, before);
            assert.notEqual((await debtsTo(world, payer))[0].state, 'refunded');
            await world.startRole('settler');
            const [again] = await untilDebt(world, payer, 'refunded');
            assert.equal(again.refund_tx, paid.refund_tx);
            assert.equal((await paidBack(world, payer)).length, 1);
            // and what the token says to a second transaction with the very same refund
            const [{ data }] = await world.sql(`SELECT '0x' || encode(t.call_data, 'hex') AS data FROM relay_transactions t
                JOIN payout_calls c ON c.transaction_id = t.id ORDER BY t.id LIMIT 1`).then((rows) => rows.length ? rows
                : [{ data: null }]);
            if (data)
                await refusedByToken(world, data);
            const audit = await world.payonce(['auditor', '--once']);
            assert.equal(audit.code, 0, audit.stdout);
            assert.equal(await liability(world), 0n);
            // what the forgotten transaction cost is the one difference that is left, and its owner is named
            const { differences } = JSON.parse((await world.payonce(['reconcile', '--json'])).stdout);
            assert.deepEqual(differences.map(({ asset, owner }) => [asset, owner]), [['native', 'operator']]);
        });

    // The wallet is changed between the backup and its restoration, either way.
    scenario('an old database comes back, and with it a new refund wallet: what a former one of ours paid is found', {},
        async (world) => {
            const { payer, before } = await owedAndSaved(world);
            await once(world, payer);
            await world.stop('settler');
            await restore(world, before);
            await world.startRole('settler', { env: await anotherWallet(world) });
            await once(world, payer);
            await booksAgree(world, 60_000, { gas: false });
        });

    scenario('an old database comes back, and does not know the wallet that paid: a person says that it was ours', {},
        async (world) => {
            const { payer, before } = await owedAndSaved(world, await anotherWallet(world));
            await once(world, payer);
            await world.stop('settler');
            await restore(world, before);
            await world.startRole('settler');
            const [{ id, reason }] = await untilDebt(world, payer, 'held');
            assert.match(reason, new RegExp(otherWallet.address, 'i'));
            for (const [verb, words] of [['approve', /say `paid`/], ['pay', /say `paid`/]]) {
                const { code, stderr } = await world.payonce(['refunds', verb, id]);
                assert.equal(code, 1);
                assert.match(stderr, words);
            }
            assert.equal((await world.payonce(['refunds', 'paid', id, '--note', 'the wallet of November'])).code, 0);
            await once(world, payer);
            await booksAgree(world, 60_000, { gas: false });
            assert.equal(await liability(world), 0n);
            // read on: what it sends from now on is in the books, too
            await world.chain.giveGas(otherWallet.address);
            await world.chain.write(otherWallet.address, 'transfer', [payer.address, 7n]);
            await booksAgree(world, 60_000, { gas: false });
        });

    scenario('somebody uses the nonce of a refund for something else: it is paid all the same', {}, async (world) => {
        const { payer } = await owedAndSaved(world, {}, async (debt) => {
            const other = await world.newPayer();
            const offer = (await world.challenge(PATH)).v2.accepts[0];
            await submit(world, await authorize(other, offer, { change: { nonce: debt.nonce, to: other.address, value: '0' } }));
        });
        await once(world, payer);
        await booksAgree(world);
    });

    scenario('a person submits the very same refund by hand: the token refuses it', {}, async (world) => {
        const { payer } = await late(world);
        await once(world, payer);
        const [{ data }] = await world.sql(`SELECT '0x' || encode(t.call_data, 'hex') AS data FROM relay_transactions t
            JOIN payout_calls c ON c.transaction_id = t.id`);
        await refusedByToken(world, data);
        await balanceIs(world, payer);
    });
}

// Work that failed was paid for; the database is saved while nothing is paid back yet, then the settler goes on.
async function owedAndSaved(world, env = {}, meanwhile = async () => {}) {
    await world.restart('settler', { env: { PAYONCE_FAILPOINT: 'refund-after-due:1=600000' } });
    const { payer } = await late(world);
    const [debt] = await world.waitFor(async () => {
        const rows = await debtsTo(world, payer);
        return rows.length === 1 && rows;
    }, 'it is owed');
    await world.kill9('settler');
    const before = await backup(world);
    await meanwhile(debt);
    await world.startRole('settler', { env });
    return { payer, before };
}

const otherWallet = labelled('another refund wallet');
async function anotherWallet(world) {
    await world.chain.mint(otherWallet.address, 10_000_000n);
    return { PAYONCE_REFUND_KEY_FILE: secretFile(join(world.dir, 'refund-2'), otherWallet.key) };
}

async function refusedByToken(world, data) {
    const refused = await world.chain.rpc.call('eth_call', { to: USDC, data }, 'latest').catch((error) => error);
    assert.match(String(refused.message ?? refused), /authorization is used or canceled/);
}

// ---- a payer that cannot receive, a wallet that is short, a person who says no ----

function refused() {
    scenario('a blacklisted payer, a paused token: the debt stays open with its reason (I15, I22, I27)', {},
        async (world) => {
            const call = await late(world, {});
            await world.chain.blacklist(call.payer.address).catch(() => {});
            const other = await late(world, {});
            await once(world, other.payer);
            const [first] = await debtsTo(world, call.payer);
            if (first.state !== 'refunded') {
                const [debt] = await world.waitFor(async () => {
                    const rows = await debtsTo(world, call.payer);
                    return rows[0].reason && rows;
                }, 'it has a reason');
                assert.match(debt.reason, /blacklist/);
                assert.equal(debt.state, 'approved');
                await booksAgree(world);
                await world.chain.unBlacklist(call.payer.address);
                await world.payonce(['refunds', 'pay', debt.id]);
            }
            await once(world, call.payer);

            await world.stop('settler');
            await world.startRole('settler', { env: { PAYONCE_FAILPOINT: 'refund-after-due:1=600000' } });
            const third = await late(world, {});
            await world.chain.pause();
            await world.kill9('settler');
            await world.startRole('settler');
            const [debt] = await world.waitFor(async () => {
                const rows = await debtsTo(world, third.payer);
                return rows[0]?.reason && rows;
            }, 'it has a reason');
            assert.match(debt.reason, /paused/);
            await world.chain.unpause();
            await world.payonce(['refunds', 'pay', debt.id]);
            await once(world, third.payer);
        });

    scenario('a wallet that is short pays the oldest, tells what it lacks, and the rest when it is filled',
        { atoms: 1_500n }, async (world) => {
            const first = await late(world);
            await untilDebt(world, first.payer, 'refunded');
            const second = await late(world);
            await world.waitFor(async () => (await debtsTo(world, second.payer))[0]?.state === 'approved', 'it is approved');
            const metrics = async () => (await (await fetch(`http://127.0.0.1:${world.ports.admin}/metrics`)).text());
            await world.waitFor(async () => /payonce_refund_wallet_lacks\{[^}]*\} 500\n/.test(await metrics()), 'it says what it lacks');
            await world.chain.mint(refundWallet.address, 1_000n);
            await once(world, second.payer);
            await booksAgree(world);
        });

    scenario('manual: nothing is paid unasked; held, approved, paid; a debt over the limit waits', {
        refunds: policy({ mode: 'manual' }),
    }, async (world) => {
        const { payer } = await late(world);
        const [{ id }] = await untilDebt(world, payer, 'owed');
        await isSeen(world, 3);
        assert.equal((await debtsTo(world, payer))[0].state, 'owed');
        const refunds = async (...args) => {
            const { code, stdout, stderr } = await world.payonce(['refunds', ...args]);
            return { code, text: stdout + stderr };
        };
        assert.equal((await refunds('hold', id, '--note', 'is it a mistake?')).code, 0);
        assert.match((await refunds('pay', id)).text, /it is held/);
        assert.match((await refunds('show', id)).text, /is it a mistake/);
        assert.equal((await refunds('approve', id, '--note', 'no')).code, 0);
        await once(world, payer);
        assert.match((await refunds('hold', id, '--note', 'too late')).text, /paid back already/);
        assert.match((await refunds('list')).text, /nothing is owed/);
        assert.match((await refunds('list', '--all')).text, /refunded in 0x/);
        assert.match((await refunds('pay', '--dry-run')).text, /0 refund\(s\)/);
    });

    scenario('a plain transfer stays in suspense until a person returns it', {}, async (world) => {
        const payer = await world.newPayer();
        await world.chain.giveGas(payer.address);
        const { transactionHash } = await world.chain.write(payer.address, 'transfer', [world.payTo, 7_000n]);
        const [row] = await world.waitFor(async () => {
            const rows = await world.sql("SELECT log_index, booked FROM transfers WHERE class = 'suspense' AND booked IS NOT NULL");
            return rows.length > 0 && rows;
        }, 'it is in the books');
        await isSeen(world, 3);
        assert.deepEqual(await debtsTo(world, payer), []);
        const { code, stdout, stderr } = await world.payonce(['refunds', 'return', NETWORK, transactionHash, row.log_index]);
        assert.equal(code, 0, stderr + stdout);
        await untilDebt(world, payer, 'refunded');
        await balanceIs(world, payer);
        await booksAgree(world);
    });
}

describe('refunds', { concurrency: 4 }, () => {
    found();
    shown();
    killed();
    refused();
});
