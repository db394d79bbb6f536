// The network between a client and a gateway: a proxy that passes everything on, but for what a test has it do to it.
//
//     edge.act = async (call, pass) => call.turn === 1 ? CUT : pass();
//
// `pass()` asks the gateway, or with an address another one; CUT breaks the connection.
import { createServer } from 'node:http';
import { request } from './http.mjs';
import { CUT } from './stub.mjs';
import { freePort } from './world.mjs';

export { CUT };

export class Edge {
    act = (call, pass) => pass();
    seen = []; // each call, with the status that its client was told (null: it was cut off)
    #turns = 0;

    static async start(base) {
        const edge = new Edge();
        edge.base = base;
        edge.server = createServer((incoming, response) => {
            edge.#serve(incoming, response).catch(() => response.socket?.destroy());
        });
        const port = await freePort();
        await new Promise((done) => edge.server.listen(port, '127.0.0.1', done));
        edge.url = `http://127.0.0.1:${port}`;
        return edge;
    }

    async #serve(incoming, response) {
        const chunks = [];
        for await (const chunk of incoming)
            chunks.push(chunk);
        const { connection, ...headers } = incoming.headers;
        const call = { method: incoming.method, path: incoming.url, headers, body: Buffer.concat(chunks), status: null };
        call.paid = /^Payment /.test(headers.authorization ?? '') || headers['payment-signature'] !== undefined;
        call.turn = call.paid ? ++this.#turns : 0; // of those that bring a payment
        this.seen.push(call);
        const pass = (base = this.base) => request(base, call.path, { method: call.method, headers, body: call.body });
        const answer = await this.act(call, pass);
        if (answer === CUT)
            return response.socket.destroy();
        call.status = answer.status;
        const { 'transfer-encoding': _, connection: __, ...told } = answer.headers;
        response.writeHead(answer.status, { ...told, 'content-length': answer.body.length });
        return response.end(answer.body);
    }

    get paid() {
        return this.seen.filter((call) => call.paid);
    }

    stop() {
        this.server.closeAllConnections();
        return new Promise((done) => this.server.close(done));
    }
}
