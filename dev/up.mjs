// ./up, ./up -d, ./up status, ./up stop
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { NETWORK, TEMPO, toolList } from './config.mjs';
import { sellerPayTo } from './accounts.mjs';
import { Installation, Trouble, parts } from './installation.mjs';
import { root } from './place.mjs';
import { showRefund } from './refund.mjs';
import { forget, recall, remember, run, sleep } from './process.mjs';

const colour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
process.stdout.on('error', () => {}); // whoever read us has gone (./up status | head); what we started goes on
const say = (text = '') => process.stdout.write(`${text}\n`);
const step = (name, text) => say(`  ${paint(32, '✓')} ${name.padEnd(10)} ${text}`);
const kept = 'Payonce is stopped. Chain and database are kept in var/.';

const it = new Installation();
const owner = join(it.vars, 'run/up.pid');
let ranBefore = [];

// ---- building ----

async function build() {
    const began = Date.now();
    const folder = join(root, 'build');
    const setUp = existsSync(join(folder, 'build.ninja')) ? [] : [['meson', ['setup', folder, root]]];
    for (const [command, args] of [...setUp, ['meson', ['compile', '-C', folder, 'payonce']]]) {
        const { code, stdout, stderr } = await run(command, args, { cwd: root });
        if (code !== 0)
            throw new Trouble(`The build failed:\n${(stdout + stderr).trim()}`);
    }
    step('build', `${it.program}, ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

// ---- one paid call ----

// The same thing twice, once on each rail: by an x402 authorization, and by MPP's transaction on Tempo.
async function pay() {
    const [x402, mpp] = toolList(it.urls.gateway).map(({ url }) => url);
    await payOn('An agent buys with x402', x402, ['--network', NETWORK, '--rpc', it.urls.node]);
    await payOn('An agent buys with MPP on Tempo', mpp, ['--network', TEMPO, '--rpc', it.urls.tempo]);
}

// Shows the agent's own words. Its status is 0 only when the call was paid and answered.
function payOn(what, url, where) {
    const args = ['pay', url, '--key-file', it.buyerKey, '--store', join(it.vars, 'buyer'), ...where];
    say(`\n${paint(1, what)}: ${url}\n`);
    const stdio = ['ignore', 'inherit', 'inherit'];
    const child = spawn(it.program, args, { stdio, cwd: root });
    return new Promise((done, failed) => {
        const noSuccess = (code) => `The paid call did not succeed (${code}). The logs are in ${join(it.vars, 'log')}.`;
        const watch = setInterval(() => {
            const dead = ['settler', 'gateway'].find((part) => it.pid(part) === null);
            if (dead) {
                child.kill();
                failed(it.ended(dead));
            }
        }, 200);
        child.once('error', failed);
        child.once('exit', (code) => {
            clearInterval(watch);
            if (code === 0)
                done();
            else
                failed(new Trouble(noSuccess(code)));
        });
    });
}

// Shown once: an installation that has paid something back knows.
async function payBack() {
    if (JSON.parse(await it.insist(['refunds', 'list', '--all', '--json'])).length > 0)
        return;
    say(`\n${paint(1, 'Money that came without a sale goes back')} (about half a minute)\n`);
    await showRefund({ gateway: it.urls.gateway, chain: it.chain, say: (text) => say(`  ${text}`) });
}

function short(path) {
    const fromHere = relative(process.cwd(), path);
    return fromHere.startsWith('..') ? path : fromHere;
}

function whatNext() {
    const [tool] = toolList(it.urls.gateway);
    const program = short(it.program);
    const wallet = `--key-file ${short(it.buyerKey)} --store ${short(join(it.vars, 'buyer'))}`;
    const order = `${it.urls.gateway}/shop/orders --method POST --data '{"item":"tea"}' --id my-first-tea-order`;
    const [receipt, next] = [`${it.urls.gateway}/orders/ID`, '/receipts/ID, with an ID from above'];
    say(`
${paint(1, 'What to try next')}
  What it costs           curl -i '${tool.url}'
  Buy it again            ${program} pay '${tool.url}' ${wallet}
  Place an order          ${program} pay ${order} ${wallet}
  An order, its receipt   curl ${receipt}, and ${next}
  Debts, and the books    ${program} --config ${short(it.config)} refunds list --all;  ... ledger balance;  ... reconcile
  Your own x402 server    (cd tests && npm ci) && FACILITATOR_URL=${it.urls.gateway} PAY_TO=${sellerPayTo} \\
                          node tests/examples/express-seller.mjs
                          It is @x402/express with new HTTPFacilitatorClient({ url: '${it.urls.gateway}' }): see SELLERS.md
  Buy from it             ${program} pay http://127.0.0.1:4100/weather ${wallet}
  All tests               ./check
  Addresses, keys, tools  ${short(it.description)}`);
}

// ---- commands ----

let stopping = false;
let current = Promise.resolve();

// A start under way is never cut: who wants to stop waits for it, so that nothing is left behind unknown.
async function startPart(part) {
    if (stopping)
        await forever();
    current = it.start(part);
    step(part, await current);
}

const forever = () => new Promise(() => {});

async function start() {
    it.prepare();
    const other = recall(owner);
    if (other !== null)
        return alreadyRuns(other);
    remember(owner, process.pid);
    const strangers = await it.strangers();
    if (strangers.length > 0) {
        const list = strangers.map(([name, port]) => `${port} (${name})`).join(', ');
        const advice = 'Stop that program, or choose other ports: PAYONCE_PORT_BASE=14021 ./up';
        throw new Trouble(`Somebody else listens on port ${list}.\n${advice}`);
    }
    ranBefore = it.running();
    const all = ranBefore.length === parts.length;
    say(all ? 'Payonce runs already; it is kept as it is.' : 'Payonce starts.');
    await build();
    for (const part of parts)
        await startPart(part);
    it.describe();
    await pay();
    await payBack();
    whatNext();
}

async function alreadyRuns(pid) {
    say(`Payonce runs already: another ./up (process ${pid}) looks after it.`);
    if (it.running().length === parts.length) {
        await pay();
        whatNext();
    }
    process.exit(0);
}

async function stop(keep = []) {
    const names = [...parts].reverse().filter((part) => it.pid(part) !== null && !keep.includes(part));
    for (const part of names)
        step(part, await it.stop(part));
    say(names.length > 0 ? kept : 'Payonce does not run.');
}

async function status() {
    for (const part of parts) {
        const pid = it.pid(part);
        const what = pid === null ? 'stopped' : `running, process ${pid}, log ${it.logFile(part)}`;
        say(`  ${part.padEnd(10)} ${what}`);
    }
    const all = it.running().length === parts.length;
    if (all)
        say(`\n  gateway ${it.urls.gateway}, chain ${it.urls.node}; everything else: ${it.description}`);
    process.exitCode = all ? 0 : 3;
}

// Keeps what runs running: a gateway or settler that dies is started again, as an init system would. One that does
// not live for five seconds is not tried again.
async function lookAfter() {
    say('\nCtrl-C stops everything.');
    const began = new Map();
    for (; !stopping; await sleep(300)) {
        const dead = parts.filter((part) => it.pid(part) === null);
        if (dead.length === 0 || stopping)
            continue;
        for (const part of dead) {
            if (Date.now() - (began.get(part) ?? 0) < 5_000)
                throw it.ended(part);
            began.set(part, Date.now());
            say(`${part} ended; it is started again.`);
            await startPart(part);
        }
        it.describe();
    }
}

function stopOnSignal() {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
        process.on(signal, async () => {
            if (stopping)
                return;
            stopping = true;
            say();
            await current.catch(() => {});
            await stop();
            forget(owner);
            process.exit(0);
        });
}

async function main(command) {
    if (command === 'stop') {
        const other = recall(owner);
        if (other === null)
            return stop();
        process.kill(other, 'SIGTERM');
        while (recall(owner) !== null)
            await sleep(100);
        return say(kept);
    }
    if (command === 'status')
        return status();
    stopOnSignal();
    await start();
    if (command === '-d') {
        say(`\nIt runs on. ./up status, ./up stop.`);
        forget(owner);
        process.exit(0);
    }
    return lookAfter();
}

try {
    await main(process.argv[2]);
} catch (error) {
    if (stopping)
        await forever();
    process.stderr.write(`\n${error instanceof Trouble ? error.message : error.stack}\n`);
    if (recall(owner) === process.pid) {
        if (it.running().length > ranBefore.length)
            await stop(ranBefore);
        forget(owner);
    }
    process.exit(1);
}
