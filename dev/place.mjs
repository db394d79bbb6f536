// Where everything is: folders, ports, key files.
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');
export const iAmRoot = process.getuid() === 0;

export function privateFolder(path) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o700);
    return path;
}

// A private folder above the database's. Run as root, the server runs as `postgres`, which must be able to walk
// through: x for all, r for none.
export function folderAboveDatabase(path) {
    privateFolder(path);
    if (iAmRoot)
        chmodSync(path, 0o711);
    return path;
}

function everybodyWalks(path) {
    for (let at = path; ; at = dirname(at)) {
        if (existsSync(at) && (statSync(at).mode & 0o001) === 0)
            return false;
        if (at === dirname(at))
            return true;
    }
}

// The state folder is in var/, except where root keeps the checkout out of `postgres`'s reach (below /root, say).
export function stateFolder(vars) {
    if (!iAmRoot || everybodyWalks(dirname(vars)))
        return join(vars, 'payonce');
    const tag = createHash('sha256').update(vars).digest('hex').slice(0, 12);
    return join('/var/lib/payonce-dev', tag);
}

// PAYONCE_PORT_BASE moves all five ports, for a second installation on one machine.
export function ports() {
    const base = process.env.PAYONCE_PORT_BASE;
    if (base === undefined)
        return { gateway: 4021, admin: 4022, upstream: 4030, node: 8545, tempo: 8546 };
    const first = Number(base);
    if (!Number.isInteger(first) || first < 1024 || first > 65531)
        throw new Error(`PAYONCE_PORT_BASE is "${base}", not a port number from 1024 to 65531`);
    return { gateway: first, admin: first + 1, upstream: first + 2, node: first + 3, tempo: first + 4 };
}

export function portTaken(port) {
    return new Promise((done) => {
        const socket = connect({ host: '127.0.0.1', port });
        socket.once('connect', () => done(true));
        socket.once('error', () => done(false));
        socket.once('close', () => done(false));
        socket.once('connect', () => socket.destroy());
    });
}

export function secretFile(path, hex) {
    writeFileSync(path, `${hex.replace(/^0x/, '')}\n`, { mode: 0o600 });
    return path;
}

export function keepSecret(path) {
    return existsSync(path) ? path : secretFile(path, randomBytes(32).toString('hex'));
}
