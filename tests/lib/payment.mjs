// x402 payments made by hand, so that a test can put anything into any field.
import { randomBytes } from 'node:crypto';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';

// Text as it is, anything else as JSON.
export const encode = (value) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');
export const decode = (header) => JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
export const hex32 = () => `0x${randomBytes(32).toString('hex')}`;
export const now = () => Math.floor(Date.now() / 1000);
export const paymentId = () => `pay_${randomBytes(16).toString('hex')}`;

export function freshAccount(key = generatePrivateKey()) {
    const account = privateKeyToAccount(key);
    return { address: account.address, key, account };
}

export const transferTypes = {
    TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
    ],
};

const v1Chains = { 'base-sepolia': 84532 };

function domainOf(offer) {
    const chainId = v1Chains[offer.network] ?? Number(offer.network.split(':')[1]);
    return { name: offer.extra.name, version: offer.extra.version, chainId, verifyingContract: offer.asset };
}

// An authorization for an offer (an entry of `accepts`), signed by `payer`. `change` replaces its fields, `domain`
// those of the EIP-712 domain; both before signing.
export async function authorize(payer, offer, { change = {}, domain = {} } = {}) {
    const authorization = {
        from: payer.address, to: offer.payTo, value: offer.amount ?? offer.maxAmountRequired,
        validAfter: '0', validBefore: String(now() + offer.maxTimeoutSeconds), nonce: hex32(), ...change,
    };
    const signature = await payer.account.signTypedData({
        domain: { ...domainOf(offer), ...domain }, types: transferTypes, primaryType: 'TransferWithAuthorization',
        message: authorization,
    });
    return { authorization, signature };
}

// The value of PAYMENT-SIGNATURE, as @x402/fetch would send it. `required` is the decoded PAYMENT-REQUIRED.
export function paymentV2(required, payload, { accepted = required.accepts[0], id, change = {} } = {}) {
    const extensions = structuredClone(required.extensions ?? {});
    if (id)
        extensions['payment-identifier'] = { ...extensions['payment-identifier'], info: { required: false, id } };
    return encode({
        x402Version: 2, payload, ...(Object.keys(extensions).length > 0 && { extensions }),
        resource: required.resource, accepted, ...change,
    });
}

// The value of X-PAYMENT, as x402-fetch would send it. `required` is the 402's JSON body.
export function paymentV1(required, payload, { accepted = required.accepts[0], change = {} } = {}) {
    return encode({ x402Version: 1, scheme: accepted.scheme, network: accepted.network, payload, ...change });
}
