// Starting, finding again and stopping the programs of an installation. A process is remembered by its pid and
// its start time, so that a pid which the kernel has given to somebody else is never taken for ours.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function startTime(pid) {
    try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return fields[0] === 'Z' ? null : fields[19];
    } catch {
        return null;
    }
}

export function remember(path, pid) {
    writeFileSync(path, `${pid} ${startTime(pid)}\n`, { mode: 0o600 });
}

// The pid in a pid file if that very process is alive, else null.
export function recall(path) {
    if (!existsSync(path))
        return null;
    const [pid, started] = readFileSync(path, 'utf8').trim().split(' ');
    return started !== undefined && startTime(pid) === started ? Number(pid) : null;
}

export function forget(path) {
    rmSync(path, { force: true });
}

export function tail(path, lines = 15) {
    return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n').slice(-lines).join('\n') : '';
}

// A program that outlives us, its output at the end of a log file.
export function launch(command, args, { log, env = {}, cwd }) {
    const fd = openSync(log, 'a', 0o600);
    const stdio = ['ignore', fd, fd];
    const child = spawn(command, args, { detached: true, stdio, env: { ...process.env, ...env }, cwd });
    closeSync(fd);
    return new Promise((done, failed) => {
        child.once('error', failed);
        child.once('spawn', () => {
            child.unref();
            done(child);
        });
    });
}

// A program that ends by itself. Its output goes through files: a daemon that it leaves behind may keep them
// open, and nobody waits for that. Resolves to { code, stdout, stderr }.
export function run(command, args, { env = {}, cwd, detached = false } = {}) {
    const dir = mkdtempSync(join(tmpdir(), 'payonce-run-'));
    const [out, err] = ['out', 'err'].map((name) => join(dir, name));
    const fds = [out, err].map((path) => openSync(path, 'w', 0o600));
    const stdio = ['ignore', ...fds];
    const child = spawn(command, args, { stdio, detached, env: { ...process.env, ...env }, cwd });
    fds.forEach((fd) => closeSync(fd));
    return new Promise((done, failed) => {
        child.once('error', failed);
        child.once('exit', (code, signal) => {
            done({ code: code ?? signal, stdout: readFileSync(out, 'utf8'), stderr: readFileSync(err, 'utf8') });
        });
    }).finally(() => rmSync(dir, { recursive: true, force: true }));
}

export async function until(condition, deadlineMs, stepMs = 30) {
    for (const end = Date.now() + deadlineMs; ; await sleep(stepMs)) {
        const value = await condition();
        if (value)
            return value;
        if (Date.now() >= end)
            return null;
    }
}

function signal(pid, name) {
    try {
        process.kill(pid, name);
    } catch (error) {
        if (error.code !== 'ESRCH')
            throw error;
    }
}

// Asks the process of a pid file to end, and makes it after a while. Resolves to 'gone', 'stopped' or 'killed'.
export async function stop(path, graceMs = 20_000) {
    const pid = recall(path);
    if (pid === null) {
        forget(path);
        return 'gone';
    }
    signal(pid, 'SIGTERM');
    const polite = await until(() => recall(path) === null, graceMs);
    if (!polite) {
        signal(pid, 'SIGKILL');
        await until(() => recall(path) === null, 5_000);
    }
    forget(path);
    return polite ? 'stopped' : 'killed';
}
