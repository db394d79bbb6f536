// Who pays: contracts, delegated accounts, a payer whose code burns gas, addresses and signatures in every spelling,
// and what a nonce that everybody can read on the chain does not buy.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { concat, createWalletClient, http } from 'viem';
import { baseSepolia } from 'viem/chains';
import { deploy } from '../lib/contracts.mjs';
import { authorize, decode, freshAccount, paymentV1, paymentV2 } from '../lib/payment.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

const PATH = '/test/read';
const PRICE = 1_000n;
const ATOMS = 1_000_000n;

const upperCase = (address) => `0x${address.slice(2).toUpperCase()}`;
const withV = (signature, v) => signature.slice(0, 130) + v.toString(16).padStart(2, '0');
const refusal = (answer) => decode(answer.headers['payment-required']).error;

describe('payers', () => {
    let world;
    before(async () => {
        world = await startWorld();
    });
    after(() => world && endWorld(world));

    const bytea = ({ address }) => `decode('${address.slice(2)}', 'hex')`;

    const ordersOf = (payer) =>
        world.sql(`SELECT encode(id, 'hex') AS id, status, money FROM order_status WHERE payer = ${bytea(payer)}`);

    const relayed = (payer) => world.sql(`SELECT t.id, t.gas, t.state,
            (SELECT count(*) FROM relay_calls x WHERE x.transaction_id = t.id) AS calls
       FROM authorizations a JOIN relay_calls c ON c.authorization_id = a.id JOIN relay_transactions t
         ON t.id = c.transaction_id WHERE a.payer = ${bytea(payer)} ORDER BY t.id`);

    async function newWallet() {
        const owner = freshAccount();
        const { address } = await deploy(world.chain, 'Wallet1271', [owner.address]);
        await world.chain.fund(address, ATOMS);
        return { owner, address };
    }

    // An authorization of `from`, signed by `signer`; `change` may alter what was signed, behind the signature.
    async function signedBy(signer, from, path, change = (payload) => payload) {
        const { v2, v1 } = await world.challenge(path);
        const payload = change(await authorize(signer, v2.accepts[0], { change: { from } }));
        return { payload, v2, v1, headers: { 'payment-signature': paymentV2(v2, payload) } };
    }

    const buy = async (payer, path, options) => world.send(path, await world.sign(payer, path, options), options);

    async function isPaid(payer, answer) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers['payonce-charged'], 'true');
        assert.equal(await world.chain.balanceOf(payer.address), ATOMS - PRICE);
    }

    async function nothingStored(payer, calls) {
        assert.deepEqual(await ordersOf(payer), []);
        assert.equal((await world.calls()).length, calls);
    }

    // ---- contracts ----

    const lengths = {
        '65 bytes': (payload) => payload,
        '67 bytes': ({ authorization, signature }) => ({ authorization, signature: concat([signature, '0x1234']) }),
        '600 bytes': ({ authorization, signature }) => ({ authorization, signature: concat([signature,
            `0x${'ab'.repeat(535)}`]) }),
    };
    for (const [name, change] of Object.entries(lengths))
        test(`a contract pays with a signature of ${name}`, async () => {
            const wallet = await newWallet();
            const signed = await signedBy(wallet.owner, wallet.address, PATH, change);
            await isPaid(wallet, await world.send(PATH, signed));
            assert.deepEqual((await relayed(wallet)).map(({ calls }) => Number(calls)), [1]);
            const again = await world.send(PATH, signed);
            assert.equal(again.status, 200, 'the same quote and signature find the answer again');
            assert.equal(again.headers['payonce-charged'], 'false');
        });

    test('a contract, on x402 v1', async () => {
        const wallet = await newWallet();
        const { v1, payload } = await signedBy(wallet.owner, wallet.address, PATH);
        await isPaid(wallet, await world.send(PATH, { headers: { 'x-payment': paymentV1(v1, payload) } }));
    });

    test('a contract that does not accept the signature', async () => {
        const wallet = await newWallet();
        const calls = (await world.calls()).length;
        for (const change of Object.values(lengths)) {
            const answer = await world.send(PATH, await signedBy(freshAccount(), wallet.address, PATH, change));
            assert.equal(answer.status, 402, answer.text);
            assert.equal(refusal(answer), 'invalid_exact_evm_signature');
        }
        await nothingStored(wallet, calls);
    });

    test('what is on the chain is public: its nonce under a junk signature never gets the answer', async () => {
        const wallet = await newWallet(), plain = await world.newPayer();
        for (const [payer, signer] of [[wallet, wallet.owner], [plain, plain]]) {
            const signed = await signedBy(signer, payer.address, '/test/cacheable');
            await isPaid(payer, await world.send('/test/cacheable', signed));
            const calls = (await world.calls()).length;
            const junk = { ...signed.payload, signature: `0x${'01'.repeat(32)}${'02'.repeat(32)}1b` };
            const longer = { ...junk, signature: concat([junk.signature, '0x00']) };
            const fresh = await world.challenge('/test/cacheable');
            for (const payload of [junk, longer])
                for (const headers of [{ 'payment-signature': paymentV2(signed.v2, payload) },
                    { 'payment-signature': paymentV2(fresh.v2, payload) },
                    { 'x-payment': paymentV1(fresh.v1, payload) }]) {
                    const answer = await world.send('/test/cacheable', { headers });
                    assert.ok([402, 410].includes(answer.status), `${answer.status} ${answer.text}`);
                    assert.match(answer.headers['content-type'], /problem\+json/);
                    assert.equal(answer.headers['payonce-order'], undefined);
                    assert.equal(answer.json.order_id, undefined);
                }
            assert.equal((await world.calls()).length, calls);
            assert.equal((await ordersOf(payer)).length, 1);
        }
    });

    test('a paid nonce without its quote or id: the receipt, not the answer', async () => {
        const payer = await world.newPayer();
        const signed = await signedBy(payer, payer.address, PATH);
        await isPaid(payer, await world.send(PATH, signed));
        const { v2, v1 } = await world.challenge(PATH);
        for (const headers of [{ 'payment-signature': paymentV2(v2, signed.payload) },
            { 'x-payment': paymentV1(v1, signed.payload) }]) {
            const answer = await world.send(PATH, { headers });
            assert.equal(answer.status, 410, answer.text);
            assert.equal(answer.json.code, 'answer_not_proven');
            assert.equal(answer.headers['payment-required'], undefined);
        }
    });

    // ---- delegated accounts ----

    test('an account that delegates by EIP-7702, in a transaction of type 4', async () => {
        const delegate = await deploy(world.chain, 'Delegate7702');
        const payer = await world.newPayer();
        await world.chain.giveGas(payer.address);
        const transport = http(world.rpcUrl);
        const client = createWalletClient({ account: payer.account, chain: baseSepolia, transport });
        const authorization = await client.signAuthorization({ contractAddress: delegate.address, executor: 'self' });
        const hash = await client.sendTransaction({ authorizationList: [authorization], to: world.payTo });
        assert.equal((await world.chain.receipt(hash)).type, '0x4');
        assert.equal(await world.chain.rpc.call('eth_getCode', payer.address, 'latest'),
            concat(['0xef0100', delegate.address]).toLowerCase());
        await isPaid(payer, await buy(payer, PATH));
        assert.deepEqual((await relayed(payer)).map(({ calls }) => Number(calls)), [1]);
    });

    test('one that delegates to code which accepts nothing', async () => {
        const { address } = await deploy(world.chain, 'Wallet1271', [freshAccount().address]);
        const payer = await world.newPayer();
        await world.chain.setCode(payer.address, concat(['0xef0100', address]));
        const calls = (await world.calls()).length;
        const answer = await buy(payer, PATH);
        assert.equal(answer.status, 402, answer.text);
        assert.equal(refusal(answer), 'invalid_exact_evm_signature');
        await nothingStored(payer, calls);
    });

    // ---- code that burns gas ----

    test('a payer whose code burns gas, among 30 honest ones: they are paid, and it costs little', async () => {
        const burner = await deploy(world.chain, 'GasBurner');
        await world.chain.fund(burner.address, ATOMS);
        const payers = await world.newPayers(30);
        const bad = signedBy(freshAccount(), burner.address, `${PATH}?burner`)
            .then((signed) => world.send(`${PATH}?burner`, signed));
        const answers = await Promise.all(payers.map((payer, n) => world.pay(payer, `${PATH}?n=${n}`)));
        assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
        const answer = await bad;
        assert.ok([200, 402, 409].includes(answer.status), `${answer.status} ${answer.text}`);
        const sent = await relayed(burner);
        assert.ok(sent.length <= 3, `${sent.length} transactions were spent on it`);
        for (const { calls, gas } of sent)
            assert.ok(Number(calls) === 1 && gas <= 1_000_000, 'it shared a transaction, or had no limit');
    });

    test('payers that become contracts between the check and the block', async () => {
        await world.stop('settler');
        const delegate = await deploy(world.chain, 'Delegate7702'), burner = await deploy(world.chain, 'GasBurner');
        const payers = await world.newPayers(12);
        const [own, burning] = payers;
        const answers = payers.map((payer, n) => buy(payer, `${PATH}?later=${n}`));
        const due = () => world.sql("SELECT id FROM authorizations WHERE state = 'due' AND fruitless = 0");
        await world.waitFor(async () => (await due()).length === payers.length, 'all wait to be sent');
        await world.chain.setCode(own.address, concat(['0xef0100', delegate.address]));
        await world.chain.setCode(burning.address, concat(['0xef0100', burner.address]));
        await world.chain.mine();
        await world.restart('settler');
        const [first, last, ...rest] = await Promise.all(answers);
        await isPaid(own, first);
        assert.deepEqual([...new Set(rest.map(({ status }) => status))], [200]);
        assert.deepEqual((await relayed(own)).map(({ calls }) => Number(calls)), [1]);
        assert.ok([200, 409].includes(last.status), last.text);
        const sent = await relayed(burning);
        assert.ok(sent.every(({ calls }) => Number(calls) === 1));
        assert.ok(sent.length <= 3, `${sent.length} transactions were spent on it`);
    });

    // ---- spelling ----

    for (const [name, write] of [['lower', (a) => a.toLowerCase()], ['upper', upperCase]])
        test(`addresses in ${name} case`, async () => {
            const payer = await world.newPayer();
            const signed = await world.sign(payer, PATH);
            const payload = structuredClone(signed.payload), accepted = structuredClone(signed.required.accepts[0]);
            payload.authorization.from = write(payload.authorization.from);
            payload.authorization.to = write(payload.authorization.to);
            accepted.payTo = write(accepted.payTo);
            accepted.asset = write(accepted.asset);
            const header = paymentV2(signed.required, payload, { accepted });
            await isPaid(payer, await world.send(PATH, { headers: { 'payment-signature': header } }));
            const again = await world.send(PATH, signed);
            assert.equal(again.headers['payonce-charged'], 'false', 'another spelling is not another payment');
            assert.equal((await ordersOf(payer)).length, 1);
        });

    for (const [from, to] of [[27, 0], [28, 1]])
        test(`a signature's v of ${to} is ${from}`, async () => {
            const payer = await world.newPayer();
            const { v2 } = await world.challenge(PATH);
            let payload;
            do
                payload = await authorize(payer, v2.accepts[0]);
            while (Number(`0x${payload.signature.slice(130)}`) !== from);
            const other = { ...payload, signature: withV(payload.signature, to) };
            await isPaid(payer, await world.send(PATH, { headers: { 'payment-signature': paymentV2(v2, other) } }));
            const again = await world.send(PATH, { headers: { 'payment-signature': paymentV2(v2, payload) } });
            assert.equal(again.headers['payonce-charged'], 'false', 'it is the same payment');
        });

    // ---- nonces ----

    test('two payers with the same nonce are two payments', async () => {
        const [one, two] = await world.newPayers(2);
        const change = { nonce: `0x${'07'.repeat(32)}` };
        const answers = await Promise.all([one, two].map((payer) => buy(payer, PATH, { authorization: { change } })));
        await isPaid(one, answers[0]);
        await isPaid(two, answers[1]);
        assert.notEqual(answers[0].headers['payonce-order'], answers[1].headers['payonce-order']);
    });

    test('the same nonce on another route, or for other arguments, is a conflict and changes nothing', async () => {
        const payer = await world.newPayer();
        const first = await world.sign(payer, `${PATH}?one`);
        await isPaid(payer, await world.send(`${PATH}?one`, first));
        const calls = (await world.calls()).length;
        const before = await ordersOf(payer);
        for (const path of [`${PATH}?two`, '/iso/countries?code=FR']) {
            const { v2, v1 } = await world.challenge(path);
            for (const headers of [{ 'payment-signature': paymentV2(v2, first.payload) },
                { 'x-payment': paymentV1(v1, first.payload) }]) {
                const answer = await world.send(path, { headers });
                assert.equal(answer.status, 409, answer.text);
                assert.equal(answer.json.code, 'payment_conflict');
                assert.equal(answer.json.reason, 'request');
                assert.equal(answer.json.order_id, undefined);
            }
        }
        assert.equal((await world.calls()).length, calls);
        assert.deepEqual(await ordersOf(payer), before);
        assert.equal((await world.send(`${PATH}?one`, first)).status, 200);
    });

    test('a payment that bought one call, sent as it is to another: a conflict, not a new price', async () => {
        const payer = await world.newPayer();
        const first = await world.sign(payer, `${PATH}?mine`);
        await isPaid(payer, await world.send(`${PATH}?mine`, first));
        for (const path of [`${PATH}?another`, '/iso/countries?code=FR']) {
            const answer = await world.send(path, first);
            assert.equal(answer.status, 409, answer.text);
            assert.equal(answer.json.code, 'payment_conflict');
            assert.equal(answer.headers['payment-required'], undefined);
        }
    });

    test('a quote that was taken, with a fresh signature, for another call: a conflict, not a new price', async () => {
        const [payer, other] = await world.newPayers(2);
        const { required } = await world.sign(payer, `${PATH}?taken`);
        const offer = required.accepts[0];
        const fresh = async (who) => ({ headers: { 'payment-signature': paymentV2(required, await authorize(who, offer)) } });
        const untaken = await world.send(`${PATH}?other`, await fresh(payer));
        assert.equal(untaken.status, 402, 'it was offered for another call, and nobody has taken it');
        await isPaid(payer, await world.send(`${PATH}?taken`, await fresh(payer)));
        for (const path of [`${PATH}?other`, '/iso/countries?code=FR']) {
            const answer = await world.send(path, await fresh(payer));
            assert.deepEqual([answer.status, answer.json.code, answer.json.reason], [409, 'payment_conflict', 'request'], answer.text);
            assert.equal(answer.headers['payment-required'], undefined);
        }
        assert.equal((await world.send(`${PATH}?other`, await fresh(other))).status, 402, 'of this wallet it is not known');
        assert.equal((await world.send(`${PATH}?taken`, await fresh(payer))).headers['payonce-replayed'], 'true');
        assert.equal(await world.chain.balanceOf(payer.address), ATOMS - PRICE);
    });

    test('the same nonce on two routes at once buys one of them', async () => {
        const payer = await world.newPayer();
        const paths = [`${PATH}?left`, `${PATH}?right`];
        const { payload } = await world.sign(payer, paths[0]);
        const answers = await Promise.all(paths.map(async (path) => {
            const { v2 } = await world.challenge(path);
            return world.send(path, { headers: { 'payment-signature': paymentV2(v2, payload) } });
        }));
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
        assert.equal(answers.find(({ status }) => status === 409).json.code, 'payment_conflict');
        assert.equal(await world.chain.balanceOf(payer.address), ATOMS - PRICE);
        assert.equal((await world.calls()).filter(({ target }) => paths.includes(target)).length, 1);
    });
});
