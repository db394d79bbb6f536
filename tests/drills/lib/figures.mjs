// The drills' figures. Each drill appends a line of JSON to the file that PAYONCE_FIGURES names; the table sums them.
//
//     node tests/drills/lib/figures.mjs FILE...
import { appendFileSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export function note(name, seed, figures) {
    if (process.env.PAYONCE_FIGURES)
        appendFileSync(process.env.PAYONCE_FIGURES, `${JSON.stringify({ name, seed, figures })}\n`);
}

const isFault = (key) => /^(faults_|kills|copies$|acts$|lies$|drop$|delay$|cut$|twice$|postgres$|undone$)/.test(key);
const family = (name) => (name.includes('x402') ? 'official clients' : name.split(':')[0]);
const summed = ['transfers', 'retries', 'unknowns', 'proven_dead', 'double_charges', 'lost_payments', 'false_failures'];

// One row a family of drills: what was done to it, and what must be 0. A drill that failed has no figures.
export function figuresTable(text) {
    const drills = new Map();
    for (const line of text.trim().split('\n')) {
        const { name, seed, figures } = JSON.parse(line);
        const row = drills.get(family(name)) ?? { seeds: new Set(), faults: 0, ...Object.fromEntries(summed.map((key) => [key, 0])) };
        drills.set(family(name), row);
        row.seeds.add(seed);
        for (const key of summed)
            row[key] += figures[key] ?? 0;
        for (const [key, value] of Object.entries(figures))
            row.faults += isFault(key) ? value : 0;
    }
    const head = ['drill', 'seeds', 'transfers', 'retries', 'faults forced', 'unknowns, all known in time', 'of them proven dead',
        'charged twice', 'lost', 'falsely failed'];
    const rows = [...drills].sort().map(([name, r]) => [name, r.seeds.size, r.transfers, r.retries, r.faults, r.unknowns, r.proven_dead,
        r.double_charges, r.lost_payments, r.false_failures]);
    return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url))
    process.stdout.write(`${figuresTable(process.argv.slice(2).map((path) => readFileSync(path, 'utf8').trim()).join('\n'))}\n`);
