// What a seller's own server asks of the facilitator, made by hand.
import { createHash } from 'node:crypto';
import { labelled } from '../../dev/accounts.mjs';
import { USDC } from '../../dev/usdc.mjs';
import { authorize, freshAccount } from './payment.mjs';

export const NETWORK = 'eip155:84532';
export const V1_NETWORK = 'base-sepolia';
export const shop = labelled('facilitated shop').address;
export const rival = labelled('facilitated rival').address;
export const rivalKey = 'the-rivals-api-key-of-the-tests';
const accepts = (payTo, more) => [{ network: NETWORK, token: 'USDC', pay_to: payTo, ...more }];
export const sha256 = (text) => createHash('sha256').update(text).digest('hex');

// One seller whom anybody may ask for, one with a key.
export const sellers = ({ shop: more = {}, serve = {} } = {}) => [
    { name: 'shop', key: 'open', accepts: accepts(shop, serve), ...more },
    { name: 'rival', key: `sha256:${sha256(rivalKey)}`, accepts: accepts(rival) },
];
export const inWorldOf = (more = {}, rest = {}) => ({ extra: { sellers: sellers(more) }, ...rest });

export const requirements = (change = {}) => ({
    scheme: 'exact', network: NETWORK, amount: '1000', asset: USDC, payTo: shop, maxTimeoutSeconds: 120,
    extra: { name: 'USDC', version: '2' }, ...change,
});
export const requirementsV1 = (change = {}) => ({
    scheme: 'exact', network: V1_NETWORK, maxAmountRequired: '1000', resource: 'https://shop.example/paid', description: '',
    mimeType: '', payTo: shop, maxTimeoutSeconds: 120, asset: USDC, extra: { name: 'USDC', version: '2' }, ...change,
});

// A body for /verify and /settle. Options: required (paymentRequirements), authorization ({ change, domain }), version.
export async function ask(payer, { version = 2, required, authorization = {} } = {}) {
    const wanted = required ?? (version === 2 ? requirements() : requirementsV1());
    const payload = await authorize(payer, wanted, authorization);
    const paymentPayload = version === 2
        ? { x402Version: 2, payload, resource: { url: 'https://shop.example/paid', description: '', mimeType: '' }, accepted: wanted }
        : { x402Version: 1, scheme: 'exact', network: wanted.network, payload };
    return { x402Version: version, paymentPayload, paymentRequirements: wanted };
}

export function post(world, path, body, { base, key, signal, agent } = {}) {
    const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return world.request(path, { method: 'POST', headers, body: text, base, signal, agent });
}
export const verify = (world, body, options) => post(world, '/verify', body, options);
export const settle = (world, body, options) => post(world, '/settle', body, options);

export function status(world, body, { key, base, network = NETWORK } = {}) {
    const { from, nonce } = body.paymentPayload.payload.authorization;
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    return world.request(`/settlements/${network}/${from}/${nonce}`, { headers, base });
}

// What somebody who saw an authorization can do with it: submits it himself. Resolves to the receipt.
export async function submitBySomebody(world, { authorization: a, signature }) {
    const { address } = freshAccount();
    await world.chain.giveGas(address);
    return world.chain.write(address, 'transferWithAuthorization',
        [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature]);
}

// Transfers of the payer's to the payee, by the chain's own logs.
export async function transfers(world, payer, payTo = shop) {
    const all = await world.chain.allTransfers();
    const same = (a, b) => a.toLowerCase() === b.toLowerCase();
    return all.filter(({ from, to }) => same(from, payer.address) && same(to, payTo));
}
