// The demo's seller: an ordinary HTTP API that knows nothing of payments. Three read tools over Debian's
// iso-codes, and a shop whose orders are on disk before it answers.
//
//     node dev/upstream.mjs --port 4030 --dir DIR [--test]
//
//     GET  /iso/countries?code=FR      one, or all without a code (alpha-2 or alpha-3)
//     GET  /iso/currencies?code=EUR
//     GET  /iso/languages?code=fr
//     POST /shop/orders                {"item": "...", "quantity": 1}
//     GET  /shop/counts                how often each Idempotency-Key ordered
//
// With --test it also misbehaves on request: see misbehave() below.
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
    options: {
        port: { type: 'string', default: '4030' },
        dir: { type: 'string' },
        test: { type: 'boolean', default: false },
    },
});
if (!options.dir)
    throw new Error('--dir DIR is missing');

// ---- the read tools ----

function registry(file, key, codes) {
    const list = JSON.parse(readFileSync(`/usr/share/iso-codes/json/${file}.json`, 'utf8'))[key];
    const byCode = new Map();
    for (const entry of list)
        for (const code of codes)
            if (entry[code])
                byCode.set(entry[code].toLowerCase(), entry);
    return { list, byCode };
}

const registries = {
    '/iso/countries': registry('iso_3166-1', '3166-1', ['alpha_2', 'alpha_3']),
    '/iso/currencies': registry('iso_4217', '4217', ['alpha_3', 'numeric']),
    '/iso/languages': registry('iso_639-2', '639-2', ['alpha_2', 'alpha_3']),
};

function lookUp({ list, byCode }, code) {
    if (code === null)
        return [200, list];
    const entry = byCode.get(code.toLowerCase());
    return entry ? [200, entry] : [404, { error: `no such code: ${code}` }];
}

// ---- the shop ----

mkdirSync(options.dir, { recursive: true });
const book = join(options.dir, 'orders.jsonl');
const fd = openSync(book, 'a', 0o600);
const counts = new Map();
let orders = 0;

function countOrder({ key }) {
    orders += 1;
    counts.set(key, (counts.get(key) ?? 0) + 1);
}

for (const line of readFileSync(book, 'utf8').split('\n'))
    if (line)
        countOrder(JSON.parse(line));

function order(request, body) {
    let wanted;
    try {
        wanted = JSON.parse(body.toString('utf8'));
    } catch {
        return [400, { error: 'the order is not JSON' }];
    }
    if (typeof wanted?.item !== 'string' || !Number.isInteger(wanted.quantity ?? 1))
        return [422, { error: 'an order has an "item" (text) and a "quantity" (whole number)' }];
    const entry = {
        key: request.headers['idempotency-key'] ?? '', item: wanted.item, quantity: wanted.quantity ?? 1,
        payer: request.headers['x-payer'] ?? null, at: new Date().toISOString(),
    };
    writeSync(fd, `${JSON.stringify(entry)}\n`);
    fsyncSync(fd);
    countOrder(entry);
    return [201, { order: orders, item: entry.item, quantity: entry.quantity }];
}

// ---- what only tests ask for ----

const calls = [];
const held = [];

const callOf = (request) => ({
    method: request.method, target: request.url, key: request.headers['idempotency-key'] ?? null,
});

// GET /test/calls: what was asked so far (DELETE forgets it). DELETE /test/held: what waits by hold=1 is answered. Any other
// path below /test/ answers what it received.
function testRoute(request, path, body) {
    if (path === '/test/calls')
        return [200, request.method === 'DELETE' ? calls.splice(0) : calls];
    if (path === '/test/held')
        return [200, held.splice(0).map((go) => go()).length];
    return [200, { ...callOf(request), headers: request.rawHeaders, body: body.toString('base64') }];
}

function noteCall(request, path) {
    if (!['/test/calls', '/test/held'].includes(path))
        calls.push({ ...callOf(request), at: Date.now() });
}

// Query parameters: delay_ms=N, hold=1 (until it is let go), status=N, size=N (a body of N bytes), binary=1 (all byte values), header=name:value,
// cut=N (the socket closes after N bytes of the body), reset=1 (it closes before any), hang=1 (it never answers).
function misbehave(response, query, answer) {
    const number = (name) => Number(query.get(name));
    if (query.has('reset'))
        return response.socket.destroy();
    if (query.has('hang'))
        return undefined;
    let { status, type, body } = answer;
    if (query.has('status'))
        status = number('status');
    if (query.has('size'))
        [type, body] = ['application/octet-stream', Buffer.alloc(number('size'), 'x')];
    if (query.has('binary'))
        [type, body] = ['application/octet-stream', Buffer.from(Array.from({ length: 256 }, (_, i) => i))];
    const headers = { 'content-type': type, 'content-length': body.length };
    for (const header of query.getAll('header')) {
        const [name, value] = header.split(/:(.*)/s);
        headers[name] = value;
    }
    response.writeHead(status, headers);
    if (query.has('cut'))
        return response.write(body.subarray(0, number('cut')), () => response.socket.destroy());
    return response.end(body);
}

// ---- the server ----

function route(request, url, body) {
    if (options.test && url.pathname.startsWith('/test/'))
        return testRoute(request, url.pathname, body);
    if (['GET', 'HEAD'].includes(request.method) && registries[url.pathname])
        return lookUp(registries[url.pathname], url.searchParams.get('code'));
    if (request.method === 'POST' && url.pathname === '/shop/orders')
        return order(request, body);
    if (request.method === 'GET' && url.pathname === '/shop/counts')
        return [200, Object.fromEntries(counts)];
    return [404, { error: 'no such route' }];
}

async function serve(request, response) {
    const chunks = [];
    for await (const chunk of request)
        chunks.push(chunk);
    const url = new URL(request.url, 'http://upstream');
    if (options.test) {
        noteCall(request, url.pathname);
        if (url.searchParams.has('delay_ms'))
            await new Promise((done) => setTimeout(done, Number(url.searchParams.get('delay_ms'))));
        if (url.searchParams.has('hold'))
            await new Promise((done) => held.push(done));
    }
    const [status, value] = route(request, url, Buffer.concat(chunks));
    const answer = { status, type: 'application/json', body: Buffer.from(`${JSON.stringify(value)}\n`) };
    if (options.test)
        return misbehave(response, url.searchParams, answer);
    response.writeHead(status, { 'content-type': answer.type, 'content-length': answer.body.length });
    return response.end(answer.body);
}

const server = createServer((request, response) => {
    serve(request, response).catch(() => response.socket?.destroy());
});
server.keepAliveTimeout = 60_000;
server.listen(Number(options.port), '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ upstream: `http://127.0.0.1:${options.port}`, pid: process.pid })}\n`);
});
for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, () => {
        closeSync(fd);
        process.exit(0);
    });
