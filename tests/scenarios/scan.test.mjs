// Money that nobody told us of, and proofs that leave the chain. Every Transfer to the seller is found and booked once:
// as the sale of its order, as a debt, or in suspense. What one endpoint says, or a block that left the chain said,
// proves nothing.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { encodeAbiParameters, keccak256, pad, stringToBytes, toHex } from 'viem';
import { NETWORK } from '../../dev/config.mjs';
import { USDC } from '../../dev/usdc.mjs';
import { asOwner, begin, checkSum, debtsOf, eventsOf, isPaid, isSeen, orderOf, publicOrder, relayed, relayedOf, seen, submit,
    transfersOf, untilMoney } from '../lib/ledger.mjs';
import { paymentId } from '../lib/payment.mjs';
import { HTML, Refusal, behindStubs } from '../lib/stub.mjs';

const PATH = '/test/read';
const topic = (text) => keccak256(stringToBytes(text));

const log = (world, name) => readFileSync(join(world.dir, `${name}.log`), 'utf8');
const setBlockTime = (world, seconds) => world.chain.rpc.call('evm_setIntervalMining', seconds);
const undoneOf = (world) =>
    world.sql(`SELECT '0x' || encode(tx, 'hex') AS tx, block FROM undone_proofs ORDER BY undone_at`);
const classes = async (world, payer) => (await transfersOf(world, payer)).map((row) => row.class);

// The scan has passed what is the head now, and has looked once more.
async function scanned(world, looks = 1) {
    for (let i = 0; i < looks; i++) {
        const { number } = await world.chain.block();
        const cursor = async () => (await world.sql('SELECT block FROM scans'))[0]?.block ?? -1;
        await world.waitFor(async () => await cursor() >= number, `the scan passes block ${number}`);
    }
}

async function transferPlainly(world, atoms) {
    const payer = await world.newPayer();
    await world.chain.giveGas(payer.address);
    await world.chain.write(payer.address, 'transfer', [world.payTo, atoms]);
    return payer;
}

async function released(world, query = 'status=404') {
    const call = await begin(world, `${PATH}?${query}`);
    assert.equal((await call.answer).headers['payonce-charged'], 'false');
    assert.equal((await orderOf(world, call.payer)).status, 'not_charged');
    return call;
}

// Blocks from this one on are replaced by empty ones, so many more are mined, and then the chain goes on.
async function removeFrom(world, block, { more = 0, before, then } = {}) {
    await setBlockTime(world, 0);
    const { number } = await world.chain.block();
    await before?.(number);
    await world.chain.reorg(number - block + 1);
    if (more > 0)
        await world.chain.mine(more);
    await then?.();
    await setBlockTime(world, 1);
}

function scenario(name, options, body, stubs = 0) {
    test(name, { timeout: 400_000 }, behindStubs(stubs, options, async (world) => {
        world.checkBooks = () => checkSum(world);
        await body(world);
    }));
}

function whatComesIn() {
    scenario('released, and submitted by a stranger: one debt, and the order says so', {}, async (world) => {
        const call = await released(world);
        const tx = await submit(world, call.signed.payload);
        await untilMoney(world, call.payer, 'settled');
        const debt = [{ cause: 'late', state: 'owed', amount: '1000', tx }];
        assert.deepEqual(await debtsOf(world, call.payer), debt);
        assert.deepEqual(await classes(world, call.payer), ['debt']);
        const order = await publicOrder(world, call.payer);
        assert.equal(order.status, 'refund_due');
        assert.equal(order.transaction, tx);
        const receipt = await world.request(new URL(order.receipt).pathname);
        assert.equal(receipt.json.status, 'refund_due', receipt.text);

        const again = await world.send(call.path, call.signed);
        assert.ok(again.status !== 200 && again.status !== 402, `${again.status} ${again.text}`);
        assert.equal((await world.calls()).length, 1, 'it ran again on a payment that is owed back');
        await world.restart('settler');
        await scanned(world, 2);
        assert.deepEqual(await debtsOf(world, call.payer), debt);
        assert.deepEqual(await relayedOf(world, call.payer), []);
    });

    scenario('two authorizations of one payment id, and both land: one sale, one debt', {}, async (world) => {
        const id = paymentId();
        const payer = await world.newPayer();
        const first = await begin(world, PATH, { payer, id });
        await isPaid(world, first);
        const second = await begin(world, PATH, { payer, id });
        const answer = await second.answer;
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers['payonce-charged'], 'false');
        const tx = await submit(world, second.signed.payload);
        await world.waitFor(async () => (await debtsOf(world, payer)).length > 0, 'it is owed back');
        assert.deepEqual(await debtsOf(world, payer), [{ cause: 'duplicate', state: 'owed', amount: '1000', tx }]);
        assert.deepEqual(await classes(world, payer), ['sale', 'debt']);
        assert.equal((await orderOf(world, payer)).status, 'paid');
        assert.equal((await world.calls()).length, 1);
        await scanned(world);
        assert.equal((await debtsOf(world, payer)).length, 1);
    });

    scenario('a plain transfer: in suspense, once, whatever happens to the settler', {}, async (world) => {
        await scanned(world);
        await world.stop('settler');
        const payer = await transferPlainly(world, 7_000n);
        await world.startRole('settler', { env: { PAYONCE_FAILPOINT: 'settler-before-scan' } });
        assert.equal(await world.ended('settler'), 'SIGKILL');
        assert.deepEqual(await transfersOf(world, payer), [], 'it was booked before its commit');
        await world.restart('settler');
        await world.waitFor(async () => (await transfersOf(world, payer)).length > 0, 'it is found');
        await world.restart('settler');
        await scanned(world);
        await asOwner(world, 'UPDATE scans SET block = greatest(block - 20, 0)');
        await scanned(world);
        const rows = await transfersOf(world, payer);
        assert.deepEqual(rows.map(({ class: kind, amount }) => [kind, amount]), [['suspense', '7000']]);
        assert.deepEqual(await world.sql('SELECT id FROM debts'), []);
        assert.equal(await checkSum(world), 1);
    });

    scenario('submitted by a stranger while the work runs: paid by its own log, and by nothing of ours', {},
        async (world) => {
            const call = await begin(world, `${PATH}?hold=1`);
            await world.waitFor(async () => (await world.calls()).length === 1, 'the work runs');
            const tx = await submit(world, call.signed.payload);
            await world.letGo();
            await isPaid(world, call);
            assert.equal((await orderOf(world, call.payer)).tx, tx);
            assert.deepEqual(await classes(world, call.payer), ['sale']);
        });

    scenario('found while the work runs, and then the work fails: it is owed back', {}, async (world) => {
        const call = await begin(world, `${PATH}?hold=1&status=404`);
        await world.waitFor(async () => (await world.calls()).length === 1, 'the work runs');
        const tx = await submit(world, call.signed.payload);
        await untilMoney(world, call.payer, 'settled');
        assert.equal((await orderOf(world, call.payer)).work, 'running', 'it was found too late for this test');
        await world.letGo();
        await call.answer;
        assert.equal((await orderOf(world, call.payer)).status, 'refund_due');
        const debts = await debtsOf(world, call.payer);
        assert.deepEqual(debts.map((debt) => [debt.state, debt.tx]), [['owed', tx]],
            'refund_due, and no debt on record');
    });

    scenario('everything at once: transfers in = paid orders + debts + suspense', {}, async (world) => {
        const payers = await world.newPayers(10);
        const calls = await Promise.all(payers.map((payer, n) =>
            begin(world, `${PATH}?n=${n}${n % 3 === 0 ? '&status=404' : ''}`, { payer })));
        await Promise.all(calls.map(({ answer }) => answer));
        for (const [n, call] of calls.entries())
            if (n % 3 === 0)
                await submit(world, call.signed.payload);
            else
                await isPaid(world, call);
        await transferPlainly(world, 5n);
        assert.equal(await checkSum(world), 11);
        const rows = await world.sql('SELECT class, count(*) FROM transfers GROUP BY class ORDER BY class');
        assert.deepEqual(rows.map((row) => [row.class, Number(row.count)]),
            [['debt', 4], ['sale', 6], ['suspense', 1]]);
    });

    scenario('a provider that refuses ranges of logs over five blocks', {}, async (world) => {
        await scanned(world);
        await world.stop('settler');
        const words = [[-32005, 'query returned more than 10000 results'], [-32602, 'block range too large'],
            [-32000, 'exceed maximum block range: 5'], [-32600, 'You can make eth_getLogs requests with up to a 5 block range'],
            [-32603, 'internal error']];
        let refused = 0, widest = 0, widestAfter = 0;
        world.stub.acts.eth_getLogs = ([{ fromBlock, toBlock, topics }], pass) => {
            const blocks = Number(toBlock) - Number(fromBlock) + 1;
            if (topics && blocks > 5)
                throw new Refusal(...words[refused++ % words.length]);
            widest = Math.max(widest, blocks);
            return pass();
        };
        const payers = [];
        for (let i = 0; i < 3; i++) {
            payers.push(await transferPlainly(world, BigInt(i + 1)));
            await world.chain.mine(4);
        }
        await world.restart('settler');
        for (const payer of payers)
            await world.waitFor(async () => (await classes(world, payer))[0] === 'suspense', 'it is found');
        assert.ok(refused > 0 && widest > 1, `${refused} ranges were refused, the widest that was taken had ${widest}`);
        await isPaid(world, await begin(world, PATH));

        await world.stop('settler');
        await world.chain.mine(40);
        world.stub.acts.eth_getLogs = ([{ fromBlock, toBlock }], pass) => {
            widestAfter = Math.max(widestAfter, Number(toBlock) - Number(fromBlock) + 1);
            return pass();
        };
        await world.restart('settler');
        await world.waitFor(() => widestAfter > 20, 'the range grows again');
    }, 1);

    scenario('one endpoint of two leaves logs out: the other has them', {}, async (world) => {
        world.stub.acts.eth_getLogs = () => [];
        const payer = await transferPlainly(world, 7n);
        await world.waitFor(async () => (await classes(world, payer))[0] === 'suspense', 'it is found');
    }, 2);

    scenario('the only endpoint leaves out what is proven: the scan waits until it has it', {}, async (world) => {
        world.stub.acts.eth_getLogs = () => [];
        const call = await begin(world, PATH);
        await isPaid(world, call);
        const payer = await transferPlainly(world, 7n);
        const { number } = await world.chain.block();
        await world.waitFor(async () => (await seen(world)).final > number, 'it is final');
        await world.waitFor(() => log(world, 'settler').includes('settler.logs_incomplete'), 'it is noticed');
        assert.deepEqual(await classes(world, payer), []);
        world.stub.honest();
        await world.waitFor(async () => (await classes(world, payer))[0] === 'suspense', 'it is found');
    }, 1);

    scenario('D03: null receipts for ever: what came in is read from the logs of its block', {}, async (world) => {
        world.stub.acts.eth_getTransactionReceipt = () => null;
        const payer = await transferPlainly(world, 7n);
        await world.waitFor(async () => (await classes(world, payer))[0] === 'suspense', 'it is found');
        const call = await released(world);
        await submit(world, call.signed.payload);
        await untilMoney(world, call.payer, 'settled');
        assert.deepEqual(await classes(world, call.payer), ['debt']);
    }, 1);
}

// ---- proofs that leave the chain ----

const deep = { network: { finality_blocks: 20 } };

function reorganisations() {
    // Paid; then the block with its proof is removed. Resolves to the call, with the block.
    async function paid(world) {
        const call = await begin(world, PATH);
        await isPaid(world, call);
        return { ...call, ...await orderOf(world, call.payer) };
    }

    async function settledAgain(world, call) {
        const undone = async () => (await undoneOf(world)).map(({ tx, block }) => [tx, block]);
        await world.waitFor(async () => (await undone()).length > 0, 'the proof is undone');
        assert.deepEqual(await undone(), [[call.tx, call.block]]);
        const again = await untilMoney(world, call.payer, 'settled');
        assert.equal(again.status, 'paid');
        assert.notEqual(again.block, call.block);
        const { from, nonce } = call.signed.payload.authorization;
        assert.equal(await world.chain.authorizationState(from, nonce), true);
        assert.deepEqual(await undone(), [[call.tx, call.block]], 'the old fact is kept');
        assert.deepEqual(await classes(world, call.payer), ['sale']);
        assert.ok((await eventsOf(world, call.payer)).includes('proof_undone'));
        const answer = await world.send(call.path, call.signed);
        assert.equal(answer.status, 200, answer.text);
        assert.equal((await world.calls()).length, 1);
    }

    scenario('the block with the proof is gone: unknown again, and settled once more', deep, async (world) => {
        const call = await paid(world);
        await removeFrom(world, call.block, { then: async () => {
            await world.waitFor(async () => (await undoneOf(world)).length > 0, 'the proof is undone');
            assert.equal((await orderOf(world, call.payer)).money, 'sent');
            assert.equal((await publicOrder(world, call.payer)).status, 'settling');
        } });
        await settledAgain(world, call);
        assert.deepEqual((await relayed(world)).map(({ hash }) => hash), [call.tx], 'the same bytes went out again');
    });

    scenario('it happens while the settler is down, and is deep when it comes back',
        { network: { finality_blocks: 4 } }, async (world) => {
            const call = await paid(world);
            await world.stop('settler');
            await removeFrom(world, call.block, { more: 8 });
            await world.restart('settler');
            await settledAgain(world, call);
        });

    scenario('two settlers, and the one without the wallet sees it first', deep, async (world) => {
        const call = await paid(world);
        await world.startRole('settler2');
        await world.waitFor(() => log(world, 'settler2').includes('chain=ok'), 'the second is up');
        await world.waitFor(async () => (await seen(world)).head > call.block, 'it looks');
        process.kill(world.pid('settler'), 'SIGSTOP');
        try {
            await removeFrom(world, call.block);
            await world.waitFor(async () => (await undoneOf(world)).length > 0, 'the second undoes it');
        } finally {
            process.kill(world.pid('settler'), 'SIGCONT');
        }
        await settledAgain(world, call);
    });

    scenario('released, landed, and gone: it is not owed any more, and never sent by us', deep, async (world) => {
        const call = await released(world);
        await submit(world, call.signed.payload);
        await asOwner(world, 'UPDATE authorizations SET next_look = now()');
        const { block } = await untilMoney(world, call.payer, 'settled');
        assert.equal((await orderOf(world, call.payer)).status, 'refund_due');
        await removeFrom(world, block);
        await world.waitFor(async () => (await orderOf(world, call.payer)).money === 'released', 'the proof is undone');
        assert.equal((await publicOrder(world, call.payer)).status, 'not_charged');
        assert.deepEqual((await debtsOf(world, call.payer)).map(({ state }) => state), ['cancelled']);
        await isSeen(world, 12);
        assert.deepEqual(await relayedOf(world, call.payer), []);
        assert.equal(await world.chain.balanceOf(call.payer.address), 1_000_000n);

        const tx = await submit(world, call.signed.payload);
        await asOwner(world, 'UPDATE authorizations SET next_look = now()');
        await untilMoney(world, call.payer, 'settled');
        assert.deepEqual((await debtsOf(world, call.payer)).map((debt) => [debt.state, debt.tx]), [['owed', tx]]);
    });

    // `late`: only until the settler has seen the new head, as a node does that is a little behind the others.
    for (const late of [false, true])
        scenario(`the first of three endpoints ${late ? 'is late to leave' : 'stays with'} the old fork`,
            { network: { finality_blocks: 20, quorum: 2 } }, async (world) => {
                const call = await paid(world);
                const pass = (tag) => world.chain.rpc.call('eth_getBlockByNumber', tag, false);
                const before = async (head) => {
                    const old = new Map();
                    for (let n = call.block; n <= head; n++)
                        old.set(toHex(n), await pass(toHex(n)));
                    world.stub.acts.eth_getBlockByNumber = ([tag]) =>
                        old.get(tag === 'latest' ? toHex(head) : tag) ?? pass(tag);
                };
                await removeFrom(world, call.block, { before, then: async () => {
                    const { hash } = await world.chain.block();
                    await world.waitFor(async () => (await seen(world)).hash === hash, 'the settler sees the new head');
                    if (late)
                        world.stub.honest();
                } });
                await settledAgain(world, call);
            }, 3);
}

// ---- endpoints that lie ----

const brief = {
    name: 'brief', method: 'GET', path: '/test/brief', side_effect: 'read', timeout_ms: 2_000, max_timeout_s: 20,
    prices: [{ network: NETWORK, token: 'USDC', amount: '1000' }],
};
const three = {
    network: { quorum: 2, rpc_timeout_ms: 2_000 },
    beforeConfig: (world) => { world.options.tools = [...world.options.tools, brief]; },
};

// The receipt that a transaction would have, had it been mined in this block.
function forgeReceipt(hash, { from, to, value, nonce }, block) {
    const where = { address: USDC, blockHash: block.hash, blockNumber: toHex(block.number), transactionHash: hash,
        transactionIndex: '0x0', removed: false };
    const logs = [
        { topics: [topic('AuthorizationUsed(address,bytes32)'), pad(from), nonce], data: '0x', logIndex: '0x0',
            ...where },
        { topics: [topic('Transfer(address,address,uint256)'), pad(from), pad(to)], logIndex: '0x1', ...where,
            data: encodeAbiParameters([{ type: 'uint256' }], [BigInt(value)]) },
    ];
    return { ...where, status: '0x1', gasUsed: '0x10000', effectiveGasPrice: '0x1', logs };
}

const forked = async (params, pass) => {
    const block = await pass();
    return block && { ...block, hash: keccak256(block.hash) };
};
const moved = (blocks) => async ([tag, full], pass) => {
    const block = await pass([tag, full]);
    if (tag !== 'latest')
        return block;
    const number = Math.max(0, Number(block.number) + blocks);
    return blocks > 0 ? { ...block, number: toHex(number), hash: keccak256(block.hash) } : pass([toHex(number), full]);
};

function twoOfThreeEndpoints() {
    for (const liar of [0, 2])
        scenario(`a forged receipt, from endpoint ${liar}: nothing is paid by it`, three, async (world) => {
            const held = new Set();
            for (const stub of world.stubs)
                stub.acts.eth_sendRawTransaction = ([raw]) => { held.add(raw); return keccak256(raw); };
            const call = await begin(world, PATH);
            await world.waitFor(() => held.size > 0, 'it is sent');
            const block = await world.chain.block();
            let told = 0;
            world.stubs[liar].acts.eth_getTransactionReceipt = ([hash]) => {
                told++;
                return forgeReceipt(hash, call.signed.payload.authorization, block);
            };
            const end = block.number + 6;
            await world.waitFor(async () => {
                assert.equal((await orderOf(world, call.payer)).status, 'settling');
                return told > 3 && (await world.chain.block()).number >= end;
            }, 'it is told for some blocks');
            assert.match(log(world, 'settler'), /settler\.disagreement .*method=eth_getTransactionReceipt/);
            for (const stub of world.stubs)
                stub.honest();
            await isPaid(world, call);
        }, 3);

    const lies = {
        'another block at each height': { eth_getBlockByNumber: forked },
        'an old head': { eth_getBlockByNumber: moved(-20) },
        'a head that is not there yet': { eth_getBlockByNumber: moved(1_000) },
        'null receipts': { eth_getTransactionReceipt: () => null },
        'pages of HTML': { all: () => HTML },
        'another chain': { all: ({}, pass) => pass(), eth_chainId: () => '0x1' },
        'a balance of nothing': { eth_getBalance: () => '0x0' },
    };
    for (const liar of [0, 2])
        scenario(`endpoint ${liar} lies in every way, and two are enough`, three, async (world) => {
            for (const [name, acts] of Object.entries(lies)) {
                world.stubs[liar].acts = acts;
                await isPaid(world, await begin(world, `${PATH}?${encodeURIComponent(name)}`))
                    .catch((error) => { throw new Error(`it tells ${name}: ${error.message}`); });
                world.stubs[liar].honest();
            }
        }, 3);

    scenario('an account\'s count that is too large, from the first endpoint', three, async (world) => {
        await isPaid(world, await begin(world, `${PATH}?before`));
        world.stub.acts.eth_getTransactionCount = async (params, pass) => toHex(Number(await pass()) + 5);
        await world.restart('settler');
        await isPaid(world, await begin(world, `${PATH}?after`));
    }, 3);

    scenario('one honest endpoint is not enough: unknown, past the deadline too', three, async (world) => {
        await world.waitFor(async () => (await world.sql('SELECT owner FROM relayers')).length > 0, 'a settler is up');
        await setBlockTime(world, 0);
        const call = await begin(world, '/test/brief');
        await untilMoney(world, call.payer, 'sent');
        world.stubs[0].acts = { eth_getBlockByNumber: forked, eth_getTransactionReceipt: () => null,
            eth_getLogs: () => [] };
        world.stubs[1].acts = { all: () => HTML };
        await setBlockTime(world, 1);
        const { dead_after: dead } = await orderOf(world, call.payer);
        await world.waitFor(async () => {
            const order = await publicOrder(world, call.payer);
            assert.equal(order.status, 'settling');
            assert.ok(Date.parse(order.known_by) > Date.now(), `known by ${order.known_by}`);
            return Date.now() / 1000 > dead + 6;
        }, 'its deadline passes');
        const told = await world.send(call.path, call.signed);
        assert.equal(told.status, 409, told.text);
        for (const stub of world.stubs)
            stub.honest();
        await isPaid(world, call);
    }, 3);
}

describe('money that comes in, proofs that leave, endpoints that lie', { concurrency: 4 }, () => {
    whatComesIn();
    reorganisations();
    twoOfThreeEndpoints();
});
