// Public bug reports of systems like ours, each with its right outcome here. Each is named by a test, here or
// elsewhere, or `shown` names the test that shows it.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { relayer } from '../../dev/accounts.mjs';
import { encode, paymentId } from '../lib/payment.mjs';
import { root } from '../lib/paths.mjs';
import { endWorld, freePort, startWorld, testTools } from '../lib/world.mjs';
import { ids, shown } from './lib/cases-shown.mjs';
import { allDecided, audit, relayedOnChain } from './lib/audit.mjs';
import { restartPostgres } from './lib/drill.mjs';
import { Stub, fails, page } from './lib/stub.mjs';

describe('cases that other tests show', () => {
    for (const [id, places] of Object.entries(shown))
        test(`${id}: its tests exist`, () => {
            for (const [file, name] of places) {
                const path = join(root, 'tests', file);
                assert.ok(existsSync(path), `${file} is gone`);
                const text = readFileSync(path, 'utf8');
                const named = file.endsWith('.c') ? `static void ${name}(` : name.replaceAll("'", "\\'");
                assert.ok(text.includes(named) || text.includes(name), `${file} has no test "${name}"`);
            }
        });
});

test('every case has a test', () => {
    const folder = join(root, 'tests');
    const list = (name) => readdirSync(join(folder, name)).map((file) => join(folder, name, file));
    const files = [...list('drills'), ...list('scenarios')].filter((path) => path.endsWith('.test.mjs'));
    const names = new Set(files.flatMap((path) => readFileSync(path, 'utf8').match(/\b[A-N][0-9]{2}\b/g) ?? []));
    const has = (id) => names.has(id) || id in shown;
    assert.deepEqual(ids.filter((id) => !has(id)), [], 'have no test');
    assert.ok(Object.keys(shown).every((id) => ids.includes(id)));
});

describe('cases', () => {
    const tools = testTools.map((tool) => ({ ...tool, timeout_ms: 4_000 }));
    let world, stub, config, n = 0;

    before(async () => {
        world = await startWorld({ tools, roles: [], extra: { wait_ms: 4_000, idle_ms: 600_000 } });
        world.checkBooks = (deadlineMs) => audit(world, deadlineMs);
        stub = await new Stub(world.chain).start(await freePort());
        config = world.writeConfig('stub', world.ports, { network: { rpc: [stub.url], rpc_timeout_ms: 1_500 } });
        await world.startRole('settler', { config });
        await world.startRole('gateway', { config });
    });
    afterEach(async () => {
        stub.hook = null;
        stub.seen = [];
        await world.chain.rpc.call('evm_setIntervalMining', 1);
    });
    after(async () => {
        if (world)
            await endWorld(world);
    });

    const stopMining = () => world.chain.rpc.call('evm_setIntervalMining', 0);
    const goOn = () => world.chain.rpc.call('evm_setIntervalMining', 1);
    const newPath = () => `/test/read?case=${n++}`;

    async function newCall(options = {}) {
        const payer = await world.newPayer();
        const path = newPath();
        return { payer, path, signed: await world.sign(payer, path, options) };
    }

    const send = ({ path, signed }, base) => world.send(path, signed, { base });

    // Never 402 on the way; resolves to the 200.
    const untilPaid = (call, base) => world.waitFor(async () => {
        const answer = await send(call, base);
        assert.notEqual(answer.status, 402, answer.text);
        return answer.status === 200 && answer;
    }, `${call.path} is paid`, 60_000);

    const orderOf = async ({ payer }) => (await world.sql(`SELECT encode(id, 'hex') AS id, status, money, tx, last_hash
        FROM order_status WHERE payer = '\\x${payer.address.slice(2)}'`))[0];

    async function paidOnce({ payer }) {
        assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n - 1_000n);
    }

    async function inFlight(call, base) {
        const answer = await send(call, base);
        assert.equal(answer.status, 409, answer.text);
        assert.equal(answer.json.code, 'payment_in_flight');
        assert.ok(answer.json.order_id && answer.json.poll && answer.json.known_by, answer.text);
        return answer;
    }

    for (const id of ['A01', 'A04', 'A07'])
        test(`${id}: mined only after the request gave up`, async () => {
            await stopMining();
            const call = await newCall();
            await inFlight(call);
            const order = await world.request(`/orders/ord_${(await orderOf(call)).id}`);
            assert.equal(order.json.status, 'settling');
            const { last_hash: hash } = await orderOf(call);
            assert.ok(order.text.includes(hash.slice(2)), 'an unknown names its transaction');
            await goOn();
            await untilPaid(call);
            await paidOnce(call);
            const sent = stub.seen.filter(({ method }) => method === 'eth_sendRawTransaction');
            assert.equal(new Set(sent.map(({ params }) => params[0])).size, 1, 'more than one transaction was sent');
        });

    const badSends = {
        A02: ['the answer to the sending is a page, and it was sent', async (real) => {
            await real();
            throw page();
        }],
        C06: ['"already known" for what is new', async (real) => {
            await real();
            throw fails(-32_000, 'already known');
        }],
        C08: ['a rate limit at the sending', async () => {
            throw fails(-32_016, 'over rate limit');
        }],
        D09: ['a page instead of the sending', async () => {
            throw page();
        }],
    };
    for (const [id, [what, answer]] of Object.entries(badSends))
        test(`${id}: ${what}`, async () => {
            let left = 1;
            const account = await world.sql('SELECT next_nonce FROM relayers');
            stub.hook = (method, params, real) =>
                (method === 'eth_sendRawTransaction' && left-- > 0 ? answer(real) : real());
            const [one, two] = [await newCall(), await newCall()];
            await Promise.all([untilPaid(one), untilPaid(two)]);
            await paidOnce(one);
            await paidOnce(two);
            const [{ next_nonce: next }] = await world.sql('SELECT next_nonce FROM relayers');
            const sent = Number(next) - Number(account[0]?.next_nonce ?? 0);
            assert.ok(sent <= 2, `${sent} account nonces for two payments`);
        });

    const failing = (wanted, times, error) => {
        let left = times;
        return (method, params, real) => {
            if (method === wanted && left-- > 0)
                throw error();
            return real();
        };
    };
    for (const [id, what, error] of [
        ['C01', 'the estimate reverts once', () => fails(3, 'execution reverted')],
        ['E23', 'the estimate knows no header', () => fails(-32_000, 'header not found')],
        ['A16', 'a page once, for the estimate', page],
    ])
        test(`${id}: ${what}`, async () => {
            stub.hook = failing('eth_estimateGas', 1, error);
            const calls = [await newCall(), await newCall(), await newCall()];
            await Promise.all(calls.map((call) => untilPaid(call)));
            for (const call of calls)
                await paidOnce(call);
        });

    for (const [id, what, change] of [
        ['C04', 'the account\'s count comes late', (count, first) => first],
        ['C10', 'the account\'s count is two too small', (count) => `0x${Math.max(0, Number(count) - 2).toString(16)}`],
    ])
        test(`${id}: ${what}`, async () => {
            let first;
            stub.hook = async (method, params, real) => {
                const result = await real();
                if (method !== 'eth_getTransactionCount')
                    return result;
                first ??= result;
                return change(result, first);
            };
            await world.restart('settler');
            for (let i = 0; i < 2; i++) {
                const call = await newCall();
                await untilPaid(call);
                await paidOnce(call);
            }
        });

    test('A03, F17, F18: the same payment again after its reply was lost', async () => {
        const call = await newCall();
        const first = await untilPaid(call);
        const second = await send(call);
        assert.equal(second.status, 200);
        assert.equal(second.text, first.text);
        assert.equal(second.headers['payment-response'] && JSON.parse(Buffer.from(second.headers['payment-response'],
            'base64')).transaction, (await orderOf(call)).tx.replace('\\x', '0x'));
        await paidOnce(call);
    });

    test('A05: nothing is mined: every request ends, and what is free is answered at once', async () => {
        await stopMining();
        const calls = await Promise.all(Array.from({ length: 64 }, () => newCall()));
        const began = Date.now();
        const answers = Promise.all(calls.map((call) => inFlight(call)));
        const free = await world.request('/healthz');
        assert.ok(free.status === 200 && Date.now() - began < 1_000, `${Date.now() - began} ms`);
        await answers;
        assert.ok(Date.now() - began < 15_000, `${Date.now() - began} ms`);
        await goOn();
        await Promise.all(calls.map((call) => untilPaid(call)));
    });

    test('A09: no fault of ours is a 402', async () => {
        const call = await newCall();
        stub.hook = () => {
            throw page();
        };
        const blind = await send(call);
        assert.equal(blind.status, 503, blind.text);
        assert.ok(blind.headers['retry-after'] && blind.json.retry === 'same_payment');
        stub.hook = null;
        const down = restartPostgres(world);
        const answer = await send(call);
        await down;
        assert.ok([200, 409, 503].includes(answer.status), answer.text);
        await untilPaid(call);
        await paidOnce(call);
    });

    test('A15: a pending payment is known to a gateway that was killed, and to another', async () => {
        await stopMining();
        const call = await newCall();
        const first = await inFlight(call);
        await world.kill9('gateway');
        await world.startRole('gateway', { config });
        const other = await world.addGateway(`gateway2`, { network: { rpc: [stub.url] }, extra: { wait_ms: 4_000 } });
        for (const base of [world.gateway, other])
            assert.equal((await inFlight(call, base)).json.order_id, first.json.order_id);
        await goOn();
        await untilPaid(call, other);
        await world.stop('gateway2');
        await paidOnce(call);
    });

    test('A17: the same terms each time', async () => {
        const path = newPath();
        const terms = async () => {
            const { v2 } = await world.challenge(path);
            const { extra, ...rest } = v2.accepts[0];
            return rest;
        };
        assert.deepEqual(await terms(), await terms());
    });

    test('C09: three that are not mined when the settler starts again', async () => {
        await stopMining();
        const calls = [];
        for (let i = 0; i < 3; i++) {
            calls.push(await newCall());
            await inFlight(calls[i]);
        }
        // a raised fee is another hash on the same account nonce, for the same authorizations
        const carried = () => world.sql(`SELECT DISTINCT t.account_nonce, c.authorization_id FROM relay_transactions t
            JOIN relay_calls c ON c.transaction_id = t.id WHERE t.state <> 'dropped' ORDER BY 1, 2`);
        const before = await carried();
        await world.restart('settler');
        calls.push(await newCall());
        await inFlight(calls[3]);
        const later = await carried();
        assert.deepEqual(later.slice(0, before.length), before, 'what was on its way is replaced by something else');
        const carriers = new Set(later.map(({ authorization_id: a }) => a));
        assert.equal(carriers.size, later.length, 'one authorization, two account nonces');
        await goOn();
        await Promise.all(calls.map((call) => untilPaid(call)));
    });

    test('D03: receipts stay null, the logs are there', async () => {
        stub.hook = (method, params, real) => (method === 'eth_getTransactionReceipt' ? null : real());
        const call = await newCall();
        await send(call);
        await world.waitFor(async () => (await orderOf(call))?.money === 'settled', 'it is found by its logs', 60_000);
        await untilPaid(call);
    });

    test('D05: the flag is read late', async () => {
        stub.hook = async (method, params, real) => (method === 'eth_call' && params[0].data?.startsWith('0xe94a0102')
            ? `0x${'00'.repeat(32)}` : real());
        const call = await newCall();
        await untilPaid(call);
        await paidOnce(call);
    });

    test('D08: the account nonce was taken by another transaction', async () => {
        await stopMining();
        const call = await newCall();
        await inFlight(call);
        const { last_hash: hash } = await orderOf(call);
        const lost = hash.replace('\\x', '0x');
        await world.chain.rpc.call('anvil_dropTransaction', lost);
        await world.chain.rpc.call('anvil_impersonateAccount', relayer.address);
        const nonce = await world.chain.rpc.call('eth_getTransactionCount', relayer.address, 'latest');
        await world.chain.rpc.call('eth_sendTransaction',
            { from: relayer.address, to: relayer.address, nonce, gas: '0x5208' });
        await world.chain.mine();
        await world.chain.rpc.call('anvil_stopImpersonatingAccount', relayer.address);
        await goOn();
        await untilPaid(call);
        await paidOnce(call);
        const rows = await world.sql('SELECT hash FROM relay_transactions');
        const stored = rows.map((row) => row.hash.replace('\\x', '0x'));
        const foreign = (await relayedOnChain(world)).filter((tx) => !stored.includes(tx));
        assert.equal(foreign.length, 1);
        world.checkBooks = (deadlineMs) => audit(world, deadlineMs, { foreign });
    });

    test('F03: one authorization in other spellings is one payment', async () => {
        const call = await newCall();
        await untilPaid(call);
        const value = JSON.parse(Buffer.from(call.signed.headers['payment-signature'], 'base64'));
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        const more = { ...value, x: 1 };
        for (const text of [JSON.stringify(value, null, 2), JSON.stringify(reversed), JSON.stringify(more)]) {
            const answer = await send({ ...call, signed: { headers: { 'payment-signature': encode(text) } } });
            assert.ok(answer.status === 200 || answer.status === 400, answer.text);
        }
        const orders = await world.sql(`SELECT id FROM orders WHERE payer = '\\x${call.payer.address.slice(2)}'`);
        assert.equal(orders.length, 1);
        await paidOnce(call);
    });

    test('F06: known after a restart', async () => {
        const call = await newCall();
        await untilPaid(call);
        await world.restart('gateway');
        assert.equal((await send(call)).status, 200);
        await paidOnce(call);
    });

    test('F22: one payment id of two payers: the second is told, and nothing changes', async () => {
        const id = paymentId();
        const [one, two] = [await newCall({ id }), await newCall({ id })];
        await untilPaid(one);
        const answer = await send(two);
        assert.equal(answer.status, 409, answer.text);
        assert.equal(answer.json.code, 'payment_conflict');
        assert.equal(answer.json.reason, 'payer');
        assert.equal(answer.json.order_id, undefined);
        assert.equal(await world.chain.balanceOf(two.payer.address), 1_000_000n);
    });

    test('H01: one payment id for two requests', async () => {
        const id = paymentId();
        const payer = await world.newPayer();
        const one = { payer, path: newPath() };
        one.signed = await world.sign(payer, one.path, { id });
        await untilPaid(one);
        const two = { payer, path: newPath() };
        two.signed = await world.sign(payer, two.path, { id });
        const answer = await send(two);
        assert.equal(answer.status, 409, answer.text);
        assert.equal(answer.json.reason, 'request');
        await paidOnce(one);
    });

    test('all of them are decided', () => allDecided(world));
});
