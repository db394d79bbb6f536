// The relayer's own transactions: fees that rise, nodes that refuse what they took, forget what they had or count
// wrongly, settlers that die or share a wallet. Whatever happens to the transactions, a payment is paid by one of them
// and told to have failed by none, and every hash that may ever be mined is in the database. Cases (B.., C.., D..) are
// those of public bug reports.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createWalletClient, http, keccak256, toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { baseSepolia } from 'viem/chains';
import { relayer } from '../../dev/accounts.mjs';
import { NETWORK } from '../../dev/config.mjs';
import { begin, debtsOf, eventsOf, isConsecutive, isPaid, isSeen, noHashLost, orderOf, publicOrder, relayed, relayedOf, seen,
    stranger, untilMoney } from '../lib/ledger.mjs';
import { CUT, HTML, Refusal, behindStubs } from '../lib/stub.mjs';

const PATH = '/test/read';
const GWEI = 10n ** 9n;

const log = (world, name) => readFileSync(join(world.dir, `${name}.log`), 'utf8');
const isMined = ({ state }) => state === 'mined' || state === 'final';
const setBaseFee = (world, wei) => world.chain.rpc.call('anvil_setNextBlockBaseFeePerGas', toHex(wei));
const setBlockTime = (world, seconds) => world.chain.rpc.call('evm_setIntervalMining', seconds);
const baseFee = async (world) => BigInt((await world.chain.rpc.call('eth_getBlockByNumber', 'latest', false)).baseFeePerGas);
const oneByOne = { network: { batch_max: 1 } };

// Every block costs so much, until the returned function is called: left alone, the base fee falls.
function keepDear(world, wei) {
    let on = true;
    const loop = (async () => {
        for (; on; await world.pause(400))
            await setBaseFee(world, wei);
    })();
    return async () => {
        on = false;
        await loop;
        await setBaseFee(world, GWEI);
    };
}

// A node that says that it has a transaction, and tells nobody of it.
function swallow(stub, while_ = () => true) {
    const held = [];
    stub.acts.eth_sendRawTransaction = ([raw], pass) => {
        if (!held.includes(raw) && !while_(held))
            return pass();
        held.push(raw);
        return keccak256(raw);
    };
    return held;
}

const untilSent = (world, count) => world.waitFor(async () => {
    const rows = await relayed(world);
    return rows.length >= count && rows;
}, `${count} transactions are stored`);

const owned = (world) => world.waitFor(async () =>
    (await world.sql('SELECT owner FROM relayers WHERE until > now()')).length > 0, 'a settler is up');

describe('the relayer', { concurrency: 4 }, () => {
    const scenario = (name, options, body) => test(name, { timeout: 400_000 }, behindStubs(1, options, body));

    // ---- fees ----

    const dying = { env: { settler: { PAYONCE_FAILPOINT: 'settler-before-replace' } } };
    scenario('priced out: the same nonce and call at a higher fee, despite kill -9', dying, async (world) => {
        const held = swallow(world.stub);
        const call = await begin(world, PATH);
        const [first] = await untilSent(world, 1);
        const stop = keepDear(world, 50n * GWEI);
        try {
            assert.equal(await world.ended('settler'), 'SIGKILL', 'no fee was to be raised');
            assert.deepEqual([...new Set(held)], [first.raw], 'it was sent before it was stored');
            assert.deepEqual((await relayed(world)).map(({ hash }) => hash), [first.hash]);
            assert.equal((await publicOrder(world, call.payer)).status, 'settling');
            world.stub.honest();
            await world.restart('settler');
            await isPaid(world, call);
        } finally {
            await stop();
        }
        const [old, ...raised] = await relayed(world);
        assert.deepEqual([old.hash, old.state], [first.hash, 'dropped']);
        for (const t of raised) {
            assert.deepEqual([t.account_nonce, t.call_data], [first.account_nonce, first.call_data]);
            assert.ok(BigInt(t.max_fee) * 10n >= BigInt(old.max_fee) * 11n, 'nodes take a replacement from 10 % on');
            assert.ok(BigInt(t.max_tip) * 10n >= BigInt(old.max_tip) * 11n, 'nodes take a replacement from 10 % on');
        }
        assert.deepEqual(raised.filter(isMined).map(({ hash }) => hash), [(await orderOf(world, call.payer)).tx]);
        assert.ok((await eventsOf(world, call.payer)).includes('fee_raised'));
        await noHashLost(world);
    });

    scenario('C12: raised, and then the original is the one that is mined', {}, async (world) => {
        const held = swallow(world.stub);
        const call = await begin(world, PATH);
        await untilSent(world, 1);
        world.stub.acts.eth_sendRawTransaction = ([raw]) => {
            held.push(raw);
            throw new Refusal(-32000, 'replacement transaction underpriced');
        };
        const stop = keepDear(world, 50n * GWEI);
        try {
            await untilSent(world, 2);
            await world.waitFor(() => new Set(held).size === 2, 'the replacement is sent');
        } finally {
            await stop();
        }
        await world.chain.rpc.call('eth_sendRawTransaction', held[0]);
        await isPaid(world, call);
        const [old, ...raised] = await relayed(world);
        assert.ok(isMined(old), old.state);
        assert.ok(raised.length > 0 && raised.every(({ state }) => state === 'dropped'));
        assert.equal((await orderOf(world, call.payer)).tx, old.hash);
        await noHashLost(world);
    });

    // ---- a fee at its limit ----

    scenario('priced out at fee_max_wei: said once, counted, and it goes on waiting', { network: { fee_max_wei: `${10n * GWEI}` } },
        async (world) => {
            const held = swallow(world.stub);
            const call = await begin(world, PATH);
            const [first] = await untilSent(world, 1);
            const stop = keepDear(world, 50n * GWEI);
            const said = () => log(world, 'settler').match(/settler\.fee_capped/g)?.length ?? 0;
            const counted = async () => {
                const base = `http://127.0.0.1:${world.ports.admin}`;
                const { text } = await world.request('/metrics', { base });
                return Number(text.match(/^payonce_relay_fee_capped\{network="[^"]+"\} (\d+)$/m)[1]);
            };
            try {
                await world.waitFor(() => said() > 0, 'it is said');
                await world.waitFor(async () => await counted() === 1, 'it is counted');
                const { number } = await world.chain.block();
                await world.waitFor(async () => (await world.chain.block()).number > number + 5, 'some blocks pass');
                assert.equal(said(), 1);
                assert.equal((await publicOrder(world, call.payer)).status, 'settling');
            } finally {
                await stop();
            }
            const rows = await relayed(world);
            assert.ok(rows.every((row) => BigInt(row.max_fee) <= 10n * GWEI && row.account_nonce === first.account_nonce));
            assert.ok(held.length >= 1);
            world.stub.honest();
            await isPaid(world, call);
            await world.waitFor(async () => await counted() === 0, 'it is not counted any more');
            await noHashLost(world);
        });

    scenario('no gas money, or gas that costs too much: payments wait, and nothing fails', {}, async (world) => {
        await isPaid(world, await begin(world, `${PATH}?rich`));
        await world.chain.giveGas(relayer.address, 1_000n);
        await world.waitFor(async () => (await seen(world)).gas === '1000', 'it is seen that it is gone');
        const waits = async (path, words) => {
            const call = await begin(world, path);
            await untilMoney(world, call.payer, 'due');
            await world.waitFor(() => log(world, 'settler').includes(words), words);
            assert.equal((await publicOrder(world, call.payer)).status, 'settling');
            assert.deepEqual(await relayedOf(world, call.payer), []);
            return call;
        };
        const poor = await waits(`${PATH}?poor`, 'settler.out_of_gas');
        await world.chain.giveGas(relayer.address);
        await isPaid(world, poor);

        const stop = keepDear(world, 600n * GWEI);
        let dear;
        try {
            await world.waitFor(async () => await baseFee(world) > 500n * GWEI, 'a block is dear');
            await isSeen(world);
            dear = await waits(`${PATH}?dear`, 'settler.fees_high');
        } finally {
            await stop();
        }
        await isPaid(world, dear);
        assert.equal((await relayedOf(world, dear.payer)).length, 1);
        await isConsecutive(world, 0, 3);
    });

    scenario('the gas money is gone after it was sent: it is sent again when there is some', {}, async (world) => {
        await setBlockTime(world, 0);
        const call = await begin(world, PATH);
        const [first] = await untilSent(world, 1);
        await world.waitFor(() => world.stub.sent.length === 1, 'it is sent');
        await world.chain.rpc.call('anvil_dropAllTransactions');
        await world.chain.giveGas(relayer.address, 1_000n);
        await setBlockTime(world, 1);
        const refused = /says=.*[Ii]nsufficient funds/;
        await world.waitFor(() => log(world, 'settler').match(refused), 'the node refuses it');
        assert.equal((await publicOrder(world, call.payer)).status, 'settling');
        await world.chain.giveGas(relayer.address);
        await isPaid(world, call);
        assert.deepEqual((await relayed(world)).map(({ hash }) => hash), [first.hash]);
    });

    // ---- what nodes say to a transaction ----

    const took = {
        'C06 already known': () => { throw new Refusal(-32000, 'already known'); },
        'C10 nonce too low': () => { throw new Refusal(-32000, 'nonce too low'); },
        'C04 replacement transaction underpriced': () => {
            throw new Refusal(-32000, 'replacement transaction underpriced');
        },
        'B03 internal error': () => { throw new Refusal(-32603, 'internal error'); },
        'C08 a limit': () => { throw new Refusal(-32016, 'rate limit exceeded'); },
        'D09 a page of HTML': () => HTML,
        'B01 no reply': () => CUT,
    };
    scenario('the node took it and says otherwise: sent once, and the next nonce follows', {}, async (world) => {
        for (const [name, say] of Object.entries(took)) {
            world.stub.acts.eth_sendRawTransaction = async (params, pass) => {
                await pass();
                return say();
            };
            const call = await begin(world, `${PATH}?${name.slice(0, 3)}`);
            await untilMoney(world, call.payer, 'settled');
            world.stub.honest();
            await isPaid(world, call);
            assert.equal((await relayedOf(world, call.payer)).length, 1, name);
            await isPaid(world, await begin(world, `${PATH}?then=${name.slice(0, 3)}`));
        }
        await isConsecutive(world, 0, 2 * Object.keys(took).length);
        await noHashLost(world);
    });

    const lost = {
        'C08 rate limit': () => { throw new Refusal(-32016, 'rate limit exceeded'); },
        'an internal error': () => { throw new Refusal(-32000, 'internal error'); },
        'a page of HTML': () => HTML,
    };
    for (const [name, say] of Object.entries(lost))
        scenario(`the node says ${name} and has not taken it: the same bytes go out again`, {}, async (world) => {
            let said = 0;
            world.stub.acts.eth_sendRawTransaction = (params, pass) => said++ === 0 ? say() : pass();
            const call = await begin(world, `${PATH}?lost`);
            await untilSent(world, 1);
            await isPaid(world, await begin(world, `${PATH}?behind`));
            await isPaid(world, call);
            assert.ok(said >= 2);
            assert.equal(world.stub.sent.length, 2);
            await isConsecutive(world, 0, 2);
        });

    for (const [name, forget] of Object.entries({
        'one transaction': (world, hash) => world.chain.rpc.call('anvil_dropTransaction', hash),
        'its mempool': (world) => world.chain.rpc.call('anvil_dropAllTransactions'),
    }))
        scenario(`a node that forgets ${name}: the same bytes go out again`, oneByOne, async (world) => {
            const payers = await world.newPayers(2);
            await setBlockTime(world, 0);
            const calls = [];
            for (let n = 0; n < 2; n++) {
                calls.push(await begin(world, `${PATH}?n=${n}`, { payer: payers[n] }));
                await untilSent(world, n + 1);
                await world.waitFor(() => world.stub.sent.length === n + 1, 'it is sent');
            }
            const [first] = await relayed(world);
            await forget(world, first.hash);
            const known = await world.chain.rpc.call('eth_getTransactionByHash', first.hash);
            assert.equal(known, null, 'the node has it still');
            await setBlockTime(world, 1);
            for (const call of calls)
                await isPaid(world, call);
            const rows = await isConsecutive(world, 0, 2);
            assert.deepEqual(rows.map(({ raw }) => raw), world.stub.sent);
        });

    // ---- receipts ----

    scenario('D03: a null receipt of what is mined, for some seconds', {}, async (world) => {
        world.stub.acts.eth_getTransactionReceipt = () => null;
        const call = await begin(world, PATH);
        const { from, nonce } = call.signed.payload.authorization;
        await world.waitFor(() => world.chain.authorizationState(from, nonce), 'it is mined');
        const { number } = await world.chain.block();
        await world.waitFor(async () => (await seen(world)).final > number, 'it is final');
        assert.ok(['settling', 'paid'].includes((await orderOf(world, call.payer)).status));
        world.stub.honest();
        await isPaid(world, call);
        const rows = await relayedOf(world, call.payer);
        assert.equal(rows.length, 1, 'it went again though it was mined');
        assert.ok(isMined(rows[0]), `it is mined, and is told to be ${rows[0].state}`);
        assert.ok(!(await eventsOf(world, call.payer)).includes('account_nonce_taken'), 'nobody took our nonce');
    });

    scenario('D03: a null receipt for ever, while the logs are there', {}, async (world) => {
        world.stub.acts.eth_getTransactionReceipt = () => null;
        const call = await begin(world, PATH);
        await untilMoney(world, call.payer, 'settled');
        await isPaid(world, call);
        assert.equal((await world.calls()).length, 1);
    });

    scenario('D03: null receipts of a batch for ever: each is judged by the logs, what failed goes again', {}, async (world) => {
        await world.stop('settler');
        const payers = await world.newPayers(3);
        const calls = [];
        for (const [n, payer] of payers.entries()) {
            calls.push(await begin(world, `${PATH}?n=${n}`, { payer }));
            await untilMoney(world, payer, 'due');
        }
        world.stub.acts.eth_getTransactionReceipt = () => null;
        const { address } = payers[1];
        const has = await world.chain.balanceOf(address);
        const away = await stranger(world);
        await world.chain.giveGas(address);
        await world.chain.write(address, 'transfer', [away, has]);
        await world.restart('settler');
        await untilMoney(world, payers[0], 'settled');
        await untilMoney(world, payers[2], 'settled');
        await world.waitFor(async () => (await eventsOf(world, payers[1])).includes('not_carried_out'), 'it goes again');
        await world.chain.write(away, 'transfer', [address, has]);
        await Promise.all(calls.map((call) => isPaid(world, call)));
        assert.equal((await relayedOf(world, payers[1])).length, 2);
        await isConsecutive(world, 0, 2);
    });

    // ---- by when an unknown is known ----

    const brief = { tools: [{ name: 'brief', method: 'GET', path: '/test/brief', side_effect: 'read', timeout_ms: 2_000,
        max_timeout_s: 20, prices: [{ network: NETWORK, token: 'USDC', amount: '1000' }] }] };
    for (const blocks of [3, 12])
        scenario(`known_by is kept, and tight: the final block is ${blocks} behind`, { ...brief, network: { finality_blocks: blocks } },
            async (world) => {
                await world.waitFor(async () => (await world.chain.block()).number > blocks + 3, 'the chain is long enough');
                swallow(world.stub);
                const call = await begin(world, '/test/brief');
                await untilSent(world, 1);
                const by = Date.parse((await publicOrder(world, call.payer)).known_by);
                const { dead_after: dead } = await orderOf(world, call.payer);
                assert.ok(by / 1000 - dead < 2 * blocks + 45, `told for ${by / 1000 - dead} s after its deadline`);
                const order = await untilMoney(world, call.payer, 'expired', by - Date.now());
                assert.equal(order.status, 'unpaid');
                await call.answer;
            });

    // ---- account nonces ----

    scenario('another transaction of the key takes the nonce: given up when that is final, and paid anew',
        { ...oneByOne, network: { ...oneByOne.network, finality_blocks: 5 } }, async (world) => {
            swallow(world.stub, (held) => held.length === 0);
            const robbed = await begin(world, `${PATH}?robbed`);
            const [{ account_nonce: nonce, hash: ours }] = await untilSent(world, 1);
            const behind = await begin(world, `${PATH}?behind`);
            await untilSent(world, 2);
            const account = privateKeyToAccount(relayer.key);
            const client = createWalletClient({ account, chain: baseSepolia, transport: http(world.chain.rpc.url) });
            const foreign = await client.sendTransaction({ to: world.payTo, value: 0n, nonce, gas: 21_000n,
                maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: 2n * GWEI });
            const block = Number((await world.chain.receipt(foreign)).blockNumber);
            await isPaid(world, behind);
            const isFinal = async () => (await seen(world)).final >= block;
            await world.waitFor(async () => {
                const [mine] = (await relayed(world)).filter(({ hash }) => hash === ours);
                const order = await orderOf(world, robbed.payer);
                if (await isFinal())
                    return true;
                assert.equal(mine.state, 'broadcast', 'it was given up while the other could still leave the chain');
                assert.equal(order.money, 'sent');
                return false;
            }, 'the other is final');
            await isPaid(world, robbed);
            const [dropped, mined, ...more] = await relayedOf(world, robbed.payer);
            assert.equal(dropped.state, 'dropped');
            assert.ok(isMined(mined), mined.state);
            assert.deepEqual(more, []);
            assert.ok((await eventsOf(world, robbed.payer)).includes('account_nonce_taken'));
            assert.match(log(world, 'settler'), /settler\.nonce_taken/);
            assert.deepEqual(await debtsOf(world, robbed.payer), []);
            await noHashLost(world, [foreign]);
        });

    scenario('C09: three are not mined when the settler starts again: none is replaced, the fourth follows', oneByOne,
        async (world) => {
            await owned(world);
            const payers = await world.newPayers(4);
            await setBlockTime(world, 0);
            const calls = [];
            const next = async (n) => {
                calls.push(await begin(world, `${PATH}?n=${n}`, { payer: payers[n] }));
                return untilSent(world, n + 1);
            };
            for (let n = 0; n < 3; n++)
                await next(n);
            const before = await relayed(world);
            await world.restart('settler');
            const later = await next(3);
            assert.deepEqual(later.slice(0, 3).map(({ raw }) => raw), before.map(({ raw }) => raw));
            const count = await world.chain.rpc.call('eth_getTransactionCount', relayer.address, 'latest');
            assert.equal(Number(count), 0, 'they were mined meanwhile');
            await setBlockTime(world, 1);
            for (const call of calls)
                await isPaid(world, call);
            const rows = await isConsecutive(world, 0, 4);
            assert.equal(rows.length, 4, 'one was replaced');
            await noHashLost(world);
        });

    const third = { network: { batch_max: 4 }, env: { settler: { PAYONCE_FAILPOINT: 'settler-after-store:3' } } };
    scenario('C02, C13: two settlers and one key, and the one that has it dies with a transaction stored and not sent',
        third, async (world) => {
            await owned(world);
            await world.startRole('settler2');
            const payers = await world.newPayers(24);
            const calls = await Promise.all(payers.map((payer, n) => begin(world, `${PATH}?n=${n}`, { payer })));
            assert.equal(await world.ended('settler'), 'SIGKILL');
            const rows = await relayed(world);
            assert.equal(world.stub.sent.includes(rows.at(-1).raw), false, 'it is stored and not sent');
            await Promise.all(calls.map((call) => isPaid(world, call)));
            const all = await isConsecutive(world, 0);
            assert.equal(all.length, all.filter(isMined).length, 'a nonce was used twice');
            assert.ok(all.some(({ hash }) => hash === rows.at(-1).hash), 'what was stored was thrown away');
            await noHashLost(world);
        });

    scenario('C04, C10: the node\'s count is two seconds late, and too small at a start', oneByOne, async (world) => {
        const seen = [];
        world.stub.acts.eth_getTransactionCount = async (params, pass) => {
            const now = Date.now();
            seen.push([now, await pass()]);
            return (seen.findLast(([at]) => at <= now - 2_000) ?? seen[0])[1];
        };
        for (let n = 0; n < 3; n++) {
            const calls = [await begin(world, `${PATH}?a=${n}`), await begin(world, `${PATH}?b=${n}`)];
            for (const call of calls)
                await isPaid(world, call);
        }
        await world.stop('settler');
        world.stub.acts.eth_getTransactionCount = async (params, pass) => toHex(Number(await pass()) - 2);
        await world.restart('settler');
        await isPaid(world, await begin(world, `${PATH}?small`));
        const rows = await isConsecutive(world, 0, 7);
        assert.equal(rows.length, 7);
    });

    scenario('a count that is too large, once: the gap is filled', oneByOne, async (world) => {
        await isPaid(world, await begin(world, `${PATH}?before`));
        await world.stop('settler');
        let lies = 0;
        world.stub.acts.eth_getTransactionCount = async (params, pass) =>
            toHex(Number(await pass()) + (lies++ === 0 ? 2 : 0));
        await world.restart('settler');
        await isPaid(world, await begin(world, `${PATH}?after`));
        assert.ok(lies > 0);
        const rows = await isConsecutive(world, 0, 4);
        assert.deepEqual(rows.map(({ call_data: data }) => data === '0x'), [false, true, true, false]);
        await noHashLost(world);
    });

    scenario('C01: no gas estimate for one of three: no hole, and it goes when it can', oneByOne, async (world) => {
        await world.stop('settler');
        const payers = await world.newPayers(3);
        const calls = [];
        for (const [n, payer] of payers.entries()) {
            calls.push(await begin(world, `${PATH}?n=${n}`, { payer }));
            await untilMoney(world, payer, 'due');
        }
        let refused = 0, over = false;
        world.stub.acts.eth_estimateGas = ([call], pass) => {
            if (over || !call.data.includes(payers[1].address.slice(2).toLowerCase()))
                return pass();
            refused++;
            throw new Refusal(3, 'execution reverted');
        };
        await world.restart('settler');
        await Promise.all([calls[0], calls[2]].map((call) => isPaid(world, call)));
        await world.waitFor(() => refused >= 2, 'it is tried again');
        assert.equal((await orderOf(world, payers[1])).money, 'due');
        await isConsecutive(world, 0, 2);
        over = true;
        await isPaid(world, calls[1]);
        await isConsecutive(world, 0, 3);
    });
});
