// The books of a day with sales, debts and gas: reconciled, exported, audited; and each planted error is found.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { run } from '../../dev/process.mjs';
import { isSound, looks, openBrowser } from '../lib/browser.mjs';
import { asOwner, begin, isPaid, submit } from '../lib/ledger.mjs';
import { paymentId } from '../lib/payment.mjs';
import { booksAgree, late, liability, policy, refundWallet, refunding, untilDebt } from '../lib/refunds.mjs';
import { endWorld, startWorld } from '../lib/world.mjs';

let world;

// The journal is a table that nobody may change: who plants an error must first take its triggers off.
const plant = (text) => asOwner(world, `SET session_replication_role = replica; ${text}`);

async function audit() {
    const { code, stdout, stderr } = await world.payonce(['auditor', '--once', '--json']);
    assert.ok(code === 0 || stdout, stderr);
    return { code, found: Object.values(JSON.parse(stdout)).flat() };
}

before(async () => {
    world = await startWorld(refunding({ refunds: policy({ mode: 'automatic' }) }));
    for (let i = 0; i < 3; i++)
        await isPaid(world, await begin(world, '/test/read'));
    const { payer } = await late(world);
    const id = paymentId();
    const first = await begin(world, '/test/read', { id });
    await isPaid(world, first);
    const second = await begin(world, '/test/read', { payer: first.payer, id });
    await second.answer;
    await submit(world, second.signed.payload);
    await untilDebt(world, payer, 'refunded');
    await untilDebt(world, first.payer, 'refunded');
    await booksAgree(world);
}, { timeout: 300_000 });
after(() => world && endWorld(world), { timeout: 300_000 });

const exported = async (format, ...more) => {
    const { code, stdout, stderr } = await world.payonce(['export', '--format', format, ...more]);
    assert.equal(code, 0, stderr);
    return stdout;
};

describe('books', () => {
    test('every entry sums to zero, nothing is owed, and the balances are the chain\'s', async () => {
        assert.equal(await liability(world), 0n);
        const [{ sum }] = await world.sql('SELECT sum(amount)::text AS sum FROM postings');
        assert.equal(sum, '0');
        const { stdout } = await world.payonce(['ledger', 'balance']);
        const balance = (name) => BigInt(stdout.split('\n').find((line) => line.includes(name)).trim().split(/\s+/)[2]);
        assert.equal(balance('assets:wallet:'), await world.chain.balanceOf(world.payTo));
        assert.equal(balance('assets:refund-wallet:'), await world.chain.balanceOf(refundWallet.address));
        assert.equal(balance('income:sales'), -4_000n);
        assert.ok(balance('expenses:gas') > 0n);
    });

    test('hledger accepts the whole of it', async () => {
        const path = join(world.dir, 'payonce.journal');
        writeFileSync(path, await exported('hledger'));
        const check = await run('hledger', ['-f', path, 'check', 'accounts', 'commodities', 'ordereddates', 'balancednoautoconversion']);
        assert.equal(check.code, 0, check.stderr + check.stdout);
        const { stdout } = await run('hledger', ['-f', path, 'balance', 'income:sales', '-N']);
        assert.match(stdout, /-0\.004000/);
        const { code, stdout: all } = await run('hledger', ['-f', path, 'balance', '-E', '--depth', '1']);
        assert.equal(code, 0);
        assert.match(all.trim().split('\n').at(-1), /^\s*0\s*$/);
    });

    test('CSV: minor units, a trailer that adds up, the same bytes twice', async () => {
        const text = await exported('csv');
        assert.equal((await exported('csv')).replace(/^(closing|sum|count),[^,]*/gm, '$1'),
            text.replace(/^(closing|sum|count),[^,]*/gm, '$1'));
        assert.ok(text.split('\n').slice(0, -1).every((line) => line.endsWith('\r')));
        const rows = text.trim().split('\r\n').map((line) => line.split(','));
        const postings = rows.filter(([record]) => record === 'posting');
        assert.equal(Number(rows.at(-1)[11]), postings.length);
        const usdc = postings.filter((row) => row[9] === 'USDC');
        for (const [side, isOn] of [['debits', (n) => n > 0n], ['credits', (n) => n < 0n]]) {
            const expected = usdc.map((row) => BigInt(row[11])).filter(isOn).reduce((a, b) => a + b, 0n);
            const sum = rows.find((row) => row[0] === 'sum' && row[6] === side && row[8] === usdc[0][8]);
            assert.equal(BigInt(sum[11]), expected, side);
        }
        assert.ok(usdc.every((row) => row[10] === '6' && /^\d{4}-\d\d-\d\dT/.test(row[1])));
        const paid = rows.filter(([record]) => record === 'closing').find((row) => row[7] === 'income:sales');
        assert.equal(paid[11], '-4000');
    });

    // RFC 4180, strictly: what is quoted may hold anything, what is not holds no quote and no line end.
    function records(text) {
        const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/y;
        const rows = [[]];
        for (let at = 0; at < text.length; at = field.lastIndex) {
            const [, value, end] = field.exec(text) ?? assert.fail(`not RFC 4180 at ${at}: ${text.slice(at, at + 40)}`);
            rows.at(-1).push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value);
            if (end !== ',')
                rows.push([]);
        }
        return rows.slice(0, -1);
    }

    test('CSV: RFC 4180; each event names its source; the closing balances of a period are the opening ones of the next', async () => {
        const [head, ...rows] = records(await exported('csv'));
        assert.ok(rows.every((row) => row.length === head.length), 'a row has more or fewer fields than the head');
        const column = (row, name) => row[head.indexOf(name)];
        const sales = rows.filter((row) => row[0] === 'posting' && column(row, 'what') === 'sale');
        assert.ok(sales.length > 0 && sales.every((row) => /^0x[0-9a-f]{64}$/.test(column(row, 'transaction'))
            && column(row, 'receipt').startsWith(`${world.gateway}/receipts/rcp_`)));
        const times = [...new Set(rows.filter(([record]) => record === 'posting').map((row) => column(row, 'time')))];
        const middle = times[Math.floor(times.length / 2)];
        assert.ok(times.length > 2 && times.every((time) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(time)));
        const balances = (text, record) => records(text).filter((row) => row[0] === record && column(row, 'amount') !== '0')
            .map((row) => ['network', 'account', 'asset', 'amount'].map((name) => column(row, name)).join(' ')).sort();
        const before = balances(await exported('csv', '--until', middle), 'closing');
        assert.ok(before.length > 2);
        const after = await exported('csv', '--from', middle);
        assert.deepEqual(balances(after, 'opening'), before);
        assert.deepEqual(balances(after, 'closing'), balances(await exported('csv'), 'closing'));
    });

    test('JSON lines: each entry balances, and names its source', async () => {
        const entries = (await exported('jsonl')).trim().split('\n').map((line) => JSON.parse(line));
        assert.ok(entries.length > 8);
        for (const { postings } of entries)
            assert.equal(postings.reduce((sum, { amount }) => sum + BigInt(amount), 0n), 0n);
        assert.ok(entries.filter(({ what }) => what === 'sale').every(({ receipt, transaction }) => receipt && transaction));
        const later = await exported('jsonl', '--from', '2990-01-01');
        assert.equal(later, '');
        assert.equal((await world.payonce(['export', '--format', 'xml'])).code, 2);
    });

    test('reconcile tells a block that is not booked, and a difference by its exit status', async () => {
        assert.equal((await world.payonce(['reconcile', '--at', '999999999'])).code, 1);
        const { stdout } = await world.payonce(['reconcile', '--json']);
        const report = JSON.parse(stdout);
        assert.equal(report.differences.length, 0);
        assert.ok(report.wallets.every(({ closing, on_chain: chain, account }) => closing === chain || account.includes('gas')));
        assert.match((await world.payonce(['reconcile', '--csv'])).stdout, /^network,block,account,asset/);
    });

    test('the report as a page, in a browser: no violation, nothing from elsewhere, nothing too wide', { timeout: 300_000 }, async () => {
        const url = `http://127.0.0.1:${world.ports.admin}/reconciliation`;
        const browser = await openBrowser();
        try {
            for (const look of looks)
                await isSound(browser, url, 'reconciliation', look, async (page) => {
                    assert.match(await page.textContent('main'), /No difference/);
                    assert.match(await page.textContent('thead'), /On chain/);
                });
        } finally {
            await browser.close();
        }
        const csp = (await fetch(url, { headers: { accept: 'text/html' } })).headers.get('content-security-policy');
        assert.match(csp, /default-src 'none'/);
        assert.doesNotMatch(csp, /unsafe/);
    });

    test('a person corrects: by one more entry, once, with a reason and a name', async () => {
        const correct = async (amount, debit, credit, note, asset = 'USDC') => {
            const args = ['--asset', asset, '--amount', amount, '--debit', debit, '--credit', credit, '--note', note];
            const { code, stdout, stderr } = await world.payonce(['ledger', 'correct', ...args]);
            return { code, text: stdout + stderr };
        };
        const why = 'a test sale, "written off"';
        assert.match((await correct('500', 'expenses:write-offs', 'income:sales', why)).text, /^entry \d+\n$/);
        assert.match((await correct('500', 'expenses:write-offs', 'income:sales', why)).text, /booked before/);
        const register = (await world.payonce(['ledger', 'register', '--account', 'expenses:write-offs'])).stdout;
        assert.match(register, /^\S+ +\d+ correction +by a person +500 USDC/);
        assert.equal(register.trim().split('\n').length, 1);
        assert.ok((await exported('csv')).includes('"a test sale, ""written off""",operator:'));
        assert.match(await exported('hledger'), /; actor:operator:\w+\n +; reason:a test sale, "written off"\n/);
        const entries = (await exported('jsonl')).trim().split('\n').map((line) => JSON.parse(line));
        assert.equal(entries.filter(({ reason }) => reason === why).length, 1);
        assert.equal((await world.payonce(['reconcile'])).code, 0);
        assert.equal((await audit()).code, 0);
        for (const [words, ...args] of [[/no such account/, '5', 'assets:nowhere', 'income:sales', 'x'],
            [/no such account/, '5', 'expenses:Bad Name', 'income:sales', 'x'], [/two accounts/, '5', 'income:sales', 'income:sales', 'x'],
            [/no such asset/, '5', 'income:sales', 'expenses:gas', 'x', 'EURC'], [/two accounts/, '0', 'income:sales', 'expenses:gas', 'x']]) {
            const { code, text } = await correct(...args);
            assert.equal(code, 1);
            assert.match(text, words);
        }
        assert.equal((await correct('5', 'income:sales', 'expenses:gas', 'two\nlines')).code, 2);

        // what no longer agrees with the chain is a difference, until it is corrected back
        const wallet = `assets:refund-wallet:${refundWallet.address.toLowerCase()}`;
        assert.equal((await correct('7', wallet, 'equity:funding', 'a mistake')).code, 0);
        // it stands at the newest final block, which the books reach a moment later
        const becomes = (code) => world.waitFor(async () => (await world.payonce(['reconcile'])).code === code
            && (await audit()).code === code, `reconcile and auditor end with ${code}`, 30_000);
        await becomes(1);
        assert.equal((await correct('7', 'equity:funding', wallet, 'the mistake undone')).code, 0);
        await becomes(0);
    });

    test('nobody changes the journal: not the settler\'s role, not its owner', async () => {
        for (const text of ['UPDATE postings SET amount = amount + 1', 'DELETE FROM entries'])
            await assert.rejects(asOwner(world, text), /a correction is an entry/);
        const unbalanced = `INSERT INTO postings SELECT e.id, a.id, 5 FROM entries e, accounts a
            WHERE NOT EXISTS (SELECT 1 FROM postings p WHERE p.entry_id = e.id AND p.account_id = a.id) LIMIT 1`;
        await assert.rejects(asOwner(world, unbalanced), /does not sum to zero/);
    });
});

// ---- planted errors; each is undone before the next ----

const sale = "(SELECT min(id) FROM entries WHERE kind = 'receipt' AND what = 'sale')";
const plants = [
    ['missing entry', `DELETE FROM postings WHERE entry_id = ${sale}; DELETE FROM entries WHERE id = ${sale}`],
    ['wrong amount', `UPDATE postings SET amount = amount * 2 WHERE entry_id = ${sale}`],
    ['edited row', `UPDATE entries SET what = 'debt' WHERE id = ${sale}`],
    ['edited row', 'UPDATE debts SET amount = amount + 500'],
    ['wrong account', `UPDATE postings SET account_id = (SELECT id FROM accounts WHERE name = 'liabilities:refunds-owed')
        WHERE entry_id = ${sale} AND amount < 0`],
    ['doubled refund', `DROP INDEX entries_payout; DROP INDEX entries_source;
        INSERT INTO entries (network, kind, what, block, block_time, tx, log_index, debt_id, digest)
        SELECT network, kind, what, block, block_time, tx, log_index, debt_id, digest FROM entries WHERE what = 'payout' LIMIT 1;
        INSERT INTO postings SELECT (SELECT max(id) FROM entries), account_id, amount FROM postings
         WHERE entry_id = (SELECT min(id) FROM entries WHERE what = 'payout')`],
    ['refund without a debt', "UPDATE entries SET debt_id = decode(repeat('ab', 32), 'hex') WHERE what = 'payout'"],
    ['unbalanced', `DELETE FROM postings WHERE entry_id = ${sale} AND amount < 0`],
];

// What `look` resolves to while it is planted; then all is as it was.
async function planted(text, look) {
    await world.stop('settler');
    await asOwner(world, `DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept; CREATE TABLE kept.entries AS TABLE payonce.entries;
        CREATE TABLE kept.postings AS TABLE payonce.postings; CREATE TABLE kept.debts AS TABLE payonce.debts`);
    await plant(text);
    try {
        return await look();
    } finally {
        await plant(`DELETE FROM postings; DELETE FROM entries; INSERT INTO entries OVERRIDING SYSTEM VALUE SELECT * FROM kept.entries;
            INSERT INTO postings SELECT * FROM kept.postings; UPDATE debts d SET amount = k.amount, state = k.state, refund_tx = k.refund_tx
              FROM kept.debts k WHERE k.id = d.id`);
    }
}

describe('reconcile finds', () => {
    const reconciled = async () => {
        const { code, stdout } = await world.payonce(['reconcile', '--json']);
        return { code, differences: JSON.parse(stdout).differences };
    };
    for (const [what, owner, text] of [
        ['liabilities:refunds-owed', 'finance', "UPDATE debts SET state = 'owed', refund_tx = NULL"],
        ['trial balance', 'operator', `DELETE FROM postings WHERE entry_id = ${sale} AND amount < 0`],
        ['assets:wallet:', 'finance', `DELETE FROM postings WHERE entry_id = ${sale}; DELETE FROM entries WHERE id = ${sale}`],
    ])
        test(what, { timeout: 300_000 }, async () => {
            const { code, differences } = await planted(text, reconciled);
            assert.equal(code, 1);
            const found = differences.find((one) => one.what.startsWith(what));
            assert.ok(found && found.reason.length > 10, JSON.stringify(differences));
            assert.equal(found.owner, owner);
            assert.equal((await reconciled()).code, 0, 'it is whole again');
        });
});

describe('the auditor finds', () => {
    for (const [kind, text] of plants)
        test(`${kind}: ${text.replace(/\s+/g, ' ').slice(0, 60)}`, { timeout: 300_000 }, async () => {
            const { code, found } = await planted(text, audit);
            assert.equal(code, 1, 'nothing was found');
            assert.ok(found.some((d) => d.kind === kind), JSON.stringify(found, null, 1));
            assert.equal((await audit()).code, 0, 'it is whole again');
        });

    test('doubled refund: the amount leaves the refund wallet once more, by hand', { timeout: 300_000 }, async () => {
        await world.startRole('settler');
        const [debt] = await world.sql("SELECT '0x' || encode(payer, 'hex') AS payer, amount FROM debts WHERE state = 'refunded' LIMIT 1");
        await world.chain.giveGas(refundWallet.address);
        await world.chain.write(refundWallet.address, 'transfer', [debt.payer, BigInt(debt.amount)]);
        await world.waitFor(async () => {
            const { found } = await audit();
            return found.some(({ kind }) => kind === 'doubled refund');
        }, 'it is found');
    });
});
