// A JSON-RPC endpoint in front of the node in which a test takes over single calls:
// hook(method, params, real) resolves to the result, or throws; real() asks the node. A string of HTML is sent as such.
import { createServer } from 'node:http';

export class Stub {
    hook = null;
    seen = [];

    constructor(chain) {
        this.chain = chain;
        this.server = createServer((from, to) => this.#serve(from, to).catch(() => to.destroy()));
        this.server.on('connection', (socket) => socket.unref());
    }

    async start(port) {
        this.server.unref();
        await new Promise((done, failed) => this.server.once('error', failed).listen(port, '127.0.0.1', done));
        this.url = `http://127.0.0.1:${port}`;
        return this;
    }

    count(method) {
        return this.seen.filter((call) => call.method === method).length;
    }

    async #answer({ id, method, params = [] }) {
        const real = () => this.chain.rpc.call(method, ...params);
        this.seen.push({ method, params });
        try {
            const result = await (this.hook ? this.hook(method, params, real) : real());
            return { jsonrpc: '2.0', id, result };
        } catch (error) {
            const { code = -32_603, message, data } = error;
            return { jsonrpc: '2.0', id, error: { code, message, data }, page: error.page };
        }
    }

    async #serve(from, to) {
        const chunks = [];
        for await (const chunk of from)
            chunks.push(chunk);
        const asked = JSON.parse(Buffer.concat(chunks).toString());
        const answers = await Promise.all([asked].flat().map((call) => this.#answer(call)));
        const page = answers.find((answer) => answer.page)?.page;
        to.writeHead(page ? 502 : 200, { 'content-type': page ? 'text/html' : 'application/json' });
        return to.end(page ?? JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
    }
}

export const fails = (code, message) => Object.assign(new Error(message), { code });
export const page = () => Object.assign(new Error('a page'), { page: '<html>bad</html>' });
