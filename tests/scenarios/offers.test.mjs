// x402's offer-receipt: what is offered is signed, and what was paid, as the official package reads both.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { decodeSignedOffers, extractOffersFromPaymentRequired, extractReceiptFromResponse, verifyOfferSignatureEIP712,
    verifyReceiptMatchesOffer, verifyReceiptSignatureEIP712 } from '@x402/extensions/offer-receipt';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { receiptSigner } from '../../dev/accounts.mjs';
import { secretFile } from '../../dev/place.mjs';
import { inWorld } from '../lib/world.mjs';

const signed = {
    extra: { offer_receipt: true },
    beforeConfig: (world) => {
        world.env.PAYONCE_RECEIPT_KEY_FILE = secretFile(join(world.dir, 'receipts'), receiptSigner.key);
    },
};

test('signed offers in the 402, and a signed receipt with the answer, for a stock client', { timeout: 120_000 },
    inWorld(signed, async (world) => {
        const path = '/iso/countries?code=FR&note="quoted"';
        const { v2 } = await world.challenge(path);
        const offers = extractOffersFromPaymentRequired(v2);
        assert.equal(offers.length, v2.accepts.length);
        for (const [i, offer] of offers.entries()) {
            const { signer, payload } = await verifyOfferSignatureEIP712(offer);
            assert.equal(signer, receiptSigner.address);
            assert.equal(payload.resourceUrl, v2.resource.url);
            const { scheme, network, asset, payTo, amount } = v2.accepts[i];
            assert.deepEqual([payload.scheme, payload.network, payload.asset, payload.payTo, payload.amount],
                [scheme, network, asset, payTo, amount]);
            const left = payload.validUntil - Date.now() / 1000;
            assert.ok(left >= v2.accepts[i].maxTimeoutSeconds - 1, `${left} s`);
        }
        const again = extractOffersFromPaymentRequired((await world.challenge(path)).v2);
        const other = extractOffersFromPaymentRequired((await world.challenge('/iso/countries?code=DE')).v2);
        assert.ok(again[0].signature === offers[0].signature || again[0].payload.validUntil > offers[0].payload.validUntil);
        assert.notEqual(other[0].signature, offers[0].signature);

        const payer = await world.newPayer();
        const url = `${world.gateway}/iso/countries?code=FR`;
        const [offer] = decodeSignedOffers(extractOffersFromPaymentRequired((await world.challenge('/iso/countries?code=FR')).v2));
        const client = registerExactEvmScheme(new x402Client(), { signer: payer.account });
        const answer = await wrapFetchWithPayment(fetch, client)(url);
        assert.equal(answer.status, 200);
        const receipt = extractReceiptFromResponse(answer);
        const { signer, payload } = await verifyReceiptSignatureEIP712(receipt);
        assert.equal(signer, receiptSigner.address);
        assert.ok(verifyReceiptMatchesOffer(receipt, offer, [payer.address]));
        assert.ok((await world.chain.allTransfers()).some(({ tx }) => tx === payload.transaction));
    }));

test('without the key it does not start', { timeout: 60_000 }, inWorld({ ...signed, roles: ['settler'], beforeConfig: () => {} },
    async (world) => {
        const { code, stderr } = await world.payonce(['gateway']);
        assert.equal(code, 2);
        assert.match(stderr, /offer_receipt needs PAYONCE_RECEIPT_KEY_FILE/);
    }));
