// The payonce schema as it is, and back again, by PostgreSQL's own tools.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { run } from '../../dev/process.mjs';
import { ownerOf, psql } from './psql.mjs';

export async function backup(world) {
    const path = join(world.dir, `backup-${Date.now()}.dump`);
    const { code, stderr } = await run('pg_dump', ['-Fc', '-n', 'payonce', '-f', path, '-d', ownerOf(world.conninfo)]);
    assert.equal(code, 0, stderr);
    return path;
}

export async function restore(world, path) {
    await world.stop('gateway');
    // pg_restore --clean cannot drop what a partition inherits
    await psql(ownerOf(world.conninfo), 'DROP SCHEMA payonce CASCADE');
    const { code, stderr } = await run('pg_restore', ['-d', ownerOf(world.conninfo), path]);
    assert.equal(code, 0, stderr);
    await world.startRole('gateway');
}
