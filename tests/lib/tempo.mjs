// Worlds with a Tempo node beside the other chain, and MPP payments: by the stock client, or made by hand.
import { encodeFunctionData, hexToBytes, keccak256, stringToBytes, toHex } from 'viem';
import { prepareTransactionRequest, sendTransactionSync, signTransaction } from 'viem/actions';
import { TEMPO } from '../../dev/config.mjs';
import { PATH_USD, TEMPO_ID, tokenAbi } from '../../dev/tempo.mjs';
import { checkSum } from './ledger.mjs';
import { mppClient, tempoClient } from './mpp.mjs';
import { freshAccount } from './payment.mjs';
import { testTools } from './world.mjs';

export { PATH_USD, TEMPO };
export const mppPrice = (amount = '250', changes = {}) => ({ network: TEMPO, token: 'pathUSD', amount, ...changes });

// What tests buy on both rails, or on Tempo alone.
export const mppTools = [
    { ...testTools[0], name: 'both read', path: '/test/both', prices: [...testTools[0].prices, mppPrice()] },
    { ...testTools[2], name: 'both write', path: '/test/both-write', prices: [...testTools[2].prices, mppPrice()] },
    { ...testTools[0], name: 'tempo read', path: '/test/tempo', prices: [mppPrice()] },
    { ...testTools[1], name: 'tempo cacheable', path: '/test/tempo-cacheable', prices: [mppPrice()] },
];

// Options of a world that sells on both chains.
export function onTempo(options = {}) {
    return {
        tools: [...testTools, ...mppTools], tempo: {}, ...options,
        beforeConfig: async (world) => {
            world.checkBooks = () => checkSum(world);
            await options.beforeConfig?.(world);
        },
    };
}

export async function tempoPayer(world, { atoms = 1_000_000n, token = PATH_USD } = {}) {
    const payer = freshAccount();
    await world.tempo.fund(payer.address, atoms, token);
    return payer;
}

// The stock client. mode: 'push' or 'pull'; undefined: as it chooses.
export const mppFetch = (world, { key }, { mode } = {}) => mppClient(world, key, { mode }).fetch;

// ---- by hand ----

const b64 = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

// The Payment challenges of a 402.
export function challengesOf(answer) {
    const header = answer.headers['www-authenticate'];
    return [header ?? []].flat().join(', ').split(/,?\s*Payment /).filter(Boolean).map((text) => {
        const params = Object.fromEntries([...text.matchAll(/([a-z]+)="((?:\\.|[^"\\])*)"/g)].map(([, key, value]) => [key, value]));
        return { ...params, charge: JSON.parse(Buffer.from(params.request, 'base64url').toString('utf8')) };
    });
}

export function memoOf({ realm, id }) {
    const part = (text, n) => hexToBytes(keccak256(stringToBytes(text))).slice(0, n);
    return toHex(Buffer.concat([Buffer.from('ef1ed71201', 'hex'), part(realm, 10), Buffer.alloc(10), part(id, 7)]));
}

export async function challenge(world, path, options) {
    const answer = await world.request(path, options);
    if (answer.status !== 402)
        throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    return challengesOf(answer)[0];
}

// Sends a token's transferWithMemo as its payer, mined. Resolves to the hash.
export async function sendMemo(world, payer, { to, amount, memo, token = PATH_USD, calls }) {
    const data = (call) => encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithMemo', args: [call.to, BigInt(call.amount), call.memo] });
    const client = tempoClient(world, payer.account);
    const list = calls ?? [{ to, amount, memo, token }];
    const receipt = await sendTransactionSync(client, {
        calls: list.map((call) => ({ to: call.token ?? PATH_USD, data: data(call) })), gas: 2_000_000n, feeToken: PATH_USD,
    });
    return receipt.transactionHash;
}

export const credential = (ch, payload, payer) => {
    const { charge, ...echo } = ch;
    const source = payer && `did:pkh:eip155:${TEMPO_ID}:${payer.address}`;
    return `Payment ${b64({ challenge: echo, payload, ...(source && { source }) })}`;
};

// Pays a challenge as it asks, or with changes; resolves to the header that presents it.
export async function push(world, payer, ch, change = {}) {
    const { amount, recipient, currency } = ch.charge;
    const hash = await sendMemo(world, payer, { to: recipient, amount, token: currency, memo: memoOf(ch), ...change });
    return { hash, authorization: credential(ch, { type: 'hash', hash }, payer) };
}

// Signs for a challenge, for the server to send. Resolves to the header and the transaction's deadline.
export async function signPull(world, payer, ch, { amount = ch.charge.amount, memo = memoOf(ch), to = ch.charge.recipient } = {}) {
    const client = tempoClient(world, payer.account);
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithMemo', args: [to, BigInt(amount), memo] });
    const validBefore = Math.min(Math.floor(Date.now() / 1000) + 25, Math.floor(Date.parse(ch.expires) / 1000));
    const prepared = await prepareTransactionRequest(client, {
        calls: [{ to: ch.charge.currency, data }], nonceKey: 'expiring', validBefore,
    });
    const signature = await signTransaction(client, { ...prepared, gas: 500_000n });
    return { authorization: credential(ch, { type: 'transaction', signature }, payer), signature, validBefore };
}
