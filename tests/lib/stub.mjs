// A JSON-RPC endpoint in front of the node that does as it is told: it passes everything on but the methods for which
// a test has put an act in. Several may stand in front of one node, each lying in its own way.
//
//     stub.acts.eth_getTransactionReceipt = (params, pass) => null;
//
// `pass()` asks the node. An act that throws a Refusal answers with a JSON-RPC error; CUT breaks the connection, and
// HTML is a web server's page.
import { createServer } from 'node:http';
import { Rpc } from '../../dev/rpc.mjs';
import { endWorld, freePort, startWorld } from './world.mjs';

export class Refusal extends Error {
    constructor(code, message) {
        super(message);
        this.code = code;
    }
}
export const CUT = Symbol('cut');
export const HTML = Symbol('html');

export class Stub {
    acts = {};
    asked = [];

    static async start(node) {
        const stub = new Stub();
        stub.node = new Rpc(node);
        stub.server = createServer((request, response) => {
            stub.#serve(request, response).catch(() => response.socket?.destroy());
        });
        stub.server.keepAliveTimeout = 60_000;
        const port = await freePort();
        await new Promise((done) => stub.server.listen(port, '127.0.0.1', done));
        stub.url = `http://127.0.0.1:${port}`;
        return stub;
    }

    async #serve(request, response) {
        const chunks = [];
        for await (const chunk of request)
            chunks.push(chunk);
        const text = Buffer.concat(chunks).toString('utf8');
        const body = JSON.parse(text);
        const items = [body].flat();
        this.asked.push(...items.map(({ method, params }) => ({ method, params })));
        if (!items.some(({ method }) => this.acts[method] || this.acts.all)) {
            const answer = await fetch(this.node.url, { method: 'POST', headers: { 'content-type': 'application/json' },
                body: text });
            return this.#reply(response, await answer.text());
        }
        const answers = await Promise.all(items.map((item) => this.#answer(item)));
        if (answers.some(({ result }) => result === CUT))
            return response.socket.destroy();
        if (answers.some(({ result }) => result === HTML)) {
            response.writeHead(502, { 'content-type': 'text/html' });
            return response.end('<html>bad</html>');
        }
        return this.#reply(response, JSON.stringify(Array.isArray(body) ? answers : answers[0]));
    }

    #reply(response, text) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(text);
    }

    async #answer({ id, method, params }) {
        const act = this.acts[method] ?? this.acts.all;
        try {
            const pass = (other = params) => this.node.call(method, ...other);
            return { jsonrpc: '2.0', id, result: await (act ? act(params, pass) : pass()) };
        } catch ({ code = -32603, message, data }) {
            return { jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } };
        }
    }

    honest() {
        this.acts = {};
    }

    // The bytes of each transaction that was to be sent through here, once each, oldest first.
    get sent() {
        const sends = this.asked.filter(({ method }) => method === 'eth_sendRawTransaction');
        return [...new Set(sends.map(({ params }) => params[0]))];
    }

    stop() {
        this.server.closeAllConnections();
        return new Promise((done) => this.server.close(done));
    }
}

async function start(count, options, stubs) {
    const beforeConfig = async (world) => {
        for (let i = 0; i < count; i++)
            stubs.push(await Stub.start(world.rpcUrl));
        Object.assign(world, { stubs, stub: stubs[0] });
        await options.beforeConfig?.(world);
    };
    const rpc = (world) => count > 0 ? world.stubs.map(({ url }) => url) : undefined;
    return startWorld({ rpc, ...options, beforeConfig });
}

// inWorld, with `count` of them (0: none) between the world's programs and its node: world.stubs, and world.stub, the
// first. Several may run at once.
export function behindStubs(count, options, body) {
    return async () => {
        const stubs = [];
        try {
            const world = await start(count, options, stubs);
            try {
                await body(world);
            } catch (error) {
                world.dumpLogs();
                await world.close().catch((trouble) => process.stderr.write(`${trouble.message}\n`));
                throw error;
            }
            await endWorld(world);
        } finally {
            for (const stub of stubs)
                await stub.stop();
        }
    };
}
