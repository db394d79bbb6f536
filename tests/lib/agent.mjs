// payonce pay as tests run it.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { secretFile } from '../../dev/place.mjs';

export const FUNDS = 1_000_000n;

// The agent's side: a wallet, its key file and its store.
export class Agent {
    constructor(world, payer) {
        this.world = world;
        this.payer = payer;
        this.dir = mkdtempSync(join(world.dir, 'agent-'));
        this.store = join(this.dir, 'store');
        this.keyFile = secretFile(join(this.dir, 'key'), payer.key);
    }

    // Resolves to { code, stderr, json }; `store` stands in for the agent's own.
    async pay(where, args = [], { store = this.store } = {}) {
        const url = where.startsWith('http') ? where : `${this.world.gateway}${where}`;
        const fixed = ['pay', '--json', '--key-file', this.keyFile, '--store', store];
        const { code, stdout, stderr } = await this.world.payonce([...fixed, ...args, url]);
        return { code, stderr, json: stdout ? JSON.parse(stdout) : null };
    }

    intents(store = this.store) {
        const names = existsSync(store) ? readdirSync(store).filter((name) => name.endsWith('.json')) : [];
        return names.map((name) => JSON.parse(readFileSync(join(store, name), 'utf8')));
    }

    intent() {
        const all = this.intents();
        assert.equal(all.length, 1);
        return all[0];
    }

    async spent() {
        return FUNDS - await this.world.chain.balanceOf(this.payer.address);
    }
}

export const newAgent = async (world) => new Agent(world, await world.newPayer({ atoms: FUNDS }));

// The exit status, and what --json says of it.
export function ended(result, code) {
    assert.equal(result.code, code, JSON.stringify(result.json ?? result.stderr));
    assert.equal(result.json.exit, code);
    assert.equal(result.json.success, code === 0);
    return result.json;
}
