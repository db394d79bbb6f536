// How a debt comes about and is paid back, without anybody asking: a call fails, so it is not charged; but somebody who
// saw its authorization sends it all the same.
import { randomBytes } from 'node:crypto';
import { encodeFunctionData } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { buyers, labelled } from './accounts.mjs';
import { CHAIN_ID } from './chain.mjs';
import { until } from './process.mjs';
import { USDC, tokenAbi } from './usdc.mjs';

const PATIENCE_MS = 120_000;
const stranger = labelled('stranger').address;
const types = {
    TransferWithAuthorization: Object.entries({
        from: 'address', to: 'address', value: 'uint256', validAfter: 'uint256', validBefore: 'uint256', nonce: 'bytes32',
    }).map(([name, type]) => ({ name, type })),
};
const toBase64 = (value) => Buffer.from(JSON.stringify(value)).toString('base64');
const fromBase64 = (text) => JSON.parse(Buffer.from(text, 'base64').toString('utf8'));

async function sign(key, offer) {
    const account = privateKeyToAccount(key);
    const authorization = {
        from: account.address, to: offer.payTo, value: offer.amount, validAfter: '0',
        validBefore: String(Math.floor(Date.now() / 1000) + offer.maxTimeoutSeconds),
        nonce: `0x${randomBytes(32).toString('hex')}`,
    };
    const domain = { name: offer.extra.name, version: offer.extra.version, chainId: CHAIN_ID, verifyingContract: offer.asset };
    const signature = await account.signTypedData({
        domain, types, primaryType: 'TransferWithAuthorization', message: authorization,
    });
    return { authorization, signature };
}

// Resolves to the answer and what was signed for it.
async function failingCall(url) {
    const required = fromBase64((await fetch(url)).headers.get('payment-required'));
    const [accepted] = required.accepts;
    const payload = await sign(buyers.at(-1).key, accepted);
    const payment = toBase64({ x402Version: 2, resource: required.resource, accepted, payload });
    return { answer: await fetch(url, { headers: { 'payment-signature': payment } }), payload };
}

async function submit(chain, { authorization: a, signature }) {
    await chain.giveGas(stranger);
    const args = [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature];
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithAuthorization', args });
    return (await chain.send(stranger, USDC, data)).transactionHash;
}

const json = async (url) => (await fetch(url, { headers: { accept: 'application/json' } })).json();

// say(text): a line as it happens. Resolves to the receipt's address.
export async function showRefund({ gateway, chain, say }) {
    const { answer, payload } = await failingCall(`${gateway}/iso/countries?code=ZZ`);
    const order = `${gateway}/orders/${answer.headers.get('payonce-order')}`;
    say(`a call for a country that does not exist: ${answer.status}, Payonce-Charged: ${answer.headers.get('payonce-charged')}`);
    say(`a stranger sends its authorization nevertheless: ${await submit(chain, payload)}`);
    let before, debt;
    await until(async () => {
        [debt] = (await json(order)).refunds ?? [];
        if (debt && debt.state !== before)
            say(`the debt is ${debt.state} (cause: ${debt.cause}, ${debt.amount} atoms)`);
        before = debt?.state;
        return before === 'refunded';
    }, PATIENCE_MS, 200);
    if (before !== 'refunded')
        throw new Error(`the debt of ${order} is not paid back`);
    const { receipt } = await json(order);
    say(`paid back in ${debt.transaction}`);
    say(`its receipt: ${(await json(receipt)).headline}`);
    return receipt;
}
