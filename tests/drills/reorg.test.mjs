// A proof that leaves the chain is none: its authorization is under way again, is mined again or ends, and what is told
// of the order follows.
import assert from 'node:assert/strict';
import { allDecided } from './lib/audit.mjs';
import { drill, long, sideBySide } from './lib/drill.mjs';
import { spendAll } from './lib/payer.mjs';
import { testTools } from '../lib/world.mjs';

const ROUNDS = long ? 10 : 3;
const DEEPEST = 5;
const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 3_000, max_timeout_s: 40 }));
// final is far behind, as on a public chain: what is shallow can go
const options = { tools, network: { finality_blocks: 12 }, extra: { wait_ms: 15_000 } };

const receiptOf = async (world, id) => (await world.request(`/receipts/${id}`)).json;

async function orders(world) {
    return world.sql(`SELECT encode(o.id, 'hex') AS id, encode(o.receipt, 'hex') AS receipt, s.status, s.money, s.tx,
        s.block_hash, encode(o.payer, 'hex') AS payer
        FROM orders o JOIN order_status s ON s.id = o.id ORDER BY o.created_at`);
}

// What they have is too deep to be taken back.
async function buy(world, n) {
    const payers = await world.newPayers(n);
    await world.chain.mine(DEEPEST + 1);
    const answers = await Promise.all(payers.map((payer, i) =>
        world.pay(payer, `/test/read?payer=${payer.address}&i=${i}`)));
    for (const answer of answers)
        assert.equal(answer.status, 200, answer.text);
    return payers.map((payer, i) => ({ payer, answer: answers[i] }));
}

const minedAgain = async (world, chance) => {
    let undone = 0;
    for (let round = 0; round < ROUNDS; round++) {
        const bought = await buy(world, chance.between(1, 6));
        const before = await orders(world);
        const depth = chance.between(1, DEEPEST);
        await world.chain.reorg(depth);
        const gone = [];
        for (const order of before.filter(({ tx }) => tx)) {
            const receipt = await world.chain.rpc.call('eth_getTransactionReceipt', order.tx.replace('\\x', '0x'));
            if (!receipt || receipt.blockHash !== order.block_hash.replace('\\x', '0x'))
                gone.push(order);
        }
        undone += gone.length;
        await world.waitFor(async () => {
            const after = await orders(world);
            return gone.every(({ id, block_hash: hash }) => after.some((order) =>
                order.id === id && order.block_hash !== hash && order.status === 'paid'));
        }, `${gone.length} orders are paid again in other blocks (depth ${depth})`, 60_000);
        for (const { id, receipt, tx, block_hash: hash } of gone) {
            const now = await receiptOf(world, `rct_${receipt}`).catch(() => null);
            assert.ok(now, `the receipt of ${id} is gone`);
            assert.ok(!JSON.stringify(now).includes(hash.slice(2)), `the receipt of ${id} names a lost block: ${tx}`);
        }
        for (const { payer } of bought)
            assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n - 1_000n);
    }
    await allDecided(world);
    const kept = await world.sql('SELECT count(*)::int AS n FROM undone_proofs');
    assert.ok(kept[0].n >= undone, `${undone} proofs were undone, ${kept[0].n} are remembered`);
    return { rounds: ROUNDS, undone };
};

const endsUnpaid = async (world) => {
    const [{ payer, answer }] = await buy(world, 1);
    await world.stop('settler');
    await world.chain.rpc.call('evm_setIntervalMining', 0);
    const { number } = await world.chain.block();
    const [order] = await orders(world);
    const { blockNumber } = await world.chain.receipt(order.tx.replace('\\x', '0x'));
    await world.chain.reorg(number - Number(blockNumber) + 1);
    await spendAll(world, payer);
    await world.chain.rpc.call('evm_setIntervalMining', 1);
    await world.startRole('settler');
    await world.waitFor(async () => (await orders(world))[0].status === 'settling', 'the proof is withdrawn', 30_000);
    const told = await world.request(`/orders/ord_${order.id}`);
    assert.equal(told.json.status, 'settling');
    assert.ok(told.json.known_by, 'an unknown says by when it is known');
    const again = await world.send(answer.signed.required.resource.url.replace(world.gateway, ''), answer.signed);
    assert.notEqual(again.status, 402, 'a new price while the old payment may still be mined');
    await world.waitFor(async () => (await orders(world))[0].status === 'unpaid', 'it is proven dead', 120_000);
    return { withdrawn: 1 };
};

sideBySide('reorg', () => {
    drill('reorg: what was paid is mined again', options, minedAgain);
    drill('reorg: what cannot be mined again ends unpaid', options, endsUnpaid);
});
