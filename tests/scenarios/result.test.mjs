// The answer that was paid for waits for its buyer: GET /receipts/{id}/result with a sign-in by the wallet that paid, and nobody else.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createSIWxMessage, createSIWxPayload, encodeSIWxHeader } from '@x402/extensions/sign-in-with-x';
import { getAddress } from 'viem';
import { run } from '../../dev/process.mjs';
import { asOwner } from '../lib/ledger.mjs';
import { deploy } from '../lib/contracts.mjs';
import { decode, encode } from '../lib/payment.mjs';
import { endWorld, program, startWorld } from '../lib/world.mjs';

let counter = 0;
const fresh = () => `/test/read?r=${++counter}`;

async function bought(world, payer, path = fresh()) {
    const signed = await world.sign(payer, path);
    const answer = await world.send(path, signed);
    assert.equal(answer.status, 200, answer.text);
    return { answer, signed, result: `${new URL(answer.headers['payonce-receipt']).pathname}/result` };
}

async function offered(world, result, base) {
    const answer = await world.request(result, { base });
    assert.equal(answer.status, 401, answer.text);
    assert.equal(answer.json.code, 'sign_in_required');
    return answer.json.extensions['sign-in-with-x'];
}

// As the official client does it; with a `change`, which it would not sign, by hand.
async function signIn(world, payer, result, { change, base } = {}) {
    const { info, supportedChains } = await offered(world, result, base);
    const asked = { ...info, ...supportedChains[0], ...change };
    if (!change)
        return encodeSIWxHeader(await createSIWxPayload(asked, payer.account, `${world.gateway}${result}`));
    const signature = await payer.account.signMessage({ message: createSIWxMessage(asked, payer.address) });
    return encodeSIWxHeader({ ...asked, address: payer.address, signature });
}

const fetchWith = (world, result, header, base) => world.request(result, { base, headers: { 'sign-in-with-x': header } });

async function isServed(world, { answer, result }, header, base) {
    const again = await fetchWith(world, result, header, base);
    assert.equal(again.status, 200, again.text);
    assert.equal(again.text, answer.text);
    assert.equal(again.headers['content-type'], answer.headers['content-type']);
    assert.equal(again.headers['payonce-charged'], 'false');
    assert.equal(again.headers['payonce-receipt'], answer.headers['payonce-receipt']);
    assert.equal(again.headers['cache-control'], 'private, no-store');
    assert.equal(decode(again.headers['payment-response']).transaction, decode(answer.headers['payment-response']).transaction);
}

async function isRefused(world, result, header, code, base) {
    const answer = await fetchWith(world, result, header, base);
    assert.equal(answer.status, 403, answer.text);
    assert.equal(answer.json.code, code);
    return answer;
}

describe('fetch by receipt', () => {
    let world, second, payer;
    before(async () => {
        world = await startWorld();
        second = await world.addGateway('gateway2', { extra: { public_url: world.gateway } });
        payer = await world.newPayer();
    });
    after(() => world && endWorld(world));

    test('the wallet that paid has its answer, from either instance, also after a restart', async () => {
        const order = await bought(world, payer);
        await isServed(world, order, await signIn(world, payer, order.result));
        await isServed(world, order, await signIn(world, payer, order.result), second);
        await world.restart('gateway');
        await isServed(world, order, await signIn(world, payer, order.result));
    });

    test('also when the first reply was lost', async () => {
        const path = `${fresh()}&delay_ms=1000`;
        const signed = await world.sign(payer, path);
        const controller = new AbortController();
        const lost = world.request(path, { headers: signed.headers, signal: controller.signal }).catch(() => null);
        await world.waitFor(async () => (await world.calls()).some(({ target }) => target === path), 'the call is under way');
        controller.abort();
        await lost;
        const receipt = await world.waitFor(async () => (await world.sql(`SELECT encode(receipt, 'hex') AS id FROM order_status
            WHERE target = '${path}' AND status = 'paid'`))[0]?.id, 'it is paid');
        const result = `/receipts/rcp_${receipt}/result`;
        const answer = await fetchWith(world, result, await signIn(world, payer, result));
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.json.target, path);
    });

    test('binary bodies and their status come back as they were', async () => {
        const order = await bought(world, payer, `${fresh()}&binary=1&header=X-Of-Its-Own:yes`);
        const again = await fetchWith(world, order.result, await signIn(world, payer, order.result));
        assert.deepEqual(again.body, order.answer.body);
        assert.equal(again.body.length, 256);
        assert.equal(again.headers['x-of-its-own'], 'yes');
    });

    test('somebody else\'s sign-in', async () => {
        const order = await bought(world, payer);
        const stranger = await world.newPayer({ atoms: 0n });
        await isRefused(world, order.result, await signIn(world, stranger, order.result), 'sign_in_wallet');
    });

    test('a replayed sign-in, at either instance', async () => {
        const order = await bought(world, payer);
        const header = await signIn(world, payer, order.result);
        await isServed(world, order, header);
        await isRefused(world, order.result, header, 'sign_in_used');
        await isRefused(world, order.result, header, 'sign_in_used', second);
    });

    test('of copies at once exactly one counts', async () => {
        const order = await bought(world, payer);
        const header = await signIn(world, payer, order.result);
        const answers = await Promise.all(Array.from({ length: 16 }, (_, i) =>
            fetchWith(world, order.result, header, i % 2 ? second : world.gateway)));
        assert.equal(answers.filter(({ status }) => status === 200).length, 1);
        assert.equal(answers.filter(({ status }) => status === 403).length, 15);
    });

    test('one for another receipt', async () => {
        const [one, other] = [await bought(world, payer), await bought(world, payer)];
        await isRefused(world, other.result, await signIn(world, payer, one.result), 'sign_in_uri');
    });

    test('one for another host', async () => {
        const order = await bought(world, payer);
        const header = await signIn(world, payer, order.result, { change: { domain: 'shop.example.com' } });
        await isRefused(world, order.result, header, 'sign_in_domain');
    });

    test('expired ones', async () => {
        const order = await bought(world, payer);
        const past = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
        for (const change of [{ issuedAt: past(301) }, { expirationTime: past(1) }, { notBefore: past(-120) }])
            await isRefused(world, order.result, await signIn(world, payer, order.result, { change }), 'sign_in_expired');
    });

    test('one that is dated in the future', async () => {
        const order = await bought(world, payer);
        const issuedAt = new Date(Date.now() + 60_000).toISOString();
        await isRefused(world, order.result, await signIn(world, payer, order.result, { change: { issuedAt } }), 'sign_in_expired');
    });

    test('the address in small letters is the same wallet', async () => {
        const order = await bought(world, payer);
        const { info, supportedChains } = await offered(world, order.result);
        const asked = { ...info, ...supportedChains[0], address: payer.address.toLowerCase() };
        const message = createSIWxMessage(asked, payer.address).replace(payer.address, asked.address);
        const signature = await payer.account.signMessage({ message });
        await isServed(world, order, encodeSIWxHeader({ ...asked, signature }));
        // and a text that was signed with the other spelling is another text
        const again = await signIn(world, payer, order.result);
        await isRefused(world, order.result, encode({ ...decode(again), address: asked.address }), 'sign_in_signature');
    });

    test('one nonce, spelled in capitals, still counts once', async () => {
        const order = await bought(world, payer);
        const { info, supportedChains } = await offered(world, order.result);
        const signed = async (nonce) => {
            const asked = { ...info, ...supportedChains[0], nonce };
            return encodeSIWxHeader({ ...asked, address: payer.address,
                signature: await payer.account.signMessage({ message: createSIWxMessage(asked, payer.address) }) });
        };
        await isServed(world, order, await signed(info.nonce));
        await isRefused(world, order.result, await signed(info.nonce.toUpperCase()), 'sign_in_used', second);
    });

    test('the address with something behind it is another address, and so is the host', async () => {
        const order = await bought(world, payer);
        for (const [change, code] of [
            [{ uri: `${world.gateway}${order.result}?` }, 'sign_in_uri'], [{ uri: `${world.gateway}${order.result}/` }, 'sign_in_uri'],
            [{ domain: '127.0.0.1' }, 'sign_in_domain'],
            [{ domain: `localhost:${world.ports.gateway}` }, 'sign_in_domain'],
        ])
            await isRefused(world, order.result, await signIn(world, payer, order.result, { change }), code);
    });

    test('two sign-ins in one request are none', async () => {
        const order = await bought(world, payer);
        const header = await signIn(world, payer, order.result);
        const answer = await world.request(order.result, { headers: { 'sign-in-with-x': [header, header] } });
        assert.equal(answer.status, 400, answer.text);
        await isServed(world, order, header);
    });

    test('a nonce that we did not make', async () => {
        const order = await bought(world, payer);
        for (const nonce of ['a1b2c3d4e5f67890a1b2c3d4e5f67890', '0'.repeat(64)])
            await isRefused(world, order.result, await signIn(world, payer, order.result, { change: { nonce } }), 'sign_in_nonce');
    });

    test('a text that was changed after it was signed, and a signature that is none', async () => {
        const order = await bought(world, payer);
        const payload = decode(await signIn(world, payer, order.result));
        for (const change of [{ statement: 'Another statement.' }, { signature: `0x${'11'.repeat(65)}` }, { signature: '0x' }])
            await isRefused(world, order.result, encode({ ...payload, ...change }), 'sign_in_signature');
    });

    test('what a stranger is told does not depend on whether there is such a receipt or an answer', async () => {
        const order = await bought(world, payer);
        const stranger = await world.newPayer({ atoms: 0n });
        const invented = `/receipts/rcp_${'ab'.repeat(16)}/result`;
        const told = async (result) => {
            const { status, json: { instance, ...body }, headers: { date, 'x-request-id': id, ...headers } } =
                await fetchWith(world, result, await signIn(world, stranger, result));
            return { status, body, headers };
        };
        const before = await told(order.result);
        assert.deepEqual(await told(invented), before);
        await forget(order);
        assert.deepEqual(await told(order.result), before);
    });

    const forget = async ({ answer }) => {
        const id = answer.headers['payonce-order'].slice(4);
        await asOwner(world, `DELETE FROM answers WHERE order_id = decode('${id}', 'hex')`);
    };

    test('after its retention the wallet itself is told that it is gone, and the receipt stays', async () => {
        const order = await bought(world, payer);
        await forget(order);
        const answer = await fetchWith(world, order.result, await signIn(world, payer, order.result));
        assert.equal(answer.status, 410, answer.text);
        assert.equal(answer.json.code, 'answer_gone');
        const receipt = (await world.request(new URL(order.answer.headers['payonce-receipt']).pathname)).json;
        assert.equal(receipt.status, 'paid');
        assert.ok(receipt.answer.digest);
    });

    test('malformed sign-ins', async () => {
        const { result } = await bought(world, payer);
        for (const header of ['', '!!', encode('[]'), encode({ domain: 'x' })]) {
            const answer = await fetchWith(world, result, header);
            assert.equal(answer.status, 400, answer.text);
            assert.equal(answer.json.code, 'sign_in_form');
        }
        assert.equal((await world.request(result, { method: 'POST' })).status, 405);
        assert.equal((await world.request('/receipts/result')).status, 404);
    });

    test('a wallet that is a contract (EIP-1271)', async () => {
        const address = getAddress((await deploy(world.chain, 'Wallet1271', [payer.address])).address);
        await world.chain.fund(address, 1_000_000n);
        const wallet = { address, account: { ...payer.account, address } };
        const order = await bought(world, wallet);
        await isServed(world, order, await signIn(world, wallet, order.result));
        const stranger = await world.newPayer({ atoms: 0n });
        const forged = { address: wallet.address, account: { ...stranger.account, address: wallet.address } };
        await isRefused(world, order.result, await signIn(world, forged, order.result), 'sign_in_signature');
    });

    test('payonce receipt fetch', async () => {
        const order = await bought(world, payer);
        const key = join(world.dir, 'fetching');
        writeFileSync(key, payer.key.slice(2), { mode: 0o600 });
        const url = order.answer.headers['payonce-receipt'];
        const fetched = (args) => run(program, ['receipt', 'fetch', ...args], { env: world.env });
        const { code, stdout, stderr } = await fetched([url, '--key-file', key]);
        assert.equal(code, 0, stderr);
        assert.equal(stdout, order.answer.text);
        writeFileSync(`${key}2`, (await world.newPayer({ atoms: 0n })).key.slice(2), { mode: 0o600 });
        const stranger = await fetched([url, '--key-file', `${key}2`]);
        assert.equal(stranger.code, 1);
        assert.match(stranger.stderr, /sign_in_wallet/);
        assert.equal(stranger.stdout, '');
        // by another name of the same host the text names another address than the one that was asked
        const elsewhere = await fetched([url.replace('127.0.0.1', 'localhost'), '--key-file', key]);
        assert.equal(elsewhere.code, 1);
        assert.match(elsewhere.stderr, /nothing was signed/);
        assert.equal((await fetched([])).code, 2);
    });

    test('the key is changed: what was sealed under the one before is still served, and what was offered is honoured', async () => {
        const file = world.env.PAYONCE_QUOTE_KEY_FILE, [before] = readFileSync(file, 'utf8').split('\n');
        const order = await bought(world, payer);
        const [header, path] = [await signIn(world, payer, order.result), fresh()];
        const quoted = await world.sign(payer, path);
        const changed = randomBytes(32).toString('hex');
        writeFileSync(file, `${changed}\n${before}\n`);
        await world.restart('gateway');
        await isServed(world, order, header);
        assert.equal((await world.send(path, quoted)).status, 200);
        const sealedAnew = await bought(world, payer);
        await world.restart('gateway2');
        await isServed(world, sealedAnew, await signIn(world, payer, sealedAnew.result), second);
        writeFileSync(file, before);
        await world.restart('gateway2');
        const alien = await world.request(sealedAnew.result,
            { base: second, headers: { 'sign-in-with-x': await signIn(world, payer, sealedAnew.result, { base: second }) } });
        assert.equal(alien.status, 503, alien.text); // it may be this gateway alone that has not the key
        writeFileSync(file, `${changed}\n${before}\n`);
        await world.restart('gateway2');
    });

    test('bodies at rest cannot be read in the database', async () => {
        const secret = `sesame-${Date.now()}`;
        const order = await bought(world, payer, `${fresh()}&q=${secret}&header=X-Secret:${secret}`);
        assert.ok(order.answer.text.includes(secret));
        const id = order.answer.headers['payonce-order'].slice(4);
        const kept = `FROM answers WHERE order_id = decode('${id}', 'hex')`;
        await asOwner(world, `DO $$ BEGIN
            ASSERT (SELECT octet_length(body) ${kept}) = ${order.answer.body.length + 29}, 'the body is not the sealed one';
            ASSERT (SELECT position(convert_to('${secret}', 'UTF8') IN body) + position('${secret}' IN headers) ${kept}) = 0, 'it can be read';
            ASSERT (SELECT position(encode(convert_to('${secret}', 'UTF8'), 'base64') IN headers) ${kept}) = 0, 'it can be read';
        END $$`);
        await isServed(world, order, await signIn(world, payer, order.result));
    });
});
