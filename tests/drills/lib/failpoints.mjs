// Every named crash point of the program, by who passes it. A test compares the list with the sources.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../lib/paths.mjs';

export const points = {
    gateway: ['gateway-before-accept', 'gateway-after-accept', 'gateway-before-work', 'gateway-after-work',
        'gateway-before-finish', 'gateway-after-finish', 'gateway-before-answer'],
    facilitator: ['facilitator-before-accept', 'facilitator-after-accept'],
    settler: ['settler-after-claim', 'settler-before-store', 'settler-after-store', 'settler-before-broadcast',
        'settler-after-broadcast', 'settler-before-proof', 'settler-after-proof'],
    chain: ['settler-before-scan', 'settler-before-end', 'settler-before-undo', 'settler-before-replace'],
    refunds: ['refund-after-due', 'refund-before-sign', 'refund-after-sign', 'carry-before-store', 'carry-after-store',
        'refund-after-send', 'ledger-before-movements', 'ledger-after-movements'],
    agent: ['pay_stored', 'pay_answered'],
    // the second rail, whose money comes before the work
    first: ['gateway-before-begin', 'gateway-after-begin'],
    charge: ['settler-before-charge', 'settler-after-charge'],
    push: ['pay_push', 'pay_pushed'],
    // refunds on Tempo: scenarios/refunds-tempo.test.mjs kills there
    keyed: ['refund-before-end', 'refund-after-end'],
};

export function inSources() {
    const text = ['api', 'refunds', 'settle', 'receipts', 'chain', 'sql'].flatMap((folder) =>
        readdirSync(join(root, folder)).filter((name) => name.endsWith('.c'))
            .map((name) => readFileSync(join(root, folder, name), 'utf8'))).join('\n');
    return [...new Set([...text.matchAll(/\bFAILPOINT\("([^"]+)"\)/g)].map(([, name]) => name))];
}

// The role dies at the point while `act` is done, and is started again. Resolves to what act resolves to. A settler of two
// networks is two processes, and the one that is left ends as well, by itself.
export async function diesAt(world, role, point, act) {
    await world.restart(role, { env: { PAYONCE_FAILPOINT: point } });
    const result = act();
    const end = await world.ended(role, 90_000);
    assert.ok(end === 'SIGKILL' || (role === 'settler' && world.tempo && end !== 0), `${point} was never passed: ${end}`);
    await world.startRole(role);
    return result;
}
