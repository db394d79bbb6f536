// The suites behind ./check, and their bookkeeping. Closes with one line: N passed, N failed.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { figuresTable } from './drills/lib/figures.mjs';
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

// node --test over files; the counts come from its TAP.
async function nodeTests(name, files, { env = {}, minutes } = {}) {
    const tap = join(builds, `${name}.tap`);
    mkdirSync(builds, { recursive: true });
    rmSync(tap, { force: true });
    if (files.length === 0)
        return judged({ passed: 0, failed: 0 }, 1);
    const status = await run(process.execPath, ['--test', '--test-concurrency=3', '--test-reporter=spec',
        '--test-reporter-destination=stdout', '--test-reporter=tap', `--test-reporter-destination=${tap}`, ...files],
        { env, minutes });
    const count = (word) => Number(readFileSync(tap, 'utf8').match(new RegExp(`^# ${word} (\\d+)`, 'm'))?.[1] ?? 0);
    return judged({ passed: count('pass'), failed: count('fail') + count('cancelled') }, status);
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

// The drills, once; or, with --long, each in its long form with ten seeds, or with the one that PAYONCE_SEED gives. Their
// figures are printed at the end, summed over the seeds.
const SEEDS = 10;
async function drills() {
    const env = { ...against(asan).env, ...sanitizers, ...(long && { PAYONCE_DRILLS: 'long' }) };
    const { PAYONCE_SEED: given } = process.env;
    const seeds = given ? [given] : Array.from({ length: long ? SEEDS : 1 }, () => randomBytes(4).toString('hex'));
    const figures = join(builds, 'drills.txt');
    mkdirSync(builds, { recursive: true });
    rmSync(figures, { force: true });
    const results = [];
    for (const seed of seeds) {
        say(`seed ${seed} (PAYONCE_SEED=${seed} ./check drills${long ? ' --long' : ''} does the same again)`);
        results.push(await nodeTests('drills', files('drills'),
            { env: { ...env, PAYONCE_SEED: seed, PAYONCE_FIGURES: figures }, minutes: long ? 90 : 25 }));
    }
    if (existsSync(figures))
        say(`\n${figuresTable(readFileSync(figures, 'utf8'))}`);
    return sum(results);
}
const isSettler = (name) => ['relayer.test.mjs', 'scan.test.mjs'].includes(name);
const isClient = (name) => name === 'clients.test.mjs';
const isBadInput = (name) => name.startsWith('bad-input');

// Every process is one thread; libraries may have some of theirs. What runs at once, under the thread sanitizer.
const atOnce = ['loop', 'fetch', 'rpc', 'checker', 'failpoint', 'db', 'many', 'rings', 'server', 'upstream'];
async function threads() {
    if (!await threaded())
        return { passed: 0, failed: 1 };
    return sum([await mesonTests('threads', ['--no-rebuild', ...atOnce], { MESON_TESTTHREADS: '2' }, tsan),
        await nodeTests('threads-parallel', files('scenarios', (name) => name === 'parallel.test.mjs'), against(tsan))]);
}

async function withSanitizers(then) {
    return await sanitized() ? then() : { passed: 0, failed: 1 };
}

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
        run: () => nodeTests('layers', [join(root, 'tests/layers.test.mjs')]),
    },
    unit: {
        what: 'pure code and its vectors',
        run: () => withSanitizers(() => mesonTests('unit', ['--no-suite', 'sql'])),
    },
    sql: {
        what: 'migrations, money functions and their constraints, on a cluster of their own',
        run: () => withSanitizers(() => mesonTests('sql', ['--suite', 'sql'], long ? { PAYONCE_SEQUENCES: '100000' } : {})),
    },
    threads: {
        what: 'the thread sanitizer over what runs at once',
        run: threads,
    },
    model: {
        what: 'a Spin model of one order: every interleaving, and planted faults',
        run: () => nodeTests('model', files('model')),
    },
    scenarios: {
        what: 'whole installations: payments, crashes, concurrency, books',
        run: () => withSanitizers(() =>
            nodeTests('scenarios', files('scenarios', (name) => !isClient(name) && !isBadInput(name) && !isSettler(name)), against(asan))),
    },
    settler: {
        what: 'the relayer and the log scan, under nodes that lie, lag and forget',
        run: () => withSanitizers(() => nodeTests('settler', files('scenarios', isSettler), against(asan))),
    },
    clients: {
        what: 'the official x402 clients, v1 and v2, buy each tool',
        run: () => withSanitizers(() => nodeTests('clients', files('scenarios', isClient), against(asan))),
    },
    drills: {
        what: 'lost replies, kill -9, lying RPC, hostile payers: at random, seeds printed (--long; only when named)',
        onlyWhenNamed: true,
        run: () => withSanitizers(drills),
    },
    'bad-input': {
        what: 'what the gateway must refuse, and in which words',
        run: () => withSanitizers(() => nodeTests('bad-input', files('scenarios', isBadInput), against(asan))),
    },
    bench: {
        what: 'speed and memory beside the official stack (only when named)',
        onlyWhenNamed: true,
        run: async () => one(await released() &&
            await run(process.execPath, [join(root, 'tests/bench/run.mjs')], { env: against(join(root, 'build')).env, minutes: 30 }) === 0),
    },
};

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
    for (const name of chosen) {
        say(`\n== ${name}: ${suites[name].what}`);
        const began = Date.now();
        const result = await suites[name].run();
        table.push({ name, seconds: (Date.now() - began) / 1000, ...result });
    }
    say();
    for (const { name, seconds, passed, failed } of table) {
        const counts = `${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed`;
        say(`${name.padEnd(12)} ${counts} ${seconds.toFixed(1).padStart(8)} s`);
    }
    const { passed, failed } = sum(table);
    say(`\n${passed} passed, ${failed} failed`);
    return failed > 0 ? 1 : 0;
}

process.exit(await main(process.argv.slice(2).filter((word) => word !== '--long')));
