// MPP beside the payment itself: what is refused before money moves, what is offered in which order, a changed key, and what a payer
// may ask about a transaction of its own.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, describe, test } from 'node:test';
import { Account } from 'viem/tempo';
import { freshAccount } from '../lib/payment.mjs';
import { TEMPO, challenge, challengesOf, endsAs, memoOf, mppPrice, mppTools, onTempo, push, quarterLater, sendMemo, signPull, tempoBooksAgree,
    tempoPayer, untilDebts } from '../lib/tempo.mjs';
import { endWorld, startWorld, testTools } from '../lib/world.mjs';

const PATH = '/test/tempo', TWO = '/test/tempo-two';
let world;
const present = (path, { authorization }) => world.request(path, { headers: { authorization } });

function refused(answer, reason, detail) {
    assert.equal(answer.status, 402, answer.text);
    assert.deepEqual([answer.json.code, answer.json.reason, answer.json.money], ['payment_refused', reason, 'not_moved']);
    assert.match(answer.json.detail, detail);
    assert.equal(challengesOf(answer).length, 1);
}

describe('MPP, its rules', () => {
    before(async () => {
        const two = { ...testTools[0], name: 'tempo two', path: TWO, prices: [mppPrice('300', { token: 'BetaUSD' }), mppPrice('250')] };
        world = await startWorld(onTempo({ tools: [...testTools, ...mppTools, two] }));
    });
    afterEach(() => tempoBooksAgree(world));
    after(() => world && endWorld(world));

    test('pull: whoever cannot pay is refused before anything is stored or sent', async () => {
        const payer = await tempoPayer(world);
        const [ch] = challengesOf(await world.request(TWO));
        const token = ch.charge.currency;
        await world.tempo.fund(payer.address, 1_000_000n, token);
        const signed = await signPull(world, payer, ch);
        await sendMemo(world, payer, { to: freshAccount().address, amount: 999_701n, memo: `0x${'00'.repeat(32)}`, token });
        assert.equal(await world.tempo.balanceOf(payer.address, token), 299n);
        const answer = await present(TWO, signed);
        assert.equal(answer.status, 402, answer.text);
        assert.deepEqual([answer.json.reason, answer.json.money], ['payment-insufficient', 'not_moved']);
        assert.match(answer.json.detail, /balance/);
        assert.deepEqual(await world.sql('SELECT 1 FROM charges'), []);
        assert.equal((await world.sql('SELECT 1 FROM orders')).length, 0);
    });

    test('pull: its own transaction, mined already, is why a balance is low', async () => {
        const payer = await tempoPayer(world, { atoms: 20_000n });
        const ch = await challenge(world, PATH);
        const signed = await signPull(world, payer, ch);
        const hash = await world.tempo.rpc.call('eth_sendRawTransaction', signed.signature);
        assert.equal((await world.tempo.receipt(hash)).status, '0x1');
        const rest = await world.tempo.balanceOf(payer.address);
        await sendMemo(world, payer, { to: freshAccount().address, amount: rest - 700n, memo: `0x${'00'.repeat(32)}` }).catch(() => {});
        const answer = await present(PATH, signed);
        assert.equal(answer.status, 200, answer.text);
        await endsAs(world, payer, 1, []);
    });

    test('pull: another kind of key is refused in clear words, and pays by push', async () => {
        const account = Account.fromP256(`0x${randomBytes(32).toString('hex')}`);
        const payer = { account, address: account.address };
        await world.tempo.fund(payer.address, 1_000_000n);
        const ch = await challenge(world, PATH);
        refused(await present(PATH, await signPull(world, payer, ch)), 'verification-failed', /secp256k1.*push/);
        const answer = await present(PATH, await push(world, payer, ch));
        assert.equal(answer.status, 200, answer.text);
        await endsAs(world, payer, 1, []);
    });

    test('two tokens: offered in the order of the tool\'s prices, and either buys', async () => {
        const offers = challengesOf(await world.request(TWO));
        assert.deepEqual(offers.map(({ charge }) => [charge.currency.slice(-1), charge.amount]), [['2', '300'], ['0', '250']]);
        assert.equal(new Set(offers.map(({ id }) => id)).size, 2);
        const payer = await tempoPayer(world);
        await world.tempo.fund(payer.address, 1_000_000n, offers[0].charge.currency);
        for (const [i, offer] of offers.entries()) {
            const [fresh] = challengesOf(await world.request(`${TWO}?i=${i}`)).filter(({ charge }) => charge.currency === offer.charge.currency);
            const answer = await present(`${TWO}?i=${i}`, await push(world, payer, fresh));
            assert.equal(answer.status, 200, answer.text);
        }
        await endsAs(world, payer, 2, []);
    });

    test('Accept-Payment: what a client would not pay with is not offered, unless there is nothing else', async () => {
        for (const [accept, both, only] of [['tempo/charge;q=0', 0, 1], ['stripe/charge', 0, 1], ['tempo/charge;q=0.1, */*', 1, 1], ['*/*;q=0', 0, 1]]) {
            const headers = { 'accept-payment': accept };
            assert.equal(challengesOf(await world.request('/test/both', { headers })).length, both, accept);
            assert.equal(challengesOf(await world.request(PATH, { headers })).length, only, accept);
        }
    });

    test('the key is changed: challenges under the one before stay good, and only those', async () => {
        const payer = await tempoPayer(world);
        const file = world.env.PAYONCE_QUOTE_KEY_FILE, [old] = readFileSync(file, 'utf8').split('\n');
        const changed = randomBytes(32).toString('hex');
        const [pushed, pulled, lost] = [await challenge(world, PATH), await challenge(world, `${PATH}?pull`), await challenge(world, `${PATH}?lost`)];
        const paid = await push(world, payer, pushed);
        writeFileSync(file, `${changed}\n${old}\n`);
        await world.restart('gateway');
        assert.equal((await present(PATH, paid)).status, 200);
        assert.equal((await present(`${PATH}?pull`, await signPull(world, payer, pulled))).status, 200);
        await endsAs(world, payer, 2, []);

        const other = await tempoPayer(world);
        const orphan = await push(world, other, lost);
        writeFileSync(file, `${changed}\n`);
        await world.restart('gateway');
        refused(await present(`${PATH}?lost`, orphan), 'invalid-challenge', /fresh/);
        await quarterLater(world, other);
        await endsAs(world, other, 0, ['unclaimed']); // its memo tells all the same
        writeFileSync(file, `${changed}\n${old}\n`);
        await world.restart('gateway');
    });

    test('did you take my money? A transaction of one\'s own is asked by its hash', async () => {
        const payer = await tempoPayer(world), other = await tempoPayer(world);
        const ask = (who, hash, more = '') => world.request(`/authorizations/${TEMPO}/${who.address}/${hash}${more}`);
        const ch = await challenge(world, PATH);
        const sale = await push(world, payer, ch);
        const bought = await present(PATH, sale);
        const settled = (await ask(payer, sale.hash)).json;
        assert.deepEqual([settled.status, settled.transaction, settled.nonce], ['settled', sale.hash, undefined]);
        assert.equal(settled.receipt_id, bought.headers['payonce-receipt'].split('/').at(-1));

        const orphan = await push(world, payer, await challenge(world, PATH), { amount: 249 });
        const seen = await world.waitFor(async () => {
            const { json } = await ask(payer, orphan.hash);
            return json.status === 'settled' && json;
        }, 'the scan has it');
        assert.match(seen.why, /no call/);
        assert.equal((await present(PATH, orphan)).status, 403);
        await untilDebts(world, payer, 1);

        const elsewhere = await sendMemo(world, payer, { to: other.address, amount: 1, memo: memoOf(ch) });
        const empty = await world.waitFor(async () => {
            const { json } = await ask(payer, elsewhere);
            return json.status === 'void' && json;
        }, 'it is known to pay nobody here');
        assert.deepEqual([empty.final, /mined/.test(empty.why)], [true, true]);
        assert.equal((await ask(other, elsewhere)).status, 404);

        const unknown = `0x${'5'.repeat(64)}`;
        const open = (await ask(payer, unknown)).json;
        assert.deepEqual([open.status, open.until], ['possible', undefined]);
        const soon = Math.floor(Date.now() / 1000) + 600;
        assert.ok(Date.parse((await ask(payer, unknown, `?valid_before=${soon}`)).json.until) / 1000 >= soon);
        const dead = (await ask(payer, unknown, `?valid_before=${soon - 700}`)).json;
        assert.deepEqual([dead.status, dead.final], ['expired', true]);
    });
});
