// The recorded exchanges of the official servers with the official facilitators, asked anew: each request with the same shape and
// the same fault, signed by a payer of ours, now. The answers are the recorded ones, but for the differences below, each of which
// SELLERS.md names with its reason.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NETWORK, post } from '../lib/facilitator.mjs';
import { root } from '../lib/paths.mjs';
import { hex32, now, transferTypes } from '../lib/payment.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

const { scenarios } = JSON.parse(readFileSync(join(root, 'tests/vectors/facilitator-exchanges.json'), 'utf8'));
const guide = readFileSync(join(root, 'SELLERS.md'), 'utf8');
const payTo = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C';
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

// What is done to a good signature, by the scenario's name.
const signatures = {
    bad_signature: (s) => `${s.slice(0, 10)}${s[10] === '0' ? '1' : '0'}${s.slice(11)}`,
    v1_bad_signature: (s) => signatures.bad_signature(s),
    high_s_signature: (s) => s.slice(0, 66) + (N - BigInt(`0x${s.slice(66, 130)}`)).toString(16).padStart(64, '0') +
        (s.endsWith('1b') ? '1c' : '1b'),
    v_0_or_1_signature: (s) => s.slice(0, -2) + (s.endsWith('1b') ? '00' : '01'),
    eip2098_64_byte_signature: (s) => s.slice(0, -2),
};
// What happens to the payer before the call of that place.
const fates = {
    insufficient_balance: { 0: (world, { address }) => world.chain.fund(address, 1n) },
    v1_insufficient: { 0: (world, { address }) => world.chain.fund(address, 1n) },
    blacklisted_payer: { 0: (world, { address }) => world.chain.blacklist(address) },
    settle_failure_balance_drained: { 1: (world, { address }) => world.chain.fund(address, 1n) },
    v1_settle_failure_drained: { 1: (world, { address }) => world.chain.fund(address, 1n) },
};
// These ask about a payment that an earlier scenario settled.
const continues = { replay_same_payment: true, fac_settle_again: true, fac_verify_after_settle: true, v1_replay_same_payment: true,
    v1_replay_on_v2_facilitator: true };

// scenario: { place of the call: [status, reason or success], ... }
const settled = [200, 'success'];
const differences = {
    missing_payload: { 0: [400, 'invalid_payload'] },
    bad_value_type: { 0: [400, 'invalid_payload'] },
    fac_verify_bad_value: { 0: [400, 'invalid_payload'] },
    x402Version_1_in_v2_payload: { 0: [400, 'invalid_network'] },
    fac_verify_unknown_network: { 0: [400, 'invalid_network'] },
    fac_verify_unknown_scheme: { 0: [400, 'unsupported_scheme'] },
    fac_verify_missing_requirements: { 0: [400, 'missing_parameters'] },
    fac_verify_bad_json: { 0: [400, 'invalid_json'] },
    fac_verify_asset_not_contract: { 0: [200, 'invalid_payment_requirements'] },
    validAfter_equals_now: { 0: [200, 'invalid_exact_evm_payload_authorization_valid_after'] },
    high_s_signature: { 0: [200, 'invalid_exact_evm_signature'] },
    v_0_or_1_signature: { 0: [200, 'valid'] },
    settle_failure_double_submit: { 2: settled },
    fac_settle_again: { 0: settled },
    v1_replay_same_payment: { 0: [200, 'invalid_transaction_state'], 1: settled },
    v1_settle_failure_double_submit: { 3: settled },
    v1_replay_on_v2_facilitator: { 0: [200, 'invalid_transaction_state'] },
};

const say = ({ status, answer }) => [status, answer?.isValid ? 'valid' : answer?.success ? 'success'
    : answer?.invalidReason ?? answer?.errorReason];

describe('recorded exchanges', () => {
    let world, payments;
    before(async () => {
        payments = new Map();                    // by the recorded nonce
        world = await startWorld({ extra: { sellers: [
            { name: 'recorded', key: 'open', accepts: [{ network: NETWORK, token: 'USDC', pay_to: payTo }] }] } });
    });
    after(() => world && endWorld(world));

    async function sign(name, payer, authorization) {
        const good = await payer.account.signTypedData({
            domain: { name: 'USDC', version: '2', chainId: 84532, verifyingContract: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' },
            types: transferTypes, primaryType: 'TransferWithAuthorization', message: authorization,
        });
        return (signatures[name] ?? ((s) => s))(good);
    }

    // The recorded payment as it would be today; the same one wherever the record has the same nonce.
    async function remade(name, at, recorded) {
        const { from, validAfter, validBefore, nonce } = recorded.authorization;
        if (!payments.has(nonce)) {
            if (name === 'validAfter_equals_now')            // and stays so while it is asked about
                await world.pause(1000 - Date.now() % 1000);
            const payer = await world.newPayer();
            const shift = (text) => (Number(text) > 1e9 ? String(Number(text) + now() - at) : text);
            const authorization = { ...recorded.authorization, nonce: hex32(), validAfter: shift(validAfter),
                validBefore: shift(validBefore), from: from === from.toLowerCase() ? payer.address.toLowerCase() : payer.address };
            const signature = await sign(name, payer, authorization).catch(() => recorded.signature);
            payments.set(nonce, { payer, payload: { ...recorded, authorization, signature } });
        }
        return payments.get(nonce);
    }

    for (const { name, calls } of scenarios)
        test(name, async () => {
            for (const [place, { path, at, request, answer, status }] of calls.entries()) {
                const body = structuredClone(request), recorded = body?.paymentPayload?.payload;
                let payer;
                if (recorded?.authorization) {
                    assert.equal(payments.has(recorded.authorization.nonce), place > 0 || Boolean(continues[name]));
                    const made = await remade(name, at, recorded);
                    payer = made.payer;
                    body.paymentPayload.payload = made.payload;
                }
                await fates[name]?.[place]?.(world, payer);
                const said = await post(world, path, body);
                const expected = differences[name]?.[place] ?? say({ status, answer });
                assert.deepEqual(say({ status: said.status, answer: said.json }), expected, `call ${place}: ${said.text}`);
                if (!differences[name]?.[place])
                    compare(said.json, answer, payer);
            }
        });

    // Member by member, but for the texts and what is the payment's own.
    function compare(said, recorded, payer) {
        const texts = ['invalidMessage', 'errorMessage', 'error', 'extra'];
        for (const key of Object.keys(recorded).filter((each) => !texts.includes(each))) {
            if (key === 'payer')
                assert.equal(said.payer, recorded.payer === recorded.payer.toLowerCase() ? payer.address.toLowerCase() : payer.address);
            else if (key === 'transaction' && recorded.transaction)
                assert.match(said.transaction, /^0x[0-9a-f]{64}$/);
            else
                assert.deepEqual(said[key], recorded[key], key);
        }
        const more = Object.keys(said).filter((key) => !texts.includes(key) && !(key in recorded));
        assert.deepEqual(more, []);
    }

    test('the guide names every difference', () => {
        for (const name of Object.keys(differences))
            assert.ok(guide.includes(`\`${name}\``), `SELLERS.md does not name ${name}`);
    });
});
