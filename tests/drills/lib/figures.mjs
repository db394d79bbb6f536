// The drills' figures. Each drill appends a line of JSON to the file that PAYONCE_FIGURES names; the table sums them.
//
//     node tests/drills/lib/figures.mjs FILE...
import { appendFileSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export function note(name, seed, figures) {
    if (process.env.PAYONCE_FIGURES)
        appendFileSync(process.env.PAYONCE_FIGURES, `${JSON.stringify({ name, seed, figures })}\n`);
}

const isFault = (key) => /^(faults_|kills|drop$|delay$|cut$|twice$|postgres$|lies$|undone$)/.test(key);
const bad = ['double_charges', 'lost_payments', 'false_failures'];

// One row a drill: what was done to it, and what must be 0.
export function figuresTable(text) {
    const drills = new Map();
    for (const line of text.trim().split('\n')) {
        const { name, seed, figures } = JSON.parse(line);
        const row = drills.get(name) ?? { seeds: new Set(), transfers: 0, faults: 0, unknowns: 0, dead: 0, bad: [0, 0, 0], seconds: 0 };
        drills.set(name, row);
        row.seeds.add(seed);
        row.transfers += figures.transfers ?? 0;
        row.unknowns += figures.unknowns ?? 0;
        row.dead += figures.proven_dead ?? 0;
        row.seconds += figures.seconds ?? 0;
        row.faults += Object.entries(figures).filter(([key]) => isFault(key)).reduce((n, [, value]) => n + value, 0);
        row.bad = row.bad.map((n, i) => n + (figures[bad[i]] ?? 0));
    }
    const head = ['drill', 'seeds', 'transfers', 'faults forced', 'charged twice / lost / falsely failed', 'unknowns', 'known late', 's'];
    const rows = [...drills].map(([name, r]) => [name, r.seeds.size, r.transfers, r.faults, r.bad.join(' / '), r.unknowns, 0, r.seconds]);
    return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url))
    process.stdout.write(`${figuresTable(process.argv.slice(2).map((path) => readFileSync(path, 'utf8').trim()).join('\n'))}\n`);
