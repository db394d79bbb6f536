// The stock MPP client under a fault: a world whose Tempo node and whose way to the gateway are in a test's hand. After each test the
// books are compared with both chains.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { Edge } from './edge.mjs';
import { credentialOf } from './mpp.mjs';
import { Stub } from './stub.mjs';
import { mppFetch, onTempo, tempoBooksAgree, tempoPayer } from './tempo.mjs';
import { endWorld, startWorld } from './world.mjs';

export const PATH = '/test/tempo', CACHEABLE = '/test/tempo-cacheable';

export class Faults {
    #edges = [];
    #gateways = 1;
    #paths = 0;

    // Makes the world before the tests of a file, and looks at its books behind each of them.
    constructor(options = {}) {
        before(async () => {
            this.world = await startWorld(onTempo({
                ...options,
                beforeConfig: async (world) => {
                    this.node = await Stub.start(world.tempo.rpc.url);
                    world.options.tempo = { rpc: [this.node.url] };
                },
            }));
        });
        afterEach(async () => {
            this.node.honest();
            for (const one of this.#edges.splice(0))
                await one.stop();
            await tempoBooksAgree(this.world);
        });
        after(async () => {
            if (this.world)
                await endWorld(this.world);
            await this.node?.stop();
        });
    }

    // A test in each of the client's modes, with a payer of its own.
    fault(name, body, modes = ['push', 'pull']) {
        for (const mode of modes)
            test(`${name} (${mode})`, { timeout: 120_000 }, async () => {
                await body(this.world, mode, await tempoPayer(this.world));
            });
    }

    // The network in front of a gateway.
    async edge(act = (call, pass) => pass(), base = this.world.gateway) {
        const one = await Edge.start(base);
        this.#edges.push(one);
        one.act = act;
        return one;
    }

    // Another gateway on the same database that stands for the same public address, by another configuration, while body runs.
    async withGateway(extra, body) {
        const name = `gateway${++this.#gateways}`;
        await body(await this.world.addGateway(name, { extra: { public_url: this.world.gateway, ...extra } }));
        await this.world.stop(name);
    }

    path(base = PATH) {
        return `${base}?call=${++this.#paths}`;
    }
}

// One call of the stock client's.
export async function buy(world, payer, mode, base, path, options) {
    const response = await mppFetch(world, payer, { mode })(`${base}${path}`, options);
    const { status, headers } = response;
    return { status, headers, text: await response.text() };
}

export const present = (world, base, path, { authorization }, options = {}) =>
    world.request(path, { ...options, base, headers: { ...options.headers, authorization } });

export const challengeIn = ({ headers }) => credentialOf(headers.authorization).challenge;
export const rawIn = ({ headers }) => credentialOf(headers.authorization).payload.signature;
export const runs = async (world, target) => (await world.calls()).filter((call) => call.target === target).length;

// Both return what the client was told: its receipt, or the problem, which is nothing that it would pay on.
export function served(answer) {
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(Buffer.from(answer.headers.get('payment-receipt'), 'base64url').toString('utf8'));
}

export function noChallenge(answer, status, code) {
    assert.equal(answer.status, status, answer.text);
    for (const name of ['www-authenticate', 'payment-required', 'payment-receipt'])
        assert.equal(answer.headers.get(name), null, name);
    const problem = JSON.parse(answer.text);
    assert.equal(problem.code, code);
    return problem;
}
