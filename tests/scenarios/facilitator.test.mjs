// The facilitator's own rules, asked as a seller's server would ask: whom it serves, what finds a settlement again, what is never
// told as failed.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { cancel } from '../drills/lib/payer.mjs';
import { NETWORK, ask, inWorldOf, post, requirements, rival, rivalKey, settle, shop, status, submitBySomebody, transfers,
    verify } from '../lib/facilitator.mjs';
import { RpcCounter } from '../lib/counter.mjs';
import { endWorld, inWorld, startWorld } from '../lib/world.mjs';

const success = (answer, payer, network = NETWORK) => {
    assert.equal(answer.status, 200, answer.text);
    const { success, transaction, payer: from, network: where } = answer.json;
    assert.equal(success, true, answer.text);
    assert.match(transaction, /^0x[0-9a-f]{64}$/);
    assert.equal(from, payer.address);
    assert.equal(where, network);
    return transaction;
};
const refused = (answer, reason, httpStatus = 200) => {
    assert.equal(answer.status, httpStatus, answer.text);
    const { isValid, success, invalidReason, errorReason, transaction, network } = answer.json;
    assert.equal(isValid ?? success, false, answer.text);
    assert.equal(invalidReason ?? errorReason, reason, answer.text);
    if (success !== undefined)
        assert.deepEqual([typeof transaction, typeof network], ['string', 'string'], answer.text);
};
const copy = (body, change) => {
    const other = structuredClone(body);
    change(other);
    return other;
};

describe('a facilitator', () => {
    let world, payer;
    before(async () => {
        world = await startWorld(inWorldOf({ serve: { max_amount: '5000' } }, { blockTime: 1 }));
        payer = await world.newPayer();
    });
    after(() => world && endWorld(world));

    test('GET /supported lists both versions and who submits', async () => {
        await world.waitFor(async () => (await world.request('/supported')).json.signers['eip155:*'].length === 1, 'the settler shows');
        const { kinds, extensions } = (await world.request('/supported')).json;
        assert.deepEqual(kinds, [{ x402Version: 2, scheme: 'exact', network: NETWORK },
            { x402Version: 1, scheme: 'exact', network: 'base-sepolia' }]);
        assert.deepEqual(extensions, []);
    });

    for (const version of [1, 2])
        test(`v${version}: valid, settled, and again the same hash, marked`, async () => {
            const network = version === 1 ? 'base-sepolia' : NETWORK;
            const count = (await transfers(world, payer)).length;
            const body = await ask(payer, { version });
            assert.deepEqual((await verify(world, body)).json, { isValid: true, payer: payer.address });
            const first = await settle(world, body);
            const tx = success(first, payer, network);
            assert.deepEqual(Object.keys(first.json), ['success', 'transaction', 'network', 'payer']);
            const second = await settle(world, body);
            assert.equal(success(second, payer, network), tx);
            assert.deepEqual(second.json.extra, { replayed: true });
            refused(await verify(world, body),
                version === 1 ? 'invalid_transaction_state' : 'invalid_exact_evm_nonce_already_used');
            assert.equal((await transfers(world, payer)).length, count + 1);
            assert.equal(first.headers['extension-responses'], undefined);
        });

    test('/settle needs no /verify before, and other spellings and another envelope are the same settlement', async () => {
        const lower = await world.newPayer();
        const body = await ask(lower);
        const tx = success(await settle(world, body), lower);
        const { authorization, signature } = body.paymentPayload.payload;
        const v = Number.parseInt(signature.slice(-2), 16);
        const variants = [
            (b) => (b.paymentPayload.payload.authorization.nonce = `0x${authorization.nonce.slice(2).toUpperCase()}`),
            (b) => (b.paymentPayload.payload.signature = signature.slice(0, -2) + (v - 27).toString(16).padStart(2, '0')),
            (b) => (b.paymentPayload.resource.url = 'https://elsewhere.example/other'),
            (b) => (b.paymentPayload.extensions = { more: { info: {} } }),
            (b) => (b.paymentPayload.accepted.extra.quote = 'another'),
            (b) => (b.paymentRequirements.maxTimeoutSeconds = 600),
            (b) => (b.paymentRequirements.payTo = shop.toLowerCase()),
            (b) => (b.x402Version = 1),
        ];
        for (const change of variants)
            assert.equal((await settle(world, copy(body, change))).json.transaction, tx, change.toString());
        assert.equal((await transfers(world, lower)).length, 1);
    });

    test('64 copies at once: one transfer, 64 equal successes', async () => {
        const one = await world.newPayer();
        const body = await ask(one);
        const answers = await Promise.all(Array.from({ length: 64 }, () => settle(world, body)));
        const hashes = new Set(answers.map((answer) => success(answer, one)));
        assert.equal(hashes.size, 1);
        assert.equal(answers.filter(({ json }) => !json.extra?.replayed).length, 1, 'one of them made it');
        assert.equal((await transfers(world, one)).length, 1);
    });

    test('a client that has gone after 10 ms finds its hash', async () => {
        const gone = await world.newPayer();
        const body = await ask(gone);
        const signal = AbortSignal.timeout(10);
        await settle(world, body, { signal, agent: false }).catch(() => {});
        const tx = success(await settle(world, body), gone);
        assert.equal(success(await settle(world, body), gone), tx);
        assert.equal((await transfers(world, gone)).length, 1);
    });

    test('the client is gone, the settlement goes on', async () => {
        const gone = await world.newPayer();
        const body = await ask(gone);
        const cut = new AbortController();
        const request = settle(world, body, { signal: cut.signal, agent: false }).catch(() => {});
        await world.waitFor(async () => (await status(world, body)).status === 200, 'it is stored');
        cut.abort();
        await request;
        await world.waitFor(async () => (await status(world, body)).json.status === 'settled', 'it is settled');
        const again = await settle(world, body);
        assert.equal(success(again, gone), (await transfers(world, gone))[0].tx);
        assert.deepEqual(again.json.extra, { replayed: true });
    });

    // ---- whom it serves ----

    test('a payee, a token, an amount that is not served is refused', async () => {
        const stranger = '0x00000000000000000000000000000000000000aa';
        const cases = [
            [{ payTo: stranger }, 'invalid_payment_requirements'],
            [{ asset: stranger }, 'invalid_payment_requirements'],
            [{ amount: '5001' }, 'seller_limit_reached'],
        ];
        for (const [change, reason] of cases) {
            const body = await ask(payer, { required: requirements(change) });
            refused(await verify(world, body), reason);
            refused(await settle(world, body), reason);
        }
    });

    test('each seller sees his own, by his key', async () => {
        const theirs = await ask(payer, { required: requirements({ payTo: rival }) });
        for (const call of [verify, settle]) {
            refused(await call(world, theirs), 'invalid_api_key', 401);
            refused(await call(world, theirs, { key: 'not-the-key' }), 'invalid_api_key', 401);
        }
        assert.equal((await verify(world, theirs, { key: rivalKey })).json.isValid, true);
        const tx = success(await settle(world, theirs, { key: rivalKey }), payer);
        assert.equal((await status(world, theirs)).status, 404, 'without the key it is not there');
        assert.equal((await status(world, theirs, { key: 'not-the-key' })).status, 401);
        assert.equal((await status(world, theirs, { key: rivalKey })).json.transaction, tx);
        const ours = await ask(payer);
        success(await settle(world, ours), payer);
        refused(await settle(world, ours, { key: rivalKey }), 'invalid_payment_requirements');
        assert.equal((await status(world, ours, { key: rivalKey })).status, 404);
    });

    test('another requirement for a known nonce is refused, and the same seller is told what differs', async () => {
        const one = await world.newPayer();
        const body = await ask(one);
        success(await settle(world, body), one);
        const amount = copy(body, (b) => (b.paymentRequirements.amount = '2000'));
        const answer = await settle(world, amount);
        refused(answer, 'invalid_exact_evm_payload_authorization_value_mismatch');
        assert.match(answer.json.errorMessage, /before for another amount/);
        const other = copy(body, (b) => (b.paymentRequirements.payTo = rival));
        const foreign = await settle(world, other, { key: rivalKey });
        refused(foreign, 'invalid_payment_requirements');
        assert.doesNotMatch(foreign.text, /0x[0-9a-f]{64}/, 'another seller learns nothing of it');
        assert.equal((await transfers(world, one)).length, 1);
    });

    test('an authorization of a paid call is nobody else\'s settlement', async () => {
        const one = await world.newPayer();
        const paid = await world.pay(one, '/iso/countries?code=FR');
        assert.equal(paid.status, 200);
        const required = requirements({ payTo: world.payTo });
        const body = { x402Version: 2, paymentPayload: { x402Version: 2, payload: paid.signed.payload, accepted: required },
            paymentRequirements: required };
        refused(await settle(world, body), 'invalid_payment_requirements');
    });

    // ---- judgements ----

    test('what is wrong with a payment, in both vocabularies', async () => {
        const poor = await world.newPayer({ atoms: 10n });
        const past = { validBefore: '1000' }, early = { validAfter: '9999999999', validBefore: '99999999999' };
        const cases = [
            [{ change: { value: '999' } }, 'invalid_exact_evm_payload_authorization_value_mismatch',
                'invalid_exact_evm_payload_authorization_value'],
            [{ change: { to: rival } }, 'invalid_exact_evm_recipient_mismatch', 'invalid_exact_evm_payload_recipient_mismatch'],
            [{ change: past }, 'invalid_exact_evm_payload_authorization_valid_before'],
            [{ change: { ...early, validBefore: String(Math.floor(Date.now() / 1000) + 60) } },
                'invalid_exact_evm_payload_authorization_valid_after'],
            [{ domain: { name: 'Wrong' } }, 'invalid_exact_evm_signature', 'invalid_exact_evm_payload_signature'],
            [{ from: poor }, 'invalid_exact_evm_insufficient_balance', 'insufficient_funds'],
        ];
        for (const [{ from = payer, ...authorization }, v2, v1 = v2] of cases)
            for (const [version, reason] of [[2, v2], [1, v1]]) {
                const body = await ask(from, { version, authorization });
                refused(await verify(world, body), reason);
                refused(await settle(world, body), reason);
                assert.equal((await status(world, body)).status, 404, 'nothing is stored of it');
            }
    });

    test('requirements that do not fit the token or the payment', async () => {
        const cases = [
            [(b) => delete b.paymentRequirements.extra, 'invalid_exact_evm_missing_eip712_domain'],
            [(b) => (b.paymentRequirements.extra.name = 'USD Coin'), 'invalid_exact_evm_token_name_mismatch'],
            [(b) => (b.paymentRequirements.extra.version = '1'), 'invalid_exact_evm_token_version_mismatch'],
            [(b) => (b.paymentPayload.accepted.network = 'eip155:8453'), 'invalid_exact_evm_network_mismatch'],
            [(b) => (b.paymentPayload.accepted.scheme = 'upto'), 'invalid_exact_evm_scheme'],
        ];
        const body = await ask(payer);
        body.paymentPayload.accepted = structuredClone(body.paymentRequirements);
        for (const [change, reason] of cases)
            for (const call of [verify, settle])
                refused(await call(world, copy(body, change)), reason);
    });

    // SELLERS.md, of its last table: what the official facilitator would take (blocks of a second here: 4 + 3 + 2 s are needed).
    test('a deadline that is too near to be mined by, and one too far away to be proven dead', async () => {
        const due = (seconds) => ({ authorization: { change: { validBefore: String(Math.floor(Date.now() / 1000) + seconds) } } });
        for (const seconds of [7, 120 + 600 + 10]) {
            const body = await ask(payer, due(seconds));
            refused(await verify(world, body), 'invalid_exact_evm_payload_authorization_valid_before');
            refused(await settle(world, body), 'invalid_exact_evm_payload_authorization_valid_before');
        }
        for (const seconds of [15, 120 + 600 - 10])
            assert.equal((await verify(world, await ask(payer, due(seconds)))).json.isValid, true);
    });

    test('v1 takes more than the price, as its own facilitator does, and settles what was signed', async () => {
        const one = await world.newPayer();
        const body = await ask(one, { version: 1, authorization: { change: { value: '1500' } } });
        assert.equal((await verify(world, body)).json.isValid, true);
        success(await settle(world, body), one, 'base-sepolia');
        assert.deepEqual((await transfers(world, one)).map(({ amount }) => amount), [1500n]);
        const tooMuch = await ask(one, { version: 1, authorization: { change: { value: '5001' } } });
        refused(await settle(world, tooMuch), 'unexpected_settle_error');
    });

    test('what cannot be read is 400 with a whole body', async () => {
        const body = await ask(payer);
        const [v1, v2] = [await ask(payer, { version: 1 }), body];
        const cases = [
            ['{', 'invalid_json', 'unknown:unknown'],
            ['[]', 'invalid_json', 'unknown:unknown'],
            ['{"x402Version":2,"x402Version":2}', 'invalid_json', 'unknown:unknown'],
            [{ ...v2, paymentPayload: undefined }, 'missing_parameters', NETWORK],
            [{ ...v2, paymentRequirements: undefined }, 'missing_parameters', 'unknown:unknown'],
            [copy(v2, (b) => (b.paymentPayload.x402Version = 3)), 'invalid_x402_version', NETWORK],
            [copy(v2, (b) => delete b.paymentPayload.x402Version), 'invalid_x402_version', NETWORK],
            [copy(v2, (b) => (b.paymentRequirements.scheme = 'upto')), 'unsupported_scheme', NETWORK],
            [copy(v2, (b) => (b.paymentRequirements.network = 'eip155:1')), 'invalid_network', 'eip155:1'],
            [copy(v1, (b) => (b.paymentRequirements.network = 'base')), 'invalid_network', 'base'],
            [copy(v2, (b) => (b.paymentPayload.payload = {})), 'invalid_payload', NETWORK],
            [copy(v2, (b) => (b.paymentPayload.payload.authorization.value = '-1')), 'invalid_payload', NETWORK],
            [copy(v1, (b) => (b.paymentPayload.payload.authorization.value = 1000)), 'invalid_payload', 'base-sepolia'],
            [copy(v2, (b) => (b.paymentRequirements.amount = '1e3')), 'invalid_payment_requirements', NETWORK],
        ];
        for (const [bad, reason, network] of cases) {
            const verified = await verify(world, bad);
            refused(verified, reason, 400);
            assert.equal(typeof verified.json.error, 'string');
            const settled = await settle(world, bad);
            refused(settled, reason, 400);
            assert.deepEqual([settled.json.transaction, settled.json.network], ['', network], settled.text);
        }
        assert.equal((await world.request('/settle')).status, 405);
        assert.equal((await post(world, '/verify', 'x'.repeat(70_000))).status, 413);
    });

    test('texts are short and hold no word of the node\'s', async () => {
        const poor = await world.newPayer({ atoms: 10n });
        const { json } = await verify(world, await ask(poor));
        assert.ok(json.invalidMessage.length < 160);
        assert.doesNotMatch(json.invalidMessage, /revert|viem|ERC20/);
    });

    // ---- used before we had a row ----

    test('a nonce that was used before it came here is no success: hash and block are told', async () => {
        const one = await world.newPayer();
        const body = await ask(one);
        const receipt = await submitBySomebody(world, body.paymentPayload.payload);
        (world.notOurs ??= new Set()).add(receipt.transactionHash);
        refused(await verify(world, body), 'invalid_exact_evm_nonce_already_used');
        const answer = await settle(world, body);
        refused(answer, 'invalid_exact_evm_nonce_already_used');
        assert.equal(answer.json.transaction, receipt.transactionHash);
        assert.equal(answer.json.extra.block, Number(receipt.blockNumber));
        assert.equal(answer.json.extra.payTo, shop);
        assert.equal((await status(world, body)).status, 404);
    });

    test('a nonce that the payer cancelled', async () => {
        const one = await world.newPayer();
        const body = await ask(one);
        assert.ok(await cancel(world, one, body.paymentPayload.payload));
        const answer = await settle(world, body);
        refused(answer, 'invalid_exact_evm_nonce_already_used');
        assert.equal(answer.json.extra.event, 'canceled');
    });

    test('GET /settlements tells settled, with block and depth, in either network name', async () => {
        const one = await world.newPayer();
        const body = await ask(one);
        const tx = success(await settle(world, body), one);
        for (const network of [NETWORK, 'eip155%3A84532', 'base-sepolia']) {
            const { json } = await status(world, body, { network });
            assert.equal(json.status, 'settled');
            assert.equal(json.transaction, tx);
            assert.ok(json.block > 0 && json.depth >= 1);
            assert.equal(json.amount, '1000');
        }
        for (const path of ['/settlements/x', `/settlements/${NETWORK}/0x12/0x12`, `/settlements/eip155:1/${one.address}/${tx}`])
            assert.equal((await world.request(path)).status, 404);
    });

    test('metrics and explain know it', async () => {
        const page = (await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` })).text;
        assert.match(page, /payonce_facilitator_requests_total\{seller="shop",call="settle",outcome="replayed"\} [1-9]/);
        const [{ nonce }] = await world.sql(`SELECT '0x' || encode(a.nonce, 'hex') AS nonce FROM authorizations a
            JOIN orders o ON o.id = a.order_id WHERE o.seller = 'shop' LIMIT 1`);
        const { code, stdout } = await world.payonce(['explain', nonce]);
        assert.equal(code, 0);
        assert.match(stdout, /settlement for shop/);
    });
});

// ---- not known in time ----

test('with nothing broadcast the pending has no hash and says so; the row is there; it is settled later', inWorld(
    inWorldOf({ shop: { wait_ms: 700, repeat_wait_ms: 900 } }, { roles: ['gateway'] }), async (world) => {
        const payer = await world.newPayer();
        const body = await ask(payer);
        const began = Date.now();
        const first = await settle(world, body);
        assert.ok(Date.now() - began >= 650 && Date.now() - began < 3000, 'it answers at its limit');
        refused(first, 'settlement_pending');
        assert.equal(first.json.transaction, '');
        assert.match(first.json.errorMessage, /nothing is broadcast yet/);
        assert.equal(first.json.payer, payer.address);
        const { json } = await status(world, body);
        assert.equal(json.status, 'settling');
        assert.ok(Date.parse(json.known_by) > Date.now());
        const page = (await world.request('/metrics', { base: `http://127.0.0.1:${world.ports.admin}` })).text;
        assert.match(page, /payonce_settlements_open\{seller="shop"\} 1/);
        const again = Date.now();
        refused(await settle(world, body), 'settlement_pending');
        assert.ok(Date.now() - again >= 850, 'asked again it waits longer');
        await world.startRole('settler');
        await world.waitFor(async () => (await status(world, body)).json.status === 'settled', 'it is settled');
        const tx = success(await settle(world, body), payer);
        assert.equal((await transfers(world, payer))[0].tx, tx);
    }));

test('broadcast and not mined: pending with the hash; the repeat waits until it is mined', inWorld(
    inWorldOf({ shop: { wait_ms: 2500 } }, { blockTime: 0 }), async (world) => {
        const payer = await world.newPayer();
        const body = await ask(payer);
        const first = await settle(world, body);
        refused(first, 'settlement_pending');
        assert.match(first.json.transaction, /^0x[0-9a-f]{64}$/);
        const repeat = settle(world, body);
        await world.pause(300);
        await world.chain.mine();
        const second = await repeat;
        assert.equal(success(second, payer), first.json.transaction);
        assert.deepEqual(second.json.extra, { replayed: true });
        assert.equal((await transfers(world, payer)).length, 1);
    }));

test('our row was first and somebody else submitted it: a success by its own log', inWorld(
    inWorldOf({ shop: { wait_ms: 500 } }, { roles: ['gateway'] }), async (world) => {
        const payer = await world.newPayer();
        const body = await ask(payer);
        refused(await settle(world, body), 'settlement_pending');
        const receipt = await submitBySomebody(world, body.paymentPayload.payload);
        await world.startRole('settler');
        const answer = await settle(world, body);
        assert.equal(success(answer, payer), receipt.transactionHash);
        assert.equal((await transfers(world, payer)).length, 1);
    }));

test('a reorganisation takes a settlement back, and it is settled again', inWorld(
    inWorldOf({}, { blockTime: 0, network: { finality_blocks: 20 } }), async (world) => {
        const payer = await world.newPayer();
        const body = await ask(payer);
        const first = settle(world, body);
        await world.waitFor(async () => (await world.sql('SELECT 1 FROM relay_transactions')).length === 1, 'it is sent');
        await world.chain.mine();
        success(await first, payer);
        await world.chain.reorg(1);
        await world.waitFor(async () => (await status(world, body)).json.status === 'settling', 'the proof is undone');
        const again = settle(world, body);
        const mining = setInterval(() => world.chain.mine().catch(() => {}), 300);
        try {
            success(await again, payer);
        } finally {
            clearInterval(mining);
        }
        assert.equal((await transfers(world, payer)).length, 1);
    }));

test('proven dead is a failure, and a new signature over the nonce with more time is settled', inWorld(
    inWorldOf({ shop: { wait_ms: 500, repeat_wait_ms: 1000 } }, { roles: ['gateway'] }), async (world) => {
        const payer = await world.newPayer();
        const required = requirements({ maxTimeoutSeconds: 30 });
        const body = await ask(payer, { required });
        refused(await settle(world, body), 'settlement_pending');
        await world.chain.warp(60);
        await world.chain.mine(3);
        await world.startRole('settler');
        await world.waitFor(async () => (await status(world, body)).json.status === 'expired', 'it is proven dead');
        refused(await settle(world, body), 'invalid_exact_evm_payload_authorization_valid_before');
        const { nonce } = body.paymentPayload.payload.authorization;
        const validBefore = String(Math.floor(Date.now() / 1000) + 60 + 90);
        const later = await ask(payer, { required: requirements(), authorization: { change: { nonce, validBefore } } });
        const answer = await world.waitFor(async () => {
            const { json } = await settle(world, later);
            return json.success && json;
        }, 'it is settled');
        assert.equal((await transfers(world, payer))[0].tx, answer.transaction);
    }));

test('while the chain cannot be read nothing is told as failed', inWorld(
    inWorldOf({}, { network: { rpc_timeout_ms: 500 } }), async (world) => {
        const payer = await world.newPayer();
        const body = await ask(payer);
        process.kill(world.chain.pid, 'SIGSTOP');
        try {
            refused(await verify(world, body), 'unexpected_verify_error', 503);
            const answer = await settle(world, body);
            refused(answer, 'unexpected_settle_error', 503);
            assert.equal(answer.headers['retry-after'], '2');
            assert.equal((await status(world, body)).status, 404, 'nothing was stored');
        } finally {
            process.kill(world.chain.pid, 'SIGCONT');
        }
        await world.waitFor(async () => (await verify(world, body)).status === 200, 'the chain is read again');
        success(await settle(world, body), payer);
    }));

test('a day\'s limit', inWorld(inWorldOf({ shop: { max_per_day: 2 } }), async (world) => {
    const payer = await world.newPayer();
    const bodies = await Promise.all([1, 2, 3].map(() => ask(payer)));
    success(await settle(world, bodies[0]), payer);
    success(await settle(world, bodies[1]), payer);
    refused(await verify(world, bodies[2]), 'seller_limit_reached');
    refused(await settle(world, bodies[2]), 'seller_limit_reached');
    success(await settle(world, bodies[0]), payer);
}));

// ---- coalesced verification ----

test('64 at once: under half an RPC call for a /verify, under one for a /settle, the settler\'s counted', inWorld(
    inWorldOf({}, { blockTime: 2, roles: [] }), async (world) => {
        const counter = await new RpcCounter().start(world.rpcUrl);
        const config = world.writeConfig('counted', world.ports, { network: { rpc: [counter.url] } });
        for (const role of ['settler', 'gateway'])
            await world.startRole(role, { config });
        const payers = await world.newPayers(64);
        const rounds = await Promise.all([1, 2, 3].map(() => Promise.all(payers.map((payer) => ask(payer)))));
        await verify(world, rounds[0][0]);
        // The settler looks at the chain by itself, however much is asked: its calls of a while are not the requests'.
        const counted = async (call) => {
            const before = counter.total;
            for (const bodies of rounds)
                assert.deepEqual((await Promise.all(bodies.map((body) => call(world, body))))
                    .filter(({ json }) => !(json.isValid ?? json.success)), []);
            return (counter.total - before) / (rounds.length * 64);
        };
        const [verified, settled] = [await counted(verify), await counted(settle)];
        assert.ok(verified < 0.5, `${verified} RPC calls for a verification`);
        assert.ok(settled < 1, `${settled} RPC calls for a settlement`);
        await world.stop('gateway');
        await world.stop('settler');
        await counter.close();
    }));

test('two payments from a balance that is enough for one of them: each is right by itself', inWorld(inWorldOf(), async (world) => {
    const payer = await world.newPayer({ atoms: 1500n });
    const others = await world.newPayers(10);
    const bodies = await Promise.all([payer, payer, ...others].map((each) => ask(each)));
    const answers = await Promise.all(bodies.map((body) => verify(world, body)));
    assert.deepEqual(answers.map(({ json }) => json.isValid), bodies.map(() => true));
}));
