// The official MPP client, and its parts for tests that look closer or send things twice.
import { Challenge, Credential, Receipt } from 'mppx';
import { Mppx, tempo } from 'mppx/client';
import { createClient, encodeFunctionData, http } from 'viem';
import { sendTransactionSync } from 'viem/actions';
import { privateKeyToAccount } from 'viem/accounts';
import { tempoModerato } from 'viem/chains';
import { PATH_USD, TEMPO_ID, tokenAbi } from '../../dev/tempo.mjs';

// What viem knows of the public test network, but for where its node is.
export function tempoClient(world, account) {
    const url = world.tempo.rpc.url;
    const chain = { ...tempoModerato, id: TEMPO_ID, rpcUrls: { default: { http: [url] } } };
    return createClient({ account, chain, transport: http(url), pollingInterval: 100 });
}

// A call of a token's, sent by an account and mined; resolves to its receipt.
export function sendOnTempo(world, account, functionName, args, token = PATH_USD) {
    const data = encodeFunctionData({ abi: tokenAbi, functionName, args });
    const validBefore = Math.floor(Date.now() / 1000) + 25;
    return sendTransactionSync(tempoClient(world, account), { calls: [{ to: token, data }], nonceKey: 'expiring', validBefore });
}

// Options: mode ('push'; else as the client chooses, which is pull for a key), and whatever else Mppx.create takes.
export function mppClient(world, key, { mode, fetch, ...options } = {}) {
    const account = privateKeyToAccount(key);
    const method = tempo.charge({ account, getClient: () => tempoClient(world, account), ...(mode && { mode }) });
    return Mppx.create({ methods: [method], polyfill: false, ...(fetch && { fetch }), ...options });
}

// A fetch that keeps what went over it: [{ request headers, status, response headers }].
export function watchedFetch() {
    const seen = [];
    const watched = async (input, init) => {
        const response = await fetch(input, init);
        seen.push({ sent: new Headers(init?.headers), status: response.status, got: response.headers });
        return response;
    };
    return { seen, fetch: watched };
}

// The challenge of a 402 (as tests/lib/http.mjs answers), as the official client reads it.
export function challengeOf(answer) {
    return Challenge.deserialize(answer.headers['www-authenticate']);
}

export const receiptOf = (header) => Receipt.deserialize(header);
export const credentialOf = (header) => Credential.deserialize(header);
export const challengesIn = (response) => Challenge.fromResponseList(response);
