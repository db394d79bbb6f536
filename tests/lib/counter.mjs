// A wire to the node that counts JSON-RPC calls by method, each of a batch.
import { createServer, request as httpRequest, Agent } from 'node:http';

export class RpcCounter {
    #agent = new Agent({ keepAlive: true });
    counts = {};

    async start(nodeUrl) {
        const { hostname, port } = new URL(nodeUrl);
        this.server = createServer((rq, rs) => {
            const chunks = [];
            rq.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
                const body = Buffer.concat(chunks);
                for (const { method } of [JSON.parse(body.toString('utf8'))].flat())
                    this.counts[method] = (this.counts[method] ?? 0) + 1;
                const headers = { 'content-type': 'application/json', 'content-length': body.length };
                httpRequest({ host: hostname, port, method: 'POST', path: '/', headers, agent: this.#agent }, (answer) => {
                    rs.writeHead(answer.statusCode, { 'content-type': 'application/json' });
                    answer.pipe(rs);
                }).on('error', () => rs.destroy()).end(body);
            });
        });
        await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
        this.url = `http://127.0.0.1:${this.server.address().port}`;
        return this;
    }

    get total() {
        return Object.values(this.counts).reduce((sum, n) => sum + n, 0);
    }

    close() {
        this.server.closeAllConnections();
        return new Promise((done) => this.server.close(done));
    }
}
