// Worlds whose refund wallet pays debts on Tempo, and what their tests ask of them.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { secretFile } from '../../dev/place.mjs';
import { bytea } from './ledger.mjs';
import { refundWallet } from './refunds.mjs';
import { PATH_USD, TEMPO, challenge, onTempo, push, tempoPayer } from './tempo.mjs';

export const tempoPolicy = (changes = {}) => ({
    network: TEMPO, token: 'pathUSD', mode: 'automatic', after_s: 0, every_s: 1, ...changes,
});
const PATH = '/test/tempo';
export const PRICE = 250n;

// Options of a world whose settler pays refunds on Tempo from a wallet that holds `atoms`.
export function tempoRefunding({ refunds = tempoPolicy(), atoms = 10_000_000n, extra = {}, ...options } = {}) {
    return onTempo({
        ...options,
        extra: { refunds: [refunds], ...extra },
        beforeConfig: async (world) => {
            world.env.PAYONCE_REFUND_KEY_FILE = secretFile(join(world.dir, 'refund'), refundWallet.key);
            if (atoms > 0n)
                await world.tempo.fund(refundWallet.address, atoms);
            await options.beforeConfig?.(world);
        },
    });
}

// A settler of Tempo alone: one process, which a failpoint ends as the tests expect.
export function settleTempo(world, env = {}, name = 'settler') {
    const path = join(world.dir, 'tempo-only.json');
    const config = JSON.parse(readFileSync(world.config, 'utf8'));
    config.networks = config.networks.filter(({ id }) => id === TEMPO);
    config.tools = config.tools.map((tool) => ({ ...tool, prices: tool.prices?.filter(({ network }) => network === TEMPO) }))
        .filter(({ prices }) => prices?.length > 0);
    writeFileSync(path, JSON.stringify(config));
    world.tempoConfig = path;
    return world.startRole(name, { env, config: path });
}

export const present = (world, path, authorization) => world.request(path, { headers: { authorization } });

// A paid call whose work fails: one debt, cause work_failed.
export async function failed(world, payer, { path = `${PATH}?status=500`, change } = {}) {
    payer ??= await tempoPayer(world);
    const { hash, authorization } = await push(world, payer, await challenge(world, path), change);
    const answer = await present(world, path, authorization);
    assert.equal(answer.json.code, 'work_failed_paid', answer.text);
    return { payer, hash };
}

// Every Transfer of the refund wallet's that reached the payer.
export const back = async (world, payer, token = PATH_USD) => (await world.tempo.allTransfers(token, payer.address))
    .filter(({ from }) => from === refundWallet.address.toLowerCase());

export const refundsOf = (world, payer) => world.sql(`SELECT r.id, r.state, r.key_count::int AS count,
        '0x' || encode(r.hash, 'hex') AS hash, '0x' || encode(r.raw, 'hex') AS raw, '0x' || encode(r.nonce_key, 'hex') AS key,
        r.valid_before::text
   FROM refund_transactions r JOIN debts d ON d.id = r.debt_id WHERE d.payer = ${bytea(payer.address)} ORDER BY r.id`);

// The books reach what is final now; then both programs that compare find nothing.
export async function booksOfTempo(world, deadlineMs = 60_000) {
    const { number } = await world.tempo.block();
    await world.waitFor(async () => {
        const [row] = await world.sql(`SELECT min(least(m.block, s.block)) AS block FROM movement_scans m
            LEFT JOIN scans s USING (network, wallet) WHERE m.network = '${TEMPO}'`);
        return row.block >= number;
    }, `the books of Tempo reach block ${number}`, deadlineMs);
    const options = { config: world.tempoConfig ?? world.config };
    const { stdout } = await world.payonce(['reconcile', '--json'], options);
    const reports = stdout.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(reports.flatMap(({ differences }) => differences), []);
    const { code, stdout: said, stderr } = await world.payonce(['auditor', '--once'], options);
    assert.equal(code, 0, `payonce auditor --once:\n${said}${stderr}`);
}
