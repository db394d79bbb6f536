// The stock MPP client, told nothing but its key, where its payment comes late: it pays once and is served, or what it paid is owed
// back, one debt a transfer.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { ALPHA_USD } from '../../dev/tempo.mjs';
import { CUT } from '../lib/edge.mjs';
import { bytea } from '../lib/ledger.mjs';
import { Faults, PATH, buy, challengeIn, noChallenge, present, runs, served } from '../lib/mpp-faults.mjs';
import { endsAs, mppPrice, mppTools, paidBy, quarterLater } from '../lib/tempo.mjs';
import { testTools } from '../lib/world.mjs';

// The very credential again, until it is decided; nothing before that may be paid on.
const untilDecided = (world, base, path, call) => world.waitFor(async () => {
    const one = await present(world, base, path, call.headers);
    return one.status !== 503 && one;
}, `${path} is decided`);

const isProven = (world, payer) => world.waitFor(async () =>
    (await world.sql(`SELECT 1 FROM order_books WHERE tx IS NOT NULL AND payer = ${bytea(payer.address)}`)).length === 1, 'its money is proven');

// A broadcast that is never answered and reaches no node, until the test is at it; `raw` is what was to be sent.
function hanging(node) {
    const sent = {};
    node.acts.eth_sendRawTransaction = ([raw]) => {
        sent.raw = raw;
        return new Promise(() => {});
    };
    return sent;
}

describe('MPP, late', () => {
    const faults = new Faults();
    const fault = faults.fault.bind(faults);

    fault('L1 presented after the challenge expired', (world, mode, payer) => faults.withGateway({ quote_ttl_s: 10 }, async (short) => {
        const slow = await faults.edge(async (call, pass) => {
            if (call.turn === 1)
                await world.waitFor(() => Date.parse(challengeIn(call).expires) + 1000 < Date.now(), 'it has expired');
            return pass();
        }, short);
        served(await buy(world, payer, mode, slow.url, faults.path()));
        // Pushed, it was the price. Not sent yet, it never will be, and only then is money asked for anew.
        assert.deepEqual(slow.seen.map(({ status }) => status), mode === 'push' ? [402, 200] : [402, 402, 200]);
        await endsAs(world, payer, 1, []);
    }));

    fault('L2 never presented: the client dies behind its broadcast', async (world, mode, payer) => {
        const dead = await faults.edge(async (call, pass) => call.paid ? CUT : pass());
        await assert.rejects(buy(world, payer, mode, dead.url, faults.path()));
        assert.equal(dead.paid.length, 1);
        if (mode === 'push')
            await quarterLater(world, payer);
        await endsAs(world, payer, 0, mode === 'push' ? ['unclaimed'] : []);
    });

    fault('L3 the broadcast times out and lands when we have given up', (world, mode, payer) => faults.withGateway({ wait_ms: 1500 }, async (short) => {
        const sent = hanging(faults.node);
        const watched = await faults.edge(undefined, short);
        const path = faults.path();
        noChallenge(await buy(world, payer, mode, watched.url, path), 503, 'payment_pending');
        await world.waitFor(() => sent.raw, 'it was to be sent');
        faults.node.honest();
        await world.tempo.rpc.call('eth_sendRawTransaction', sent.raw).catch(() => {}); // ours may have come first
        const answer = await untilDecided(world, short, path, watched.paid[0]);
        assert.equal(answer.status, 200, answer.text);
        await endsAs(world, payer, 1, []);
    }), ['pull']);

    fault('L3 the same, and its client never comes again, but buys anew', (world, mode, payer) => faults.withGateway({ wait_ms: 1500 }, async (short) => {
        const sent = hanging(faults.node);
        noChallenge(await buy(world, payer, mode, short, faults.path()), 503, 'payment_pending');
        await world.waitFor(() => sent.raw, 'it was to be sent');
        faults.node.honest();
        await world.tempo.rpc.call('eth_sendRawTransaction', sent.raw).catch(() => {});
        await isProven(world, payer);
        await quarterLater(world, payer);
        await endsAs(world, payer, 0, ['work_failed']);
        served(await buy(world, payer, mode, world.gateway, faults.path()));
        await endsAs(world, payer, 1, ['work_failed']);
    }), ['pull']);

    fault('L4 the settler is killed between broadcast and recording', async (world, mode, payer) => {
        let again;
        const kill = async (result) => {
            await world.kill9('settler');
            again = world.startRole('settler');
            return result;
        };
        faults.node.acts.eth_sendRawTransaction = async (params, pass) => {
            const result = await pass();
            return again ? result : kill(result);
        };
        faults.node.acts.eth_getTransactionReceipt = async ([hash], pass) => {
            const result = await pass();
            const isKept = mode === 'push' && !again && (await world.sql(`SELECT 1 FROM charges WHERE tx = ${bytea(hash)}`)).length > 0;
            return isKept && !again ? kill(result) : result;
        };
        served(await buy(world, payer, mode, world.gateway, faults.path()));
        await again;
        assert.ok(again, 'it was never killed');
        await endsAs(world, payer, 1, []);
    });

    fault('L5 our node does not see the receipt yet, for a moment', async (world, mode, payer) => {
        const from = Date.now();
        faults.node.acts.eth_getTransactionReceipt = (params, pass) => Date.now() - from < 2_500 ? null : pass();
        served(await buy(world, payer, mode, world.gateway, faults.path()));
        await endsAs(world, payer, 1, []);
    });

    for (const [what, dark] of [['does not see the receipt', { eth_getTransactionReceipt: () => null }], ['cannot be asked at all', { all: () => CUT }]])
        fault(`L5 our node ${what} for longer than a client waits`, (world, mode, payer) => faults.withGateway({ wait_ms: 1500 }, async (short) => {
            const watched = await faults.edge((call, pass) => {
                if (call.turn === 1)
                    Object.assign(faults.node.acts, dark);
                return pass();
            }, short);
            const path = faults.path();
            const answer = await buy(world, payer, mode, watched.url, path);
            assert.equal(answer.status, 503, answer.text);
            noChallenge(answer, 503, JSON.parse(answer.text).code);
            assert.ok(answer.headers.get('retry-after'));
            faults.node.honest();
            const last = await untilDecided(world, short, path, watched.paid[0]);
            assert.equal(last.status, 200, last.text);
            await endsAs(world, payer, 1, []);
        }));

    fault('L6 the price changed between challenge and presentation', (world, mode, payer) => {
        const tools = [...testTools, ...mppTools].map((tool) => ({
            upstream: world.upstream, ...tool, ...(tool.path === PATH && { prices: [mppPrice('999')] }),
        }));
        return faults.withGateway({ tools }, async (dearer) => {
            const deploying = await faults.edge((call, pass) => pass(call.paid ? dearer : world.gateway));
            served(await buy(world, payer, mode, deploying.url, faults.path()));
            const { transfers } = await endsAs(world, payer, 1, []);
            assert.deepEqual(transfers.map(({ amount }) => amount), [250n]);
        });
    });

    fault('L7 the work fails behind the money', async (world, mode, payer) => {
        const path = `${faults.path()}&status=500`;
        const { refunds } = noChallenge(await buy(world, payer, mode, world.gateway, path), 502, 'work_failed_paid');
        assert.deepEqual(refunds.map(({ cause, amount }) => [cause, amount]), [['work_failed', '250']]);
        const { debts } = await endsAs(world, payer, 0, ['work_failed']);
        assert.equal(refunds[0].debt, debts[0].id);
    });

    fault('L7 the gateway is killed at the work', async (world, mode, payer) => {
        const path = `${faults.path()}&hold=1`;
        const dying = await faults.edge((call, pass) => pass().catch(() => CUT));
        const outcome = assert.rejects(buy(world, payer, mode, dying.url, path));
        await world.waitFor(async () => await runs(world, path) === 1, 'the work is at the upstream');
        await world.kill9('gateway');
        await world.startRole('gateway');
        await outcome;
        await world.letGo();
        await world.waitFor(async () => await runs(world, path) === 2 || (await present(world, world.gateway, path, dying.paid[0].headers,
            { signal: AbortSignal.timeout(500) }).catch(() => null))?.status === 200, 'it runs anew', 60_000);
        await world.letGo().catch(() => {});
        const last = await untilDecided(world, world.gateway, path, dying.paid[0]);
        assert.equal(last.status, 200, last.text);
        await endsAs(world, payer, 1, []);
    });

    // The stock client pays what it is asked for; somebody in the middle alters what that is. The challenge is not ours then, but its
    // memo says that it was made from one.
    const altered = [
        ['one unit more', (request) => ({ ...request, amount: String(BigInt(request.amount) + 1n) })],
        ['one unit less', (request) => ({ ...request, amount: String(BigInt(request.amount) - 1n) })],
        ['another token', (request) => ({ ...request, currency: ALPHA_USD })],
    ];
    const alter = (answer, change) => {
        const text = answer.headers['www-authenticate'];
        answer.headers['www-authenticate'] = text.replace(/request="([^"]+)"/, (_, request) => {
            const changed = change(JSON.parse(Buffer.from(request, 'base64url').toString('utf8')));
            return `request="${Buffer.from(JSON.stringify(changed)).toString('base64url')}"`;
        });
        return answer;
    };
    for (const [name, change] of altered)
        fault(`L8 the challenge was altered on its way: ${name}`, async (world, mode, payer) => {
            await world.tempo.fund(payer.address, 1_000_000n, ALPHA_USD); // its fee is paid in it, too
            const middleman = await faults.edge(async (call, pass) => call.turn === 0 ? alter(await pass(), change) : pass());
            served(await buy(world, payer, mode, middleman.url, faults.path()));
            if (mode === 'push')
                await quarterLater(world, payer);
            await endsAs(world, payer, 1, mode === 'push' ? ['unclaimed'] : []);
            assert.equal((await paidBy(world, payer)).length, mode === 'push' ? 2 : 1);
        });
});
