// The guide's table of codes, from the registry of errors.
//
//     node dev/guide.mjs        writes it into GUIDE.md
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const guide = join(root, 'GUIDE.md');
const entry = /^ERR\(\w+,\s*"(\w+)",\s*(\d+),\s*(\w+),\s*(\w+),\s*"([^"]*)",\s*"([^"]*)"\)/gm;
const marks = ['<!-- codes: node dev/guide.mjs writes this table -->\n', '<!-- end of codes -->'];

export function codesTable() {
    const registry = readFileSync(join(root, 'base/err.def'), 'utf8');
    const rows = [...registry.matchAll(entry)].map(([, code, http, retry, money, title, detail]) =>
        `| \`${code}\` | ${http} | \`${retry.toLowerCase()}\` | \`${money.toLowerCase()}\` | ${title}. ${detail} |`);
    return ['| code | HTTP | retry | money | what it says |', '|---|---|---|---|---|', ...rows, ''].join('\n');
}

export function withTable(text) {
    const [from, to] = [text.indexOf(marks[0]) + marks[0].length, text.indexOf(marks[1])];
    if (from < marks[0].length || to < from)
        throw new Error('GUIDE.md has lost the marks around its table');
    return text.slice(0, from) + codesTable() + text.slice(to);
}

if (process.argv[1] === fileURLToPath(import.meta.url))
    writeFileSync(guide, withTable(readFileSync(guide, 'utf8')));
