// The local chain is what the other scenarios take it for.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { concat, encodeFunctionData } from 'viem';
import { buyers, payTo, relayer } from '../../dev/accounts.mjs';
import { startChain, stopChain } from '../../dev/chain.mjs';
import { until } from '../../dev/process.mjs';
import { DOMAIN_SEPARATOR, USDC, tokenAbi } from '../../dev/usdc.mjs';
import { deploy, odd } from '../lib/contracts.mjs';
import { authorize, freshAccount, now } from '../lib/payment.mjs';
import { freePort } from '../lib/world.mjs';

const offer = (asset = USDC, extra = { name: 'USDC', version: '2' }) =>
    ({ network: 'eip155:84532', asset, payTo, amount: '1000', maxTimeoutSeconds: 120, extra });

function submit(chain, { authorization: a, signature }, { token = USDC, mayFail = false } = {}) {
    const args = [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature];
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithAuthorization', args });
    return chain.send(relayer.address, token, data, { mayFail, gas: 1_000_000 });
}

describe('the local chain', () => {
    let chain, dir, port;
    before(async () => {
        dir = mkdtempSync(join(tmpdir(), 'payonce-chain-'));
        port = await freePort();
        chain = await startChain({ dir, port, blockTime: 0, interval: 1 });
    });
    after(async () => {
        await stopChain(chain);
        rmSync(dir, { recursive: true });
    });

    function isWhole() {
        try {
            return JSON.parse(readFileSync(join(dir, 'chain.json'), 'utf8')) !== null;
        } catch {
            return false;
        }
    }

    // The node has saved what it knew when this was called: one saving began since, a second one after it, and that one ended.
    async function saved() {
        const time = () => statSync(join(dir, 'chain.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
        for (let i = 0; i < 2; i++) {
            const last = time();
            assert.ok(await until(() => time() > last, 10_000), 'the node does not save');
        }
        assert.ok(await until(isWhole, 5_000), 'what it saved is not whole');
    }

    test('has USDC as Base Sepolia has it, and funded buyers', async () => {
        assert.equal(await chain.read('DOMAIN_SEPARATOR', []), DOMAIN_SEPARATOR);
        for (const { address } of buyers)
            assert.equal(await chain.balanceOf(address), 1_000_000_000n);
        assert.equal(await chain.balanceOf(relayer.address), 0n);
    });

    test('keeps the machine\'s time however many blocks are mined', async () => {
        await chain.mine(50);
        assert.ok(Math.abs((await chain.block()).time - now()) <= 2);
    });

    test('moves an authorization once, and says so in its logs', async () => {
        const payer = freshAccount();
        await chain.fund(payer.address, 5_000n);
        const payment = await authorize(payer, offer());
        const { transactionHash } = await submit(chain, payment);
        assert.equal(await chain.authorizationState(payer.address, payment.authorization.nonce), true);
        const [log] = (await chain.allTransfers()).filter(({ tx }) => tx === transactionHash);
        assert.equal(log.amount, 1000n);
        assert.equal(log.from, payer.address.toLowerCase());
        assert.equal((await submit(chain, payment, { mayFail: true })).status, '0x0');
        assert.equal(await chain.balanceOf(payer.address), 4_000n);
    });

    test('lets contracts and delegated accounts pay', async () => {
        const owner = freshAccount();
        const wallet = await deploy(chain, 'Wallet1271', [owner.address]);
        const delegate = await deploy(chain, 'Delegate7702');
        const delegated = freshAccount();
        await chain.setCode(delegated.address, concat(['0xef0100', delegate.address]));
        await chain.fund([wallet.address, delegated.address], 1_000n);

        const payment = await authorize(owner, offer(), { change: { from: wallet.address } });
        await submit(chain, { ...payment, signature: concat([payment.signature, '0x1234']) });
        await submit(chain, await authorize(delegated, offer()));
        assert.equal(await chain.balanceOf(wallet.address), 0n);
        assert.equal(await chain.balanceOf(delegated.address), 0n);
    });

    test('has tokens with each fault', async () => {
        const payer = freshAccount();
        const faulty = async (fault) => {
            const { address, abi } = await deploy(chain, 'OddToken', ['Odd', '1', 18, fault]);
            await chain.send(relayer.address, address, encodeFunctionData({ abi, functionName: 'mint',
                args: [payer.address, 5_000n] }));
            const payment = await authorize(payer, offer(address, { name: 'Odd', version: '1' }));
            const again = async () => (await submit(chain, payment, { token: address, mayFail: true })).status;
            const first = await again();
            const second = await again();
            const logs = (await chain.allTransfers(address)).filter((log) => log.to === payTo.toLowerCase());
            return [first, second, logs.map((log) => log.amount), await chain.balanceOf(payTo, address)];
        };
        assert.deepEqual(await faulty(0n), ['0x1', '0x0', [1000n], 1000n]);
        assert.deepEqual(await faulty(odd.usedIsQuiet), ['0x1', '0x1', [1000n], 1000n]);
        assert.deepEqual(await faulty(odd.saysFalse), ['0x1', '0x1', [], 0n]);
        assert.deepEqual(await faulty(odd.noTransferLog), ['0x1', '0x0', [], 1000n]);
        assert.deepEqual(await faulty(odd.takesAFee), ['0x1', '0x0', [999n], 999n]);
    });

    test('can be reorganised: what the removed blocks held is dropped', async () => {
        const payer = freshAccount();
        await chain.fund(payer.address, 1_000n);
        const { blockHash } = await submit(chain, await authorize(payer, offer()));
        await chain.reorg(1);
        assert.equal(await chain.balanceOf(payer.address), 1_000n);
        assert.notEqual((await chain.block()).hash, blockHash);
    });

    test('comes back from kill -9 as the same chain', async () => {
        const { genesis } = chain;
        const transfers = await chain.allTransfers();
        const { number } = await chain.block();
        await saved();
        await stopChain(chain, 'SIGKILL');
        chain = await startChain({ dir, port, blockTime: 0, interval: 1 });
        assert.equal(chain.genesis, genesis);
        assert.equal((await chain.block()).number, number);
        assert.deepEqual(await chain.allTransfers(), transfers);
    });
});
