// Rules of the source that the compiler does not know: which way includes go, what is not called, how long things get.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from './lib/paths.mjs';

// An arrow only goes down this list; chain and sql do not know each other.
const rank = { api: 5, refunds: 4, settle: 3, receipts: 2, chain: 1, sql: 1, base: 0 };

// What others may include of a folder. Within it, everything.
const publicHeaders = {
    base: /^base\//,
    chain: /^chain\/(chain|tempo_tx)\.h$/,
    sql: /^sql\/sql\.h$/,
    receipts: /^receipts\/receipts\.h$/,
    settle: /^settle\/(canonical|chain_clock|keyed|mpp_challenge|mpp_credential|mpp_proof|orders|payment|pin|quote|seal|settlements|settler|siwx|terms|x402)\.h$/,
    refunds: /^refunds\/refunds\.h$/,
    api: /(?!)/,
};

// Libraries that one folder alone may know.
const homes = [
    [/^libpq-fe\.h$/, 'sql'],
    [/^microhttpd\.h$/, 'api'],
    [/^secp256k1/, 'chain'],
    [/^curl\//, 'base'],
    [/^nettle\//, 'base', 'chain'],
];

const banned = ['strcpy', 'strcat', 'sprintf', 'vsprintf', 'gets', 'atoi', 'atol', 'atoll', 'atof', 'strtok', 'alloca'];
const MAX_FILE = 600;
const MAX_FUNCTION = 60;
const MAX_LINE = 120;

function list(folder, pattern) {
    if (!existsSync(join(root, folder)))
        return [];
    return readdirSync(join(root, folder), { recursive: true }).map(String)
        .filter((name) => pattern.test(name) && !/(^|\/)node_modules\//.test(name))
        .map((name) => `${folder}/${name}`);
}

const folders = Object.keys(rank);
const sources = folders.flatMap((folder) => list(folder, /\.[ch]$/));
const read = (file) => readFileSync(join(root, file), 'utf8');

// The code without comments, strings and character constants; line numbers stay.
function bare(text) {
    return text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g,
        (match) => (match[0] === '/' ? match.replace(/[^\n]/g, '') : '""'));
}

function* matches(file, pattern, text = bare(read(file))) {
    for (const [i, line] of text.split('\n').entries())
        for (const match of line.matchAll(pattern))
            yield { at: `${file}:${i + 1}`, match };
}

function includeTrouble(file, header) {
    const [from] = file.split('/');
    const [to] = header.split('/');
    if (!header.includes('/') || rank[to] === undefined)
        return 'is not spelled from the top folder';
    if (from === to)
        return null;
    if (rank[to] >= rank[from])
        return `goes up: ${from} may not know ${to}`;
    return publicHeaders[to].test(header) ? null : `is private to ${to}`;
}

test('there are sources to look at', () => {
    assert.ok(sources.length > 20, `only ${sources.length} files`);
});

test('includes go down, and only to public headers', () => {
    const wrong = [];
    for (const file of sources)
        for (const { at, match } of matches(file, /^\s*#\s*include\s+"([^"]+\.h)"/g, read(file))) {
            const trouble = includeTrouble(file, match[1]);
            if (trouble)
                wrong.push(`${at}: "${match[1]}" ${trouble}`);
        }
    assert.deepEqual(wrong, []);
});

// An order has a payer, a payment and a proof, whatever brought the money; so has its story, its free repeats and its receipt.
test('orders know no rail by name', () => {
    const orders = ['settle/orders.h', 'settle/orders.c', 'settle/payment.h', 'settle/canonical.h', 'settle/canonical.c', 'api/gate_pay_first.c',
        'api/gate_repeat.c', 'api/gate_work.c', 'api/gate_key.c', 'api/explain.c', 'api/story.c', 'receipts/page.c', 'receipts/words.c',
        'sql/functions-orders.sql', 'sql/functions-work.sql', 'sql/functions-pay-first.sql', 'sql/functions-charges.sql', 'sql/functions-repeats.sql',
        'sql/functions-money.sql', 'sql/functions-events.sql', 'sql/functions-operator.sql', 'sql/views.sql'];
    const wrong = orders.flatMap((file) => [...matches(file, /x402|\bmpp|tempo/gi, read(file))]);
    assert.deepEqual(wrong.map(({ at, match }) => `${at}: ${match[0]}`), []);
});

// A debt has a source, a payer, an asset and an amount, whatever brought the money.
test('the ledger knows no rail by name', () => {
    const ledger = [...list('refunds', /\.[ch]$/), 'sql/functions-ledger.sql', 'sql/functions-refunds.sql', 'sql/functions-books.sql',
        'sql/0006-ledger.sql'];
    const wrong = ledger.flatMap((file) => [...matches(file, /x402|mpp|tempo|facilitat/gi, read(file))]);
    assert.ok(ledger.length > 10);
    assert.deepEqual(wrong.map(({ at, match }) => `${at}: ${match[0]}`), []);
});

test('each library is known to its own folder alone', () => {
    const wrong = [];
    for (const file of sources)
        for (const { at, match } of matches(file, /^\s*#\s*include\s+<([^>]+)>/g, read(file))) {
            const home = homes.find(([header]) => header.test(match[1]));
            if (home && !home.includes(file.split('/')[0]))
                wrong.push(`${at}: <${match[1]}>`);
        }
    assert.deepEqual(wrong, []);
});

test('no banned call, no goto, no typedef of a struct', () => {
    const calls = `\\b(${banned.join('|')})\\s*\\(`;
    const all = new RegExp(`${calls}|\\bgoto\\b|\\btypedef\\s+(struct|union|enum)\\b[^(]*$`, 'g');
    const wrong = sources.flatMap((file) => [...matches(file, all)]);
    assert.deepEqual(wrong.map(({ at, match }) => `${at}: ${match[0].trim()}`), []);
});

test(`no function over ${MAX_FUNCTION} lines`, () => {
    const wrong = [];
    for (const file of sources.filter((name) => name.endsWith('.c'))) {
        let opened = null;
        for (const [i, line] of read(file).split('\n').entries()) {
            if (line === '{')
                opened = i;
            if (line === '}' && opened !== null && i - opened - 1 > MAX_FUNCTION)
                wrong.push(`${file}:${opened + 1}: ${i - opened - 1} lines`);
        }
    }
    assert.deepEqual(wrong, []);
});

test(`no line over ${MAX_LINE} columns in the ledger and the receipts`, () => {
    const wrong = sources.filter((file) => /^(refunds|receipts)\//.test(file)).flatMap((file) => read(file).split('\n')
        .flatMap((line, i) => (line.length > MAX_LINE ? [`${file}:${i + 1}: ${line.length}`] : [])));
    assert.deepEqual(wrong, []);
});

const others = [...list('dev', /\.(mjs|sh)$/), ...list('tests', /\.(mjs|c|h|sh|sol)$/), ...list('sql', /\.sql$/)];

test('no merge left its marks', () => {
    const wrong = [...sources, ...others].flatMap((file) => [...matches(file, /^(<{7} |>{7} |={7}$)/g, read(file))]);
    assert.deepEqual(wrong.map(({ at }) => at), []);
});

test(`no file over ${MAX_FILE} lines`, () => {
    const wrong = [...sources, ...others].map((file) => [file, read(file).trimEnd().split('\n').length])
        .filter(([, lines]) => lines > MAX_FILE);
    assert.deepEqual(wrong, []);
});
