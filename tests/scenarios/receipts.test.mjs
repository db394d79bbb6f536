// Receipts as the world sees them: signed, checked by anybody, and a page in a real browser.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { verifyTypedData } from 'viem';
import { labelled } from '../../dev/accounts.mjs';
import { NETWORK } from '../../dev/config.mjs';
import { secretFile } from '../../dev/place.mjs';
import { isSound, looks, openBrowser } from '../lib/browser.mjs';
import { asOwner, begin, isPaid, publicOrder, submit } from '../lib/ledger.mjs';
import { freshAccount, paymentId } from '../lib/payment.mjs';
import { late, refunding, untilDebt } from '../lib/refunds.mjs';
import { mppFetch, mppTools, tempoPayer } from '../lib/tempo.mjs';
import { endWorld, startWorld, testTools } from '../lib/world.mjs';
import { cancel } from '../drills/lib/payer.mjs';

const signer = labelled('receipts');
const retired = labelled('receipts before');
let world, paid, twice, refunded, pages;

before(async () => {
    world = await startWorld(refunding({
        tools: [...testTools, ...mppTools], tempo: {},
        extra: { seller: 'Tea & <b>Co</b>', receipt_signers: [retired.address] },
        network: { explorer: 'https://explorer.invalid' },
        beforeConfig: (w) => {
            w.env.PAYONCE_RECEIPT_KEY_FILE = secretFile(join(w.dir, 'receipts'), signer.key);
        },
    }));
    paid = await begin(world, '/test/read');
    await isPaid(world, paid);
    const id = paymentId();
    twice = await begin(world, '/test/read', { id });
    await isPaid(world, twice);
    const second = await begin(world, '/test/read', { payer: twice.payer, id });
    await second.answer;
    await submit(world, second.signed.payload);
    refunded = await late(world);
    await untilDebt(world, twice.payer, 'refunded');
    await untilDebt(world, refunded.payer, 'refunded');
    pages = [];
    for (const call of [paid, twice, refunded])
        pages.push(new URL((await publicOrder(world, call.payer)).receipt).pathname);
    const other = await mppFetch(world, await tempoPayer(world))(`${world.gateway}/test/tempo`);
    assert.equal(other.status, 200);
    pages.push(new URL(other.headers.get('payonce-receipt')).pathname);
}, { timeout: 300_000 });
after(() => world && endWorld(world), { timeout: 300_000 });

const receipt = async (n) => (await world.request(pages[n])).json;
const verify = async (what, ...more) => {
    const { code, stdout, stderr } = await world.payonce(['receipt', 'verify', what, ...more]);
    return { code, text: stdout + stderr };
};

describe('receipts', () => {
    test('one line with the answer', async () => {
        assert.match((await receipt(0)).headline, /^Paid once\. (Final at block \d+\.|In block)/);
        assert.match((await receipt(1)).headline, /^Paid once\. 0\.001 USDC refunded\. Final at block \d+\.$/);
        assert.match((await receipt(3)).headline, /^Paid once\. (Final at block \d+\.|In block \d+, \d+ blocks? deep)/);
        assert.match((await receipt(2)).headline, /^Refunded in full: nothing was charged\. 0\.001 USDC refunded\. Final at/);
    });

    test('the refund is in it, with cause, transaction, block and time; J04: refunded in full', async () => {
        const { status, refunds: [debt], payment } = await receipt(2);
        assert.equal(status, 'refunded');
        assert.deepEqual([debt.cause, debt.state, debt.amount, debt.to], ['late', 'refunded', '1000', refunded.payer.address.toLowerCase()]);
        assert.ok(debt.block > payment.block && debt.refunded_at && /^0x[0-9a-f]{64}$/.test(debt.transaction));
        assert.deepEqual((await publicOrder(world, refunded.payer)).refunds[0].transaction, debt.transaction);
    });

    test('N02: signed as a whole: each change of each field is noticed', { timeout: 300_000 }, async () => {
        const document = await receipt(1);
        const path = join(world.dir, 'receipt.json');
        const check = async (changed) => {
            writeFileSync(path, JSON.stringify(changed));
            return (await verify(path, '--signer', signer.address)).code;
        };
        assert.equal(await check(document), 0);
        assert.equal((await verify(path, '--signer', retired.address)).code, 1);
        const leaves = (o, at = []) => Object.entries(o).flatMap(([key, value]) =>
            (value !== null && typeof value === 'object' ? leaves(value, [...at, key]) : [[...at, key]]));
        const all = leaves(document).filter(([first]) => first !== 'signature');
        assert.ok(all.length > 40);
        for (const path2 of all) {
            const changed = structuredClone(document);
            const last = path2.at(-1);
            const parent = path2.slice(0, -1).reduce((o, key) => o[key], changed);
            const value = parent[last];
            parent[last] = typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : `${value}0`;
            assert.equal(await check(changed), 1, path2.join('.'));
        }
        const { x402_receipt: gone, ...less } = document;
        assert.equal(await check(less), 1);
    });

    test('its x402 receipt is what the official type says, by another library', async () => {
        const { x402_receipt: x } = await receipt(0);
        const types = { Receipt: [['uint256', 'version'], ['string', 'network'], ['string', 'resourceUrl'], ['string', 'payer'],
            ['uint256', 'issuedAt'], ['string', 'transaction']].map(([type, name]) => ({ type, name })) };
        assert.ok(await verifyTypedData({
            address: signer.address, domain: { name: 'x402 receipt', version: '1', chainId: 1 }, types, primaryType: 'Receipt',
            message: x.payload, signature: x.signature,
        }));
    });

    test('verified by URL, its keys asked of the origin, and the chain asked, too', async () => {
        for (const [n, page] of pages.entries()) {
            const { code, text } = await verify(world.gateway + page, '--rpc', n === 3 ? world.tempo.rpc.url : world.rpcUrl);
            assert.equal(code, 0, text);
            assert.match(text, /ok: the payment, in block/);
        }
        assert.match((await verify(world.gateway + pages[2], '--rpc', world.rpcUrl)).text, /ok: a refund, in block/);
        const { keys } = (await world.request('/.well-known/payonce-keys.json')).json;
        assert.deepEqual(keys.map(({ address, status }) => [address, status]),
            [[signer.address, 'current'], [retired.address, 'retired']]);
        assert.equal((await verify(join(world.dir, 'receipt.json'))).code, 2);
    });

    test('did you take my money? settled, possible, expired, void, and never heard of', { timeout: 300_000 }, async () => {
        const ask = async (payer, nonce) => (await world.request(`/authorizations/${NETWORK}/${payer}/${nonce}`)).json;
        const signedBy = (call) => call.signed.payload.authorization;
        const settled = await ask(paid.payer.address, signedBy(paid).nonce);
        assert.deepEqual([settled.status, typeof settled.block, settled.signature.signer], ['settled', 'number', signer.address]);
        const held = await begin(world, '/test/read?status=404');
        await held.answer;
        const possible = await ask(held.payer.address, signedBy(held).nonce);
        assert.equal(possible.status, 'possible');
        assert.ok(Date.parse(possible.until) / 1000 > Number(signedBy(held).validBefore));
        const nobody = await ask(freshAccount().address, signedBy(held).nonce);
        assert.deepEqual([nobody.status, nobody.until], ['possible', undefined]);
        assert.equal((await world.request(`/authorizations/eip155:1/${held.payer.address}/${signedBy(held).nonce}`)).status, 404);
        // one that was never presented: who signed it says until when it is good
        const unknown = (seconds) => `/authorizations/${NETWORK}/${held.payer.address}/0x${'17'.repeat(32)}?valid_before=${seconds}`;
        const now = Math.floor(Date.now() / 1000);
        const expired = (await world.request(unknown(now - 30))).json;
        assert.deepEqual([expired.status, expired.final, typeof expired.block, expired.signature.signer],
            ['expired', true, 'number', signer.address]);
        assert.ok(Date.parse(expired.block_time) / 1000 >= now - 30);
        const future = (await world.request(unknown(now + 600))).json;
        assert.equal(future.status, 'possible');
        assert.ok(Date.parse(future.until) / 1000 > now + 600);
        assert.equal((await world.request(unknown('soon'))).status, 400);
        const spent = freshAccount();
        const nonce = `0x${'18'.repeat(32)}`;
        await cancel(world, spent, { authorization: { nonce } });
        const gone = await world.waitFor(async () => {
            const answer = await ask(spent.address, nonce);
            return answer.status === 'void' && answer;
        }, 'a nonce that was cancelled is void', 30_000);
        assert.deepEqual([gone.final, gone.signature.signer], [true, signer.address]);
        const path = join(world.dir, 'answer.json');
        writeFileSync(path, JSON.stringify(expired));
        assert.equal((await verify(path, '--signer', signer.address)).code, 0);
        writeFileSync(path, JSON.stringify({ ...expired, block: expired.block + 1 }));
        assert.equal((await verify(path, '--signer', signer.address)).code, 1);
        writeFileSync(path, JSON.stringify(settled));
        assert.equal((await verify(path, '--signer', signer.address)).code, 0);
        writeFileSync(path, JSON.stringify({ ...settled, status: 'void' }));
        assert.equal((await verify(path, '--signer', signer.address)).code, 1);
    });

    test('one that was presented here: possible until a time, then void, or expired at a block past it, each signed', {
        timeout: 300_000,
    }, async () => {
        const path = join(world.dir, 'answer.json');
        const ask = async ({ payer, signed }) => (await world.request(
            `/authorizations/${NETWORK}/${payer.address}/${signed.payload.authorization.nonce}`)).json;
        // what was set aside is looked at when its time is over; here at once, and again
        const until = (call, status) => world.waitFor(async () => {
            await asOwner(world, 'UPDATE authorizations SET next_look = now() WHERE ended_at IS NULL');
            await world.pause(500);
            const answer = await ask(call);
            return answer.status === status && answer;
        }, `it is ${status}`, 60_000);
        const isSigned = async (answer) => {
            writeFileSync(path, JSON.stringify(answer));
            assert.equal((await verify(path, '--signer', signer.address)).code, 0);
            for (const change of [{ status: 'proven' }, { block: answer.block + 1 }, { nonce: `0x${'00'.repeat(32)}` }]) {
                writeFileSync(path, JSON.stringify({ ...answer, ...change }));
                assert.equal((await verify(path, '--signer', signer.address)).code, 1, JSON.stringify(change));
            }
        };
        const [lapses, cancelled] = [await begin(world, '/test/read?status=404'), await begin(world, '/test/read?status=404')];
        await Promise.all([lapses.answer, cancelled.answer]);
        const validBefore = Number(lapses.signed.payload.authorization.validBefore);
        const open = await ask(lapses);
        assert.deepEqual([open.status, open.final], ['possible', false]);
        assert.ok(Date.parse(open.until) / 1000 > validBefore);
        await isSigned(open);
        assert.ok(await cancel(world, cancelled.payer, cancelled.signed.payload));
        const gone = await until(cancelled, 'void');
        assert.deepEqual([gone.final, gone.until], [true, undefined]);
        await isSigned(gone);
        await world.chain.warp(validBefore - Math.floor(Date.now() / 1000) + 5);
        const expired = await until(lapses, 'expired');
        assert.deepEqual([expired.final, expired.until], [true, undefined]);
        const { timestamp } = await world.chain.rpc.call('eth_getBlockByNumber', `0x${expired.block.toString(16)}`, false);
        assert.ok(Number(timestamp) >= validBefore, 'the block that says so is not past its validBefore');
        await isSigned(expired);
        await isSigned(await ask(paid));
        assert.equal((await ask(paid)).status, 'settled');
    });

    test('the page: small, quick, escaped, with a policy, for browsers only', async () => {
        const accept = { accept: 'text/html,application/xhtml+xml' };
        const answer = await world.request(pages[1], { headers: accept });
        assert.match(answer.headers['content-type'], /^text\/html/);
        assert.ok(Buffer.byteLength(answer.text) < 50_000);
        const csp = answer.headers['content-security-policy'];
        assert.match(csp, /default-src 'none'/);
        assert.doesNotMatch(csp, /unsafe/);
        assert.doesNotMatch(answer.text, /<b>Co|<script/);
        assert.match(answer.text, /Tea &amp; &lt;b&gt;Co/);
        assert.match(answer.text, /<time datetime="\d{4}-\d\d-\d\dT[\d:.]+Z">\d{4}-\d\d-\d\d [\d:]{8} UTC<\/time>/);
        assert.equal(answer.text.match(/Another payment for this call is on the chain/g).length, 1);
        assert.equal((await world.request(pages[1])).headers['content-type'], 'application/json');
    });
});

describe('in a browser', () => {
    let browser;
    before(async () => {
        browser = await openBrowser();
    }, { timeout: 300_000 });
    after(() => browser?.close());

    for (const look of looks)
        test(`${look[0]}, ${look[1]} pixels: no violation, nothing from elsewhere, nothing too wide`, { timeout: 300_000 }, async () => {
            for (const [n, path] of pages.entries())
                await isSound(browser, world.gateway + path, `receipt-${n}`, look, async (page) => {
                    assert.match(await page.textContent('h1'), /Paid once|Refunded in full/);
                    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('main')).maxWidth), '736px', 'no style');
                    await page.keyboard.press('Tab');
                    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'A');
                });
        });
});
