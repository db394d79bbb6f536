// HTTP as tests need it: what is sent is what was written, byte for byte.
import { request as httpRequest, Agent } from 'node:http';
import { connect } from 'node:net';

const keepAlive = new Agent({ keepAlive: true, maxSockets: 2000 });

class Answer {
    constructor(status, headers, body) {
        Object.assign(this, { status, headers, body });
    }

    get text() {
        return this.body.toString('utf8');
    }

    get json() {
        return JSON.parse(this.text);
    }
}

// The path is sent as it is given. Rejects when the connection breaks before the answer is complete.
export function request(base, path, { method = 'GET', headers = {}, body, agent = keepAlive, signal } = {}) {
    const { hostname, port } = new URL(base);
    return new Promise((done, failed) => {
        const outgoing = httpRequest({ host: hostname, port, path, method, headers, agent, signal }, (incoming) => {
            const chunks = [];
            incoming.on('data', (chunk) => chunks.push(chunk));
            incoming.on('end', () => done(new Answer(incoming.statusCode, incoming.headers, Buffer.concat(chunks))));
            incoming.on('error', failed);
        });
        outgoing.on('error', failed);
        outgoing.end(body);
    });
}

function parseHead(bytes) {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0)
        return null;
    const [first, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
    const headers = {};
    for (const line of lines) {
        const [, name, value] = line.match(/^([^:]*):\s*(.*)$/) ?? [];
        if (name)
            headers[name.toLowerCase()] = value;
    }
    return { status: Number(first.split(' ')[1]), headers, body: bytes.subarray(end + 4) };
}

// Writes bytes to a socket and reads until the peer closes, or the answer (by its Content-Length) is complete, or
// time is over. Resolves to { answer (null: none), closed, ms }.
export function raw(base, bytes, { deadlineMs = 5_000 } = {}) {
    const { hostname, port } = new URL(base);
    const began = Date.now();
    return new Promise((done) => {
        let received = Buffer.alloc(0);
        const socket = connect({ host: hostname, port: Number(port) });
        const finish = (closed) => {
            clearTimeout(timer);
            socket.destroy();
            const head = parseHead(received);
            done({ answer: head && new Answer(head.status, head.headers, head.body), closed, ms: Date.now() - began });
        };
        const timer = setTimeout(() => finish(false), deadlineMs);
        socket.on('connect', () => socket.write(bytes));
        socket.on('data', (chunk) => {
            received = Buffer.concat([received, chunk]);
            const head = parseHead(received);
            if (head && head.status >= 200 && head.body.length >= Number(head.headers['content-length'] ?? Infinity))
                finish(false);
        });
        socket.on('error', () => {});
        socket.on('close', () => finish(true));
    });
}
