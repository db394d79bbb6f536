// The second rail: MPP on a real Tempo node, by the stock client and by hand. Whatever is paid is served once or owed back, and no
// 402 is given once money has moved.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ALPHA_USD } from '../../dev/tempo.mjs';
import { Agent } from '../lib/agent.mjs';
import { asOwner } from '../lib/ledger.mjs';
import { authorize, decode, paymentId, paymentV2 } from '../lib/payment.mjs';
import { TEMPO, challenge, challengesOf, credential, debtsTo, memoOf, mppFetch, onTempo, push, sendMemo, signPull, strangeToken, tempoBooksAgree,
    tempoPayer, untilDebts } from '../lib/tempo.mjs';
import { inWorld } from '../lib/world.mjs';

// Each ends with books that are the chains', by `payonce reconcile` and `payonce auditor`.
const scenario = (name, options, body) => test(name, { timeout: 240_000 }, inWorld(onTempo(options), async (world) => {
    await body(world);
    await tempoBooksAgree(world);
}));
const PATH = '/test/tempo';
const receiptIn = (header) => JSON.parse(Buffer.from(header, 'base64url').toString('utf8'));
const present = (world, path, authorization, { headers, ...options } = {}) =>
    world.request(path, { ...options, headers: { ...headers, authorization } });
const runs = async (world, target) => (await world.calls()).filter((call) => call.target === target).length;

function served(answer) {
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.headers['cache-control'], /private/);
    return receiptIn(answer.headers['payment-receipt']);
}

// Nothing that a client would pay on.
function noChallenge(answer, status, code) {
    assert.equal(answer.status, status, answer.text);
    assert.equal(answer.json.code, code);
    for (const name of ['www-authenticate', 'payment-required', 'payment-receipt'])
        assert.equal(answer.headers[name], undefined, name);
    return answer.json;
}

function refused(answer, reason) {
    assert.equal(answer.status, 402, answer.text);
    assert.equal(answer.json.reason, reason);
    assert.equal(answer.json.money, 'not_moved');
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.equal(challengesOf(answer).length, 1);
}

function stock() {
    scenario('the stock client buys by push and by pull, and one URL is sold on both rails', {}, async (world) => {
        const payer = await tempoPayer(world);
        for (const mode of ['push', 'pull', undefined]) {
            const before = await world.tempo.balanceOf(world.payTo);
            const response = await mppFetch(world, payer, { mode })(`${world.gateway}/test/both?mode=${mode}`);
            const text = await response.text();
            assert.equal(response.status, 200, `${mode}: ${text}`);
            const receipt = receiptIn(response.headers.get('payment-receipt'));
            assert.deepEqual([receipt.method, receipt.status], ['tempo', 'success']);
            assert.equal((await world.tempo.receipt(receipt.reference)).status, '0x1');
            assert.equal(await world.tempo.balanceOf(world.payTo) - before, 250n);
        }
        const buyer = await world.newPayer();
        const pay = wrapFetchWithPayment(fetch, registerExactEvmScheme(new x402Client(), { signer: buyer.account }));
        const response = await pay(`${world.gateway}/test/both?mode=x402`);
        assert.equal(response.status, 200);
        assert.equal(await world.chain.balanceOf(buyer.address), 999_000n);
        assert.equal((await world.calls()).length, 4);
    });

    scenario('the stock client pays once, whatever becomes of the call', {}, async (world) => {
        for (const mode of ['push', 'pull']) {
            const payer = await tempoPayer(world);
            const seen = await world.tempo.balanceOf(world.payTo);
            const response = await mppFetch(world, payer, { mode })(`${world.gateway}${PATH}?status=500&mode=${mode}`);
            assert.equal(response.status, 502, await response.clone().text());
            const problem = await response.json();
            assert.equal(problem.code, 'work_failed_paid');
            assert.deepEqual(problem.refunds.map(({ cause, amount }) => [cause, amount]), [['work_failed', '250']]);
            assert.equal(response.headers.get('payment-receipt'), null);
            assert.equal(response.headers.get('www-authenticate'), null);
            assert.equal(await world.tempo.balanceOf(world.payTo) - seen, 250n, mode);
            await untilDebts(world, payer, 1);
        }
    });

    scenario('one 402 for both rails: one quote, Accept-Payment obeyed, and a tool that is sold on one', {}, async (world) => {
        const { answer, v2 } = await world.challenge('/test/both');
        const [offer] = challengesOf(answer);
        assert.equal(v2.accepts.length, 1);
        assert.equal(v2.accepts[0].extra.paymentFlow, undefined);
        const id = (text) => Buffer.from(text, 'base64url').subarray(0, 16).toString('hex');
        assert.equal(id(offer.charge.externalId), id(v2.accepts[0].extra.quote));
        assert.equal(offer.realm, `127.0.0.1:${world.ports.gateway}`);
        assert.deepEqual(offer.charge.methodDetails.supportedModes.toSorted(), ['pull', 'push']);
        const only = await world.request(PATH);
        assert.equal(only.headers['payment-required'], undefined);
        assert.equal(only.json.accepts, undefined);
        for (const [accept, count] of [['tempo/charge;q=0', 0], ['stripe/charge, tempo/charge;q=0.5', 1], ['stripe/charge', 0], ['*/*', 1]]) {
            const one = await world.request('/test/both', { headers: { 'accept-payment': accept } });
            assert.equal(challengesOf(one).length, count, accept);
            assert.ok(decode(one.headers['payment-required']));
        }
    });
}

function ours() {
    scenario('payonce pay buys the same tool on either rail, and doctor has no complaint', {}, async (world) => {
        const payer = await tempoPayer(world);
        await world.chain.fund(payer.address, 1_000_000n);
        const agent = new Agent(world, payer);
        const rails = [['eip155:84532', world.rpcUrl, []], [TEMPO, world.tempo.rpc.url, ['--mode', 'push']],
            [TEMPO, world.tempo.rpc.url, ['--mode', 'pull']]];
        for (const [network, rpc, more] of rails) {
            const { code, json, stderr } = await agent.pay('/test/both', ['--new', '--network', network, '--rpc', rpc, ...more]);
            assert.equal(code, 0, stderr);
            assert.equal(json.charged, true);
        }
        assert.equal(await world.tempo.balanceOf(world.payTo), 500n);
        const { stdout } = await world.payonce(['doctor', '--json']);
        const failed = JSON.parse(stdout).checks.filter(({ result }) => result === 'FAIL');
        assert.deepEqual(failed, []);
        assert.ok(JSON.parse(stdout).checks.some(({ check, text }) => check === `${TEMPO} rpc[0]` && /6 decimals/.test(text)));
    });
}

function replayed() {
    scenario('the same credential again: the stored answer and receipt, once worked, also at once and many', {}, async (world) => {
        const payer = await tempoPayer(world);
        for (const mode of ['push', 'pull']) {
            const path = `${PATH}?mode=${mode}`;
            const ch = await challenge(world, path);
            const { authorization } = mode === 'push' ? await push(world, payer, ch) : await signPull(world, payer, ch);
            const answers = await Promise.all(Array.from({ length: 4 }, () => present(world, path, authorization)));
            const receipts = answers.map(served);
            const again = await present(world, path, authorization);
            assert.deepEqual(new Set([...receipts, served(again)].map((one) => JSON.stringify(one))).size, 1);
            assert.equal(again.headers['payonce-replayed'], 'true');
            assert.equal(again.text, answers[0].text);
            assert.equal(await runs(world, path), 1);
            assert.equal(receipts[0].externalId, ch.charge.externalId);
        }
        assert.equal(await world.tempo.balanceOf(world.payTo), 500n);
        assert.deepEqual(await debtsTo(world, payer), []);
    });

    scenario('a payment id: found again, and a second payment under it is owed back', {}, async (world) => {
        const payer = await tempoPayer(world);
        const headers = { 'idempotency-key': paymentId() };
        const first = await push(world, payer, await challenge(world, PATH, { headers }));
        served(await present(world, PATH, first.authorization, { headers }));
        noChallenge(await world.request(PATH, { headers }), 409, 'already_paid');
        const second = await push(world, payer, await challenge(world, PATH));
        const answer = await present(world, PATH, second.authorization, { headers });
        assert.equal(served(answer).reference, first.hash);
        const [debt] = await untilDebts(world, payer, 1);
        assert.deepEqual([debt.cause, debt.tx, debt.has_order], ['duplicate', second.hash, true]);
        assert.equal(await runs(world, PATH), 1);
    });

    scenario('both rails for one purchase: the quote says that it is one', {}, async (world) => {
        const payer = await tempoPayer(world);
        await world.chain.fund(payer.address, 1_000_000n);
        const { answer, v2 } = await world.challenge('/test/both');
        const [ch] = challengesOf(answer);
        const header = paymentV2(v2, await authorize(payer, v2.accepts[0]));
        const sale = await world.request('/test/both', { headers: { 'payment-signature': header } });
        assert.equal(sale.status, 200, sale.text);
        const { authorization, hash } = await push(world, payer, ch);
        const again = await present(world, '/test/both', authorization);
        assert.equal(again.status, 200, again.text);
        assert.equal(again.headers['payonce-replayed'], 'true');
        const [debt] = await untilDebts(world, payer, 1);
        assert.deepEqual([debt.cause, debt.tx], ['duplicate', hash]);
        assert.equal(await runs(world, '/test/both'), 1);
    });
}

function wrong() {
    scenario('what moved no money for the challenge is a 402 with a fresh one', {}, async (world) => {
        const payer = await tempoPayer(world);
        const ch = await challenge(world, PATH);
        const hash = `0x${'5'.repeat(64)}`;
        refused(await present(world, PATH, credential({ ...ch, id: `A${ch.id.slice(1)}x`.slice(0, 43) }, { type: 'hash', hash })), 'invalid-challenge');
        refused(await present(world, PATH, 'Payment !!!'), 'malformed-credential');
        const plain = await sendMemo(world, payer, { to: payer.address, amount: 1, memo: memoOf(ch) });
        refused(await present(world, PATH, credential(ch, { type: 'hash', hash: plain }, payer)), 'verification-failed');
        const [a, b] = [await challenge(world, PATH), await challenge(world, PATH)];
        const paid = await push(world, payer, a);
        refused(await present(world, PATH, credential(b, { type: 'hash', hash: paid.hash }, payer)), 'verification-failed');
        served(await present(world, PATH, paid.authorization)); // it is still good for its own
        noChallenge(await present(world, PATH, `${paid.authorization}, ${paid.authorization}`), 400, 'payment_field');
        const fields = await signPull(world, payer, await challenge(world, PATH), { amount: 249 });
        refused(await present(world, PATH, fields.authorization), 'verification-failed');
        assert.equal(await world.tempo.balanceOf(world.payTo), 250n);
    });

    scenario('a hash that is not seen yet, and a node that cannot be asked: 503, and the same credential stays good', {},
        async (world) => {
            const payer = await tempoPayer(world);
            const ch = await challenge(world, PATH);
            const unknown = credential(ch, { type: 'hash', hash: `0x${'5'.repeat(64)}` }, payer);
            const answer = await present(world, PATH, unknown);
            noChallenge(answer, 503, 'payment_unseen');
            assert.equal(answer.headers['retry-after'], '2');
            const { authorization } = await push(world, payer, ch);
            served(await present(world, PATH, authorization));
            assert.equal((await world.sql('SELECT count(*)::int AS n FROM charges'))[0].n, 1);
        });

    scenario('another\'s transaction: 403 for whoever did not pay, and the answer for whoever did', {}, async (world) => {
        const payer = await tempoPayer(world), thief = await tempoPayer(world);
        const ch = await challenge(world, PATH);
        const { hash, authorization } = await push(world, payer, ch);
        noChallenge(await present(world, PATH, credential(ch, { type: 'hash', hash }, thief)), 403, 'payment_not_yours');
        served(await present(world, PATH, authorization));
    });

    scenario('a credential for another request: a conflict, no challenge; it is good for its own', {}, async (world) => {
        const payer = await tempoPayer(world);
        const { authorization } = await push(world, payer, await challenge(world, PATH));
        noChallenge(await present(world, `${PATH}?other=1`, authorization), 409, 'payment_conflict');
        served(await present(world, PATH, authorization));
    });

    const mispaid = [
        ['one unit short', (ch) => ({ amount: Number(ch.charge.amount) - 1 }), ['249']],
        ['one unit over', (ch) => ({ amount: Number(ch.charge.amount) + 1 }), ['251']],
        ['in another token', () => ({ token: ALPHA_USD }), ['250']],
        ['in a token that nobody configured', async (ch, world, payer) => ({ token: await strangeToken(world, payer) }), ['250']],
        ['in two halves', (ch) => ({
            calls: [125, 126].map((amount) => ({ to: ch.charge.recipient, amount: amount - (amount === 126 ? 1 : 0), memo: memoOf(ch) })),
        }), ['125', '125']],
        ['twice in one', (ch) => ({ calls: [250, 250].map((amount) => ({ to: ch.charge.recipient, amount, memo: memoOf(ch) })) }), ['250', '250']],
    ];
    scenario('not what was asked for: 403 that names the debts, and they are booked, one a transfer', {}, async (world) => {
        for (const [name, change, amounts] of mispaid) {
            const payer = await tempoPayer(world);
            await world.tempo.fund(payer.address, 1_000n, ALPHA_USD);
            const ch = await challenge(world, PATH);
            const { hash, authorization } = await push(world, payer, ch, await change(ch, world, payer));
            const problem = noChallenge(await present(world, PATH, authorization), 403, 'payment_owed');
            assert.equal(problem.money, 'moved');
            assert.equal(problem.transaction, hash);
            assert.deepEqual(problem.refunds.map(({ amount }) => amount), amounts, name);
            const debts = await untilDebts(world, payer, amounts.length);
            assert.deepEqual(debts.map(({ id }) => id).sort(), problem.refunds.map(({ debt }) => debt).sort(), name);
            assert.ok(debts.every(({ cause, state }) => cause === 'unclaimed' && state === 'owed'));
            const again = noChallenge(await present(world, PATH, authorization), 403, 'payment_owed');
            assert.ok(again.refunds.every(({ state }) => state === 'owed'), JSON.stringify(again.refunds));
        }
        assert.deepEqual(await world.calls(), []);
    });

    scenario('two halves in two transactions: each of them is owed back, also by whoever presents one of them alone', {}, async (world) => {
        const payer = await tempoPayer(world);
        const ch = await challenge(world, PATH);
        const halves = [await push(world, payer, ch, { amount: 125 }), await push(world, payer, ch, { amount: 125 })];
        for (const { authorization, hash } of halves)
            assert.equal(noChallenge(await present(world, PATH, authorization), 403, 'payment_owed').transaction, hash);
        const debts = await untilDebts(world, payer, 2);
        assert.deepEqual(debts.map(({ tx }) => tx).sort(), halves.map(({ hash }) => hash).sort());
        assert.ok(debts.every(({ amount }) => amount === '125'));
        assert.deepEqual(await world.calls(), []);
    });

    scenario('two transactions for one challenge, and a transfer besides the one that pays: each of them is owed back', {},
        async (world) => {
            const payer = await tempoPayer(world);
            const ch = await challenge(world, PATH);
            const first = await push(world, payer, ch), second = await push(world, payer, ch);
            served(await present(world, PATH, first.authorization));
            const told = noChallenge(await present(world, PATH, second.authorization), 403, 'payment_owed');
            assert.deepEqual(told.refunds.map(({ amount }) => amount), ['250']);
            const nothing = await sendMemo(world, payer, { to: payer.address, amount: 1, memo: memoOf(ch) });
            noChallenge(await present(world, PATH, credential(ch, { type: 'hash', hash: nothing }, payer)), 409, 'payment_conflict');
            assert.equal(served(await present(world, PATH, first.authorization)).reference, first.hash);
            const [debt] = await untilDebts(world, payer, 1);
            assert.deepEqual([debt.cause, debt.tx, debt.has_order], ['duplicate', second.hash, true]);
            assert.equal(debt.id, told.refunds[0].debt);

            const other = await tempoPayer(world);
            const next = await challenge(world, PATH);
            const to = next.charge.recipient;
            const both = await push(world, other, next, {
                calls: [{ to, amount: 250, memo: memoOf(next) }, { to, amount: 70, memo: `0x${'00'.repeat(32)}` }],
            });
            served(await present(world, PATH, both.authorization));
            const [surplus] = await untilDebts(world, other, 1);
            assert.deepEqual([surplus.amount, surplus.tx, surplus.has_order], ['70', both.hash, true]);
        });
}

function late() {
    scenario('paid and never presented: found by its memo, and owed back; whoever comes after that is told so', {}, async (world) => {
        const payer = await tempoPayer(world);
        const { hash, authorization } = await push(world, payer, await challenge(world, PATH));
        await world.waitFor(async () => (await world.sql("SELECT 1 FROM transfers WHERE class = 'suspense' AND memo IS NOT NULL")).length === 1,
            'the scan has it');
        await world.pause(3_000);
        assert.deepEqual(await debtsTo(world, payer), []); // somebody may still come with it
        await asOwner(world, 'UPDATE transfers SET block_time = block_time - 1000');
        const [debt] = await untilDebts(world, payer, 1);
        assert.deepEqual([debt.cause, debt.tx], ['unclaimed', hash]);
        const { refunds } = noChallenge(await present(world, PATH, authorization), 403, 'payment_owed');
        assert.equal(refunds[0].debt, debt.id);
        assert.deepEqual(await world.calls(), []);
    });

    scenario('presented after it expired: it was the price, and it is served', { extra: { quote_ttl_s: 10 } }, async (world) => {
        const payer = await tempoPayer(world);
        const ch = await challenge(world, PATH);
        const { authorization } = await push(world, payer, ch);
        await world.waitFor(() => Date.parse(ch.expires) < Date.now(), 'it has expired');
        served(await present(world, PATH, authorization));
        const slow = await challenge(world, PATH);
        const pulled = await signPull(world, payer, slow);
        await world.waitFor(() => Date.parse(slow.expires) < Date.now(), 'it has expired');
        refused(await present(world, PATH, pulled.authorization), 'verification-failed'); // its own deadline is over, too
    });

    scenario('pull while nobody sends: 503 and the same credential stays good; past its deadline it is proven dead, and then 402', {
        extra: { wait_ms: 1500 },
    }, async (world) => {
        await world.stop('settler');
        const payer = await tempoPayer(world);
        const { authorization } = await signPull(world, payer, await challenge(world, PATH));
        const answer = await present(world, PATH, authorization);
        noChallenge(answer, 503, 'payment_pending');
        assert.ok(answer.headers['retry-after']);
        assert.equal(await world.tempo.balanceOf(world.payTo), 0n);
        await world.startRole('settler');
        await world.waitFor(async () => (await present(world, PATH, authorization)).status === 200, 'it is served');

        await world.stop('settler');
        const dead = await signPull(world, payer, await challenge(world, PATH));
        noChallenge(await present(world, PATH, dead.authorization), 503, 'payment_pending');
        await world.waitFor(async () => (await world.tempo.block()).time > dead.validBefore + 1, 'its time is over', 60_000);
        noChallenge(await present(world, PATH, dead.authorization), 503, 'payment_pending');
        await world.startRole('settler');
        const last = await world.waitFor(async () => {
            const one = await present(world, PATH, dead.authorization);
            return one.status !== 503 && one;
        }, 'it is proven dead');
        assert.equal(last.status, 402, last.text);
        assert.equal(await world.tempo.balanceOf(world.payTo), 250n);
    });
}

function killed() {
    const points = {
        settler: ['settler-before-charge', 'settler-after-charge', 'settler-before-proof', 'settler-after-proof'],
        gateway: ['gateway-before-accept', 'gateway-after-accept', 'gateway-before-begin', 'gateway-after-begin', 'gateway-before-answer'],
    };
    for (const [role, steps] of Object.entries(points))
        scenario(`kill -9 of the ${role} at each of its steps: paid once, and served`, {}, async (world) => {
            let paid = 0n;
            for (const step of steps)
                for (const mode of step.includes('charge') ? ['pull'] : ['push', 'pull']) {
                    const payer = await tempoPayer(world);
                    const path = `${PATH}?at=${step}-${mode}`;
                    const ch = await challenge(world, path);
                    await world.restart(role, { env: { PAYONCE_FAILPOINT: step } });
                    const { authorization } = mode === 'push' ? await push(world, payer, ch) : await signPull(world, payer, ch);
                    const answer = present(world, path, authorization).catch(() => null);
                    if (role === 'gateway')
                        assert.equal(await world.ended(role, 60_000), 'SIGKILL', `${step} was never passed`);
                    else
                        await world.waitFor(() => killedNetwork(world), `${step} is passed`, 60_000);
                    await world.restart(role);
                    await answer;
                    const last = await world.waitFor(async () => {
                        const one = await present(world, path, authorization).catch(() => null);
                        return one && ![503, 409].includes(one.status) && one;
                    }, `${step} ${mode} ends`, 60_000);
                    served(last);
                    paid += 250n;
                    assert.equal(await world.tempo.balanceOf(world.payTo), paid, `${step} ${mode}`);
                    assert.deepEqual(await debtsTo(world, payer), []);
                }
        });
}

// The settler of one network died, and took the others with it.
const killedNetwork = (world) => !world.isUp('settler') && world.ended('settler').then(() => true);

describe('MPP', { concurrency: 2 }, () => {
    stock();
    ours();
    replayed();
    wrong();
    late();
    killed();
});
