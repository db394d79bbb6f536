// A JSON-RPC endpoint that tells of a real node's chain, or lies about it, in the way that `lie` names:
//
//     null       knows nothing                    html       a page, with status 200
//     wrong id   answers somebody else            error      an error for everything
//     hang       never answers                    other      serves another chain
//     behind     is 8 blocks late                 ahead      tells of blocks that nobody has made
//     fork       has other hashes                 paid       forges the proof of any payment
//     cancelled  forges the end of any payment
import { createServer } from 'node:http';
import { encodeAbiParameters, keccak256, pad, stringToBytes, toHex } from 'viem';
import { payTo } from '../../../dev/accounts.mjs';

export const LIES = ['null', 'html', 'wrong id', 'error', 'hang', 'other', 'behind', 'ahead', 'fork'];
const LATE = 8;
const topic = (signature) => keccak256(stringToBytes(signature));
const TRANSFER = topic('Transfer(address,address,uint256)');
const USED = topic('AuthorizationUsed(address,bytes32)');
const CANCELED = topic('AuthorizationCanceled(address,bytes32)');
const STATE = '0xe94a0102';
const otherHash = (hash) => keccak256(hash);

const TAGS = ['latest', 'pending', 'safe', 'finalized'];

export class Liar {
    lie = null;
    told = 0;
    #forged = new Map();

    constructor(chain, { amount = 1_000n } = {}) {
        Object.assign(this, { chain, amount });
        this.server = createServer((from, to) => this.#serve(from, to).catch(() => to.destroy()));
        this.server.on('connection', (socket) => socket.unref());
    }

    async start(port) {
        this.server.unref();
        await new Promise((done, failed) => this.server.once('error', failed).listen(port, '127.0.0.1', done));
        this.url = `http://127.0.0.1:${port}`;
        return this;
    }

    close() {
        this.server.closeAllConnections();
        return new Promise((done) => this.server.close(done));
    }

    async #serve(from, to) {
        const chunks = [];
        for await (const chunk of from)
            chunks.push(chunk);
        const asked = JSON.parse(Buffer.concat(chunks).toString());
        const { lie } = this;
        this.told += lie ? 1 : 0;
        if (lie === 'hang')
            return undefined;
        if (lie === 'html') {
            to.writeHead(200, { 'content-type': 'text/html' });
            return to.end('<html><body>All is well.</body></html>');
        }
        const list = [asked].flat();
        const answers = await Promise.all(list.map((call) => this.#answer(call, lie)));
        to.writeHead(200, { 'content-type': 'application/json' });
        return to.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
    }

    async #answer({ id, method, params = [] }, lie) {
        const envelope = { jsonrpc: '2.0', id: lie === 'wrong id' ? 987_654_321 : id };
        if (lie === 'error')
            return { ...envelope, error: { code: -32_000, message: 'header not found' } };
        if (lie === 'null')
            return { ...envelope, result: null };
        if (lie === 'other' && method === 'eth_chainId')
            return { ...envelope, result: '0x1' };
        try {
            const result = await this.#told(method, structuredClone(params), lie);
            return { ...envelope, result };
        } catch (error) {
            return { ...envelope, error: { code: error.code ?? -32_603, message: error.message, data: error.data } };
        }
    }

    async #told(method, params, lie) {
        if (lie === 'behind')
            return this.#late(method, params);
        if (lie === 'paid' || lie === 'cancelled')
            return this.#forge(method, params, lie);
        const result = await this.chain.rpc.call(method, ...params);
        if (lie === 'ahead' && method === 'eth_getBlockByNumber' && TAGS.includes(params[0]))
            return { ...result, number: toHex(Number(result.number) + 50), hash: otherHash(result.hash),
                timestamp: toHex(Number(result.timestamp) + 600) };
        if (lie === 'fork')
            return forked(result);
        return result;
    }

    async #late(method, params) {
        const head = Number(await this.chain.rpc.call('eth_blockNumber'));
        const last = Math.max(0, head - LATE);
        if (method === 'eth_blockNumber')
            return toHex(last);
        for (const i of [0, 1, 2])
            if (TAGS.includes(params[i]))
                params[i] = toHex(last);
        if (method === 'eth_getLogs' && TAGS.includes(params[0].toBlock))
            params[0].toBlock = toHex(last);
        const result = await this.chain.rpc.call(method, ...params);
        const block = method === 'eth_getTransactionReceipt' ? result?.blockNumber : result?.number;
        return block !== undefined && Number(block) > last ? null : result;
    }

    async #forge(method, params, lie) {
        if (method === 'eth_call' && params[0].data?.startsWith(STATE))
            return toHex(1, { size: 32 });
        if (method === 'eth_getLogs' && params[0].topics?.[2])
            return [await this.#event(params[0], lie)];
        if (method === 'eth_getTransactionReceipt' && this.#forged.has(params[0]))
            return this.#forged.get(params[0]);
        return this.chain.rpc.call(method, ...params);
    }

    async #event({ address, topics }, lie) {
        const { number, hash } = await this.chain.block();
        const payer = [topics[1]].flat()[0];
        const nonce = [topics[2]].flat()[0];
        const at = { blockNumber: toHex(number), blockHash: hash, transactionHash: otherHash(nonce),
            transactionIndex: '0x0', address: [address].flat()[0].toLowerCase(), removed: false };
        const used = { ...at, topics: [lie === 'paid' ? USED : CANCELED, payer, nonce], data: '0x', logIndex: '0x0' };
        const transfer = { ...at, topics: [TRANSFER, payer, pad(payTo).toLowerCase()], logIndex: '0x1',
            data: encodeAbiParameters([{ type: 'uint256' }], [this.amount]) };
        this.#forged.set(at.transactionHash, { ...at, status: '0x1', type: '0x2', from: payTo, to: at.address,
            logs: lie === 'paid' ? [used, transfer] : [used], cumulativeGasUsed: '0x186a0', gasUsed: '0x186a0',
            effectiveGasPrice: '0x1', contractAddress: null, logsBloom: `0x${'00'.repeat(256)}` });
        return used;
    }
}

// The same tale in other blocks.
function forked(value) {
    if (Array.isArray(value))
        return value.map(forked);
    if (value === null || typeof value !== 'object')
        return value;
    return { ...value, ...(value.blockHash && { blockHash: otherHash(value.blockHash), logs: forked(value.logs) }),
        ...(value.number && value.hash && { hash: otherHash(value.hash), parentHash: otherHash(value.parentHash) }) };
}
