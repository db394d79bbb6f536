// The suites behind ./check, and their bookkeeping. Closes with one line: N passed, N failed.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { figuresTable } from './drills/lib/figures.mjs';
import { makeCluster } from './lib/cluster.mjs';
import { root } from './lib/paths.mjs';

const builds = join(root, 'build-check');
const asan = join(builds, 'asan');
const tsan = join(builds, 'tsan');
const say = (text = '') => process.stdout.write(`${text}\n`);

// ---- running programs ----

// Runs a program in a session of its own, ended as a whole when its time is over. Its output is shown, or, with
// `log`, kept in a file. Resolves to its exit status.
function run(command, args, { env = {}, log, minutes = 15 } = {}) {
    const fd = log ? openSync(log, 'w') : 'inherit';
    const options = { cwd: root, stdio: ['ignore', fd, fd], env: { ...process.env, ...env }, detached: true };
    const child = spawn(command, args, options);
    if (log)
        closeSync(fd);
    return new Promise((done) => {
        const timer = setTimeout(() => {
            say(`${command} is ended: it took more than ${minutes} minutes`);
            process.kill(-child.pid, 'SIGKILL');
        }, minutes * 60_000);
        const finish = (status) => {
            clearTimeout(timer);
            running.delete(child);
            done(status);
        };
        running.add(child);
        child.once('error', (error) => finish(error.message));
        child.once('exit', (code, signal) => finish(code ?? signal));
    });
}

const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
        for (const child of running)
            process.kill(-child.pid, 'SIGKILL');
        process.exit(1);
    });

// ---- results ----

const one = (ok) => ({ passed: ok ? 1 : 0, failed: ok ? 0 : 1 });
const sum = (results) => results.reduce((a, b) => ({ passed: a.passed + b.passed, failed: a.failed + b.failed }),
    { passed: 0, failed: 0 });

// A suite that ran nothing, or that failed without naming a test, has failed.
function judged(result, status) {
    const silent = status !== 0 && result.failed === 0;
    const empty = result.passed + result.failed === 0;
    return silent || empty ? { ...result, failed: result.failed + 1 } : result;
}

// ---- kinds of suites ----

async function build(name, { options = [], env = {}, folder = join(builds, name) } = {}) {
    mkdirSync(builds, { recursive: true });
    const log = join(builds, `${name}.log`);
    const steps = [['compile', '-C', folder]];
    if (!existsSync(join(folder, 'build.ninja')))
        steps.unshift(['setup', folder, root, ...options]);
    for (const args of steps)
        if (await run('meson', args, { env, log }) !== 0) {
            const progress = /^\[\d+\/\d+\] (Compiling|Linking|Generating)/;
            const lines = readFileSync(log, 'utf8').split('\n').filter((line) => !progress.test(line));
            say(lines.slice(-60).join('\n'));
            return false;
        }
    say(`built ${name}`);
    return true;
}

// Each is built once in a run, whichever suite asks first.
function once(make) {
    let result;
    return () => (result ??= make());
}
const sanitized = once(() => build('asan', {
    options: ['-Dfailpoints=true', '-Db_sanitize=address,undefined', '-Dbuildtype=debug', '-Doptimization=1'],
}));
const threaded = once(() => build('tsan', {
    options: ['-Dfailpoints=true', '-Db_sanitize=thread', '-Dbuildtype=debug', '-Doptimization=1'],
}));
const released = once(() => build('release', { folder: join(root, 'build') }));
const clanged = once(() => build('clang', { env: { CC: 'clang' } }));

// A test file's name in what is shown, and in the lists below: drills may be called as scenarios are.
function nameOf(file) {
    const name = basename(file, '.test.mjs');
    return basename(dirname(file)) === 'drills' ? `drills/${name}` : name;
}

// A file of node's tests; what it said is shown when it has ended, and the counts come from its TAP. `turn` tells several runs of
// one file apart.
async function nodeFile(file, { env, minutes, nice = 0, turn = '' }) {
    const name = `${nameOf(file)}${turn}`;
    const [spec, tap, log] = ['spec', 'tap', 'log'].map((kind) => join(builds, `tests/${name}.${kind}`));
    mkdirSync(dirname(tap), { recursive: true });
    rmSync(tap, { force: true });
    const began = Date.now();
    const status = await run('nice', ['-n', nice, process.execPath, '--test-reporter=spec', `--test-reporter-destination=${spec}`,
        '--test-reporter=tap', `--test-reporter-destination=${tap}`, file].map(String), { env, minutes, log });
    const text = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : '');
    const count = (word) => Number(text(tap).match(new RegExp(`^# ${word} (\\d+)`, 'm'))?.[1] ?? 0);
    const result = judged({ passed: count('pass'), failed: count('fail') + count('cancelled') }, status);
    say(`\n-- ${name}: ${((Date.now() - began) / 1000).toFixed(1)} s\n${result.failed > 0 ? text(log) : ''}${text(spec).trimEnd()}`);
    return result;
}

// Most tests wait for blocks most of the time, so several files run at once, those of all suites that run together; the
// longest begin first, or the run would end with one of them alone.
const AT_ONCE = 7;
const longest = ['drills/lost-replies', 'drills/failpoints', 'drills/facilitator', 'mpp-late', 'mpp', 'refunds-tempo', 'refunds', 'mpp-twice',
    'drills/failpoints-money', 'drills/failpoints-mpp', 'drills/hostile', 'drills/cases', 'upfront', 'tokens', 'scan', 'relayer', 'lookups',
    'operate', 'facilitator', 'refunds-tempo-refused', 'pay-mpp'];
const queue = [];
let busy = 0;

function next() {
    while (queue.length > 0 && busy + queue[0].places <= AT_ONCE) {
        const { file, options, places, done } = queue.shift();
        busy += places;
        nodeFile(file, options).then((result) => {
            busy -= places;
            next();
            done(result);
        });
    }
}

function rank({ file }) {
    const at = longest.indexOf(nameOf(file));
    return at < 0 ? longest.length : at;
}

async function nodeTests(files, { env = {}, minutes, nice, turn, round = 0, places = () => 1 } = {}) {
    const results = files.map((file) => new Promise((done) => {
        queue.push({ file, options: { env, minutes, nice, turn }, round, places: places(file), done });
    }));
    setImmediate(() => { // when the others have put theirs in
        queue.sort((a, b) => a.round - b.round || rank(a) - rank(b));
        next();
    });
    return judged(sum(await Promise.all(results)), 0);
}

function files(folder, wanted = () => true) {
    const path = join(root, 'tests', folder);
    const names = existsSync(path) ? readdirSync(path) : [];
    return names.filter((name) => name.endsWith('.test.mjs') && wanted(name)).sort().map((name) => join(path, name));
}

// meson test; inside a program, each cmocka test counts.
async function mesonTests(name, args, env = {}, folder = asan) {
    const log = join(builds, `${name}.log`);
    const logs = join(folder, 'meson-logs/testlog.json');
    rmSync(logs, { force: true });
    const status = await run('meson', ['test', '-C', folder, '--print-errorlogs', ...args],
        { log, env: { ...sanitizers, ...env }, minutes: 25 });
    if (status !== 0)
        say(readFileSync(log, 'utf8'));
    if (!existsSync(logs) || statSync(logs).size === 0)
        return judged({ passed: 0, failed: 0 }, status);
    const results = readFileSync(logs, 'utf8').trim().split('\n').map((line) => {
        const { result, stdout = '', stderr = '' } = JSON.parse(line);
        const lines = `${stdout}\n${stderr}`;
        // cmocka names each failure twice: where it happened, and in its list at the end.
        const failures = new Set(lines.match(/^\[ +FAILED +\] [A-Za-z_]\w*$/gm));
        const counted = { passed: lines.match(/^\[ +OK +\]/gm)?.length ?? 0, failed: failures.size };
        const ok = result === 'OK' || result === 'EXPECTEDFAIL';
        if (counted.passed + counted.failed === 0 || result === 'SKIP')
            return one(ok);
        return judged(ok ? { ...counted, failed: 0 } : counted, ok ? 0 : 1);
    });
    return judged(sum(results), status);
}

const sanitizers = { UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1', ASAN_OPTIONS: 'detect_leaks=1', TSAN_OPTIONS: 'halt_on_error=1' };
const against = (program) => ({ env: { PAYONCE_PROGRAM: join(program, 'payonce') } });
const long = process.argv.includes('--long');

// The drills, once; or, with --long, each in its long form with ten seeds. PAYONCE_SEEDS says how many seeds, PAYONCE_SEED gives
// the one to play again. Their figures are printed at the end, summed over the seeds. Those in several worlds take two places.
const SEEDS = Number(process.env.PAYONCE_SEEDS ?? (long ? 10 : 1));
const drillPlaces = (file) => (readFileSync(file, 'utf8').includes('sideBySide(') ? 2 : 1);
async function drills({ env: world }) {
    const env = { ...world, ...sanitizers, ...(long && { PAYONCE_DRILLS: 'long' }) };
    const { PAYONCE_SEED: given } = process.env;
    const seeds = given ? [given] : Array.from({ length: SEEDS }, () => randomBytes(4).toString('hex'));
    const figures = join(builds, 'drills.txt');
    mkdirSync(builds, { recursive: true });
    rmSync(figures, { force: true });
    const results = await Promise.all(seeds.map((seed, round) => {
        say(`seed ${seed} (PAYONCE_SEED=${seed} ./check drills${long ? ' --long' : ''} does the same again)`);
        return nodeTests(files('drills'), {
            env: { ...env, PAYONCE_SEED: seed, PAYONCE_FIGURES: figures }, minutes: long ? 90 : 25, places: drillPlaces, turn: `-${seed}`, round,
        });
    }));
    if (existsSync(figures))
        say(`\n${figuresTable(readFileSync(figures, 'utf8'))}`);
    return sum(results);
}
const isSettler = (name) => ['relayer.test.mjs', 'scan.test.mjs'].includes(name);
const isClient = (name) => name === 'clients.test.mjs';
const isBadInput = (name) => name.startsWith('bad-input');
const isScenario = (name) => !isSettler(name) && !isClient(name) && !isBadInput(name);

// Every process is one thread; libraries may have some of theirs. What runs at once, under the thread sanitizer.
const atOnce = ['loop', 'fetch', 'rpc', 'checker', 'failpoint', 'db', 'many', 'rings', 'server', 'upstream'];
async function threads() {
    if (!await threaded())
        return { passed: 0, failed: 1 };
    return sum([await mesonTests('threads', ['--no-rebuild', ...atOnce], { MESON_TESTTHREADS: '2' }, tsan),
        await nodeTests(files('scenarios', (name) => name === 'parallel.test.mjs'), against(tsan))]);
}

async function withSanitizers(then) {
    return await sanitized() ? then() : { passed: 0, failed: 1 };
}

// With the program that they run, and a cluster that they copy.
const cluster = once(() => makeCluster(join(asan, 'payonce')));
const withWorlds = (then) => withSanitizers(async () =>
    then({ env: { ...against(asan).env, PAYONCE_TEST_CLUSTER: await cluster() } }));

// ---- the suites ----

const suites = {
    'build-gcc': {
        what: 'gcc: the release build, and the one with sanitizers and failpoints, without a warning',
        run: async () => sum([one(await released()), one(await sanitized())]),
    },
    'build-clang': {
        what: 'clang: the same sources without a warning',
        run: async () => one(await clanged()),
    },
    layers: {
        what: 'which way includes go, banned calls, lengths',
        run: () => nodeTests([join(root, 'tests/layers.test.mjs')]),
    },
    unit: {
        what: 'pure code and its vectors',
        run: () => withSanitizers(() => mesonTests('unit', ['--no-suite', 'sql'])),
    },
    sql: {
        what: 'migrations, money functions and their constraints, on a cluster of their own',
        run: () => withWorlds(({ env }) => mesonTests('sql', ['--suite', 'sql', '--num-processes', '4'],
            { ...env, ...(long && { PAYONCE_SEQUENCES: '100000' }) })),
    },
    threads: {
        what: 'the thread sanitizer over what runs at once',
        run: threads,
    },
    model: {
        what: 'a Spin model of one order: every interleaving, and planted faults',
        together: true,
        run: () => nodeTests(files('model'), { nice: 10 }),
    },
    scenarios: {
        what: 'whole installations: payments, crashes, concurrency, books',
        together: true,
        run: () => withWorlds((env) => nodeTests(files('scenarios', isScenario), env)),
    },
    settler: {
        what: 'the relayer and the log scan, under nodes that lie, lag and forget',
        together: true,
        run: () => withWorlds((env) => nodeTests(files('scenarios', isSettler), env)),
    },
    clients: {
        what: 'the official x402 clients, v1 and v2, buy each tool',
        together: true,
        run: () => withWorlds((env) => nodeTests(files('scenarios', isClient), env)),
    },
    drills: {
        what: 'lost replies, kill -9, lying RPC, hostile payers: at random, seeds printed (--long: ten seeds, in full)',
        together: true,
        run: () => withWorlds(drills),
    },
    'bad-input': {
        what: 'what the gateway must refuse, and in which words',
        together: true,
        run: () => withWorlds((env) => nodeTests(files('scenarios', isBadInput), env)),
    },
    bench: {
        what: 'speed and memory beside the official stack (only when named)',
        onlyWhenNamed: true,
        run: async () => one(await released() &&
            await run(process.execPath, [join(root, 'tests/bench/run.mjs')], { env: against(join(root, 'build')).env, minutes: 30 }) === 0),
    },
};

// Neighbours that may run together, do.
function grouped(names) {
    const groups = [];
    for (const name of names)
        if (suites[name].together && groups.at(-1)?.every((other) => suites[other].together))
            groups.at(-1).push(name);
        else
            groups.push([name]);
    return groups;
}

async function runSuite(name) {
    say(`\n== ${name}: ${suites[name].what}`);
    const began = Date.now();
    const result = await suites[name].run();
    return { name, seconds: (Date.now() - began) / 1000, ...result };
}

async function main(names) {
    if (names[0] === '--list') {
        for (const [name, suite] of Object.entries(suites))
            say(`${name.padEnd(12)} ${suite.what}`);
        return 0;
    }
    const unknown = names.filter((name) => !suites[name]);
    if (unknown.length > 0) {
        say(`No such suite: ${unknown.join(', ')}. ./check --list names them.`);
        return 2;
    }
    const chosen = names.length > 0 ? names : Object.keys(suites).filter((name) => !suites[name].onlyWhenNamed);
    const table = [];
    const began = Date.now();
    for (const names of grouped(chosen))
        table.push(...await Promise.all(names.map(runSuite)));
    say();
    for (const { name, seconds, passed, failed } of table) {
        const counts = `${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed`;
        say(`${name.padEnd(12)} ${counts} ${seconds.toFixed(1).padStart(8)} s`);
    }
    const { passed, failed } = sum(table);
    say(`in ${((Date.now() - began) / 60_000).toFixed(1)} minutes`);
    say(`\n${passed} passed, ${failed} failed`);
    return failed > 0 ? 1 : 0;
}

process.exit(await main(process.argv.slice(2).filter((word) => word !== '--long')));
