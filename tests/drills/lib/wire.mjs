// Wires that lose things. An HttpWire stands in front of an HTTP server, an SqlWire in front of a PostgreSQL socket;
// what they do to a reply is drawn from a Chance:
//
//     drop    the request was served, its reply is never seen
//     delay   the reply comes late
//     cut     the connection ends in the middle of the reply's body
//     twice   the request is served twice, and one of the replies is passed on
//
// `faults` are the shares of each; they can be changed while the wire is in use. `injected` counts.
import { createServer as createHttp, request as httpRequest, Agent } from 'node:http';
import { connect, createServer as createTcp } from 'node:net';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

export const LOSSY = { drop: 0.2, delay: 0.1, cut: 0.05, twice: 0.05 };

class Wire {
    injected = { drop: 0, delay: 0, cut: 0, twice: 0 };
    passed = 0;

    constructor(chance, faults) {
        this.chance = chance;
        this.faults = faults;
    }

    draw(shares = this.faults) {
        const fault = this.chance.draw(shares);
        if (fault)
            this.injected[fault] += 1;
        else
            this.passed += 1;
        return fault;
    }

    delayMs() {
        return this.chance.between(50, this.longestMs ?? 1_500);
    }

    listen(where) {
        this.server.unref();
        return new Promise((done, failed) => this.server.once('error', failed).listen(where, done));
    }

    close() {
        this.server.closeAllConnections?.();
        return new Promise((done) => this.server.close(done));
    }
}

const later = (ms) => new Promise((done) => setTimeout(done, ms));

// What the hop after it must not get from the one before.
function endToEnd(raw) {
    const kept = [];
    for (let i = 0; i < raw.length; i += 2)
        if (!/^(connection|keep-alive|transfer-encoding)$/i.test(raw[i]))
            kept.push(raw[i], raw[i + 1]);
    return kept;
}

export class HttpWire extends Wire {
    #agent = new Agent({ keepAlive: true });

    // options: once(request) true: never served twice by us; onRequest(method, path, headers).
    constructor(chance, port, { faults = LOSSY, once = () => false, onRequest = () => {}, longestMs } = {}) {
        super(chance, faults);
        Object.assign(this, { target: port, once, onRequest, longestMs });
        this.server = createHttp((from, to) => this.#serve(from, to).catch(() => to.destroy()));
        this.server.keepAliveTimeout = 60_000;
        this.server.on('clientError', (_, socket) => socket.destroy());
        this.server.on('connection', (socket) => socket.unref());
    }

    async start(port) {
        await this.listen({ port, host: '127.0.0.1' });
        this.url = `http://127.0.0.1:${port}`;
        return this;
    }

    forward(from, body) {
        const headers = endToEnd(from.rawHeaders);
        if (body.length > 0 && from.headers['content-length'] === undefined)
            headers.push('content-length', String(body.length));
        const options = { host: '127.0.0.1', port: this.target, method: from.method, path: from.url, headers,
            agent: this.#agent };
        return new Promise((done, failed) => {
            const out = httpRequest(options, (reply) => {
                const chunks = [];
                reply.on('data', (chunk) => chunks.push(chunk));
                reply.on('end', () => done({ status: reply.statusCode, headers: endToEnd(reply.rawHeaders),
                    body: Buffer.concat(chunks) }));
                reply.on('error', failed);
                reply.on('aborted', () => failed(new Error('cut behind the wire')));
            });
            out.on('error', failed);
            out.end(body.length > 0 ? body : undefined);
        });
    }

    async #serve(from, to) {
        const chunks = [];
        for await (const chunk of from)
            chunks.push(chunk);
        const body = Buffer.concat(chunks);
        this.onRequest(from.method, from.url, from.headers, body);
        const fault = this.draw();
        const again = fault === 'twice' && !this.once(from) ? this.forward(from, body).catch(() => null) : null;
        let reply = await this.forward(from, body);
        reply = await again ?? reply;
        if (fault === 'delay')
            await later(this.delayMs());
        if (fault === 'drop')
            return to.destroy();
        to.writeHead(reply.status, reply.headers);
        if (fault === 'cut') {
            to.flushHeaders();
            return to.write(reply.body.subarray(0, reply.body.length >> 1), () => to.destroy());
        }
        return to.end(reply.body);
    }

    close() {
        this.#agent.destroy();
        return super.close();
    }
}

// PostgreSQL's messages pass as they are; what is drawn for is each piece that the server sends once a session is
// ready. A dropped or cut one ends the connection: what was asked was done, and nobody hears of it.
export class SqlWire extends Wire {
    #sockets = new Set();

    constructor(chance, target, { faults = { drop: 0.2, delay: 0.1, cut: 0.05 }, longestMs = 300 } = {}) {
        super(chance, faults);
        Object.assign(this, { target, longestMs });
        this.server = createTcp((near) => this.#carry(near));
    }

    async start(path) {
        mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
        await this.listen({ path });
        return this;
    }

    #carry(near) {
        const far = connect({ path: this.target });
        const both = [near, far];
        const end = () => both.forEach((socket) => socket.destroy());
        let ready = false;
        let held = Promise.resolve();
        for (const socket of both) {
            socket.unref();
            this.#sockets.add(socket);
            socket.on('error', end);
            socket.on('close', () => {
                this.#sockets.delete(socket);
                end();
            });
        }
        near.on('data', (piece) => far.write(piece));
        far.on('data', (piece) => {
            const fault = ready ? this.draw() : null;
            ready ||= piece.includes(Buffer.from('Z\0\0\0\x05', 'latin1'));
            if (fault === 'drop')
                return end();
            if (fault === 'cut')
                return near.write(piece.subarray(0, piece.length >> 1), end);
            const wait = fault === 'delay' ? this.delayMs() : 0;
            held = held.then(() => (wait > 0 ? later(wait) : null)).then(() => !near.destroyed && near.write(piece));
            return undefined;
        });
    }

    close() {
        this.#sockets.forEach((socket) => socket.destroy());
        return super.close();
    }
}

// Ends connections in the middle of a long answer, so early that the server has not written its last byte yet: after
// `least` to `most` bytes of an answer, in a `share` of the answers that have so many.
export class CutWire extends Wire {
    constructor(chance, target, { share, least, most }) {
        super(chance, { cut: share });
        Object.assign(this, { target, least, most });
        this.server = createTcp({ highWaterMark: 16_384 }, (near) => this.#carry(near));
    }

    async start(port) {
        await this.listen({ port, host: '127.0.0.1' });
        this.url = `http://127.0.0.1:${port}`;
        return this;
    }

    #carry(near) {
        const far = connect({ port: this.target, host: '127.0.0.1' });
        const end = () => [near, far].forEach((socket) => socket.destroy());
        const headroom = 16_384;        // a challenge passes
        let limit, seen;
        for (const socket of [near, far]) {
            socket.unref();
            socket.on('error', end);
            socket.on('close', end);
        }
        near.on('data', (piece) => {    // a new exchange, drawn for anew
            limit = this.chance.happens(this.faults.cut) ? this.chance.between(this.least, this.most) : Infinity;
            seen = 0;
            far.write(piece);
        });
        far.on('data', (piece) => {
            seen += piece.length;
            if (seen > limit + headroom) {
                this.injected.cut += 1;
                return end();
            }
            if (!near.write(piece)) {
                far.pause();
                near.once('drain', () => far.resume());
            }
            return undefined;
        });
    }
}
