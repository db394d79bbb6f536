// The model of one order (order.pml), every interleaving of it: without an error as it stands, and with one for each fault
// that is planted in it. Needs spin and gcc.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const model = readFileSync(join(dirname(fileURLToPath(import.meta.url)), 'order.pml'), 'utf8');
const place = mkdtempSync(join(tmpdir(), 'payonce-model-'));
const start = promisify(execFile);
const MEMORY_MB = 1500;
const DEPTH = 200_000;
let runs = 0;

after(() => rmSync(place, { recursive: true, force: true }));

// Searches the whole model under these macros. live: the claim that every order ends, under weak fairness; else the assertions.
async function search(defines, { live = false, optimise = '-O0' } = {}) {
    const cwd = join(place, String(++runs));
    mkdirSync(cwd);
    const macros = [...defines, ...(live ? ['LIVE', 'OBSERVED false'] : [])].map((macro) => `#define ${macro}\n`).join('');
    writeFileSync(join(cwd, 'order.pml'), macros + model);
    const options = { cwd, maxBuffer: 1 << 24, timeout: 300_000 };
    await start('spin', ['-a', 'order.pml'], options);
    // -w: what spin writes is not ours to mend.
    await start('gcc', ['-w', optimise, `-DMEMLIM=${MEMORY_MB}`, live ? '-DNFAIR=3' : '-DSAFETY', '-o', 'pan', 'pan.c'], options);
    const { stdout } = await start('./pan', [`-m${DEPTH}`, '-n', ...(live ? ['-a', '-f'] : [])], options);
    rmSync(cwd, { recursive: true });
    const errors = Number(stdout.match(/errors: (\d+)/)?.[1] ?? NaN);
    const states = Number(stdout.match(/(\d+) states, stored/)?.[1] ?? NaN);
    return { errors, states, whole: !/not completed|max search depth too small|out of memory/i.test(stdout),
        why: stdout.match(/^pan:1: (.*)/m)?.[1] ?? '' };
}

// ---- as it stands ----

for (const [what, defines] of [['a fresh authorization', []], ['a second signature over one nonce', ['SIGNATURE']]])
    for (const live of [false, true])
        test(`${what}: ${live ? 'every order ends' : 'no assertion fails'}`, async (t) => {
            const found = await search(defines, { live, optimise: '-O2' });
            t.diagnostic(`${found.states} states`);
            assert.equal(found.errors, 0, found.why);
            assert.ok(found.whole, 'the search was cut short');
            assert.ok(found.states > 100_000, `only ${found.states} states: the model does less than it should`);
        });

// ---- what must be possible: each is a state that the search has to come across ----

const possible = {
    'sold by the first authorization': 'work == done && cur == A && st[A] == settled && st[B] == absent',
    'sold by the second, after the first died': 'work == done && cur == B && st[B] == settled && DEAD(st[A])',
    'both landed: one sale, one debt': 'st[A] == settled && st[B] == settled && work == done && debt[A]',
    'landed, but the work failed': 'work == failed && st[cur] == settled && debt[cur]',
    'landed, and the work is lost': 'write && work == lost && st[cur] == settled',
};
for (const [what, when] of Object.entries(possible))
    test(`possible: ${what}`, async () => {
        const found = await search([`WITNESS (${when})`]);
        assert.equal(found.errors, 1, 'never came about');
        assert.match(found.why, /^assertion violated/);
    });

// ---- planted faults ----

const faults = {
    SETTLE_BEFORE_COMMIT: 'a transaction is broadcast before its bytes are committed',
    WORK_BEFORE_ACCEPT: 'the upstream is called before the authorization is committed',
    RECOVERY_SIGNS_ANEW: 'after a crash other bytes are sent than those that were stored',
    ACCEPT_WITHOUT_LOCK: 'accept decides before it has the lock',
    PAID_BY_FLAG: 'a used nonce counts as a payment',
    FAILED_ON_TIMEOUT: 'an unknown is called expired by the clock, without a final block',
    CHALLENGE_WHILE_SENT: 'a 402 although the authorization was sent and is not proven dead',
    CHALLENGE_WITHOUT_ASKING_AGAIN: 'a 402 for what a slow chain read says, although another copy was accepted meanwhile',
    FAILED_WHILE_RUNNING: 'a lease that seems dead is told as failed work',
    NOT_CHARGED_BLINDLY: 'failed work is told as not charged, although a third party had the payment landed',
    RERUN_LOST_WRITE: 'a write whose outcome is lost runs again',
    REASKED_RUNS_AGAIN: 'accept, asked again for a reply that was lost, has stored work run anew',
    FORGET_RELEASED: 'a released authorization is not watched',
    LANDED_THEN_FAILED: 'what landed while the work ran is not owed back when the work fails',
    FAILED_TURNS_DONE: 'a late answer turns failed work, told as not charged, into done, and its authorization is sent',
    KEPT_AND_OWED: 'a late answer is kept while the payment for it is owed back',
    SENT_FOR_A_PAID_ORDER: 'an authorization is sent once more although another one has paid its order',
    IGNORE_LANDED: 'an authorization that landed, but is not the current one, is ignored by its order',
    FORGET_OTHER_SIGNATURE: 'a further signature over a known nonce does not prolong its watch',
    EXPIRED_FOR_GOOD: 'a further signature over a nonce that was proven dead does not reopen it',
    END_BY_OLD_DEADLINE: 'a nonce ends by the deadline that was read before a further signature was kept',
};
const bySecondSignature = new Set(['FORGET_OTHER_SIGNATURE', 'EXPIRED_FOR_GOOD', 'END_BY_OLD_DEADLINE']);
const byClaim = new Set(['FORGET_RELEASED']);

for (const [name, what] of Object.entries(faults))
    test(`found: ${what} (${name})`, async () => {
        const defines = [`FAULT_${name}`, ...(bySecondSignature.has(name) ? ['SIGNATURE'] : [])];
        const found = await search(defines, { live: byClaim.has(name) });
        assert.equal(found.errors, 1, 'the model does not notice');
        assert.match(found.why, byClaim.has(name) ? /^acceptance cycle/ : /^assertion violated/);
    });
