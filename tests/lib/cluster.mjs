// A migrated database cluster, made once for a run of suites and copied by every world of it: making one anew takes
// seconds. PAYONCE_TEST_CLUSTER names it; without it each world makes its own, as an installation does.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeConfig } from '../../dev/config.mjs';
import { iAmRoot } from '../../dev/place.mjs';
import { run } from '../../dev/process.mjs';

// Makes it, for as long as this process runs; resolves to its path.
export async function makeCluster(program) {
    const dir = mkdtempSync(join(tmpdir(), 'payonce-cluster-'));
    process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
    chmodSync(dir, iAmRoot ? 0o711 : 0o700);
    const config = join(dir, 'payonce.json');
    writeFileSync(config, JSON.stringify(makeConfig({ ports: { gateway: 1, admin: 2, upstream: 3, node: 4 }, stateDir: dir })));
    for (const args of [['database', 'start'], ['migrate'], ['database', 'stop']]) {
        const { code, stderr } = await run(program, ['--config', config, ...args]);
        if (code !== 0)
            throw new Error(`payonce ${args.join(' ')}: ${stderr}`);
    }
    return join(dir, 'postgres');
}

// Puts a copy into a state directory, if there is one to copy.
export async function copyCluster(stateDir) {
    const cluster = process.env.PAYONCE_TEST_CLUSTER;
    if (!cluster)
        return;
    const { code, stderr } = await run('cp', ['-a', '--reflink=auto', cluster, join(stateDir, 'postgres')]);
    if (code !== 0)
        throw new Error(stderr);
}
