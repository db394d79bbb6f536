// From the first version that had users to today's: its database (a dump with six orders) and its chain, as its own programs left
// them, in tests/upgrade. Nothing is lost, what was open goes on, and a new payment is sold beside the old ones.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../../dev/process.mjs';
import { secretFile } from '../../dev/place.mjs';
import { begin, bytea, debtsOf, isPaid } from '../lib/ledger.mjs';
import { root } from '../lib/paths.mjs';
import { ownerOf, psql } from '../lib/psql.mjs';
import { booksAgree } from '../lib/refunds.mjs';
import { World, endWorld } from '../lib/world.mjs';

const landed = join(root, 'tests/upgrade');
const { calls, statuses, counts, genesis_time: genesisTime, quote_key: quoteKey } =
    JSON.parse(readFileSync(join(landed, 'landed.json'), 'utf8'));

// Today's programs, without roles yet, on the chain of then and the dump of then.
async function asItWas(world) {
    const dir = join(world.dir, 'chain');
    mkdirSync(dir);
    copyFileSync(join(landed, 'chain.json'), join(dir, 'chain.json'));
    writeFileSync(join(dir, 'genesis-time'), genesisTime);
    secretFile(join(world.dir, 'quote'), quoteKey.trim());
    await world.start();
    const dump = join(landed, 'landed.sql');
    await psql(ownerOf(world.conninfo), 'DROP SCHEMA payonce CASCADE');
    const { code, stderr } = await run('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', dump, '-d', ownerOf(world.conninfo)]);
    assert.equal(code, 0, stderr);
}

const statusesOf = (world) => world.sql(`SELECT encode(id, 'hex') AS id, status, money, work FROM order_status ORDER BY id`);
const statusOf = async (world, { payer }) =>
    (await world.sql(`SELECT status FROM order_status WHERE payer = ${bytea(payer)}`))[0].status;
const again = (world, { path, method, body, headers }) => world.request(path, { method, body, headers });

test('a database of the version that landed: kept whole, and it goes on', { timeout: 400_000 }, async () => {
    const world = new World({ roles: [] });
    world.checkBooks = () => {}; // the auditor compares below, what was owed and in suspense too
    try {
        await asItWas(world);
        const { code, stdout, stderr } = await world.payonce(['migrate']);
        assert.equal(code, 0, stderr);
        assert.match(stdout, /the database is at version (\d+)/);
        assert.ok(Number(stdout.match(/version (\d+)/)[1]) >= 7);
        for (const [table, count] of Object.entries(counts))
            assert.deepEqual(await world.sql(`SELECT count(*)::int AS count FROM ${table}`), [{ count }], table);
        assert.deepEqual(await statusesOf(world), statuses);
        assert.match((await world.payonce(['migrate'])).stdout, /the database is at version/, 'a second time');

        await world.startRole('settler');
        await world.startRole('gateway');
        // accepted, never sent, and too old by now: told to have died only by a final block
        await world.waitFor(async () => await statusOf(world, calls.due) === 'unpaid', 'the one that was due is proven dead');
        for (const call of [calls.paid, calls.write])
            assert.equal(await statusOf(world, call), 'paid');
        const [debt] = await debtsOf(world, { address: calls.late.payer });
        assert.deepEqual([debt.cause, debt.state, debt.amount], ['late', 'owed', '1000']);

        for (const { id } of statuses) {
            const story = await world.payonce(['explain', `ord_${id}`, '--json']);
            assert.equal(story.code, 0, story.stderr);
            assert.equal(JSON.parse(story.stdout).orders[0].events_broken, 0, 'its chain of hashes holds');
            const order = await world.request(`/orders/ord_${id}`);
            assert.equal(order.status, 200, order.text);
            assert.equal((await world.request(new URL(order.json.receipt).pathname)).status, 200);
        }
        const lost = statuses.find(({ work }) => work === 'lost');
        const review = await world.payonce(['review', 'resolve', `ord_${lost.id}`, 'failed', '--note', 'it never came']);
        assert.equal(review.code, 0, review.stderr);

        // what was paid for then is not sold again, and nothing of then runs again
        for (const call of [calls.paid, calls.write]) {
            const answer = await again(world, call);
            assert.ok(answer.status !== 402, `${answer.status} ${answer.text}`);
            if (answer.status === 200)
                assert.equal(JSON.parse(answer.text).target, call.path);
        }
        assert.deepEqual(await world.calls(), []);
        await isPaid(world, await begin(world, '/test/read?new'));
        await booksAgree(world);
        assert.equal((await world.payonce(['doctor'])).code, 0);
        await endWorld(world);
    } catch (error) {
        world.dumpLogs();
        await world.close().catch((trouble) => process.stderr.write(`${trouble.message}\n`));
        throw error;
    }
});
