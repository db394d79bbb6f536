// A drill: a world whose end is the audit, with its seed and its figures printed.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { freePort, inWorld } from '../../lib/world.mjs';
import { audit } from './audit.mjs';
import { note } from './figures.mjs';
import { Chance, long, seed } from './seed.mjs';
import { Unknowns } from './unknowns.mjs';
import { HttpWire, LOSSY, SqlWire } from './wire.mjs';

export { long };

export function say(name, figures) {
    const words = Object.entries(figures).map(([key, value]) => `${key}=${value}`).join(' ');
    process.stdout.write(`drill ${name}: seed=${seed} ${words}\n`);
    note(name, seed, figures);
}

const MINUTES = 60_000;

// body(world, chance) returns figures. What fails names the seed.
export function drill(name, options, body, { minutes = long ? 50 : 12 } = {}) {
    const about = `${name} (PAYONCE_SEED=${seed}${long ? ' PAYONCE_DRILLS=long' : ''})`;
    test(about, { timeout: minutes * MINUTES }, inWorld(options, async (world) => {
        const chance = new Chance(name);
        const began = Date.now();
        world.checkBooks = (deadlineMs) => audit(world, deadlineMs);
        const unknowns = new Unknowns(world);
        try {
            const figures = await body(world, chance);
            const books = await audit(world);
            const known = await unknowns.judge();
            say(name, { ...figures, ...books, ...known, seconds: Math.round((Date.now() - began) / 1000) });
        } finally {
            await unknowns.stop();
        }
    }));
}

// Drills in worlds of their own that wait most of the time: several at once.
export const sideBySide = (name, body) => describe(`${name}, side by side`, { concurrency: 6 }, body);

// A wire on each edge of an installation. Resolves to { client, sql, upstream, rpc: {gateway, settler}, config }.
export async function layWires(world, chance, { faults = LOSSY, onUpstream, upstreamOnce, sqlFaults } = {}) {
    const lay = async (name, port, options = {}) =>
        new HttpWire(chance.stream(name), port, { faults, ...options }).start(await freePort());
    const socket = join(world.stateDir, 'postgres/.s.PGSQL.5432');
    const path = join(world.dir, 'wire/.s.PGSQL.5432');
    const wires = {
        client: await lay('client', world.ports.gateway),
        upstream: await lay('upstream', world.ports.upstream, { onRequest: onUpstream, once: upstreamOnce }),
        rpcGateway: await lay('rpc of the gateway', world.ports.node),
        rpcSettler: await lay('rpc of the settler', world.ports.node),
        sql: await new SqlWire(chance.stream('sql'), socket, { ...(sqlFaults && { faults: sqlFaults }) }).start(path),
    };
    const ports = { ...world.ports, upstream: new URL(wires.upstream.url).port };
    const database = `host='${dirname(path)}' port=5432 dbname=payonce`;
    const configOf = (role, rpc) => world.writeConfig(`wired-${role}`, ports,
        { network: { rpc: [rpc.url] }, extra: { ...world.options.extra, database } });
    wires.gatewayConfig = configOf('gateway', wires.rpcGateway);
    wires.settlerConfig = configOf('settler', wires.rpcSettler);
    wires.all = () => [wires.client, wires.upstream, wires.rpcGateway, wires.rpcSettler, wires.sql];
    wires.quiet = () => wires.all().forEach((wire) => {
        wire.faults = {};
    });
    wires.close = () => Promise.all(wires.all().map((wire) => wire.close()));
    wires.injected = () => Object.fromEntries(['client', 'upstream', 'rpcGateway', 'rpcSettler', 'sql'].map((name) =>
        [`faults_${name}`, Object.values(wires[name].injected).reduce((a, b) => a + b, 0)]));
    return wires;
}

// Stops PostgreSQL as a power cut would, and starts it again.
export async function restartPostgres(world) {
    process.kill(world.postgres, 'SIGQUIT');
    await world.waitFor(() => !alive(world.postgres), 'PostgreSQL ends', 30_000);
    await world.startDatabase();
}

const alive = (pid) => existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
